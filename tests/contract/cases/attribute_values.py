"""Every kind of attribute with its edges: sent as a variable, read back, sent again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.contract.cases.attribute_inputs import VALUES
from tests.contract.cases.case import Case, case, register
from tests.contract.cases.talk import Talk, values


def _sent(field: str, value: Any) -> Callable[[Talk], None]:
    def hold(t: Talk) -> None:
        read = f"{field} {{ value }}"
        reply = t.write("ProbeValueUpsert", values(name=t.name(), **{field: value}), below=f"ok object {{ id {read} }}")
        if not reply.ok:
            return
        before = t.read("ProbeValue", reply.id, f"{field} {{ value updated_at }}").node
        t.write("ProbeValueUpsert", {"id": reply.id, **values(**{field: value})})
        after = t.read("ProbeValue", reply.id, f"{field} {{ value updated_at }}").node
        t.note("the same value again moved a time", before != after)

    return hold


for _field, _values in VALUES.items():
    for _label, _value in _values.items():
        register(Case(f"value-{_field}", _label, f"{_field}: {_value!r:.60}".replace("|", "/"), _sent(_field, _value)))


_CHANGES: tuple[tuple[str, str, Any, Any], ...] = (
    ("document", "one-to-one-point-zero", {"a": 1}, {"a": 1.0}),
    ("document", "one-to-true", {"a": 1}, {"a": True}),
    ("document", "zero-to-false", [0], [False]),
    ("document", "another-order", {"a": 1, "b": 2}, {"b": 2, "a": 1}),
    ("entries", "one-to-one-point-zero", [1], [1.0]),
    ("entries", "one-to-true", [1], [True]),
    ("entries", "another-order", ["a", "b"], ["b", "a"]),
    ("entries", "list-to-its-text", ["a"], '["a"]'),
    ("document", "object-to-its-text", {"a": 1}, '{"a": 1}'),
    ("plain", "empty-to-null", "", None),
    ("plain", "null-to-empty", None, ""),
    ("plain", "nfc-to-nfd", "\u00c5", "A\u030a"),
    ("plain", "null-to-NULL", None, "NULL"),
    ("plain", "value-to-NULL", "a", "NULL"),
    ("host", "another-spelling", "2001:db8::1/128", "2001:DB8::1"),
    ("mac", "another-spelling", "00:11:22:AA:BB:CC", "0011.22aa.bbcc"),
    ("network", "another-spelling", "10.0.0.0/24", "10.0.0.0/255.255.255.0"),
    ("since", "same-moment", "2026-01-01T10:00:00Z", "2026-01-01T12:00:00+02:00"),
    ("amount", "one-to-true", 1, True),
    ("anything", "one-to-true", 1, True),
    ("anything", "one-to-one-point-zero", 1, 1.0),
    ("area", "value-to-null", "a", None),
)


def _changed(field: str, before: Any, after: Any) -> Callable[[Talk], None]:
    def hold(t: Talk) -> None:
        read = f"{field} {{ value updated_at }}"
        made = t.write("ProbeValueUpsert", values(name=t.name(), **{field: before})).id
        first = t.read("ProbeValue", made, read).node
        t.write(
            "ProbeValueUpsert", {"id": made, **values(**{field: after})}, below=f"ok object {{ {field} {{ value }} }}"
        )
        t.note("a time moved", first[field]["updated_at"] != t.read("ProbeValue", made, read).node[field]["updated_at"])

    return hold


for _field, _label, _before, _after in _CHANGES:
    words = f"{_field}: {_before!r} becomes {_after!r}"
    register(Case("value-change", f"{_field}-{_label}", words, _changed(_field, _before, _after)))


_KEYS: tuple[tuple[str, str, str], ...] = (
    ("case", "a", "A"),
    ("nfc-and-nfd", "\u00c5", "A\u030a"),
    ("blank-behind", "a", "a "),
    ("zero-width", "a", "a\u200b"),
    ("newline", "a", "a\n"),
)


def _two_keys(first: str, second: str) -> Callable[[Talk], None]:
    def hold(t: Talk) -> None:
        for text in (first, second):
            t.write("ProbeTagUpsert", values(name=t.name(text)))
        for text in (first, second):
            t.find("ProbeTag", {"name__value": t.name(text)}, "name { value }")
            t.find("ProbeTag", {"hfid": [t.name(text)]}, "name { value }")

    return hold


for _label, _first, _second in _KEYS:
    register(Case("keys", _label, f"{_first!r} and {_second!r} are two keys.", _two_keys(_first, _second)))


@case("keys")
def spelling_of_an_address(t: Talk) -> None:
    """A key with a normal form: another spelling is the same object; a look-up needs the normal form."""
    t.write("ProbeAddressUpsert", values(address="2001:db8::77"), below="ok object { id hfid }")
    t.write("ProbeAddressUpsert", values(address="2001:DB8:0::77/128"), below="ok object { id hfid }")
    for text in ("2001:db8::77", "2001:db8::77/128", "2001:DB8::77/128"):
        t.find("ProbeAddress", {"address__value": text}, "hfid")


@case("keys")
def text_null_as_a_key(t: Talk) -> None:
    """[haz] The text NULL as a key: reads back null, and is found by what it was sent as."""
    made = t.write("ProbeTagUpsert", values(name="NULL"), below="ok object { id hfid name { value } }")
    t.read("ProbeTag", made.id, "hfid display_label name { value }")
    t.write("ProbeTagUpsert", values(name="NULL"))
    t.find("ProbeTag", {"hfid": ["NULL"]}, "hfid")
    t.write("ProbeTagDelete", {"id": made.id})


@case("keys")
def empty_key(t: Talk) -> None:
    """An empty text as a key."""
    made = t.write("ProbeTagUpsert", values(name=""), below="ok object { id hfid }")
    t.write("ProbeTagUpsert", values(name=""), below="ok object { id hfid }")
    t.find("ProbeTag", {"name__value": ""}, "hfid display_label")
    t.write("ProbeTagDelete", {"id": made.id})


@case("value-several")
def faults_fan_out(t: Talk) -> None:
    """Several bad fields: one error each, with a path of its own."""
    t.write("ProbeValueUpsert", values(name=t.name(), sized="x", bounded=0, host="x", code="x", choice="x"))


@case("value-several")
def faults_and_an_enum(t: Talk) -> None:
    """A fault that names no field ends the checks."""
    t.write("ProbeValueUpsert", values(name=t.name(), sized="x", role="x", bounded=0))


@case("value-several")
def faults_and_a_long_text(t: Talk) -> None:
    """A long text beside bad fields."""
    t.write("ProbeValueUpsert", values(name=t.name(), plain="x" * 5000, sized="x"))


@case("value-several")
def attribute_named_like_a_method(t: Talk) -> None:
    """[haz] An attribute named ``items``: the object can be created, and never updated."""
    made = t.write("ProbeWordUpsert", values(name=t.name(), items=["a"])).id
    t.write("ProbeWordUpsert", {"id": made, **values(items=["b"])})
    t.write("ProbeWordUpsert", {"id": made, **values(name=t.name("b"))})
    t.read("ProbeWord", made, "name { value } items { value }")


@case("value-several")
def attribute_named_keys(t: Talk) -> None:
    """[haz] An attribute named ``keys``: likewise."""
    made = t.write("ProbeKeysUpsert", values(name=t.name(), keys="a")).id
    for mutation in ("ProbeKeysUpsert", "ProbeKeysUpdate"):
        t.write(mutation, {"id": made, **values(keys="b")})
        t.write(mutation, {"id": made, **values(name=t.name("b"))})
    t.write("ProbeKeysUpsert", values(name=t.name(), keys="b"))
    t.read("ProbeKeys", made, "name { value } keys { value }")


@case("value-several")
def attribute_named_get(t: Talk) -> None:
    """[haz] An attribute named ``get``: every write crashes, and nothing is written."""
    for mutation in ("ProbeGettingUpsert", "ProbeGettingCreate"):
        t.write(mutation, values(name=t.name()))
        t.write(mutation, values(name=t.name("b"), get="a"))
    t.find("ProbeGetting", {"name__value": t.name()}, "id")


@case("value-several")
def kind_named_after_an_update(t: Talk) -> None:
    """[haz] "Update" in the name of a kind: an upsert is an update and creates nothing."""
    t.write("ProbeFirmwareUpdateUpsert", values(name=t.name()))
    t.find("ProbeFirmwareUpdate", {"name__value": t.name()}, "id")
    made = t.write("ProbeFirmwareUpdateCreate", values(name=t.name(), description="a")).id
    t.write("ProbeFirmwareUpdateUpsert", values(name=t.name(), description="b"))
    t.write("ProbeFirmwareUpdateUpsert", {"id": made, **values(description="c")})
    t.write("ProbeFirmwareUpdateUpdate", {"id": made, **values(name=t.name("b"))})
    t.read("ProbeFirmwareUpdate", made, "name { value } description { value }")
    t.write("ProbeFirmwareUpdateDelete", {"id": made})
    t.read("ProbeFirmwareUpdate", made, "id")


@case("value-several")
def kind_named_after_a_create(t: Talk) -> None:
    """[haz] "Create" in the name of a kind: every mutation is a create, the one that deletes as well."""
    made = t.write("ProbeLatelyCreatedUpsert", values(name=t.name())).id
    t.write("ProbeLatelyCreatedUpsert", values(name=t.name(), description="b"))
    t.write("ProbeLatelyCreatedUpsert", {"id": made, **values(description="c")})
    t.write("ProbeLatelyCreatedUpdate", {"id": made, **values(name=t.name("b"))})
    t.write("ProbeLatelyCreatedDelete", {"id": made})
    t.find("ProbeLatelyCreated", {"name__value": t.name("b")}, "id")
    t.read("ProbeLatelyCreated", made, "name { value } description { value }")


@case("value-several")
def attributes_named_like_other_methods(t: Talk) -> None:
    """The other methods of a mapping are names like any others."""
    names = ("values", "update", "pop", "popitem", "copy", "clear", "setdefault", "fromkeys")
    made = t.write("ProbeMethodsUpsert", values(name=t.name(), **dict.fromkeys(names, "a"))).id
    t.write("ProbeMethodsUpsert", values(name=t.name(), **dict.fromkeys(names, "b")))
    t.write("ProbeMethodsUpsert", {"id": made, **values(pop="c")})
    t.read("ProbeMethods", made, " ".join(f"{name} {{ value }}" for name in names))


@case("value-several")
def passwords(t: Talk) -> None:
    """A Password is stored as sent, a HashedPassword is not."""
    made = t.write("ProbeValueUpsert", values(name=t.name(), secret="s3cret", hashed="s3cret")).id
    node = t.find("ProbeValue", {"ids": [made]}, "secret { value }").node
    t.note("the secret reads back", node["secret"]["value"] == "s3cret")
