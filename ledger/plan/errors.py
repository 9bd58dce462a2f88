"""Refusals of the plan format and of the key and value rules. Names are those of the specification where it has one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from ledger.errors import ApplyLedgerError, Finding, RefusalGroup
from ledger.exit_codes import ExitCode


class PlanArtifactError(ApplyLedgerError):
    """Base of every refusal about a plan; raised before any write."""

    exit_code: ClassVar[ExitCode] = ExitCode.REFUSED


class FaultyArtifactError(PlanArtifactError):
    """A plan artifact has faults; ``findings`` names each of them (G11)."""

    def __init__(
        self, *, checked: str, expected: str, found: str, next_action: str, faults: Sequence[Finding] = ()
    ) -> None:
        super().__init__(checked=checked, expected=expected, found=found, next_action=next_action)
        self._faults = tuple(faults)

    @property
    def findings(self) -> tuple[Finding, ...]:
        """The single faults; where the verdict has no parts, the verdict itself."""
        return self._faults or super().findings


# --- verdicts about an artifact -------------------------------------------------------------------------------------


class PlanArtifactAbsentError(PlanArtifactError):
    """There is no ``plan/`` at all: older row format, never written, or removed (A7, C34)."""


class TornPlanArtifactError(FaultyArtifactError):
    """``plan/`` exists but is not a complete, well-formed plan (A8 to A10, C23)."""


class UnrecognisedPlanFormatError(PlanArtifactError):
    """The manifest names a format version that this program does not know (A11, C21)."""


class PlanArtifactUnreadableError(PlanArtifactError):
    """A path exists but cannot be read; this is never reported as another fault (A12, A13)."""


class PlanCopyFailedError(PlanArtifactError):
    """A large file of a plan could not be copied into the folder for temporary files; nothing was written elsewhere."""

    exit_code: ClassVar[ExitCode] = ExitCode.ERROR


class ArtifactStoreAwayError(PlanArtifactError):
    """The object store of run directories is unreachable or denies access. That says nothing about a plan."""

    exit_code: ClassVar[ExitCode] = ExitCode.BUSY


class ArtifactInStoreDiffersError(PlanArtifactError):
    """The object store contains another plan under the name of this run; neither is changed (G1)."""


class FurtherFaultsError(PlanArtifactError):
    """More faults than are kept one by one; the number of further ones is reported (G11)."""


class PlanFormatApplyUnsupportedError(PlanArtifactError):
    """The plan can be read and reviewed, but its format cannot be applied (P106 to P108)."""


class UnsupportedOperationActionError(FaultyArtifactError):
    """An operation's action is none of create, update, delete (P105, C16)."""


class PlanVerificationError(RefusalGroup):
    """The gate before the first write found failures; all are listed (A87)."""


# --- faults of JSON documents ---------------------------------------------------------------------------------------


class JsonDocumentError(PlanArtifactError):
    """Base of the reasons for which bytes are refused as JSON (design 4.2)."""


class ByteOrderMarkError(JsonDocumentError):
    """The bytes begin with a byte order mark (A14)."""


class InvalidUtf8Error(JsonDocumentError):
    """The bytes are not UTF-8; a surrogate encoded as bytes is such a case (A14)."""


class MalformedJsonError(JsonDocumentError):
    """The text is not one JSON value."""


class DuplicateJsonKeyError(JsonDocumentError):
    """An object has one key twice, at any depth: readers would disagree on its value."""


class NonFiniteNumberError(JsonDocumentError):
    """NaN, an infinity, or a number beyond the range of a double."""


class IntegerTooLongError(JsonDocumentError):
    """An integer has more digits than every reader can convert."""


class NestingTooDeepError(JsonDocumentError):
    """Lists and objects are nested deeper than any plan needs."""


class TooManyValuesError(JsonDocumentError):
    """A document holds more values than any plan needs; each costs many times its bytes in memory."""


