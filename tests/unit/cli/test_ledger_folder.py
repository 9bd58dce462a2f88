"""What is said where there is no ledger to read: nothing there, or something that is none of ours."""

from __future__ import annotations

from pathlib import Path

import pytest

from ledger.cli.session import LedgerMissingError, require_ledger
from ledger.cli.settings import Settings


@pytest.mark.rules("G11")
@pytest.mark.parametrize(
    ("made", "found"),
    [
        (lambda folder: None, "none"),
        (lambda folder: folder.mkdir(), "none"),
        (lambda folder: (folder.mkdir(), (folder / "notes.txt").write_text("mine")), "a folder that holds none, or"),
        (lambda folder: folder.write_text("a file"), "a folder that holds none, or"),
    ],
    ids=["absent", "empty", "foreign", "a file"],
)
def test_g11_a_folder_of_somebody_else_is_not_told_as_no_ledger(tmp_path: Path, made: object, found: str) -> None:
    folder = tmp_path / "ledger"
    assert callable(made)
    made(folder)
    with pytest.raises(LedgerMissingError) as caught:
        require_ledger(Settings(data_dir=folder))
    assert caught.value.found.startswith(found)
    assert ("make a new one" in caught.value.next_action) == (found == "none")
