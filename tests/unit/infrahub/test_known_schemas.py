"""A schema that is known and has not changed is not fetched again; nothing else is ever taken for it."""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
import os
from pathlib import Path
from typing import Any

import httpx
import pytest

from consumers.infrahub import known_schemas
from consumers.infrahub.connection import InfrahubOpener, KnownSchemas, declared, open_reader
from consumers.infrahub.errors import DestinationNotAnsweringError, DestinationReadError
from ledger.schema import DestinationSchema
from tests.support.lab_schema import lab_document, lab_schema
from tests.support.scripted_infrahub import Answer, Guard, ScriptedInfrahub, graphql, lab_settings

SUMMARY = "/api/schema/summary"
SCHEMA = "/api/schema"


class Hashing(ScriptedInfrahub):
    """Says the hash of its schema; ``summaries`` come before that."""

    summaries: list[Answer]

    def __init__(self, document: dict[str, Any] | None = None) -> None:
        super().__init__(schema_document=document or lab_document())
        self.summaries = []

    async def handle(self, request: httpx.Request) -> httpx.Response:
        if request.url.path != SUMMARY:
            return await super().handle(request)
        self.requests.append(request)
        answer = self.summaries.pop(0) if self.summaries else graphql({"main": self.schema_document["main"]})
        if isinstance(answer, Exception):
            raise answer
        return answer(request) if callable(answer) else answer

    def asked(self) -> list[str]:
        asked = [request.url.path for request in self.requests]
        self.requests.clear()
        return asked


async def fetched(server: Hashing, known: KnownSchemas, **changes: Any) -> DestinationSchema:
    async with open_reader(lab_settings(**changes), factory=server.new_transport, known=known) as reader:
        return await reader.schema()


def changed() -> dict[str, Any]:
    document = lab_document()
    document["nodes"][0]["attributes"][0]["optional"] = not document["nodes"][0]["attributes"][0]["optional"]
    return document | {"main": "b" * 32}


@pytest.mark.rules("P18")
async def test_a_known_schema_costs_its_hash_and_nothing_else_in_another_process_too(tmp_path: Path) -> None:
    server, folder = Hashing(), tmp_path / "cache" / "schemas"
    known = KnownSchemas(folder)
    first = await fetched(server, known)
    assert server.asked() == [SUMMARY, SCHEMA]
    for again in (known, KnownSchemas(folder)):
        assert await fetched(server, again) == first == lab_schema()
        assert server.asked() == [SUMMARY]


@pytest.mark.rules("P18", "P63")
async def test_a_schema_that_changed_is_fetched_by_reader_and_writer(tmp_path: Path) -> None:
    server, known = Hashing(), KnownSchemas(tmp_path)
    before = await fetched(server, known)
    server.schema_document = changed()
    settings = lab_settings()
    opener = InfrahubOpener(declared(settings), factory=server.new_transport, known=known)
    async with opener(settings.binding, run_id="r", guard=Guard()) as opened:
        assert opened.schema != before
        assert opened.schema.hash == "b" * 32
    assert server.asked() == [SUMMARY, SCHEMA, SUMMARY, SCHEMA]


async def test_each_server_has_its_own(tmp_path: Path) -> None:
    server, known = Hashing(), KnownSchemas(tmp_path)
    await fetched(server, known)
    await fetched(server, known, url="http://other.test")
    assert server.asked() == [SUMMARY, SCHEMA, SUMMARY, SCHEMA]


@pytest.mark.parametrize(
    "summary",
    [
        graphql({"detail": "Not Found"}, 404),
        graphql({"errors": [{"message": "no"}]}, 401),
        graphql({}),
        graphql({"main": None}),
        graphql({"main": ""}),
        graphql({"main": ["a"]}),
    ],
    ids=lambda answer: f"{answer.status_code} {answer.text}",
)
async def test_a_server_that_says_no_hash_is_asked_for_the_whole(tmp_path: Path, summary: Answer) -> None:
    server, known = Hashing(), KnownSchemas(tmp_path)
    await fetched(server, known)
    server.summaries = [summary]
    assert await fetched(server, known) == lab_schema()
    assert server.asked() == [SUMMARY, SCHEMA, SUMMARY, SCHEMA]


@pytest.mark.rules("G11")
@pytest.mark.parametrize("failure", [httpx.ConnectError("refused"), graphql({}, 503)], ids=["away", "503"])
async def test_g11_a_server_that_is_away_is_told_once(tmp_path: Path, failure: Answer) -> None:
    server = Hashing()
    server.summaries = [failure]
    with pytest.raises(DestinationNotAnsweringError) as caught:
        await fetched(server, KnownSchemas(tmp_path), attempts=1)
    assert caught.value.checked == "the schema of http://infrahub.test [lab1]"
    assert server.asked() == [SUMMARY]


def cut(content: bytes) -> bytes:
    return content[:-40]


def forged(content: bytes) -> bytes:
    return content.replace(b'"optional":true', b'"optional":false')


def of_another(_content: bytes) -> bytes:
    body = json.dumps(changed()).encode()
    return hashlib.sha256(body).hexdigest().encode() + body


def too_deep(_content: bytes) -> bytes:
    body = b"[" * 100_000
    return hashlib.sha256(body).hexdigest().encode() + body


