"""Entry point: builds the application, turns refusals into exit codes, and lets defects keep their traceback."""

from __future__ import annotations

import errno
import gc
import os
import platform
import sys
import textwrap
import traceback
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Annotated

import typer
from typer.exceptions import TyperException

from ledger.cli.commands import modules
from ledger.cli.output import people, show_refusal
from ledger.cli.session import Invocation
from ledger.cli.streams import last_words, prepare_streams
from ledger.errors import ApplyLedgerError
from ledger.exit_codes import MEANING, ExitCode
from ledger.shortage import shortage_of

CYCLE_SEARCH = (100_000, 20, 50)
"""When Python looks for unreachable cycles: at this many new objects, and at how many such looks for older ones."""

_OUTPUT_ERRORS = frozenset({errno.ENOSPC, errno.EIO, errno.EDQUOT, errno.EFBIG})

_EPILOG = "\b\nExit codes:\n" + "\n".join(
    textwrap.fill(f"  {code.value:>3}  {meaning}", 76, subsequent_indent=" " * 7) for code, meaning in MEANING.items()
)
"""One a line: ``\\b`` keeps the help from joining them."""


def application(arguments: Sequence[str] = ()) -> typer.Typer:
    """The program with the commands that a call with these arguments needs; without any, with all of them."""
    app = typer.Typer(
        name="apply-ledger",
        no_args_is_help=True,
        add_completion=True,
        rich_markup_mode=None,  # its tables cut the names of options on a terminal of 80 columns
        pretty_exceptions_enable=False,
        help="Plan, review and apply changes to Infrahub from several sources, with a record of every operation.",
        epilog=_EPILOG,
    )
    app.callback()(_global_options)
    for module in modules(arguments):
        module.register(app)
    return app


def _show_version(wanted: bool) -> None:
    """What support asks for first: the program, the newest migration that it knows, and what runs it."""
    if wanted:
        from ledger.store.sql_files import migrations

        newest = migrations()[-1].version
        typer.echo(f"apply-ledger {version('apply-ledger')} (schema {newest}, Python {platform.python_version()})")
        raise typer.Exit


def _global_options(
    context: typer.Context,
    config: Annotated[
        Path | None,
        typer.Option(
            "--config", help="Settings file; default: ./apply-ledger.toml, then the user's.", show_default=False
        ),
    ] = None,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Log what the service does, on stderr.")] = False,
    _version: Annotated[
        bool, typer.Option("--version", help="Show the version and exit.", is_eager=True, callback=_show_version)
    ] = False,
) -> None:
    context.obj = Invocation(config=config, verbose=verbose)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code.

    A usage error is 64, because 2 means "changes present". A refusal is shown without a traceback; anything that is
    neither a refusal nor a shortage of the machine is a defect and propagates with its traceback (P141, P142).
    """
    given = sys.argv[1:] if arguments is None else list(arguments)
    try:
        result = application(given)(args=given, standalone_mode=False)
    except TyperException as exc:
        show = getattr(exc, "show", None)
        if show is not None:
            show()
        else:
            people.print(exc.format_message(), style="red")
        return ExitCode.USAGE
    except typer.Abort:
        return ExitCode.INTERRUPTED
    except KeyboardInterrupt:
        people.print("interrupted", style="yellow")
        return ExitCode.INTERRUPTED
    except BrokenPipeError:
        # the reader of our stdout went away (`| head`): nothing is wrong with the ledger
        sys.stderr.close()
        return ExitCode.DONE
    except OSError as exc:
        if exc.errno in _OUTPUT_ERRORS and exc.filename is None:
            return _output_lost(exc)
        return _machine_too_small(exc)
    except ApplyLedgerError as exc:
        if exc.exit_code is ExitCode.BUSY and shortage_of(exc) is not None:
            return _machine_too_small(exc)  # what this process lacks does not come back by trying again
        show_refusal(exc)
        return exc.exit_code
    except Exception as exc:  # noqa: BLE001 - raised again where the machine is not to blame
        return _machine_too_small(exc)
    return int(result) if isinstance(result, int) else ExitCode.DONE


def _output_lost(exc: OSError) -> int:
    """What was asked for is done and recorded; only the words about it found no place."""
    sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115 - open until the process ends
    people.print(f"the output could not be written: {exc.strerror}", style="red")
    return ExitCode.ERROR


def _machine_too_small(exc: Exception) -> int:
    """A named end where the machine ran short of something; a defect is raised again."""
    shortage = shortage_of(exc)
    if shortage is None:
        raise exc
    traceback.clear_frames(exc.__traceback__)  # what the ended work still holds may be all the memory there is
    last_words(lambda: show_refusal(shortage), "MachineShortageError: no memory is left for this process\n")
    return ExitCode.ERROR


def run() -> None:
    """The console script."""
    prepare_streams()
    # Plans are millions of objects without a cycle that live to the end of a command. Python's own setting goes through
    # all of them again and again: that took more time than everything else that is done with a plan.
    gc.set_threshold(*CYCLE_SEARCH)
    code = main()
    try:
        sys.stdout.flush()
    except OSError as exc:
        code = _output_lost(exc)
    sys.exit(code)


if __name__ == "__main__":
    run()
