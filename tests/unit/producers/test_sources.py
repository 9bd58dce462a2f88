"""Sources: found by entry point; JSON lines are read strictly and completely."""

from __future__ import annotations

from importlib.metadata import EntryPoint, EntryPoints
from pathlib import Path
from typing import Any

import pytest

from ledger.errors import ConfigurationError
from ledger.plan.decode import MAX_LINE_BYTES
from producers import sources
from producers.errors import SourceUnreadableError, UnknownSourceSettingError
from producers.sources import ENTRY_POINT_GROUP, location_of, open_source
from producers.sources.jsonl import JsonLinesSource
from tests.support.memory_source import MemorySource


def _source(folder: Path, **files: bytes) -> JsonLinesSource:
    for name, data in files.items():
        (folder / f"{name}.jsonl").write_bytes(data)
    return JsonLinesSource(settings={"directory": "."}, base_directory=folder)


def _installed(monkeypatch: pytest.MonkeyPatch, *points: tuple[str, str]) -> None:
    found = EntryPoints(EntryPoint(name, value, ENTRY_POINT_GROUP) for name, value in points)
    monkeypatch.setattr(sources, "entry_points", lambda group: found)


def test_plugin_is_found_by_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _installed(monkeypatch, ("jsonl", "producers.sources.jsonl:JsonLinesSource"))
    source = open_source("jsonl", settings={"directory": str(tmp_path)}, base_directory=Path())
    assert isinstance(source, JsonLinesSource)


def test_the_installed_distribution_offers_the_jsonl_source(tmp_path: Path) -> None:
    assert isinstance(open_source("jsonl", settings={"directory": "."}, base_directory=tmp_path), JsonLinesSource)


@pytest.mark.parametrize("points", [[], [("x", "one:A"), ("x", "two:B")]])
def test_g11_no_plugin_or_two_different_ones_are_refused(
    monkeypatch: pytest.MonkeyPatch, points: list[tuple[str, str]]
) -> None:
    _installed(monkeypatch, *points)
    with pytest.raises(ConfigurationError, match="exactly one"):
        open_source("x", settings={}, base_directory=Path())


def test_rows_are_counted_and_read_in_file_order(tmp_path: Path) -> None:
    source = _source(tmp_path, a=b'{"id":2}\n{"id":1,"t":"\xe2\x80\xa8"}\n{"id":3}', empty=b"")
    assert source.count("a") == 3
    assert [row["id"] for row in source.rows("a")] == [2, 1, 3]
    assert (source.count("empty"), list(source.rows("empty"))) == (0, [])


@pytest.mark.parametrize(
    ("line", "found"),
    [
        (b"\n", "a blank line"),
        (b"[1]\n", "a list"),
        (b'{"a":1,"a":2}\n', "the key 'a' twice"),
        (b'{"a":\n', "no value where one belongs at line 2, column 1"),
        (b'{"a":"\xff"}\n', "bytes that are not UTF-8 at offset 6"),
        (b'\xef\xbb\xbf{"a":1}\n', "a byte order mark"),
        (b'{"a":' + b"[" * 100_000 + b"}\n", "more levels"),
        (b'{"a":' + b"9" * 5_000 + b"}\n", "5000"),
        (b'{"a":"' + b"x" * MAX_LINE_BYTES + b'"}\n{"a":1}\n', "more than"),
    ],
)
def test_g11_a_line_that_is_no_record_is_refused_by_number(tmp_path: Path, line: bytes, found: str) -> None:
    source = _source(tmp_path, a=b'{"id":1}\n' + line)
    with pytest.raises(SourceUnreadableError) as caught:
        list(source.rows("a"))
    assert caught.value.checked == "a.jsonl line 2"
    assert found in caught.value.found


def test_g11_every_line_that_is_no_record_is_named_and_no_row_behind_the_first_is_given(tmp_path: Path) -> None:
    source = _source(tmp_path, a=b'{"id":1}\n[1]\n{"id":2}\n\n{"id":3}\n{"a":NaN}\n{broken\n')
    given: list[Any] = []
    with pytest.raises(SourceUnreadableError, match=r"3 invalid lines, the first of them in a\.jsonl line 2") as caught:
        given.extend(source.rows("a"))
    assert given == [{"id": 1}]
    assert [finding.checked for finding in caught.value.findings] == [f"a.jsonl line {number}" for number in (2, 4, 7)]


def test_g11_of_many_lines_that_are_no_records_a_hundred_are_named(tmp_path: Path) -> None:
    source = _source(tmp_path, a=b"[]\n" * 1_000)
    with pytest.raises(SourceUnreadableError, match="1,000 invalid lines") as caught:
        list(source.rows("a"))
    assert len(caught.value.findings) == 100


def test_a_missing_endpoint_is_not_an_empty_one(tmp_path: Path) -> None:
    source = _source(tmp_path)
    with pytest.raises(SourceUnreadableError):
        source.count("nowhere")
    with pytest.raises(SourceUnreadableError):
        list(source.rows("nowhere"))


def test_an_endpoint_cannot_lead_out_of_the_directory(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "secret.jsonl").write_text("{}\n")
    source = JsonLinesSource(settings={"directory": "in"}, base_directory=tmp_path)
    with pytest.raises(ConfigurationError, match="leads out"):
        source.count("../secret")


@pytest.mark.parametrize("settings", [{}, {"directory": ""}, {"directory": 5}, {"directory": "nowhere"}])
def test_g11_unusable_settings_are_refused(tmp_path: Path, settings: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError, match=r"source\.settings\.directory"):
        JsonLinesSource(settings=settings, base_directory=tmp_path)


def test_g11_settings_that_the_source_does_not_know_are_all_refused_by_name(
    tmp_path: Path,
) -> None:
    settings = {"dir": "day0", "directory": ".", "token": "hunter2"}
    with pytest.raises(UnknownSourceSettingError) as caught:
        open_source("jsonl", settings=settings, base_directory=tmp_path, overridden=["dir"])
    assert caught.value.found == "dir (did you mean directory?) in --source-setting, token"
    assert "directory" in caught.value.expected
    assert "hunter2" not in str(caught.value)


class _TellsNothing(MemorySource):
    """A plug-in that says neither which settings it knows nor where it reads."""

    def __init__(self, *, settings: dict[str, Any], base_directory: Path) -> None:
        super().__init__({})


def test_settings_of_a_source_that_does_not_say_what_it_knows_are_passed_on_with_a_warning(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    _installed(monkeypatch, ("silent", f"{__name__}:_TellsNothing"))
    told: list[str] = []
    in_file = open_source("silent", settings={"anything": 1}, base_directory=Path(), warn=told.append)
    assert (told, location_of(in_file)) == ([], None)
    open_source("silent", settings={"dir": "x"}, base_directory=Path(), overridden=["dir"], warn=told.append)
    (warning,) = told
    assert "silent" in warning
    assert "dir has an effect" in warning


def test_the_jsonl_source_tells_where_it_reads(tmp_path: Path) -> None:
    (tmp_path / "day0").mkdir()
    source = open_source("jsonl", settings={"directory": "day0"}, base_directory=tmp_path)
    assert location_of(source) == str(tmp_path / "day0")
