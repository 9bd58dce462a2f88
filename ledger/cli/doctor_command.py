"""``doctor``: check the destinations and the ledger of this installation, and report what to do."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ledger.checkup import CheckResult, Said, Verdict, failure, good, run_checks
from ledger.cli.doctor_display import DoctorPage
from ledger.cli.doctor_kafka import of_kafka
from ledger.cli.doctor_source import of_source
from ledger.cli.doctor_store import of_store
from ledger.cli.output import OutputForm, write_document, write_record_line, write_stream_head
from ledger.cli.plan_commands import OutputOption
from ledger.cli.session import embedded, infrahub_settings, ledger_dsns, ledger_exists, occupied, run_async, settings_of
from ledger.errors import ApplyLedgerError, UsageError
from ledger.exit_codes import ExitCode

if TYPE_CHECKING:
    from consumers.infrahub.doctor import Identities
    from ledger.cli.settings import DestinationSettings, Settings
    from ledger.schema import DestinationSchema
    from producers.config import LoadedConfiguration

DOCUMENT = "apply-ledger.doctor"
DOCUMENT_VERSION = 1
STREAM = "doctor"
_LEDGER = "the ledger"


def register(app: typer.Typer) -> None:
    """Add the command of this module."""
    app.command("doctor", short_help="Check destinations and ledger, with what to do about problems.")(doctor)


def doctor(
    context: typer.Context,
    name: Annotated[str | None, typer.Option("--name", help="Name of a sync, looked for below --directory.")] = None,
    config_file: Annotated[
        Path | None, typer.Option("--config-file", help="A sync's configuration: its destination and its kinds.")
    ] = None,
    directory: Annotated[Path, typer.Option("--directory", help="Where config.yml files are looked for.")] = Path(),
    branch: Annotated[str | None, typer.Option("--branch", help="Branch of the sync's destination.")] = None,
    output: OutputOption = OutputForm.TABLE,
) -> int:
    """Check the declared destinations and the ledger. Nothing is written, and no secret is shown.

    With a sync only its destination is checked, and the kinds that it writes: whether they exist, how their objects are
    matched, and whether the account may write them. Exit code 1 if a check failed, otherwise 0; warnings do not
    change it.
    """
    if name is not None and config_file is not None:
        raise UsageError(
            checked="the options of doctor",
            expected="at most one of --name and --config-file",
            found="both",
            next_action="apply-ledger doctor --config-file FILE",
        )
    settings = settings_of(context)
    loaded = _configuration(name, config_file, directory)
    results = run_async(_report(settings, loaded, branch, output))
    return ExitCode.ERROR if any(result.said.verdict is Verdict.FAILURE for result in results) else ExitCode.DONE


def _configuration(name: str | None, config_file: Path | None, directory: Path) -> LoadedConfiguration | None:
    from producers.config import find_configuration, load_configuration

    if name is None and config_file is None:
        return None
    return load_configuration(config_file or find_configuration(directory, name or ""))


async def _report(
    settings: Settings, loaded: LoadedConfiguration | None, branch: str | None, form: OutputForm
) -> list[CheckResult]:
    """Every result, shown as it comes."""
    results: list[CheckResult] = []
    page = DoctorPage() if form is OutputForm.TABLE else None
    if form is OutputForm.NDJSON:
        write_stream_head(STREAM)
    async with aclosing(_results(settings, loaded, branch)) as found:
        async for result in found:
            results.append(result)
            if page is not None:
                page.show(result)
            elif form is OutputForm.NDJSON:
                write_record_line(result.record())
    counts = Counter(result.said.verdict for result in results)
    if page is not None:
        page.end(counts)
    elif form is OutputForm.JSON:
        document = {
            "document": DOCUMENT,
            "version": DOCUMENT_VERSION,
            "counts": {str(verdict): counts[verdict] for verdict in Verdict},
            "checks": [result.record() for result in results],
        }
        write_document(document)
    return results


async def _results(
    settings: Settings, loaded: LoadedConfiguration | None, branch: str | None
) -> AsyncGenerator[CheckResult, None]:
    try:
        destinations = _destinations(settings, loaded, branch)
    except ApplyLedgerError as exc:
        yield CheckResult("destinations", "declared", failure(f"{exc.checked}: {exc.found}", exc.next_action))
        destinations = []
    for destination in destinations:
        async with aclosing(_of_destination(settings, destination, loaded)) as found:
            async for result in found:
                yield result
    async with aclosing(of_source(loaded)) as found:
        async for result in found:
            yield result
    for part in (_of_ledger, of_kafka, of_store):
        async with aclosing(part(settings)) as found:
            async for result in found:
                yield result


def _destinations(
    settings: Settings, loaded: LoadedConfiguration | None, branch: str | None
) -> Sequence[DestinationSettings]:
    """The sync's destination, else every declared one."""
    from producers.config import resolve_binding

    if loaded is not None:
        return [settings.declared(resolve_binding(loaded.config, environ=os.environ, branch_flag=branch))]
    if branch is not None:
        raise UsageError(
            checked="--branch",
            expected="a sync whose branch it is (--config-file or --name)",
            found="none",
            next_action="apply-ledger doctor --config-file FILE --branch BRANCH",
        )
    if not settings.destination:
        raise UsageError(
            checked="the declared destinations",
            expected="at least one",
            found="none",
            next_action="add a [[destination]] to apply-ledger.toml, or set INFRAHUB_ADDRESS and INFRAHUB_API_TOKEN",
        )
    return settings.destination


