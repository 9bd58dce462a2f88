"""Spans over several processes: one trace from the commit to the request at the destination, or nothing at all."""

from __future__ import annotations

import asyncio
import re
import signal

import opentelemetry.sdk.environment_variables
import pytest

from ledger.store.embedded import EmbeddedPostgres
from ledger.store.ledger import Ledger
from tests.support.command_line import TOKEN, CommandLine
from tests.support.http_relay import HttpRelay, http_relay
from tests.support.span_collector import span_collector
from tests.support.waiting import until_true

pytestmark = pytest.mark.integration

_TRACEPARENT = re.compile(rb"\r\ntraceparent: 00-([0-9a-f]{32})-([0-9a-f]{16})-01\r\n")
_CALLER = "00-" + "c" * 32 + "-" + "d" * 16 + "-01"
_SECRET_ROW = "canary-of-a-row"


class _Through(CommandLine):
    """The program, whose destination is reached through a relay."""

    relay: HttpRelay

    @property
    def environment(self) -> dict[str, str]:
        kept = {name: value for name, value in super().environment.items() if not name.startswith("OTEL_")}
        return kept | {"INFRAHUB_ADDRESS": self.relay.url} | self.variables


def _through(cli: CommandLine, relay: HttpRelay) -> _Through:
    found = _Through(cli.folder, cli.sandbox, cli.branch, cli.data_dir)
    found.relay = relay
    return found


async def _applied_by_a_worker(cli: _Through, planned: dict[str, str]) -> None:
    """Commit in one process, apply in another."""
    committed = await asyncio.to_thread(
        cli.run, "commit", planned["run"], "--expected-checksum", planned["plan_checksum"]
    )
    assert committed.returncode == 0, committed.stderr
    worker = cli.start("work")
    dsns = await EmbeddedPostgres(cli.data_dir).ensure_running()
    async with await Ledger.open(dsns.reader) as ledger:
        (row,) = [row for row in await ledger.bindings() if row.url == cli.relay.url]

        async def over() -> bool:
            return "run.applied" in [event.kind async for event in ledger.events(row.id)]

        await until_true(over)
    worker.send_signal(signal.SIGTERM)
    _, stderr = await asyncio.to_thread(worker.communicate, timeout=60)
    assert (worker.returncode, "Traceback" in stderr) == (0, False), stderr


async def test_one_trace_joins_the_commit_the_run_each_operation_and_each_request(cli: CommandLine) -> None:
    async with http_relay(cli.sandbox.url) as relay:
        through = _through(cli, relay)
        through.source({"name": "one", "description": _SECRET_ROW}, {"name": "two", "description": "second"})
        planned = await asyncio.to_thread(through.plan)
        relay.requests.clear()
        with span_collector() as collector:
            through.variables |= {"OTEL_EXPORTER_OTLP_ENDPOINT": collector.url, "TRACEPARENT": _CALLER}
            await _applied_by_a_worker(through, planned)
    (commit,) = collector.named("commit")
    (run,) = collector.named("apply")
    operations = collector.named("create")
    assert {span.trace_id for span in collector.spans} == {"c" * 32}
    assert (commit.parent_id, run.parent_id) == ("d" * 16, commit.span_id)
    assert [span.parent_id for span in operations] == [run.span_id] * 2
    assert commit.process != run.process
    assert {span.service for span in collector.spans} == {"apply-ledger"}
    requests = {span.span_id: span for span in collector.named("request")}
    writes = [request for request in relay.requests if b"mutation" in request]
    sent = [found.groups() for found in map(_TRACEPARENT.search, writes) if found is not None]
    assert [trace.decode() for trace, _ in sent] == ["c" * 32] * 2
    assert {requests[span.decode()].parent_id for _, span in sent} == {span.span_id for span in operations}
    assert all(request.attributes["http.request.method"] in ("GET", "POST") for request in requests.values())
    told = b"".join(collector.raw)
    assert all(secret.encode() not in told for secret in (TOKEN, _SECRET_ROW))


def _hostile(url: str) -> dict[str, str]:
    """Every variable of OpenTelemetry, set to what it cannot be; and a collector, so that it matters."""
    names = [
        value
        for name, value in vars(opentelemetry.sdk.environment_variables).items()
        if name.isupper() and str(value).startswith("OTEL_")
    ]
    names += ["OTEL_PROPAGATORS", "OTEL_PYTHON_CONTEXT", "OTEL_PYTHON_TRACER_PROVIDER", "OTEL_PYTHON_ID_GENERATOR"]
    return dict.fromkeys(names, "no such thing") | {"OTEL_SDK_DISABLED": "no", "OTEL_EXPORTER_OTLP_ENDPOINT": url}


@pytest.mark.parametrize("kind", ["nonsense everywhere", "nobody listens"])
async def test_no_variable_of_opentelemetry_changes_a_write(cli: CommandLine, kind: str) -> None:
    with span_collector(status=400) as collector:
        nobody = {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:9"}
        variables = nobody if kind == "nobody listens" else _hostile(collector.url)
        async with http_relay(cli.sandbox.url) as relay:
            through = _through(cli, relay)
            through.source({"name": "one"}, {"name": "two"})
            planned = await asyncio.to_thread(through.plan)
            relay.requests.clear()
            through.variables |= variables
            done = await asyncio.to_thread(through.apply, planned)
    summary = through.summary(done, 0)
    assert (summary["applied"], summary["failed"]) == (2, 0), done.stderr
    assert sum(b"mutation" in request for request in relay.requests) == 2


async def test_the_server_of_the_api_starts_whatever_those_variables_say(cli: CommandLine) -> None:
    cli.variables |= _hostile("http://127.0.0.1:9") | {"FASTAPI_OTEL_AUTO_CONFIGURE": "true"}
    process = cli.start("serve", "--local", "--port", "0")
    assert process.stderr is not None
    said = [await asyncio.to_thread(process.stderr.readline)]
    while said[-1] and not said[-1].startswith("the ledger at "):
        said.append(await asyncio.to_thread(process.stderr.readline))
    process.send_signal(signal.SIGTERM)
    _, rest = await asyncio.to_thread(process.communicate, timeout=60)
    assert (process.returncode, "Traceback" in "".join(said) + rest) == (0, False), said
