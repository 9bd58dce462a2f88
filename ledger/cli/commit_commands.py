"""``commit``, ``apply``, ``resume`` and ``stop``: orders for the single writer of a destination."""

from __future__ import annotations

import getpass
import os
import re
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.text import Text

from ledger import spans
from ledger.cli.applying import carry_out, finish_artifact
from ledger.cli.committing import PlacedCommit, order_resume, place_commit, until_taken
from ledger.cli.known_secrets import refuse_secrets
from ledger.cli.order_options import (
    ActorOption,
    AllowChangeAgain,
    AllowChangeOption,
    AllowStaleAgain,
    AllowStaleOption,
    ChecksumOption,
    ConfigFileOption,
    OnCrash,
    OnCrashAgain,
    OnCrashOption,
    OnOverlap,
    OnOverlapAgain,
    OnOverlapOption,
    OnUnknown,
    OnUnknownAgain,
    OnUnknownOption,
    ReasonOption,
    WaitTimeoutOption,
)
from ledger.cli.output import OutputForm, next_command, people, write_document, write_records
from ledger.cli.plan_commands import OutputOption, RunArgument
from ledger.cli.reasons import require_reason
from ledger.cli.run_display import order_words, show_result
from ledger.cli.run_lookup import binding_of_run, find_run_directory, plan_command, run_id_of
from ledger.cli.run_results import RunResult, is_served, order_document
from ledger.cli.session import open_ledger, run_async, run_traced, settings_of
from ledger.commit import Policy, PolicyChanges
from ledger.errors import UsageError
from ledger.exit_codes import ExitCode

if TYPE_CHECKING:
    from ledger.binding import DestinationBinding
    from ledger.cli.settings import Settings
    from ledger.store.records import OrderKind, Receipt
    from ledger.store.served import ServedLedger


def register(app: typer.Typer) -> None:
    """Add the commands of this module."""
    app.command("commit", short_help="Order a reviewed plan to be applied, without waiting.")(commit)
    app.command("apply", short_help="Commit a reviewed plan and wait for its end.")(apply)
    app.command("resume", short_help="Continue a run that stopped, failed or was refused.")(resume)
    app.command("stop", short_help="Stop a run between two operations.")(stop)


def commit(
    context: typer.Context,
    run: RunArgument,
    expected_checksum: ChecksumOption = None,
    reason: ReasonOption = "",
    actor: ActorOption = None,
    on_unknown: OnUnknownOption = "stop",
    on_crash: OnCrashOption = "resume",
    on_overlap: OnOverlapOption = "warn",
    allow_stale: AllowStaleOption = False,
    allow_destination_change: AllowChangeOption = False,
    config_file: ConfigFileOption = None,
    output: OutputOption = OutputForm.TABLE,
) -> int:
    """Give the order to apply a reviewed plan; the writer of the destination carries orders out one after the other."""
    policy = _policy(on_unknown, on_crash, on_overlap, allow_stale, allow_destination_change)
    settings = settings_of(context)
    require_reason(settings, reason)
    refuse_secrets(settings, config_file=config_file, reason=reason, actor=actor)

    async def work() -> tuple[PlacedCommit, bool]:
        placed = await _commit(settings, run, expected_checksum, reason, actor, policy, config_file)
        return placed, placed.receipt is not None and await _is_taken_up(settings, placed.commit.binding)

    placed, served = run_traced(work())
    _write_record(_document(placed), output, stream="commit")
    _say_committed(placed, run, table=output is OutputForm.TABLE, served=served)
    return ExitCode.DONE


def apply(
    context: typer.Context,
    run: RunArgument,
    expected_checksum: ChecksumOption = None,
    reason: ReasonOption = "",
    actor: ActorOption = None,
    on_unknown: OnUnknownOption = "stop",
    on_crash: OnCrashOption = "resume",
    on_overlap: OnOverlapOption = "warn",
    allow_stale: AllowStaleOption = False,
    allow_destination_change: AllowChangeOption = False,
    config_file: ConfigFileOption = None,
    wait_timeout: WaitTimeoutOption = None,
    output: OutputOption = OutputForm.TABLE,
) -> int:
    """Commit a reviewed plan and wait for its end; if no process serves the destination, be its writer."""
    policy = _policy(on_unknown, on_crash, on_overlap, allow_stale, allow_destination_change)
    settings = settings_of(context)
    require_reason(settings, reason)
    refuse_secrets(settings, config_file=config_file, reason=reason, actor=actor)

    async def work() -> RunResult:
        placed = await _commit(settings, run, expected_checksum, reason, actor, policy, config_file)
        await until_taken(settings, placed)
        order = placed.commit
        result = await carry_out(
            settings, order.binding, order.run_id, by=order.actor, wait_timeout=wait_timeout, is_new=placed.is_new
        )
        finish_artifact(settings.cache_dir, run, result)
        return result

    return _report(settings, run_traced(work()), run, output)


