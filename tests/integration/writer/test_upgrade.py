"""What docs/upgrading.md says: who is refused after a migration, who goes on, and what becomes of an open run."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path

import pytest

from consumers.pauses import PausePoint
from ledger.store import sql_files
from ledger.store.errors import NewerDatabaseError, NotMigratedError
from ledger.store.ledger import Ledger
from ledger.store.migrate import migrate, schema_state
from ledger.store.projections import ProjectionStore
from ledger.store.sql_files import migrations, sql_folder
from tests.support.inventory_operations import manufacturer
from tests.support.real_writer import RealWriter
from tests.support.writer_bench import Pauses

pytestmark = pytest.mark.integration

NEWER = "9999_newer"
OPERATIONS = [manufacturer(f"Maker {number}") for number in range(3)]


@pytest.fixture
def newer_program(tmp_path: Path) -> Path:
    """The SQL of a program with one migration more, which changes a table that the old one writes."""
    folder = tmp_path / "newer-sql"
    shutil.copytree(sql_folder(), folder)
    text = "-- migrate:up\nset local role ledger_owner;\nalter table ledger.binding add column remark text;\n"
    (folder / f"{NEWER}.sql").write_text(text, encoding="utf-8")
    return folder


def _leave_after(writer: RealWriter, outcomes: int, leave: asyncio.Event) -> Pauses:
    """Ends the writer as SIGTERM does, once so many writes were sent."""

    async def count() -> None:
        if writer.sandbox.journal.entries() and len(await writer.outcomes("run-1")) + 1 >= outcomes:
            leave.set()

    return Pauses({PausePoint.AFTER_WRITE_BEFORE_APPEND: count})


@pytest.mark.rules("G3", "G7")
async def test_g03_a_run_left_open_is_refused_to_the_old_program_and_finished_by_the_new_one(
    real: RealWriter, postgres18_admin_dsn: str, newer_program: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await real.commit("run-1", OPERATIONS)
    leave = asyncio.Event()
    old = await real.writer(pause=_leave_after(real, 1, leave)).drain("run-1", by="ada", leave=leave)
    assert old.ending == "left_open"
    done = len(await real.outcomes("run-1"))
    assert 0 < done < len(OPERATIONS)

    assert await migrate(postgres18_admin_dsn, folder=newer_program) == [NEWER]
    head = await real.head()
    with pytest.raises(NewerDatabaseError) as refused:
        await real.writer().drain("run-1", by="ada")
    assert NEWER in refused.value.found
    assert "install the newer program" in refused.value.next_action
    assert await real.head() == head, "the old program recorded nothing"

    monkeypatch.setattr(sql_files, "sql_folder", lambda: newer_program)
    assert (await real.writer().drain("run-1", by="ada")).ending == "run.applied"
    assert await real.outcomes("run-1") == [(ordinal, "applied", 1) for ordinal in range(len(OPERATIONS))]


async def test_a_worker_that_is_connected_while_the_schema_changes_finishes_its_run(
    real: RealWriter, postgres18_admin_dsn: str, newer_program: Path
) -> None:
    await real.commit("run-1", OPERATIONS)
    applied: list[str] = []

    async def upgrade() -> None:
        if not applied:
            applied.extend(await migrate(postgres18_admin_dsn, folder=newer_program))

    pauses = Pauses({PausePoint.AFTER_WRITE_BEFORE_APPEND: upgrade})
    assert (await real.writer(pause=pauses).drain("run-1", by="ada")).ending == "run.applied"
    assert applied == [NEWER]
    with pytest.raises(NewerDatabaseError):
        await real.writer().drain("run-1", by="ada")


async def test_a_newer_program_is_refused_until_the_database_is_migrated(
    real: RealWriter, newer_program: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sql_files, "sql_folder", lambda: newer_program)
    for opened in (
        Ledger.open(real.dsn, allow_unsafe_fsync=True),
        ProjectionStore.open(real.dsn, allow_unsafe_fsync=True),
    ):
        with pytest.raises(NotMigratedError) as refused:
            await opened
        assert f"missing: {NEWER}" in refused.value.found
        assert f"up to {NEWER}" in refused.value.expected
        assert "apply-ledger migrate" in refused.value.next_action


async def test_the_state_of_the_schema_can_be_asked_with_the_service_s_own_role(
    real: RealWriter, postgres18_admin_dsn: str, newer_program: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = tuple(migration.version for migration in migrations())
    state = await schema_state(real.dsn)
    assert (state.applied, state.missing, state.unknown) == (known, (), ())
    await migrate(postgres18_admin_dsn, folder=newer_program)
    assert (await schema_state(real.dsn)).unknown == (NEWER,)
    monkeypatch.setattr(sql_files, "sql_folder", lambda: newer_program)
    assert (await schema_state(real.dsn)).missing == ()
