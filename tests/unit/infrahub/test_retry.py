"""What is sent again within one attempt: only what provably never ran, and not for ever."""

from __future__ import annotations

import math

import httpx
import pytest

from consumers.infrahub import errors
from consumers.infrahub.client import new_client
from consumers.infrahub.exchange import Event, Exchange, FailedExchange
from consumers.infrahub.gateway import InfrahubGateway
from consumers.infrahub.transport import PooledTransport
from ledger.destination import OutcomeUnknownError
from tests.support.operations import create, one
from tests.support.raw_http import hangs, raw_server
from tests.support.scripted_infrahub import (
    Answer,
    Guard,
    LeaseTooShortError,
    ScriptedInfrahub,
    applied,
    found,
    graphql,
    lab_settings,
    open_surface,
    text,
)

SHED_BODY = {
    "data": None,
    "errors": [{"message": "Server is shedding load; retry later.", "extensions": {"code": 429}}],
}
SITE = create("LabSite", {"name": "a"}, {"name": "a"})


def shed() -> httpx.Response:
    return graphql(SHED_BODY, 429, {"retry-after": "1", "x-infrahub-admission": "shed"})


async def apply(server: ScriptedInfrahub, *answers: Answer, guard: Guard | None = None, attempts: int = 3) -> str:
    server.will_answer(*answers)
    async with open_surface(server, guard=guard, attempts=attempts) as surface:
        node_id: str = await surface.apply_planned_operation(operation=SITE, peers=surface.new_peer_resolver())
    return node_id


@pytest.mark.rules("G5")
@pytest.mark.parametrize("never_ran", [httpx.ConnectError("refused"), shed()], ids=["refused", "shed"])
async def test_g05_what_never_ran_is_sent_again(never_ran: Answer) -> None:
    server = ScriptedInfrahub()
    assert await apply(server, never_ran, applied("LabSiteUpsert", "s-1")) == "s-1"
    assert len(server.mutations) == 2
    assert server.mutations[0] == server.mutations[1]


@pytest.mark.rules("G5", "P127", "P130")
async def test_g05_a_connection_refused_to_the_end_is_unknown_and_unsent() -> None:
    server = ScriptedInfrahub()
    with pytest.raises(errors.DestinationUnreachableError) as caught:
        await apply(server, *[httpx.ConnectError("refused")] * 3)
    assert (caught.value.sent, caught.value.http_status) == (False, None)
    assert isinstance(caught.value, OutcomeUnknownError)
    assert len(server.mutations) == 3


@pytest.mark.rules("G5")
async def test_g05_a_request_shed_to_the_end_is_unknown_and_was_sent() -> None:
    server = ScriptedInfrahub()
    with pytest.raises(errors.AdmissionShedError) as caught:
        await apply(server, shed(), shed(), shed())
    assert (caught.value.sent, caught.value.http_status) == (True, 429)
    assert len(server.mutations) == 3


@pytest.mark.rules("G5")
async def test_g05_one_try_that_left_makes_the_whole_attempt_sent() -> None:
    with pytest.raises(errors.DestinationUnreachableError) as caught:
        await apply(ScriptedInfrahub(), httpx.ConnectError("refused"), shed(), httpx.ConnectError("refused"))
    assert caught.value.sent is True


@pytest.mark.rules("G5", "P127", "P128")
@pytest.mark.parametrize(
    "answer",
    [
        httpx.ConnectTimeout("late"),
        httpx.PoolTimeout("late"),
        httpx.ReadTimeout("late"),
        httpx.ReadError("reset"),
        httpx.RemoteProtocolError("Server disconnected without sending a response."),
        graphql(SHED_BODY, 429),
        graphql(SHED_BODY, 429, {"x-infrahub-admission": "admitted"}),
        graphql(SHED_BODY, 503, {"x-infrahub-admission": "shed"}),
        text("broken", 500),
        text("broken", 502),
        graphql({"errors": [{"message": "Expired Signature"}]}, 401),
    ],
    ids=lambda answer: getattr(answer, "reason_phrase", type(answer).__name__),
)
async def test_g05_nothing_else_is_sent_twice(answer: Answer) -> None:
    server = ScriptedInfrahub()
    with pytest.raises(OutcomeUnknownError):
        await apply(server, answer)
    assert len(server.mutations) == 1


