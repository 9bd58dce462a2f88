"""Refusals of the writer. Each names one thing that is wrong and what to do next (G11)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from ledger.binding import DestinationBinding
from ledger.errors import ApplyLedgerError, Finding, RefusalGroup
from ledger.exit_codes import ExitCode


class WriterRefusal(ApplyLedgerError):
    """Base of what the gate refuses before the first write."""

    exit_code: ClassVar[ExitCode] = ExitCode.REFUSED


class ArtifactLocationError(WriterRefusal):
    """The commit names a place that is not a run directory below the writer's artifact root."""


class DestinationBindingMismatchError(WriterRefusal):
    """The plan was made for another destination than the one it is to be applied to (A64)."""


class ArtifactDigestMismatchError(WriterRefusal):
    """The raw bytes of the artifact are not those that were committed (G1)."""


class CommittedChecksumMismatchError(WriterRefusal):
    """The plan in the run directory is not the plan that was committed (G1)."""


class CommitContradictsManifestError(WriterRefusal):
    """The commit says something about the plan that its manifest does not say."""


class UncountableOperationsError(WriterRefusal):
    """The plan's operations cannot be accounted for: an identifier occurs twice, or their number is another (P147)."""


class StalePlanError(WriterRefusal):
    """A newer plan of the same source has been applied since this plan was made (design 7.7)."""

    exit_code: ClassVar[ExitCode] = ExitCode.STALE


class OverlapRefusedError(WriterRefusal):
    """Another source wrote the same objects since this plan was made, and the policy says ``refuse`` (design 7.9)."""

    exit_code: ClassVar[ExitCode] = ExitCode.STALE


class OverlappingCreateError(WriterRefusal):
    """A create of an object that another source created since, of a kind that the server cannot match (design 7.9)."""


class GateDefectError(WriterRefusal):
    """The gate itself failed; recorded so that the order is closed, while the defect propagates with its traceback."""

    exit_code: ClassVar[ExitCode] = ExitCode.ERROR


class RunRefusedError(RefusalGroup):
    """One run was refused before its first write; every finding is recorded in ``plan.refused``."""

    def __init__(self, *, run_id: str, findings: Sequence[Finding]) -> None:
        super().__init__(
            checked=f"run {run_id} before its first write",
            findings=findings,
            next_action="fix the stated cause, then resume this run, or make and commit a fresh plan",
        )
        self.run_id = run_id


class RehearsalRefusedError(RefusalGroup):
    """The writer would refuse the plan before its first write; nothing was rehearsed."""

    def __init__(self, *, run_id: str, findings: Sequence[Finding]) -> None:
        super().__init__(
            checked=f"run {run_id}, as the writer would check it before its first write",
            findings=findings,
            next_action="fix the stated cause, then make and rehearse a fresh plan; nothing was written anywhere",
        )


class LeaseLostError(ApplyLedgerError):
    """This process no longer holds the binding: it appends nothing more and starts no request (G2)."""

    exit_code: ClassVar[ExitCode] = ExitCode.BUSY


class UnusableOrderError(WriterRefusal):
    """An order of the inbox cannot be read as what its kind says."""


class WriterNotSetUpError(ApplyLedgerError):
    """This process cannot open the destination: its token, address or authorities are missing or unusable.

    That says nothing about the plan: the order stays open for a writer that is set up.
    """


class RequestOutlivesLeaseError(WriterNotSetUpError):
    """The destination's client may wait longer for an answer than the lease is held for it: the request that it waits
    for could meet the next writer at the destination (G2).
    """


class StoppedBeforeItsStartError(WriterRefusal):
    """The run was stopped while it was waiting for its destination; it never started."""

    exit_code: ClassVar[ExitCode] = ExitCode.INTERRUPTED


class AliasRecordedError(ApplyLedgerError):
    """The ledger knows a destination under a name that is declared as its alias: one server would have two writers."""

    def __init__(self, destination: DestinationBinding, alias: DestinationBinding) -> None:
        super().__init__(
            checked=f"the declared destination {destination}",
            expected="the one name under which the ledger keeps it",
            found=f"{alias} in the ledger, declared as an alias",
            next_action=f"declare {alias.url} as the url and {destination.url} as its alias",
        )


class DispatchRefusedError(ApplyLedgerError):
    """A request was not sent, because its time-out could exceed the lease (G2). Nothing was sent."""

    exit_code: ClassVar[ExitCode] = ExitCode.BUSY


class KnowabilityError(Exception):
    """A defect: at the end of a run the recorded outcomes are not those of the plan's operations (P114, G3)."""


_STALE_NAMES = frozenset({StalePlanError.__name__, OverlapRefusedError.__name__})


class ArtifactElsewhereError(ApplyLedgerError):
    """An earlier run has its files on another host; a command that waits for its own run does not refuse it."""

    exit_code: ClassVar[ExitCode] = ExitCode.BUSY


def exit_code_of_refusal(findings: Sequence[Finding]) -> ExitCode:
    """6 where being outdated is all that is wrong, 130 where somebody ended the run before its start, else 3."""
    if findings and all(finding.name == StoppedBeforeItsStartError.__name__ for finding in findings):
        return ExitCode.INTERRUPTED
    if findings and all(finding.name in _STALE_NAMES for finding in findings):
        return ExitCode.STALE
    return ExitCode.REFUSED
