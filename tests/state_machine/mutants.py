"""Whether the state machine notices a fault: databases whose SQL lacks one line each, and what noticed it.

    python -m tests.state_machine.mutants

For each line two columns: what the tables alone gave away (the guarantees, without knowing what the answers should have
been), and what the answers gave away. The exit code is 1 where neither noticed.
"""

from __future__ import annotations

import re
import shutil
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from hypothesis import settings
from hypothesis.stateful import run_state_machine_as_test

from ledger.store.migrate import migrate, set_role_passwords
from ledger.store.sql_files import sql_folder
from tests.state_machine import profiles
from tests.state_machine.database import Database
from tests.state_machine.machine import LedgerMachine, machine_on
from tests.support.postgres import PASSWORD, ROLES, PostgresServer, run_apart

_SAID = re.compile(r"^(G\d+|answer|model|one binding): .*", re.MULTILINE)


@dataclass(frozen=True)
class Fault:
    """Lines and what stands in their place, in the newest migration that has them; more than one where it is twice."""

    what: str
    changes: tuple[tuple[str, str], ...]


def _fault(what: str, *changes: str) -> Fault:
    return Fault(what, tuple(zip(changes[::2], changes[1::2], strict=True)))


_FENCE = "perform ledger.lock_as_writer(p_binding_id, p_owner, p_epoch);\n    "
_RELEASE = "update ledger.binding b\n    set lease_owner = null"
_RENEW = "update ledger.binding b set lease_expires_at"
_SETTLES = "greatest(b.quiet_until, v_now + make_interval(secs => p_settle)) end"
_MARK_REPEATED = "perform ledger.check_repeated_mark(b, p_mark, p_mark_run, p_mark_ordinal, p_mark_attempt)\n"
_CHAINED_TIME = "pg_catalog.int8send((extract(epoch from p_recorded_at) * 1000000)::bigint)"
_HEAD = "head_position = append_events.last_position"
_OTHER_PLAN = "v_first.plan_checksum <> decode(v_commit ->> 'plan_checksum', 'hex')"
_OTHER_POLICY = "v_is_open and p_first.body::jsonb -> 'policy' <> p_commit -> 'policy'"
_FIRST_COMMIT = "i.binding_id = p_binding_id and i.kind = 'commit' and i.run_id = v_run_id"
_BESIDE = "is not distinct from (n.run_id, n.operation_id, n.ordinal, n.attempt)"
_CLOSES = "perform ledger.close_order_locked(p_binding_id, p_close_orders[i], p_close_states[i]);"
_EPOCH, _OWNER = "v_epoch is distinct from p_epoch or", "or v_owner is distinct from p_owner"
_IN_FLIGHT = """
           and b.in_flight_run = p_run_id and b.in_flight_ordinal = p_ordinal and b.in_flight_attempt = p_attempt"""
_MOVES = "in_flight_run = p_mark_run, in_flight_ordinal = p_mark_ordinal, in_flight_attempt = p_mark_attempt"
_LOCKED_EPOCH = "or v_binding.writer_epoch is distinct from p_epoch"
_LOCKED_OWNER = "or v_binding.lease_owner is distinct from p_owner"

