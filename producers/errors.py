"""Refusals of the plan maker. All of them are raised before anything is written to a destination."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from ledger.errors import ApplyLedgerError, ConfigurationError, Finding, RefusalGroup
from ledger.exit_codes import ExitCode


class UnsupportedConfigurationKeyError(ConfigurationError):
    """A key of the infrahub-sync format that is not supported; ignoring it would change the result."""

    exit_code: ClassVar[ExitCode] = ExitCode.REFUSED


class UnknownSourceSettingError(ConfigurationError):
    """A setting that the source does not know, in the file or on the command line; it would have no effect."""

    exit_code: ClassVar[ExitCode] = ExitCode.REFUSED


class ConfigurationRefusedError(RefusalGroup):
    """A configuration file has several faults; all are listed."""


class MappingRefusedError(RefusalGroup):
    """The mapping names kinds or fields that the destination's schema does not have or does not allow to be written."""


class PlanRefusedError(RefusalGroup):
    """Rows that cannot be planned; all are listed (G11). ``--continue-on-error`` leaves them out instead."""


class PlanningError(ApplyLedgerError):
    """Base of what can be wrong with one source row or one object of a plan."""

    exit_code: ClassVar[ExitCode] = ExitCode.REFUSED


class FilterEvaluationError(PlanningError):
    """A filter of the mapping has no answer for a row, such as a comparison with a missing number."""


class TransformEvaluationError(PlanningError):
    """A transform of the mapping failed for a row."""


class RowShapeError(PlanningError):
    """A row does not have the shape that the mapping needs, for example along a dotted path."""


class NamelessObjectError(PlanningError):
    """A row lacks a part of its identity that is no part of the destination's key: absent, null or blank."""


class UnresolvedReferenceError(PlanningError):
    """A reference of a row resolves to no object of the source, or to several (A50)."""


class MixedPeerKindsError(PlanningError):
    """One relationship of one object has peers of several kinds, which an operation cannot record."""


class IdentityCycleError(PlanningError):
    """The identity of an object needs its own identity."""


class MandatoryCycleError(PlanningError):
    """Creates depend on each other through mandatory references (design 4.4)."""


class AmbiguousDestinationObjectError(PlanningError):
    """Several objects at the destination have the same identity, so an update is ambiguous."""


class PeerLeftOutError(PlanningError):
    """A row refers to an object that was left out of this plan and is not at the destination."""


class RowCountDropError(PlanningError):
    """A kind has fewer than half the rows of the last applied plan of this source (FF02)."""


class SourceUnreadableError(PlanningError):
    """An endpoint of the source is missing, or its content is not in the expected format.

    ``findings`` names every place where they are not, as far as there are not too many of them (G11).
    """

    def __init__(
        self, *, checked: str, expected: str, found: str, next_action: str, faults: Sequence[Finding] = ()
    ) -> None:
        super().__init__(checked=checked, expected=expected, found=found, next_action=next_action)
        self._faults = tuple(faults)

    @property
    def findings(self) -> tuple[Finding, ...]:
        """The single faults; where there is one alone, that one."""
        return self._faults or super().findings


class SyncBusyError(ApplyLedgerError):
    """Another process is planning for the same sync name and holds its lock (C2)."""

    exit_code: ClassVar[ExitCode] = ExitCode.BUSY


class RunDirectoryError(ApplyLedgerError):
    """A run directory cannot be used: its name, its place, or its ``run.json``."""


class ConfigurationChangedError(PlanningError):
    """The configuration has changed since the plan was saved (A60, C22)."""


class AlteredPlanError(PlanningError):
    """The plan's bytes do not have the checksum that its manifest states (G1)."""


class UnexpectedChecksumError(PlanningError):
    """The plan on disk is not the plan that was reviewed."""

    exit_code: ClassVar[ExitCode] = ExitCode.STALE
