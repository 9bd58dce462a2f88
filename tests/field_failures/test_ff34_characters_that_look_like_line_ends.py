"""FF34: only the byte ``\\n`` ends a line; every other character that a text splitter breaks on is data."""

from __future__ import annotations

import pytest

from ledger.errors import ApplyLedgerError
from ledger.exit_codes import ExitCode
from ledger.plan.layout import OPERATIONS_FILE
from ledger.plan.reader import load_plan_artifact
from tests.support.forged_plans import FORGED, commit_forged
from tests.support.planning import entry, mapped, operations
from tests.support.plans import tags
from tests.support.real_writer import RealWriter
from tests.support.sync_bench import SyncBench

pytestmark = pytest.mark.integration

SPLITTERS = "\u2028\u2029\u0085\x0b\x0c\r\x1c\x1d\x1e"
"""Everything that ``str.splitlines`` breaks on, but for the line feed."""
TEXT = "one" + "".join(f"{character}next" for character in SPLITTERS) + "\u2028"
TAGS = entry("BuiltinTag", "tags", ["name"], mapped("name"), mapped("description"))


@pytest.mark.rules("A15", "C13", "G1")
async def test_ff34_one_operation_read_hashed_and_applied_as_it_is(real: RealWriter) -> None:
    assert len(TEXT.splitlines()) == len(SPLITTERS) + 1
    rows = {
        "tags": [
            {"id": 1, "name": "plain", "description": TEXT},
            {"id": 2, "name": f"named{SPLITTERS}so", "description": "two\nlines"},
        ]
    }
    sync = SyncBench(real, [TAGS])
    run = await sync.plan(rows)
    data = (run.run_dir / OPERATIONS_FILE).read_bytes()
    assert data.count(b"\n") == len(operations(run)) == run.manifest.operations_count == 2
    assert (await sync.apply(run)).ending == "run.applied"
    stored = {
        row["values"]["name"]: row["values"]["description"] for row in real.content() if row["kind"] == "BuiltinTag"
    }
    assert stored == {row["name"]: row["description"] for row in rows["tags"]}
    kept = [line async for line in real.ledger.stored_plan(run.manifest.plan_checksum)]
    assert b"".join(kept) == data
    assert len(kept) == 2
    assert operations(await sync.plan(rows)) == ()


LINES = [operation.line() for operation in sorted(tags("a", "b"), key=lambda operation: operation.operation_id)]
FAULTY = {
    "CarriageReturnError": LINES[0][:-1] + b"\r\n" + LINES[1],
    "BlankLineError": LINES[0] + b"\n" + LINES[1],
    "UnterminatedLineError": LINES[0] + LINES[1][:-1],
}
RELATIVES = {
    "a blank line at the end": ("BlankLineError", LINES[0] + LINES[1] + b"\n"),
    "a blank line at the start": ("BlankLineError", b"\n" + LINES[0] + LINES[1]),
    "blanks in a line": ("BlankLineError", LINES[0] + b"  \n" + LINES[1]),
    "a carriage return alone": ("", LINES[0][:-1] + b"\r" + LINES[1]),
    "a line separator between records": ("", LINES[0][:-1] + "\u2028".encode() + LINES[1]),
    "a next line between records": ("", LINES[0][:-1] + "\u0085".encode() + LINES[1]),
    "carriage returns at all ends": ("CarriageReturnError", (LINES[0] + LINES[1]).replace(b"\n", b"\r\n")),
}


@pytest.mark.rules("A15", "C13", "P100", "P104")
@pytest.mark.parametrize(
    ("name", "data"),
    [*FAULTY.items(), *RELATIVES.values()],
    ids=[*FAULTY, *RELATIVES],
)
async def test_ff34_other_line_ends_are_each_a_named_refusal(real: RealWriter, name: str, data: bytes) -> None:
    """With a checksum that fits: it is the bytes that are refused, not a difference."""
    count = data.count(b"\n") + (not data.endswith(b"\n"))
    await commit_forged(real, data, operations_count=count)
    with pytest.raises(ApplyLedgerError) as refused:
        load_plan_artifact(real.root / "sync" / FORGED)
    assert refused.value.exit_code is ExitCode.REFUSED
    outcome = await real.writer().drain(FORGED, by="ada")
    assert outcome.exit_code is ExitCode.REFUSED
    assert await real.kinds(FORGED) == ["plan.committed", "plan.refused"]
    assert real.sent() == []
    if name:
        assert name in {finding.name for finding in outcome.findings}
        assert name in {finding.name for finding in refused.value.findings}
