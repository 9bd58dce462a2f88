"""What can be read of single objects: which are known, what was ever asserted of one, who is behind its values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC
from typing import Any

from ledger.api import object_models as models
from ledger.api.cursors import new_cursor, read_cursor
from ledger.api.errors import NotThereError, not_there
from ledger.api.reading import LedgerReader
from ledger.audit.bodies import parsed_object
from ledger.audit.close_objects import named_in_part
from ledger.audit.history import outcome_name
from ledger.audit.object_pages import history_page, short_blame
from ledger.commit import utc_text
from ledger.plan.canonical import object_key
from ledger.store.records import BindingRow, ObjectOutcome, RecentOutcome

MOST = 20
"""Earlier assertions, doubts and recorded deletes that a blame names of each attribute."""

RECENT = 200
"""Events at the end of a log among which objects that were lately written are looked for."""


class ObjectReader:
    """Reads objects for any number of requests at once. Every method may raise ``StoreError``."""

    def __init__(self, reader: LedgerReader) -> None:
        self._reader = reader
        self._ledger = reader.ledger

    async def find(
        self, kind: str, identities: Sequence[Mapping[str, Any]], binding_id: int | None = None
    ) -> list[models.ObjectView]:
        """The object of this kind and identity on every binding that knows it; else those that may be meant.

        Args:
            kind: its kind.
            identities: ways to read its identity; the first one under which it is known counts.
            binding_id: on this binding alone.

        Raises:
            UnserializablePayloadValueError: an identity that no plan can have.
            NotThereError: there is no such binding.
        """
        rows = await self._rows(binding_id)
        for key in [object_key(kind, identity) for identity in identities]:
            if known := await self._known(rows, key):
                return known
        for identity in identities:
            if meant := await named_in_part(self._ledger, rows, kind, identity):
                keys = [object_key(kind, named) for named in meant[:MOST]]
                return [known for key in keys for known in await self._known(rows, key)]
        return []

    async def _known(self, rows: Sequence[BindingRow], key: bytes) -> list[models.ObjectView]:
        found = [(row, await self._ledger.object_outcomes(row.id, key, newest=1)) for row in rows]
        return [_object(row, outcomes[0], key) for row, outcomes in found if outcomes]

    async def recent(self, binding_id: int, *, limit: int) -> list[models.ObjectView]:
        """Objects on which something was attempted lately, each once, the last one first.

        Raises:
            NotThereError: there is no such binding.
        """
        row = await self._reader.binding_row(binding_id)
        found: dict[bytes, models.ObjectView] = {}
        for outcome in await self._ledger.recent_outcomes(row.id, among=RECENT):
            if len(found) < limit and outcome.object_key not in found:
                found[outcome.object_key] = _object(row, outcome, outcome.object_key)
        return list(found.values())

    async def history(self, binding_id: int, key: str, *, cursor: str | None, limit: int) -> models.ObjectHistoryView:
        """Assertions of an object, newest first.

        Raises:
            InvalidCursorError, NotThereError: the cursor; no such binding, or nothing was ever attempted on it there.
        """
        row = await self._reader.binding_row(binding_id)
        scope = ["history", binding_id, key]
        before = None if cursor is None else read_cursor(cursor, scope, (int,))[0]
        found = await history_page(self._ledger, row, bytes.fromhex(key), before=before, newest=limit + 1)
        if found is None and before is None:
            raise _unknown_object(row, key)
        told = [] if found is None else found.document()["assertions"][::-1]
        shown = told[:limit]
        return models.ObjectHistoryView.model_validate(
            {
                **(found.head() if found else {"url": row.url, "branch": row.branch, "kind": "", "identity": {}}),
                "binding_id": binding_id,
                "object_key": key,
                "items": shown,
                "next": new_cursor(scope, (shown[-1]["position"],)) if len(told) > limit else None,
            }
        )

    async def blame(self, binding_id: int, key: str) -> models.BlameView:
        """Who is behind each value of an object; raises :class:`NotThereError` as :meth:`history`."""
        row = await self._reader.binding_row(binding_id)
        document = await short_blame(self._ledger, row, bytes.fromhex(key), most=MOST)
        if document is None:
            raise _unknown_object(row, key)
        return models.BlameView.model_validate({**document, "binding_id": binding_id, "object_key": key})

    async def _rows(self, binding_id: int | None) -> list[BindingRow]:
        if binding_id is not None:
            return [await self._reader.binding_row(binding_id)]
        return await self._ledger.bindings()


def _object(row: BindingRow, outcome: ObjectOutcome | RecentOutcome, key: bytes) -> models.ObjectView:
    record = parsed_object(outcome.line) or {}
    identity = record.get("identity")
    return models.ObjectView(
        binding_id=row.id,
        object_key=key.hex(),
        kind=str(record.get("kind")),
        identity=identity if isinstance(identity, dict) else {},
        outcome=outcome_name(outcome.kind),
        run_id=outcome.run_id,
        position=outcome.position,
        recorded_at=utc_text(outcome.recorded_at.astimezone(UTC)),
    )


def _unknown_object(row: BindingRow, key: str) -> NotThereError:
    return not_there(
        f"the object {key[:12]}… on binding {row.id}",
        "look it up by kind and identity: GET /api/v1/objects?kind=KIND&identity={...}",
    )
