"""Every address of the API and every page that is read, of a long ledger: how long the real server takes to answer.

Addresses are those that the rights tables name, so that one that is added is measured too. Each is asked again and
again with other runs, positions and objects, one request at a time; the slowest twentieth decides. That no answer walks
through the whole log is told by the database, which counts sequential scans.
"""

from __future__ import annotations

import asyncio
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any
from urllib.parse import quote

import httpx

from ledger.api.rights import RIGHTS
from ledger.dashboard.rights import PAGE_RIGHTS
from ledger.store.embedded import Dsns
from ledger.store.projections import ProjectionStore
from tests.bench.frame import Case, Figure, Series, Setting, Target
from tests.bench.recorded import SOURCE, record_runs
from tests.bench.server import connection_to, ledger_server

_PROGRAM = (sys.executable, "-m", "ledger.cli.main")
_REQUESTS = 60
_TARGET = Target("at most", 200)
_NO_PAGE = re.compile(r"/(stream|state|state/diff|export|proofs/{operation_id}|checkpoints/{checkpoint})$")
"""Streams have no end, and audits read a whole log; the case ``audit`` measures these."""
_DEPTH = 3
"""Pages of a list that are turned, so that not only its beginning is measured."""
_FILTERS = {
    "/api/v1/runs": [f"source={SOURCE}", "state=applied", "limit=500"],
    "/runs": [f"source={SOURCE}", "state=applied"],
    "/api/v1/bindings/{binding_id}/runs": ["state=failed"],
    "/api/v1/bindings/{binding_id}/events": ["after={position}", "after={position}&limit=500"],
    "/api/v1/bindings/{binding_id}/runs/{run_id}/operations": ["outcome=applied", "outcome=failed", "limit=500"],
    "/bindings/{binding_id}/runs/{run_id}/operations": ["outcome=applied", "outcome=failed"],
    "/api/v1/bindings/{binding_id}/runs/{run_id}/events": ["operation={operation_id}"],
    "/objects": ["kind=BuiltinTag&identity=name%3D{name}"],
}
"""What lists are asked for beside their beginning."""
_NEEDED = {"/api/v1/objects": "kind=BuiltinTag&identity=%7B%22name%22%3A%22{name}%22%7D"}
"""Addresses that do not answer without a question."""


@dataclass(frozen=True)
class _Ledger:
    """What can be asked about: each name of an address's parts, and a value for it by chance."""

    binding_id: int
    head: int
    runs: Sequence[str]
    operations: Sequence[Mapping[str, Any]]

    def values(self, random: Random) -> dict[str, str]:
        operation = random.choice(self.operations)
        return {
            "binding_id": str(self.binding_id),
            "run_id": random.choice(self.runs),
            "position": str(random.randint(1, self.head)),
            "ordinal": str(operation["ordinal"]),
            "operation_id": str(operation["operation_id"]),
            "object_key": operation["object_key"].hex(),
            "name": str(operation["name"]),
        }


def measure(setting: Setting) -> Sequence[Figure]:
    """The slowest twentieth of each address, the slowest address beside the target."""
    return asyncio.run(_measure(setting))


async def _measure(setting: Setting) -> Sequence[Figure]:
    async with ledger_server(setting.scratch) as dsns:
        runs, operations = setting.sized(1000, 3), setting.sized(1000, 20)
        await record_runs(dsns, runs=runs, operations=operations)
        async with await ProjectionStore.open(dsns.projector) as projections:
            await projections.catch_up()
        async with connection_to(dsns.admin) as admin:
            await admin.execute("vacuum (analyze) ledger.projection_document")
        ledger = await _known(dsns)
        before = await _scans(dsns)
        with _serving(dsns, setting.scratch) as url:
            async with httpx.AsyncClient(base_url=url, timeout=60.0) as client:
                found = {
                    address: await _times(client, address, ledger, setting.sized(_REQUESTS, 2))
                    for address in _addresses()
                }
        scans = await _scans(dsns) - before
    return [*_figures(found), _scanned(scans, runs, operations)]


