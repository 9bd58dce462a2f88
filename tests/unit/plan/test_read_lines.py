"""The lines of an artifact: every faulty one is named, no text breaks one, what was planned is read back the same."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.plan import decode
from ledger.plan import operations as operations_of_a_plan
from ledger.plan.canonical import canonical_json_text
from ledger.plan.errors import (
    TornPlanArtifactError,
    UnsupportedOperationActionError,
)
from ledger.plan.layout import OPERATIONS_FILE
from ledger.plan.lines import MAX_COUNTED, MAX_FAULTS
from ledger.plan.model import PlannedOperation
from ledger.plan.operations import parse_operations
from ledger.plan.reader import load_plan_artifact
from tests.support.plan_lines import A, B, faults_of
from tests.support.plans import line, manifest_document, operation, raw_run, record, tags, write_plan


@pytest.mark.rules("A92", "G11")
def test_a_file_of_nothing_but_faults_is_not_read_to_its_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    looked_at: list[bytes] = []

    def noting(line: bytes, *, what: str) -> Any:
        looked_at.append(line)
        return decode.decode_canonical_line(line, what=what)

    monkeypatch.setattr("ledger.plan.operations.decode_canonical_line", noting)
    data = b"{}\n" * (2 * MAX_COUNTED)
    with pytest.raises(TornPlanArtifactError, match="more, behind which nothing was looked at") as caught:
        load_plan_artifact(raw_run(tmp_path, data, manifest_document(data)))
    assert caught.value.checked == f"the {2 * MAX_COUNTED} lines of plan/operations.jsonl"
    assert MAX_COUNTED <= len(looked_at) < MAX_COUNTED + 1_000


@pytest.mark.rules("A41", "A44", "P52")
@pytest.mark.parametrize(("version", "with_id"), [(3, False), (2, True)])
def test_an_update_records_an_id_exactly_in_format_3(tmp_path: Path, version: int, with_id: bool) -> None:
    values = record("update")
    if not with_id:
        del values["destination_id"]

    assert faults_of(tmp_path, line(values), format_version=version) == ["PlanOperationInvalidError"]


LINE_FAULTS: dict[str, tuple[bytes, list[str]]] = {
    "a carriage return": (A[:-1] + b"\r\n", ["CarriageReturnError"]),
    "a blank line first": (b"\n" + A, ["BlankLineError"]),
    "a blank line last": (A + b"\n", ["BlankLineError"]),
    "a line of blanks": (A + b"  \n", ["BlankLineError"]),
    "a missing last newline": (A + B[:-1], ["UnterminatedLineError"]),
    "a cut last line": (A + B[:40], ["UnterminatedLineError"]),
    "a byte order mark": (b"\xef\xbb\xbf" + A, ["ByteOrderMarkError"]),
    "a byte order mark in the middle": (A + b"\xef\xbb\xbf" + B, ["ByteOrderMarkError"]),
    "another order": (B + A, ["OperationOrderError"]),
    "one operation twice": (A + A, ["DuplicateOperationIdError"]),
    "one operation twice, apart": (A + B + A, ["DuplicateOperationIdError"]),
    "one operation in two tiers": (A + line(record(identity={"name": "a"}, tier=1))
                                   + line(record(identity={"name": "b"}, tier=1))
                                   + line(record(identity={"name": "c"}, tier=1)), ["DuplicateOperationIdError"]),
    "a lower tier after a higher": (line(record(identity={"name": "x"}, tier=1)) + A, ["OperationOrderError"]),
    "no object": (b"[]\n", ["PlanOperationInvalidError"]),
    "null": (b"null\n", ["PlanOperationInvalidError"]),
    "an unknown key": (line(record(comment="x")), ["PlanOperationInvalidError"]),
    "a coerced tier": (line(record(tier="0")), ["PlanOperationInvalidError"]),
    "a blank in the line": (A.replace(b":", b": ", 1), ["NonCanonicalLineError"]),
    "a duplicate key": (A.replace(b'{"action"', b'{"action":"create","action"', 1), ["DuplicateJsonKeyError"]),
    "deep nesting": (line(record(payload={"name": "prod", "x": []})).replace(b"[]", b"[" * 100_000 + b"]" * 100_000),
                     ["NestingTooDeepError"]),
    "a long integer": (line(record(payload={"name": "prod", "x": 1})).replace(b'"x":1', b'"x":' + b"1" * 5000),
                       ["IntegerTooLongError"]),
    "NaN": (line(record(payload={"name": "prod", "x": 1})).replace(b'"x":1', b'"x":NaN'), ["NonFiniteNumberError"]),
    "several faults": (b"\n" + A[:-1] + b"\r\n" + b"{}\n" + b"nonsense\n",
                       ["BlankLineError", "CarriageReturnError", "PlanOperationInvalidError", "MalformedJsonError"]),
}  # fmt: skip


@pytest.mark.rules("A14", "A15", "A30", "A55", "C13", "C14", "C15", "C31", "P104", "G11")
@pytest.mark.parametrize(("operations", "names"), LINE_FAULTS.values(), ids=LINE_FAULTS)
def test_g11_every_faulty_line_is_named(tmp_path: Path, operations: bytes, names: list[str]) -> None:
    count = len(operations.split(b"\n")) - (1 if operations.endswith(b"\n") else 0)

    assert faults_of(tmp_path, operations, operations_count=count) == names


@pytest.mark.rules("A55", "C15", "G11")
def test_one_operation_in_two_tiers_is_named_where_every_line_is_in_its_order(tmp_path: Path) -> None:
    again = sorted((made.line() for made in tags("a", "x", "y", tier=1)), key=lambda found: found.split(b"op_")[1])
    (repeated,) = (number for number, found in enumerate(again, start=2) if b'"name":"a"' in found)
    operations = tags("a")[0].line() + b"".join(again)
    run_dir = raw_run(tmp_path, operations)

    with pytest.raises(TornPlanArtifactError) as caught:
        load_plan_artifact(run_dir)
    (finding,) = caught.value.findings
    assert (finding.name, finding.checked) == ("DuplicateOperationIdError", f"line {repeated} of {OPERATIONS_FILE}")


@pytest.mark.rules("A15", "C13")
def test_only_the_line_feed_ends_a_line(tmp_path: Path) -> None:
    text = "a\u2028b\u2029c\x85d\x0be\x0cf\rg\x1ch\x1di\x1ej"
    made = operation(payload={"name": "prod", "description": text})
    run_dir = raw_run(tmp_path, made.line())

    artifact = load_plan_artifact(run_dir)
    assert artifact.operations == (made,)
    assert artifact.lines == (made.line(),)


@pytest.mark.rules("A24", "C16", "P105", "P119")
def test_an_unknown_action_is_refused_while_reading_and_named_before_other_faults(tmp_path: Path) -> None:
    operations = line(record(comment=1)) + line({**record(), "action": "purge"})
    run_dir = raw_run(tmp_path, operations)

    with pytest.raises(UnsupportedOperationActionError, match="'purge'") as caught:
        load_plan_artifact(run_dir)
    assert [found.name for found in caught.value.findings] == [
        "PlanOperationInvalidError",
        "UnsupportedOperationActionError",
    ]


def test_a_file_full_of_faults_is_counted_and_not_kept(tmp_path: Path) -> None:
    operations = b"{}\n" * (MAX_FAULTS * 3)
    run_dir = raw_run(tmp_path, operations)

    with pytest.raises(TornPlanArtifactError) as caught:
        load_plan_artifact(run_dir)
    assert len(caught.value.findings) == MAX_FAULTS
    assert f"and {MAX_FAULTS * 3 - 3} more" in str(caught.value)


@pytest.mark.rules("A30", "C14", "P120")
def test_operations_are_given_in_stored_order(tmp_path: Path) -> None:
    operations = [*tags("x", "y", "z", tier=1), *tags("a", "b", tier=0), *tags("m", tier=10)]
    run_dir, _ = write_plan(tmp_path, operations)

    artifact = load_plan_artifact(run_dir)
    stored = [(found.tier, found.operation_id) for found in artifact.operations]
    assert stored == sorted((found.tier, found.operation_id) for found in operations)
    assert artifact.lines == tuple(found.line() for found in artifact.operations)
    assert b"".join(artifact.lines) == artifact.raw.operations_bytes


def test_lines_are_encoded_once_in_blocks_and_only_doubtful_ones_are_validated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What keeps a million operations affordable, as a count and not as a time."""
    run_dir, _ = write_plan(tmp_path, tags(*(str(number) for number in range(600))))
    calls: Counter[str] = Counter()
    encode, validate = canonical_json_text, PlannedOperation.model_validate

    def encoding(value: Any) -> str:
        calls["encoded"] += len(value)
        return encode(value)

    def validating(*args: Any, **kwargs: Any) -> PlannedOperation:
        calls["validated"] += 1
        return validate(*args, **kwargs)

    monkeypatch.setattr(operations_of_a_plan, "canonical_json_text", encoding)
    monkeypatch.setattr(PlannedOperation, "model_validate", validating)
    load_plan_artifact(run_dir)
    assert calls == {"encoded": 600}

    calls.clear()
    lines = (run_dir / OPERATIONS_FILE).read_bytes().splitlines(keepends=True)
    (run_dir / OPERATIONS_FILE).write_bytes(b"".join([*lines[:300], b"{}\n", *lines[301:]]))
    with pytest.raises(TornPlanArtifactError):
        load_plan_artifact(run_dir)
    assert calls["validated"] == 32, "the block of the fault, and no other"


