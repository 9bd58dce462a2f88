"""``serve`` and ``token``: the ledger over HTTP, and who may ask."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ledger.api.tokens import Role, new_token
from ledger.cli.output import OutputForm, next_command, people, write_document, write_records, write_rows
from ledger.cli.plan_commands import OutputOption
from ledger.cli.session import ledger_dsns, require_ledger, run_async, run_traced, settings_of
from ledger.errors import ApplyLedgerError, UsageError
from ledger.exit_codes import ExitCode

if TYPE_CHECKING:
    from datetime import datetime

    from ledger.cli.settings import Settings
    from ledger.store.embedded import Dsns
    from ledger.store.served import ServedLedger
    from ledger.store.tokens import StoredToken

DEFAULT_PORT = 8400
MAX_DAYS = 3650
COLUMNS = ("token_id", "name", "role", "state", "created_at", "expires_at", "last_used_at", "created_by")

token = typer.Typer(help="Create, list and revoke tokens of the HTTP API.", no_args_is_help=True)


class TokenNotFoundError(ApplyLedgerError):
    """No token has this id or name."""


def register(app: typer.Typer) -> None:
    """Add the commands of this module."""
    app.command("serve", short_help="Serve the dashboard and the HTTP API.")(serve)
    app.add_typer(token, name="token")


def serve(
    context: typer.Context,
    host: Annotated[str, typer.Option("--host", help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option("--port", min=0, max=65535, help="Port; 0 takes a free one.")] = DEFAULT_PORT,
    local: Annotated[
        bool,
        typer.Option("--local", help="No tokens: everybody on this machine may do everything. Loopback only."),
    ] = False,
    read_only: Annotated[bool, typer.Option("--read-only", help="Refuse all orders (commit, resume, stop).")] = False,
    certificate: Annotated[
        Path | None, typer.Option("--tls-certificate", help="PEM file with the certificate chain.")
    ] = None,
    key: Annotated[Path | None, typer.Option("--tls-key", help="PEM file with the private key.")] = None,
) -> int:
    """Serve dashboard and HTTP API until SIGTERM. Requests need a token (`token create`), unless --local is given.

    It accepts orders but applies nothing; `work` carries them out.
    """
    if (certificate is None) != (key is None):
        raise UsageError(
            checked="--tls-certificate and --tls-key",
            expected="both, or neither",
            found="one of them",
            next_action="name both files",
        )
    tls = None if certificate is None or key is None else (certificate, key)
    return run_traced(_serve(settings_of(context), host, port, local, read_only, tls))


async def _serve(
    settings: Settings, host: str, port: int, local: bool, read_only: bool, tls: tuple[Path, Path] | None
) -> int:
    from ledger.api.serving import Connections, listen, open_api, serve_until
    from ledger.cli.api_orders import CommandOrders
    from ledger.cli.checkpoint_commands import key_folder
    from ledger.cli.serving import until_signalled
    from ledger.dashboard.application import Dashboard
    from ledger.http_server import Certificate, address_of

    listener = listen(host, port, local=local)
    try:
        dsns = await ledger_dsns(settings)
        async with await _opened(dsns) as ledger:
            orders = None if read_only else CommandOrders(settings, ledger)
            connections = Connections(reader=dsns.reader, writer=dsns.writer, projector=dsns.projector)
            opened = open_api(
                connections,
                limits=settings.api,
                orders=orders,
                local=local,
                keys=key_folder(settings),
                pages=Dashboard,
            )
            async with opened as (app, service):
                stop = until_signalled()
                address = address_of(listener, tls=tls is not None)
                people.print(f"the ledger at {address}/api/v1")
                people.print(f"its pages at {address}/")
                _warn_of_plain_http(host, settings, tls)
                _say_who_may_ask(local=local, any_works=any(item.works for item in await ledger.tokens()))
                await serve_until(stop, app, service, listener, certificate=tls and Certificate(*tls))
    finally:
        listener.close()
    people.print("stopped")
    return ExitCode.DONE


def _warn_of_plain_http(host: str, settings: Settings, tls: tuple[Path, Path] | None) -> None:
    """Tokens and sessions that pass a network in clear can be read on it."""
    from ledger.api.serving import is_loopback

    if tls is None and not settings.api.secure_cookies and not is_loopback(host):
        people.print(
            "warning: tokens and pages pass the network in clear; give --tls-certificate and --tls-key or, if something"
            " in front speaks TLS, set api.secure_cookies",
            style="yellow",
        )


def _say_who_may_ask(*, local: bool, any_works: bool) -> None:
    if local:
        people.print("local mode: everybody who can reach this address may read and order everything", style="yellow")
    elif not any_works:
        people.print("there is no valid token yet, so nobody can use the API", style="yellow")
        next_command("apply-ledger token create NAME --role reader")


async def _opened(dsns: Dsns) -> ServedLedger:
    from ledger.store.served import ServedLedger

    return await ServedLedger.open(dsns.writer)


@token.command("create", short_help="Create a token; it is shown once.")
def create(
    context: typer.Context,
    name: Annotated[str, typer.Argument(help="Name of the owner, for people.")],
    role: Annotated[
        Role,
        typer.Option("--role", help="reader: runs and operations; auditor: also the record; operator: also orders."),
    ],
    days: Annotated[
        float | None,
        typer.Option("--expires-in", min=0.001, max=MAX_DAYS, help="Days until it expires; default: never."),
    ] = None,
    output: OutputOption = OutputForm.TABLE,
) -> int:
    """Create a token for the HTTP API and print it. Only a digest of it is stored."""
    wanted = _printable(name)
    made = new_token()

    async def work() -> datetime | None:
        async with await _opened(await ledger_dsns(settings_of(context))) as ledger:
            return await ledger.create_token(
                made.token_id,
                name=wanted,
                role=role.value,
                digest=made.digest,
                seconds=None if days is None else days * 86400,
            )

    until = run_async(work())
    if output is OutputForm.TABLE:
        typer.echo(made.text)
        people.print(f"token {made.token_id} of {wanted}, {role.value}, " + _until(until))
        people.print("it is shown this once; store it as a secret", style="yellow")
        return ExitCode.DONE
    record = {
        "token_id": made.token_id,
        "token": made.text,
        "name": wanted,
        "role": role.value,
        "expires_at": None if until is None else until.isoformat(),
    }
    if output is OutputForm.JSON:
        write_document(record)
    else:
        write_records([record], stream="token")
    return ExitCode.DONE


@token.command("list", short_help="List tokens.")
def list_tokens(context: typer.Context, output: OutputOption = OutputForm.TABLE) -> int:
    """List tokens, including revoked and expired ones. The tokens themselves are not stored and cannot be shown."""
    settings = settings_of(context)
    require_ledger(settings)
    rows = [_row(item) for item in run_async(_tokens(settings))]
    write_rows(rows, form=output, stream="tokens", columns=COLUMNS, total=len(rows), spare=("created_by", "created_at"))
    if not rows:
        people.print("there are no tokens")
        next_command("apply-ledger token create NAME --role reader")
    return ExitCode.DONE


@token.command("revoke", short_help="Revoke a token.")
def revoke(
    context: typer.Context, which: Annotated[str, typer.Argument(help="Its id, or its name.", metavar="TOKEN")]
) -> int:
    """Revoke a token at once. Its row is kept, because the record refers to it."""
    settings = settings_of(context)
    require_ledger(settings)

    async def work() -> StoredToken | None:
        async with await _opened(await ledger_dsns(settings)) as ledger:
            found = _named(await ledger.tokens(), which)
            return found if found is not None and await ledger.revoke_token(found.token_id) else None

    found = run_async(work())
    if found is None:
        raise TokenNotFoundError(
            checked="the token",
            expected="the id or name of an existing token",
            found="none",
            next_action="`apply-ledger token list` shows them",
        )
    people.print(f"token {found.token_id} of {found.name} is revoked")
    return ExitCode.DONE


async def _tokens(settings: Settings) -> list[StoredToken]:
    async with await _opened(await ledger_dsns(settings)) as ledger:
        return await ledger.tokens()


def _named(tokens: list[StoredToken], which: str) -> StoredToken | None:
    """By id, or by name: the one that works, where several had it."""
    found = [item for item in tokens if which in (item.token_id, item.name)]
    return next((item for item in found if item.works), found[-1] if found else None)


def _row(item: StoredToken) -> dict[str, object]:
    state = "works" if item.works else "revoked" if item.revoked_at else "expired"
    times = {name: getattr(item, name) for name in ("created_at", "expires_at", "last_used_at")}
    return {
        "token_id": item.token_id,
        "name": item.name,
        "role": item.role,
        "state": state,
        "created_by": item.created_by,
        **{name: None if moment is None else moment.isoformat(timespec="seconds") for name, moment in times.items()},
    }


def _until(moment: datetime | None) -> str:
    return "until it is revoked" if moment is None else f"until {moment.isoformat(timespec='seconds')}"


def _printable(name: str) -> str:
    if not name.strip() or not name.isprintable() or len(name.encode("utf-8", "surrogatepass")) > 128:
        raise UsageError(
            checked="the name of the token",
            expected="1 to 128 bytes of printable text",
            found="something else",
            next_action="choose another name",
        )
    return name
