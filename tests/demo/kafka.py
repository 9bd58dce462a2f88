"""Three sources, two destinations, two workers and a real broker; one worker is killed: ``make demo-kafka``.

python -m tests.demo.kafka --state FOLDER
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import httpx
from rich.table import Table
from rich.text import Text

from ledger.plan.layout import OPERATIONS_FILE
from tests.demo.killed_worker import Worker, kill_the_writer_of, working
from tests.demo.workplace import DATA, DemoFailed, Workplace, console, workplace
from tests.support.kafka_broker import KafkaCluster, KafkaStartError, broker_jars

EAST, WEST = "east", "west"
LIBRARY, OVERLAP, NETBOX = (
    "overlap-devicetype-library.config.yml",
    "overlap-netbox-demo.config.yml",
    "netbox-demo.config.yml",
)
PLANS = ((LIBRARY, EAST), (OVERLAP, EAST), (OVERLAP, WEST), (NETBOX, WEST))
"""Which source plans for which branch; the two sources of a branch share objects."""
TIMES = {
    "LEASE_TTL": "15",
    "REQUEST_TIMEOUT": "10",
    "MARGIN": "2",
    "SETTLE_SECONDS": "1",
}
"""Shorter than the defaults, so that nobody has to wait long for the end of a dead worker's lease."""
KILL_AFTER = 300
ALL_WITHIN = 600.0


def main() -> int:
    """Run the demo; 0 when everything it promises was seen."""
    parser = argparse.ArgumentParser(prog="python -m tests.demo.kafka")
    parser.add_argument("--state", type=Path, required=True, help="an empty folder for everything the demo makes")
    state: Path = parser.parse_args().state.resolve()
    state.mkdir(parents=True, exist_ok=True)
    began = time.monotonic()
    try:
        with _broker(state) as kafka, workplace(state, branches=(EAST, WEST), variables=_variables(kafka)) as place:
            _demo(place)
    except (DemoFailed, KafkaStartError) as exc:
        console.print(Text(f"the demo failed: {exc}", style="bold red"))
        return 1
    console.print(f"\neverything above took {time.monotonic() - began:.0f} s; artifacts are in {state}", style="dim")
    return 0


@contextmanager
def _broker(state: Path) -> Iterator[KafkaCluster]:
    _title("1. A real Kafka broker, and its two topics")
    with KafkaCluster(broker_jars(), state / "kafka") as running:
        console.print(f"  Apache Kafka answers at {running.bootstrap()}")
        yield running


def _variables(kafka: KafkaCluster) -> dict[str, str]:
    return {
        "APPLY_LEDGER_KAFKA__BROKERS": kafka.bootstrap(),
        **{f"APPLY_LEDGER_WRITER__{name}": value for name, value in TIMES.items()},
    }


def _demo(place: Workplace) -> None:
    for topic in place.run("kafka", "init"):
        console.print(f"  topic {topic['topic']}: {topic['state']}")
    _title("2. Three sources plan for two destinations")
    plans = [_plan(place, config, branch) for config, branch in PLANS]
    with ExitStack() as stack:
        _title("3. Two workers: each takes commits, writes one destination and relays events")
        workers = [stack.enter_context(working(place, name)) for name in ("worker-1", "worker-2")]
        _title("4. All of them commit at once, through the broker")
        _commit_at_once(place, plans)
        killed = _until_killed(place, workers)
        runs = _until_all_are_over(place, plans)
        _show_runs(place, runs)
        heads = _proof(place, [worker for worker in workers if worker is not killed])
    _end_state(place, runs, heads)


def _title(text: str) -> None:
    console.print(Text(f"\n{text}", style="bold"))


def _plan(place: Workplace, config: str, branch: str) -> dict[str, Any]:
    planned: dict[str, Any] = place.run("plan", "--config-file", str(DATA / "configs" / config), "--branch", branch)
    counts = planned["counts"]
    console.print(f"  {counts['create']:,} create · {counts['update']:,} update for [{branch}]")
    return planned | {"branch": branch, "config": config}


def _commit_at_once(place: Workplace, plans: Sequence[dict[str, Any]]) -> None:
    commits = [
        place.start("commit", plan["run"], "--expected-checksum", plan["plan_checksum"], "--output", "json")
        for plan in plans
    ]
    for plan, process in zip(plans, commits, strict=True):
        said, _ = process.communicate(timeout=60)
        if process.returncode != 0:
            raise DemoFailed(f"the commit of {plan['run']} ended with {process.returncode}")
        console.print(f"  {plan['run']} for [{plan['branch']}] is message {json.loads(said)['message']}")


def _until_killed(place: Workplace, workers: Sequence[Worker]) -> Worker:
    _title(f"5. kill -9 of the worker that writes [{WEST}], after {KILL_AFTER} requests of it")
    killed = kill_the_writer_of(place, WEST, workers, after=KILL_AFTER)
    console.print(f"  {killed.name} is dead; its lease runs out, and the other one goes on", style="yellow")
    return killed


