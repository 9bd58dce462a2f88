"""Records come out object by object, in their order, whether they waited in memory or in files."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ledger.audit import spill
from ledger.audit.spill import ObjectSpill

_KEYS = st.integers(0, 40).map(lambda number: hashlib.sha256(str(number).encode()).digest())


@settings(deadline=None)
@given(st.lists(st.tuples(_KEYS, st.binary(max_size=200)), max_size=120), st.sampled_from([1, 500, 10**9]))
def test_every_record_comes_out_once_by_object_and_in_order(records: list[tuple[bytes, bytes]], in_memory: int) -> None:
    with pytest.MonkeyPatch.context() as patch, ObjectSpill() as held:
        patch.setattr(spill, "_IN_MEMORY", in_memory)
        for position, (key, record) in enumerate(records):
            held.put(key, position, record)
        found = [(key, list(group)) for key, group in held.objects()]
    assert [key for key, _ in found] == sorted({key for key, _ in records})
    for key, group in found:
        assert group == [(place, record) for place, (other, record) in enumerate(records) if other == key]


def test_its_files_have_no_names_that_a_killed_process_could_leave(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spill, "_IN_MEMORY", 10)
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    with ObjectSpill() as held:
        held.put(bytes(32), 1, b"x" * 100)
        files = held._files or []
        assert [os.fstat(file.fileno()).st_size for file in files] == [144] + [0] * 255
        assert os.fstat(files[0].fileno()).st_dev == tmp_path.stat().st_dev
        assert list(tmp_path.iterdir()) == []
        assert [(key, list(group)) for key, group in held.objects()] == [(bytes(32), [(1, b"x" * 100)])]
    assert all(file.closed for file in files)
