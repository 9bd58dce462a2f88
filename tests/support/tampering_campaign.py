"""Random edits of a ledger with all rights, each on a copy of its own: does ``verify`` find every one?

One in ten is an edit of an export of that ledger instead, by somebody who writes its manifest anew afterwards.
What covers every trace inside the database must be found with a checkpoint that was kept elsewhere; everything else
without one as well. ``python -m tests.support.tampering_campaign --count 1000 --seed 1`` is the make target.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

import asyncpg
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from ledger.audit import Level, verify_binding
from ledger.audit.export.verifying import verify_export
from ledger.audit.export.writing import export_binding
from ledger.audit.heads import TrustedCheckpoint, trusted_checkpoint
from ledger.audit.publish import publish_checkpoint
from ledger.audit.signed_note import SigningKey
from ledger.store.ledger import Ledger
from ledger.store.projections import ProjectionStore
from tests.support.forged_exports import ForgedExport, forge
from tests.support.one_by_one import OneByOne
from tests.support.ordered_runs import record_orders
from tests.support.postgres import ROLES, PostgresServer, migrate_fully, run_apart
from tests.support.recorded_runs import BINDING, recorder
from tests.support.tampering import Edit, tamper
from tests.support.told_story import tell

IN_AN_EXPORT = "in an export"
_EXPORTS = 0.1
KEY = SigningKey("tests", Ed25519PrivateKey.from_private_bytes(bytes(range(32))))


@dataclass
class Result:
    """What became of a campaign."""

    found: Counter[str] = field(default_factory=Counter)
    missed: list[str] = field(default_factory=list)

    def judge(self, number: int, edit: Edit, without: set[Level], within: set[Level]) -> None:
        """Whether an edit was found as it has to be: ``without`` a checkpoint and with one (``within``)."""
        if not within or (edit.covered and Level.CHECKPOINTS not in within):
            self.missed.append(f"{number}: {edit.what}: not found with a checkpoint (found: {sorted(within)})")
        elif not without and not edit.covered:
            self.missed.append(f"{number}: {edit.what}: not found without a checkpoint")
        else:
            self.found["with a checkpoint only" if not without else "without a checkpoint as well"] += 1

    def judge_export(self, number: int, forged: ForgedExport, failed: set[Level]) -> None:
        """Whether the level that has to find a forgery of an export did."""
        if forged.level in failed:
            self.found[IN_AN_EXPORT] += 1
        else:
            self.missed.append(f"{number}: {forged.what} in an export: not found (found: {sorted(failed)})")


def run_campaign(server: PostgresServer, count: int, seed: int, told: Callable[[int], None] | None = None) -> Result:
    """Make, edit and verify that many copies of a ledger with a story; what is done follows from the seed."""
    with tempfile.TemporaryDirectory(prefix="apply-ledger-tampering-") as folder:
        return _run(server, count, seed, Path(folder), told)


def _run(server: PostgresServer, count: int, seed: int, folder: Path, told: Callable[[int], None] | None) -> Result:
    kept: list[TrustedCheckpoint] = []
    exported = folder / "export"

    async def prepare(admin_dsn: str) -> None:
        await migrate_fully(admin_dsn)
        dsns = _dsns(server, server.database_of(admin_dsn))
        async with recorder(dsns) as recording:
            await tell(recording)
            await record_orders(recording)
            row = (await recording.ledger.bindings())[0]
            published = await publish_checkpoint(recording.ledger, row, [KEY])
            await export_binding(recording.ledger, (await recording.ledger.bindings())[0], exported, group=10)
        async with await ProjectionStore.open(dsns["projector"], allow_unsafe_fsync=True) as store:
            await store.catch_up()
        kept.append(trusted_checkpoint(published.note.encode(), "kept.note", [KEY.public]))

    name = server.create_database()
    run_apart(prepare(server.dsn(name)))
    result = Result()
    for number in range(count):
        random = Random(f"{seed}/{number}")
        if random.random() < _EXPORTS:
            result.judge_export(number, *_forge(exported, folder / "copy", random))
        else:
            copy = server.create_database(name)
            try:
                edit, without, within = run_apart(_trial(server, copy, random, kept[0]))
                result.judge(number, edit, without, within)
            finally:
                server.drop_database(copy)
        if told is not None:
            told(number + 1)
    server.drop_database(name)
    return result


def _forge(exported: Path, copy: Path, random: Random) -> tuple[ForgedExport, set[Level]]:
    shutil.copytree(exported, copy)
    try:
        forged = forge(copy, random)
        report = run_apart(verify_export(copy, [KEY.public]))
    finally:
        shutil.rmtree(copy)
    return forged, {level.level for level in report.levels if level.total}


async def _trial(
    server: PostgresServer, name: str, random: Random, kept: TrustedCheckpoint
) -> tuple[Edit, set[Level], set[Level]]:
    dsns = _dsns(server, name)
    admin = await asyncpg.connect(dsns["admin"])
    try:
        edit = await tamper(admin, random, signed=kept.position)
    finally:
        await admin.close()
    async with await Ledger.open(dsns["reader"], allow_unsafe_fsync=True) as ledger:
        reports = [await verify_binding(ledger, BINDING, checkpoints=given) for given in ([], [kept])]
        slowly: Any = OneByOne(ledger)
        if [await verify_binding(slowly, BINDING, checkpoints=given) for given in ([], [kept])] != reports:
            raise AssertionError(f"{edit.what}: another report where events are read one by one")
    without, within = ({level.level for level in report.levels if level.total} for report in reports)
    return edit, without, within


def _dsns(server: PostgresServer, name: str) -> dict[str, str]:
    return {"admin": server.dsn(name)} | {key: server.dsn(name, user=role) for key, role in ROLES.items()}


def main() -> int:
    """The make target."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    server = PostgresServer.start("18")
    try:
        result = run_campaign(
            server,
            options.count,
            options.seed,
            lambda done: print(f"{done} of {options.count}", file=sys.stderr) if done % 100 == 0 else None,
        )
    finally:
        server.stop()
    for line in result.missed:
        print(line)
    print(f"seed {options.seed}: {options.count} edits, {dict(result.found)}, {len(result.missed)} missed")
    return 1 if result.missed else 0


if __name__ == "__main__":
    sys.exit(main())
