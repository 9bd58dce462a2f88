"""The runs of a soak: sources that write the same makers and device types, and ports of their own.

Each operation that is sent carries its run and its ordinal in a text, so that the destination alone tells what a
request was.
"""

from __future__ import annotations

import random
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from consumers.infrahub.sandbox import RunningSandbox
from ledger.binding import DestinationBinding
from ledger.commit import PlanCommit, Policy
from ledger.plan.model import PlannedOperation
from tests.faults.facts import PlannedRun, planned_run
from tests.faults.soak.script import Order
from tests.support.committed_plans import commit_of, in_order, save
from tests.support.inventory_operations import (
    changed_manufacturer,
    device_type,
    gone_manufacturer,
    interface_template,
    manufacturer,
)

KNOWN = tuple(f"Known {number}" for number in range(6))
"""Makers that are there before anything is committed."""

POLICY = Policy(on_unknown="converge", on_crash="resume", allow_stale=True)
_MAKERS, _MODELS = 4, 6
_MARK = re.compile(r"(s\d+-run-\d+) #(\d+)")


@dataclass(frozen=True)
class Committed:
    """A run with its files and its commit."""

    order: Order
    files: PlannedRun
    commit: PlanCommit


def make_run(order: Order, *, known: dict[str, str], url: str, branch: str, root: Path) -> Committed:
    """Save the run of an order below ``root``. ``known`` are the ids of the makers that were there before."""
    rng = random.Random(order.seed)
    binding = DestinationBinding(url=url, branch=branch)
    run_dir = save(root, order.run_id, _operations(order, rng, known), source=f"source-{order.source}", binding=binding)
    commit = commit_of(root, run_dir, binding=binding, policy=POLICY, source=f"source-{order.source}")
    return Committed(order, planned_run(run_dir), commit)


def _operations(order: Order, rng: random.Random, known: dict[str, str]) -> list[PlannedOperation]:
    maker, model = f"Maker {rng.randrange(_MAKERS)}", f"Model {rng.randrange(_MODELS)}"
    marks = (f"{order.run_id} #{ordinal}" for ordinal in range(order.size + 3))
    slug = f"{maker}-{model}".lower().replace(" ", "-")
    chosen = [
        manufacturer(maker, description=next(marks)),
        device_type(maker, model, slug=slug, comments=next(marks)),
    ]
    for number in range(order.size - 2):
        mark = next(marks)
        if number == 1:
            chosen.append(gone_manufacturer(f"Unlisted of {order.run_id}"))
        elif number == 2:
            name = rng.choice(KNOWN)
            chosen.append(changed_manufacturer(name, known[name], description=mark))
        else:
            chosen.append(interface_template(maker, model, f"port {number} of {order.run_id}", description=mark))
    return in_order(chosen)


def place_of(sent: dict[str, Any]) -> tuple[str, int] | None:
    """The run and the ordinal that a request names; None where it names none."""
    for name in ("description", "comments"):
        text = str((sent.get(name) or {}).get("value"))
        if found := _MARK.fullmatch(text):
            return found[1], int(found[2])
    return None


def add_known(sandbox: RunningSandbox) -> dict[str, str]:
    """Put the makers that are to be there before into the main branch; returns their ids."""
    fields = {"description": "before"}
    return {name: sandbox.store.create("OrganizationManufacturer", {"name": name, **fields}) for name in KNOWN}
