"""The whole path of a plan without a service: source rows, a sandbox read and written by the real client, the real
gate and writer, and a ledger in memory."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx

from consumers.infrahub.connection import InfrahubOpener, InfrahubSettings, declared, open_reader
from consumers.infrahub.peers import InfrahubPeerResolver
from consumers.infrahub.sandbox import JournalEntry, RunningSandbox
from consumers.infrahub.write_surface import InfrahubWriteSurface
from consumers.runs import RunOutcome
from consumers.settings import WriterSettings
from consumers.writer import BindingWriter
from ledger.binding import DestinationBinding
from ledger.commit import PlanCommit, Policy, commit_id
from ledger.errors import ApplyLedgerError
from ledger.exit_codes import ExitCode
from ledger.plan.checksum import artifact_digest
from ledger.plan.model import PlannedOperation
from ledger.plan.reader import load_plan_artifact
from producers.config import LoadedConfiguration
from producers.planning import PlannedRun, PlanOptions, make_plan
from tests.support.committed_plans import commit_of, in_order, save
from tests.support.memory_ledger import MemoryLedger
from tests.support.planning import CLOCK, small
from tests.support.plans import manifest_document
from tests.support.scripted_infrahub import RUN_ID, Guard, ScriptedInfrahub

Rows = Mapping[str, Sequence[Mapping[str, Any]]]


@dataclass
class WholePath:
    """One branch of a sandbox, and everything that stands before it."""

    folder: Path
    sandbox: RunningSandbox
    branch: str
    ledger: MemoryLedger = field(init=False)
    sent: list[dict[str, Any]] = field(default_factory=list)
    """The GraphQL requests of all writers, look-ups included, in order."""
    runs: int = 0
    answered_by: ScriptedInfrahub | None = None
    """Writes go to this one, where it is set, and no request reaches the sandbox."""

    def __post_init__(self) -> None:
        self.ledger = MemoryLedger(url=self.sandbox.url, branch=self.branch)

    @property
    def binding(self) -> DestinationBinding:
        return DestinationBinding(url=self.sandbox.url, branch=self.branch)

    @property
    def root(self) -> Path:
        """The root of all artifacts."""
        return self.folder / "runs"

    def settings(self, **changes: Any) -> InfrahubSettings:
        values = {"url": self.sandbox.url, "branch": self.branch, "token": self.sandbox.token, "retry_wait": 0}
        return InfrahubSettings(**{**values, "retry_wait_max": 0, "request_timeout": 10, **changes})

    def _wire(self) -> httpx.AsyncBaseTransport:
        return _Recorded(self.sent) if self.answered_by is None else self.answered_by.new_transport()

    # --- the destination

    def add(self, kind: str, /, **fields: Any) -> str:
        """Put an object into the branch; returns its id."""
        return self.sandbox.store.create(kind, fields, branch=self.branch)

    def values(self, kind: str, **identity: Any) -> dict[str, Any]:
        """The stored values of the one object of a kind with these values."""
        found = self._nodes(kind, identity)
        assert len(found) == 1, f"{len(found)} objects of {kind} with {identity}"
        return dict(found[0].values)

    def count(self, kind: str) -> int:
        return self.sandbox.store.count(kind, branch=self.branch)

    def content(self) -> list[dict[str, Any]]:
        """What the branch holds, without ids and times."""
        return self.sandbox.store.content(branch=self.branch)

    def mutations(self) -> list[JournalEntry]:
        """Every write that reached the branch."""
        return [entry for entry in self.sandbox.journal.entries() if entry.branch == self.branch]

    def _nodes(self, kind: str, identity: Mapping[str, Any]) -> list[Any]:
        store = self.sandbox.store
        with store.lock:
            nodes = list(store.branches[self.branch].of_kind(kind))
        return [node for node in nodes if all(node.values.get(name) == value for name, value in identity.items())]

    # --- planning

    async def plan(
        self, rows: Rows, mapping: Sequence[Mapping[str, Any]], *, page_size: int = 50, **options: Any
    ) -> PlannedRun:
        """Plan these rows with this mapping against the branch as it is now."""
        return await self.plan_loaded(small(self.folder, rows, mapping), page_size=page_size, **options)

    async def plan_loaded(self, loaded: LoadedConfiguration, *, page_size: int = 50, **options: Any) -> PlannedRun:
        """Plan a configuration whose rows are in place."""
        async with open_reader(self.settings(page_size=page_size)) as reader:
            return await make_plan(
                loaded, reader, root=self.root, options=PlanOptions(**options), clock=CLOCK, environ={}
            )

    def saved_plans(self) -> list[Path]:
        """Every manifest on disk: a run that was refused has none."""
        return sorted(self.root.glob("*/*/plan"))

    def hand_made(self, *operations: PlannedOperation) -> Path:
        """A plan that no planner of ours has seen, in the given order."""
        self.runs += 1
        return save(self.root, f"hand-made-{self.runs}", in_order(operations), binding=self.binding)

    # --- applying

    async def apply(self, run: PlannedRun | Path, *, policy: Policy | None = None, **commit: Any) -> RunOutcome:
        """Commit a plan and work the inbox until its run has ended."""
        run_dir = run if isinstance(run, Path) else run.run_dir
        manifest = load_plan_artifact(run_dir).manifest
        facts = {"config_version": manifest.config_version, "run_id": manifest.run_id, "ledger_position": None}
        self.ledger.commit(commit_of(self.root, run_dir, binding=self.binding, policy=policy, **(facts | commit)))
        return await self.writer().drain(manifest.run_id, by="ada")

    async def apply_lines(self, lines: bytes, manifest: bytes | None = None) -> RunOutcome:
        """A plan of exactly these bytes, committed as if a program of ours had written it."""
        self.runs += 1
        run_id = f"20260726T1804-{self.runs:08x}"
        plan = self.root / "forged" / run_id / "plan"
        plan.mkdir(parents=True)
        facts = {"run_id": run_id, "destination_binding": self.binding.model_dump(), "source": "forged"}
        document = manifest_document(lines, **facts)
        written = json.dumps(document).encode() if manifest is None else manifest
        (plan / "manifest.json").write_bytes(written)
        (plan / "operations.jsonl").write_bytes(lines)
        commit = PlanCommit(
            commit_id=commit_id(run_id, document["plan_checksum"]),
            run_id=run_id,
            binding=self.binding.normalised(),
            plan_checksum=document["plan_checksum"],
            artifact_digest=artifact_digest(written, lines),
            format_version=3,
            operations_count=document["operations_count"],
            config_version=document["config_version"],
            source="forged",
            artifact=f"forged/{run_id}",
            actor="mallory",
            committed_at="2026-11-29T18:05:00.000000+00:00",
        )
        self.ledger.commit(commit)
        return await self.writer().drain(run_id, by="ada")

    def writer(self) -> BindingWriter:
        """A new process."""
        settings = WriterSettings(
            artifact_root=self.root,
            lease_ttl=60.0,
            request_timeout=10.0,
            margin=5.0,
            settle_seconds=0.0,
            poll_interval=0.001,
            stop_poll_interval=0.0,
            open_attempts=1,
        )
        opener = InfrahubOpener(declared(self.settings()), factory=self._wire)
        return BindingWriter("memory", self.binding, opener, settings, connect=self.ledger, clock=self.ledger.clock)

    async def write_alone(self, operation: PlannedOperation) -> str:
        """One operation at the write surface, which no gate has seen."""
        async with self._surface() as surface:
            return await surface.apply_planned_operation(operation=operation, peers=surface.new_peer_resolver())

    @asynccontextmanager
    async def resolver(self) -> AsyncIterator[InfrahubPeerResolver]:
        """The look-up of peers in one apply that has written nothing yet."""
        async with self._surface() as surface:
            yield surface.new_peer_resolver()

    @asynccontextmanager
    async def _surface(self) -> AsyncIterator[InfrahubWriteSurface]:
        opener = InfrahubOpener(declared(self.settings()), factory=self._wire)
        async with opener(self.binding, run_id=RUN_ID, guard=Guard()) as opened:
            assert isinstance(opened.writes, InfrahubWriteSurface)
            yield opened.writes

    async def converge(self, rows: Rows, mapping: Sequence[Mapping[str, Any]]) -> list[PlannedOperation]:
        """Plan, apply, plan again: the second plan must be empty. Returns the first plan's operations."""
        run = await self.plan(rows, mapping)
        outcome = await self.apply(run)
        assert outcome.exit_code is ExitCode.DONE, outcome
        again = await self.plan(rows, mapping)
        assert [operation.identity for operation in operations(again)] == []
        return operations(run)

    def events(self, kind: str) -> list[dict[str, Any]]:
        """The bodies of all events of a kind, oldest first."""
        return [json.loads(event.body) for event in self.ledger.log if event.kind == kind]

    def operation_events(self) -> list[str]:
        """The kinds of all events about operations."""
        return [event.kind for event in self.ledger.log if event.kind.startswith("operation.")]


class _Recorded(httpx.AsyncHTTPTransport):
    """The real wire, with a copy of what went over it."""

    def __init__(self, sent: list[dict[str, Any]]) -> None:
        super().__init__(verify=False, trust_env=False)  # plain HTTP: no authorities have to be read
        self._sent = sent

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        if request.method == "POST":
            self._sent.append(json.loads(request.content))
        return await super().handle_async_request(request)


def operations(run: PlannedRun) -> list[PlannedOperation]:
    """The operations of a plan as stored."""
    return list(load_plan_artifact(run.run_dir).operations)


def names(error: ApplyLedgerError) -> list[str]:
    """The refusal classes that an error lists."""
    return [finding.name for finding in error.findings]
