"""The page of field failures says what the tests say, and every kind that is not declared open has a test."""

from __future__ import annotations

from pathlib import Path

from tests.support.field_failures_document import (
    NUMBERS,
    PAGE,
    collect_tests,
    read_catalogue,
    render,
    without_own_test,
)


def test_every_kind_is_in_the_catalogue() -> None:
    kinds, _ = read_catalogue()
    assert list(kinds) == NUMBERS


def test_every_test_names_a_known_kind() -> None:
    assert sorted(set(collect_tests()) - set(NUMBERS)) == []


def test_the_page_is_not_stale() -> None:
    assert PAGE.read_text(encoding="utf-8") == render(), "run `make rules`"


def test_the_list_of_open_kinds_only_shrinks() -> None:
    _, still_open = read_catalogue()
    missing = without_own_test(collect_tests())
    assert still_open == missing, f"set still_open in docs/field-failures.toml to {missing}, and never add to it"


def test_a_test_belongs_to_a_kind_by_its_name_wherever_it_stands(tmp_path: Path) -> None:
    own, other = tmp_path / "tests" / "field_failures", tmp_path / "tests" / "unit"
    own.mkdir(parents=True)
    other.mkdir()
    (own / "test_keys.py").write_text("async def test_ff07_a() -> None: ...\ndef ff07_helper() -> None: ...\n")
    (other / "test_b.py").write_text(
        "class TestB:\n    def test_ff07_b(self) -> None: ...\n    def test_g07_c(self): ...\n"
    )
    (other / "test_c.py").write_text("def test_ff08_c() -> None: ...\n")
    found = collect_tests(tmp_path / "tests")
    assert found == {
        "FF07": ["tests/field_failures/test_keys.py::test_ff07_a", "tests/unit/test_b.py::test_ff07_b"],
        "FF08": ["tests/unit/test_c.py::test_ff08_c"],
    }
    assert without_own_test(found) == [number for number in NUMBERS if number != "FF07"]