PLAIN_TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), max_size=8)


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | PLAIN_TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(PLAIN_TEXT, inner, max_size=3),
    max_leaves=8,
)


@pytest.mark.rules("A14", "A17", "A19", "A22", "A30", "A53", "A77")
@given(
    st.lists(
        st.tuples(st.dictionaries(PLAIN_TEXT, VALUES, min_size=1, max_size=3), VALUES, st.integers(0, 3)), max_size=6
    )
)
def test_whatever_can_be_planned_is_read_back_the_same(drawn: list[tuple[dict[str, Any], Any, int]]) -> None:
    made: dict[str, PlannedOperation] = {}
    for identity, extra, tier in drawn:
        payload = {"an extra field": extra, **identity}
        one = operation(identity=identity, payload=payload, tier=tier)
        made.setdefault(one.operation_id, one)
    ordered = sorted(made.values(), key=lambda one: (one.tier, one.operation_id))

    operations, lines = parse_operations(b"".join(one.line() for one in ordered), format_version=3)
    assert list(operations) == ordered
    assert list(lines) == [one.line() for one in ordered]


@pytest.mark.rules("G12")
def test_g12_a_refused_line_does_not_show_its_values(tmp_path: Path) -> None:
    bad = line(record(payload={"name": "prod", "password": "hunter2"}, tier="hunter2", extra="hunter2"))
    run_dir = raw_run(tmp_path, bad + b'{"password":"hunter2"\n')

    with pytest.raises(TornPlanArtifactError) as caught:
        load_plan_artifact(run_dir)
    error: BaseException | None = caught.value
    while error is not None:
        assert "hunter2" not in str(error)
        error = error.__cause__ or error.__context__
    assert all("hunter2" not in str(found) for found in caught.value.findings)
