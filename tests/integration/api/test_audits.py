"""Audits over HTTP: what they answer is, byte for byte, what the commands write."""

from __future__ import annotations

import io
import json
import tarfile
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from ledger.api.limits import ApiLimits
from ledger.api.tokens import Role
from ledger.audit.checkpoint import Checkpoint, read_checkpoint
from ledger.audit.keys import KeyFolder
from ledger.audit.signed_note import SigningKey
from ledger.events import PlanSealed, new_event
from ledger.store.ledger import Ledger
from tests.support.api import BASE, Served, served
from tests.support.command_on_ledger import CommandOnLedger
from tests.support.store import connection_to, until
from tests.support.tampering import unguarded
from tests.support.told_story import UPDATED

pytestmark = pytest.mark.integration

RED = UPDATED.operations[0].operation_id
HERE = f"{BASE}/bindings/1"
JSON = {"Content-Type": "application/json"}
STRANGER = SigningKey("stranger", Ed25519PrivateKey.from_private_bytes(bytes(range(1, 33))))


@pytest.fixture
def command(
    told_dsns: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> CommandOnLedger:
    """Commands on the told ledger; there is one key, which signs."""
    made = CommandOnLedger(told_dsns, tmp_path, monkeypatch, capsys)
    KeyFolder(made.keys).new("tests")
    return made


@pytest.fixture
async def told(told_dsns: dict[str, str], command: CommandOnLedger) -> AsyncIterator[Served]:
    async with served(told_dsns, keys=command.keys, limits=ApiLimits(requests_per_second=1e6)) as opened:
        yield opened


async def _published(command: CommandOnLedger) -> dict[str, Any]:
    [found] = json.loads(await command.run("checkpoint", "publish", "--output", "json"))
    done: dict[str, Any] = found
    return done


def _refused(response: httpx.Response) -> tuple[int, str]:
    return response.status_code, response.json()["code"]


@pytest.mark.rules("G6")
@pytest.mark.parametrize("options", [{}, {"at": "5"}, {"at": "2999-01-01"}, {"at": "0"}, {"kind": "BuiltinTag"}])
async def test_g06_the_state_over_http_is_the_commands_line_for_line(
    told: Served, command: CommandOnLedger, options: dict[str, str]
) -> None:
    async with told.client(Role.AUDITOR) as client:
        found = await client.get(f"{HERE}/state", params=options)
        again = await client.get(f"{HERE}/state", params=options, headers={"If-None-Match": found.headers["etag"]})
    named = [text for name, value in options.items() for text in (f"--{name}", value)]
    lines = (await command.run("replay", "--state", *named, "--output", "ndjson")).splitlines(keepends=True)
    assert found.headers["content-type"] == "application/x-ndjson"
    *told_lines, last = found.text.splitlines(keepends=True)
    assert told_lines == lines
    assert json.loads(last) == {"stream": "state", "complete": True, "records": len(lines) - 1}
    assert (len(lines) > 1) is (options.get("at") != "0")
    assert (again.status_code, again.content) == (304, b"")


@pytest.mark.rules("G6")
@pytest.mark.parametrize("places", [("4", "2999-01-01"), ("99", "4"), ("4", "4")])
async def test_g06_a_diff_over_http_is_the_commands_line_for_line(
    told: Served, command: CommandOnLedger, places: tuple[str, str]
) -> None:
    async with told.client(Role.AUDITOR) as client:
        found = await client.get(f"{HERE}/state/diff", params={"from": places[0], "to": places[1]})
    lines = (await command.run("replay", "--diff", *places, "--output", "ndjson")).splitlines(keepends=True)
    *told_lines, last = found.text.splitlines(keepends=True)
    assert told_lines == lines
    assert json.loads(last) == {"stream": "state-diff", "complete": True, "records": len(lines) - 1}
    assert (len(lines) > 1) is (places != ("4", "4"))


async def test_a_state_is_told_apart_by_what_decides_it(told: Served) -> None:
    paths = ["state?at=5", "state?at=6", "state?at=5&kind=BuiltinTag", "state", "state/diff?from=5&to=6",
             "state/diff?from=6&to=5"]  # fmt: skip
    async with told.client(Role.AUDITOR) as client:
        tags = [(await client.get(f"{HERE}/{path}")).headers["etag"] for path in paths]
        late = (await client.get(f"{HERE}/state", params={"at": "999"})).headers["etag"]
    assert len(set(tags)) == len(paths)
    assert late == tags[3]  # the head by another name


async def test_what_cannot_be_asked_is_refused_by_name(told: Served) -> None:
    async with told.client(Role.AUDITOR) as client:
        for path, refusal in {
            f"{HERE}/state?at=yesterday": (400, "InvalidPlaceError"),
            f"{HERE}/state?at=-1": (400, "InvalidPlaceError"),
            f"{HERE}/state/diff?from=1": (422, "InvalidRequestError"),
            f"{HERE}/state?until=1": (422, "InvalidRequestError"),
            f"{HERE}/export?row_group=0": (422, "InvalidRequestError"),
            f"{BASE}/bindings/9/state": (404, "NotThereError"),
            f"{BASE}/bindings/9/export": (404, "NotThereError"),
            f"{HERE}/checkpoints/1": (404, "NotThereError"),
            f"{HERE}/checkpoints?cursor=x": (400, "InvalidCursorError"),
            f"{HERE}/runs/run-update/proofs/op_{'0' * 16}": (404, "OperationNotProvableError"),
            f"{HERE}/runs/run-update/proofs/{RED}": (409, "NoCheckpointForProofError"),
        }.items():
            assert _refused(await client.get(path)) == refusal, path


def _reports(printed: str) -> Any:
    """What a command found; it adds when, where and with what it looked."""
    return [{name: value for name, value in report.items() if name != "verification"} for report in json.loads(printed)]


@pytest.mark.rules("G8")
async def test_g08_a_verification_over_http_is_the_commands_report(told: Served, command: CommandOnLedger) -> None:
    async with told.client(Role.AUDITOR) as client:
        await _projected(client)
        plain = await client.post(f"{HERE}/verify")
        assert [plain.json()] == _reports(await command.run("verify", "--output", "json"))
        done = await _published(command)
        note = (command.folder / done["file"]).read_text()
        await _projected(client)
        kept = await client.post(f"{HERE}/verify", json={"checkpoints": [note]})
        file = ("--checkpoint", done["file"])
        [told_kept] = _reports(_named(await command.run("verify", *file, "--output", "json"), done["file"]))
        for ours, theirs in zip(kept.json()["levels"], told_kept["levels"], strict=True):
            assert ours == theirs
        assert kept.json() == told_kept
        resumed = await client.post(f"{HERE}/verify", json={"resume_from": note})
    assert plain.json()["holds"] is kept.json()["holds"] is resumed.json()["holds"] is True
    assert (kept.json()["events"], resumed.json()["events"]) == (done["position"] + 1, 1)


async def _projected(client: httpx.AsyncClient) -> None:
    """The read side is part of a report, so it has to be as far as the log."""

    async def is_there() -> bool:
        found = (await client.get(HERE)).json()
        return bool(found["projected_position"] == found["head_position"])

    await until(is_there)


def _named(text: str, file: str) -> str:
    """What the command printed, with the name that a checkpoint has over HTTP for that of its file."""
    return text.replace(file, "checkpoints 0")


@pytest.mark.rules("G8")
async def test_g08_an_edited_ledger_is_told_and_so_is_a_head_that_was_rewritten(
    told: Served, told_dsns: dict[str, str], command: CommandOnLedger
) -> None:
    done = await _published(command)
    note = (command.folder / done["file"]).read_text()
    said = read_checkpoint(note.encode()).checkpoint
    other = Checkpoint(said.url, said.branch, 3, bytes(32), bytes(32), said.signed_at)
    [ours] = KeyFolder(command.keys).signing()
    async with told.client(Role.AUDITOR) as client:
        false = await client.post(f"{HERE}/verify", json={"checkpoints": [other.note([ours])]})
        unsigned = await client.post(f"{HERE}/verify", json={"checkpoints": [other.note([STRANGER])]})
        named = {"checkpoints": [note], "keys": [STRANGER.public.text()]}
        by_others = await client.post(f"{HERE}/verify", json=named)
        async with connection_to(told_dsns["admin"]) as admin, unguarded(admin):
            await admin.execute("update ledger.event set body = replace(body, 'ada', 'eve') where position = 2")
        edited = await client.post(f"{HERE}/verify", json={})
    assert {response.status_code for response in (false, edited)} == {200}
    assert _findings(false) == {"CheckpointMismatch", "CheckpointTreeMismatch"}
    # trouble with the evidence is no finding about the ledger
    assert [_refused(answer) for answer in (unsigned, by_others)] == [(409, "NoteNotTrustedError")] * 2
    assert "ChainHash" in _findings(edited)
    assert edited.json()["first_break"]["position"] == 2


def _findings(response: httpx.Response) -> set[str]:
    assert response.json()["holds"] is False
    return {finding["name"] for level in response.json()["levels"] for finding in level["findings"]}


@pytest.mark.rules("G8")
async def test_g08_no_evidence_is_passed_over_in_silence(
    told: Served, told_dsns: dict[str, str], command: CommandOnLedger
) -> None:
    done = await _published(command)
    note = (command.folder / done["file"]).read_text()
    said = read_checkpoint(note.encode()).checkpoint
    [ours] = KeyFolder(command.keys).signing()
    elsewhere = Checkpoint("http://other.example", "main", 3, bytes(32), bytes(32), said.signed_at).note([ours])
    async with told.client(Role.AUDITOR) as client:
        for body, refusal in (
            ({"checkpoints": [elsewhere]}, (409, "CheckpointOfNoBindingError")),
            ({"resume_from": elsewhere}, (409, "CheckpointOfNoBindingError")),
            ({"checkpoints": [note, "no note"]}, (400, "InvalidEvidenceError")),
            ({"resume_from": "\ud800\n\n"}, (422, "InvalidRequestError")),
            ({"checkpoints": [note], "keys": ["no key"]}, (400, "InvalidEvidenceError")),
            ({"checkpoint": note}, (422, "InvalidRequestError")),
        ):
            answer = await client.post(f"{HERE}/verify", content=json.dumps(body), headers=JSON)
            assert _refused(answer) == refusal, body
    async with served(told_dsns, tokens=told.tokens) as keyless, keyless.client(Role.AUDITOR) as client:
        without = await client.post(f"{HERE}/verify", json={"checkpoints": [note]})
        assert _refused(without) == (409, "NoTrustedKeyError")
        named = {"checkpoints": [note], "keys": [ours.public.text()]}
        assert (await client.post(f"{HERE}/verify", json=named)).json()["holds"]


@pytest.mark.rules("G8")
async def test_g08_checkpoints_are_listed_and_each_note_is_the_published_file(
    told: Served, told_dsns: dict[str, str], command: CommandOnLedger
) -> None:
    first = await _published(command)
    await _seal_something(told_dsns)
    second = await _published(command)
    listed = json.loads(await command.run("checkpoint", "list", "--output", "json"))
    async with told.client(Role.AUDITOR) as client:
        items = await _pages(client, f"{HERE}/checkpoints")
        for item, row, done in zip(items, listed, (second, first), strict=True):
            assert {
                name: item[name] for name in ("event", "position", "head_hash", "tree_root", "signed_at", "keys")
            } == {name: row[name] for name in ("event", "position", "head_hash", "tree_root", "signed_at", "keys")}
            note = await client.get(f"{HERE}/checkpoints/{item['event']}")
            file = command.folder / done["file"]
            assert note.content == file.read_bytes()
            assert note.headers["content-disposition"] == f'attachment; filename="{file.name}"'
            assert note.headers["content-type"].startswith("text/plain")
        async with connection_to(told_dsns["admin"]) as admin, unguarded(admin):
            await admin.execute("update ledger.event set body = '{}' where position = $1", first["event"])
        forged = await _pages(client, f"{HERE}/checkpoints")
        assert [(item["event"], item["readable"]) for item in forged] == [
            (second["event"], True),
            (first["event"], False),
        ]
        assert (await client.get(f"{HERE}/checkpoints/{first['event']}")).status_code == 404
        keys = (await client.get(f"{BASE}/checkpoint-keys")).json()
    assert keys == json.loads(await command.run("checkpoint", "key", "list", "--output", "json"))


async def _seal_something(dsns: dict[str, str]) -> None:
    """Behind a checkpoint nothing needs another one before something was recorded."""
    async with await Ledger.open(dsns["writer"], allow_unsafe_fsync=True) as ledger:
        [row] = await ledger.bindings()
        seal = PlanSealed(plan_checksum="a" * 64, operations_count=0, lines_root="b" * 64)
        event = new_event("plan.sealed", seal, url=row.url, branch=row.branch, n="again")
        await ledger.append_control(row.id, [event])


async def _pages(client: httpx.AsyncClient, path: str) -> list[dict[str, Any]]:
    """All of a list, one to a page."""
    items, cursor = [], None
    while True:
        page = (await client.get(path, params={"limit": 1} | ({"cursor": cursor} if cursor else {}))).json()
        items += page["items"]
        cursor = page["next"]
        if cursor is None:
            return items


@pytest.mark.rules("G8", "C40")
async def test_g08_an_export_over_http_is_the_commands_and_is_verified_offline(
    told: Served, told_dsns: dict[str, str], command: CommandOnLedger
) -> None:
    await _published(command)
    async with told.client(Role.AUDITOR) as client:
        answer = await client.get(f"{HERE}/export", params={"row_group": "10"})
        bare = await client.get(f"{HERE}/export", params={"ndjson": "false"})
    await command.run("export", "here", "--row-group", "10")
    with tarfile.open(fileobj=io.BytesIO(answer.content)) as archive:
        members = archive.getmembers()
        archive.extractall(command.folder, filter="data")
    [name] = {member.name.split("/")[0] for member in members}
    assert answer.headers["content-disposition"] == f'attachment; filename="{name}.tar"'
    assert members[-1].name == f"{name}/manifest.json"
    assert {(member.uid, member.gid, member.uname, member.gname, member.mode) for member in members} == {
        (0, 0, "", "", 0o644)
    }
    got, wanted = _files(command.folder / name), _files(command.folder / "here")
    manifests = [json.loads(files.pop("manifest.json")) for files in (got, wanted)]
    assert got == wanted
    assert {**manifests[0], "exported_at": ""} == {**manifests[1], "exported_at": ""}
    key = (await command.run("checkpoint", "key", "public")).strip()
    await command.run("verify", "--export", name, "--key", key)
    with tarfile.open(fileobj=io.BytesIO(bare.content)) as archive:
        assert f"{name}/events.ndjson" not in archive.getnames()


def _files(root: Path) -> dict[str, bytes]:
    return {path.relative_to(root).as_posix(): path.read_bytes() for path in root.rglob("*") if path.is_file()}


@pytest.mark.rules("G8", "G3")
async def test_g08_a_proof_over_http_is_the_commands_file(told: Served, command: CommandOnLedger) -> None:
    await _published(command)
    await command.run("prove", "run-update", RED, "--to", "proof.json")
    async with told.client(Role.AUDITOR) as client:
        path = f"{HERE}/runs/run-update/proofs/{RED}"
        answer = await client.get(path)
        again = await client.get(path, headers={"If-None-Match": answer.headers["etag"]})
    assert answer.content == (command.folder / "proof.json").read_bytes()
    assert again.status_code == 304
    (command.folder / "got.json").write_bytes(answer.content)
    await command.run("verify", "--proof", "got.json")
