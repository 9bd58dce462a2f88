"""One operation record: what it must and must not carry."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

import pytest
from pydantic import ValidationError

from ledger.plan.canonical import operation_id
from ledger.plan.errors import UnserializablePayloadValueError
from ledger.plan.model import DECODED, PlannedOperation, RelationshipReference
from tests.support.plans import operation, record


def decoded(values: dict[str, Any]) -> PlannedOperation:
    """As the reader does it: from the values of a line."""
    return PlannedOperation.model_validate(values, context=DECODED)


def site(name: str = "dc1") -> dict[str, Any]:
    return {"identity": {"name": name}, "peer_kind": "LocationSite"}


def rack(**changes: Any) -> dict[str, Any]:
    reference = {"cardinality": "one", "field": "site", "peer_kind": "LocationSite", "peers": [{"name": "dc1"}]}
    identity = {"name": "r1", "site": site()}
    return record(
        kind="LocationRack", identity=identity, **{"payload": {"name": "r1"}, "relationships": [reference], **changes}
    )


@pytest.mark.rules("A23", "A24", "A25", "A26", "A27", "A28", "C18")
@pytest.mark.parametrize("action", ["create", "update", "delete"])
def test_a_whole_record_is_taken_and_written_alike(action: str) -> None:
    values = record(action)

    assert decoded(values).record() == values
    assert json.loads(decoded(values).line()) == values
    assert decoded(values).line().endswith(b"}\n")


@pytest.mark.rules("A23", "A24", "A25", "A26", "A27", "C31")
@pytest.mark.parametrize("key", ["operation_id", "action", "kind", "identity", "tier"])
def test_each_required_key_is_required(key: str) -> None:
    values = record()
    del values[key]

    with pytest.raises(ValidationError, match=key):
        decoded(values)


WRONG: dict[str, dict[str, Any]] = {
    "an unknown key": {"comment": "x"},
    "a write unit": {"group": 1},
    "a null payload": {"payload": None},
    "null relationships": {"relationships": None},
    "a null destination id": {"destination_id": None},
    "a tier as text": {"tier": "1"},
    "a tier as a float": {"tier": 1.0},
    "a tier as a boolean": {"tier": True},
    "a negative tier": {"tier": -1},
    "a kind that is no text": {"kind": 1},
    "an empty kind": {"kind": ""},
    "an identity that is a list": {"identity": ["prod"]},
    "a payload that is a list": {"payload": []},
    "an upper-case identifier": {"operation_id": "op_3531C0D83D698FD1"},
    "a short identifier": {"operation_id": "op_3531c0d83d698fd"},
    "an identifier with a line break": {"operation_id": "op_3531c0d83d698fd1\n"},
    "an identifier of something else": {"operation_id": "op_0000000000000000"},
    "another action under the same identifier": {"action": "update", "destination_id": "x"},
    "empty relationships": {"relationships": []},
    "relationships as an object": {"relationships": {}},
    "a recorded id on a create": {"destination_id": "18d5"},
}


@pytest.mark.rules("A23", "A25", "A27", "A28", "A29", "A33", "A41", "A56", "C18", "C31")
@pytest.mark.parametrize("change", WRONG.values(), ids=WRONG)
def test_a_record_with_a_wrong_key_is_refused(change: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        decoded({**record(), **change})


@pytest.mark.rules("A28", "C18")
def test_a_delete_carries_no_payload_and_others_need_one() -> None:
    with pytest.raises(ValidationError, match="a delete carries no payload"):
        decoded(record("delete", payload={}))
    for action in ("create", "update"):
        values = record(action)
        del values["payload"]
        with pytest.raises(ValidationError, match="needs a payload"):
            decoded(values)


@pytest.mark.rules("A41", "A44", "P24")
@pytest.mark.parametrize("action", ["create", "delete"])
def test_only_an_update_records_a_destination_id(action: str) -> None:
    with pytest.raises(ValidationError, match="carries no destination_id"):
        decoded(record(action, destination_id="18d5"))


@pytest.mark.rules("A44")
@pytest.mark.parametrize("blank", ["", " ", "\t"])
def test_a_recorded_id_is_never_blank(blank: str) -> None:
    with pytest.raises(ValidationError, match="blank"):
        decoded(record("update", destination_id=blank))


@pytest.mark.rules("A37", "A38", "A46")
def test_an_identity_component_without_a_write_source_is_refused() -> None:
    with pytest.raises(ValidationError, match="neither in the payload nor in a relationship"):
        decoded(record(payload={"description": "x"}))


@pytest.mark.rules("A39")
def test_a_field_with_two_write_sources_is_refused() -> None:
    with pytest.raises(ValidationError, match="in the payload and in a relationship"):
        decoded(rack(payload={"name": "r1", "site": site()}))


@pytest.mark.rules("A39")
def test_two_references_for_one_field_are_refused() -> None:
    reference = rack()["relationships"][0]

    with pytest.raises(ValidationError, match="twice"):
        decoded(rack(relationships=[reference, reference]))


@pytest.mark.rules("A40", "A46", "A47", "C17", "C19")
def test_a_component_that_crosses_a_relationship_is_the_peers_identity() -> None:
    assert decoded(rack()).identity["site"] == site()
    reference = rack()["relationships"][0]
    for other in ({**reference, "peers": [{"name": "dc2"}]}, {**reference, "peer_kind": "LocationBuilding"}):
        with pytest.raises(ValidationError, match="differs from the value that would be written"):
            decoded(rack(relationships=[other]))


@pytest.mark.rules("A46")
@pytest.mark.parametrize(("recorded", "written"), [(1, True), (1, 1.0), (0, False), (0.0, -0.0), (1, "1"), (None, "")])
def test_identity_and_payload_are_compared_as_bytes(recorded: Any, written: Any) -> None:
    with pytest.raises(ValidationError, match="differs from the value that would be written"):
        decoded(record(identity={"asn": recorded}, payload={"asn": written}))


@pytest.mark.rules("A26")
def test_an_empty_identity_is_refused() -> None:
    with pytest.raises(ValidationError, match="identity is empty"):
        decoded(record(identity={}))


@pytest.mark.rules("A34", "C19")
@pytest.mark.parametrize("peers", [[], [{"name": "a"}, {"name": "b"}]])
def test_cardinality_one_has_exactly_one_peer(peers: list[Any]) -> None:
    with pytest.raises(ValidationError, match="has cardinality one and"):
        RelationshipReference(field="site", peer_kind="LocationSite", cardinality="one", peers=peers)


BAD_PEERS: dict[str, Any] = {
    "text": "a", "a list of text": ["a"], "a list of lists": [["a", "b"]], "null": None, "an empty identity": [{}],
    "one peer twice": [{"name": "a"}, {"name": "a"}], "another order": [{"name": "b"}, {"name": "a"}],
}  # fmt: skip


@pytest.mark.rules("A21", "A47", "C19")
@pytest.mark.parametrize("peers", BAD_PEERS.values(), ids=BAD_PEERS)
def test_peers_of_a_stored_set_are_identities_in_canonical_order_each_once(peers: Any) -> None:
    values = {"cardinality": "many", "field": "tags", "peer_kind": "BuiltinTag", "peers": peers}

    with pytest.raises(ValidationError):
        RelationshipReference.model_validate(values, context=DECODED)


@pytest.mark.rules("A21", "A22", "A32")
def test_peers_are_ordered_when_made_while_lists_of_a_payload_are_not() -> None:
    reference = RelationshipReference(
        field="tags", peer_kind="BuiltinTag", cardinality="many", peers=[{"name": n} for n in ("b", "a", "b")]
    )
    made = operation(payload={"name": "prod", "labels": ["b", "a", "b"]}, relationships=[reference])
    empty = RelationshipReference(field="tags", peer_kind="BuiltinTag", cardinality="many", peers=[])

    assert reference.peers == [{"name": "a"}, {"name": "b"}]
    assert made.payload == {"name": "prod", "labels": ["b", "a", "b"]}
    assert b'"peers":[]' in operation(relationships=[empty]).line()


@pytest.mark.rules("A47")
def test_identities_nest_to_any_depth() -> None:
    identity: dict[str, Any] = {"name": "x"}
    for _ in range(10):
        identity = {"parent": {"identity": identity, "peer_kind": "LocationRegion"}}
    made = operation(kind="LocationRegion", identity=identity)

    assert decoded(json.loads(made.line())) == made


@pytest.mark.rules("A17", "A18", "A20")
def test_values_made_in_a_program_are_brought_into_canonical_form() -> None:
    identity = {"asn": Decimal("1")}
    made = operation(identity=identity, payload={"asn": Decimal("1"), "list": ("b", "a")})

    assert made.payload == {"asn": "1", "list": ["b", "a"]}
    assert made.identity == {"asn": "1"}
    assert made.operation_id == operation_id("create", "BuiltinTag", {"asn": "1"})
    for bad in (float("nan"), "\x00", b"x", {1: 2}):
        with pytest.raises(UnserializablePayloadValueError, match=r"BuiltinTag\.note"):
            operation(payload={"name": "prod", "note": bad})


@pytest.mark.rules("A54")
def test_the_payload_does_not_enter_the_identifier() -> None:
    assert operation(payload={"name": "prod"}).operation_id == operation(payload={"name": "prod", "x": 1}).operation_id


@pytest.mark.rules("G12")
def test_g12_a_validation_never_quotes_a_value() -> None:
    for change in ({"payload": {"name": "hunter2"}}, {"tier": "hunter2"}, {"destination_id": "hunter2"}):
        with pytest.raises(ValidationError) as caught:
            decoded(record(**change))
        assert "hunter2" not in str(caught.value)


@pytest.mark.rules("A36")
def test_a_relationship_that_is_not_mentioned_leaves_no_trace() -> None:
    assert b"relationships" not in operation().line()
