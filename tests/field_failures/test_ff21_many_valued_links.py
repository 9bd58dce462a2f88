"""FF21: of a many-valued link the plan says the whole set: surplus goes, and a peer that is missing deletes nothing."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from ledger.exit_codes import ExitCode
from ledger.plan.canonical import canonical_json_bytes, operation_id
from ledger.plan.errors import TornPlanArtifactError
from ledger.plan.model import PlannedOperation, RelationshipReference
from ledger.plan.reader import load_plan_artifact
from producers.errors import PlanRefusedError
from tests.support.forged_plans import FORGED, commit_forged
from tests.support.operations import update
from tests.support.planning import Rows, entry, mapped, operations
from tests.support.plans import line, raw_run
from tests.support.real_writer import RealWriter
from tests.support.sync_bench import SyncBench

pytestmark = pytest.mark.integration

MAKER, TAG = "OrganizationManufacturer", "BuiltinTag"
MAPPING = [
    entry(TAG, "tags", ["name"], mapped("name")),
    entry(MAKER, "makers", ["name"], mapped("name"), mapped("description"), mapped("tags", reference=TAG)),
]


class Inventory:
    """Three tags, and makers that carry the first two of them."""

    def __init__(self, real: RealWriter) -> None:
        self.real = real
        self.tags = {name: self._create(TAG, {"name": name}) for name in ("a", "b", "c")}
        self.makers: dict[str, str] = {}

    def maker(self, name: str) -> str:
        """A maker with the tags a and b; its id."""
        fields = {"name": name, "tags": [self.tags["a"], self.tags["b"]]}
        self.makers[name] = self._create(MAKER, fields)
        return self.makers[name]

    def _create(self, kind: str, fields: Mapping[str, Any]) -> str:
        return self.real.sandbox.store.create(kind, fields, branch=self.real.branch)

    def tags_of(self, maker: str) -> set[str]:
        """The tags that a maker carries now."""
        node = self.real.sandbox.store.get(self.makers[maker], branch=self.real.branch)
        assert node is not None
        carried = {peer for peers in node.peers.values() for peer in peers}
        return {tag for tag, tag_id in self.tags.items() if tag_id in carried}


def tagged(name: str, node_id: str, tags: list[dict[str, Any]] | None, **fields: Any) -> PlannedOperation:
    """An update of a maker; None leaves its tags out."""
    reference = (
        None if tags is None else RelationshipReference(field="tags", peer_kind=TAG, cardinality="many", peers=tags)
    )
    references = [] if reference is None else [reference]
    return update(MAKER, {"name": name}, {"name": name, **fields}, *references, destination_id=node_id)


def named(*names: str) -> list[dict[str, Any]]:
    """Peers by their name."""
    return [{"name": name} for name in names]


@pytest.mark.rules("P93", "P94", "P95", "P98", "P99", "A32", "G6")
async def test_ff21_surplus_goes_empty_empties_and_absent_leaves_alone(real: RealWriter) -> None:
    inventory = Inventory(real)
    planned = {"replaced": named("a", "c"), "emptied": [], "untouched": None, "twice": named("a", "a")}
    operations = [tagged(name, inventory.maker(name), peers, description="seen") for name, peers in planned.items()]
    stored = await real.commit("run-1", operations)
    assert (await real.writer().drain("run-1", by="ada")).ending == "run.applied"
    assert {name: inventory.tags_of(name) for name in planned} == {
        "replaced": {"a", "c"},
        "emptied": set(),
        "untouched": {"a", "b"},
        "twice": {"a"},
    }
    # Absent and empty are two things in the file, on the wire and in the ledger.
    emptied, untouched = (next(o for o in stored if o.identity == {"name": name}) for name in ("emptied", "untouched"))
    assert b'"peers":[]' in emptied.line()
    assert b"tags" not in untouched.line()
    sent = {entry.data["name"]["value"]: entry.data for entry in real.sent()}
    assert sent["emptied"]["tags"] == []
    assert "tags" not in sent["untouched"]
    commit = await real.ledger.run_commit(await real.binding_id(), "run-1")
    assert commit is not None
    assert [found async for found in real.ledger.stored_plan(commit.plan_checksum)] == [o.line() for o in stored]


@pytest.mark.rules("P80", "P83", "P93", "G5")
@pytest.mark.parametrize("peers", [("a", "missing"), ("missing", "a"), ("missing",), ("a", "missing", "c")])
async def test_ff21_a_peer_that_is_missing_refuses_the_whole_list_and_writes_nothing(
    real: RealWriter, peers: tuple[str, ...]
) -> None:
    inventory = Inventory(real)
    refused = tagged("m", inventory.maker("m"), named(*peers), description="never")
    [operation, _] = await real.commit("run-1", [refused, tagged("n", inventory.maker("n"), None, description="next")])
    before = real.content()
    outcome = await real.writer().drain("run-1", by="ada")
    assert (outcome.ending, outcome.exit_code) == ("run.failed", ExitCode.STOPPED_UNWRITTEN)
    body = await real.body("run-1", "operation.failed")
    assert (body["error"], body["wrote"]) == ("PeerNotFoundError", False)
    assert operation.operation_id in body["message"]
    assert real.sent() == []
    assert real.content() == before
    assert (await real.body("run-1", "run.failed"))["not_attempted"] == 1


def _written_by_hand(node_id: str, peers: Any) -> bytes:
    """The line of an update whose tags a person typed in."""
    identity = {"name": "m"}
    return line(
        {
            "action": "update",
            "destination_id": node_id,
            "identity": identity,
            "kind": MAKER,
            "operation_id": operation_id("update", MAKER, identity),
            "payload": identity,
            "relationships": [{"cardinality": "many", "field": "tags", "peer_kind": TAG, "peers": peers}],
            "tier": 0,
        }
    )


@pytest.mark.rules("A21", "A32")
@pytest.mark.parametrize(
    "peers",
    [["a"], {"name": "a"}, None, [{}], [None], [[]], 1, [{"name": "b"}, {"name": "a"}]],
    ids=lambda peers: canonical_json_bytes(peers).decode(),
)
def test_ff21_a_list_in_another_shape_is_a_torn_plan(tmp_path: Path, peers: Any) -> None:
    with pytest.raises(TornPlanArtifactError):
        load_plan_artifact(raw_run(tmp_path, _written_by_hand("17a0", peers)))


@pytest.mark.rules("A21", "A32", "P65", "P100")
@pytest.mark.parametrize(
    "peers",
    [[["a", "b"]], "a", [{"name": "a"}, {"name": "a"}]],
    ids=lambda peers: canonical_json_bytes(peers).decode(),
)
async def test_ff21_a_torn_list_reaches_nobody(real: RealWriter, peers: Any) -> None:
    inventory = Inventory(real)
    await commit_forged(real, _written_by_hand(inventory.maker("m"), peers))
    outcome = await real.writer().drain(FORGED, by="ada")
    assert outcome.exit_code is ExitCode.REFUSED
    assert await real.kinds(FORGED) == ["plan.committed", "plan.refused"]
    assert real.sent() == []
    assert inventory.tags_of("m") == {"a", "b"}


async def test_ff21_the_hand_that_types_it_right_is_obeyed(real: RealWriter) -> None:
    inventory = Inventory(real)
    await commit_forged(real, _written_by_hand(inventory.maker("m"), [{"name": "a"}]))
    assert (await real.writer().drain(FORGED, by="ada")).ending == "run.applied"
    assert inventory.tags_of("m") == {"a"}


@pytest.mark.rules("P93", "A32", "H30", "H31")
async def test_ff21_from_the_source_to_the_destination_and_an_empty_second_plan(real: RealWriter) -> None:
    inventory = Inventory(real)
    for name in ("replaced", "emptied", "untouched", "same"):
        inventory.maker(name)
    rows: Rows = {
        "tags": [{"id": name, "name": name} for name in ("a", "b", "c")],
        "makers": [
            {"id": 1, "name": "replaced", "tags": [{"id": "c"}, {"id": "a"}]},
            {"id": 2, "name": "emptied", "tags": []},
            {"id": 3, "name": "untouched"},
            {"id": 4, "name": "same", "tags": [{"id": "b"}, {"id": "a"}, {"id": "b"}]},
        ],
    }
    sync = SyncBench(real, MAPPING)
    run = await sync.plan(rows)
    assert [operation.identity["name"] for operation in operations(run)] in (
        ["replaced", "emptied"],
        ["emptied", "replaced"],
    )
    assert (await sync.apply(run)).ending == "run.applied"
    assert {name: inventory.tags_of(name) for name in inventory.makers} == {
        "replaced": {"a", "c"},
        "emptied": set(),
        "untouched": {"a", "b"},
        "same": {"a", "b"},
    }
    assert operations(await sync.plan(rows)) == ()


@pytest.mark.rules("P83", "C31")
async def test_ff21_a_source_that_names_a_missing_peer_makes_no_shorter_list(real: RealWriter) -> None:
    inventory = Inventory(real)
    inventory.maker("m")
    rows: Rows = {
        "tags": [{"id": name, "name": name} for name in ("a", "b", "c")],
        "makers": [{"id": 1, "name": "m", "tags": [{"id": "a"}, {"id": "gone"}]}],
    }
    with pytest.raises(PlanRefusedError, match="gone"):
        await SyncBench(real, MAPPING).plan(rows)
    assert not list(real.root.rglob("manifest.json"))
