"""``doctor`` and ``rehearse`` before a real Infrahub: what they say of it is so."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from ledger.cli.main import main
from tests.live.infrahub import LiveBranch, LiveInfrahub
from tests.live.program import LiveProgram
from tests.support.command_line import CONFIGURATION

pytestmark = [pytest.mark.live, pytest.mark.timeout(300)]

_NEW_ACCOUNT = "mutation($data: CoreAccountCreateInput!) { CoreAccountCreate(data: $data) { ok object { id } } }"
_DELETE_ACCOUNT = "mutation($id: String!) { CoreAccountDelete(data: {id: $id}) { ok } }"
_NEW_TOKEN = 'mutation { InfrahubAccountTokenCreate(data: {name: "doctor"}) { object { token { value } } } }'


def _source(folder: Path, *rows: dict[str, Any]) -> Path:
    (folder / "data").mkdir(exist_ok=True)
    lines = "".join(json.dumps({"id": str(number), **row}) + "\n" for number, row in enumerate(rows))
    (folder / "data" / "tags.jsonl").write_text(lines, encoding="utf-8")
    path = folder / "config.yml"
    path.write_text(CONFIGURATION, encoding="utf-8")
    return path


def _run(
    program: LiveProgram,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    *arguments: str,
    token: str | None = None,
) -> tuple[int, dict[str, Any]]:
    """One call in this process; the exit code and the document."""
    with monkeypatch.context() as patched:
        patched.chdir(program.folder)
        for name in os.environ.keys() - program.environment.keys():
            patched.delenv(name)
        for name, value in program.environment.items():
            patched.setenv(name, value)
        if token is not None:
            patched.setenv("INFRAHUB_API_TOKEN", token)
        capsys.readouterr()
        code = main([*arguments, "--output", "json"])
        said = capsys.readouterr()
    document: dict[str, Any] = json.loads(said.out) if said.out else {"error": said.err}
    return code, document


def _verdicts(document: dict[str, Any]) -> dict[str, str]:
    return {check["check"]: check["verdict"] for check in document["checks"] if check["subject"].startswith("http")}


@pytest.mark.rules("P43")
def test_the_doctor_finds_a_real_server_well(
    live_program: LiveProgram, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    config = str(_source(live_program.folder, {"name": "red"}))
    code, document = _run(live_program, monkeypatch, capsys, "doctor", "--config-file", config)
    assert code == 0, document
    found = _verdicts(document)
    assert set(found) >= {"version", "clock", "keep-alive", "token", "branch", "schema", "kinds", "permissions"}
    of_server = [check for check in document["checks"] if check["subject"].startswith("http")]
    assert [check for check in of_server if check["verdict"] != "good"] == []


@pytest.fixture
def powerless(live_infrahub: LiveInfrahub) -> Iterator[str]:
    """The token of an account without any role."""
    name, password = "doctor-without-roles", "a-password-of-the-tests-1"
    data = {"name": {"value": name}, "password": {"value": password}}
    account = live_infrahub.query(_NEW_ACCOUNT, {"data": data})["CoreAccountCreate"]["object"]["id"]
    login = {"username": name, "password": password}
    session = httpx.post(f"{live_infrahub.url}/api/auth/login", json=login, trust_env=False, timeout=60).json()
    made = httpx.post(
        f"{live_infrahub.url}/graphql/main",
        json={"query": _NEW_TOKEN},
        headers={"authorization": f"Bearer {session['access_token']}"},
        trust_env=False,
        timeout=60,
    ).json()
    yield str(made["data"]["InfrahubAccountTokenCreate"]["object"]["token"]["value"])
    live_infrahub.query(_DELETE_ACCOUNT, {"id": account})


@pytest.mark.rules("G12")
def test_an_account_without_roles_is_told_what_it_may_not_do_before_anything_is_tried(
    live_program: LiveProgram,
    live_branch: LiveBranch,
    powerless: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    config = str(_source(live_program.folder, {"name": "red"}))
    code, document = _run(live_program, monkeypatch, capsys, "doctor", "--config-file", config, token=powerless)
    assert code == 1
    found = _verdicts(document)
    assert (found["token"], found["branch"], found["permissions"]) == ("good", "good", "failure")
    (said,) = (check for check in document["checks"] if check["check"] == "permissions")
    assert said["facts"]["kinds"] == ["BuiltinTag"]
    assert set(said["facts"]["actions"]) == {"view", "create", "update"}
    # and that is so
    answer = live_branch.infrahub.__class__(live_branch.url, powerless).post(
        'mutation { BuiltinTagCreate(data: {name: {value: "x"}}) { ok } }', branch=live_branch.name
    )
    assert answer.status_code == 403
    assert powerless not in json.dumps(document)


@pytest.mark.rules("G12")
def test_a_wrong_token_and_a_branch_that_is_not_there_are_told_apart(
    live_program: LiveProgram, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    config = str(_source(live_program.folder, {"name": "red"}))
    code, document = _run(live_program, monkeypatch, capsys, "doctor", "--config-file", config, token="no-token-of-it")
    assert (code, _verdicts(document)["token"], _verdicts(document)["branch"]) == (1, "failure", "skipped")
    monkeypatch.setattr(LiveProgram, "environment", _elsewhere(live_program))
    code, document = _run(live_program, monkeypatch, capsys, "doctor", "--config-file", config)
    assert (code, _verdicts(document)["token"], _verdicts(document)["branch"]) == (1, "good", "failure")


def _elsewhere(program: LiveProgram) -> dict[str, str]:
    return program.environment | {"INFRAHUB_DEFAULT_BRANCH": "no-such-branch"}


@pytest.mark.rules("G1")
def test_what_is_rehearsed_is_what_the_real_server_then_does(
    live_program: LiveProgram,
    live_branch: LiveBranch,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    config = _source(live_program.folder, {"name": "red", "description": "old"}, {"name": "green"})
    live_program.apply(live_program.plan(config))
    _source(live_program.folder, {"name": "red", "description": "new"}, {"name": "green"}, {"name": "blue"})
    planned = live_program.plan(config)
    before = _tags(live_branch)
    code, document = _run(live_program, monkeypatch, capsys, "rehearse", planned["run"])
    assert code == 0, document
    assert _tags(live_branch) == before
    outcomes = {effect["identity"]["name"]: effect for effect in document["effects"]}
    assert {name: effect["outcome"] for name, effect in outcomes.items()} == {"red": "updated", "blue": "created"}
    live_program.apply(planned)
    after = _tags(live_branch)
    assert set(after) - set(before) == {"blue"}
    for field in outcomes["red"]["fields"]:
        assert before["red"][field["field"]] == field["before"]
        assert after["red"][field["field"]] == field["after"]


def _tags(branch: LiveBranch) -> dict[str, dict[str, Any]]:
    data = branch.query("query { BuiltinTag { edges { node { name { value } description { value } } } } }")
    nodes = [edge["node"] for edge in data["BuiltinTag"]["edges"]]
    return {node["name"]["value"]: {name: held["value"] for name, held in node.items()} for node in nodes}
