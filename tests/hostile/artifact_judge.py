"""The system under test, called as the product calls it: the writer's way to the first write, and the reviewer's way.

The only module here that calls into the product. A verdict is an admission, or a refusal with its findings; any other
exception passes through, and is a violation.
"""

from __future__ import annotations

import asyncio
import hashlib
import io
import unicodedata
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console

from consumers.errors import RunRefusedError, exit_code_of_refusal
from consumers.gate import Gate, read_committed
from consumers.history import RunHistory
from ledger.binding import DestinationBinding
from ledger.cli.output import document_text, show_refusal
from ledger.commit import PlanCommit, Policy, commit_id
from ledger.destination import OpenDestination
from ledger.errors import ApplyLedgerError, Finding
from ledger.exit_codes import ExitCode
from ledger.plan.review import read_saved_plan, render_review, review_document
from tests.hostile.artifact_files import Artifact
from tests.hostile.artifact_plans import CONFIG_VERSION, RUN_ID
from tests.hostile.artifact_schema import hostile_schema
from tests.support.memory_ledger import MemoryLedger
from tests.support.scripted_destination import ScriptedDestination

SYNC = "sync"
BINDING = DestinationBinding(url="http://infrahub.example:8000", branch="main")
MAX_WORDS = 8_000
"""Characters of one part of a finding, and of one line that a person has to read."""
CANARY = "canary-5e0c81d7-secret"
"""Planted where a secret can stand; found nowhere."""
_UNSEEN = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})


@dataclass(frozen=True, slots=True)
class Verdict:
    """What became of an artifact. ``refusal`` is the class of the refusal; empty where the plan was admitted."""

    refusal: str
    findings: tuple[Finding, ...]
    exit_code: ExitCode = ExitCode.DONE

    @property
    def admitted(self) -> bool:
        """Whether the writer would begin to write."""
        return not self.refusal

    @property
    def names(self) -> frozenset[str]:
        """The names of all findings."""
        return frozenset(finding.name for finding in self.findings)


@dataclass(frozen=True, slots=True)
class Review:
    """What a reviewer sees: the texts of all forms, and what the review says the gate would refuse."""

    refusal: str
    findings: tuple[Finding, ...]
    texts: tuple[str, ...]


class Judge:
    """One destination and one ledger, for any number of artifacts below one root."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.run_dir = root / SYNC / RUN_ID
        self.destination = ScriptedDestination(schema=hostile_schema())
        self.ledger = MemoryLedger()
        self._loop = asyncio.new_event_loop()
        self._loop.set_default_executor(_Inline())

    def close(self) -> None:
        """End the loop."""
        self._loop.close()

    def commit(self, artifact: Artifact | None = None, **changes: Any) -> PlanCommit:
        """A commit that fits the artifact as well as one can: its maker committed what he made."""
        document = {} if artifact is None else artifact.document
        raw = b"" if artifact is None else (artifact.manifest or b"") + (artifact.operations or b"")
        checksum = document.get("plan_checksum")
        fields: dict[str, Any] = {
            "run_id": RUN_ID,
            "binding": BINDING,
            "plan_checksum": checksum if _is_digest(checksum) else "0" * 64,
            "artifact_digest": _sha256(raw),
            "format_version": document.get("format_version"),
            "operations_count": document.get("operations_count"),
            "config_version": CONFIG_VERSION,
            "source": document.get("source"),
        }
        usable = {"format_version": 3, "operations_count": 0, "source": "from-netbox"}
        for name, value in usable.items():
            kept = fields[name]
            fields[name] = kept if type(kept) is type(value) and _fits(name, kept) else value
        fields |= changes
        return PlanCommit(
            commit_id=commit_id(RUN_ID, fields["plan_checksum"]),
            artifact=f"{SYNC}/{RUN_ID}",
            ledger_position=0,
            actor="ada",
            committed_at="2026-11-29T18:05:00.000000+00:00",
            **fields,
        )

    def judge(self, commit: PlanCommit) -> Verdict:
        """The writer's way: read, verify, parse, check against the schema. Nothing is written."""
        try:
            raw = read_committed(self.root, commit)
            gate = Gate(self.ledger, 1, BINDING, commit, Policy(), RunHistory(RUN_ID))
            opened = OpenDestination(writes=self.destination, schema=self.destination.schema, longest_request=0.0)
            self._loop.run_until_complete(gate.admit(raw, opened))
        except RunRefusedError as refusal:
            return Verdict(type(refusal).__name__, refusal.findings, exit_code_of_refusal(refusal.findings))
        except ApplyLedgerError as refusal:
            return Verdict(type(refusal).__name__, refusal.findings, refusal.exit_code)
        return Verdict("", ())

    def wrote_anything(self) -> bool:
        """Whether a request or an event left, which no refusal and no admission may cause."""
        return bool(self.destination.received or self.destination.opened or self.ledger.log or self.ledger.plans)