def resume(
    context: typer.Context,
    run: RunArgument,
    reason: ReasonOption = "",
    actor: ActorOption = None,
    on_unknown: OnUnknownAgain = None,
    on_crash: OnCrashAgain = None,
    on_overlap: OnOverlapAgain = None,
    allow_stale: AllowStaleAgain = None,
    allow_destination_change: AllowChangeAgain = None,
    wait: Annotated[
        bool, typer.Option("--wait/--no-wait", help="Wait for the run (and write, if no other process does).")
    ] = True,
    wait_timeout: WaitTimeoutOption = None,
    output: OutputOption = OutputForm.TABLE,
) -> int:
    """Continue a stopped, failed, interrupted or refused run with its first operation that has not succeeded.

    It runs under the policy that it was committed with, except where an option here says otherwise.
    """
    changes = PolicyChanges(
        on_unknown=on_unknown,
        on_crash=on_crash,
        on_overlap=on_overlap,
        allow_stale=allow_stale,
        allow_destination_change=allow_destination_change,
    )
    settings = settings_of(context)
    require_reason(settings, reason)
    refuse_secrets(settings, reason=reason, actor=actor)
    run_id = run_id_of(run)
    by = actor or _this_user()

    async def work() -> RunResult | None:
        async with open_ledger(settings) as ledger:
            row = await binding_of_run(ledger, run_id)
            receipt, _ = await order_resume(settings, ledger, row, run_id, by=by, reason=reason, changes=changes)
            await _say_ordered(ledger, row.id, receipt, run_id, "resume")
            if not wait:
                await _say_who_carries_out(ledger, row.binding)
        if not wait:
            return None
        result = await carry_out(settings, row.binding, run_id, by=by, wait_timeout=wait_timeout, is_new=True)
        if "/" in run or list(settings.cache_dir.glob(f"*/{run_id}")):
            finish_artifact(settings.cache_dir, run, result)
        return result

    result = run_traced(work())
    if result is None:
        next_command(f"apply-ledger runs show {run_id}")
        return ExitCode.DONE
    return _report(settings, result, run, output)


def stop(context: typer.Context, run: RunArgument, reason: ReasonOption = "", actor: ActorOption = None) -> int:
    """Stop a run between two operations. What was written stays written; `resume` continues the run."""
    settings = settings_of(context)
    require_reason(settings, reason)
    refuse_secrets(settings, reason=reason, actor=actor)
    run_id = run_id_of(run)

    async def work() -> None:
        async with open_ledger(settings) as ledger:
            row = await binding_of_run(ledger, run_id)
            receipt = await ledger.submit_stop(row.id, run_id=run_id, by=actor or _this_user(), reason=reason)
            await _say_ordered(ledger, row.id, receipt, run_id, "stop")
            await _say_who_carries_out(ledger, row.binding)

    run_async(work())
    next_command(f"apply-ledger runs show {run_id}")
    return ExitCode.DONE


async def _say_ordered(ledger: ServedLedger, binding_id: int, receipt: Receipt, run_id: str, kind: OrderKind) -> None:
    """Say that an order stands, or that one stood already: then by whom, and that nothing of this one is recorded."""
    if receipt.first:
        ends = "; its writer stops after the operation in flight" if kind == "stop" else ""
        people.print(f"run {run_id}: {kind} ordered{ends}")
        return
    known = await ledger.order(binding_id, receipt.order_id)
    told = "" if known is None else f", {order_words(order_document(known))}"
    people.print(
        Text.assemble(
            ("note: ", "yellow"),
            f"run {run_id}: a {kind} was ordered before{told}; nothing changed, and this reason is not recorded",
        )
    )


