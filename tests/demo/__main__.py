"""Four runs of two real inventories into one Infrahub, then both at once on a branch; at the end, the proof.

python -m tests.demo --state FOLDER
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path
from typing import Any

from rich.table import Table
from rich.text import Text

from tests.demo.workplace import DATA, INVENTORY, TWO_SOURCES, DemoFailed, Workplace, console, workplace

LIBRARY = "devicetype-library.config.yml"
NETBOX = "netbox-demo.config.yml"
RUNS = (
    ("device-type library", LIBRARY, "../devicetype-library/day1"),
    ("NetBox demo, day 0", NETBOX, "../netbox-demo-data/day0"),
    ("NetBox demo, day 1", NETBOX, "../netbox-demo-data/day1"),
    ("NetBox demo, day 1 again", NETBOX, "../netbox-demo-data/day1"),
)
DAY_1 = 3


def main() -> int:
    """Run the demo; 0 when everything it promises was seen."""
    parser = argparse.ArgumentParser(prog="python -m tests.demo")
    parser.add_argument("--state", type=Path, required=True, help="an empty folder for everything the demo makes")
    state: Path = parser.parse_args().state
    state.mkdir(parents=True, exist_ok=True)
    began = time.monotonic()
    try:
        with workplace(state) as place:
            _four_runs(place)
            _two_at_once(place)
            _proof(place)
    except DemoFailed as exc:
        console.print(Text(f"the demo failed: {exc}", style="bold red"))
        return 1
    console.print(f"\neverything above took {time.monotonic() - began:.0f} s; artifacts are in {state}", style="dim")
    return 0


def _title(text: str) -> None:
    console.print(Text(f"\n{text}", style="bold"))


def _plan(place: Workplace, config: str, *options: str) -> dict[str, Any]:
    planned: dict[str, Any] = place.run("plan", "--config-file", str(DATA / "configs" / config), *options)
    counts = planned["counts"]
    order = (("create", "create"), ("update", "update"), ("remove", "remove"), ("skip", "skip"), ("none", "none"))
    console.print("  " + " · ".join(f"{counts[key]:,} {word}" for key, word in order))
    return planned


def _apply(place: Workplace, planned: dict[str, Any], reason: str) -> dict[str, Any]:
    summary: dict[str, Any] = place.run(
        "apply", planned["run"], "--expected-checksum", planned["plan_checksum"], "--reason", reason
    )
    if summary["state"] != "applied" or summary["applied"] + summary["skipped"] != summary["planned"]:
        raise DemoFailed(f"run {summary['run_id']} ended {summary['state']}")
    return summary


def _four_runs(place: Workplace) -> None:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in ("run", "planned", "applied", "skipped", "failed", "operations/s", "ledger positions"):
        table.add_column(column, justify="left" if column == "run" else "right")
    for number, (title, config, directory) in enumerate(RUNS, start=1):
        _title(f"{number}. {title}")
        options = ["--source-setting", f"directory={directory}", "--branch", INVENTORY]
        if number == DAY_1:
            _require_guarded(place, config, *options)
            options.append("--allow-rowcount-drop")
        planned = _plan(place, config, *options)
        if number == len(RUNS):
            _require_nothing_to_write(planned)
            _show_recorded_deletes(place, planned)
        summary = _apply(place, planned, title)
        rate = summary["operations_per_second"]
        table.add_row(
            title,
            *(f"{summary[name]:,}" for name in ("planned", "applied", "skipped", "failed")),
            f"{rate:,.0f}" if rate else "–",
            f"{summary['committed_position']:,} to {summary['position']:,}",
        )
    _title(f"Four runs of two sources into {place.url} [{INVENTORY}]")
    console.print(table)


def _require_guarded(place: Workplace, config: str, *options: str) -> None:
    """On day 1 nine of fourteen AS numbers are gone: the guard wants a person to say by name that this is right."""
    place.run("plan", "--config-file", str(DATA / "configs" / config), *options, expect=3)
    console.print("  refused: a kind lost more than half of its rows; said by name, it is planned", style="yellow")


def _require_nothing_to_write(planned: dict[str, Any]) -> None:
    counts = planned["counts"]
    if counts["create"] or counts["update"]:
        raise DemoFailed(f"the repeated plan is not empty: {counts}")
    console.print("  the second plan of an unchanged world holds no create and no update", style="green")


def _show_recorded_deletes(place: Workplace, planned: dict[str, Any]) -> None:
    """Objects that only the other source has: recorded in the plan, named by who wrote them last, never executed."""
    review = place.run("show", planned["run"])
    by_writer: dict[str, int] = {}
    for resource in review["resources"]:
        if resource["action"] == "remove":
            by_writer[str(resource["last_writer"])] = by_writer.get(str(resource["last_writer"]), 0) + 1
    for writer, number in sorted(by_writer.items()):
        console.print(f"  recorded deletes, not executed: {number:,} objects last written by {writer}")


def _two_at_once(place: Workplace) -> None:
    _title(f"5. Both sources plan from one observation and commit at once, on the branch {TWO_SOURCES}")
    plans = [_plan(place, f"overlap-{config}", "--branch", TWO_SOURCES) for config in (LIBRARY, NETBOX)]
    for planned in plans:
        place.run("commit", planned["run"], "--expected-checksum", planned["plan_checksum"], "--reason", "at once")
    for planned in plans:
        _apply(place, planned, "at once")
    second = place.run("runs", "show", plans[1]["run_id"], quiet=True)
    if not second["overlaps_total"]:
        raise DemoFailed("the second run does not say what it overwrites")
    place.show("runs", "show", plans[1]["run_id"])


def _proof(place: Workplace) -> None:
    _title("6. The proof")
    reports = place.run("verify")
    for report in reports:
        levels = ", ".join(f"{level['level']} {level['status']}" for level in report["levels"])
        console.print(f"  {report['url']} [{report['branch']}]: {report['events']:,} events; {levels}")
        if not report["holds"]:
            raise DemoFailed("the ledger does not hold")
    for rebuilt in place.run("rebuild"):
        console.print(
            f"  projection {rebuilt['projection']} of {rebuilt['binding']}: {rebuilt['position']:,} events,"
            f" {rebuilt['documents']:,} documents, rebuilt {'equal' if rebuilt['equal'] else 'DIFFERENT'}"
        )
        if not rebuilt["equal"]:
            raise DemoFailed("a rebuilt projection differs from the live one")


if __name__ == "__main__":
    sys.exit(main())
