"""Every projection of this program."""

from __future__ import annotations

from ledger.projections.binding_status import BINDINGS
from ledger.projections.fold import Projection
from ledger.projections.run_lines import RUN_LINES
from ledger.projections.runs import RUNS

PROJECTIONS: tuple[Projection, ...] = (RUNS, RUN_LINES, BINDINGS)
