"""Refusals of the plan format and of the key and value rules. Names are those of the specification where it has one."""

from __future__ import annotations

from typing import ClassVar

from ledger.errors import ApplyLedgerError, RefusalGroup
from ledger.exit_codes import ExitCode


class PlanArtifactError(ApplyLedgerError):
    """Base of every refusal about a plan; raised before any write."""

    exit_code: ClassVar[ExitCode] = ExitCode.REFUSED


class UnserializablePayloadValueError(PlanArtifactError):
    """A value has no canonical form (A20): wrong type, not finite, text that UTF-8 or the ledger cannot hold."""


class PlanOperationInvalidError(PlanArtifactError):
    """An operation record breaks a rule of its own shape (A23 to A46)."""


class UnsupportedOperationActionError(PlanArtifactError):
    """An operation's action is none of create, update, delete (P105, C16)."""


class DestinationIdentityCollisionError(PlanArtifactError):
    """The source tells objects apart that the destination cannot (P61)."""


class UnkeyedCreateRefusedError(PlanArtifactError):
    """A create's identity does not cover a key of its kind (P21, P44, P56 to P60)."""


class UnaccountedIdentityComponentError(PlanArtifactError):
    """A key component of a create arrives without a usable value (P22, P46 to P50)."""


class NullRelationshipValueError(PlanArtifactError):
    """A mandatory cardinality-one relationship is null (P92)."""


class SchemaMismatchError(PlanArtifactError):
    """A kind, field or value that the destination's schema does not accept."""


class SecretValueRefusedError(PlanArtifactError):
    """A field maps onto an attribute of kind Password or HashedPassword (G12)."""


class PlanVerificationError(RefusalGroup):
    """The gate before the first write found failures; all are listed (A87)."""
