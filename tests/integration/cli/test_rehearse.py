"""``rehearse`` through the program: what it says is what an apply then does, and it leaves nothing anywhere."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from consumers.infrahub.sandbox.server import RunningSandbox
from ledger.store.embedded import EmbeddedPostgres
from ledger.store.ledger import Ledger
from tests.support.command_here import CommandHere
from tests.support.command_line import TOKEN, CommandLine

SCHEMA = Path(__file__).resolve().parents[2] / "data" / "schema-api.json"
pytestmark = pytest.mark.integration


def _rehearsed(
    here: CommandHere, run: str, *options: str, code: int = 0, environment: dict[str, str] | None = None
) -> dict[str, Any]:
    done = here.run("rehearse", run, "--output", "json", *options, **(environment or {}))
    assert done.returncode == code, done.stderr
    document: dict[str, Any] = json.loads(done.stdout)
    return document


def _outcomes(document: dict[str, Any]) -> dict[str, str]:
    return {effect["identity"]["name"]: effect["outcome"] for effect in document["effects"]}


async def _events(cli: CommandLine) -> int:
    dsns = await EmbeddedPostgres(cli.data_dir).ensure_running()
    async with await Ledger.open(dsns.reader) as ledger:
        return sum(row.head_position for row in await ledger.bindings())


@pytest.mark.rules("G1", "P36", "P65")
def test_what_is_rehearsed_is_what_an_apply_then_does(cli: CommandLine, here: CommandHere) -> None:
    cli.source({"name": "red", "description": "old"}, {"name": "green", "description": "kept"})
    assert cli.apply(cli.plan()).returncode == 0
    cli.source({"name": "red", "description": "new"}, {"name": "green", "description": "kept"}, {"name": "blue"})
    planned = cli.plan()
    before = (cli.mutations(), asyncio.run(_events(cli)), sorted(cli.folder.rglob("*")))
    document = _rehearsed(here, planned["run"])
    assert (cli.mutations(), asyncio.run(_events(cli)), sorted(cli.folder.rglob("*"))) == before
    assert _outcomes(document) == {"red": "updated", "blue": "created"}
    assert document["counts"] == {"created": 1, "updated": 1, "unchanged": 0, "refused": 0, "skipped": 0}
    assert document["observed"]["objects"] == 2
    (red,) = (effect for effect in document["effects"] if effect["outcome"] == "updated")
    assert red["fields"] == [{"field": "description", "before": "old", "after": "new"}]
    assert cli.apply(planned).returncode == 0
    assert cli.mutations() == before[0] + 2


@pytest.mark.rules("P80", "P66")
def test_an_operation_that_would_be_refused_ends_with_4_and_the_others_are_told_too(
    cli: CommandLine, here: CommandHere
) -> None:
    """The object of an update is deleted from the snapshot, as if it had gone: the plan still names its id."""
    cli.source({"name": "red", "description": "old"}, {"name": "green", "description": "old"})
    assert cli.apply(cli.plan()).returncode == 0
    cli.source({"name": "red", "description": "new"}, {"name": "green", "description": "new"})
    planned = cli.plan()
    (cli.folder / "runs" / planned["run"] / "B" / "BuiltinTag.parquet").unlink()
    document = _rehearsed(here, planned["run"], code=4)
    assert set(_outcomes(document).values()) == {"refused"}
    first, second = document["effects"]
    assert document["stopped_at"] == first["operation_id"]
    assert document["reached"] == 1
    assert (first["after_stop"], second["after_stop"]) == (False, True)
    assert first["refusal"]["name"] == "StaleDestinationIdError"
    shown = here.run("rehearse", planned["run"])
    assert shown.returncode == 4
    assert f"an apply would stop at {first['operation_id']}, operation 1 of 2; 1 would not be attempted" in shown.stdout


@pytest.mark.rules("P102", "G11", "G12")
def test_a_plan_that_the_gate_would_refuse_ends_with_3_before_anything_is_rehearsed(
    cli: CommandLine, here: CommandHere, tmp_path: Path
) -> None:
    """The destination's schema is another one by now: the description may have four characters at most."""
    cli.source({"name": "red", "description": "far too long"}, {"name": "green", "description": "also too long"})
    planned = cli.plan()
    document = json.loads(SCHEMA.read_text(encoding="utf-8"))
    (tag,) = (node for node in document["nodes"] if node["kind"] == "BuiltinTag")
    (description,) = (item for item in tag["attributes"] if item["name"] == "description")
    description["parameters"] = {"max_length": 4}
    narrow = tmp_path / "narrow.json"
    narrow.write_text(json.dumps(document), encoding="utf-8")
    done = here.run("rehearse", planned["run"], "--schema", str(narrow))
    assert done.returncode == 3, done.stderr
    assert "RehearsalRefusedError" in done.stderr or "2 findings" in done.stderr
    assert done.stderr.count("description") >= 2
    assert done.stdout == ""


