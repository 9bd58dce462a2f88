"""Reading an artifact: the verdicts are told apart, every faulty line is named, no text breaks a line."""

from __future__ import annotations

import errno
import gc
import os
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.errors import ApplyLedgerError
from ledger.exit_codes import ExitCode
from ledger.plan import decode
from ledger.plan import operations as operations_of_a_plan
from ledger.plan.canonical import canonical_json_text
from ledger.plan.errors import (
    PathOutsideRunError,
    PlanArtifactAbsentError,
    PlanArtifactUnreadableError,
    PlanFormatApplyUnsupportedError,
    TornPlanArtifactError,
    UnrecognisedPlanFormatError,
    UnsupportedOperationActionError,
)
from ledger.plan.layout import MANIFEST_FILE, OPERATIONS_FILE
from ledger.plan.lines import MAX_COUNTED, MAX_FAULTS
from ledger.plan.model import PlannedOperation
from ledger.plan.operations import parse_operations
from ledger.plan.reader import load_plan_artifact, read_raw_artifact, require_applicable, require_plan_directory
from tests.support.plans import line, manifest_document, operation, raw_run, record, tags, write_plan

A, B, C = sorted((line(record(identity={"name": name})) for name in "abc"), key=lambda found: found.split(b"op_")[1])


def faults_of(root: Path, operations: bytes, **manifest: Any) -> list[str]:
    """The names of all faults with which the artifact is refused as torn."""
    run_dir = raw_run(root, operations, manifest_document(operations, **manifest))
    with pytest.raises(TornPlanArtifactError) as caught:
        load_plan_artifact(run_dir)
    assert len(str(caught.value)) < 2000
    return [finding.name for finding in caught.value.findings]


# --- verdicts ---------------------------------------------------------------------------------------------------


@pytest.mark.rules("A7", "C33", "C34", "P101", "P104")
@pytest.mark.parametrize("exists", [True, False])
def test_a_run_without_plan_directory_names_all_three_causes(tmp_path: Path, exists: bool) -> None:
    run_dir = tmp_path / "20260726T1804-9f3ac210"
    if exists:
        run_dir.mkdir()
        (run_dir / "plan.parquet").write_bytes(b"PAR1")

    for read in (require_plan_directory, read_raw_artifact, load_plan_artifact):
        with pytest.raises(PlanArtifactAbsentError) as caught:
            read(run_dir)
        assert all(cause in str(caught.value) for cause in ("plan.parquet", "never written", "removed"))
        assert "fresh plan" in caught.value.next_action


@pytest.mark.rules("A8", "A9", "A10", "A62", "C23", "C33", "P104")
@pytest.mark.parametrize(
    ("damage", "says"),
    [
        (lambda run: (run / MANIFEST_FILE).unlink(), "never completed"),
        (lambda run: (run / MANIFEST_FILE).write_bytes(b""), "MalformedJsonError"),
        (lambda run: (run / MANIFEST_FILE).write_bytes(b'{"format_version":3}'), "run_id"),
        (lambda run: (run / OPERATIONS_FILE).unlink(), "no such file"),
        (lambda run: (run / OPERATIONS_FILE).write_bytes(b""), "0 lines"),
        (lambda run: (run / OPERATIONS_FILE).write_bytes(A), "1 lines"),
        (lambda run: (run / OPERATIONS_FILE).write_bytes(A + B + C), "3 lines"),
    ],
)
def test_a_torn_artifact_says_which_part_is_torn(tmp_path: Path, damage: Callable[[Path], Any], says: str) -> None:
    run_dir = raw_run(tmp_path, A + B)
    damage(run_dir)

    with pytest.raises(TornPlanArtifactError, match=says):
        load_plan_artifact(run_dir)


@pytest.mark.rules("A11", "C21", "P104")
def test_an_unknown_format_is_not_partially_read(tmp_path: Path) -> None:
    run_dir = raw_run(tmp_path, b"no operations at all", manifest_document(b"", format_version=4))

    with pytest.raises(UnrecognisedPlanFormatError, match="found 4"):
        load_plan_artifact(run_dir)


def _file_as_plan(run_dir: Path) -> None:
    (run_dir / "plan").write_bytes(b"")


def _directory(name: str) -> Callable[[Path], None]:
    return lambda run_dir: (run_dir / name).mkdir(parents=True)


def _fifo(run_dir: Path) -> None:
    (run_dir / "plan").mkdir()
    os.mkfifo(run_dir / OPERATIONS_FILE)


def _loop(run_dir: Path) -> None:
    (run_dir / "plan").mkdir()
    (run_dir / MANIFEST_FILE).symlink_to("manifest.json")


def _dangling(run_dir: Path) -> None:
    (run_dir / "plan").mkdir()
    (run_dir / OPERATIONS_FILE).symlink_to("gone.jsonl")


def _dangling_plan(run_dir: Path) -> None:
    (run_dir / "plan").symlink_to("gone")


UNREADABLE = {
    "plan is a file": _file_as_plan,
    "the manifest is a directory": _directory(MANIFEST_FILE),
    "the operations are a directory": _directory(OPERATIONS_FILE),
    "the coverage is a directory": _directory("plan/coverage.jsonl"),
    "the operations are a pipe": _fifo,
    "a loop of links": _loop,
    "a link to nothing": _dangling,
    "plan is a link to nothing": _dangling_plan,
}


@pytest.mark.rules("A12", "A13")
@pytest.mark.parametrize("make", UNREADABLE.values(), ids=UNREADABLE)
def test_what_is_there_and_cannot_be_read_is_unreadable_and_named(tmp_path: Path, make: Callable[[Path], None]) -> None:
    run_dir = tmp_path / "run"
    run_dir.mkdir()
    make(run_dir)

    with pytest.raises(PlanArtifactUnreadableError) as caught:
        read_raw_artifact(run_dir)
    assert str(run_dir / "plan") in str(caught.value)


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