def _figures(found: Mapping[str, Sequence[float]]) -> Iterator[Figure]:
    slow = {address: _slowest_twentieth(times) for address, times in found.items()}
    for address, milliseconds in sorted(slow.items(), key=lambda item: -item[1]):
        middle = Series("half of them at most", "ms", (sorted(found[address])[len(found[address]) // 2],))
        yield Figure(address, Series("95 of 100 at most", "ms", (milliseconds,)), _TARGET, beside=(middle,))


def _scanned(scans: int, runs: int, operations: int) -> Figure:
    """The log has too many pages for a scan of it to be missed; the count begins at 1, for a figure is no zero."""
    words = (
        f"{scans} sequential scans of the log of {runs:,} runs with {operations:,} operations each, over all requests"
    )
    return Figure(
        "sequential scans of the log, and one",
        Series("scans", "", (1.0 + scans,)),
        Target("at most", 1),
        remarks=(words,),
    )


def _slowest_twentieth(times: Sequence[float]) -> float:
    return sorted(times)[min(int(len(times) * 0.95), len(times) - 1)]


def _addresses() -> Iterator[str]:
    """Each address that is read, and each of its filters."""
    for method, path in [*RIGHTS, *PAGE_RIGHTS]:
        if method == "GET" and not _NO_PAGE.search(path):
            yield f"{path}?{_NEEDED[path]}" if path in _NEEDED else path
            yield from (f"{path}?{chosen}" for chosen in _FILTERS.get(path, ()))


async def _times(client: httpx.AsyncClient, address: str, ledger: _Ledger, count: int) -> list[float]:
    """Milliseconds of each answer, pages behind the first one among them."""
    random, deeper = Random(address), None
    times: list[float] = []
    while len(times) < count:
        path = deeper or address.format_map(ledger.values(random))
        began = time.perf_counter()
        answer = await client.get(path)
        times.append((time.perf_counter() - began) * 1000)
        if answer.status_code != 200:
            raise RuntimeError(f"{path}: {answer.status_code} {answer.text[:500]}")
        deeper = _behind(path, answer) if len(times) % (_DEPTH + 1) else None
    return times[1:] if len(times) > 1 else times  # the first one finds nothing prepared


def _behind(path: str, answer: httpx.Response) -> str | None:
    """The next page of a list, where there is one."""
    if not answer.headers["content-type"].startswith("application/json"):
        return None
    document = answer.json()
    cursor = document.get("next") if isinstance(document, dict) else None
    if not isinstance(cursor, str):
        return None
    bare = re.sub(r"([?&])(cursor|after)=[^&]*&?", r"\1", path).rstrip("?&")
    return f"{bare}{'&' if '?' in bare else '?'}cursor={quote(cursor)}"


async def _known(dsns: Dsns) -> _Ledger:
    async with connection_to(dsns.reader) as connection:
        runs = [row["run_id"] for row in await connection.fetch("select run_id from ledger.artifact order by run_id")]
        operations = await connection.fetch(
            "select ordinal, operation_id, object_key, line::json -> 'identity' ->> 'name' as name"
            " from ledger.plan_operation where plan_checksum = (select max(plan_checksum) from ledger.plan_operation)"
            " order by ordinal limit 1000"
        )
        head = await connection.fetchval("select head_position from ledger.binding where id = 1")
    return _Ledger(1, head, runs, [dict(row) for row in operations])


async def _scans(dsns: Dsns) -> int:
    """How often anybody has gone through the whole log; what sessions have counted is there once they have ended."""
    async with connection_to(dsns.admin) as admin:
        await admin.execute("select pg_stat_force_next_flush()")
        await admin.execute("select pg_stat_clear_snapshot()")
        return int(
            await admin.fetchval("select seq_scan from pg_stat_user_tables where relid = 'ledger.event'::regclass")
        )


@contextmanager
def _serving(dsns: Dsns, scratch: Path) -> Iterator[str]:
    """`serve` as a process of its own; the address."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("APPLY_LEDGER", "INFRAHUB"))}
    variables = {
        "APPLY_LEDGER_DSN": dsns.writer,
        "APPLY_LEDGER_API__REQUESTS_PER_SECOND": "100000",
        "APPLY_LEDGER_API__BURST": "100000",
        "XDG_CONFIG_HOME": str(scratch),
    }
    with subprocess.Popen(
        [*_PROGRAM, "serve", "--local", "--port", "0"],
        cwd=scratch,
        env=kept | variables,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            yield _address(process)
        finally:
            process.send_signal(signal.SIGTERM)


def _address(process: subprocess.Popen[str]) -> str:
    said = []
    for line in process.stderr or ():
        said.append(line)
        if line.startswith("the ledger at "):
            return line.removeprefix("the ledger at ").strip().removesuffix("/api/v1")
    raise RuntimeError("".join(said))


CASE = Case(
    "api-pages", "every address and page that is read, at 1,000,000 events and 1,000 runs, on the real server", measure
)
