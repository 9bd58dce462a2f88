"""The document of a run as ``runs show`` has it, for tests of what is printed from it."""

from __future__ import annotations

from typing import Any

RUN_ID = "20261130T0252-0dfbc44f"


def run_document(**changes: Any) -> dict[str, Any]:
    """A run of three operations that nobody writes and nothing is ordered for, with some fields changed."""
    counts = {"planned": 3, "applied": 2, "skipped": 0, "failed": 0, "unknown": 0, "not_attempted": 1}
    return {
        **counts,
        "run_id": RUN_ID,
        "state": "stopped",
        "running": False,
        "source": "tags",
        "operations_per_second": None,
        "committed_position": 1,
        "position": 9,
        "events": 9,
        "plan_checksum": "0" * 64,
        "started_position": 3,
        "ended_at": "2026-11-30T03:00:00.000000+00:00",
        "failed_operation": None,
        "failed_operation_wrote": None,
        "failure": None,
        "skipped_delete_count": 0,
        "overlaps": [],
        "overlaps_total": 0,
        "happened": [],
        "attempts": [],
        "open_orders": [],
        "served": False,
        "writer": None,
        "in_flight": None,
        "progress": None,
        **changes,
    }
