"""``verify --export`` and ``verify --proof``: files that are checked without the ledger that they are from."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.text import Text

from ledger.cli.checkpoint_commands import key_folder
from ledger.cli.output import OutputForm, data_console, people, write_document, write_records
from ledger.cli.progress import progress
from ledger.cli.session import run_async
from ledger.errors import UsageError
from ledger.exit_codes import ExitCode
from ledger.plan.describe import object_text
from ledger.printable import visible

if TYPE_CHECKING:
    from ledger.audit import VerifyReport
    from ledger.audit.heads import TrustedCheckpoint
    from ledger.audit.signed_note import VerifyingKey
    from ledger.cli.settings import Settings


def trusted_of(settings: Settings, keys: Sequence[str] | None) -> list[VerifyingKey]:
    """The public keys that were named, else those of this installation's folder."""
    from ledger.audit.keys import trusted_keys

    return trusted_keys(keys or (), key_folder(settings))


def read_file(path: Path, limit: int) -> bytes:
    """A file that was named; a byte more than it may have is read, so that one that is too long is told so.

    Raises:
        UsageError: it cannot be read.
    """
    try:
        with path.open("rb") as file:
            return file.read(limit + 1)
    except OSError as exc:
        raise UsageError(
            checked=f"the file {path}",
            expected="a readable file",
            found=exc.strerror or type(exc).__name__,
            next_action="name a file that `apply-ledger checkpoint publish` or `apply-ledger prove` wrote",
        ) from exc


def verify_files(root: Path, keys: Sequence[VerifyingKey], checkpoints: Sequence[TrustedCheckpoint]) -> VerifyReport:
    """Verify an export."""
    from ledger.audit.export.verifying import verify_export

    with progress("events") as report:
        return run_async(
            verify_export(
                root, keys, checkpoints=checkpoints, progress=lambda done, total: report("verifying", done, total)
            )
        )


def show_proof(path: Path, keys: Sequence[VerifyingKey], form: OutputForm) -> int:
    """Check a proof and say what it shows, and what it does not."""
    from ledger.audit.proof_check import MAX_PROOF_BYTES, check_proof

    checked = check_proof(read_file(path, MAX_PROOF_BYTES), keys)
    document = {
        "holds": not checked.findings,
        "findings": [finding.model_dump(mode="json") for finding in checked.findings],
        **checked.facts,
    }
    if form is OutputForm.JSON:
        write_document(document)
    elif form is OutputForm.NDJSON:
        write_records([document], stream="proof")
    elif not checked.findings:
        _print(checked.facts)
    else:
        console = data_console()
        console.print(Text("THE PROOF DOES NOT HOLD", style="bold red"))
        for finding in checked.findings:
            console.print(Text(str(finding), style="red"), soft_wrap=True)
    if form is not OutputForm.TABLE or not sys.stdout.isatty():
        for finding in checked.findings:
            people.print(Text(str(finding), style="red"))
    return ExitCode.TAMPERED if checked.findings else ExitCode.DONE


_MEANINGS = {
    "operation.applied": "the operation was written",
    "operation.skipped": "the delete was recorded, and never sent",
    "operation.failed": "the operation wrote nothing",
}


def _came_of_it(outcomes: Sequence[Mapping[str, Any]]) -> str:
    """What the outcomes say together; an attempt in doubt stays one, unless a later one was written."""
    kinds = [outcome["kind"] for outcome in outcomes]
    if "operation.applied" not in kinds and "operation.unknown" in kinds:
        return "the operation may have been written: an answer was lost"
    return _MEANINGS["operation.applied" if "operation.applied" in kinds else kinds[-1]]


def _details(outcome: Mapping[str, Any]) -> list[str]:
    """The node that was written, or what came back instead."""
    node, error = outcome.get("node_id"), outcome.get("error")
    return [
        *([f"node {node}"] if node else []),
        *([f"{error}: {outcome.get('message')}"] if error else []),
    ]


def _print(facts: dict[str, Any]) -> None:
    console = data_console()
    operation, run = facts["operation"], f"{facts['run_id']}, source {facts['source']}"
    named = (
        f"{operation['operation_id']}: {operation['action']} {object_text(operation['kind'], operation['identity'])}"
    )
    console.print(Text(f"the proof holds: {_came_of_it(facts['outcomes'])}", style="bold green"))
    payload = operation.get("payload")
    asserted = "nothing: a recorded delete" if payload is None else json.dumps(payload, ensure_ascii=False)
    rows = [("operation", named), ("to write", asserted)]
    rows.append(("of run", f"{run}, committed by {facts['actor']} ({facts['reason'] or 'no reason given'})"))
    for resumed in facts["resumptions"]:
        said = f"had go on by {resumed['by']} ({resumed['reason'] or 'no reason given'})"
        rows.append((f"at {resumed['position']:,}", said))
    for outcome in facts["outcomes"]:
        told = f"{outcome['kind']}, attempt {outcome['attempt']}, {outcome['recorded_at']}"
        rows.append((f"at {outcome['position']:,}", ", ".join([told, *_details(outcome)])))
    signed = f"by {', '.join(facts['signed_by'])} at {facts['signed_at']}"
    rows.append(("signed", f"{signed}, every event up to {facts['checkpoint_position']:,}"))
    rows += [("not proven", text) for text in facts["not_proven"]]
    for label, text in rows:
        console.print(Text.assemble((f"  {label:<12}", "dim"), visible(text)), soft_wrap=True)
