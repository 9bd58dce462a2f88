"""Uploads a run to the object store for writers on other hosts, before it is committed."""

from __future__ import annotations

from pathlib import Path

from ledger.commit import PlanCommit
from ledger.plan.files import confined
from ledger.plan.layout import REPLAN, SOURCE_SIDE
from ledger.plan.manifest import decode_manifest, parse_manifest
from ledger.plan.object_store import ObjectStore
from ledger.plan.reader import read_raw_artifact
from producers.errors import AlteredPlanError


def store_run(store: ObjectStore, root: Path, commit: PlanCommit) -> bool:
    """Store the plan and the snapshots of its source; False where the store has them.

    Args:
        store: where to.
        root: where run directories are on this host.
        commit: names the run, and the digest of what is stored.

    Raises:
        AlteredPlanError: the plan on this host is no longer the one that is committed.
        PlanArtifactError: its files cannot be read.
        ArtifactStoreAwayError: the store does not answer.
        ArtifactInStoreDiffersError: another plan is there.
    """
    run_dir = confined(root, commit.artifact)
    raw = read_raw_artifact(run_dir)
    if raw.artifact_digest != commit.artifact_digest:
        raise AlteredPlanError(
            checked=f"the plan of run {commit.run_id}, as it is stored for writers",
            expected=f"the bytes that are committed, digest {commit.artifact_digest}",
            found=f"digest {raw.artifact_digest}",
            next_action=REPLAN,
        )
    manifest = parse_manifest(decode_manifest(raw.manifest_bytes))
    paths = [record.path for record in manifest.source_snapshot if record.path.startswith(f"{SOURCE_SIDE}/")]
    return store.publish(commit.artifact, raw, {path: confined(run_dir, path) for path in paths})
