"""A sandbox that keeps its store in a file: what was answered is there again, and no other file is taken for one."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest

from consumers.infrahub.sandbox.records import Node
from consumers.infrahub.sandbox.server import load_schema_document
from consumers.infrahub.sandbox.store import SandboxStore
from consumers.infrahub.sandbox.store_file import store_file
from consumers.infrahub.sandbox.store_file_errors import (
    StoreFileBusyError,
    StoreFileError,
    StoreFileForeignError,
    StoreFileNewerError,
    StoreFileSchemaError,
    StoreFileTornError,
)
from tests.contract.sandbox.conftest import REAL_SCHEMA
from tests.support.lab_schema import lab_document

pytestmark = pytest.mark.contract

DOCUMENT = load_schema_document(REAL_SCHEMA)
TOKEN = "canary-5e0b-token-of-the-sandbox"


@contextmanager
def _kept(path: Path, document: Any = DOCUMENT) -> Iterator[tuple[SandboxStore, Any]]:
    """A store that is kept in a file, as the command line keeps it."""
    with store_file(path, document) as kept:
        seed = kept.seed or "seed"
        store = SandboxStore(document, seed=seed)
        kept.attach(store, seed)
        yield store, kept


def _facts(node: Node) -> dict[str, Any]:
    """Every slot of an object; one that is new here is compared too."""
    facts = {name: getattr(node, name) for name in Node.__slots__ if name != "kind"}
    return facts | {"kind": node.kind.name, "unique_keys": sorted(map(repr, node.unique_keys))}


def _everything(store: SandboxStore) -> dict[str, Any]:
    return {
        name: (branch.info, {node_id: _facts(node) for node_id, node in sorted(branch.nodes.items())})
        for name, branch in sorted(store.branches.items())
    }


def _fill(store: SandboxStore) -> str:
    site = store.create("LocationSite", {"name": "dc1"})
    other = store.create("LocationSite", {"name": "dc2"})
    store.create("LocationRack", {"name": "r1", "site": site})
    store.update(other, {"name": "dc2b"})
    tag = store.create("BuiltinTag", {"name": "gone", "description": "é \U0001f600 \u2028"})
    store.delete(tag)
    store.create_branch("lab1")
    store.create("BuiltinTag", {"name": "only here"}, branch="lab1")
    store.create_branch("lab2")
    store.delete_branch("lab2")
    return tag


def test_everything_is_there_again_with_ids_times_edges_and_branches(tmp_path: Path) -> None:
    path = tmp_path / "store"
    with _kept(path) as (store, _):
        deleted = _fill(store)
        before, sequence, used = _everything(store), store.sequence, set(store.used_ids)
    with _kept(path) as (store, kept):
        assert _everything(store) == before
        assert store.sequence == sequence
        assert store.used_ids >= used
        assert deleted in store.used_ids, "an id that was used once is in use for good"
        assert not kept.lost_unanswered
        # indexes work: the key is held, the edge is known from both sides
        with pytest.raises(Exception, match="uniqueness"):
            store.create("LocationSite", {"name": "dc1"})
        fresh = store.create("LocationSite", {"name": "dc3"})
        assert fresh not in used


def test_each_answered_write_is_a_line_behind_the_whole_store_and_none_is_lost(tmp_path: Path) -> None:
    path = tmp_path / "store"
    with _kept(path) as (store, kept):
        whole = path.read_bytes()
        kept.save()
        assert path.read_bytes() == whole, "nothing changed, nothing is written"
        for number in range(3):
            store.create("BuiltinTag", {"name": f"tag {number}"})
            kept.save()
        lines = path.read_bytes().removeprefix(whole).splitlines(keepends=True)
        assert len(lines) == 3
        before = _everything(store)
        copy = tmp_path / "copy"
        copy.write_bytes(path.read_bytes())  # as a kill would leave it: nobody closed anything
    with _kept(copy) as (store, _):
        assert _everything(store) == before


def test_a_line_that_a_kill_cut_off_was_answered_to_nobody_and_goes(tmp_path: Path) -> None:
    path = tmp_path / "store"
    with _kept(path) as (store, kept):
        store.create("BuiltinTag", {"name": "answered"})
        kept.save()
        before, length = _everything(store), len(path.read_bytes())
        store.create("BuiltinTag", {"name": "not answered"})
        kept.save()
        cut = path.read_bytes()
    for at in (length + 1, length + 30, len(cut) - 1):
        path.write_bytes(cut[:at])
        with _kept(path) as (store, kept):
            assert _everything(store) == before
        with _kept(path) as (store, kept):
            assert not kept.lost_unanswered, "the file was written anew"


def test_bytes_that_are_missing_or_others_are_refused_wherever_they_stand(tmp_path: Path) -> None:
    path = tmp_path / "store"
    with _kept(path) as (store, kept):
        _fill(store)
        kept.save()
        store.create("BuiltinTag", {"name": "last"})
        kept.save()
        whole = path.read_bytes()
    lines = whole.splitlines(keepends=True)
    end = next(number for number, line in enumerate(lines) if b'"whole":true' in line)
    broken = {
        "cut in the whole store": b"".join(lines[:end])[:-5],
        "cut between its lines": b"".join(lines[:end]),
        "a line taken out": b"".join([*lines[: end - 1], *lines[end:]]),
        "two lines exchanged": b"".join([lines[0], lines[2], lines[1], *lines[3:]]),
        "a byte changed": whole.replace(b"dc1", b"dcX", 1),
        "a write taken out": b"".join([*lines[: end + 1], *lines[end + 2 :]]),
    }
    for what, data in broken.items():
        path.write_bytes(data)
        with pytest.raises(StoreFileTornError), _kept(path):
            pytest.fail(what)
        assert path.read_bytes() == data, "it is left as it is"


@pytest.mark.parametrize(
    ("data", "refusal"),
    [
        (b"", StoreFileForeignError),
        (b"PAR1 something of somebody", StoreFileForeignError),
        (b'{"name": "a schema"}\n', StoreFileForeignError),
        (b"\xff\xfe\x00" * 50, StoreFileForeignError),
        (b'0 {"format":"apply-ledger-sandbox","version":2}\n', StoreFileNewerError),
        (b'0 {"format":"apply-ledger-sandbox","version":"x"}\n', StoreFileNewerError),
    ],
)
def test_a_file_of_something_else_or_of_a_newer_program_is_refused_and_left(
    tmp_path: Path, data: bytes, refusal: type[StoreFileError]
) -> None:
    path = tmp_path / "store"
    path.write_bytes(data)
    with pytest.raises(refusal) as caught, _kept(path):
        pytest.fail("it was taken")
    assert str(path) in caught.value.checked
    assert path.read_bytes() == data


def test_objects_of_another_schema_are_not_served_under_this_one(tmp_path: Path) -> None:
    path = tmp_path / "store"
    with _kept(path, lab_document()):
        pass
    with pytest.raises(StoreFileSchemaError), _kept(path):
        pytest.fail("it was taken")


def test_two_sandboxes_do_not_share_a_file(tmp_path: Path) -> None:
    path = tmp_path / "store"
    with _kept(path), pytest.raises(StoreFileBusyError), _kept(path):
        pytest.fail("it was shared")


def test_a_folder_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(StoreFileError), _kept(tmp_path / "nowhere" / "store"):
        pytest.fail("there is no such folder")


def test_a_write_that_finds_no_room_is_no_answer_and_the_next_one_keeps_both(tmp_path: Path) -> None:
    path = tmp_path / "store"
    with _kept(path) as (store, kept):
        store.create("BuiltinTag", {"name": "one"})
        kept._file.close()
        kept._file = Path("/dev/full").open("ab")  # noqa: SIM115 - the store closes it
        with pytest.raises(StoreFileError):
            kept.save()
        store.create("BuiltinTag", {"name": "two"})
        kept.save()
        before = _everything(store)
    with _kept(path) as (store, _):
        assert _everything(store) == before


@dataclass
class _Served:
    url: str
    objects: int
    process: subprocess.Popen[str]

    def post(self, query: str) -> Any:
        answer = httpx.post(
            f"{self.url}/graphql/main", json={"query": query}, headers={"X-INFRAHUB-KEY": TOKEN}, trust_env=False
        )
        return answer.json()["data"]


@contextmanager
def _served(path: Path) -> Iterator[_Served]:
    command = [sys.executable, "-m", "ledger.cli.main", "sandbox", "--schema", str(REAL_SCHEMA), "--port", "0"]
    process = subprocess.Popen(
        [*command, "--store", str(path), "--output", "ndjson"],
        env={**os.environ, "INFRAHUB_API_TOKEN": TOKEN},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        started = json.loads(process.stdout.readline())
        yield _Served(started["url"], started["objects"], process)
    finally:
        process.kill()
        process.communicate(timeout=30)


@pytest.mark.rules("G12")
def test_after_kill_9_everything_that_was_answered_is_served_again(tmp_path: Path) -> None:
    path = tmp_path / "store"
    with _served(path) as server:
        answered = {
            server.post(f'mutation {{ BuiltinTagUpsert(data: {{name: {{value: "t{n}"}}}}) {{ object {{ id }} }} }}')[
                "BuiltinTagUpsert"
            ]["object"]["id"]
            for n in range(20)
        }
        server.process.send_signal(signal.SIGKILL)
        server.process.wait(timeout=30)
    assert TOKEN.encode() not in path.read_bytes()
    with _served(path) as server:
        assert server.objects == 21  # with the default namespace
        edges = server.post("query { BuiltinTag { edges { node { id } } } }")["BuiltinTag"]["edges"]
        assert {edge["node"]["id"] for edge in edges} == answered
