"""``verify`` and ``rebuild``: prove the record whole, compute the read side anew."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.text import Text

from ledger.binding import DestinationBinding
from ledger.cli.chosen_bindings import BranchOption, UrlOption, chosen_bindings, normalised_url
from ledger.cli.compared_copies import compare_copies
from ledger.cli.offline_verification import read_file, show_proof, trusted_of, verify_files
from ledger.cli.output import (
    OutputForm,
    people,
    write_document,
    write_records,
    write_rows,
)
from ledger.cli.plan_commands import OutputOption
from ledger.cli.progress import progress
from ledger.cli.session import ledger_dsns, open_ledger, require_ledger, run_async, settings_of
from ledger.cli.topic_verification import audit_topic, show_topic_audit
from ledger.cli.verification_record import VerificationRecord, export_subject, ledger_subject, recorded
from ledger.cli.verify_report import print_findings, print_report
from ledger.errors import ApplyLedgerError, UsageError
from ledger.exit_codes import ExitCode

if TYPE_CHECKING:
    from ledger.audit import VerifyReport
    from ledger.audit.heads import TrustedCheckpoint
    from ledger.audit.signed_note import VerifyingKey
    from ledger.cli.settings import Settings
    from ledger.store.projection_rebuild import Rebuilt

REBUILD_COLUMNS = ("projection", "binding", "position", "documents", "equal", "digest")


class NothingToVerifyError(ApplyLedgerError):
    """The ledger is empty: there is nothing to verify."""


def register(app: typer.Typer) -> None:
    """Add the commands of this module."""
    app.command("verify", short_help="Check the chain, the stored plans and the outcomes.")(verify)
    app.command("rebuild", short_help="Recompute the projections and compare them with the live ones.")(rebuild)


def verify(
    context: typer.Context,
    url: UrlOption = None,
    branch: BranchOption = None,
    from_kafka: Annotated[
        bool, typer.Option("--from-kafka", help="Check the topic of events only, without the database.")
    ] = False,
    checkpoint: Annotated[
        list[Path] | None,
        typer.Option("--checkpoint", help="Signed checkpoint that was kept elsewhere; the ledger must extend it."),
    ] = None,
    resume_from: Annotated[
        Path | None, typer.Option("--resume-from", help="Trusted signed checkpoint; read only later events.")
    ] = None,
    key: Annotated[
        list[str] | None,
        typer.Option("--key", help="Public key, or a file with one; default: the folder of keys."),
    ] = None,
    export: Annotated[Path | None, typer.Option("--export", help="Verify an export, without the ledger.")] = None,
    proof: Annotated[Path | None, typer.Option("--proof", help="Verify a proof, without the ledger.")] = None,
    against: Annotated[
        Path | None,
        typer.Option("--against", help="An export of another copy: list the events that differ, instead of verifying."),
    ] = None,
    output: OutputOption = OutputForm.TABLE,
) -> int:
    """Check the chain of events, the stored plans and the outcomes; report what holds and what was not checked."""
    settings = settings_of(context)
    _refuse_unused(
        {
            "--from-kafka": from_kafka,
            "--proof": proof,
            "--export": export,
            "--url": url,
            "--branch": branch,
            "--checkpoint": checkpoint,
            "--resume-from": resume_from,
            "--key": key,
            "--against": against,
        }
    )
    if from_kafka:
        wanted = None if url is None else DestinationBinding(url=normalised_url(url), branch=branch or "main")
        return show_topic_audit(run_async(audit_topic(settings)), wanted, branch, output)
    if proof is not None:
        return show_proof(proof, trusted_of(settings, key), output)
    if against is not None:
        if export is None:
            require_ledger(settings)
        return compare_copies(settings, against, export, url, branch, output)
    given = _Given.read(settings, checkpoint or [], resume_from, key or [])
    if export is not None:
        record = recorded(export_subject(export), given.keys, given.files)
        return _show([verify_files(export, given.keys, given.kept)], record, output)
    require_ledger(settings)
    record = recorded(ledger_subject(settings), given.keys, given.files)
    return _show(run_async(_verify(settings, url, branch, given)), record, output)


@dataclass(frozen=True, slots=True)
class _Given:
    """What an auditor brings along.

    Attributes:
        keys: public keys that are trusted.
        kept: signed heads.
        start: the one from which on is read; None for the first event.
        files: by name, the bytes of those notes.
    """

    keys: Sequence[VerifyingKey]
    kept: Sequence[TrustedCheckpoint]
    start: TrustedCheckpoint | None
    files: Mapping[str, bytes]

    @classmethod
    def read(cls, settings: Settings, checkpoints: Sequence[Path], start: Path | None, keys: Sequence[str]) -> _Given:
        from ledger.audit.heads import require_signed, trusted_checkpoint
        from ledger.audit.signed_note import MAX_NOTE_BYTES

        trusted = trusted_of(settings, keys)
        files = {
            str(path): read_file(path, MAX_NOTE_BYTES)
            for path in [*checkpoints, *([start] if start is not None else [])]
        }
        notes = {name: trusted_checkpoint(data, name, trusted) for name, data in files.items()}
        for note in notes.values():
            require_signed(note, trusted)
        kept = [notes[str(path)] for path in checkpoints]
        return cls(trusted, kept, None if start is None else notes[str(start)], files)


_TAKES = {
    "--from-kafka": frozenset({"--url", "--branch"}),
    "--proof": frozenset({"--key"}),
    "--against": frozenset({"--export", "--url", "--branch"}),
    "--export": frozenset({"--key", "--checkpoint", "--against"}),
}
"""What is verified where it is not the ledger, and which options have a meaning there."""


def _refuse_unused(given: Mapping[str, object]) -> None:
    """An option that would be ignored is refused: whoever gave it believes that it was looked at.

    Raises:
        UsageError: options that do not belong together.
    """
    present = [name for name, value in given.items() if value]
    for way, takes in _TAKES.items():
        unused = [name for name in present if name != way and name not in takes]
        if way in present and unused:
            raise UsageError(
                checked=f"the options beside {way}",
                expected=f"only {', '.join(sorted(takes))}",
                found=", ".join(unused),
                next_action="leave these options out, or use them in a separate call",
            )


def _show(reports: Sequence[VerifyReport], record: VerificationRecord, output: OutputForm) -> int:
    documents = [report.document() | {"verification": record.document()} for report in reports]
    if output is OutputForm.TABLE:
        for report in reports:
            print_report(report, record)
    elif output is OutputForm.NDJSON:
        write_records(documents, stream="verify")
    else:
        write_document(documents)
    if not reports:
        raise NothingToVerifyError(
            checked="the bindings of this ledger",
            expected="at least one with a record to verify",
            found="none",
            next_action="check APPLY_LEDGER_DATA_DIR or APPLY_LEDGER_DSN; `apply-ledger runs` lists what was committed",
        )
    if all(report.holds for report in reports):
        return ExitCode.DONE
    if output is not OutputForm.TABLE or not sys.stdout.isatty():
        for report in reports:
            print_findings(report, people)  # whoever has the report go to a file is told at once as well
    return ExitCode.TAMPERED


async def _verify(settings: Settings, url: str | None, branch: str | None, given: _Given) -> list[VerifyReport]:
    from ledger.audit import verify_binding
    from ledger.audit.heads import require_of_these
    from ledger.audit.verify import in_one_spelling

    start = given.start
    checkpoints = [*given.kept, *([start] if start is not None else [])]
    async with open_ledger(settings) as ledger:
        reports = []
        rows = await chosen_bindings(ledger, url, branch)
        # one that somebody put in under another spelling is a finding of every other one
        rows = [row for row in rows if in_one_spelling(row)] or rows
        require_of_these(checkpoints, rows)
        for row in [row for row in rows if start is None or start.is_of(row.url, row.branch)]:
            with progress("events") as report:
                found = await verify_binding(
                    ledger,
                    row.binding,
                    progress=lambda done, total: report("verifying", done, total),
                    checkpoints=checkpoints,
                    resume_from=start,
                    keys=given.keys,
                )
            reports.append(found)
        return reports


def rebuild(context: typer.Context, output: OutputOption = OutputForm.TABLE) -> int:
    """Recompute every projection from the first event and compare it with the live one, byte for byte."""
    settings = settings_of(context)
    require_ledger(settings)
    found, names = run_async(_rebuild(settings))
    rows = [
        {
            "projection": item.projection,
            "binding": names[item.binding_id],
            "position": item.position,
            "documents": item.documents,
            "equal": item.equal,
            "digest": item.digest,
        }
        for item in found
    ]
    write_rows(rows, form=output, stream="rebuild", columns=REBUILD_COLUMNS, spare=("digest",))
    differing = [row for row in rows if row["equal"] is False]
    if differing:
        people.print(
            f"{len(differing)} live projections differed from the log and were replaced",
            style="yellow",
        )
    return ExitCode.ERROR if differing else ExitCode.DONE


async def _rebuild(settings: Settings) -> tuple[list[Rebuilt], dict[int, str]]:
    from ledger.projections.errors import ProjectionDriftedError
    from ledger.store.ledger import Ledger
    from ledger.store.projection_rebuild import rebuild as rebuild_projections
    from ledger.store.projections import ProjectionStore

    dsns = await ledger_dsns(settings)
    async with await ProjectionStore.open(dsns.projector) as projections:
        try:
            await projections.catch_up()
        except ProjectionDriftedError as exc:
            # after a restored backup the log lies behind the projection, and this command is the cure
            people.print(Text(f"the live projections do not follow from this log: {exc.found}", style="yellow"))
    found = await rebuild_projections(dsns.projector)
    async with await Ledger.open(dsns.reader) as ledger:
        return found, {row.id: str(row.binding) for row in await ledger.bindings()}
