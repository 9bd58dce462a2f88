"""Options of the orders ``commit``, ``apply``, ``resume`` and ``stop``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from ledger.errors import UsageError

ChecksumOption = Annotated[
    str | None,
    typer.Option("--expected-checksum", help="The reviewed plan checksum, as `show` prints it; required in scripts."),
]


def _storable(text: str | None) -> str | None:
    """What a shell passes on in another encoding has no place in an event."""
    if text is not None and any("\ud800" <= character <= "\udfff" for character in text):
        raise UsageError(
            checked="--reason and --actor",
            expected="text in UTF-8",
            found="bytes that are not UTF-8",
            next_action="give it in UTF-8; check the locale of this terminal",
        )
    return text


MAX_WAIT = 366 * 24 * 3600.0
"""Seconds. Also what keeps ``nan`` and ``inf`` out."""

ReasonOption = Annotated[
    str, typer.Option("--reason", callback=_storable, help="Reason for the order; it is recorded.")
]
ActorOption = Annotated[
    str | None,
    typer.Option("--actor", callback=_storable, help="Who gives the order (not authenticated); default: this user."),
]
OnUnknown = Literal["stop", "converge"]
OnCrash = Literal["resume", "stop"]
OnOverlap = Literal["warn", "refuse"]
OnUnknownOption = Annotated[
    OnUnknown,
    typer.Option("--on-unknown", help="If it is unclear whether an operation was written: stop, or send it again."),
]
OnCrashOption = Annotated[
    OnCrash, typer.Option("--on-crash", help="If the writer dies during the run: resume it, or stop it.")
]
OnOverlapOption = Annotated[
    OnOverlap,
    typer.Option("--on-overlap", help="If another source has since written the same objects: warn, or refuse."),
]
AllowStaleOption = Annotated[
    bool, typer.Option("--allow-stale", help="Apply although this source has applied a newer plan since.")
]
AllowChangeOption = Annotated[
    bool, typer.Option("--allow-destination-change", help="Apply to another destination than the plan was made for.")
]
OnUnknownAgain = Annotated[
    OnUnknown | None, typer.Option("--on-unknown", help="As for commit; default: as committed.", show_default=False)
]
OnCrashAgain = Annotated[
    OnCrash | None, typer.Option("--on-crash", help="As for commit; default: as committed.", show_default=False)
]
OnOverlapAgain = Annotated[
    OnOverlap | None, typer.Option("--on-overlap", help="As for commit; default: as committed.", show_default=False)
]
AllowStaleAgain = Annotated[
    bool | None,
    typer.Option("--allow-stale/--no-allow-stale", help="As for commit; default: as committed.", show_default=False),
]
AllowChangeAgain = Annotated[
    bool | None,
    typer.Option(
        "--allow-destination-change/--no-allow-destination-change",
        help="As for commit; default: as committed.",
        show_default=False,
    ),
]
ConfigFileOption = Annotated[
    Path | None, typer.Option("--config-file", help="The sync's configuration file, if it was moved.")
]
WaitTimeoutOption = Annotated[
    float | None,
    typer.Option(
        "--wait-timeout", min=0, max=MAX_WAIT, help="Maximum wait in seconds; then the run stays open (exit code 8)."
    ),
]
