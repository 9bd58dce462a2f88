"""Streams of records as NDJSON: the same lines from every way in, the first of which names the stream."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from ledger.printable import visible_json

STREAM_VERSION = 1


def record_line(record: Mapping[str, Any]) -> str:
    """One record as a line with its end; what a terminal would act on is escaped, as JSON allows."""
    return visible_json(json.dumps(record, ensure_ascii=False, separators=(",", ":"))) + "\n"


def stream_head(stream: str) -> str:
    """The first line of a stream; unknown record types behind it must be tolerated."""
    return record_line({"stream": stream, "version": STREAM_VERSION})