class LoneSurrogateError(JsonDocumentError):
    """Text with half of a surrogate pair, which UTF-8 cannot hold (FF19)."""


class NullCharacterError(JsonDocumentError):
    """Text with U+0000, which PostgreSQL cannot hold (FF19)."""


# --- faults of lines and records ------------------------------------------------------------------------------------


class BlankLineError(PlanArtifactError):
    """A line without a record (A15)."""


class CarriageReturnError(PlanArtifactError):
    """A line that ends with carriage return and line feed (A15)."""


class UnterminatedLineError(PlanArtifactError):
    """The last line has no line feed (A15, C13)."""


class LineTooLongError(PlanArtifactError):
    """One record is larger than the limit for a line."""


class NonCanonicalLineError(PlanArtifactError):
    """A line whose canonical encoding has other bytes: two spellings of one operation (A14)."""


class OperationOrderError(PlanArtifactError):
    """Operations are not stored by (tier, operation_id) (A30, C14)."""


class DuplicateOperationIdError(PlanArtifactError):
    """Two operations of one plan have the same identifier (A55, C15)."""


class PlanOperationInvalidError(PlanArtifactError):
    """An operation record breaks a rule of its own shape (A23 to A46)."""


class ManifestInvalidError(PlanArtifactError):
    """The manifest lacks a field or a field has no permitted value (A57 to A67)."""


class UnserializablePayloadValueError(PlanArtifactError):
    """A value has no canonical form (A20): wrong type, not finite, text that UTF-8 or the ledger cannot hold."""


# --- files ----------------------------------------------------------------------------------------------------------


class PathOutsideRunError(PlanArtifactError):
    """A recorded path leads out of its run directory (design 4.11)."""


class RunIdInvalidError(PlanArtifactError):
    """A run id is not one plain path segment."""


class PlanAlreadyWrittenError(PlanArtifactError):
    """The run already has a plan; a plan is never overwritten."""


class PlanWriteFailedError(PlanArtifactError):
    """A file of a run could not be written durably; the run has no manifest."""

    exit_code: ClassVar[ExitCode] = ExitCode.ERROR


# --- snapshots ------------------------------------------------------------------------------------------------------


class SnapshotValueError(PlanArtifactError):
    """A row has a field or value that its snapshot's columns cannot hold unchanged (FF04, FF05)."""


class SnapshotReadBackError(PlanArtifactError):
    """A snapshot reads back differently from what was written (FF04)."""


class SnapshotCorruptError(PlanArtifactError):
    """A snapshot file is not a readable Parquet table (A76)."""


# --- coverage -------------------------------------------------------------------------------------------------------


class CoverageInvalidError(FaultyArtifactError):
    """``plan/coverage.jsonl`` is not a well-formed, ordered report with one action for each resource (H5)."""


# --- keys and values ------------------------------------------------------------------------------------------------


class DestinationIdentityCollisionError(PlanArtifactError):
    """The source distinguishes objects that the destination cannot (P61).

    ``objects`` names all of them by kind and identity, for a caller that leaves them out of a plan.
    """

    objects: tuple[tuple[str, Mapping[str, Any]], ...] = ()


class UnkeyedCreateRefusedError(PlanArtifactError):
    """A create's identity does not cover a key of its kind (P21, P44, P56 to P60)."""


class UnaccountedIdentityComponentError(PlanArtifactError):
    """A key component of a create arrives without a usable value (P22, P46 to P50)."""


class NullRelationshipValueError(PlanArtifactError):
    """A mandatory cardinality-one relationship is null (P92)."""


class SchemaMismatchError(PlanArtifactError):
    """A kind, field or value that the destination's schema does not accept."""


class WriteNeverTakenError(PlanArtifactError):
    """A name in the schema prevents the destination from creating or changing objects of a kind."""


class SecretValueRefusedError(PlanArtifactError):
    """A field maps onto an attribute of kind Password or HashedPassword (G12)."""
