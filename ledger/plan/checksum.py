"""The digests of a plan artifact (A66 to A70, C29, C30, design 5)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ledger.plan.canonical import canonical_json_bytes
from ledger.plan.model import CHECKSUM_EXCLUDED
from ledger.plan.private_copy import PrivateCopy


def checksummed_body(manifest_document: Mapping[str, Any]) -> bytes:
    """Canonical bytes of the manifest without ``plan_checksum``, ``run_id`` and ``created_at`` (A68).

    The three keys are removed, whatever they hold; keys that this program does not know stay (A67). These bytes are
    equal for two plans of an unchanged world, so the ledger stores them once per checksum.
    """
    return canonical_json_bytes({k: v for k, v in manifest_document.items() if k not in CHECKSUM_EXCLUDED})


def plan_checksum(manifest_document: Mapping[str, Any], operations_bytes: bytes | PrivateCopy) -> str:
    """Lower-case sha256 over :func:`checksummed_body`, then the raw bytes of the operations, no separator (A69)."""
    return _content(operations_bytes).digest(checksummed_body(manifest_document))


def artifact_digest(manifest_bytes: bytes, operations_bytes: bytes | PrivateCopy) -> str:
    """Lower-case sha256 over the raw bytes of both files: what a commit names beside the checksum (G1)."""
    return _content(operations_bytes).digest(manifest_bytes)


def _content(operations_bytes: bytes | PrivateCopy) -> PrivateCopy:
    return operations_bytes if isinstance(operations_bytes, PrivateCopy) else PrivateCopy(operations_bytes)
