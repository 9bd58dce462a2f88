"""Refusals before the request is sent: named as in planning, each proves that nothing was written (P132).

Planning refuses an operation with a class of :mod:`ledger.plan.errors`. The same fault found by the write surface is
raised as the class of the same name here, which is both that class and a
:class:`~ledger.destination.ProvenUnwrittenError`: the writer reads the verdict from the one, people recognise the other
(P63). An operation with several faults is raised as the first one, with all of them in ``findings`` (G11).
"""

from __future__ import annotations

from collections.abc import Sequence

from ledger.destination import ProvenUnwrittenError
from ledger.errors import ApplyLedgerError, Finding
from ledger.plan import errors as planning


class OperationRefusedError(ProvenUnwrittenError):
    """The write surface refuses an operation before anything is sent; ``findings`` holds every fault."""

    def __init__(
        self, *, checked: str, expected: str, found: str, next_action: str, faults: Sequence[Finding] = ()
    ) -> None:
        super().__init__(checked=checked, expected=expected, found=found, next_action=next_action)
        self._faults = tuple(faults)

    @property
    def findings(self) -> tuple[Finding, ...]:
        """Every fault of the operation."""
        return self._faults or super().findings


class UnkeyedCreateRefusedError(OperationRefusedError, planning.UnkeyedCreateRefusedError):
    """A create's identity does not cover a key of its kind (P21)."""


class UnaccountedIdentityComponentError(OperationRefusedError, planning.UnaccountedIdentityComponentError):
    """A key component of a create arrives without a usable value (P22)."""


class NullRelationshipValueError(OperationRefusedError, planning.NullRelationshipValueError):
    """A mandatory cardinality-one relationship is null (P92)."""


class SchemaMismatchError(OperationRefusedError, planning.SchemaMismatchError):
    """The live schema does not accept a kind, field or value."""


class SecretValueRefusedError(OperationRefusedError, planning.SecretValueRefusedError):
    """A field of a Password kind; its value is not shown (G12)."""


class UnserializablePayloadValueError(OperationRefusedError, planning.UnserializablePayloadValueError):
    """A value cannot be sent in a request."""


class PlanOperationInvalidError(OperationRefusedError, planning.PlanOperationInvalidError):
    """The operation contradicts itself."""


class UnkeyedUpdateRefusedError(OperationRefusedError):
    """An update has no destination id, so it does not name an object (P34, P108)."""


class ActionNeverDispatchedError(OperationRefusedError):
    """A recorded delete reached the write surface; deletes are never executed (P145)."""


_FORMS: tuple[tuple[type[ApplyLedgerError], type[OperationRefusedError]], ...] = (
    (planning.UnkeyedCreateRefusedError, UnkeyedCreateRefusedError),
    (planning.UnaccountedIdentityComponentError, UnaccountedIdentityComponentError),
    (planning.NullRelationshipValueError, NullRelationshipValueError),
    (planning.SchemaMismatchError, SchemaMismatchError),
    (planning.SecretValueRefusedError, SecretValueRefusedError),
    (planning.UnserializablePayloadValueError, UnserializablePayloadValueError),
    (planning.PlanOperationInvalidError, PlanOperationInvalidError),
)


def refusal(faults: Sequence[ApplyLedgerError], *, operation_id: str) -> OperationRefusedError:
    """The error to raise for one operation's faults; a fault without a form of its own keeps its name in findings."""
    first = faults[0]
    form = next((form for planned, form in _FORMS if isinstance(first, planned)), OperationRefusedError)
    others = "".join(f"; also {fault.checked}: {fault.found}" for fault in faults[1:])
    return form(
        checked=first.checked if operation_id in first.checked else f"{first.checked} ({operation_id})",
        expected=first.expected,
        found=first.found + others,
        next_action=first.next_action,
        faults=[finding for fault in faults for finding in fault.findings],
    )
