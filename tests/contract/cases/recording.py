"""The answers of a real server, recorded once: what the sandbox is held to where no such server is at hand.

``python -m tests.contract.cases.recording`` asks the server of ``APPLY_LEDGER_TEST_INFRAHUB_ADDRESS`` and writes them
anew; with names of cases or groups behind it only those.
"""

from __future__ import annotations

import json
import os
import secrets
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import httpx

from tests.contract.cases.case import Case
from tests.contract.cases.catalogue import CASES
from tests.contract.cases.schema import SERVED_FILE, ensure_probe_kinds, served_probe_kinds
from tests.contract.cases.talk import Place, hold

ANSWERS_FILE = Path(__file__).parents[1] / "recorded" / "answers.json"

Transcript = list[dict[str, Any]]


def read_answers() -> dict[str, Transcript]:
    """Transcripts by the name of their case."""
    answers: dict[str, Transcript] = json.loads(ANSWERS_FILE.read_text(encoding="utf-8"))["cases"]
    return answers


def recorded_version() -> str:
    """The version of the server whose answers are recorded."""
    return str(json.loads(ANSWERS_FILE.read_text(encoding="utf-8"))["version"])


@contextmanager
def place_on(url: str, token: str, *, reader: tuple[str, str] | None = None) -> Iterator[Place]:
    """A place on a server: a branch for one run of the cases. What the run made is removed after it: the next one
    counts what is on the default branch.

    ``reader`` are a token that only reads and one that has expired; None makes an account and both of its tokens.
    """
    run = f"p{secrets.token_hex(3)}"
    branch = f"{run}-contract"
    with ExitStack() as stack:
        http = stack.enter_context(
            httpx.Client(base_url=url, headers={"X-INFRAHUB-KEY": token}, trust_env=False, timeout=120)
        )
        reader_token, old_token = reader or stack.enter_context(_new_reader(http, f"{run}-reader"))
        place = Place(url, token, reader_token, old_token, branch, run)
        made = "mutation B($data: BranchCreateInput!) { BranchCreate(data: $data) { ok } }"
        _answered(http, made, {"name": branch})
        place.made.branches[branch] = None
        stack.callback(place.made.remove, http)
        yield place


@contextmanager
def _new_reader(http: httpx.Client, name: str) -> Iterator[tuple[str, str]]:
    """An account that was given no role; a token of its own that is valid, and one that expired long ago."""
    password = secrets.token_hex(16)
    account = {"name": {"value": name}, "password": {"value": password}}
    created = _answered(http, _NEW_ACCOUNT, account)["CoreAccountCreate"]["object"]["id"]
    try:
        # without cookies: those of a login would speak for the administrator's requests as well
        with httpx.Client(base_url=http.base_url, trust_env=False, timeout=120) as theirs:
            signed_in = theirs.post("/api/auth/login", json={"username": name, "password": password})
            bearer = {"Authorization": f"Bearer {signed_in.raise_for_status().json()['access_token']}"}
            made = [
                _answered(theirs, _NEW_TOKEN, {"name": name, **until}, bearer)["InfrahubAccountTokenCreate"]["object"]
                for until in ({}, {"expiration": "2020-01-01T00:00:00Z"})
            ]
            valid, expired = (str(item["token"]["value"]) for item in made)
            try:
                yield valid, expired
            finally:
                for item in made:
                    _answered(theirs, _DELETE_TOKEN, {"id": item["id"]}, bearer)
    finally:
        _answered(http, _DELETE_ACCOUNT, {"id": created})


_NEW_ACCOUNT = "mutation A($data: CoreAccountCreateInput!) { CoreAccountCreate(data: $data) { ok object { id } } }"
_DELETE_ACCOUNT = "mutation A($data: DeleteInput!) { CoreAccountDelete(data: $data) { ok } }"
_NEW_TOKEN = """mutation T($data: InfrahubAccountTokenCreateInput!) {
  InfrahubAccountTokenCreate(data: $data) { object { id token { value } } }
}"""
_DELETE_TOKEN = "mutation T($data: InfrahubAccountTokenDeleteInput!) { InfrahubAccountTokenDelete(data: $data) { ok } }"


def _answered(
    http: httpx.Client, text: str, data: dict[str, Any], headers: dict[str, str] | None = None
) -> dict[str, Any]:
    answer = http.post("/graphql/main", json={"query": text, "variables": {"data": data}}, headers=headers)
    document: dict[str, Any] = answer.json()
    if answer.status_code != 200 or "errors" in document:
        raise RuntimeError(f"HTTP {answer.status_code}: {answer.text[:500]}")
    made: dict[str, Any] = document["data"]
    return made


def held_at(place: Place, case: Case) -> Transcript:
    """The transcript of one case, as JSON has it."""
    transcript: Transcript = json.loads(json.dumps(hold(case.name, case.hold, place)))
    return transcript


def write_answers(answers: dict[str, Transcript], version: str) -> None:
    """One line a step, so that a change of an answer is a change of one line."""
    parts = []
    for name in sorted(answers):
        steps = ",\n".join(f"   {json.dumps(step, sort_keys=True)}" for step in answers[name])
        parts.append(f"  {json.dumps(name)}: [\n{steps}\n  ]")
    body = ",\n".join(parts)
    text = f'{{\n "version": {json.dumps(version)},\n "cases": {{\n{body}\n }}\n}}\n'
    ANSWERS_FILE.write_text(text, encoding="utf-8")


def write_schema(kinds: dict[str, Any]) -> None:
    """One line a kind."""
    parts = []
    for part, items in sorted(kinds.items()):
        lines = ",\n".join(f"  {json.dumps(item, sort_keys=True)}" for item in items)
        parts.append(f" {json.dumps(part)}: [\n{lines}\n ]")
    SERVED_FILE.write_text("{\n" + ",\n".join(parts) + "\n}\n", encoding="utf-8")


def _chosen(wanted: list[str]) -> list[Case]:
    return [case for case in CASES.values() if not wanted or {case.name, case.group} & set(wanted)]


def main(wanted: list[str]) -> None:
    """Record the chosen cases; the answers of cases that are gone go too."""
    url = os.environ["APPLY_LEDGER_TEST_INFRAHUB_ADDRESS"]
    token = os.environ["APPLY_LEDGER_TEST_INFRAHUB_TOKEN"]
    ensure_probe_kinds(url, token)
    write_schema(served_probe_kinds(url, token))
    kept = read_answers() if ANSWERS_FILE.exists() else {}
    answers = {name: kept[name] for name in kept if name in CASES}
    version = httpx.get(f"{url}/api/info", trust_env=False).json()["version"]
    try:
        with place_on(url, token) as place:
            for case in _chosen(wanted):
                answers[case.name] = held_at(place, case)
    finally:
        write_answers(answers, version)
    sys.stdout.write(f"recorded {len(_chosen(wanted))} of {len(CASES)} cases on Infrahub {version}\n")


if __name__ == "__main__":
    main(sys.argv[1:])
