"""The short way through an operation's rules accepts nothing that the model refuses."""

from __future__ import annotations

import copy
import json
from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.plan.canonical import canonical_json_bytes, object_key, operation_id
from ledger.plan.errors import PlanArtifactError
from ledger.plan.model import DECODED, PlannedOperation
from ledger.plan.operation_check import certainly_valid
from ledger.plan.operations import parse_operations
from ledger.plan.repeats import number_array, repeated
from ledger.plan.stored_operations import StoredOperations, identifiers_of, object_keys_of
from tests.support.plans import line, record

DEVICE = {"identity": {"name": "sw1", "site": {"identity": {"name": "a"}, "peer_kind": "Site"}}, "peer_kind": "Device"}


def _reference(**changes: Any) -> dict[str, Any]:
    found = {"cardinality": "one", "field": "device", "peer_kind": "Device", "peers": [DEVICE["identity"]]}
    return {**found, **changes}


def _crossing(action: str = "create") -> dict[str, Any]:
    identity = {"device": DEVICE, "name": "eth0"}
    many = _reference(cardinality="many", field="tags", peer_kind="Tag", peers=[{"name": "a"}, {"name": "b"}])
    return record(
        action, "Interface", identity=identity, payload={"kind": "x", "name": "eth0", "mtu": 1.5},
        relationships=[_reference(), many],
    )  # fmt: skip


VALID = {
    "create": record(),
    "update": record("update"),
    "delete": record("delete"),
    "crossing create": _crossing(),
    "crossing update": _crossing("update"),
    "numbers in the identity": record(identity={"a": 1, "b": -0.0, "c": True, "d": None}),
    "a kind in the identity": record(identity={"a": "x", "kind": "y"}),
}

TRAPS = {
    "1 for 1.0": record(identity={"n": 1.0}, payload={"n": 1}),
    "1 for true": record(identity={"n": True}, payload={"n": 1}),
    "0.0 for -0.0": record(identity={"n": -0.0}, payload={"n": 0.0}),
    "1 for true in a peer": {**_crossing(), "relationships": [_reference(peers=[{"name": True}])]},
    "a tier that is true": record(tier=True),
    "a tier that is 0.0": record(tier=0.0),
    "no payload": {name: value for name, value in record().items() if name != "payload"},
    "a null payload": record(payload=None),
    "a blank destination_id": record("update", destination_id=" "),
    "a destination_id of a create": record(destination_id="x"),
    "a payload of a delete": record("delete", payload={}),
    "an empty list of relationships": record(relationships=[]),
    "one peer too many": {**_crossing(), "relationships": [_reference(peers=[DEVICE["identity"]] * 2)]},
    "peers out of order": record(relationships=[_reference(cardinality="many", peers=[{"n": "b"}, {"n": "a"}])]),
    "one peer twice": record(relationships=[_reference(cardinality="many", peers=[{"n": "a"}, {"n": "a"}])]),
    "a peer without identity": record(relationships=[_reference(peers=[{}])]),
    "one field twice": record(relationships=[_reference(), _reference()]),
    "a field in both": record(payload={"name": "prod", "device": 1}, relationships=[_reference()]),
    "an identity that is not written": record(payload={}),
    "another id": record(operation_id="op_" + "0" * 16),
    "an id in capitals": record(operation_id=record()["operation_id"].upper().replace("OP_", "op_")),
    "an empty kind": record(kind="", operation_id=operation_id("create", "", {"name": "prod"})),
    "an empty identity": record(identity={}),
    "an unknown key": record(zone="x"),
    "an unknown action": {**record(), "action": "purge"},
}


def _decoded(values: dict[str, Any]) -> tuple[bytes, Any]:
    text = canonical_json_bytes(values) + b"\n"
    return text, json.loads(text)


@pytest.mark.parametrize("values", VALID.values(), ids=VALID)
def test_ordinary_operations_take_the_short_way(values: dict[str, Any]) -> None:
    assert certainly_valid(*_decoded(values), 3)
    operations, _ = parse_operations(line(values), format_version=3)
    assert isinstance(operations, StoredOperations)
    assert operations[0].record() == json.loads(line(values))
    assert list(identifiers_of(operations)) == [values["operation_id"]]
    assert list(object_keys_of(operations)) == [object_key(values["kind"], values["identity"])]


@pytest.mark.rules("A26", "A28", "A29", "A34", "A39", "A41", "A46", "A56")
@pytest.mark.parametrize("values", TRAPS.values(), ids=TRAPS)
def test_what_breaks_a_rule_does_not_take_the_short_way(values: dict[str, Any]) -> None:
    assert not certainly_valid(*_decoded(values), 3)
    with pytest.raises(PlanArtifactError):
        parse_operations(line(values), format_version=3)


def _places(value: Any, at: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [at, *(place for key, item in inner for place in _places(item, (*at, key)))]


JUNK: list[Any] = [
    None,
    True,
    0,
    1,
    -1,
    1.0,
    "",
    " ",
    "one",
    "many",
    "op_0000000000000000",
    [],
    {},
    [{}],
    {"name": "x"},
]


@given(data=st.data(), version=st.sampled_from([2, 3]), name=st.sampled_from(sorted(VALID)))
def test_whatever_takes_the_short_way_the_model_accepts(data: st.DataObject, version: int, name: str) -> None:
    values = copy.deepcopy(VALID[name])
    for _ in range(data.draw(st.integers(1, 3))):
        *path, last = data.draw(st.sampled_from(_places(values)[1:]))
        inner: Any = values
        for step in path:
            inner = inner[step]
        if data.draw(st.booleans()):
            inner[last] = copy.deepcopy(data.draw(st.sampled_from(JUNK)))
        elif isinstance(inner, dict):
            inner[data.draw(st.sampled_from(["kind", "name", "a", last]))] = inner.pop(last)
        else:
            del inner[last]
        if len(_places(values)) == 1:
            break
    if all(isinstance(values.get(key), str) for key in ("action", "kind")) and isinstance(values.get("identity"), dict):
        values["operation_id"] = operation_id(values["action"], values["kind"], values["identity"])
    text, decoded = _decoded(values)

    if certainly_valid(text, decoded, version):
        accepted = PlannedOperation.model_validate(decoded, context=DECODED)
        assert accepted.action != "update" or (accepted.destination_id is None) == (version < 3)
        assert accepted.line() == text


@pytest.mark.parametrize("part", [1, 3, 1000])
@given(values=st.lists(st.integers(0, 30) | st.integers(2**64 - 3, 2**64 - 1), max_size=40))
def test_numbers_that_repeat_are_found_in_parts(part: int, values: list[int]) -> None:
    numbers = number_array()
    numbers.extend(values)
    assert repeated(numbers, at_once=part) == {value for value, times in Counter(values).items() if times > 1}
