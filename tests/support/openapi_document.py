"""Makes ``docs/openapi.json``: the API as its own document says it.

``python -m tests.support.openapi_document`` writes the file; a test fails while it is stale.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, cast

from ledger.api.application import create_app
from ledger.api.limits import ApiLimits, StreamSlots
from ledger.api.metrics import ApiMetrics
from ledger.api.service import ApiService

PAGE = Path(__file__).resolve().parents[2] / "docs" / "openapi.json"


def document() -> dict[str, Any]:
    """The document of an application that has nothing to read from: routes do not depend on it."""
    nothing = cast("Any", None)
    service = ApiService(
        reader=nothing,
        follower=nothing,
        watch=nothing,
        orders=None,
        limits=ApiLimits(),
        slots=StreamSlots(1, 1),
        metrics=ApiMetrics(),
        audits=nothing,
        keys=nothing,
    )
    return create_app(service, None).app.openapi()


def render() -> str:
    """The file's text."""
    return json.dumps(document(), indent=1, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    PAGE.write_text(render(), encoding="utf-8")
