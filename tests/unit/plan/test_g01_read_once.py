"""What was verified is what is parsed: the files are read once, and what happens to them later changes nothing."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from ledger.plan.layout import COVERAGE_FILE, MANIFEST_FILE, OPERATIONS_FILE
from ledger.plan.reader import load_plan_artifact, parse_artifact, read_raw_artifact
from ledger.plan.verify import verify_plan
from tests.support.plans import CONFIG_VERSION, RUN_ID, tags, write_plan

COVERAGE = b'{"action":"none"}\n'
COUNTS = {"create": 0, "update": 0, "remove": 0, "skip": 0, "none": 1}

# An audit hook sees every way in which an interpreter opens a file. It cannot be removed, hence a process of its own.
READ_VERIFY_PARSE = """
import sys
from pathlib import Path
from ledger.plan.reader import parse_artifact, read_raw_artifact, require_applicable
from ledger.plan.verify import verify_plan

opened = []
sys.addaudithook(lambda event, arguments: opened.append(str(arguments[0])) if event == "open" else None)
raw = read_raw_artifact(Path(sys.argv[1]))
assert verify_plan(artifact=raw, run_id=sys.argv[2], config_version=sys.argv[3]) == []
require_applicable(parse_artifact(raw))
print("\\n".join(opened))
"""


def _plan(root: Path) -> Path:
    run_dir, _ = write_plan(root, tags("a", "b", "c"), coverage_lines=[COVERAGE], coverage_counts=COUNTS)
    return run_dir


@pytest.mark.rules("G1", "P100", "P102", "A84")
def test_g01_each_file_of_the_artifact_is_opened_once_from_reading_to_parsing(tmp_path: Path) -> None:
    run_dir = _plan(tmp_path)

    command = [sys.executable, "-c", READ_VERIFY_PARSE, str(run_dir), RUN_ID, CONFIG_VERSION]
    opened = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()

    for file in (MANIFEST_FILE, OPERATIONS_FILE, COVERAGE_FILE):
        assert opened.count(str(run_dir / file)) == 1, file


@pytest.mark.rules("G1", "P102", "A84")
def test_g01_files_replaced_after_the_read_change_nothing(tmp_path: Path) -> None:
    run_dir = _plan(tmp_path)
    other, _ = write_plan(tmp_path / "other", tags("intruder"))
    raw = read_raw_artifact(run_dir)
    expected = raw.operations_bytes

    for file in (MANIFEST_FILE, OPERATIONS_FILE):
        (run_dir / file).write_bytes((other / file).read_bytes())
    (run_dir / COVERAGE_FILE).write_bytes(b"")
    assert verify_plan(artifact=raw, run_id=RUN_ID, config_version=CONFIG_VERSION) == []
    for file in (MANIFEST_FILE, OPERATIONS_FILE, COVERAGE_FILE):
        (run_dir / file).unlink()
    artifact = parse_artifact(raw)

    assert b"".join(artifact.lines) == expected
    assert b"".join(operation.line() for operation in artifact.operations) == expected
    assert {operation.identity["name"] for operation in artifact.operations} == {"a", "b", "c"}


@pytest.mark.rules("G1", "A30", "C14", "P120")
def test_g01_parsing_neither_sorts_nor_derives_again(tmp_path: Path) -> None:
    artifact = load_plan_artifact(_plan(tmp_path))

    assert artifact.lines == tuple(artifact.raw.operations_bytes.splitlines(keepends=True))
    assert [operation.line() for operation in artifact.operations] == list(artifact.lines)


@pytest.mark.rules("G1")
def test_g01_the_digest_of_an_artifact_covers_every_raw_byte(tmp_path: Path) -> None:
    run_dir = _plan(tmp_path)
    digest = read_raw_artifact(run_dir).artifact_digest
    manifest = (run_dir / MANIFEST_FILE).read_bytes()

    # Another spelling of the same manifest has the same checksum and another digest.
    (run_dir / MANIFEST_FILE).write_bytes(manifest + b"\n")
    raw = read_raw_artifact(run_dir)
    assert verify_plan(artifact=raw, run_id=RUN_ID, config_version=CONFIG_VERSION) == []
    assert raw.artifact_digest != digest
