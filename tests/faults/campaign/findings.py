"""What an episode left behind: the facts for the checker, what is told of it, and what is kept of a violation."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from consumers.infrahub.sandbox import RunningSandbox
from consumers.infrahub.sandbox.branch import BranchStore
from tests.faults.campaign.runs import Committed
from tests.faults.campaign.script import Script, describe
from tests.faults.campaign.trail import read_trail
from tests.faults.campaign.writers import Writer
from tests.faults.checker import starved, strays, violations
from tests.faults.facts import Facts, Node, request_of, rows_of

_DEFECT = "a writer ended by a defect or an alarm"
Seen = Mapping[str, Sequence[tuple[int, str]]]


class Findings:
    """Gathers and checks, branch by branch. ``wrong`` are violations, ``counts`` what happened."""

    def __init__(self, script: Script, sandbox: RunningSandbox, folder: Path) -> None:
        self._script = script
        self._sandbox = sandbox
        self._folder = folder
        self._kept: dict[str, Any] = {}
        self.wrong: list[str] = []
        self.counts: Counter[str] = Counter()

    async def check_branch(
        self,
        branch: str,
        *,
        dsn: str,
        runs: Sequence[Committed],
        before: Mapping[str, Node],
        writers: Sequence[Writer],
        seen: Seen,
        stops: Sequence[float],
    ) -> None:
        """Read everything about one binding and run the checker over it."""
        rows = await rows_of(dsn, self._sandbox.url, branch)
        entries = [entry for entry in self._sandbox.journal.as_json() if entry["branch"] == branch]
        self._kept[branch] = {"rows": rows, "journal": entries}
        try:
            requests = [request_of(entry) for entry in entries]
        except ValueError as unnamed:
            self.wrong.append(f"{branch}: G4: {unnamed}")
            return
        trails = [read_trail(path) for path in self._folder.glob("*.trail")]
        steps = [step for trail in trails for step in trail if step["branch"] == branch]
        facts = Facts(
            binding=rows["binding"],
            events=rows["event"],
            inbox=rows["inbox"],
            artifacts=rows["artifact"],
            lines=rows["line"],
            runs={run.files.run_id: run.files for run in runs if run.branch == branch},
            requests=requests,
            before=before,
            after=nodes_of(self._sandbox.store.branches[branch]),
            seen=[*((s["position"], s["hash"]) for s in steps if s["step"] == "acknowledged"), *seen[branch]],
            freezes=[freeze for writer in writers for freeze in writer.freezes],
            stops=stops,
            receipts=[s for s in steps if s["step"] == "receipt" and s["what"] == "commit"],
            request_limit=self._script.times["request_timeout"] + self._script.times["margin"],
        )
        self.wrong += [f"{branch}: {violation}" for violation in violations(facts)]
        self.counts += tally(facts)

    def check_logs(self) -> None:
        """No writer and no operator may end by a defect, whatever is done to it."""
        for path in sorted(self._folder.glob("*.log")):
            text = path.read_text(encoding="utf-8", errors="replace")
            if _DEFECT in text or "Traceback" in text:
                self.wrong.append(f"{path.name}: a defect, see the log")
        for step in read_trail(self._folder / "operator.trail"):
            if step["step"] == "wrong":
                self.wrong.append(f"operator: {step['error']}")

    def keep(self) -> None:
        """Leave what is needed to look at a violation: script, rows, journal; trails and logs are there."""
        document = {"script": describe(self._script), "violations": self.wrong, "branches": self._kept}
        (self._folder / "episode.json").write_text(json.dumps(document, indent=1, default=str), encoding="utf-8")


def nodes_of(branch: BranchStore) -> dict[str, Node]:
    """The objects of a branch, as the checker reads them."""
    return {
        node.id: Node(
            kind=node.kind.name,
            values={name: node.read(name) for name in node.kind.attributes},
            peers={end.name: tuple(node.peer_ids(end.slot)) for end in node.kind.ends.values()},
        )
        for node in branch.nodes.values()
    }


def tally(facts: Facts) -> Counter[str]:
    """What happened on one binding, for the report."""
    counts: Counter[str] = Counter()
    for event in facts.events:
        counts["events"] += 1
        counts["writers that claimed"] += event["kind"] == "writer.opened"
        if event["kind"] == "operation.unknown":
            error = facts.body(event)["error"]
            counts[f"unknown: {error}"] += 1
            counts["take-overs of an operation in flight"] += error == "WriterDiedError"
        elif event["kind"].startswith(("operation.", "run.")) or event["kind"] == "plan.refused":
            counts[event["kind"]] += 1
    counts["runs"] += len(facts.runs)
    counts["requests"] += len(facts.requests)
    counts["requests of a starved machine"] += len(starved(facts))
    counts["stray requests of frozen writers"] += len(strays(facts)) - len(starved(facts))
    return counts