@pytest.mark.rules("G2")
async def test_g02_the_guard_is_asked_again_before_each_repeat() -> None:
    server, guard = ScriptedInfrahub(), Guard(refuse_from=3)
    with pytest.raises(LeaseTooShortError):
        await apply(server, httpx.ConnectError("refused"), guard=guard)
    assert (guard.asked, len(server.mutations)) == (3, 1)


@pytest.mark.rules("G5", "P132")
@pytest.mark.parametrize(
    "passing",
    [text("away", 503), text("broken", 500), httpx.ReadError("reset"), httpx.ReadTimeout("late"), graphql({}, 429)],
    ids=lambda answer: getattr(answer, "reason_phrase", type(answer).__name__),
)
async def test_g05_a_look_up_of_an_apply_is_asked_again_where_that_may_go_better(passing: Answer) -> None:
    """It changes nothing, whatever became of it; an operation of which no write left is no reason to stop a run."""
    server = ScriptedInfrahub()
    server.will_answer(
        passing, found("LabSite", {"id": "s-1", "name": {"value": "a"}}), applied("LabDeviceUpsert", "d")
    )
    device = create("LabDevice", {"name": "d"}, {"name": "d"}, one("site", "LabSite", name="a"))
    async with open_surface(server) as surface:
        assert await surface.apply_planned_operation(operation=device, peers=surface.new_peer_resolver()) == "d"
    assert len(server.sent) == 3


@pytest.mark.rules("G5")
async def test_g05_a_look_up_is_not_asked_for_ever() -> None:
    server = ScriptedInfrahub()
    server.will_answer(*[text("away", 503)] * 3)
    device = create("LabDevice", {"name": "d"}, {"name": "d"}, one("site", "LabSite", name="a"))
    with pytest.raises(errors.PeerLookupFailedError) as caught:
        async with open_surface(server, attempts=3) as surface:
            await surface.apply_planned_operation(operation=device, peers=surface.new_peer_resolver())
    assert (caught.value.sent, len(server.sent)) == (False, 3)


@pytest.mark.parametrize(("patience", "asked"), [(0.2, 1), (math.inf, 2)])
async def test_a_silent_server_holds_up_an_apply_for_one_time_out(patience: float, asked: int) -> None:
    """A reading for a plan has the time to ask a slow server again; the end of a run may wait for a look-up."""
    async with raw_server() as server:
        server.behaviours.extend([hangs(server.ended)] * 3)
        settings = lab_settings(url=server.url, attempts=2)
        transport = PooledTransport(settings, guard=Guard(), deadline=0.2)
        gateway = InfrahubGateway(new_client(settings, transport), settings, patience=patience)
        with pytest.raises(FailedExchange) as caught:
            await gateway.read("query Q { x }", {})
        await transport.aclose()
    assert (caught.value.exchange.event, len(server.requests)) == (Event.TIMED_OUT, asked)


async def test_what_may_write_is_never_asked_like_a_query() -> None:
    gateway = InfrahubGateway(None, lab_settings())  # type: ignore[arg-type]  # nothing is sent
    with pytest.raises(ValueError, match="may write"):
        await gateway.read("mutation Upsert { LabSiteUpsert { ok } }", {})


@pytest.mark.parametrize(
    ("header", "expected"),
    [("1", 1.0), ("3", 2.0), ("", 0.0), ("Wed, 21 Oct 2026 07:28:00 GMT", 0.0), ("-5", 0.0), ("9" * 400, 0.0)],
)
def test_the_servers_own_wait_is_honoured_up_to_the_bound(header: str, expected: float) -> None:
    settings = lab_settings(retry_wait=0, retry_wait_max=2)
    gateway = InfrahubGateway(None, settings)  # type: ignore[arg-type]  # nothing is sent
    exchange = Exchange(Event.ANSWERED, status=429, headers={"retry-after": header})
    assert gateway._wait(1, exchange) == expected


def test_waits_grow_up_to_the_bound() -> None:
    gateway = InfrahubGateway(None, lab_settings(retry_wait=1, retry_wait_max=6))  # type: ignore[arg-type]  # as above
    refused = Exchange(Event.REFUSED)
    longest = [max(gateway._wait(number, refused) for _ in range(300)) for number in (1, 2, 3, 4)]
    assert [bound / 2 < seconds <= bound for bound, seconds in zip((1, 2, 4, 6), longest, strict=True)] == [True] * 4
