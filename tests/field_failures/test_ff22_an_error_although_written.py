"""FF22: an error after the write proves nothing: unknown each time, the run stops there, and nobody guesses."""

from __future__ import annotations

import ssl
from collections.abc import Callable
from typing import Any

import httpx
import pytest

from consumers.infrahub.connection import InfrahubOpener, declared
from consumers.infrahub.sandbox import FaultAnswer, FaultRule
from ledger.exit_codes import ExitCode
from tests.support.command_line import CommandLine
from tests.support.inventory_operations import interface_template, manufacturer
from tests.support.real_writer import RealWriter

pytestmark = pytest.mark.integration

MAKER = "OrganizationManufacturer"
HIDING = [
    FaultAnswer.DEFUNCT_CONNECTION,  # a GraphQL error with HTTP 200
    FaultAnswer.TEXT_500,
    FaultAnswer.OBJECT_NULL,
    FaultAnswer.NOT_JSON,
    FaultAnswer.DROP,
    FaultAnswer.TRUNCATED,
    FaultAnswer.EMPTY_ERRORS,
    FaultAnswer.UNAVAILABLE_503,
    FaultAnswer.UNAUTHORISED_401,
    FaultAnswer.SHED_429,  # it lies: it wrote, and says that it shed
]


def makers(real: RealWriter) -> set[str]:
    return {row["values"]["name"] for row in real.content() if row["kind"] == MAKER}


async def require_in_doubt(real: RealWriter, second: str) -> dict[str, Any]:
    """The second of three operations is in doubt, and nothing is claimed of it; returns what is recorded of it."""
    assert await real.kinds("run-1") == [
        "plan.committed",
        "run.started",
        "operation.applied",
        "operation.unknown",
        "run.interrupted",
    ]
    ended = await real.body("run-1", "run.interrupted")
    assert (ended["applied"], ended["skipped"], ended["not_attempted"]) == (1, 0, 1)
    assert (ended["failed_operation"], ended["failed_operation_wrote"]) == (second, None)
    body = await real.body("run-1", "operation.unknown")
    assert (body["wrote"], body["sent"]) == (None, True)
    return body


@pytest.mark.rules("P127", "P128", "P129", "P130", "P131", "P134", "G5", "G6")
@pytest.mark.parametrize("answer", HIDING, ids=str)
async def test_ff22_whatever_hides_a_write_is_unknown_and_later_operations_are_not_attempted(
    real: RealWriter, answer: FaultAnswer
) -> None:
    stored = await real.commit("run-1", [manufacturer(name) for name in ("first", "second", "third")])
    real.sandbox.faults.add(FaultRule(branch=real.branch, nth=2, count=None, answer=answer, write=True))
    outcome = await real.writer().drain("run-1", by="ada")
    assert (outcome.ending, outcome.exit_code) == ("run.interrupted", ExitCode.STOPPED_MAYBE_WRITTEN)
    await require_in_doubt(real, stored[1].operation_id)
    assert makers(real) == {"first", "second"}
    assert {entry.data["name"]["value"] for entry in real.sent()} == {"first", "second"}


@pytest.mark.rules("P129", "G5", "G6")
async def test_ff22_the_same_of_a_kind_that_is_created_under_an_id_of_ours(real: RealWriter) -> None:
    """Resumed, it meets its own object: applied without a second one."""
    maker = real.sandbox.store.create(MAKER, {"name": "M"}, branch=real.branch)
    real.sandbox.store.create("DcimDeviceType", {"name": "T", "manufacturer": maker}, branch=real.branch)
    ports = [interface_template("M", "T", name) for name in ("xe-0", "xe-1", "xe-2")]
    stored = await real.commit("run-1", ports)
    real.sandbox.faults.add(FaultRule(branch=real.branch, nth=2, answer=FaultAnswer.TEXT_500))
    assert (await real.writer().drain("run-1", by="ada")).ending == "run.interrupted"
    await require_in_doubt(real, stored[1].operation_id)
    await real.resume("run-1")
    assert (await real.writer().drain("run-1", by="ada")).ending == "run.applied"
    assert real.sandbox.store.count("DcimInterfaceTemplate", branch=real.branch) == 3


class Torn(httpx.AsyncBaseTransport):
    """The real transport, which loses the answer to one write by an exception of the test's choice."""

    def __init__(self, inner: httpx.AsyncBaseTransport, lose: Callable[[httpx.Request], BaseException | None]) -> None:
        self._inner = inner
        self._lose = lose

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        response = await self._inner.handle_async_request(request)
        lost = self._lose(request)
        if lost is not None:
            await response.aread()
            await response.aclose()
            raise lost
        return response

    async def aclose(self) -> None:
        await self._inner.aclose()


FOREIGN = [
    httpx.ReadError("reset"),
    httpx.RemoteProtocolError("no answer"),
    httpx.DecodingError("gzip"),
    httpx.InvalidURL("odd"),
    ssl.SSLError("bad record mac"),
    UnicodeDecodeError("utf-8", b"\xff", 0, 1, "odd"),
    KeyError("object"),
    ExceptionGroup("several", [OSError("one"), ValueError("two")]),
]


@pytest.mark.rules("P127", "P140", "P141", "G4", "G5")
@pytest.mark.parametrize("lost", FOREIGN, ids=lambda lost: type(lost).__name__)
async def test_ff22_whatever_type_the_exception_has(real: RealWriter, lost: Exception) -> None:
    stored = await real.commit("run-1", [manufacturer(name) for name in ("first", "second", "third")])

    def lose(request: httpx.Request) -> Exception | None:
        return lost if b'"second"' in request.content else None

    def factory() -> httpx.AsyncBaseTransport:
        return Torn(httpx.AsyncHTTPTransport(), lose)

    opener = InfrahubOpener(declared(real.destination), factory=factory)
    caught: BaseException | None = None
    try:
        outcome = await real.writer(opener=opener).drain("run-1", by="ada")
        assert outcome.exit_code is ExitCode.STOPPED_MAYBE_WRITTEN
    except Exception as exc:  # noqa: BLE001 - a defect leaves as it is; any other class would be another defect
        caught = exc
    assert caught is None or caught is lost
    body = await require_in_doubt(real, stored[1].operation_id)
    assert makers(real) == {"first", "second"}
    if caught is not None:
        assert body["error"] == type(lost).__name__
        assert "defect" in body["message"]
    await real.resume("run-1")
    assert (await real.writer().drain("run-1", by="ada")).ending == "run.applied"
    assert makers(real) == {"first", "second", "third"}


@pytest.mark.rules("G5", "P128", "P142")
def test_ff22_5_is_what_a_script_gets(cli: CommandLine) -> None:
    cli.source(*({"name": name, "description": None} for name in ("first", "second", "third")))
    planned = cli.plan()
    cli.sandbox.faults.add(FaultRule(branch=cli.branch, nth=2, answer=FaultAnswer.OBJECT_NULL))
    summary = cli.summary(cli.apply(planned), 5)
    counts = {name: summary[name] for name in ("state", "planned", "applied", "failed", "unknown", "not_attempted")}
    assert counts == {
        "state": "interrupted",
        "planned": 3,
        "applied": 1,
        "failed": 0,
        "unknown": 1,
        "not_attempted": 1,
    }
    assert (summary["failed_operation_wrote"], summary["may_have_partially_written"]) == (None, True)
    assert cli.mutations() == 2
