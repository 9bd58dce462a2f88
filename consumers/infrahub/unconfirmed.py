"""The errors of writes that the destination did not confirm, in words that can be stored."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from consumers.infrahub.answers import Reply, Shape
from consumers.infrahub.classification import Row
from consumers.infrahub.errors import OwnIdDoubledError, OwnIdUnreadError, StaleDestinationIdError
from consumers.infrahub.gateway import InfrahubGateway
from ledger.destination import OutcomeUnknownError
from ledger.plan.describe import SecretFields, object_text
from ledger.plan.model import PlannedOperation
from ledger.schema import DestinationSchema

_READ_AGAIN = "look whether the object is at the destination, then resume the run: its id is asked for again"
_DELETE_ALL = "delete the object at the destination, once more for each further one of its id, then make a fresh plan"


@dataclass(frozen=True, slots=True)
class Attempted:
    """One write that was not confirmed: what it was for, what came back, and the line that says what that proves."""

    operation: PlannedOperation
    row: Row
    reply: Reply


class UnconfirmedWrites:
    """Makes the error that says what became of a write; one object for one run."""

    def __init__(self, gateway: InfrahubGateway, schema: DestinationSchema) -> None:
        self._gateway = gateway
        self._schema = schema

    def stale(self, attempted: Attempted) -> StaleDestinationIdError:
        """The destination's own not-found: nothing was written."""
        return StaleDestinationIdError(
            checked=self._checked(attempted),
            expected=f"the object of the recorded id {attempted.operation.destination_id}",
            found=self._found(attempted),
            next_action=attempted.row.next_action,
        )

    def unknown(self, attempted: Attempted) -> OutcomeUnknownError:
        """What the table says of the answer."""
        row = attempted.row
        if row.error is None:
            raise RuntimeError(f"row {row.name!r} of the classification has nothing to raise")
        return row.error(**self._facts(attempted), next_action=row.next_action, final=row.is_final)

    def own_id_doubled(self, attempted: Attempted, count: int) -> OwnIdDoubledError:
        """Our id is in use by several objects at once, which look like one when they are read."""
        facts = self._facts(attempted) | {"found": f"{count} objects of our id"}
        return OwnIdDoubledError(**facts, next_action=_DELETE_ALL, final=True)

    def own_id_unread(self, attempted: Attempted, found: str) -> OwnIdUnreadError:
        """Our id is in use, and whether our object is there was not told; ``found`` is fit to be stored."""
        facts = self._facts(attempted) | {"found": f"our id is in use; asked for its object: {found}"}
        return OwnIdUnreadError(**facts, next_action=_READ_AGAIN)

    def _facts(self, attempted: Attempted) -> dict[str, Any]:
        exchange = attempted.reply.exchange
        return {
            "checked": self._checked(attempted),
            "expected": "ok: true and the node id",
            "found": self._found(attempted),
            "sent": exchange.sent,
            "http_status": exchange.status,
            "code": self._gateway.code_of(attempted.reply.answer),
        }

    def _checked(self, attempted: Attempted) -> str:
        operation = attempted.operation
        described = object_text(operation.kind, operation.identity, secrets=SecretFields(self._schema))
        return f"{operation.action} {described} ({operation.operation_id})"

    def _found(self, attempted: Attempted) -> str:
        exchange, answer = attempted.reply.exchange, attempted.reply.answer
        if answer.shape is Shape.DATA and exchange.status == 200:
            return f"{attempted.row.name}: {self._gateway.shown(json.dumps(answer.data))}"
        return self._gateway.describe(exchange, answer)
