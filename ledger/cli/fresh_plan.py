"""The command that plans again what a saved plan was made from."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from ledger.printable import visible

if TYPE_CHECKING:
    from ledger.plan.review import PlanOrigin


def fresh_plan(origin: PlanOrigin) -> str:
    """The command, ready to be copied as far as it is known what was read; a secret among the settings stays hidden."""
    settings = origin.record()["source_settings"]
    given = [word for name, value in settings.items() for word in ("--source-setting", f"{name}={value}")]
    named = ("--config-file", visible(origin.configuration or "FILE"), *given)
    return " ".join(("apply-ledger plan", *map(shlex.quote, named)))
