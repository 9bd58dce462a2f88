"""``python -I -S child.py REPORT COMMAND...``: run a command; how long it took and how much it needed goes into REPORT.

A process of its own, because the peak of a child's memory begins, on Linux, with what its parent held at the fork: a
small parent falsifies nothing. Standard library only.
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path


def main() -> int:
    """The command's own exit status; its output is the command's own."""
    report, command = Path(sys.argv[1]), sys.argv[2:]
    started = time.perf_counter()
    child = os.posix_spawnp(command[0], command, os.environ)
    _, status, usage = os.wait4(child, 0)
    seconds = time.perf_counter() - started
    per_mib = 1024 * 1024 if sys.platform == "darwin" else 1024
    needed = {
        "seconds": seconds,
        "cpu_seconds": usage.ru_utime + usage.ru_stime,
        "peak_mib": usage.ru_maxrss / per_mib,
    }
    report.write_text(json.dumps(needed), encoding="ascii")
    return os.waitstatus_to_exitcode(status)


if __name__ == "__main__":
    sys.exit(main())
