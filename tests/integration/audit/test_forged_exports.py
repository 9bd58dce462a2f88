"""Exports from somebody who forges them: what was made up is found, and no file can stop, lead or crash the auditor."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from ledger.audit import Level, Status, VerifyReport
from ledger.audit.errors import CheckpointOfNoBindingError, ExportUnreadableError
from ledger.audit.export.layout import read_manifest
from ledger.audit.export.verifying import verify_export
from ledger.audit.export.writing import export_binding
from ledger.audit.publish import publish_checkpoint
from ledger.audit.signed_note import SigningKey
from ledger.store.ledger import Ledger
from tests.support.forged_exports import FORGERIES, cover_up, edit_rows
from tests.support.told_story import UPDATED

pytestmark = pytest.mark.integration

KEY = SigningKey("tests", Ed25519PrivateKey.from_private_bytes(bytes(range(32))))


@pytest.fixture
async def exported(told_dsns: dict[str, str], tmp_path: Path) -> Path:
    """The story, with a checkpoint, in row groups of ten events."""
    async with await Ledger.open(told_dsns["writer"], allow_unsafe_fsync=True) as ledger:
        await publish_checkpoint(ledger, (await ledger.bindings())[0], [KEY])
        await export_binding(ledger, (await ledger.bindings())[0], tmp_path / "export", group=10)
    return tmp_path / "export"


def _failed(report: VerifyReport) -> set[Level]:
    return {level.level for level in report.levels if level.status is Status.FAILED}


@pytest.mark.rules("G8")
async def test_g08_what_was_made_up_in_an_export_is_found_although_its_manifest_agrees(
    exported: Path, tmp_path: Path
) -> None:
    assert (await verify_export(exported, [KEY.public])).holds
    missed = []
    for number, forgery in enumerate(FORGERIES):
        copy = tmp_path / str(number)
        shutil.copytree(exported, copy)
        forgery.forge(copy, Random(number))
        cover_up(copy)
        failed = _failed(await verify_export(copy, [KEY.public]))
        if forgery.level not in failed or (Level.FILES in failed and forgery.level is not Level.FILES):
            missed.append(f"{forgery.what}: {sorted(failed)}")
    assert missed == []


@pytest.mark.rules("G8")
@pytest.mark.parametrize("changes", [{"events": 1}, {"plans": []}], ids=str)
async def test_g08_a_manifest_that_says_something_else_than_its_files_is_found(
    exported: Path, changes: dict[str, Any]
) -> None:
    cover_up(exported, **changes)
    assert _failed(await verify_export(exported, [KEY.public])) == {Level.TABLES}


def _checksum(text: str) -> Callable[[Path], None]:
    return lambda root: edit_rows(
        root / "runs.parquet", lambda rows: [{**row, "stored_checksum": text} for row in rows]
    )


def _link_of_a_folder(root: Path) -> None:
    folder = root / "plans" / UPDATED.checksum
    folder.rename(root.parent / "elsewhere")
    folder.symlink_to(root.parent / "elsewhere")


def _link_of_a_file(root: Path) -> None:
    path = root / "plans" / UPDATED.checksum / "coverage.jsonl"
    path.rename(root.parent / "elsewhere")
    path.symlink_to(root.parent / "elsewhere")


def _pipe(root: Path) -> None:
    path = root / "plans" / UPDATED.checksum / "body.json"
    path.unlink()
    os.mkfifo(path)


_HOSTILE: dict[str, tuple[Callable[[Path], None], Level]] = {
    "a checksum that leads out": (_checksum("../manifest.json"), Level.PLANS),
    "a checksum that is a file": (_checksum("../../manifest.json"), Level.PLANS),
    "a checksum with a zero byte": (_checksum("\0"), Level.PLANS),
    "a checksum without end": (_checksum("0" * 10_000), Level.PLANS),
    "a link in the place of a folder": (_link_of_a_folder, Level.FILES),
    "a link in the place of a file": (_link_of_a_file, Level.FILES),
    "a pipe in the place of a file": (_pipe, Level.FILES),
}


@pytest.mark.rules("G8", "G11")
@pytest.mark.parametrize(("spoil", "level"), _HOSTILE.values(), ids=_HOSTILE)
async def test_g11_a_hostile_folder_is_found_and_not_followed(
    exported: Path, spoil: Callable[[Path], None], level: Level
) -> None:
    spoil(exported)
    cover_up(exported)
    failed = _failed(await verify_export(exported, [KEY.public]))
    assert failed >= {level, Level.PLANS}


@pytest.mark.rules("G11")
@pytest.mark.parametrize("name", ["manifest.json", "events.parquet", "runs.parquet", "operations.parquet"])
async def test_g11_a_table_that_is_a_pipe_is_a_named_refusal(exported: Path, name: str) -> None:
    (exported / name).unlink()
    os.mkfifo(exported / name)
    with pytest.raises(ExportUnreadableError):
        await verify_export(exported, [KEY.public])


async def test_a_row_group_is_no_larger_than_the_manifest_says(exported: Path) -> None:
    cover_up(exported, events_in_a_row_group=9)
    with pytest.raises(ExportUnreadableError, match="at most 9 rows"):
        await verify_export(exported, [KEY.public])


@pytest.mark.rules("G8")
async def test_g08_the_note_of_another_destination_is_no_note_of_this_export(exported: Path) -> None:
    manifest = read_manifest(exported)
    note = (exported / "checkpoint.note").read_text(encoding="utf-8")
    (exported / "checkpoint.note").write_text(note.replace(manifest.url, "http://elsewhere.example"), encoding="utf-8")
    cover_up(exported)
    with pytest.raises(CheckpointOfNoBindingError):
        await verify_export(exported, [KEY.public])
