"""Plans that no program of ours would write, committed as if one had: what a hand or another program may bring."""

from __future__ import annotations

import json
from typing import Any

from ledger.commit import PlanCommit, commit_id
from ledger.plan.checksum import artifact_digest
from tests.support.plans import CONFIG_VERSION, RUN_ID, manifest_document, raw_run
from tests.support.real_writer import RealWriter

FORGED = RUN_ID
"""The run id of every forged plan."""


async def commit_forged(real: RealWriter, operations: bytes, manifest: bytes | None = None, **changes: Any) -> None:
    """Save these bytes under a manifest that fits them (or exactly this one), and commit what stands there."""
    document = manifest_document(
        operations, **{"destination_binding": real.binding.model_dump(), "source": "from-netbox", **changes}
    )
    raw = manifest if manifest is not None else json.dumps(document).encode()
    raw_run(real.root / "sync", operations, raw)
    checksum = document["plan_checksum"]
    commit = PlanCommit(
        commit_id=commit_id(FORGED, checksum),
        run_id=FORGED,
        binding=real.binding.normalised(),
        plan_checksum=checksum,
        artifact_digest=artifact_digest(raw, operations),
        format_version=3,
        operations_count=document["operations_count"],
        config_version=CONFIG_VERSION,
        source="from-netbox",
        artifact=f"sync/{FORGED}",
        ledger_position=0,
        actor="mallory",
        committed_at="2026-11-29T18:05:00.000000+00:00",
    )
    await real.submit(commit)
