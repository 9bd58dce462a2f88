"""Hostile plans by name: what was done to a valid one, and the refusal and the finding that it must get."""

from __future__ import annotations

from tests.hostile.artifact_corpus_files import FILES, SIZES
from tests.hostile.artifact_corpus_frame import ACCOUNTS, MANIFESTS
from tests.hostile.artifact_corpus_lines import JSON_TEXTS, RECORDS
from tests.hostile.artifact_corpus_snapshots import SNAPSHOTS
from tests.hostile.artifact_corpus_spoils import Hostile
from tests.hostile.artifact_files import Artifact
from tests.hostile.artifact_plans import accounted_plan, covered_plan

CORPUS: dict[str, Hostile] = {
    case.name: case for case in (*JSON_TEXTS, *RECORDS, *MANIFESTS, *ACCOUNTS, *FILES, *SNAPSHOTS, *SIZES)
}
_OF_SNAPSHOTS = frozenset(case.name for case in SNAPSHOTS)


def start_of(case: Hostile) -> Artifact:
    """The valid plan that a case spoils: bound to a snapshot only where it is about one."""
    return covered_plan() if case.name in _OF_SNAPSHOTS else accounted_plan()
