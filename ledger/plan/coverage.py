"""The coverage report: every resource that a plan considered, changed or not (H5 to H26, design 4.12).

``plan/coverage.jsonl`` is next to the operations and is canonical like them: one line for each mapping entry and
object after its filters, each with exactly one action. Forty resources report forty (H11). ``none`` and ``skip`` are
here alone; they never enter ``operations.jsonl``. The observed values are the before-images that reviews, blame and
inverse plans read.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Annotated, Any, Literal, Protocol, Self, get_args

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    ValidationInfo,
    model_validator,
)

from ledger.plan.canonical import Identity, canonical_identity, canonical_json_bytes, canonical_operation_id
from ledger.plan.decode import decode_canonical_line
from ledger.plan.describe import object_text
from ledger.plan.errors import CoverageInvalidError
from ledger.plan.field_problems import field_problems
from ledger.plan.layout import REPLAN
from ledger.plan.model import DECODED, OperationId, few_keys

CoverageAction = Literal["create", "update", "remove", "skip", "none"]
COVERAGE_ACTIONS: tuple[CoverageAction, ...] = get_args(CoverageAction)
"""The whole vocabulary, in the order in which summaries count it; new kinds add none (H14)."""

_OPERATION_ACTION: Mapping[CoverageAction, str] = {"create": "create", "update": "update", "remove": "delete"}
MAX_DIFFERENCES = 10_000
"""Differing fields of one resource; no kind has as many fields."""
_LEFT_OUT = ("operation_id", "destination_id", "differences", "entry", "filters", "reason")


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, hide_input_in_errors=True)


class Difference(_Strict):
    """One differing field: what the destination had and what the source wants, both in normal form (H16).

    References are ``{"identity": ..., "peer_kind": ...}``, peers of many a list of them. Null means null.
    """

    observed: Any
    desired: Any


class MappingEntry(_Strict):
    """The mapping entry that selected the resource: its place in ``schema_mapping`` and its source endpoint (H18)."""

    index: int = Field(ge=0)
    name: str


class Providers(_Strict):
    """The adapters that the two sides were read through (H17)."""

    source: str
    destination: str


def _few_differences(value: Any) -> Any:
    if isinstance(value, Mapping) and len(value) > MAX_DIFFERENCES:
        raise ValueError(f"there are {len(value):,}")
    return value


class CoverageLine(_Strict):
    """One resource and its action.

    Attributes:
        action: ``create``, ``update``, ``remove`` (a recorded delete), ``none`` or ``skip``.
        tier: that of the operation, or of the kind if there is none; lines are ordered by it.
        operation_id: present for exactly the first three actions, and that of the operation.
        destination_id: the id that was observed; present unless the object does not exist there.
        differences: the differing fields of an update; of a remove, the values that were there, where they are known.
        entry: the mapping entry; a remove has one only where the kind has a single entry.
        filters: the entry's filters, as configured.
        reason: why it was skipped (always), or what a reviewer has to know (a reference that was left out).
    """

    kind: str
    identity: Identity
    action: CoverageAction
    tier: int = Field(default=0, ge=0)
    operation_id: OperationId | None = None
    destination_id: str | None = None
    differences: Annotated[
        dict[str, Annotated[Difference, BeforeValidator(few_keys)]], BeforeValidator(_few_differences)
    ] = Field(default_factory=dict)
    entry: Annotated[MappingEntry, BeforeValidator(few_keys)] | None = None
    filters: Annotated[list[dict[str, Any]], Field(fail_fast=True)] = Field(default_factory=list)
    providers: Annotated[Providers, BeforeValidator(few_keys)]
    reason: str | None = None

    @model_validator(mode="before")
    @classmethod
    def _canonical_identity(cls, data: Any, info: ValidationInfo) -> Any:
        if (
            not isinstance(few_keys(data), Mapping)
            or info.context == DECODED
            or not isinstance(data.get("identity"), Mapping)
        ):
            return data
        return {**data, "identity": canonical_identity(data["identity"], kind=str(data.get("kind")))}

    @model_validator(mode="after")
    def _shape(self) -> Self:
        for problem in self._problems():
            raise ValueError(problem)
        return self

    def _problems(self) -> Iterator[str]:
        if not self.identity:
            yield "identity is empty; it names no object"
        if self.operation_id is None and self.action in _OPERATION_ACTION:
            yield f"a {self.action} has an operation"
        if self.operation_id is not None and self.operation_id != self._derived_id():
            yield "operation_id does not match action, kind and identity"
        if self.action in ("update", "remove", "none") and not (self.destination_id or "").strip():
            yield f"a {self.action} is about an object at the destination and names its id"
        if self.action == "create" and self.destination_id is not None:
            yield "a create is about an object that is not at the destination"
        if self.action == "skip" and not (self.reason or "").strip():
            yield "a skip says why"  # H19
        if self.action == "update" and not self.differences:
            yield "an update differs in at least one field"  # H8
        if self.action == "none" and self.differences:
            yield "nothing differs where nothing is done"  # H6
        if self.entry is None and self.action != "remove":
            yield "the mapping entry that selected the resource is missing"  # H18

    def _derived_id(self) -> str | None:
        action = _OPERATION_ACTION.get(self.action)
        return None if action is None else canonical_operation_id(action, self.kind, self.identity)

    @property
    def order(self) -> tuple[int, str, int]:
        """Like operations, by tier and identifier; one without an operation takes the id that it would have (H24)."""
        own = self.operation_id or canonical_operation_id(self.action, self.kind, self.identity)
        return self.tier, own, self.entry_index

    @property
    def resource(self) -> bytes:
        """What has exactly one action: the object, as selected by its mapping entry."""
        return canonical_json_bytes([self.entry_index, self.kind, self.identity])

    @property
    def entry_index(self) -> int:
        """The place of the mapping entry; -1 if there is none, before all others."""
        return -1 if self.entry is None else self.entry.index

    def record(self) -> dict[str, Any]:
        """The record as it is in a line; what is absent or empty is left out, nulls inside values stay."""
        record: dict[str, Any] = {
            name: value
            for name, value in vars(self).items()
            if value is not None and (name not in ("differences", "filters") or value)
        }
        record["providers"] = dict(self.providers)
        if self.entry is not None:
            record["entry"] = dict(self.entry)
        if self.differences:
            record["differences"] = {name: dict(difference) for name, difference in self.differences.items()}
        return record

    def line(self) -> bytes:
        """The canonical line with its newline."""
        return canonical_json_bytes(self.record()) + b"\n"


class WrittenLine(Protocol):
    """A line as it is written: a :class:`CoverageLine`, or what writes the same bytes faster."""

    @property
    def kind(self) -> str:
        """The kind of the resource."""

    @property
    def identity(self) -> Identity:
        """Its canonical identity."""

    @property
    def action(self) -> CoverageAction:
        """What is done with it."""

    @property
    def order(self) -> tuple[int, str, int]:
        """The sort key of the line (H24)."""

    @property
    def resource(self) -> bytes:
        """What has exactly one action (H5)."""

    def line(self) -> bytes:
        """The canonical line with its newline."""


def coverage_bytes(lines: Iterable[WrittenLine]) -> Iterator[bytes]:
    """The lines of ``plan/coverage.jsonl`` in their stored order.

    Raises:
        CoverageInvalidError: one entry considers one object twice, so that it would have two actions (H5).
    """
    ordered = sorted(lines, key=lambda line: line.order)
    _require_one_action(ordered)
    return (line.line() for line in ordered)


def counts(lines: Iterable[WrittenLine]) -> dict[str, int]:
    """How often each of the five actions occurs; all five are always there, zeros included (H12, H14)."""
    found = Counter(line.action for line in lines)
    return {action: found[action] for action in COVERAGE_ACTIONS}


def decode_coverage_line(body: bytes, where: str) -> CoverageLine:
    """One line without its newline.

    Raises:
        PlanArtifactError: it is not canonical JSON.
        CoverageInvalidError: it is no coverage record, or not in the writer's spelling.
    """
    record = decode_canonical_line(body, what=where)
    try:
        line = CoverageLine.model_validate(record, context=DECODED)
    except ValidationError as exc:
        raise coverage_fault(where, "a coverage record", field_problems(exc)) from None
    if not _has_one_spelling(record):
        raise coverage_fault(where, "absent and empty fields left out, tier given", "another spelling")
    return line


def _has_one_spelling(record: Mapping[str, Any]) -> bool:
    """Whether the writer would spell the record so: nothing absent, null or empty that it leaves out or puts in."""
    return "tier" in record and not any(record.get(name, 1) in (None, {}, []) for name in _LEFT_OUT)


def _require_one_action(lines: Iterable[WrittenLine]) -> None:
    seen: dict[bytes, WrittenLine] = {}
    for line in lines:
        other = seen.setdefault(line.resource, line)
        if other is not line:
            found = f"{other.action} and {line.action}"
            raise coverage_fault(object_text(line.kind, line.identity), "exactly one action", found)


def coverage_fault(checked: str, expected: str, found: str) -> CoverageInvalidError:
    """One fault of an account."""
    return CoverageInvalidError(checked=checked, expected=expected, found=found, next_action=REPLAN)
