"""Two copies of one ledger: where the one that was changed differs from the other."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path

import pytest

from ledger.audit import two_copies, verify_binding
from ledger.audit.export.reading import ExportedLedger
from ledger.audit.export.writing import export_binding
from ledger.audit.two_copies import Comparison, compare_copies
from ledger.events import new_event
from ledger.store.ledger import Ledger
from tests.support.recorded_runs import BINDING
from tests.support.store import connection_to
from tests.support.tampering import rechain, unguarded
from tests.support.told_story import CREATED

pytestmark = pytest.mark.integration


@pytest.fixture
async def ledger(told_dsns: dict[str, str]) -> AsyncIterator[Ledger]:
    async with await Ledger.open(told_dsns["writer"], allow_unsafe_fsync=True) as opened:
        yield opened


@pytest.fixture
async def exported(ledger: Ledger, tmp_path: Path) -> Path:
    await export_binding(ledger, (await ledger.bindings())[0], tmp_path / "export", program="tests", group=10)
    return tmp_path / "export"


async def _compared(ledger: Ledger, exported: Path) -> Comparison:
    with closing(ExportedLedger(exported)) as there:
        return await compare_copies(ledger, (await ledger.bindings())[0], there, (await there.bindings())[0])


async def _edited(dsns: dict[str, str], *statements: str) -> None:
    """With all rights, and every hash computed anew: nothing inside the database can tell."""
    async with connection_to(dsns["admin"]) as admin, unguarded(admin):
        for statement in statements:
            assert not (await admin.execute(statement)).endswith(" 0")
        await rechain(admin)


@pytest.mark.rules("G8")
async def test_g08_copies_agree_and_a_newer_one_goes_on(ledger: Ledger, exported: Path) -> None:
    head = (await ledger.bindings())[0].head_position
    found = await _compared(ledger, exported)
    assert (found.same, found.compared, found.behind_here) == (True, head, 0)
    from ledger.audit.publish import seal_of

    row = (await ledger.bindings())[0]
    seal = await seal_of(ledger, CREATED.checksum)
    await ledger.append_control(row.id, [new_event("plan.sealed", seal, url=row.url, branch=row.branch, n="later")])
    found = await _compared(ledger, exported)
    assert (found.same, found.compared, found.behind_here) == (True, head, 1)


@pytest.mark.rules("G8")
async def test_g08_the_first_event_that_was_changed_is_named_with_what_was_changed(
    told_dsns: dict[str, str], ledger: Ledger, exported: Path
) -> None:
    await _edited(
        told_dsns,
        "update ledger.event set body = replace(body, '\"bob\"', '\"eve\"') where kind = 'plan.committed'"
        " and body like '%\"bob\"%'",
    )
    found = await _compared(ledger, exported)
    (difference,) = found.differences
    told = difference.document()
    assert (told["change"], told["kind"], told["run_id"]) == ("changed", "plan.committed", "run-update")
    assert told["fields"] == {"body.commit.actor": {"here": "eve", "there": "bob"}}
    assert told["position"] == told["position_there"]
    assert (found.same, found.total) == (False, 1), "only what was changed, not every hash behind it"


@pytest.mark.rules("G8")
@pytest.mark.parametrize("ahead", [1_000, 1])
async def test_g08_events_that_were_taken_out_are_named_and_the_rest_is_found_again(
    told_dsns: dict[str, str], ledger: Ledger, exported: Path, monkeypatch: pytest.MonkeyPatch, ahead: int
) -> None:
    monkeypatch.setattr(two_copies, "_AHEAD", ahead)
    await _edited(told_dsns, "delete from ledger.event where kind = 'operation.failed'")
    found = await _compared(ledger, exported)
    assert not found.same
    first = found.differences[0] if ahead > 1 else found.differences[1]
    assert (first.change, first.there and first.there.kind) == ("only there", "operation.failed")
    if ahead > 1:
        assert found.total == 1


@pytest.mark.rules("G8")
async def test_g08_an_end_that_was_cut_off_and_hashes_alone_are_told(
    told_dsns: dict[str, str], ledger: Ledger, exported: Path
) -> None:
    head = (await ledger.bindings())[0].head_position
    async with connection_to(told_dsns["admin"]) as admin, unguarded(admin):
        await admin.execute("delete from ledger.event where position > $1", head - 2)
        await admin.execute("update ledger.event set hash = prev_hash where position = 3")
    found = await _compared(ledger, exported)
    assert (found.same, found.behind_there) == (False, 2)
    (difference,) = found.differences
    assert (difference.document()["position"], list(difference.fields())) == (3, ["hash"])


async def test_what_no_program_can_read_ends_the_comparison(
    told_dsns: dict[str, str], ledger: Ledger, exported: Path
) -> None:
    async with connection_to(told_dsns["admin"]) as admin, unguarded(admin):
        await admin.execute("update ledger.event set recorded_at = '50000-01-01' where position = 5")
    found = await _compared(ledger, exported)
    assert not found.same
    assert found.unreadable
    assert not (await verify_binding(ledger, BINDING)).holds
