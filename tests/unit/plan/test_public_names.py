"""What the plan package offers, and what loading a part of it costs."""

from __future__ import annotations

import subprocess
import sys

import pytest

import ledger.plan
from ledger.plan import errors, model, reader, verify
from ledger.plan.errors import PlanArtifactError
from ledger.plan.layout import shown

PUBLIC = {
    "read_saved_plan", "SavedPlan", "PlanManifest", "PlannedOperation", "PlanSummary", "RelationshipReference",
    "SourceSnapshotRecord", "VerificationFailure",
}  # fmt: skip


@pytest.mark.rules("A80", "A3")
def test_the_public_names_are_those_of_the_specification() -> None:
    assert set(ledger.plan.__all__) == PUBLIC
    assert all(getattr(ledger.plan, name).__name__ == name for name in PUBLIC)
    assert ledger.plan.VerificationFailure is verify.VerificationFailure
    with pytest.raises(AttributeError, match="nothing_of_that_name"):
        ledger.plan.nothing_of_that_name  # noqa: B018  # the access is what is tested


@pytest.mark.rules("A81", "A82", "A84")
def test_reading_and_verifying_take_what_the_specification_says() -> None:
    assert verify.verify_plan.__kwdefaults__ == {"write_surface_missing_on": None}
    arguments = verify.verify_plan.__code__.co_varnames[: verify.verify_plan.__code__.co_kwonlyargcount]
    assert arguments == ("artifact", "run_id", "config_version", "write_surface_missing_on")
    assert verify.verify_plan.__code__.co_argcount == 0
    assert verify.verify_plan.__annotations__["artifact"] == reader.RawPlanArtifact.__name__


def test_the_format_loads_without_parquet_and_terminal_libraries() -> None:
    program = (
        "import sys, ledger.plan.reader, ledger.plan.verify, ledger.plan.writer\n"
        "print([name for name in ('pyarrow', 'rich', 'infrahub_sdk', 'asyncpg', 'diffsync') if name in sys.modules])"
    )
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)

    assert found.stdout.strip() == "[]"


@pytest.mark.rules("G11")
def test_g11_every_refusal_of_a_plan_has_a_sentence_and_a_base() -> None:
    classes = [
        found for found in vars(errors).values() if isinstance(found, type) and found.__module__ == errors.__name__
    ]

    assert len({found.__name__ for found in classes}) == len(classes) > 30
    for found in classes:
        assert found.__doc__
        assert issubclass(found, PlanArtifactError) or found is errors.PlanVerificationError


@pytest.mark.rules("A88", "A89", "A90", "A92")
def test_the_format_says_nothing_about_retention_paging_or_volume() -> None:
    """What the specification leaves open stays open: no field of ours stands for it, growth is by version and key."""
    assert set(model.PlanManifest.model_fields) == {
        "format_version", "run_id", "created_at", "config_version", "source_snapshot", "operations_count",
        "delete_operations_computed", "plan_checksum", "destination_binding", "source", "coverage", "config_id",
        "registry_version", "package_checksum", "schema_fingerprint",
    }  # fmt: skip
    assert model.PlanManifest.model_config.get("extra") == "allow"


@pytest.mark.rules("A33")
def test_no_field_groups_operations_into_write_units() -> None:
    assert set(model.PlannedOperation.model_fields) == {
        "operation_id", "action", "kind", "identity", "tier", "payload", "relationships", "destination_id",
    }  # fmt: skip
    assert set(model.RelationshipReference.model_fields) == {"field", "peer_kind", "cardinality", "peers"}


@pytest.mark.parametrize(
    "value", ["x" * 10**6, "\x1b[31m", "a\nb", 10**600, [1] * 1000, {"a": 1}, None, 1.5, True, b"x"]
)
def test_a_shown_value_is_short_and_on_one_line(value: object) -> None:
    assert len(shown(value)) <= 80
    assert shown(value).isprintable()
