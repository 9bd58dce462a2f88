"""A sandbox for the session, a database and a pair of equal branches for each test: one disturbed, one calm."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from consumers.infrahub.sandbox import RunningSandbox
from ledger.store.ledger import Ledger
from tests.faults.evidence import commit_mixed
from tests.faults.writer_process import Task, run
from tests.support.processes import RealProcess
from tests.support.real_writer import REAL_SCHEMA, TOKEN, RealWriter
from tests.support.store import connection_to

StartWriter = Callable[..., RealProcess]
Content = list[dict[str, Any]]


@pytest.fixture(scope="session")
def sandbox() -> Iterator[RunningSandbox]:
    with RunningSandbox(REAL_SCHEMA, token=TOKEN, seed="faults") as running:
        running.store.create("OrganizationManufacturer", {"name": "Known", "description": "before"})
        running.store.create("OrganizationManufacturer", {"name": "Unlisted"})
        yield running


@pytest.fixture
async def disturbed(
    postgres18_ledger_dsns: dict[str, str], sandbox: RunningSandbox, tmp_path: Path
) -> AsyncIterator[RealWriter]:
    """The branch on which things happen."""
    name = f"disturbed-{len(sandbox.store.branches)}"
    sandbox.store.create_branch(name)
    dsn = postgres18_ledger_dsns["writer"]
    async with await Ledger.open(dsn, allow_unsafe_fsync=True) as ledger:
        yield RealWriter(dsn=dsn, ledger=ledger, sandbox=sandbox, branch=name, root=tmp_path / "disturbed")


@pytest.fixture
async def undisturbed(disturbed: RealWriter) -> Content:
    """What a branch holds after the same run without any disturbance; made once for each sandbox."""
    name = "undisturbed"
    calm = replace(disturbed, branch=name, root=disturbed.root.with_name("calm"))
    if name not in disturbed.sandbox.store.branches:
        disturbed.sandbox.store.create_branch(name)
        await commit_mixed(calm, "calm-1")
        assert (await calm.writer().drain("calm-1", by="ada")).ending == "run.applied"
    return calm.content()


@pytest.fixture
async def administrator(postgres18_ledger_dsns: dict[str, str]) -> AsyncIterator[Any]:
    """A superuser's connection to the ledger, to hold things up."""
    async with connection_to(postgres18_ledger_dsns["admin"]) as connection:
        yield connection


@pytest.fixture
def start_writer(disturbed: RealWriter) -> Iterator[StartWriter]:
    """Starts writer processes on the disturbed branch; none is left behind."""
    started: list[RealProcess] = []

    def start(run_id: str, **fate: Any) -> RealProcess:
        task = Task(
            dsn=disturbed.dsn,
            url=disturbed.sandbox.url,
            branch=disturbed.branch,
            token=TOKEN,
            root=str(disturbed.root),
            run_id=run_id,
            **fate,
        )
        started.append(RealProcess(run, task))
        return started[-1]

    yield start
    for process in started:
        process.clean_up()