@pytest.mark.rules("P63", "G1")
@pytest.mark.parametrize(
    "harm",
    [cut, forged, of_another, too_deep, lambda _: b""],
    ids=["cut", "edited", "another", "too deep", "empty"],
)
async def test_a_file_that_is_not_what_was_kept_is_not_used(tmp_path: Path, harm: Any) -> None:
    server = Hashing()
    await fetched(server, KnownSchemas(tmp_path))
    (path,) = tmp_path.iterdir()
    harmed = harm(path.read_bytes())
    assert harmed != path.read_bytes()
    path.write_bytes(harmed)
    assert await fetched(server, KnownSchemas(tmp_path)) == lab_schema()
    assert server.asked() == [SUMMARY, SCHEMA, SUMMARY, SCHEMA]


@pytest.mark.rules("G1")
@pytest.mark.parametrize("mode", [0o770, 0o707], ids=["group", "world"])
async def test_a_folder_that_others_may_write_is_neither_read_nor_written(tmp_path: Path, mode: int) -> None:
    server, folder = Hashing(), tmp_path / "schemas"
    await fetched(server, KnownSchemas(folder))
    folder.chmod(mode)
    await fetched(server, KnownSchemas(folder))
    assert server.asked() == [SUMMARY, SCHEMA, SUMMARY, SCHEMA]
    for path in folder.iterdir():
        path.unlink()
    await fetched(server, KnownSchemas(folder))
    assert list(folder.iterdir()) == []


@pytest.mark.rules("G1")
@pytest.mark.parametrize("mode", [0o660, 0o606], ids=["group", "world"])
async def test_a_file_that_others_may_write_is_not_used(tmp_path: Path, mode: int) -> None:
    """The folder is ours alone now; it may have been open to others when the file came."""
    server = Hashing()
    await fetched(server, KnownSchemas(tmp_path))
    (path,) = tmp_path.iterdir()
    path.chmod(mode)
    assert await fetched(server, KnownSchemas(tmp_path)) == lab_schema()
    assert server.asked() == [SUMMARY, SCHEMA, SUMMARY, SCHEMA]
    assert path.stat().st_mode & 0o777 == 0o600


@pytest.mark.rules("G1")
async def test_a_file_of_another_user_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    server, fstat = Hashing(), os.fstat
    await fetched(server, KnownSchemas(tmp_path))

    def of_somebody(descriptor: int) -> os.stat_result:
        found = fstat(descriptor)
        return os.stat_result([*found[:4], os.geteuid() + 1, *found[5:]])

    monkeypatch.setattr(os, "fstat", of_somebody)
    assert await fetched(server, KnownSchemas(tmp_path)) == lab_schema()
    assert server.asked() == [SUMMARY, SCHEMA, SUMMARY, SCHEMA]


@pytest.mark.parametrize("umask", [0o002, 0o077], ids=["shared", "private"])
async def test_a_kept_schema_is_found_whatever_the_umask(tmp_path: Path, umask: int) -> None:
    server, before = Hashing(), os.umask(umask)
    try:
        await fetched(server, KnownSchemas(tmp_path))
    finally:
        os.umask(before)
    await fetched(server, KnownSchemas(tmp_path))
    assert server.asked() == [SUMMARY, SCHEMA, SUMMARY]


@pytest.mark.rules("P63")
@pytest.mark.parametrize("other", ["infrahub-sdk", "format"])
async def test_what_another_version_kept_is_fetched_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, other: str
) -> None:
    server = Hashing()
    await fetched(server, KnownSchemas(tmp_path))
    if other == "format":
        monkeypatch.setattr(known_schemas, "FORMAT", known_schemas.FORMAT + 1)
    else:
        monkeypatch.setattr(importlib.metadata.Distribution, "version", "0.0.1")
    assert await fetched(server, KnownSchemas(tmp_path)) == lab_schema()
    assert server.asked() == [SUMMARY, SCHEMA, SUMMARY, SCHEMA]


async def test_a_folder_that_cannot_be_made_only_costs_time(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    server = Hashing()
    assert await fetched(server, KnownSchemas(tmp_path / "file" / "schemas")) == lab_schema()


async def test_the_folder_is_private_and_the_oldest_files_go(tmp_path: Path) -> None:
    folder = tmp_path / "schemas"
    server, known = Hashing(), KnownSchemas(folder)
    for number in range(20):
        server.schema_document = lab_document() | {"main": f"{number:032d}"}
        await fetched(server, known)
        for path in folder.iterdir():  # times in the past, one behind the other
            os.utime(path, ns=(0, path.stat().st_mtime_ns - 10**9))
    kept = list(folder.iterdir())
    assert len(kept) == 16
    assert folder.stat().st_mode & 0o777 == 0o700


async def test_a_document_without_a_hash_is_not_kept(tmp_path: Path) -> None:
    server = Hashing(lab_document() | {"main": None})
    await fetched(server, KnownSchemas(tmp_path))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.rules("G11")
async def test_g11_a_broken_schema_is_named_and_not_kept(tmp_path: Path) -> None:
    server = Hashing({"main": "c" * 32, "nodes": [{"name": "x"}], "generics": []})
    with pytest.raises(DestinationReadError):
        await fetched(server, KnownSchemas(tmp_path))
    assert list(tmp_path.iterdir()) == []
