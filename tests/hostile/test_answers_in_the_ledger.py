"""The nastiest answers through the whole writer: what the ledger holds afterwards can be read, and says how it was."""

from __future__ import annotations

import hashlib
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from consumers.infrahub.connection import InfrahubOpener, declared
from consumers.infrahub.sandbox import RunningSandbox
from ledger.audit.verify import verify_binding
from ledger.exit_codes import ExitCode
from ledger.store.ledger import Ledger
from tests.hostile.answers.documents import nested
from tests.hostile.answers.generate import whole
from tests.hostile.answers.served import HostileLayer, Served
from tests.support.inventory_operations import manufacturer
from tests.support.real_writer import REAL_SCHEMA, TOKEN, RealWriter

pytestmark = pytest.mark.integration

FIELD = "OrganizationManufacturerUpsert"
TEN_MEGABYTES = "m" * 10_000_000


def error(message: Any, **marks: Any) -> dict[str, Any]:
    return {"message": message, "path": [FIELD], "extensions": {"code": "UNDEFINED_ERROR", "http_status": 422, **marks}}


def refused(*errors: Any, data: Any = None) -> Served:
    return whole("errors", json.dumps({"data": data or {FIELD: None}, "errors": list(errors)}).encode())


NASTY = {
    "NUL and half a pair": refused(error("nul \x00 half \ud800 \udfff and \u202e")),
    "ten megabytes": refused(error(TEN_MEGABYTES)),
    "ten thousand errors": refused(*[error("no " + "x" * 500)] * 10_000),
    "as deep as it goes": refused(error(nested(90)), nested(90)),
    "a code that is none": refused(error("no", code=f"{TOKEN}\x00")),
    "an id of another world": whole(
        "id", json.dumps({"data": {FIELD: {"ok": True, "object": {"id": "\ud800"}}}}).encode()
    ),
    "an id of a megabyte": whole(
        "id", json.dumps({"data": {FIELD: {"ok": True, "object": {"id": "i" * 2**20}}}}).encode()
    ),
    "our token as the id": whole("id", json.dumps({"data": {FIELD: {"ok": True, "object": {"id": TOKEN}}}}).encode()),
    "a result beside the errors": refused(error("no"), data={FIELD: {"ok": True, "object": {"id": "x"}}}),
    "no end": Served("endless", chunks=(b" " * 2**20,) * 100),
    "a page that echoes": Served("page", status=502, chunks=(f"<html>{TOKEN}\x00".encode() + b"\xff" * 3000,)),
}


class _NastyWrites(HostileLayer):
    """The sandbox for reads, and one answer for every write."""

    def __init__(self, answer: Served) -> None:
        super().__init__(lambda _request: answer)
        self._sandbox = httpx.AsyncHTTPTransport()

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        if request.method == "POST" and b'"query":"mutation' in request.content:
            return await super().handle_async_request(request)
        return await self._sandbox.handle_async_request(request)

    async def aclose(self) -> None:
        await self._sandbox.aclose()


@pytest.fixture(scope="module")
def sandbox() -> Any:
    with RunningSandbox(REAL_SCHEMA, token=TOKEN, seed="hostile") as running:
        yield running


@pytest.fixture
async def real(
    postgres18_ledger_dsns: dict[str, str], sandbox: RunningSandbox, tmp_path: Path
) -> AsyncIterator[RealWriter]:
    branch = f"branch-{len(sandbox.store.branches)}"
    sandbox.store.create_branch(branch)
    dsn = postgres18_ledger_dsns["writer"]
    async with await Ledger.open(dsn, allow_unsafe_fsync=True) as ledger:
        yield RealWriter(dsn=dsn, ledger=ledger, sandbox=sandbox, branch=branch, root=tmp_path)


@pytest.mark.rules("G5", "G6", "G12", "P127", "P128", "P130", "P134")
async def test_ff22_the_nastiest_answers_are_recorded_as_unknown_and_can_be_read(real: RealWriter) -> None:
    for number, (name, answer) in enumerate(NASTY.items()):
        run = f"run-{number}"
        await real.commit(run, [manufacturer(f"A{number}"), manufacturer(f"B{number}")])
        opener = InfrahubOpener(declared(real.destination), factory=lambda answer=answer: _NastyWrites(answer))  # type: ignore[misc]
        outcome = await real.writer(opener).drain(run, by="ada")
        assert (outcome.ending, outcome.exit_code) == ("run.interrupted", ExitCode.STOPPED_MAYBE_WRITTEN), name
        assert await real.outcomes(run) == [(0, "unknown", 1)], name
        body = await real.body(run, "operation.unknown")
        assert (body["wrote"], body["sent"]) == (None, True), name
        assert len(body["message"]) <= 4096, name
        assert TOKEN.lower() not in json.dumps(body).lower(), name
        ended = await real.body(run, "run.interrupted")
        assert (ended["applied"], ended["not_attempted"], ended["failed_operation_wrote"]) == (0, 1, None), name
    (await verify_binding(real.ledger, real.binding)).require_intact()


@pytest.mark.rules("G11", "G12")
async def test_g11_a_message_of_ten_megabytes_is_cut_with_its_length_and_its_digest(real: RealWriter) -> None:
    await real.commit("run-1", [manufacturer("A")])
    opener = InfrahubOpener(declared(real.destination), factory=lambda: _NastyWrites(NASTY["ten megabytes"]))
    await real.writer(opener).drain("run-1", by="ada")
    message = (await real.body("run-1", "operation.unknown"))["message"]
    whole_text = f"{TEN_MEGABYTES} (UNDEFINED_ERROR, 422)"
    assert f"({len(whole_text)} characters, sha256 {hashlib.sha256(whole_text.encode()).hexdigest()})" in message
    assert "Next: " in message, "what to do next is not what is cut"
