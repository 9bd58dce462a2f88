"""Work in a fresh process, with the peak of its memory: what this process holds already must not count."""

from __future__ import annotations

import multiprocessing
import resource
import sys
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")
_MIB = 1024 * 1024
_STATUS = Path("/proc/self/status")


def run_apart(work: Callable[P, T], *arguments: P.args, **named: P.kwargs) -> tuple[T, float]:
    """Call a function of a module in a new interpreter; returns its result and the process's peak memory in MiB.

    The peak includes the interpreter and whatever ``work``'s module imports; :func:`imported` measures that alone.
    """
    with ProcessPoolExecutor(max_workers=1, mp_context=multiprocessing.get_context("spawn")) as pool:
        return pool.submit(_measured, work, arguments, named).result()


def imported() -> None:
    """Nothing: what is left is the interpreter itself."""


def peak_mib() -> float:
    """Peak memory of this process so far.

    On Linux from its own address space: ``getrusage`` there also counts what the process was before ``exec``, which is
    a copy of its parent.
    """
    if _STATUS.exists():
        line = next(line for line in _STATUS.read_text(encoding="ascii").splitlines() if line.startswith("VmHWM:"))
        return int(line.split()[1]) * 1024 / _MIB
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / _MIB if sys.platform == "darwin" else peak / 1024


def _measured(work: Callable[..., T], arguments: tuple[Any, ...], named: dict[str, Any]) -> tuple[T, float]:
    result = work(*arguments, **named)
    return result, peak_mib()
