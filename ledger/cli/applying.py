"""Waits for a committed run: as its writer if there is no other, otherwise by watching the ledger."""

from __future__ import annotations

import asyncio
import math
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from rich.text import Text

from ledger.cli.output import people
from ledger.cli.progress import Report, progress
from ledger.cli.run_display import order_words
from ledger.cli.run_lookup import find_run_directory
from ledger.cli.run_results import RunResult, order_document, run_result
from ledger.cli.session import infrahub_settings, known_schemas, ledger_dsns
from ledger.cli.verification_record import say_ledger
from ledger.errors import ApplyLedgerError
from ledger.exit_codes import ExitCode
from ledger.printable import words

if TYPE_CHECKING:
    from consumers.progress import RecordedEvents, WriterObserver, WriterProgress
    from consumers.sharing import Turns
    from consumers.writer import BindingWriter, OrderBell
    from ledger.binding import DestinationBinding
    from ledger.cli.settings import Settings
    from ledger.store.embedded import Dsns
    from ledger.store.ledger import Ledger

WATCH_EVERY = 0.5


class WaitTimeoutError(ApplyLedgerError):
    """The run did not end within the given time; it continues."""

    exit_code = ExitCode.BUSY


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
    from ledger.store.served import ServedLedger

    say_ledger(settings)
    dsns = await ledger_dsns(settings)
    ends = _Ends(asyncio.Event(), asyncio.Event())
    async with await ServedLedger.open(dsns.writer) as ledger:
        await _say_what_comes_first(ledger, binding, run_id)
        was_over = not is_new and not await _goes_on(ledger, binding, run_id)
        with progress("operations") as report, _ended_by_signals(ends), _ended_after(ends, wait_timeout) as timed_out:
            writer = new_writer(settings, dsns, binding, report, run_id=run_id)
            await _write_or_watch(writer, ledger, binding, run_id, by, ends, report)
        goes_on = await _goes_on(ledger, binding, run_id)
        found = await run_result(dsns, ledger, binding, run_id)
        result = replace(found, goes_on=goes_on, was_over=was_over)
    if timed_out.is_set() and result.state == "open":
        raise _waited_enough(run_id, wait_timeout)
    return result


async def _say_what_comes_first(ledger: Ledger, binding: DestinationBinding, run_id: str) -> None:
    """Orders are carried out in turn: whoever applies one plan is told which runs of others that begins with."""
    row = await ledger.binding(binding)
    said = {run_id}
    for order in [] if row is None else await ledger.open_orders(row.id):
        if order.run_id == run_id and order.kind != "stop":
            return
        if order.kind == "stop" or order.run_id in said:
            continue
        said.add(order.run_id)
        commit = None if row is None else await ledger.run_commit(row.id, order.run_id)
        of = "" if commit is None else f" of {words(commit.source)}"
        asked = f"its {order.kind} was ordered {order_words(order_document(order))}"
        people.print(Text.assemble(("waiting: ", "yellow"), f"run {order.run_id}{of} comes first: {asked}"))


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
            why, until = f"{exc.checked}: {exc.found}", ""
            if isinstance(exc, LeaseHeldError):
                # without the seconds that are left: they would make a new message of it each time
                why = f"another writer serves {binding}: {exc.facts.get('host')}, since {exc.facts.get('since')}"
                until = _lease_words(exc.facts.get("seconds"))
            if why != said:
                said = why
                people.print(Text.assemble(("waiting: ", "yellow"), why, until))
        row = await ledger.binding(binding)
        if row is None or not await _goes_on(ledger, binding, run_id):
            return
        # not "applying": the rate of what this process does itself later is counted on its own
        if done := await seen.count(ledger, row.id):
            report("followed", done, None)
        await asyncio.sleep(WATCH_EVERY)


def _lease_words(seconds: object) -> str:
    """What becomes of a wait for another writer: it goes on, or it is dead and its lease runs out."""
    if not isinstance(seconds, int | float):
        return ""
    return f"; if it is dead, its lease runs out in {max(seconds, 0):.0f} s, and the run goes on here"


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
    run_id: str | None = None,
    turns: Turns | None = None,
    bell: OrderBell | None = None,
    observe: WriterObserver | None = None,
    recorded: RecordedEvents | None = None,
) -> BindingWriter:
    """Make the writer of a declared destination, with this installation's times.

    ``run_id`` is the run that somebody waits for: the progress of any other is shown with its name. ``observe`` gets
    the progress as the terminal does, ``recorded`` the events of each append.
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
            other = "" if run_id in (None, progress.run_id) else f" run {progress.run_id} first"
            report(f"applying{other}", progress.done, progress.total)
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
