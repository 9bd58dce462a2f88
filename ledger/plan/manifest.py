"""The manifest of an artifact: strict decoding, the gate of the format version, and the rules of its fields."""

from __future__ import annotations

from typing import Any

from pydantic import ValidationError

from ledger.plan.decode import decode_json
from ledger.plan.errors import (
    JsonDocumentError,
    ManifestInvalidError,
    TornPlanArtifactError,
    UnrecognisedPlanFormatError,
)
from ledger.plan.field_problems import field_problems
from ledger.plan.layout import MANIFEST_FILE, REPLAN, shown
from ledger.plan.model import READABLE_FORMATS, PlanManifest

MAX_MANIFEST_BYTES = 16 * 1024 * 1024
"""Larger files in a manifest's place are not read into memory. A snapshot takes about 150 bytes of it."""


def readable_formats() -> str:
    """The format versions that can be read, as words for a message."""
    return " or ".join(str(version) for version in sorted(READABLE_FORMATS))


def decode_manifest(manifest_bytes: bytes | None) -> dict[str, Any]:
    """The manifest as a mapping, whose format version is one that can be read.

    Args:
        manifest_bytes: the raw file, or None if there is none.

    Raises:
        TornPlanArtifactError: no file, no JSON object, or no format version (A8).
        UnrecognisedPlanFormatError: another format version; nothing else of the manifest was looked at (A11, A86).
    """
    if manifest_bytes is None:
        raise _torn("a manifest, which is written last", "none: the plan was never completed, or the file was removed")
    try:
        document = decode_json(manifest_bytes, what=MANIFEST_FILE)
    except JsonDocumentError as exc:
        raise TornPlanArtifactError(
            checked=exc.checked,
            expected=exc.expected,
            found=f"{exc.found} ({type(exc).__name__})",
            next_action=exc.next_action,
            faults=exc.findings,
        ) from exc
    if not isinstance(document, dict):
        raise _torn("a JSON object", f"a JSON value of type {shown(document)}")
    if "format_version" not in document:
        raise _torn("a format_version", "no such key")
    version = document["format_version"]
    if type(version) is not int or version not in READABLE_FORMATS:
        raise UnrecognisedPlanFormatError(
            checked=f"format_version of {MANIFEST_FILE}",
            expected=f"plan format {readable_formats()}",
            found=shown(version),
            next_action="read it with a version of apply-ledger that knows this format, or make a fresh plan",
        )
    return document


def _torn(expected: str, found: str) -> TornPlanArtifactError:
    return TornPlanArtifactError(checked=MANIFEST_FILE, expected=expected, found=found, next_action=REPLAN)


def parse_manifest(document: dict[str, Any]) -> PlanManifest:
    """The manifest as a model.

    Raises:
        ManifestInvalidError: every field that is missing or has no permitted value, by name; values are not shown.
    """
    try:
        return PlanManifest.model_validate(document)
    except ValidationError as exc:
        raise ManifestInvalidError(
            checked=MANIFEST_FILE,
            expected="every field present and with a permitted value",
            found=field_problems(exc),
            next_action=REPLAN,
        ) from None
