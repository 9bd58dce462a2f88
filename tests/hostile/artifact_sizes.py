"""``python -m tests.hostile.artifact_sizes FOLDER BYTES``: the large cases of the corpus in so much more memory.

Each case is made in a process of its own, which has no limit; this process only judges, in an address space of what it
has when all is imported and ``BYTES`` more. A line of JSON for each case.
"""

from __future__ import annotations

import json
import multiprocessing
import resource
import shutil
import sys
from pathlib import Path

from ledger.commit import PlanCommit
from tests.hostile.artifact_cases import judged
from tests.hostile.artifact_corpus import start_of
from tests.hostile.artifact_corpus_files import SIZES
from tests.hostile.artifact_files import Artifact
from tests.hostile.artifact_judge import Judge

_NONE = Artifact(None, None, None, {})


def _make(root: Path, number: int) -> PlanCommit:
    """Spoil the plan of a run, and say what its maker commits."""
    judge, case = Judge(root), SIZES[number]
    start_of(case).write(judge.run_dir)
    case.spoil(judge.run_dir)
    return judge.commit(Artifact.of(judge.run_dir))


def main(folder: Path, more: int) -> None:
    """Judge every large case below ``folder`` with ``more`` bytes of address space than there are now."""
    with multiprocessing.get_context("spawn").Pool(1) as makers:
        commits = [makers.apply(_make, (folder / str(number), number)) for number in range(len(SIZES))]
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
    limit = pages * resource.getpagesize() + more
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    for number, case in enumerate(SIZES):
        judge = Judge(folder / str(number))
        # An empty artifact for the oracle: whatever is admitted here is wrong.
        found = judged(judge, _NONE, commits[number], reviewed=True, rendered=True)
        judge.close()
        shutil.rmtree(judge.root)
        told = {
            "name": case.name,
            "refusal": found.verdict.refusal,
            "findings": sorted(found.verdict.names),
            "violations": list(found.violations),
        }
        print(json.dumps(told), flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
