"""FF24: one request per operation and attempt; only what provably never ran is sent again inside one, and bounded."""

from __future__ import annotations

import json

import httpx
import pytest

from consumers.infrahub.connection import InfrahubOpener, declared
from consumers.infrahub.sandbox import FaultAnswer, FaultRule, RunningSandbox
from consumers.pauses import PausePoint
from ledger.commit import Policy
from ledger.exit_codes import ExitCode
from tests.support.command_line import CommandLine
from tests.support.inventory_operations import interface_template, manufacturer
from tests.support.raw_http import answers, raw_server
from tests.support.real_writer import REAL_SCHEMA, TOKEN, RealWriter
from tests.support.scripted_infrahub import Answer, ScriptedInfrahub, applied, graphql, text
from tests.support.writer_bench import Pauses

pytestmark = pytest.mark.integration

FIELD = "OrganizationManufacturerUpsert"
DOCUMENT = json.loads(REAL_SCHEMA.read_bytes())
URGING = {
    "INFRAHUB_RETRY_ON_FAILURE": "true",
    "INFRAHUB_RETRY_DELAY": "0",
    "INFRAHUB_RETRY_MAX_DELAY": "0",
    "INFRAHUB_RETRY_STATUS_CODES": "[429,500,502,503,504]",
    "INFRAHUB_MAX_RETRY_DURATION": "300",
    "INFRAHUB_RATE_LIMIT_RETRY_ENABLED": "true",
    "INFRAHUB_RATE_LIMIT_MAX_RETRIES": "9",
    "INFRAHUB_RATE_LIMIT_BACKOFF_BASE": "0.001",
    "INFRAHUB_RATE_LIMIT_BACKOFF_MAX": "0.001",
    "INFRAHUB_TIMEOUT": "1",
    "INFRAHUB_INSERT_TRACKER": "true",
    "INFRAHUB_ECHO_GRAPHQL_QUERIES": "true",
    "INFRAHUB_RECORDER": "json",
}
"""What a person may have set for another tool. The first one alone switches the SDK's own retry on."""


@pytest.fixture
def urging_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in URGING.items():
        monkeypatch.setenv(name, value)


def failing_again(answer: Answer) -> tuple[Answer, ...]:
    """The same, more often than any layer would ask."""
    return (answer,) * 20


ONE_REQUEST: dict[str, Answer] = {
    "no answer in time": httpx.ReadTimeout("slow"),
    "connection lost": httpx.RemoteProtocolError("closed"),
    "half written": httpx.WriteError("broken pipe"),
    "429": graphql({"errors": [{"message": "too many requests"}]}, status=429, headers={"retry-after": "0"}),
    "429 marked otherwise": graphql({"errors": []}, status=429, headers={"x-infrahub-admission": "admitted"}),
    "503": text("unavailable", status=503),
    "503 with a time": httpx.Response(503, headers={"retry-after": "0"}, content=b""),
    "502 of a proxy": text("<html>bad gateway</html>", status=502),
    "500": text("Internal Server Error", status=500),
    "408": text("", status=408),
    "a redirect": httpx.Response(307, headers={"location": "http://127.0.0.1:1/graphql"}),
}
NEVER_RAN: dict[str, Answer] = {
    "refused": httpx.ConnectError("refused"),
    "no such host": httpx.ConnectError("[Errno -2] Name or service not known"),
    "shed": graphql({"errors": []}, status=429, headers={"x-infrahub-admission": "shed", "retry-after": "0"}),
}


@pytest.mark.rules("G5", "G7", "P129")
@pytest.mark.usefixtures("urging_environment")
async def test_ff24_one_request_for_one_attempt_whatever_failed(real: RealWriter) -> None:
    real.changes["settle_seconds"] = 0.0
    server = ScriptedInfrahub(schema_document=DOCUMENT)
    opener = InfrahubOpener(declared(real.destination), factory=server.new_transport)
    await real.commit("run-1", [manufacturer("Juniper")])
    expected = 0
    for name, answer in ONE_REQUEST.items():
        expected += 1
        server.will_answer(*failing_again(answer))
        if expected > 1:
            await real.resume("run-1")
        outcome = await real.writer(opener).drain("run-1", by="ada")
        assert outcome.exit_code is ExitCode.STOPPED_MAYBE_WRITTEN, name
        assert len(server.mutations) == expected, name
        assert (await real.body("run-1", "operation.unknown"))["sent"] is True, name
        server.script.clear()
    attempts = [event.attempt for event in await real.events("run-1") if event.kind == "operation.unknown"]
    assert attempts == list(range(1, expected + 1))


@pytest.mark.rules("G5", "G7")
@pytest.mark.usefixtures("urging_environment")
async def test_ff24_what_never_ran_is_sent_again_so_often_and_no_more(real: RealWriter) -> None:
    """The layers do not multiply: ``attempts`` of the destination's settings is all."""
    real.changes["settle_seconds"] = 0.0
    allowed = 3
    settings = real.destination.model_copy(update={"attempts": allowed, "retry_wait": 0.0, "retry_wait_max": 0.0})
    server = ScriptedInfrahub(schema_document=DOCUMENT)
    opener = InfrahubOpener(declared(settings), factory=server.new_transport)
    await real.commit("run-1", [manufacturer("Juniper")])
    for number, (name, answer) in enumerate(NEVER_RAN.items(), start=1):
        server.will_answer(*failing_again(answer))
        if number > 1:
            await real.resume("run-1")
        assert (await real.writer(opener).drain("run-1", by="ada")).ending == "run.interrupted", name
        assert len(server.mutations) == number * allowed, name
        server.script.clear()
        body = await real.body("run-1", "operation.unknown")
        assert (body["wrote"], body["sent"]) == (None, name == "shed"), name
    server.will_answer(NEVER_RAN["refused"], NEVER_RAN["shed"], applied(FIELD, "node"))
    await real.resume("run-1")
    assert (await real.writer(opener).drain("run-1", by="ada")).ending == "run.applied"
    assert (await real.events("run-1"))[-2].attempt == len(NEVER_RAN) + 1