def test_a_manifest_beyond_any_plan_is_not_read_into_memory(tmp_path: Path) -> None:
    run_dir = raw_run(tmp_path, A)
    with (run_dir / MANIFEST_FILE).open("wb") as file:
        file.truncate(10**12)

    with pytest.raises(PlanArtifactUnreadableError, match="more than"):
        read_raw_artifact(run_dir)


@pytest.mark.rules("A12", "A13")
@pytest.mark.parametrize("file", [MANIFEST_FILE, OPERATIONS_FILE, "plan"])
def test_a_missing_permission_is_unreadable_and_not_absent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, file: str
) -> None:
    run_dir = raw_run(tmp_path, A)
    # An administrator may read anything, so the operating system's answer is put in its mouth.
    for name in ("open", "stat"):
        original = getattr(os, name)

        def refusing(path: Any, *args: Any, original: Any = original, **kwargs: Any) -> Any:
            if str(path) == str(run_dir / file):
                raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
            return original(path, *args, **kwargs)

        monkeypatch.setattr(os, name, refusing)

    with pytest.raises(PlanArtifactUnreadableError, match="Permission denied") as caught:
        read_raw_artifact(run_dir)
    assert str(run_dir / file) in str(caught.value)


@pytest.mark.parametrize("file", [MANIFEST_FILE, OPERATIONS_FILE])
def test_a_link_out_of_the_run_is_refused(tmp_path: Path, file: str) -> None:
    run_dir = raw_run(tmp_path, A)
    outside = tmp_path / "outside"
    (run_dir / file).rename(outside)
    (run_dir / file).symlink_to(outside)

    with pytest.raises(PathOutsideRunError):
        read_raw_artifact(run_dir)


def test_a_plan_directory_that_is_a_link_out_of_the_run_is_refused(tmp_path: Path) -> None:
    other = raw_run(tmp_path / "other", A)
    run_dir = tmp_path / "run"
    run_dir.mkdir()
    (run_dir / "plan").symlink_to(other / "plan")

    with pytest.raises(PathOutsideRunError):
        read_raw_artifact(run_dir)


def test_a_run_that_is_reached_through_a_link_is_read(tmp_path: Path) -> None:
    run_dir = raw_run(tmp_path / "cache", A)
    (tmp_path / "link").symlink_to(run_dir)

    assert len(load_plan_artifact(tmp_path / "link").operations) == 1


def test_a_stray_temporary_file_is_not_read(tmp_path: Path) -> None:
    run_dir = raw_run(tmp_path, A)
    (run_dir / "plan" / ".manifest.json.0011.tmp").write_bytes(b"half")

    assert len(load_plan_artifact(run_dir).operations) == 1


@pytest.mark.rules("A16", "A62", "C20", "P121")
def test_an_empty_plan_is_a_zero_byte_file_and_no_missing_one(tmp_path: Path) -> None:
    run_dir, _ = write_plan(tmp_path, [])

    assert (run_dir / OPERATIONS_FILE).read_bytes() == b""
    assert load_plan_artifact(run_dir).operations == ()


@pytest.mark.rules("P106", "P107", "P108", "C21")
def test_format_2_is_read_and_reviewed_but_not_applied(tmp_path: Path) -> None:
    values = record("update")
    del values["destination_id"]
    operations = line(values)
    artifact = load_plan_artifact(raw_run(tmp_path, operations, manifest_document(operations, format_version=2)))

    assert artifact.operations[0].destination_id is None
    with pytest.raises(PlanFormatApplyUnsupportedError) as caught:
        require_applicable(artifact)
    assert "fresh plan" in caught.value.next_action
    assert "reviewed" in caught.value.found


@pytest.mark.rules("P107", "A10")
def test_a_torn_format_2_plan_is_torn_and_not_merely_old(tmp_path: Path) -> None:
    run_dir = raw_run(tmp_path, A, manifest_document(A, format_version=2, operations_count=2))

    with pytest.raises(TornPlanArtifactError):
        load_plan_artifact(run_dir)


@pytest.mark.rules("A41", "A44", "P52")
@pytest.mark.parametrize(("version", "with_id"), [(3, False), (2, True)])
def test_an_update_records_an_id_exactly_in_format_3(tmp_path: Path, version: int, with_id: bool) -> None:
    values = record("update")
    if not with_id:
        del values["destination_id"]

    assert faults_of(tmp_path, line(values), format_version=version) == ["PlanOperationInvalidError"]


# --- lines ------------------------------------------------------------------------------------------------------

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


def test_reading_leaves_the_collector_of_cycles_as_it_was(tmp_path: Path) -> None:
    run_dir = raw_run(tmp_path, b"{}\n")
    for enabled in (True, False):
        (gc.enable if enabled else gc.disable)()
        try:
            with pytest.raises(TornPlanArtifactError):
                load_plan_artifact(run_dir)
            assert gc.isenabled() is enabled
        finally:
            gc.enable()


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


@pytest.mark.rules("G11")
def test_g11_each_verdict_is_a_refusal_before_any_write() -> None:
    for verdict in (
        PlanArtifactAbsentError, TornPlanArtifactError, UnrecognisedPlanFormatError, PlanArtifactUnreadableError,
        PlanFormatApplyUnsupportedError, UnsupportedOperationActionError,
    ):  # fmt: skip
        assert issubclass(verdict, ApplyLedgerError)
        assert verdict.exit_code is ExitCode.REFUSED
