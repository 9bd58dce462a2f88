"""Waits for a committed run: as its writer if there is no other, otherwise by watching the ledger."""

from __future__ import annotations

import asyncio
import json
import math
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.text import Text

from ledger.cli.output import next_command, people
from ledger.cli.progress import Report, progress
from ledger.cli.run_lookup import find_run_directory
from ledger.cli.session import infrahub_settings, known_schemas, ledger_dsns
from ledger.errors import ApplyLedgerError, Finding
from ledger.exit_codes import ExitCode

if TYPE_CHECKING:
    from consumers.progress import RecordedEvents, WriterObserver, WriterProgress
    from consumers.sharing import Turns
    from consumers.writer import BindingWriter, OrderBell
    from ledger.binding import DestinationBinding
    from ledger.cli.settings import Settings
    from ledger.store.embedded import Dsns
    from ledger.store.ledger import Ledger

WATCH_EVERY = 0.5
_EXIT_CODES = {
    "applied": ExitCode.DONE,
    "failed": ExitCode.STOPPED_UNWRITTEN,
    "interrupted": ExitCode.STOPPED_MAYBE_WRITTEN,
    "stopped": ExitCode.INTERRUPTED,
    "open": ExitCode.INTERRUPTED,
}


class WaitTimeoutError(ApplyLedgerError):
    """The run did not end within the given time; it continues."""

    exit_code = ExitCode.BUSY


@dataclass(frozen=True, slots=True)
class RunResult:
    """What became of a run, from its projection.

    ``goes_on``: an order to carry it out is still open. ``was_over``: none was when the waiting began.
    """

    document: dict[str, Any]
    findings: Sequence[Finding]
    goes_on: bool = False
    was_over: bool = False

    @property
    def state(self) -> str:
        """The run's last terminal event, or ``open`` while an order to continue the run is open."""
        return "open" if self.goes_on else str(self.document["state"])

    @property
    def exit_code(self) -> ExitCode:
        """By state; a refusal has the code of what was found."""
        from consumers.errors import exit_code_of_refusal

        if self.state == "refused":
            return exit_code_of_refusal(self.findings)
        return _EXIT_CODES[self.state]


@dataclass(frozen=True, slots=True)
class _Ends:
    """The ways to end waiting: stop the run, or only stop waiting."""

    stop_run: asyncio.Event
    leave: asyncio.Event

    def any(self) -> bool:
        return self.stop_run.is_set() or self.leave.is_set()


async def carry_out(
    settings: Settings,
    binding: DestinationBinding,
    run_id: str,
    *,
    by: str,
    wait_timeout: float | None,
    is_new: bool = False,
) -> RunResult:
    """Wait for a run to end; claim the binding and work its inbox in order if nobody else does.

    Ctrl-C stops the run after the operation in flight where this process writes, else it ends the waiting. SIGTERM and
    ``wait_timeout`` (seconds) finish the operation in flight and leave the run open. ``is_new`` says that the order was
    just given: where it is over by now, somebody was quick, and it was not over before.

    Raises:
        WaitTimeoutError: ``wait_timeout`` seconds have passed.
        ApplyLedgerError: the ledger or the destination's settings.
    """
    from ledger.store.ledger import Ledger

    dsns = await ledger_dsns(settings)
    ends = _Ends(asyncio.Event(), asyncio.Event())
    async with await Ledger.open(dsns.writer) as ledger:
        was_over = not is_new and not await _goes_on(ledger, binding, run_id)
        with progress("operations") as report, _ended_by_signals(ends), _ended_after(ends, wait_timeout) as timed_out:
            await _write_or_watch(
                new_writer(settings, dsns, binding, report), ledger, binding, run_id, by, ends, report
            )
        goes_on = await _goes_on(ledger, binding, run_id)
        found = await run_result(dsns, ledger, binding, run_id)
        result = replace(found, goes_on=goes_on, was_over=was_over)
    if timed_out.is_set() and result.state == "open":
        raise _waited_enough(run_id, wait_timeout)
    return result


async def _goes_on(ledger: Ledger, binding: DestinationBinding, run_id: str) -> bool:
    """Whether anything is ordered for a run: until then it is not over, whatever its last event is."""
    row = await ledger.binding(binding)
    orders = [] if row is None else await ledger.open_orders(row.id)
    return any(order.run_id == run_id and order.kind != "stop" for order in orders)


