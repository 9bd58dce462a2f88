"""A rehearsal: what each operation would do, told by the writer's own loop and write surface over a sandbox."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from consumers.infrahub import rehearsed
from consumers.infrahub.observed import kinds_of_interest, narrowed
from consumers.infrahub.rehearsed import open_rehearsal
from consumers.infrahub.sandbox.seeding import Seeded
from consumers.infrahub.write_surface import InfrahubWriteSurface
from consumers.rehearsal import Effect, Rehearsal, RehearsalSummary
from ledger.binding import DestinationBinding
from ledger.destination import ObservedObject, PeerPointer
from ledger.plan.model import PlannedOperation
from ledger.schema import parse_schema
from tests.support.lab_schema import attribute, lab_document, node
from tests.support.operations import create, delete, many, one, update

BINDING = DestinationBinding(url="http://real.example:8000", branch="main")
SITE, OTHER, TAG, RACK = (f"00000000-0000-4000-8000-00000000000{n}" for n in range(1, 5))


def _site(node_id: str, name: str, description: str | None = None) -> ObservedObject:
    return ObservedObject("LabSite", node_id, {"name": name, "description": description}, {}, {})


async def _rehearse(
    operations: Sequence[PlannedOperation],
    observed: Sequence[ObservedObject] = (),
    *,
    document: dict[str, Any] | None = None,
) -> tuple[list[Effect], Seeded]:
    effects: list[Effect] = []
    schema = document or lab_document()
    async with open_rehearsal(schema, observed, run_id="20261130T1200-0a1b2c3d", told=effects.append) as opened:
        await Rehearsal(
            operations, opened.destination, binding=BINDING, run_id="r", skipped=opened.destination.skipped
        ).run()
    return effects, opened.seeded


def _told(effects: Sequence[Effect]) -> list[tuple[str, str]]:
    return [(str(effect.operation.identity.get("name")), effect.outcome) for effect in effects]


@pytest.mark.rules("P17", "P40", "P41")
async def test_each_operation_is_created_updated_or_unchanged_with_old_and_new_values() -> None:
    observed = [_site(SITE, "dc1", "old"), _site(OTHER, "dc2", "as it is")]
    effects, _ = await _rehearse(
        [
            create("LabSite", {"name": "dc3"}, {"name": "dc3", "description": "new"}),
            update("LabSite", {"name": "dc1"}, {"name": "dc1", "description": "changed"}, destination_id=SITE),
            update("LabSite", {"name": "dc2"}, {"name": "dc2", "description": "as it is"}, destination_id=OTHER),
        ],
        observed,
    )
    assert _told(effects) == [("dc3", "created"), ("dc1", "updated"), ("dc2", "unchanged")]
    assert [item.record() for item in effects[1].fields] == [
        {"field": "description", "before": "old", "after": "changed"}
    ]
    assert {item.field: item.after for item in effects[0].fields} == {"name": "dc3", "description": "new"}
    assert not any(item.has_before for item in effects[0].fields)
    assert effects[1].node_id == SITE
    assert effects[2].fields == ()


@pytest.mark.rules("P36")
async def test_a_create_that_meets_its_object_is_told_as_the_update_that_it_is() -> None:
    effects, _ = await _rehearse(
        [create("LabSite", {"name": "dc1"}, {"name": "dc1", "description": "mine"})], [_site(SITE, "dc1", "theirs")]
    )
    assert _told(effects) == [("dc1", "updated")]
    assert [item.record() for item in effects[0].fields] == [
        {"field": "description", "before": "theirs", "after": "mine"}
    ]


@pytest.mark.rules("P98", "G11")
async def test_a_set_without_a_peer_is_rehearsed_although_no_operation_names_one_of_its_kind() -> None:
    """The schema that is rehearsed on is cut to the kinds of the plan, and the write surface asks for the peer's."""
    operations = [
        create(
            "LabDevice", {"name": "d1"}, {"name": "d1"}, one("site", "LabSite", name="dc1"), many("tags", "BuiltinTag")
        )
    ]
    document = lab_document()
    kinds = kinds_of_interest(parse_schema(document), operations)
    assert kinds == {"LabDevice", "LabSite", "BuiltinTag"}
    effects, _ = await _rehearse(operations, [_site(SITE, "dc1")], document=dict(narrowed(document, kinds)))
    assert _told(effects) == [("d1", "created")]


@pytest.mark.rules("P83", "P93", "G11")
async def test_a_refusal_ends_nothing_and_what_rests_on_it_names_it() -> None:
    missing = create("LabDevice", {"name": "d1"}, {"name": "d1"}, one("site", "LabSite", name="nowhere"))
    stale = update("LabSite", {"name": "gone"}, {"name": "gone", "description": "x"}, destination_id=OTHER)
    nowhere = {"peer_kind": "LabSite", "identity": {"name": "nowhere"}}
    rack = create("LabRack", {"name": "r1", "site": nowhere}, {"name": "r1"}, one("site", "LabSite", name="nowhere"))
    follower = create(
        "LabDevice",
        {"name": "d2"},
        {"name": "d2"},
        one("site", "LabSite", name="dc1"),
        one("rack", "LabRack", **rack.identity),
    )
    fine = create("LabSite", {"name": "later"}, {"name": "later"})
    effects, _ = await _rehearse([missing, stale, rack, follower, fine], [_site(SITE, "dc1")])
    assert [effect.outcome for effect in effects] == ["refused", "refused", "refused", "refused", "created"]
    refusals = [effect.refusal.name for effect in effects if effect.refusal is not None]
    assert refusals == ["PeerNotFoundError", "StaleDestinationIdError", "PeerNotFoundError", "PeerNotFoundError"]
    assert [effect.follows for effect in effects] == [None, None, None, rack.operation_id, None]
    assert [effect.after_stop for effect in effects] == [False, True, True, True, True]
    assert {effect.recorded_as for effect in effects[:4]} == {"operation.failed"}