FAULTS = (
    _fault("append: compares the epoch", _EPOCH, ""),
    _fault("append: compares the owner", _OWNER, ""),
    _fault("append: compares at all", f"if v_owner is null or {_EPOCH}", "if false and"),
    _fault("append: nobody is no owner", "if v_owner is null or", "if"),
    _fault("success: compares the epoch", "\n           and b.writer_epoch = p_epoch", ""),
    _fault("success: compares the owner", "b.lease_owner = p_owner\n           and ", ""),
    _fault("success: of what is in flight", _IN_FLIGHT, ""),
    _fault(
        "success: moves the mark",
        _MOVES + "\n    where b.id",
        "head_position = applied_and_next_v1.last_position where b.id",
    ),
    _fault("elsewhere: compares the epoch", _LOCKED_EPOCH, ""),
    _fault("elsewhere: compares the owner", _LOCKED_OWNER, ""),
    _fault("claim: live lease", "if not v_is_repeat and v_binding.lease_expires_at > v_now", "if false"),
    _fault("claim: the epoch", "if not v_is_repeat and v_binding.writer_epoch <> p_expected_epoch", "if false"),
    _fault("claim: raises the epoch", "set writer_epoch = claim_v1.epoch, lease_owner", "set lease_owner"),
    _fault("claim: knows its repeat", "v_is_repeat := v_binding.writer_epoch = epoch", "v_is_repeat := false"),
    _fault("claim: settles", _SETTLES, "b.quiet_until end"),
    _fault("renew: compares", _FENCE + _RENEW, _RENEW),
    _fault("release: compares", _FENCE + _RELEASE, _RELEASE),
    _fault("release: again", "if v_binding.writer_epoch = p_epoch and v_binding.lease_owner is null", "if false"),
    _fault("close_order: compares", _FENCE + "perform ledger.close_order_locked", "perform ledger.close_order_locked"),
    _fault("repeat: known ids", "v_repeated or coalesce(v_next = p_event_ids[i], false)", "false"),
    _fault("repeat: content", "if v_same <> cardinality(p_event_ids)", "if false"),
    _fault("repeat: fields beside the body", _BESIDE, "is not null"),
    _fault("repeat: company", "or p_event_ids <> array(", "or false and p_event_ids <> array("),
    _fault("repeat: mark", _MARK_REPEATED, "perform 1\n"),
    _fault("one outcome", "create unique index event_one_outcome", "create index event_one_outcome"),
    _fault("one success", "create unique index event_one_success", "create index event_one_success"),
    _fault("quiet period", "or v_quiet_until > clock_timestamp())", ")"),
    _fault("unknown: rests", "if p_settle is not null then\n            v_quiet_until", "if false then v_quiet_until"),
    _fault("a doubt is told", "if v_run is not null and v_told <> (p_mark", "if false and v_told <> (p_mark"),
    _fault("marks go ahead", "if (v_ordinal, v_attempt) >= (p_ordinal, p_attempt) then", "if false then"),
    _fault("the attempt is marked", "then p_mark_attempt end;", "then 1 end;"),
    _fault("chain: a field", _CHAINED_TIME, "pg_catalog.int8send(0)"),
    _fault("chain: the one before", "'\\x01'::bytea || p_prev_hash", "'\\x01'::bytea || ''::bytea"),
    _fault("the head's hash", _HEAD + ", head_hash = append_events.head_hash", _HEAD),
    _fault("commit: another plan", "elsif " + _OTHER_PLAN, "elsif false"),
    _fault("commit: another policy", "if " + _OTHER_POLICY, "if false"),
    _fault(
        "commit: another artifact",
        "or p_first.artifact_digest <> p_artifact_digest",
        "",
        "(v_is_open or c.key = 'artifact_digest')",
        "v_is_open and c.key <> 'artifact_digest'",
    ),
    _fault("commit: the first one", f"where {_FIRST_COMMIT};\n    first :=", "where false;\n    first :="),
    _fault("resume: an open run", "if p_kind = 'resume' and v_is_open then", "if false then"),
    _fault("stop: an ended run", "or (p_kind = 'stop' and not v_is_open)", ""),
    _fault("stop: overtaken by a resume", "where p_kind = 'resume' and i.binding_id", "where false and i.binding_id"),
    _fault("order: changes once", "if v_state is distinct from 'open' or p_state", "if p_state"),
    _fault("order: ends with its run", _CLOSES, "null;"),
)


def main() -> int:
    """Print the table; 1 where a fault went unnoticed."""
    profiles.register()
    wanted = sys.argv[1:]
    server = PostgresServer.start("18")
    survived = 0
    for fault in FAULTS:
        if wanted and not any(word in fault.what for word in wanted):
            continue
        seen = [_noticed(server, fault, judge_answers) for judge_answers in (False, True)]
        survived += seen == [None, None]
        sys.stdout.write(f"{fault.what:32} | {seen[0] or '-':60.60} | {seen[1] or 'SURVIVED':60.60}\n")
        sys.stdout.flush()
    server.stop()
    return 1 if survived else 0


def _noticed(server: PostgresServer, fault: Fault, judge_answers: bool) -> str | None:
    name = server.create_database()
    with tempfile.TemporaryDirectory(prefix="apply-ledger-faults-") as folder:
        run_apart(_migrated(server.dsn(name), _without(fault, Path(folder) / "sql")))
    dsns = {"admin": server.dsn(name), "writer": server.dsn(name, user="ledger_writer")}
    with Database.opened(dsns) as database:
        said = _first_complaint(machine_on(database, judge_answers=judge_answers))
    server.drop_database(name)
    return said


def _first_complaint(machine: type[LedgerMachine]) -> str | None:
    try:
        run_state_machine_as_test(machine, settings=settings.get_profile("state-mutants"))
    except BaseException as error:  # noqa: BLE001 - whatever ended the machine noticed the fault
        text = _SAID.search(str(error))
        return text.group(0) if text else f"{type(error).__name__}: {str(error).splitlines()[0]}"
    return None


def _without(fault: Fault, folder: Path) -> Path:
    shutil.copytree(sql_folder(), folder, ignore=shutil.ignore_patterns("queries"))
    for line, instead in fault.changes:
        path = next((p for p in sorted(folder.glob("*.sql"), reverse=True) if line in p.read_text("utf-8")), None)
        if path is None:
            raise SystemExit(f"a line of {fault.what!r} is in no migration: {line}")
        path.write_text(path.read_text("utf-8").replace(line, instead), encoding="utf-8")
    return folder


async def _migrated(dsn: str, folder: Path) -> None:
    await migrate(dsn, folder=folder)
    await set_role_passwords(dsn, dict.fromkeys(ROLES.values(), PASSWORD))


if __name__ == "__main__":
    sys.exit(main())
