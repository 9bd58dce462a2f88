"""Takes each load-bearing line out, one at a time in a copy, and shows the named test that then fails.

``make mutants`` runs it; it prints a table and exits with 1 where a line could be taken out unnoticed. It is no part of
``make test``: it runs tests that fail on purpose.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PARTS = ("ledger", "producers", "consumers", "sql", "tests", "docs", "pyproject.toml", "README.md")


@dataclass(frozen=True)
class LoadBearing:
    """One line: what it guards, where it is, what stands there instead, and which test must notice."""

    guards: str
    file: str
    line: str
    instead: str
    test: str


LINES = (
    LoadBearing(
        "G2 epoch compare",
        "sql/0012_append_in_one_function.sql",
        "v_epoch is distinct from p_epoch or",
        "",
        "tests/integration/store/test_fence.py::test_g02_the_epoch_decides_even_where_the_owner_has_the_same_name",
    ),
    LoadBearing(
        "G1 checksum compare",
        "ledger/plan/verify.py",
        "if computed != recorded:",
        "if False:",
        "tests/unit/plan/test_verify.py",
    ),
    LoadBearing(
        "G1 artifact digest compare",
        "consumers/plan_checks.py",
        "if raw.artifact_digest == self.commit.artifact_digest:",
        "if True:",
        "tests/unit/consumers/test_gate.py",
    ),
    LoadBearing(
        "G1 read once",
        "ledger/plan/reader.py",
        "operations=PrivateCopy() if operations is None else operations,",
        "operations=private_copy(confined(run_dir, OPERATIONS_FILE)) or PrivateCopy(),",
        "tests/unit/plan/test_g01_read_once.py",
    ),
    LoadBearing(
        "G4 in-flight mark",
        "consumers/apply.py",
        "await self._recorder.commit(in_flight=mark, meanwhile=begin)",
        "await self._recorder.commit(in_flight=None)",
        "tests/unit/consumers/test_apply_loop.py",
    ),
    LoadBearing(
        "C15 duplicate id refusal",
        "ledger/plan/operations.py",
        "if this in seen and number not in named:",
        "if False:",
        "tests/unit/plan",
    ),
    LoadBearing(
        "G6 ok check",
        "consumers/infrahub/observation.py",
        'if result.get("ok") is not True:',
        "if False:",
        "tests/unit/infrahub/test_classification.py",
    ),
    LoadBearing(
        "G5 stale id: the status",
        "consumers/infrahub/observation.py",
        "and error.http_status == 404",
        "",
        "tests/unit/infrahub/test_classification.py",
    ),
    LoadBearing(
        "G5 stale id: the identifier",
        "consumers/infrahub/observation.py",
        'and error.data.get("identifier") == expected.node_id',
        "",
        "tests/unit/infrahub/test_classification.py",
    ),
    LoadBearing(
        "G8 trigger",
        "sql/0002_event_log.sql",
        "execute format('alter table %s enable always trigger refuse_row_change', p_table);",
        "execute format('alter table %s disable trigger refuse_row_change', p_table);",
        "tests/integration/store/test_append_only.py",
    ),
    LoadBearing(
        "G8 chain check",
        "ledger/chain.py",
        "if computed == event.hash:",
        "if True:",
        "tests/unit/chain",
    ),
    LoadBearing(
        "G3 a delete is never dispatched",
        "consumers/apply.py",
        'if operation.action == "delete":',
        "if False:",
        "tests/unit/consumers/test_apply_loop.py",
    ),
    LoadBearing(
        "G2 guard before the send",
        "consumers/infrahub/transport.py",
        "self._guard.before_send(write=_may_write(method, payload))",
        "pass",
        "tests/unit/infrahub/test_transport.py",
    ),
    LoadBearing(
        "G2 epoch compare of a success",
        "sql/0015_success_and_next.sql",
        "and b.writer_epoch = p_epoch",
        "",
        "tests/integration/store/test_applied_and_next.py",
    ),
    LoadBearing(
        "G4 a request waits for its mark",
        "consumers/infrahub/transport.py",
        "await self._guard.ready()",
        "pass",
        "tests/unit/infrahub/test_transport.py",
    ),
    LoadBearing(
        "G7 inbox uniqueness: the commit",
        "sql/0005_inbox.sql",
        "    unique (binding_id, commit_id),\n",
        "",
        "tests/integration/store/test_inbox.py::test_g07_the_database_keeps_one_row_of_a_commit_whoever_inserts_it",
    ),
    LoadBearing(
        "G7 inbox uniqueness: the run",
        "sql/0005_inbox.sql",
        "create unique index inbox_one_commit_of_a_run",
        "create index inbox_one_commit_of_a_run",
        "tests/integration/store/test_inbox.py::test_g07_the_database_keeps_one_row_of_a_commit_whoever_inserts_it",
    ),
    LoadBearing(
        "G10 explicit offset",
        "consumers/intake/reading.py",
        "await consumer.commit(offsets)",
        "await consumer.commit()",
        "tests/field_failures/broker/test_ff31_offsets.py::test_ff31_an_end_in_the_middle_of_a_batch_commits_what_was_"
        "taken_and_nothing_that_was_only_fetched",
    ),
    LoadBearing(
        "G8 relay cursor: where it goes on",
        "consumers/relay/relaying.py",
        "position, head = claim.position, claim.hash",
        "position, head = 0, bytes(32)",
        "tests/integration/kafka/test_relay.py",
    ),
    LoadBearing(
        "G8 relay cursor: moved behind the acknowledgement",
        "consumers/relay/relaying.py",
        "            await self._outlet.send(events)\n",
        "            await self._ledger.advance_relay(\n"
        "                claim, position=events[-1].position, hash_=events[-1].hash, ttl=settings.claim_ttl\n"
        "            )\n"
        "            await self._outlet.send(events)\n",
        "tests/integration/kafka/test_relay.py",
    ),
    LoadBearing(
        "G8 relay epoch compare",
        "sql/0014_relay.sql",
        "(v_relay.owner = p_owner and v_relay.epoch = p_epoch) is not true",
        "(v_relay.owner = p_owner) is not true",
        "tests/integration/roles/test_calls.py",
    ),
    LoadBearing(
        "G8 state of an order",
        "ledger/audit/orders.py",
        "if order.state not in expected:",
        "if False:",
        "tests/integration/audit/test_orders_in_verify.py",
    ),
    LoadBearing(
        "G8 epoch of the last claim",
        "ledger/audit/events.py",
        "if claimed not in (None, self.row.writer_epoch):",
        "if False:",
        "tests/integration/audit/test_orders_in_verify.py",
    ),
    LoadBearing(
        "G7 offsets of before a rebalance",
        "consumers/intake/reading.py",
        "if durable is not None and self._rebalances.epoch == epoch:",
        "if durable is not None:",
        "tests/faults/broker/test_zombie_member.py",
    ),
    LoadBearing(
        "a living process keeps its folder",
        "ledger/plan/private_folder.py",
        "fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)  # an OSError where its process lives",
        "pass",
        "tests/unit/plan/test_private_folder.py",
    ),
    LoadBearing(
        "an audit ends with its reader",
        "ledger/api/audit_responses.py",
        "        if not work.done():\n            audit.end()\n",
        "",
        "tests/integration/api/test_audit_ends.py",
    ),
    LoadBearing(
        "a broken answer is no whole one",
        "ledger/api/audit_responses.py",
        '"more_body": True})\n            return\n',
        '"more_body": True})\n',
        "tests/integration/api/test_audit_ends.py",
    ),
    LoadBearing(
        "G9 one outcome per attempt",
        "ledger/projections/runs.py",
        "if all(attempt.attempt != number for attempt in attempts):",
        "if True:",
        "tests/unit/projections",
    ),
)


def main() -> int:
    """Run the table; 0 when every line was missed by its test."""
    survived = 0
    for item in LINES:
        with tempfile.TemporaryDirectory(prefix="apply-ledger-mutants-") as folder:
            failed = _failing_test(Path(folder), item)
        survived += failed is None
        sys.stdout.write(f"{item.guards:34} {failed or 'SURVIVED'}\n")
        sys.stdout.flush()
    return 1 if survived else 0


def _failing_test(copy: Path, item: LoadBearing) -> str | None:
    for part in PARTS:
        source = ROOT / part
        if source.is_dir():
            shutil.copytree(source, copy / part, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(source, copy / part)
    target = copy / item.file
    text = target.read_text(encoding="utf-8")
    if text.count(item.line) != 1:
        raise SystemExit(f"{item.file}: the line of {item.guards!r} occurs {text.count(item.line)} times")
    target.write_text(text.replace(item.line, item.instead), encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-x", "-q", "--no-header", "-p", "no:cacheprovider", item.test],
        cwd=copy,
        env={**os.environ, "PYTHONPATH": str(copy)},
        capture_output=True,
        text=True,
        check=False,
    )
    failures = [line for line in done.stdout.splitlines() if line.startswith("FAILED ")]
    return failures[0].removeprefix("FAILED ").split(" - ")[0] if done.returncode == 1 and failures else None


if __name__ == "__main__":
    sys.exit(main())
