"""Exit codes of the command line, one table for code, documentation and tests."""

from __future__ import annotations

from enum import IntEnum


class ExitCode(IntEnum):
    """What a process of this project says with its exit status."""

    DONE = 0
    ERROR = 1
    CHANGES_PRESENT = 2
    REFUSED = 3
    STOPPED_UNWRITTEN = 4
    STOPPED_MAYBE_WRITTEN = 5
    STALE = 6
    APPROVAL_MISSING = 7
    BUSY = 8
    TAMPERED = 9
    USAGE = 64
    INTERRUPTED = 130


MEANING: dict[ExitCode, str] = {
    ExitCode.DONE: "done",
    ExitCode.ERROR: "error: configuration, database or file trouble, or no run, object or token has the given name;"
    " nothing is claimed about the destination",
    ExitCode.CHANGES_PRESENT: "changes are present (only with plan --detailed-exitcode)",
    ExitCode.REFUSED: "refused before any write of this attempt",
    ExitCode.STOPPED_UNWRITTEN: "stopped; the failing operation is proven to have written nothing",
    ExitCode.STOPPED_MAYBE_WRITTEN: "stopped; the failing operation may have written",
    ExitCode.STALE: "stale or not equivalent to what was reviewed",
    ExitCode.APPROVAL_MISSING: "reserved; no command returns it, because there is no approval step",
    ExitCode.BUSY: "temporarily not possible: another process holds or has taken over the lease, a service is"
    " unreachable, or time ran out; try again",
    ExitCode.TAMPERED: "the record does not verify: it was altered, is incomplete, or was restored from an older copy",
    ExitCode.USAGE: "wrong usage of the command line",
    ExitCode.INTERRUPTED: "interrupted by a signal, or stopped by an order of somebody else: the run says who and why",
}
