"""How audits end: at their end, with their reader, in time, in the middle; and what they give back then."""

from __future__ import annotations

import asyncio
import io
import json
import socket
import subprocess
import tarfile
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any
from unittest.mock import AsyncMock, Mock

import httpx
import pytest

from ledger.api import audit_responses, audit_work
from ledger.api.audit_reading import AuditReader
from ledger.api.audits import Audit
from ledger.api.callers import Callers
from ledger.api.errors import AuditEndedError
from ledger.api.limits import ApiLimits
from ledger.api.serving import AUDITS
from ledger.api.tokens import Role
from ledger.audit.errors import PlanOfRunMissingError
from ledger.audit.export import archive
from ledger.audit.export.writing import export_binding
from ledger.events import RunStopped
from ledger.store.ledger import Ledger
from tests.support.api import BASE, Served, listening, served
from tests.support.recorded_runs import Recorder, make_plan
from tests.support.store import connection_to, until

pytestmark = pytest.mark.integration

HERE = f"{BASE}/bindings/1"
LIMITS = ApiLimits(requests_per_second=1e6, burst=10**6)


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder for temporary files."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setenv("TMPDIR", str(folder))
    return folder


@asynccontextmanager
async def _nobody_reads_events(dsns: dict[str, str]) -> AsyncIterator[None]:
    """Every audit waits for the database until the end of the block."""
    async with connection_to(dsns["admin"]) as admin, admin.transaction():
        await admin.execute("lock table ledger.event in access exclusive mode")
        yield


class _Watched:
    """What audits hold, seen from outside."""

    def __init__(self, opened: Served, admin: Any, temporary: Path) -> None:
        self._opened = opened
        self._admin = admin
        self._temporary = temporary

    async def connections(self) -> int:
        """Of audits to the database."""
        found: int = await self._admin.fetchval(
            "select count(*) from pg_stat_activity where application_name = $1 and datname = current_database()", AUDITS
        )
        return found

    async def reading(self, audits: int) -> bool:
        """Whether so many audits run, each with a connection."""
        return self._opened.service.audits.slots.open == audits and await self.connections() >= audits

    async def given_back(self) -> bool:
        """Whether none holds anything any more."""
        files = list(self._temporary.iterdir())
        return (self._opened.service.audits.slots.open, await self.connections(), files) == (0, 0, [])


@asynccontextmanager
async def _watched(
    dsns: dict[str, str], temporary: Path, limits: ApiLimits = LIMITS
) -> AsyncIterator[tuple[Served, str, _Watched]]:
    """The API on a port, and what is seen of its audits."""
    async with (
        served(dsns, limits=limits) as opened,
        listening(opened) as url,
        connection_to(dsns["admin"]) as admin,
    ):
        yield opened, url, _Watched(opened, admin, temporary)


def _client(opened: Served, role: Role = Role.AUDITOR) -> httpx.AsyncClient:
    return httpx.AsyncClient(timeout=60.0, headers={"Authorization": f"Bearer {opened.tokens[role]}"})