async def _write_or_watch(
    writer: BindingWriter,
    ledger: Ledger,
    binding: DestinationBinding,
    run_id: str,
    by: str,
    ends: _Ends,
    report: Report,
) -> None:
    """The writer may die while we watch; then its lease runs out and the next claim is ours.

    The same holds if we were the writer and lost the lease: the next writer continues the run.
    """
    from consumers.errors import DispatchRefusedError, LeaseLostError
    from ledger.store.errors import EpochMovedError, FencedWriterError, LeaseHeldError

    said, seen = "", _Watched(run_id)
    while not ends.any():
        try:
            await writer.drain(run_id, by=by, interrupted=ends.stop_run, leave=ends.leave)
            return
        except (LeaseHeldError, EpochMovedError, FencedWriterError, LeaseLostError, DispatchRefusedError) as exc:
            why = f"{exc.checked}: {exc.found}"
            if isinstance(exc, LeaseHeldError):
                # without the seconds that are left: they would make a new message of it each time
                why = f"another writer serves {binding}: {exc.facts.get('host')}, since {exc.facts.get('since')}"
            if why != said:
                said = why
                people.print(Text.assemble(("waiting: ", "yellow"), why))
        row = await ledger.binding(binding)
        if row is None or not await _goes_on(ledger, binding, run_id):
            return
        report("applying", await seen.count(ledger, row.id), None)
        await asyncio.sleep(WATCH_EVERY)


@dataclass(slots=True)
class _Watched:
    """The operations of a run that have an outcome; each look reads what came since the last one."""

    run_id: str
    position: int = 0
    operations: set[str] = field(default_factory=set)

    async def count(self, ledger: Ledger, binding_id: int) -> int:
        async for event in ledger.events(binding_id, after=self.position, run_id=self.run_id):
            self.position = event.position
            if event.operation_id is not None:
                self.operations.add(event.operation_id)
        return len(self.operations)