async def _of_destination(
    settings: Settings, destination: DestinationSettings, loaded: LoadedConfiguration | None
) -> AsyncGenerator[CheckResult, None]:
    from consumers.infrahub.doctor import destination_checks
    from producers.binding import TOKEN_VARIABLE, destination_token

    subject = str(destination.binding)
    others = {key: value for key, value in os.environ.items() if key != TOKEN_VARIABLE}
    in_file = None if loaded is None else destination_token(loaded.config, environ=others)
    try:
        reach = infrahub_settings(settings, destination, fallback=in_file)
    except ApplyLedgerError as exc:
        yield CheckResult(subject, "settings", failure(f"{exc.checked}: {exc.found}", exc.next_action))
        return
    async with (
        destination_checks(reach, None if loaded is None else _identities(loaded)) as checks,
        aclosing(run_checks(subject, checks)) as found,
    ):
        async for result in found:
            yield result


def _identities(loaded: LoadedConfiguration) -> Identities:
    """What the configuration writes, by its own compilation: its faults are then faults of the check."""
    from producers.mapping import compile_mapping

    def identities(schema: DestinationSchema) -> Mapping[str, Sequence[str]]:
        mapping = compile_mapping(loaded.config, schema)
        return {kind: tuple(mapping.identity_fields(kind)) for kind in mapping.kinds}

    return identities


async def _of_ledger(settings: Settings) -> AsyncGenerator[CheckResult, None]:
    from ledger.store.checkup import LedgerCheckup

    subject = _LEDGER if settings.dsn is not None else f"{_LEDGER} ({embedded(settings).status().folder}, embedded)"
    if not ledger_exists(settings):
        yield CheckResult(subject, "database", _no_ledger(settings))
        return
    try:
        dsns = await ledger_dsns(settings)
    except ApplyLedgerError as exc:
        yield CheckResult(subject, "database", failure(f"{exc.checked}: {exc.found}", exc.next_action))
        return
    checkup = LedgerCheckup(dsns.writer, dsns.projector)
    try:
        async with aclosing(run_checks(subject, checkup.checks())) as found:
            async for result in found:
                yield result
    finally:
        await checkup.close()


def _no_ledger(settings: Settings) -> Said:
    folder = embedded(settings).status().folder
    if occupied(folder):
        return failure(
            "a folder that holds no ledger, or that this user may not read",
            "run this as the user whose ledger it is, or check APPLY_LEDGER_DATA_DIR or APPLY_LEDGER_DSN",
        )
    return good("none yet; plan and apply create one")
