"""Lines of a plan as they are stored, and how a reader refuses those that are not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ledger.plan.errors import TornPlanArtifactError
from ledger.plan.reader import load_plan_artifact
from tests.support.plans import line, manifest_document, raw_run, record

A, B, C = sorted((line(record(identity={"name": name})) for name in "abc"), key=lambda found: found.split(b"op_")[1])
"""Three creates, in stored order."""


def faults_of(root: Path, operations: bytes, **manifest: Any) -> list[str]:
    """The names of all faults with which the artifact is refused as torn."""
    run_dir = raw_run(root, operations, manifest_document(operations, **manifest))
    with pytest.raises(TornPlanArtifactError) as caught:
        load_plan_artifact(run_dir)
    assert len(str(caught.value)) < 2000
    return [finding.name for finding in caught.value.findings]
