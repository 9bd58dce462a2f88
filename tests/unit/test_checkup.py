"""Checks in their order: what an earlier failure does to later ones, and what is a failure at all."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from ledger.checkup import Check, CheckResult, Said, Verdict, clock_said, failure, good, run_checks, warning
from ledger.errors import ConfigurationError, Finding, RefusalGroup

NOON = datetime(2026, 11, 30, 12, tzinfo=UTC)


def _says(*said: Said) -> Check:
    async def look() -> list[Said]:
        return list(said)

    return Check(said[0].found, look)


def _after(name: str, *needs: str) -> Check:
    async def look() -> Said:
        return good("looked")

    return Check(name, look, needs=needs)


async def _run(*checks: Check) -> list[CheckResult]:
    return [result async for result in run_checks("it", checks)]


async def test_what_needs_a_failed_check_is_not_looked_at_and_names_the_first_cause() -> None:
    results = await _run(_says(failure("one", "mend it")), _after("two", "one"), _after("three", "two"), _after("four"))
    assert [(result.check, result.said.verdict) for result in results] == [
        ("one", Verdict.FAILURE),
        ("two", Verdict.SKIPPED),
        ("three", Verdict.SKIPPED),
        ("four", Verdict.GOOD),
    ]
    assert results[2].said.found == "not looked at, because of the one"


async def test_a_warning_holds_nothing_up() -> None:
    results = await _run(_says(warning("one", "look")), _after("two", "one"))
    assert results[1].said.verdict is Verdict.GOOD


async def test_one_failure_among_several_words_is_a_failure() -> None:
    results = await _run(_says(good("one"), failure("worse", "mend it")), _after("two", "one"))
    assert [result.said.verdict for result in results] == [Verdict.GOOD, Verdict.FAILURE, Verdict.SKIPPED]


@pytest.mark.rules("G11")
async def test_a_refusal_is_a_failure_with_each_of_its_findings() -> None:
    findings = [
        Finding(name="Fault", checked=name, expected="none", found="some", next_action=f"mend {name}")
        for name in ("first", "second")
    ]

    async def look() -> Said:
        raise RefusalGroup(checked="a mapping", findings=findings, next_action="mend both")

    results = await _run(Check("mapping", look))
    assert [(result.said.found, result.said.next_action) for result in results] == [
        ("first: some", "mend first"),
        ("second: some", "mend second"),
    ]


async def test_a_refusal_says_what_it_found_and_what_to_do() -> None:
    async def look() -> Said:
        raise ConfigurationError(checked="a file", expected="text", found="nothing", next_action="write it")

    ((result,),) = [await _run(Check("file", look))]
    assert result.record() == {
        "subject": "it",
        "check": "file",
        "verdict": "failure",
        "found": "a file: nothing",
        "next_action": "write it",
        "facts": {},
    }


@pytest.mark.rules("P140")
async def test_a_defect_of_a_check_is_no_verdict_about_what_it_looks_at() -> None:
    async def look() -> Said:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await _run(Check("broken", look))


@pytest.mark.parametrize(
    ("off", "resolution", "verdict"),
    [
        (0, 0, Verdict.GOOD),
        (4.9, 0, Verdict.GOOD),
        (6, 0, Verdict.WARNING),
        (-6, 0, Verdict.WARNING),
        (-5.5, 1, Verdict.GOOD),
        (-7, 1, Verdict.WARNING),
    ],
)
def test_two_clocks_may_differ_by_what_nobody_minds(off: float, resolution: float, verdict: Verdict) -> None:
    told = NOON + timedelta(seconds=off)
    assert clock_said(told, NOON, NOON, whose="it", resolution=resolution).verdict is verdict


def test_a_slow_answer_is_no_difference_of_clocks() -> None:
    said = clock_said(NOON, NOON - timedelta(seconds=20), NOON + timedelta(seconds=20), whose="it")
    assert said.verdict is Verdict.GOOD