class _Inline(ThreadPoolExecutor):
    """Does at once what the gate gives to a thread: there is nothing to wait for here, and changing threads costs."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()
        try:
            future.set_result(fn(*args, **kwargs))
        except BaseException as exc:  # noqa: BLE001 - handed on to whoever waits for it, as an executor does
            future.set_exception(exc)
        return future


def review(run_dir: Path, *, rendered: bool = True) -> Review:
    """The reviewer's way: read, and print in both depths and as a document."""
    try:
        saved = read_saved_plan(run_dir)
    except ApplyLedgerError as refusal:
        return Review(type(refusal).__name__, refusal.findings, (refusal_text(refusal),) if rendered else ())
    if not rendered:
        return Review("", saved.problems, ())
    texts = []
    for detail in (False, True):
        console = Console(file=io.StringIO(), width=120, highlight=False, markup=False)
        render_review(saved, console, detail=detail)
        texts.append(console.file.getvalue())  # type: ignore[attr-defined]  # it is the StringIO from above
    return Review("", saved.problems, (*texts, document_text(review_document(saved))))


def refusal_text(refusal: ApplyLedgerError) -> str:
    """A refusal as the command line prints it."""
    console = Console(file=io.StringIO(), width=120, highlight=False, markup=False)
    show_refusal(refusal, console=console)
    return console.file.getvalue()  # type: ignore[attr-defined,no-any-return]  # it is the StringIO from above


def faults_of_words(findings: tuple[Finding, ...]) -> Iterator[str]:
    """What is wrong with the words of a refusal: none, too many, unprintable, or a secret among them."""
    if not findings:
        yield "a refusal without a finding"
    for finding in findings:
        for part in ("name", "checked", "expected", "found", "next_action"):
            text = getattr(finding, part)
            if not text.strip():
                yield f"{finding.name}: {part} is empty"
            if len(text) > MAX_WORDS:
                yield f"{finding.name}: {part} has {len(text):,} characters"
            yield from (f"{finding.name}: {part}: {fault}" for fault in faults_of_text(text, breaks=""))


def faults_of_text(text: str, *, breaks: str = "\n") -> Iterator[str]:
    """What must not reach a terminal: characters that it acts on or that cannot be seen, and planted secrets."""
    if not (text.isascii() and text.isprintable()):
        unseen = {char for char in set(text) - set(breaks) if unicodedata.category(char) in _UNSEEN}
        if unseen:
            yield f"unprintable {', '.join(sorted(ascii(char) for char in unseen))}"
    if CANARY in text:
        yield "a planted secret"


def _is_digest(value: Any) -> bool:
    return isinstance(value, str) and len(value) == 64 and set(value) <= set("0123456789abcdef")


def _fits(name: str, value: Any) -> bool:
    if name == "source":
        return value.isascii() and value.replace("-", "").isalnum() and not value.startswith("-") and len(value) < 100
    return bool(0 <= value < 2**62)


def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
