"""``python -m tests.bench.live``: the cases that need a real Infrahub; ``make bench-live`` gives it one."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from tests.bench.__main__ import measured, show
from tests.bench.frame import Case
from tests.bench.live import end_to_end, inventory, loop_cases
from tests.bench.live.place import OURS, SYNC, Place
from tests.bench.live.sizes import SIZES
from tests.live.infrahub import given_infrahub

RUNNER = "make bench-live BENCH_ARGS=--only="
NAMES = ("sync-device-types", "sync-netbox", "write-loop", "bare-server", "ledger-share")


def cases(place: Place) -> list[Case]:
    """All cases, in the order in which they run."""
    what = "infrahub-sync sync ÷ our plan + apply, as processes, with durable outcomes:"
    types, netbox = inventory.device_types(place.sizes), inventory.netbox(place.sizes)
    return [
        end_to_end.case(NAMES[0], f"{what} device types of the library", place, types, RUNNER),
        end_to_end.case(NAMES[1], f"{what} NetBox, sites to devices", place, netbox, RUNNER),
        loop_cases.write_loop(place, RUNNER),
        loop_cases.bare_server(place, RUNNER),
        loop_cases.ledger_share(place, RUNNER),
    ]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the chosen cases; 0 whether or not targets are met: a bench informs, tests decide."""
    options = _parser().parse_args(arguments)
    sizes = SIZES[options.sizes]
    place = Place(given_infrahub(), sizes, options.sync.absolute(), options.ours.absolute())
    state: Path = options.state.absolute()  # commands run in folders of their own
    state.mkdir(parents=True, exist_ok=True)
    results = []
    for case in cases(place):
        if options.only and case.name not in options.only:
            continue
        print(f"{case.name} …", file=sys.stderr, flush=True)
        usual = sizes.inventory_rounds if case.name.startswith("sync-") else sizes.loop_rounds
        rounds = options.rounds or usual
        results.append(measured(case, state, rounds=rounds, smoke=options.sizes == "tiny"))
    show(results, state, smoke=options.sizes == "tiny", output=options.output)
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.live", description=__doc__)
    parser.add_argument("--only", action="append", choices=NAMES, metavar="NAME", help=f"one of: {', '.join(NAMES)}")
    parser.add_argument("--output", choices=("table", "json"), default="table")
    parser.add_argument("--sizes", choices=tuple(SIZES), default="full", help="how many objects (default full)")
    parser.add_argument("--rounds", type=int, help="of each variant, instead of what belongs to the sizes")
    parser.add_argument("--state", type=Path, default=Path(".state/bench-live"), help="where the results are kept")
    parser.add_argument("--sync", type=Path, default=SYNC, help="the program infrahub-sync (default: the one of make)")
    parser.add_argument("--ours", type=Path, default=OURS, help="the program apply-ledger (default: the one of here)")
    return parser


if __name__ == "__main__":
    sys.exit(main())
