"""Each case of the bench runs and gives whole figures; what they are is never part of pass or fail."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.bench.__main__ import main
from tests.bench.cases import CASES
from tests.bench.frame import Case, Figure, Series, Setting, Target, interleaved, ratio

_ROUNDS = 1  # that rounds alternate is shown below


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder into which the database's own account can go; pytest's are closed to it."""
    with tempfile.TemporaryDirectory(prefix="bench-") as path:
        Path(path).chmod(0o755)
        yield Path(path)


@pytest.mark.bench
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_case_gives_figures_for_every_round(case: Case, folder: Path) -> None:
    figures = case.measure(Setting(rounds=_ROUNDS, scratch=folder, smoke=True))

    assert any(figure.target is not None for figure in figures)
    for figure in figures:
        for series in (figure.value, *figure.beside):
            assert 1 <= len(series.values) <= _ROUNDS
            assert min(series.values) > 0


def test_rounds_alternate_and_every_second_one_runs_backwards() -> None:
    order: list[str] = []

    def measured(name: str) -> float:
        order.append(name)
        return float(len(order))

    found = interleaved(3, {"a": lambda: measured("a"), "b": lambda: measured("b")})

    assert order == ["a", "b", "b", "a", "a", "b"]
    assert found == {"a": (1.0, 4.0, 5.0), "b": (2.0, 3.0, 6.0)}


def test_a_ratio_compares_neighbours_and_its_median_decides() -> None:
    figure = ratio(
        "x", Series("above", "s", (1.0, 4.0, 3.0)), Series("below", "s", (2.0, 2.0, 2.0)), Target("at least", 1.5)
    )

    assert figure.value.values == (0.5, 2.0, 1.5)
    assert (figure.value.low, figure.value.median, figure.value.high) == (0.5, 1.5, 2.0)
    assert figure.met is True
    assert Figure("x", figure.value, Target("at most", 1.4)).met is False
    assert Figure("x", figure.value).met is None


def test_a_run_prints_and_keeps_each_figure_with_its_command_and_the_noise(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["--only", "replay", "--smoke", "--rounds", "1", "--state", str(folder), "--output", "json"]

    assert main(arguments) == 0

    printed = json.loads(capsys.readouterr().out)
    assert printed == json.loads((folder / "bench.json").read_text(encoding="utf-8"))
    (case,) = printed["cases"]
    assert case["command"] == "python -m tests.bench --only replay"
    assert case["noise"]["fdatasync_ms"] > 0
    assert case["figures"][0]["met"] in {True, False}
    kept = (folder / "bench.txt").read_text(encoding="utf-8")
    assert "replay with chain check" in kept
    assert "noise: fixed loop" in kept
    assert list((folder / "scratch").iterdir()) == []