def test_with_a_schema_file_nobody_is_asked_and_no_token_is_needed(cli: CommandLine, here: CommandHere) -> None:
    cli.source({"name": "red"})
    planned = cli.plan()
    nobody = {"INFRAHUB_ADDRESS": "", "INFRAHUB_API_TOKEN": ""}
    document = _rehearsed(here, planned["run"], "--schema", str(SCHEMA), environment=nobody)
    assert _outcomes(document) == {"red": "created"}
    assert "not contacted" in document["schema"]["from"]


def test_lines_and_tables_say_the_same(cli: CommandLine, here: CommandHere) -> None:
    cli.source({"name": "red", "description": "words"}, {"name": "blue"})
    planned = cli.plan()
    lines = [json.loads(line) for line in here.run("rehearse", planned["run"], "-o", "ndjson").stdout.splitlines()]
    assert lines[0] == {"stream": "rehearsal", "version": 1}
    assert [line["record"] for line in lines[1:]] == ["rehearsal", "effect", "effect", "summary"]
    assert lines[-1]["counts"]["created"] == 2
    shown = here.run("rehearse", planned["run"], "--detail")
    assert shown.returncode == 0
    assert '+ created   BuiltinTag(name="red")' in shown.stdout
    assert 'description: "words"' in shown.stdout
    assert shown.stdout.splitlines()[-1] == "2 created · 0 updated · 0 unchanged · 0 refused · 0 skipped"
    assert f"apply-ledger apply {planned['run']} --expected-checksum {planned['plan_checksum']}" in shown.stderr


def test_a_kind_that_the_plan_does_not_have_is_a_usage_error(cli: CommandLine, here: CommandHere) -> None:
    cli.source({"name": "red"})
    done = here.run("rehearse", cli.plan()["run"], "--kind", "BuiltinTagg")
    assert done.returncode == 64
    assert "did you mean BuiltinTag" in done.stderr


@pytest.mark.rules("G5")
def test_the_destination_sees_nothing_but_reads(cli: CommandLine, here: CommandHere) -> None:
    """Everything between the program and the destination is recorded: one request for the schema, and nothing else."""
    cli.source({"name": "red"}, {"name": "blue"})
    planned = cli.plan()
    with _recording(cli.sandbox) as (url, requests):
        config = cli.folder / "apply-ledger.toml"
        config.write_text(
            f'[[destination]]\nurl = "{url}"\nbranch = "{cli.branch}"\naliases = ["{cli.sandbox.url}"]\n', "utf-8"
        )
        document = _rehearsed(here, planned["run"], environment={"INFRAHUB_ADDRESS": "", "INFRAHUB_DEFAULT_BRANCH": ""})
    assert _outcomes(document) == {"red": "created", "blue": "created"}
    assert requests == [f"GET /api/schema?branch={cli.branch}"]


@contextmanager
def _recording(sandbox: RunningSandbox) -> Iterator[tuple[str, list[str]]]:
    """A server before the sandbox that notes every request; writes are not passed on."""
    import httpx

    requests: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._passed_on("GET", b"")

        def do_POST(self) -> None:
            self._passed_on("POST", self.rfile.read(int(self.headers.get("content-length", "0"))))

        def _passed_on(self, method: str, body: bytes) -> None:
            requests.append(f"{method} {self.path}")
            answer = httpx.request(
                method,
                f"{sandbox.url}{self.path}",
                content=body,
                headers={"X-INFRAHUB-KEY": TOKEN, "content-type": "application/json"},
                trust_env=False,
            )
            self.send_response(answer.status_code)
            self.send_header("content-length", str(len(answer.content)))
            self.send_header("content-type", "application/json")
            self.end_headers()
            self.wfile.write(answer.content)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}", requests
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
