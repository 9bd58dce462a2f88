"""An event as auditors get it: everything that is hashed, as one JSON object a line."""

from __future__ import annotations

from datetime import UTC
from typing import Any

from ledger.audit.bodies import is_canonical, parsed
from ledger.commit import utc_text
from ledger.events import StoredEvent


def replay_record(event: StoredEvent) -> dict[str, Any]:
    """The event as a JSON-able mapping, in the order in which people read it.

    ``body`` is the parsed body. Its canonical encoding gives back the very bytes that were hashed; where it would not,
    ``body_text`` holds them as well, so that nothing is lost.
    """
    text = None if is_canonical(event.body) else event.body.decode("utf-8", errors="backslashreplace")
    return {
        "url": event.url,
        "branch": event.branch,
        "position": event.position,
        "recorded_at": utc_text(event.recorded_at.astimezone(UTC)),
        "kind": event.kind,
        "schema_version": event.schema_version,
        "run_id": event.run_id,
        "operation_id": event.operation_id,
        "ordinal": event.ordinal,
        "attempt": event.attempt,
        "writer_epoch": event.writer_epoch,
        "body": parsed(event.body),
        **({} if text is None else {"body_text": text}),
        "event_id": str(event.event_id),
        "prev_hash": event.prev_hash.hex(),
        "hash": event.hash.hex(),
    }
