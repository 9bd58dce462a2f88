"""All operations at once: every fault named, before any write (P52, P63, C52, FF06, FF07, FF12, FF13)."""

from __future__ import annotations

from typing import Any

import pytest

from ledger.plan import collision, collision_search, gate
from ledger.plan.gate import operation_faults, operation_findings
from ledger.plan.keying import check_key_coverage, check_key_values
from ledger.plan.model import PlannedOperation
from tests.support.plan_rules import create, operation, pair, real_schema, ref, update

SCHEMA = real_schema()
DEFAULT = {"name": "default"}


def prefix(value: Any, namespace: Any = DEFAULT, **payload: Any) -> PlannedOperation:
    identity = {"prefix": value, "ip_namespace": pair("IpamNamespace", **namespace)}
    made: PlannedOperation = create("IpamPrefix", identity, payload, ref("ip_namespace", "IpamNamespace", namespace))
    return made


@pytest.mark.rules("C52", "G11", "P65")
def test_g11_the_gate_names_every_fault_of_every_operation_before_the_first_write() -> None:
    operations = [
        prefix("10.0.0.0/8"),
        prefix("10.0.0.0/8", {"name": "   "}),
        create("IpamPrefix", {"prefix": "10.0.0.0/16"}),
        prefix("10.0.0.5/24", netmask="255.255.255.0"),
        create("BuiltinTag", {"name": "a"}, {"descripton": "x"}),
        create("DcimCable", {"color": "c1"}),
        create("NoSuchKind", {"name": "a"}),
    ]
    found = operation_findings(operations, SCHEMA)
    names = [finding.name for finding in found]
    assert names == [
        "UnaccountedIdentityComponentError",
        "UnkeyedCreateRefusedError",
        "UnaccountedIdentityComponentError",
        "SchemaMismatchError",
        "SchemaMismatchError",
        "SchemaMismatchError",
        "UnkeyedCreateRefusedError",
        "SchemaMismatchError",
        "SchemaMismatchError",
    ]
    for planned, finding in zip([operations[1], operations[2], operations[2]], found, strict=False):
        assert planned.operation_id in finding.checked
    assert any("netmask" in finding.checked and "read-only" in finding.found for finding in found)
    assert any("without host bits" in finding.expected for finding in found)
    assert all(finding.next_action for finding in found)


def test_a_plan_without_fault_has_no_finding() -> None:
    assert operation_findings([prefix("10.0.0.0/8"), prefix("10.0.0.0/16")], SCHEMA) == []


@pytest.mark.rules("P61", "P63", "C52")
def test_creates_that_the_destination_would_merge_are_refused_before_the_first_write() -> None:
    found = operation_findings([prefix("2001:DB8::/32"), prefix("2001:db8::/32")], SCHEMA)
    assert [finding.name for finding in found] == ["DestinationIdentityCollisionError"]


@pytest.mark.rules("P62")
def test_updates_are_no_subject_of_the_collision_check() -> None:
    assert operation_findings([update("BuiltinTag", {"name": "a"}), update("BuiltinTag", {"name": "a "})], SCHEMA) == []


@pytest.mark.rules("P31", "P53", "P54", "A44")
def test_updates_of_any_kind_need_no_key() -> None:
    renamed = update("BuiltinTag", {"name": ""}, {"description": None})
    cable = update("DcimCable", {"color": "c1"})
    assert operation_findings([renamed, cable], SCHEMA) == []


@pytest.mark.rules("C35", "G12")
def test_a_recorded_delete_is_only_looked_at_for_secrets() -> None:
    deletes = [operation("delete", "NoSuchKind", {"name": "a"}), operation("delete", "BuiltinTag", {"nonsense": 1})]
    assert operation_findings(deletes, SCHEMA) == []


@pytest.mark.rules("P21", "P22", "P63", "G5")
@pytest.mark.parametrize("name", ["", "   ", None])
def test_g05_plan_gate_and_write_surface_refuse_the_same_create_for_the_same_reason(name: Any) -> None:
    planned = prefix("10.0.0.0/8", {"name": name})
    kind = SCHEMA.kinds["IpamPrefix"]
    (while_planning,) = operation_faults(planned, SCHEMA, planning=True)
    (at_the_gate,) = operation_faults(planned, SCHEMA)
    check_key_coverage(planned, kind)
    with pytest.raises(type(at_the_gate)) as at_the_write_surface:
        check_key_values(planned, kind)
    assert type(while_planning).__name__ == "UnkeyedCreateRefusedError"
    assert type(at_the_gate).__name__ == "UnaccountedIdentityComponentError"
    assert while_planning.found == at_the_gate.found == at_the_write_surface.value.found


@pytest.mark.rules("G12")
def test_g12_no_finding_shows_a_secret_of_a_peer() -> None:
    account = {"name": "bot", "api_token": "hunter2"}
    planned = create(
        "BuiltinTag", {"name": "a", "owner": pair("CoreAccount", **account)}, {}, ref("owner", "CoreAccount", account)
    )
    found = operation_findings([planned], SCHEMA)
    assert found
    assert "hunter2" not in "".join(map(str, found))


@pytest.mark.rules("G11")
def test_g11_more_faults_than_can_be_kept_are_cut_with_their_total(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gate, "MAX_FINDINGS", 3)
    found = operation_findings([create("NoSuchKind", {"name": str(number)}) for number in range(10)], SCHEMA)

    assert [finding.name for finding in found] == ["SchemaMismatchError"] * 3 + ["FurtherFaultsError"]
    assert "7 faults" in found[-1].found


@pytest.mark.rules("G11", "P61")
def test_g11_more_collisions_than_can_be_kept_are_cut_with_their_total(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(collision_search, "MAX_COLLIDING", 2)
    spellings = ["2001:DB8::/32", "2001:db8::/32", "2001:db8:0::/32", "2001:0db8::/32", "10.0.0.0/8"]
    found = operation_findings([prefix(spelling) for spelling in spellings], SCHEMA)

    assert [finding.name for finding in found] == ["DestinationIdentityCollisionError", "FurtherFaultsError"]
    assert "and 2 operations that share a key" in found[-1].found


@pytest.mark.rules("P61")
def test_keys_that_have_one_number_by_chance_are_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(collision, "_NUMBER_BITS", 0)
    operations = [prefix("10.0.0.0/8"), prefix("10.0.0.0/16"), prefix("2001:DB8::/32"), prefix("2001:db8::/32")]

    (finding,) = operation_findings(operations, SCHEMA)
    assert finding.name == "DestinationIdentityCollisionError"
    assert "2 objects" in finding.checked


@pytest.mark.rules("P61", "P62")
def test_updates_that_share_a_key_are_no_collision_however_many_there_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(collision_search, "MAX_COLLIDING", 1)
    identities = [{"prefix": spelling, "ip_namespace": pair("IpamNamespace", **DEFAULT)} for spelling in
                  ("2001:DB8::/32", "2001:db8::/32", "2001:0db8::/32")]  # fmt: skip
    namespace = ref("ip_namespace", "IpamNamespace", DEFAULT)
    operations = [update("IpamPrefix", identity, {}, namespace) for identity in identities]

    assert operation_findings(operations, SCHEMA) == []
