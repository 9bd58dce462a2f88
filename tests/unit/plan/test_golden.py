"""Artifacts that another program wrote: read, verified, digested and written again to the same bytes."""

from __future__ import annotations

from pathlib import Path

import pytest

from ledger.plan.canonical import operation_id
from ledger.plan.checksum import artifact_digest, plan_checksum
from ledger.plan.layout import MANIFEST_FILE, OPERATIONS_FILE
from ledger.plan.reader import load_plan_artifact, read_raw_artifact, require_applicable
from ledger.plan.snapshot_digest import snapshot_digest
from ledger.plan.verify import verify_plan
from ledger.plan.writer import write_plan_artifact
from tests.support.plans import CONFIG_VERSION, CREATED_AT, GOLDEN, GOLDEN_NAMES, RUN_ID, golden_copy


def _created_at(manifest: bytes) -> range:
    """Where the value of ``created_at`` stands."""
    text = CREATED_AT.isoformat().encode()
    start = manifest.index(text)
    return range(start, start + len(text))


pytestmark = pytest.mark.parametrize("name", GOLDEN_NAMES)


@pytest.mark.rules("A81", "A82", "A14", "A15", "A30", "A67", "C13", "C14", "P52")
def test_a_golden_artifact_verifies_parses_and_may_be_applied(name: str) -> None:
    raw = read_raw_artifact(GOLDEN / name)

    assert verify_plan(artifact=raw, run_id=RUN_ID, config_version=CONFIG_VERSION) == []
    artifact = load_plan_artifact(GOLDEN / name)
    require_applicable(artifact)
    assert len(artifact.operations) == artifact.manifest.operations_count
    assert b"".join(artifact.lines) == raw.operations_bytes


@pytest.mark.rules("A5", "A14", "A21", "A53", "A57", "A58", "A59", "A61", "A66", "A69", "C13")
def test_a_golden_artifact_is_written_again_byte_for_byte(name: str, tmp_path: Path) -> None:
    artifact = load_plan_artifact(GOLDEN / name)
    run_dir = tmp_path / RUN_ID
    run_dir.mkdir()

    write_plan_artifact(
        run_dir,
        operations=reversed(artifact.operations),
        coverage_lines=None,
        coverage_counts=None,
        run_id=RUN_ID,
        created_at=CREATED_AT,
        config_version=CONFIG_VERSION,
        source=None,
        binding=artifact.manifest.destination_binding,
        source_snapshot=artifact.manifest.source_snapshot,
        delete_operations_computed=artifact.manifest.delete_operations_computed,
    )

    for file in (OPERATIONS_FILE, MANIFEST_FILE):
        assert (run_dir / file).read_bytes() == (GOLDEN / name / file).read_bytes()


@pytest.mark.rules("A66", "A68", "A69", "C29")
def test_the_golden_checksum_is_computed_again(name: str) -> None:
    artifact = load_plan_artifact(GOLDEN / name)

    assert plan_checksum(artifact.manifest_document, artifact.raw.operations_bytes) == artifact.manifest.plan_checksum


@pytest.mark.rules("A61", "A74")
def test_the_golden_snapshot_digest_is_computed_again(name: str) -> None:
    (recorded,) = load_plan_artifact(GOLDEN / name).manifest.source_snapshot

    assert snapshot_digest(GOLDEN / name / recorded.path) == (recorded.digest, recorded.row_count)


@pytest.mark.rules("A53", "A23")
def test_the_identifier_of_the_specifications_example(name: str) -> None:
    first = load_plan_artifact(GOLDEN / name).operations[0]

    assert operation_id("create", "BuiltinTag", {"name": "prod"}) == "op_3531c0d83d698fd1" == first.operation_id


@pytest.mark.rules("G1", "A66", "C30", "C52")
@pytest.mark.usefixtures("snapshots_read_here")
def test_g01_any_changed_byte_of_a_golden_artifact_is_a_refusal(name: str, tmp_path: Path) -> None:
    run_dir = golden_copy(name, tmp_path)
    for file in (OPERATIONS_FILE, MANIFEST_FILE):
        whole = (run_dir / file).read_bytes()
        # Each offset of the small one; the other costs seconds and has the same keys.
        for offset in range(0, len(whole), 1 if name == GOLDEN_NAMES[0] else 11):
            (run_dir / file).write_bytes(whole[:offset] + bytes([whole[offset] ^ 1]) + whole[offset + 1 :])
            raw = read_raw_artifact(run_dir)
            failures = verify_plan(artifact=raw, run_id=RUN_ID, config_version=CONFIG_VERSION)
            if file == MANIFEST_FILE and offset in _created_at(whole):
                # The time of writing is outside the checksum; the digest that a commit carries covers it.
                assert raw.artifact_digest != artifact_digest(whole, raw.operations_bytes)
            else:
                assert failures, (file, offset)
        (run_dir / file).write_bytes(whole)