class NewWaits:
    """Tells a wait that was not told yet from one that only has become shorter since."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._ends = -math.inf

    def is_new(self, seconds: float) -> bool:
        """Whether a wait of ``seconds`` from now ends later, by a second or more, than the last one that was told."""
        ends = self._clock() + seconds
        if seconds <= 0 or ends < self._ends + 1.0:
            return False
        self._ends = ends
        return True


def new_writer(
    settings: Settings,
    dsns: Dsns,
    binding: DestinationBinding,
    report: Report | None,
    *,
    turns: Turns | None = None,
    bell: OrderBell | None = None,
    observe: WriterObserver | None = None,
    recorded: RecordedEvents | None = None,
) -> BindingWriter:
    """Make the writer of a declared destination, with this installation's times.

    ``observe`` gets its progress as the terminal does, ``recorded`` the events of each append.
    """
    from consumers.infrahub.connection import InfrahubOpener
    from consumers.progress import uncounted
    from consumers.settings import WriterSettings
    from consumers.writer import BindingWriter

    waits = NewWaits()

    def shown(progress: WriterProgress) -> None:
        if observe is not None:
            observe(progress)
        if progress.phase == "applying" and report is not None:
            report("applying", progress.done, progress.total)
        elif progress.phase in ("settling", "taking_over") and waits.is_new(progress.seconds):
            wait = f"no request to {binding} for {progress.seconds:.0f} s {progress.detail}"
            people.print(Text.assemble(("settling: ", "yellow"), wait))

    return BindingWriter(
        dsns.writer,
        binding,
        InfrahubOpener(lambda asked: infrahub_settings(settings, settings.declared(asked)), known=known_schemas()),
        WriterSettings(artifact_root=settings.artifact_root, **settings.writer.model_dump()),
        aliases=settings.declared(binding).other_names,
        observe=shown,
        recorded=recorded or uncounted,
        turns=turns,
        bell=bell,
    )


async def run_result(dsns: Dsns, ledger: Ledger, binding: DestinationBinding, run_id: str) -> RunResult:
    """The projection of a run, brought up to date first, and the findings of a refusal."""
    from ledger.store.projections import ProjectionStore

    row = await ledger.binding(binding)
    async with await ProjectionStore.open(dsns.projector) as projections:
        await projections.catch_up()
        summary = await projections.run_summary(row.id, run_id) if row is not None else None
    if row is None or summary is None:
        raise LookupError(f"run {run_id} has no events on {binding}")
    findings: list[Finding] = []
    if summary.state == "refused":
        findings = await _findings(ledger, row.id, run_id)
    rate = summary.operations_per_second
    document = {
        **summary.document(),
        "operations_per_second": None if rate is None else round(rate, 1),
        "failure": await _failure(ledger, row.id, run_id) if summary.failed_operation else None,
    }
    return RunResult(document, findings)


async def _failure(ledger: Ledger, binding_id: int, run_id: str) -> dict[str, Any] | None:
    """What the last failed or unknown operation of a run said: the reason a person looks for first."""
    last = None
    async for event in ledger.events(binding_id, run_id=run_id):
        if event.kind in ("operation.failed", "operation.unknown"):
            last = event
    if last is None:
        return None
    body: dict[str, Any] = json.loads(last.body)
    return {key: body[key] for key in ("error", "message", "next_action")}


async def _findings(ledger: Ledger, binding_id: int, run_id: str) -> list[Finding]:
    from ledger.events import PlanRefused

    refusals = [event async for event in ledger.events(binding_id, run_id=run_id) if event.kind == "plan.refused"]
    return list(PlanRefused.model_validate_json(refusals[-1].body).findings) if refusals else []


def finish_artifact(root: Path, run: str, result: RunResult) -> None:
    """Complete ``run.json`` and, after an applied run, the row-count baseline; nobody else writes them (P122).

    The ledger has recorded the run: files beside the plan that cannot be completed change nothing about its outcome.
    """
    try:
        _finish_artifact(find_run_directory(root, run), result)
    except (ApplyLedgerError, OSError) as exc:
        people.print(Text(f"warning: the files of run {run} were not completed: {exc}", style="yellow"))


def _finish_artifact(run_dir: Path, result: RunResult) -> None:
    from ledger.plan.layout import MANIFEST_FILE
    from ledger.plan.manifest import decode_manifest, parse_manifest
    from ledger.projections.run_summary import SUMMARY_KEYS
    from producers.guards import rowcounts_of_snapshots
    from producers.run_directory import finish_run, write_rowcounts

    summary = {key: result.document[key] for key in SUMMARY_KEYS}
    finish_run(run_dir, status=result.state, summary=summary, finished_at=datetime.now(UTC))
    if result.state == "applied":
        manifest = parse_manifest(decode_manifest((run_dir / MANIFEST_FILE).read_bytes()))
        write_rowcounts(run_dir.parent, rowcounts_of_snapshots(manifest.source_snapshot))


def show_result(result: RunResult, run: str, *, table: bool) -> None:
    """The summary of a run for people, what failed, and the next command."""
    from ledger.cli.run_display import print_run

    if table:
        print_run(result.document)
    for finding in result.findings:
        people.print(Text(str(finding), style="red"))
    if result.state == "refused" and result.was_over:
        people.print("this is the result of the earlier commit; `resume` checks again, if needed with another policy")
        next_command(f"apply-ledger resume {run} --reason TEXT   (with --allow-stale if you decide so)")
        return
    if result.state == "applied" and result.was_over:
        people.print(f"it was applied before, at {result.document['ended_at']}; nothing was sent again")
    if result.state in ("interrupted", "stopped"):
        next_command(f"apply-ledger resume {run} --reason TEXT")
    elif result.state in ("failed", "refused"):
        # which of the two is right, the reason above says: only a person can tell what was fixed
        next_command(f"apply-ledger resume {run} --reason TEXT   (if the cause was fixed outside the plan)")
        next_command("apply-ledger plan …   (if the plan is the cause: make, review and apply a fresh one)")
    else:
        next_command(f"apply-ledger replay --run {result.document['run_id']}")


def _waited_enough(run_id: str, seconds: float | None) -> WaitTimeoutError:
    return WaitTimeoutError(
        checked=f"run {run_id}",
        expected=f"an end within {seconds:g} s",
        found="the run has not ended",
        next_action=f"`apply-ledger apply {run_id}` or a running `work` continues it; `runs show {run_id}` shows it",
    )


@contextmanager
def _ended_by_signals(ends: _Ends) -> Iterator[None]:
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGINT, ends.stop_run.set)
    loop.add_signal_handler(signal.SIGTERM, ends.leave.set)
    try:
        yield
    finally:
        loop.remove_signal_handler(signal.SIGINT)
        loop.remove_signal_handler(signal.SIGTERM)


@contextmanager
def _ended_after(ends: _Ends, seconds: float | None) -> Iterator[asyncio.Event]:
    """Cancelling the writer would leave its operation in doubt, so the time only asks it to leave."""
    timed_out = asyncio.Event()

    def end() -> None:
        timed_out.set()
        ends.leave.set()

    timer = None if seconds is None else asyncio.get_running_loop().call_later(seconds, end)
    try:
        yield timed_out
    finally:
        if timer is not None:
            timer.cancel()
