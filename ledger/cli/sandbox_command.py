"""``sandbox``: a small Infrahub on this machine, for trying things out."""

from __future__ import annotations

import os
import secrets
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ledger.cli.output import OutputForm, next_command, people, write_record_line
from ledger.cli.plan_commands import OutputOption
from ledger.exit_codes import ExitCode

if TYPE_CHECKING:
    from consumers.infrahub.sandbox.store_file import StoreFile


def register(app: typer.Typer) -> None:
    """Add the commands of this module."""
    app.command("sandbox", short_help="Serve a small in-memory Infrahub for tests.")(sandbox)


def sandbox(
    schema: Annotated[
        Path, typer.Option("--schema", help="File with an Infrahub's answer to GET /api/schema; tests/data has one.")
    ],
    host: Annotated[str, typer.Option("--host", help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option("--port", min=0, max=65535, help="Port; 0 takes a free one.")] = 8000,
    store: Annotated[
        Path | None,
        typer.Option("--store", help="File that stores the data, for the next start."),
    ] = None,
    output: OutputOption = OutputForm.TABLE,
) -> int:
    """Serve a sandbox Infrahub until Ctrl-C, in memory or with its data in a file.

    Its token is INFRAHUB_API_TOKEN, else a new one is shown; it is not stored in the file.
    """
    from consumers.infrahub.sandbox.server import serve

    given = os.environ.get("INFRAHUB_API_TOKEN", "").strip()
    token = given or secrets.token_urlsafe(24)

    found: dict[str, int] = {}

    def restored(kept: StoreFile) -> None:
        found["objects"] = kept.objects
        if kept.lost_unanswered:
            people.print("the last write was cut off by a kill; it had not been answered", style="yellow")

    def started(url: str) -> None:
        if output is not OutputForm.TABLE:
            write_record_line({"url": url, "pid": os.getpid(), **found})
            sys.stdout.flush()
        if store is None:
            people.print(f"sandbox Infrahub at {url}; all data is lost when it stops")
        else:
            people.print(f"sandbox Infrahub at {url}; {found['objects']:,} objects from {store}, where it is kept")
        if not given:
            # a token of a throw-away server on this machine, made a moment ago: showing it is how one gets in
            next_command(f"export INFRAHUB_ADDRESS={url} INFRAHUB_API_TOKEN={token}")

    serve(host, port, schema, token, store=store, started=started, restored=restored)
    return ExitCode.DONE