def _until_all_are_over(place: Workplace, plans: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """The runs in the order of their commits, each with its plan's branch and configuration."""
    deadline, states = time.monotonic() + ALL_WITHIN, {}
    while time.monotonic() < deadline:
        states = {run["run"]: run["state"] for run in place.run("runs", quiet=True)}
        if all(states.get(plan["run_id"]) == "applied" for plan in plans):
            runs = [plan | place.run("runs", "show", plan["run_id"], quiet=True) for plan in plans]
            return sorted(runs, key=lambda run: (run["branch"], run["committed_position"]))
        if "refused" in states.values() or "failed" in states.values():
            break
        time.sleep(1.0)
    raise DemoFailed(f"not all runs were applied within {ALL_WITHIN:.0f} s: {states}")


def _show_runs(place: Workplace, runs: Sequence[dict[str, Any]]) -> None:
    requests = Counter(str(entry["branch"]) for entry in place.journal())
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in ("run", "branch", "state", "planned", "applied", "skipped", "unknown"):
        table.add_column(column, justify="left" if column in ("run", "branch", "state") else "right")
    for run in runs:
        counts = (f"{run[name] or 0:,}" for name in ("planned", "applied", "skipped", "unknown"))
        table.add_row(f"{run['source']}", run["branch"], run["state"], *counts)
    console.print(table)
    for branch in (EAST, WEST):
        applied = sum(run["applied"] for run in runs if run["branch"] == branch)
        again = requests[branch] - applied
        console.print(
            f"  [{branch}] was sent {requests[branch]:,} writes for {applied:,} operations: {again} sent again"
        )
        if not 0 <= again <= (1 if branch == WEST else 0):
            raise DemoFailed("more was sent again than the operation that the dead worker had in flight")


def _proof(place: Workplace, alive: Sequence[Worker]) -> dict[str, dict[str, Any]]:
    """The ledger verified, and the same heads found by a reader of the topic alone."""
    _title("6. The proof, from the ledger and from the topic alone")
    reports = {report["branch"]: report for report in place.run("verify")}
    for report in reports.values():
        levels = ", ".join(f"{level['level']} {level['status']}" for level in report["levels"])
        console.print(f"  [{report['branch']}]: {report['events']:,} events; {levels}")
        if not report["holds"]:
            raise DemoFailed("the ledger does not hold")
    for worker in alive:
        worker.until_relayed({branch: report["head_position"] for branch, report in reports.items()})
    for found in place.run("verify", "--from-kafka")["bindings"]:
        report = reports[found["branch"]]
        same = (found["head_position"], found["head_hash"]) == (report["head_position"], report["head_hash"])
        console.print(
            f"  [{found['branch']}] on topic ledger-events: {found['events']:,} events, {found['repeats']} repeats,"
            f" the head {'is the ledger’s' if same else 'DIFFERS'}"
        )
        if not (found["holds"] and same):
            raise DemoFailed("the topic does not prove the ledger")
    return reports


def _end_state(place: Workplace, runs: Sequence[dict[str, Any]], heads: dict[str, dict[str, Any]]) -> None:
    """As many objects as the plans name, once each; and who wrote last finds nothing left to write."""
    _title("7. The end state of both destinations")
    if set(heads) != {EAST, WEST}:
        raise DemoFailed(f"the ledger knows {sorted(heads)}")
    for branch in (EAST, WEST):
        of_branch = [run for run in runs if run["branch"] == branch]
        wanted = Counter(kind for kind, _ in _planned_objects(place, of_branch))
        found = {kind: _count(place, branch, kind) for kind in wanted}
        console.print(f"  [{branch}] holds {sum(found.values()):,} objects of {len(found)} kinds")
        if found != wanted:
            raise DemoFailed(f"[{branch}] holds {found}, planned were {dict(wanted)}")
        again = _plan(place, of_branch[-1]["config"], branch)["counts"]
        if again["create"] or again["update"]:
            raise DemoFailed(f"the last source of [{branch}] still finds {again}")
    console.print("  the sources that wrote last find nothing left to write", style="green")


def _planned_objects(place: Workplace, plans: Sequence[dict[str, Any]]) -> set[tuple[str, str]]:
    found = set()
    for plan in plans:
        lines = (place.state / "runs" / plan["run"] / OPERATIONS_FILE).read_text(encoding="utf-8").splitlines()
        for line in map(json.loads, lines):
            if line["action"] == "create":
                found.add((line["kind"], json.dumps(line["identity"], sort_keys=True)))
    return found


def _count(place: Workplace, branch: str, kind: str) -> int:
    answer = httpx.post(
        f"{place.url}/graphql/{branch}",
        headers={"X-INFRAHUB-KEY": place.token},
        json={"query": f"query {{ {kind} {{ count }} }}"},
        trust_env=False,
    )
    count: int = answer.json()["data"][kind]["count"]
    return count


if __name__ == "__main__":
    sys.exit(main())
