"""Makes ``docs/contract.md``: what the sandbox is compared with a real server in, and where the two may differ.

``python -m tests.support.contract_document`` writes the page; a test fails while the page is stale.
"""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path
from typing import Any

from tests.contract.cases.catalogue import CASES, Case, groups
from tests.contract.cases.intended import INTENDED
from tests.contract.cases.not_compared import NOT_COMPARED
from tests.contract.cases.recording import read_answers, recorded_version

PAGE = Path(__file__).resolve().parents[2] / "docs" / "contract.md"

_HEAD = """# One contract, two servers

Made by `make rules` from the cases and the recorded answers; do not edit.

A case is a short conversation: a few requests, and what is read back behind them. The same code holds it with the
sandbox and with a real Infrahub {version}. `make live` compares every answer of the real server with the recorded one;
`make test` compares every answer of the sandbox with the recorded one. So the two servers are equal in all of the
{cases} cases and their {steps} answers, but for the {intended} places that are listed below; a difference that is
not listed fails, and so does a listed one that is no longer there. What no case asks is listed behind them.

Compared in each answer: HTTP status, the headers `retry-after` and `x-infrahub-admission`, whether the body is JSON,
and all of `data` and `errors` with messages, paths, codes, statuses and data. Ids, times and names that belong to one
run are written as what they stand for. Objects, errors and lists of permissions have no order, except where a case
notes in which order objects came; the server names the faults of several fields in another order from one server to the
next. Positions in the document (`locations`) are left out: they follow from the text that was sent.

Every kind of the inventories' schema has a case (group `kind`), made from the schema itself.

Record anew after a change of cases or of the pinned server, with a test server's address in the variables of
`make live`: `python -m tests.contract.cases.recording [group or case ...]`.

"""


def render() -> str:
    """The page."""
    answers = read_answers()
    steps = sum(len(transcript) for transcript in answers.values())
    head = _HEAD.format(version=recorded_version(), cases=len(CASES), steps=steps, intended=len(INTENDED))
    lines = [
        head + "## What is compared",
        "",
        "| group | cases | answers | refusals by code |",
        "| --- | ---: | ---: | --- |",
    ]
    lines += [_group(name, cases, answers) for name, cases in groups()]
    lines += ["", "## Intended differences", "", "| case | place | why |", "| --- | --- | --- |"]
    lines += [f"| {entry.case} | `{entry.where}` | {entry.reason} |" for entry in INTENDED]
    lines += ["", "## Not compared", "", "| what | why | in its place |", "| --- | --- | --- |"]
    lines += [f"| {_cell(item.what)} | {_cell(item.why)} | {_cell(item.instead)} |" for item in NOT_COMPARED]
    lines += [
        "",
        "## What can hurt",
        "",
        "Answers that look like success and are none, or refuse where none is expected.",
        "",
    ]
    lines += ["| case | shows |", "| --- | --- |"]
    lines += [
        f"| {case.name} | {_cell(case.shows.removeprefix('[haz] '))} |" for case in CASES.values() if _hurts(case)
    ]
    lines += ["", "## All cases", ""]
    for name, cases in groups():
        lines += [f"### {name}", "", "| case | shows |", "| --- | --- |"]
        lines += [f"| {case.label} | {_cell(case.shows)} |" for case in cases]
        lines.append("")
    return "\n".join(lines).rstrip() + "\n"


def _group(name: str, cases: list[Case], answers: dict[str, list[dict[str, Any]]]) -> str:
    transcripts = [answers[case.name] for case in cases]
    steps = [step for transcript in transcripts for step in transcript]
    codes = Counter(code for step in steps for code in _codes(step))
    shown = ", ".join(f"{code} {count}" for code, count in sorted(codes.items()))
    return f"| {name} | {len(cases)} | {len(steps)} | {shown or '–'} |"


def _codes(step: dict[str, Any]) -> list[str]:
    bodies = [answer.get("answer") for answer in step.get("answers", (step,))]
    errors = [error for body in bodies if isinstance(body, dict) for error in body.get("errors") or ()]
    coded = [error.get("extensions", {}) if isinstance(error, dict) else {} for error in errors]
    return [f"{marks.get('code', 'none')}/{marks.get('http_status', step.get('status'))}" for marks in coded]


def _hurts(case: Case) -> bool:
    return case.shows.startswith("[haz]")


def _cell(text: str) -> str:
    return text.replace("|", "/").replace("\n", " ").replace("<", "&lt;")


if __name__ == "__main__":
    PAGE.write_text(render(), encoding="utf-8")
    sys.stdout.write("wrote docs/contract.md\n")