async def _say_who_carries_out(ledger: ServedLedger, binding: DestinationBinding) -> None:
    """Warn where nobody is there to carry an order out: it stays, and comes as a surprise with the next command."""
    row = await ledger.binding(binding)
    if row is None or await is_served(ledger, row):
        return
    people.print(
        Text.assemble(
            ("warning: ", "yellow"),
            f"no process serves {binding} now; the order waits for the next writer: `apply-ledger work`, or any `apply`"
            " or `resume` there, which carries it out before its own run",
        )
    )


async def _commit(
    settings: Settings,
    run: str,
    expected_checksum: str | None,
    reason: str,
    actor: str | None,
    policy: Policy,
    config_file: Path | None,
) -> PlacedCommit:
    from producers.commit import build_commit

    with spans.span("commit", kind="producer", parent=os.environ.get("TRACEPARENT")) as span:
        order = build_commit(
            find_run_directory(settings.cache_dir, run),
            actor=actor or _this_user(),
            reason=reason,
            policy=policy,
            clock=lambda: datetime.now(UTC),
            expected_checksum=_reviewed(expected_checksum),
            configuration=config_file,
            traceparent=span.traceparent,
        )
        span.tell("apply_ledger.run_id", order.run_id)
        return await place_commit(settings, order)


def _document(placed: PlacedCommit) -> dict[str, object]:
    """What `commit` prints: the inbox's answer, or the place of the message where that is still to come."""
    order, receipt, place = placed.commit, placed.receipt, placed.place
    return {
        "run_id": order.run_id,
        "commit_id": order.commit_id,
        "order_id": None if receipt is None else str(receipt.order_id),
        "first": None if receipt is None else receipt.first,
        "position": None if receipt is None else receipt.position,
        "message": None if place is None else str(place),
        "binding": order.binding.model_dump(),
        "plan_checksum": order.plan_checksum,
    }


async def _is_taken_up(settings: Settings, binding: DestinationBinding) -> bool:
    """Whether a process is there to carry out what was just ordered for a destination."""
    async with open_ledger(settings) as ledger:
        row = await ledger.binding(binding)
        return row is not None and await is_served(ledger, row)


def _say_committed(placed: PlacedCommit, run: str, *, table: bool, served: bool) -> None:
    order, receipt = placed.commit, placed.receipt
    if table and receipt is None:
        people.print(f"run {order.run_id} published as message {placed.place}")
    elif table and receipt is not None:
        again = "committed" if receipt.first else "had been committed before; nothing changed"
        people.print(f"run {order.run_id} {again} (ledger position {receipt.position})")
    if receipt is not None and served:
        next_command(f"apply-ledger runs show {order.run_id}   (a process serves the destination and carries it out)")
    elif receipt is None or receipt.first:
        next_command(f"apply-ledger apply {run} --expected-checksum {order.plan_checksum}")
        people.print("      or let a running `apply-ledger work` take it", style="dim")
    else:
        next_command(f"apply-ledger runs show {order.run_id}")


def _reviewed(checksum: str | None) -> str | None:
    """The checksum as typed or pasted, in any case and with blanks; a script must name what was reviewed (G1)."""
    if checksum is not None:
        return re.sub(r"\s+", "", checksum).lower()
    if sys.stdin.isatty():
        return None
    raise UsageError(
        checked="--expected-checksum",
        expected="the checksum of the plan that was reviewed: this is not a terminal",
        found="nothing",
        next_action="take it from `apply-ledger show RUN`",
    )


def _policy(
    on_unknown: OnUnknown, on_crash: OnCrash, on_overlap: OnOverlap, allow_stale: bool, allow_change: bool
) -> Policy:
    return Policy(
        on_unknown=on_unknown,
        on_crash=on_crash,
        on_overlap=on_overlap,
        allow_stale=allow_stale,
        allow_destination_change=allow_change,
    )


def _this_user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return "unknown"


def _report(settings: Settings, result: RunResult, run: str, output: OutputForm) -> int:
    _write_record(result.document, output, stream="run-summary")
    show_result(result, run, table=output is OutputForm.TABLE, fresh=plan_command(settings.cache_dir, run))
    return result.exit_code


def _write_record(record: dict[str, object], output: OutputForm, *, stream: str) -> None:
    if output is OutputForm.JSON:
        write_document(record)
    elif output is OutputForm.NDJSON:
        write_records([record], stream=stream)