@pytest.mark.parametrize(("method", "path"), [("POST", "verify"), ("GET", "export"), ("GET", "state")])
async def test_a_reader_who_goes_away_ends_the_audit_and_what_it_held(
    told_dsns: dict[str, str], temporary: Path, method: str, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(AuditReader, "decided_by", AsyncMock(return_value=[]))  # it would wait before the audit does
    async with _watched(told_dsns, temporary) as (opened, url, seen):
        async with _nobody_reads_events(told_dsns):
            async with _client(opened) as client:
                asked = asyncio.create_task(client.request(method, f"{url}{HERE}/{path}"))
                await until(lambda: seen.reading(1))
                asked.cancel()
                await asyncio.gather(asked, return_exceptions=True)
            await until(seen.given_back)  # while the database would still let it wait
        ended = opened.service.metrics.ended_audits.labels("AuditEndedError")
        assert ended._value.get() == 1.0


async def test_a_reader_who_takes_nothing_is_let_go_and_so_is_what_waits_for_it(
    postgres18_ledger_dsns: dict[str, str], recording: Recorder, temporary: Path
) -> None:
    await recording.commit(make_plan("run-1", creates=1))
    body = RunStopped(by="somebody", reason="x" * 60_000, last_ordinal=None)
    for number in range(200):
        await recording.event("run.stopped", body, "run-1", n=number)
    limits = LIMITS.model_copy(update={"stream_send_seconds": 0.3})
    async with _watched(postgres18_ledger_dsns, temporary, limits) as (opened, url, seen):
        address = httpx.URL(url)
        with socket.create_connection((address.host, address.port)) as connection:
            connection.sendall(
                f"GET {HERE}/export HTTP/1.1\r\nHost: localhost\r\n"
                f"Authorization: Bearer {opened.tokens[Role.AUDITOR]}\r\n\r\n".encode()
            )
            await until(lambda: seen.reading(1))
            await until(seen.given_back)
        assert opened.service.metrics.slow_readers._value.get() == 1.0


@pytest.mark.parametrize(("method", "path"), [("POST", "verify"), ("GET", "export")])
async def test_an_audit_that_takes_too_long_is_ended_and_says_what_to_do(
    told_dsns: dict[str, str], temporary: Path, method: str, path: str
) -> None:
    limits = LIMITS.model_copy(update={"audit_seconds": 0.3})
    async with (
        _watched(told_dsns, temporary, limits) as (opened, url, seen),
        _client(opened) as client,
        _nobody_reads_events(told_dsns),
    ):
        answer = await client.request(method, f"{url}{HERE}/{path}")
        assert (answer.status_code, answer.json()["code"]) == (503, "AuditTooLongError")
        assert "audit_seconds" in answer.json()["next_action"]
        await until(seen.given_back)


async def test_more_audits_than_are_allowed_are_refused_and_the_others_go_on(
    told_dsns: dict[str, str], temporary: Path
) -> None:
    limits = LIMITS.model_copy(update={"max_audits": 2, "max_audits_each": 1})
    async with _watched(told_dsns, temporary, limits) as (opened, url, seen):
        async with _client(opened) as auditor, _client(opened, Role.OPERATOR) as operator:
            async with _nobody_reads_events(told_dsns):
                first = asyncio.create_task(auditor.post(f"{url}{HERE}/verify"))
                await until(lambda: seen.reading(1))
                refused = await auditor.get(f"{url}{HERE}/export")
                second = asyncio.create_task(operator.get(f"{url}{HERE}/export"))
                await until(lambda: seen.reading(2))
                also_refused = await operator.post(f"{url}{HERE}/verify")
            for answer in (refused, also_refused):
                assert (answer.status_code, answer.json()["code"]) == (429, "TooManyAuditsError")
                assert int(answer.headers["retry-after"]) > 0
            assert [(await task).status_code for task in (first, second)] == [200, 200]
            again = await auditor.post(f"{url}{HERE}/verify")  # its place was free before its answer was whole
            assert again.status_code == 200
        await until(seen.given_back)


async def test_a_server_that_stops_ends_its_audits_first(told_dsns: dict[str, str], temporary: Path) -> None:
    async with (
        _watched(told_dsns, temporary) as (opened, url, seen),
        _client(opened) as client,
        _nobody_reads_events(told_dsns),
    ):
        asked = asyncio.create_task(client.post(f"{url}{HERE}/verify"))
        await until(lambda: seen.reading(1))
        await opened.service.audits.close()
        answer = await asked
        assert (answer.status_code, answer.json()["code"]) == (503, "AuditEndedError")
        await until(seen.given_back)  # the database lists a connection for a moment after it was closed
        late = await client.post(f"{url}{HERE}/verify")
        assert (late.status_code, late.json()["code"]) == (503, "AuditEndedError")


def _missing() -> PlanOfRunMissingError:
    return PlanOfRunMissingError(checked="the plan", expected="one", found="none", next_action="verify")


async def _read_all(client: httpx.AsyncClient, url: str) -> tuple[int, bytes, bool]:
    """Status, what came, and whether HTTP says that it was all."""
    data = bytearray()
    async with client.stream("GET", url) as response:
        try:
            async for piece in response.aiter_bytes():
                data += piece
        except httpx.RemoteProtocolError:
            return response.status_code, bytes(data), False
    return response.status_code, bytes(data), True


@pytest.mark.parametrize("records", [0, 3])
async def test_lines_that_break_off_say_so_and_why(
    told_dsns: dict[str, str], temporary: Path, monkeypatch: pytest.MonkeyPatch, records: int
) -> None:
    async def broken(*_: object, **__: object) -> AsyncIterator[dict[str, Any]]:
        for number in range(records):
            yield {"number": number}
        raise _missing()

    monkeypatch.setattr(audit_work, "PIECE", 1)
    monkeypatch.setattr(audit_work, "state_records", broken)
    async with _watched(told_dsns, temporary) as (opened, url, seen), _client(opened) as client:
        status, data, whole = await _read_all(client, f"{url}{HERE}/state")
        lines = [json.loads(line) for line in data.splitlines()]
        if not records:  # nothing was said yet, so the status can tell
            assert (status, whole, lines[0]["code"]) == (500, True, "PlanOfRunMissingError")
        else:
            assert (status, whole) == (200, False)
            assert lines[1:-1] == [{"number": number} for number in range(records)]
            assert (lines[-1]["stream"], lines[-1]["complete"]) == ("state", False)
            assert lines[-1]["problem"]["code"] == "PlanOfRunMissingError"
        await until(seen.given_back)


async def test_an_archive_that_breaks_off_is_none(
    told_dsns: dict[str, str], temporary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(root: Path, name: str, write: Callable[[bytes], object]) -> None:
        def until_the_plans(data: bytes) -> None:
            if b"/plans/" in data:
                raise _missing()
            write(data)

        archive.write_archive(root, name, until_the_plans)

    monkeypatch.setattr(archive, "PIECE", 512)
    monkeypatch.setattr(audit_work, "write_archive", broken)
    async with _watched(told_dsns, temporary) as (opened, url, seen), _client(opened) as client:
        status, data, whole = await _read_all(client, f"{url}{HERE}/export")
        await until(seen.given_back)
    assert (status, whole) == (200, False)
    names = []
    with suppress(tarfile.ReadError), tarfile.open(fileobj=io.BytesIO(data), mode="r|") as found:
        for member in found:
            names.append(member.name)  # one by one: those in front of the break count
    assert [name.split("/")[1] for name in names][:1] == ["events.ndjson"]
    assert not [name for name in names if name.endswith("manifest.json")]


async def test_an_export_that_takes_too_much_room_is_refused(told_dsns: dict[str, str], temporary: Path) -> None:
    limits = LIMITS.model_copy(update={"max_export_bytes": 1000})
    async with _watched(told_dsns, temporary, limits) as (opened, url, seen), _client(opened) as client:
        answer = await client.get(f"{url}{HERE}/export")
        assert (answer.status_code, answer.json()["code"]) == (500, "ExportTooLargeError")
        await until(seen.given_back)


async def test_an_answer_ends_with_the_token_that_it_was_asked_for_with(
    told_dsns: dict[str, str], temporary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(audit_work, "PIECE", 1)
    monkeypatch.setattr(audit_responses, "KEEP_ALIVE", 0.0)
    monkeypatch.setattr(Callers, "still_works", AsyncMock(side_effect=[True, False]))
    async with _watched(told_dsns, temporary) as (opened, url, seen), _client(opened) as client:
        status, data, whole = await _read_all(client, f"{url}{HERE}/state")
        await until(seen.given_back)
    assert (status, whole, len(data.splitlines())) == (200, False, 3)
    assert b'"complete"' not in data


async def test_a_silent_export_is_kept_alive_by_what_readers_of_archives_pass_over(
    told_dsns: dict[str, str], tmp_path: Path
) -> None:
    said = bytearray()
    times = iter(range(0, 10_000, 20))  # each look at the clock is twenty seconds later
    guard = audit_work._ExportGuard(Mock(say=said.extend), tmp_path / "export", 10**9, clock=lambda: float(next(times)))
    async with await Ledger.open(told_dsns["reader"], allow_unsafe_fsync=True) as ledger:
        [row] = await ledger.bindings()
        await export_binding(ledger, row, tmp_path / "export", progress=guard.told)
    assert said
    archive.write_archive(tmp_path / "export", "folder", said.extend)
    with tarfile.open(fileobj=io.BytesIO(said)) as found:
        names = found.getnames()
    assert names[-1] == "folder/manifest.json"
    (tmp_path / "all.tar").write_bytes(said)
    listed = subprocess.run(["tar", "-tf", "all.tar"], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert listed.stdout.split() == names


async def test_an_audit_that_was_ended_before_it_began_does_nothing() -> None:
    work = AsyncMock()
    audit = Audit[None](AsyncMock(), work)
    audit.end()
    with pytest.raises(AuditEndedError):
        await asyncio.to_thread(audit.run)
    assert not work.called
