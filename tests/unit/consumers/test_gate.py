"""Before the first write: the order of the checks, and every failure named in one attempt."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from consumers.errors import DispatchRefusedError, exit_code_of_refusal
from consumers.infrahub.errors import DestinationReadError
from consumers.runs import RunOutcome
from ledger.binding import DestinationBinding
from ledger.commit import Policy
from ledger.destination import DestinationAwayError, PlannedWriteDestination
from ledger.exit_codes import ExitCode
from ledger.plan.canonical import canonical_json_bytes
from ledger.plan.checksum import plan_checksum
from ledger.schema import Attribute, DestinationSchema
from tests.support.committed_plans import BINDING, changed_tag, commit_of, in_order, save, tag
from tests.support.scripted_destination import SCHEMA, TAG
from tests.support.writer_bench import Bench


def _names(outcome: RunOutcome) -> list[str]:
    return [finding.name for finding in outcome.findings]


def _nothing_happened(bench: Bench, run_id: str = "run-1") -> bool:
    return bench.destination.received == [] and bench.ledger.kinds(run_id) == ["plan.refused"]


def _manifest(run_dir: Path) -> dict[str, Any]:
    document: dict[str, Any] = json.loads((run_dir / "plan/manifest.json").read_bytes())
    return document


def _rewrite(run_dir: Path, *, operations: bytes | None = None, **changes: Any) -> None:
    """Change an artifact so that it is a consistent one again: with a right checksum."""
    if operations is not None:
        (run_dir / "plan/operations.jsonl").write_bytes(operations)
    data = (run_dir / "plan/operations.jsonl").read_bytes()
    document = _manifest(run_dir) | changes
    document["operations_count"] = data.count(b"\n")
    document["plan_checksum"] = plan_checksum(document, data)
    (run_dir / "plan/manifest.json").write_bytes(canonical_json_bytes(document))


@pytest.mark.rules("G1", "P102", "A84")
async def test_g01_files_replaced_after_the_read_are_never_applied(bench: Bench) -> None:
    operations = bench.commit([tag("reviewed")])
    run_dir = bench.root / "sync/run-1"

    def replace() -> None:
        (other,) = in_order([tag("smuggled")])
        _rewrite(run_dir, operations=other.line())

    bench.destination.before_open = replace
    outcome = await bench.drain()
    assert outcome.ending == "run.applied"
    assert bench.destination.received == [operations[0].operation_id]
    assert bench.ledger.plans[bench.commit_of().plan_checksum] == [operations[0].line()]


@pytest.mark.rules("G1")
async def test_g01_a_manifest_in_another_spelling_is_refused_by_its_digest(bench: Bench) -> None:
    bench.commit([tag("a")])
    path = bench.root / "sync/run-1/plan/manifest.json"
    path.write_bytes(json.dumps(json.loads(path.read_bytes()), indent=1).encode())
    outcome = await bench.drain()
    assert _names(outcome) == ["ArtifactDigestMismatchError"]
    assert outcome.exit_code is ExitCode.REFUSED
    assert _nothing_happened(bench)
    assert bench.ledger.state_of(bench.ledger.orders[0]) == "refused"


@pytest.mark.rules("G1", "A66", "C29")
async def test_g01_another_consistent_plan_under_the_run_is_refused_by_the_committed_checksum(bench: Bench) -> None:
    run_dir = save(bench.root, "run-1", in_order([tag("reviewed")]))
    reviewed = commit_of(bench.root, run_dir)
    (other,) = in_order([tag("other")])
    _rewrite(run_dir, operations=other.line())
    now = commit_of(bench.root, run_dir)
    bench.ledger.commit(reviewed.model_copy(update={"artifact_digest": now.artifact_digest}))
    outcome = await bench.drain()
    assert _names(outcome) == ["CommittedChecksumMismatchError"]
    assert _nothing_happened(bench)


@pytest.mark.rules("G1", "A69", "C28")
async def test_g01_a_changed_operation_byte_is_refused_by_digest_and_checksum(bench: Bench) -> None:
    bench.commit([tag("a", description="old")])
    path = bench.root / "sync/run-1/plan/operations.jsonl"
    path.write_bytes(path.read_bytes().replace(b'"old"', b'"new"'))
    outcome = await bench.drain()
    assert {"ArtifactDigestMismatchError", "plan_checksum"} <= set(_names(outcome))
    assert _nothing_happened(bench)


@pytest.mark.rules("A60", "A87", "P117", "P118", "G11")
async def test_g11_every_failure_is_named_at_once(bench: Bench) -> None:
    bench.commit(
        [tag("a"), tag("b")], commit={"config_version": "another"}, binding=BINDING.model_copy(update={"branch": "dev"})
    )
    path = bench.root / "sync/run-1/plan/operations.jsonl"
    path.write_bytes(path.read_bytes().splitlines(keepends=True)[0])
    outcome = await bench.drain()
    assert {"ArtifactDigestMismatchError", "operations", "plan_checksum", "config_version"} <= set(_names(outcome))
    body = bench.ledger.body("plan.refused")
    assert [finding["name"] for finding in body["findings"]] == _names(outcome)
    for finding in body["findings"]:
        assert all(finding[part] for part in ("checked", "expected", "found", "next_action"))


@pytest.mark.rules("P52", "P53", "G11")
async def test_g11_the_faults_of_all_operations_are_named_before_the_first_write(bench: Bench) -> None:
    bench.commit([tag("good"), tag("bad-1", colour="red"), tag("bad-2", description=7)])
    outcome = await bench.drain()
    text = " ".join(str(finding) for finding in outcome.findings)
    assert "colour" in text
    assert "description" in text
    assert len(outcome.findings) == 2
    assert _nothing_happened(bench)


class _RightNamesWrongShapes:
    """Members of the right names; it never opted in."""

    def new_peer_resolver(self, extra: int) -> None: ...

    def apply_planned_operation(self) -> None: ...


@pytest.mark.rules("P11", "P12", "P13", "P14", "P103")
async def test_a_destination_that_did_not_opt_in_is_refused_by_name_with_everything_else(bench: Bench) -> None:
    bench.commit([tag("a")], commit={"config_version": "another"})
    bench.destination.surface = _RightNamesWrongShapes()
    outcome = await bench.drain()
    assert set(_names(outcome)) == {"config_version", "write_surface"}
    surface = next(finding for finding in outcome.findings if finding.name == "write_surface")
    assert "_RightNamesWrongShapes" in surface.found
    assert "sync" in surface.next_action
    assert _nothing_happened(bench)


@pytest.mark.rules("P5", "P6", "P7", "P14")
def test_the_write_surface_is_an_abstract_class_with_exactly_two_members() -> None:
    assert PlannedWriteDestination.__abstractmethods__ == {"new_peer_resolver", "apply_planned_operation"}
    assert not isinstance(_RightNamesWrongShapes(), PlannedWriteDestination)


@pytest.mark.rules("P100", "P101", "A7", "C34")
async def test_a_run_without_a_plan_is_refused_before_the_destination_is_opened(bench: Bench) -> None:
    bench.commit([tag("a")])
    plan = bench.root / "sync/run-1/plan"
    plan.rename(bench.root / "elsewhere")
    outcome = await bench.drain()
    assert _names(outcome) == ["PlanArtifactAbsentError"]
    assert bench.destination.opened == 0
    assert _nothing_happened(bench)


@pytest.mark.rules("P104", "A8", "A9")
@pytest.mark.parametrize("missing", ["manifest.json", "operations.jsonl"])
async def test_a_torn_plan_is_refused(bench: Bench, missing: str) -> None:
    bench.commit([tag("a")])
    (bench.root / "sync/run-1/plan" / missing).unlink()
    outcome = await bench.drain()
    assert outcome.ending == "plan.refused"
    assert _nothing_happened(bench)


@pytest.mark.rules("P105", "P119")
async def test_an_unknown_action_is_refused_before_any_write(bench: Bench) -> None:
    run_dir = save(bench.root, "run-1", in_order([tag("a"), tag("b")]))
    lines = (run_dir / "plan/operations.jsonl").read_bytes().splitlines(keepends=True)
    _rewrite(run_dir, operations=lines[0] + lines[1].replace(b'"action":"create"', b'"action":"rename"'))
    # The committer would refuse to commit it; a commit made elsewhere may not.
    other = save(bench.root / "other", "run-1", in_order([tag("a"), tag("b")]))
    document = _manifest(run_dir)
    honest = commit_of(bench.root / "other", other)
    from ledger.plan.reader import read_raw_artifact

    bench.ledger.commit(
        honest.model_copy(
            update={
                "plan_checksum": document["plan_checksum"],
                "artifact_digest": read_raw_artifact(run_dir).artifact_digest,
            }
        )
    )
    outcome = await bench.drain()
    assert any("action" in finding.checked + finding.expected + finding.found for finding in outcome.findings)
    assert _nothing_happened(bench)


@pytest.mark.rules("P106", "P107", "P108", "A57", "A86")
async def test_a_plan_of_format_2_is_read_and_refused_for_apply_after_the_parse(bench: Bench) -> None:
    run_dir = save(bench.root, "run-1", in_order([tag("a")]))
    _rewrite(run_dir, format_version=2)
    bench.ledger.commit(commit_of(bench.root, run_dir))
    outcome = await bench.drain()
    assert _names(outcome) == ["PlanFormatApplyUnsupportedError"]
    assert bench.destination.resolvers == 0
    assert _nothing_happened(bench)


@pytest.mark.rules("P107", "A86")
async def test_a_torn_plan_of_format_2_is_called_torn(bench: Bench) -> None:
    run_dir = save(bench.root, "run-1", in_order([tag("a"), tag("b")]))
    _rewrite(run_dir, format_version=2)
    bench.ledger.commit(commit_of(bench.root, run_dir))
    path = run_dir / "plan/operations.jsonl"
    path.write_bytes(path.read_bytes().splitlines(keepends=True)[0])
    outcome = await bench.drain()
    assert "operations" in _names(outcome)
    assert "PlanFormatApplyUnsupportedError" not in _names(outcome)


@pytest.mark.rules("P109")
async def test_the_resolver_is_made_once_for_one_apply_after_the_gate(bench: Bench) -> None:
    bench.commit([tag("a"), tag("b")])
    await bench.drain()
    assert bench.destination.resolvers == 1


@pytest.mark.rules("P121")
async def test_an_empty_plan_is_verified_all_the_same(bench: Bench) -> None:
    bench.commit([], commit={"config_version": "another"})
    assert _names(await bench.drain()) == ["config_version"]


@pytest.mark.parametrize(
    "location",
    ["/etc", "../run-1", "sync/../../run-1", "http://example/run-1", "file:///tmp/run-1", "", "sync//run-1", "."],
)
async def test_only_a_run_directory_below_the_root_is_ever_opened(bench: Bench, location: str) -> None:
    bench.commit([tag("a")], commit={"artifact": location})
    outcome = await bench.drain()
    assert _names(outcome) == ["ArtifactLocationError"]
    assert bench.destination.opened == 0


async def test_a_link_that_leads_out_of_the_root_is_not_followed(
    bench: Bench, tmp_path_factory: pytest.TempPathFactory
) -> None:
    outside = tmp_path_factory.mktemp("outside")
    run_dir = save(outside, "run-1", in_order([tag("a")]))
    (bench.root / "sync").mkdir()
    (bench.root / "sync/run-1").symlink_to(run_dir)
    bench.ledger.commit(commit_of(outside, run_dir))
    assert _names(await bench.drain()) == ["ArtifactLocationError"]


@pytest.mark.rules("A64", "C27", "C54")
async def test_a_plan_for_another_destination_is_refused_unless_the_policy_names_it(bench: Bench) -> None:
    other = DestinationBinding(url="http://elsewhere.example:8000", branch="main")
    bench.commit([tag("a")], binding=other)
    outcome = await bench.drain()
    assert _names(outcome) == ["DestinationBindingMismatchError"]
    assert "elsewhere" in outcome.findings[0].found
    bench.commit([tag("a")], run_id="run-2", binding=other, policy=Policy(allow_destination_change=True))
    assert (await bench.drain("run-2")).ending == "run.applied"


@pytest.mark.rules("A64", "C24")
async def test_another_spelling_of_the_destination_is_the_same_destination(bench: Bench) -> None:
    bench.commit([tag("a")], binding=DestinationBinding(url="HTTP://Infrahub.Example:8000/", branch="main"))
    assert (await bench.drain()).ending == "run.applied"


@pytest.mark.rules("A65")
async def test_a_plan_that_names_no_destination_is_not_compared(bench: Bench) -> None:
    bench.commit([tag("a")], binding=None)
    assert (await bench.drain()).ending == "run.applied"


@pytest.mark.parametrize(
    ("field", "value"), [("operations_count", 7), ("source", "another-sync"), ("format_version", 2)]
)
async def test_a_commit_that_contradicts_the_manifest_is_refused(bench: Bench, field: str, value: object) -> None:
    bench.commit([tag("a")], commit={field: value})
    assert _names(await bench.drain()) == ["CommitContradictsManifestError"]


@pytest.mark.rules("G12", "H20")
async def test_g12_a_plan_with_a_password_is_refused_and_its_lines_are_not_stored(bench: Bench) -> None:
    secret = Attribute(name="secret", kind="Password")
    kind = type(TAG)(
        kind=TAG.kind, human_friendly_id=TAG.human_friendly_id, attributes={**TAG.attributes, "secret": secret}
    )
    bench.destination.schema = DestinationSchema(kinds={**SCHEMA.kinds, TAG.kind: kind})
    bench.commit([tag("a", secret="hunter2-planted")])
    outcome = await bench.drain()
    assert "SecretValueRefusedError" in _names(outcome)
    assert bench.ledger.plans == {}
    assert b"hunter2-planted" not in b"".join(event.body for event in bench.ledger.log)


@pytest.mark.rules("G11")
async def test_a_destination_that_cannot_be_opened_refuses_the_run_by_its_reason(bench: Bench) -> None:
    """A wrong token or a wrong branch does not pass: it is asked once."""
    bench.commit([tag("a")])
    bench.changes |= {"open_attempts": 3, "open_retry_wait": 0.0}
    tries: list[int] = []

    def fail() -> None:
        tries.append(1)
        raise DestinationReadError(checked="schema", expected="a token", found="HTTP 401", next_action="give one")

    bench.destination.before_open = fail
    assert _names(await bench.drain()) == ["DestinationReadError"]
    assert len(tries) == 1


async def test_a_destination_that_comes_back_while_it_is_opened_refuses_nothing(bench: Bench) -> None:
    bench.commit([tag("a")])
    bench.changes |= {"open_attempts": 3, "open_retry_wait": 0.0}
    tries: list[int] = []

    def fail_once() -> None:
        tries.append(1)
        if len(tries) == 1:
            raise DestinationAwayError(checked="schema", expected="a server", found="none", next_action="start it")

    bench.destination.before_open = fail_once
    assert (await bench.drain()).ending == "run.applied"


@pytest.mark.rules("G2")
async def test_g02_opening_waits_for_a_renewal_where_its_requests_were_held_back(bench: Bench) -> None:
    bench.commit([tag("a")])
    bench.changes |= {"open_attempts": 3, "open_retry_wait": 0.0}
    tries: list[int] = []

    def dawdle() -> None:
        tries.append(1)
        if len(tries) == 1:
            bench.ledger.clock.now += 50
            raise DispatchRefusedError(checked="lease", expected="time", found="none", next_action="renew")

    bench.destination.before_open = dawdle
    assert (await bench.drain()).ending == "run.applied"
    assert bench.ledger.renewals >= 1


@pytest.mark.rules("P141")
async def test_a_defect_of_the_gate_closes_the_order_and_propagates(bench: Bench) -> None:
    bench.commit([tag("a")])

    def fail() -> None:
        raise TypeError("a defect")

    bench.destination.before_open = fail
    with pytest.raises(TypeError, match="a defect"):
        await bench.drain()
    body = bench.ledger.body("plan.refused")
    assert body["findings"][0]["name"] == "GateDefectError"
    assert 'a defect"' not in json.dumps(body)
    assert bench.ledger.state_of(bench.ledger.orders[0]) == "refused"


async def test_a_long_list_of_findings_is_cut_in_the_event_and_stored_whole(bench: Bench) -> None:
    bench.commit([tag(f"bad-{number}", colour="red") for number in range(600)])
    outcome = await bench.drain()
    body = bench.ledger.body("plan.refused")
    assert body["cut"]["total"] == len(outcome.findings) == 600
    assert 0 < len(body["findings"]) < 600
    whole = json.loads(bench.ledger.details[body["cut"]["sha256"]])
    assert len(whole) == 600


async def test_the_plan_is_stored_before_the_run_starts(bench: Bench) -> None:
    operations = bench.commit([tag("a"), changed_tag("b", "id-1", description="x")])
    checksum = bench.commit_of().plan_checksum

    @asynccontextmanager
    async def nothing() -> AsyncIterator[None]:
        yield

    await bench.drain()
    assert bench.ledger.plans[checksum] == [operation.line() for operation in operations]
    assert bench.ledger.artifacts["run-1"] == (bench.root / "sync/run-1/plan/manifest.json").read_bytes()


def test_only_staleness_alone_has_the_exit_code_of_staleness() -> None:
    from ledger.errors import Finding

    stale = Finding(name="StalePlanError", checked="a", expected="b", found="c", next_action="d")
    other = stale.model_copy(update={"name": "config_version"})
    assert exit_code_of_refusal([stale]) is ExitCode.STALE
    assert exit_code_of_refusal([stale, other]) is ExitCode.REFUSED
