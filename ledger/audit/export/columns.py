"""The tables of an export: names and types of their columns. They are a format: a change is a new version of it."""

from __future__ import annotations

import pyarrow as pa

_TIME = pa.timestamp("us", tz="UTC")

EVENTS = pa.schema(
    [
        pa.field("url", pa.string(), nullable=False),
        pa.field("branch", pa.string(), nullable=False),
        pa.field("position", pa.int64(), nullable=False),
        pa.field("event_id", pa.string(), nullable=False),
        pa.field("kind", pa.string(), nullable=False),
        pa.field("schema_version", pa.int32(), nullable=False),
        pa.field("run_id", pa.string()),
        pa.field("operation_id", pa.string()),
        pa.field("ordinal", pa.int64()),
        pa.field("attempt", pa.int32()),
        pa.field("writer_epoch", pa.int64()),
        pa.field("recorded_at", _TIME, nullable=False),
        pa.field("body", pa.string(), nullable=False),
        pa.field("prev_hash", pa.binary(), nullable=False),
        pa.field("hash", pa.binary(), nullable=False),
    ]
)
"""One row for each event, in order: everything that is hashed, ``body`` as the very text."""

RUNS = pa.schema(
    [
        pa.field("run_id", pa.string(), nullable=False),
        pa.field("source", pa.string()),
        pa.field("actor", pa.string()),
        pa.field("reason", pa.string()),
        pa.field("committed_at", pa.string()),
        pa.field("committed_position", pa.int64()),
        pa.field("commit_id", pa.string()),
        pa.field("operations_count", pa.int64()),
        pa.field("plan_checksum", pa.string()),
        pa.field("artifact_digest", pa.string()),
        pa.field("commit", pa.string()),
        pa.field("stored_checksum", pa.string()),
        pa.field("stored_source", pa.string()),
        pa.field("stored_digest", pa.string()),
        pa.field("manifest", pa.binary()),
    ]
)
"""One row for each committed run. ``stored_...`` and ``manifest`` are empty where its plan was never verified."""

OPERATIONS = pa.schema(
    [
        pa.field("plan_checksum", pa.string(), nullable=False),
        pa.field("ordinal", pa.int64(), nullable=False),
        pa.field("operation_id", pa.string()),
        pa.field("action", pa.string()),
        pa.field("kind", pa.string()),
        pa.field("identity", pa.string()),
        pa.field("tier", pa.int64()),
        pa.field("destination_id", pa.string()),
        pa.field("object_key", pa.string()),
        pa.field("old_value", pa.string()),
        pa.field("new_value", pa.string()),
    ]
)
"""One row for each operation of each plan, in order; ``identity``, ``old_value`` and ``new_value`` are JSON."""