@pytest.mark.rules("G5", "P59")
async def test_what_the_destination_itself_refuses_is_told_with_what_a_run_would_record() -> None:
    effects, _ = await _rehearse(
        [update("LabSite", {"name": "dc2"}, {"name": "dc2"}, destination_id=SITE)],
        [_site(SITE, "dc1"), _site(OTHER, "dc2")],
    )
    assert [effect.refusal.name for effect in effects if effect.refusal is not None] == ["UniquenessConflictError"]
    assert effects[0].recorded_as == "operation.unknown"


@pytest.mark.rules("P111", "P145")
async def test_recorded_deletes_are_passed_by_in_their_place() -> None:
    effects, _ = await _rehearse(
        [
            delete("LabSite", {"name": "a"}),
            create("LabSite", {"name": "b"}, {"name": "b"}),
            delete("LabSite", {"name": "c"}),
        ]
    )
    assert _told(effects) == [("a", "skipped"), ("b", "created"), ("c", "skipped")]


@pytest.mark.rules("P94", "P98")
async def test_lists_of_peers_are_told_by_name_before_and_after() -> None:
    device = ObservedObject(
        "LabDevice",
        RACK,
        {"name": "d1"},
        {"site": PeerPointer("LabSite", SITE)},
        {"tags": (PeerPointer("BuiltinTag", TAG),)},
    )
    tag = ObservedObject("BuiltinTag", TAG, {"name": "red"}, {}, {})
    fresh = create("BuiltinTag", {"name": "blue"}, {"name": "blue"})
    both = update(
        "LabDevice",
        {"name": "d1"},
        {"name": "d1"},
        many("tags", "BuiltinTag", {"name": "blue"}),
        destination_id=RACK,
    )
    effects, seeded = await _rehearse([fresh, both], [_site(SITE, "dc1"), device, tag])
    assert [item.record() for item in effects[1].fields] == [
        {
            "field": "tags",
            "before": [{"kind": "BuiltinTag", "hfid": ["red"], "id": TAG}],
            # an id that the sandbox made up would mean nothing at the destination
            "after": [{"kind": "BuiltinTag", "hfid": ["blue"]}],
        }
    ]
    assert seeded.dangling == {}


async def test_what_was_not_observed_is_not_claimed_and_makes_no_conflict() -> None:
    document = lab_document()
    document["nodes"].append(
        node(
            "Lab",
            "Asset",
            attributes=[attribute("name", unique=True), attribute("serial", unique=True, optional=True)],
            hfid=["name__value"],
        )
    )
    observed = [
        ObservedObject("LabAsset", node_id, {"name": name}, {}, {}) for node_id, name in ((SITE, "a"), (TAG, "b"))
    ]
    effects, _ = await _rehearse(
        [
            update("LabAsset", {"name": "a2"}, {"name": "a2"}, destination_id=SITE),
            update("LabAsset", {"name": "b"}, {"name": "b", "serial": "s"}, destination_id=TAG),
        ],
        observed,
        document=document,
    )
    assert [effect.outcome for effect in effects] == ["updated", "updated"]
    assert effects[1].fields[0].record() == {"field": "serial", "after": "s"}


async def test_kinds_and_fields_that_are_gone_and_peers_that_were_not_seen_are_named() -> None:
    gone = ObservedObject("LabGone", "x", {}, {}, {})
    odd = ObservedObject(
        "LabDevice", RACK, {"name": "d1", "colour": "red"}, {"site": PeerPointer("LabSite", OTHER)}, {}
    )
    _, seeded = await _rehearse([create("LabSite", {"name": "dc1"}, {"name": "dc1"})], [gone, odd])
    assert seeded.unknown == {"LabGone", "LabDevice.colour"}
    assert seeded.dangling == {"LabDevice.site": 1}
    assert seeded.objects == 1


@pytest.mark.rules("P140")
async def test_a_defect_is_no_outcome(monkeypatch: pytest.MonkeyPatch) -> None:
    async def broken(self: object, *, operation: PlannedOperation, peers: object) -> str:
        raise ZeroDivisionError

    monkeypatch.setattr(InfrahubWriteSurface, "apply_planned_operation", broken)
    with pytest.raises(ZeroDivisionError):
        await _rehearse([create("LabSite", {"name": "dc1"}, {"name": "dc1"})])


def test_the_summary_says_where_a_run_would_stop_and_counts_everything() -> None:
    summary = RehearsalSummary()
    operations = [create("LabSite", {"name": name}, {"name": name}) for name in ("a", "b", "c")]
    for operation, outcome in zip(operations, ("created", "refused", "created"), strict=True):
        summary.take(Effect(operation, outcome))  # type: ignore[arg-type] # a literal in a tuple
    assert summary.counts == {"created": 2, "updated": 0, "unchanged": 0, "refused": 1, "skipped": 0}
    assert (summary.operations, summary.reached, summary.stopped_at) == (3, 2, operations[1].operation_id)


def test_the_address_that_a_rehearsal_writes_to_is_nobodys() -> None:
    assert rehearsed._NOWHERE.endswith(".invalid")