@pytest.mark.rules("G4", "G5", "G7")
@pytest.mark.usefixtures("urging_environment")
async def test_ff24_stored_and_then_timed_out_is_one_request(real: RealWriter) -> None:
    await real.commit("run-1", [manufacturer("Juniper")])
    held = real.sandbox.faults.add(FaultRule(branch=real.branch, hold="before-answer", count=None))
    outcome = await real.writer().drain("run-1", by="ada")
    held.release()
    assert outcome.exit_code is ExitCode.STOPPED_MAYBE_WRITTEN
    assert [entry.written for entry in real.sent()] == [True]


@pytest.mark.rules("G5", "G7", "P129")
async def test_ff24_a_kind_that_the_server_cannot_match_is_there_once(real: RealWriter) -> None:
    """Each attempt is asked for by the policy, is recorded, carries the same id, and finds its own object."""
    store, branch = real.sandbox.store, real.branch
    maker = store.create("OrganizationManufacturer", {"name": "M"}, branch=branch)
    store.create("DcimDeviceType", {"name": "T", "manufacturer": maker}, branch=branch)
    await real.commit("run-1", [interface_template("M", "T", "xe-0")], policy=Policy(on_unknown="converge"))
    real.sandbox.faults.add(FaultRule(branch=branch, answer=FaultAnswer.DROP, count=2))
    assert (await real.writer().drain("run-1", by="ada")).ending == "run.applied"
    ids = [entry.data["id"] for entry in real.sent()]
    assert len(ids) == 3
    assert len(set(ids)) == 1
    assert store.count("DcimInterfaceTemplate", branch=branch) == 1
    outcomes = [(event.kind, event.attempt) for event in await real.events("run-1") if event.operation_id]
    assert outcomes == [("operation.unknown", 1), ("operation.unknown", 2), ("operation.applied", 3)]


@pytest.mark.rules("G5", "P129")
async def test_ff24_a_server_that_goes_in_the_middle_was_sent_nothing_and_needs_no_settling(real: RealWriter) -> None:
    real.changes["settle_seconds"] = 600.0
    gone = RunningSandbox(REAL_SCHEMA, token=TOKEN).start()
    real.sandbox, real.url, real.branch = gone, gone.url, "main"
    port = int(gone.url.rpartition(":")[2])
    stored = await real.commit("run-1", [manufacturer("Juniper"), manufacturer("Cisco")])
    pauses = Pauses()

    async def stop() -> None:
        gone.stop()

    pauses.actions[PausePoint.AFTER_RUN_STARTED] = stop
    outcome = await real.writer(pause=pauses).drain("run-1", by="ada")
    assert outcome.exit_code is ExitCode.STOPPED_MAYBE_WRITTEN
    assert len(gone.journal) == 0
    with RunningSandbox(REAL_SCHEMA, token=TOKEN, port=port) as back:
        real.sandbox, real.url = back, back.url
        body = await real.body("run-1", "operation.unknown")
        assert (body["error"], body["sent"], body["wrote"]) == ("DestinationUnreachableError", False, None)
        row = await real.ledger.binding(real.binding)
        assert row is not None
        assert (row.quiet_for, row.in_flight) == (0.0, None)
        await real.resume("run-1")
        assert (await real.writer().drain("run-1", by="ada")).ending == "run.applied"
        names = [entry.data["name"]["value"] for entry in back.journal.entries()]
        assert names == [operation.identity["name"] for operation in stored]


@pytest.mark.rules("G5", "G7", "G12")
async def test_ff24_no_proxy_of_the_environment_comes_between(
    real: RealWriter, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with raw_server() as proxy:
        proxy.behaviours.extend([answers(b"", status="502 Bad Gateway")] * 20)
        for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy", "INFRAHUB_PROXY"):
            monkeypatch.setenv(name, proxy.url)
        await real.commit("run-1", [manufacturer("Juniper")])
        assert (await real.writer().drain("run-1", by="ada")).ending == "run.applied"
        assert proxy.connections == 0


@pytest.mark.rules("G5", "G7")
def test_ff24_the_environment_of_a_command_changes_nothing(cli: CommandLine) -> None:
    cli.source({"name": "prod"}, {"name": "lab"})
    planned = cli.plan()
    cli.sandbox.faults.add(FaultRule(branch=cli.branch, answer=FaultAnswer.TEXT_500, count=None))
    before = {path.name for path in cli.folder.iterdir()}
    options = ("--expected-checksum", planned["plan_checksum"], "--output", "json")
    summary = cli.summary(cli.run("apply", planned["run"], *options, **URGING), 5)
    assert (summary["unknown"], summary["not_attempted"]) == (1, 1)
    assert cli.mutations() == 1
    assert {path.name for path in cli.folder.iterdir()} == before  # no recording of what was sent
