"""Null, nothing, and the schema's default: what each is stored as, on a create and on an update."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.contract.cases.case import Case, case, register
from tests.contract.cases.talk import Talk, values

_GIVEN: tuple[tuple[str, str, dict[str, Any]], ...] = (
    ("left-out", "the field left out", {}),
    ("whole-null", "null for the whole attribute", {"X": None}),
    ("empty-object", "an empty object", {"X": {}}),
    ("value-null", "{value: null}", {"X": {"value": None}}),
    ("is-default", "{is_default: true}", {"X": {"is_default": True}}),
    ("is-default-beside-a-value", "{is_default: true} beside a value", {"X": {"is_default": True, "value": "other"}}),
    ("is-not-default", "{is_default: false}", {"X": {"is_default": False}}),
)


def _update(kind: str, field: str, given: dict[str, Any], before: Any) -> Callable[[Talk], None]:
    def hold(t: Talk) -> None:
        read = f"{field} {{ value is_default }}"
        made = t.write(f"{kind}Upsert", values(name=t.name(), **{field: before})).id
        data = {field if name == "X" else name: value for name, value in given.items()}
        t.write(f"{kind}Upsert", {"id": made, **data}, below=f"ok object {{ id {read} }}")
        t.read(kind, made, read)
        t.find(kind, {"name__value": t.name(), f"{field}__isnull": True}, "id")

    return hold


def _creation(kind: str, field: str, given: dict[str, Any]) -> Callable[[Talk], None]:
    def hold(t: Talk) -> None:
        read = f"{field} {{ value is_default }}"
        data = {field if name == "X" else name: value for name, value in given.items()}
        made = t.write(f"{kind}Upsert", {**values(name=t.name()), **data}, below=f"ok object {{ id {read} }}").id
        t.read(kind, made, read)

    return hold


for _label, _words, _data in _GIVEN:
    for _kind, _which in (("ProbeValue", "without-default"), ("ProbeDefault", "with-default")):
        register(Case("null", f"{_which}-{_label}-create", f"A create, {_words}.", _creation(_kind, "plain", _data)))
        register(
            Case("null", f"{_which}-{_label}-update", f"An update, {_words}.", _update(_kind, "plain", _data, "before"))
        )

for _field, _before in (
    ("amount", 3),
    ("flag", False),
    ("entries", ["z"]),
    ("host", "10.9.9.9/32"),
    ("choice", "drained"),
):
    register(
        Case(
            "null",
            f"{_field}-with-default",
            "[haz] {value: null} under a default: every read says the default.",
            _update("ProbeDefault", _field, {"X": {"value": None}}, _before),
        )
    )
    register(
        Case(
            "null",
            f"{_field}-without-default",
            "{value: null} clears.",
            _update("ProbeValue", _field, {"X": {"value": None}}, _before),
        )
    )


register(
    Case(
        "null",
        "document-without-default",
        "{value: null} clears.",
        _update("ProbeValue", "document", {"X": {"value": None}}, {"z": 1}),
    )
)


@case("null")
def default_of_every_kind(t: Talk) -> None:
    """What an object has that names nothing but its key."""
    fields = " ".join(
        f"{name} {{ value is_default }}" for name in ("plain", "amount", "flag", "entries", "host", "choice")
    )
    made = t.write("ProbeDefaultUpsert", values(name=t.name()), below=f"ok object {{ id {fields} }}").id
    t.read("ProbeDefault", made, fields)


@case("null")
def value_equal_to_the_default(t: Talk) -> None:
    """A value equal to the default, sent to an object that is on its default and to one that is not."""
    read = "plain { value is_default updated_at }"
    made = t.write("ProbeDefaultUpsert", values(name=t.name())).id
    before = t.read("ProbeDefault", made, read).node
    t.write("ProbeDefaultUpsert", {"id": made, **values(plain="standard")})
    t.note("a time moved", before != t.read("ProbeDefault", made, read).node)
    other = t.write("ProbeDefaultUpsert", values(name=t.name("b"), plain="standard")).id
    t.read("ProbeDefault", other, "plain { value is_default }")
    third = t.write("ProbeDefaultUpsert", values(name=t.name("c"), plain="other")).id
    t.write("ProbeDefaultUpsert", {"id": third, **values(plain="standard")})
    t.read("ProbeDefault", third, "plain { value is_default }")


@case("null")
def null_under_a_default_to_filters(t: Talk) -> None:
    """[haz] A null under a default: what filters find."""
    made = t.write("ProbeDefaultUpsert", values(name=t.name(), plain="x")).id
    t.write("ProbeDefaultUpsert", {"id": made, **values(plain=None)})
    t.find("ProbeDefault", {"name__value": t.name(), "plain__isnull": True}, "plain { value }")
    t.find("ProbeDefault", {"name__value": t.name(), "plain__value": "standard"}, "plain { value }")


@case("null")
def null_again_under_a_default(t: Talk) -> None:
    """A null under a default sent twice: whether the second one moves a time."""
    made = t.write("ProbeDefaultUpsert", values(name=t.name(), plain="x")).id
    t.write("ProbeDefaultUpsert", {"id": made, **values(plain=None)})
    before = t.read("ProbeDefault", made, "plain { updated_at }").node
    t.write("ProbeDefaultUpsert", {"id": made, **values(plain=None)})
    t.note("a time moved", before != t.read("ProbeDefault", made, "plain { updated_at }").node)


for _label, _given in (("value-null", {"value": None}), ("whole-null", None), ("empty-object", {})):

    def _mandatory(t: Talk, given: Any = _given) -> None:
        t.write("ProbeTagUpsert", {"name": given})
        tag = t.write("ProbeTagUpsert", values(name=t.name())).id
        t.write("ProbeTagUpsert", {"id": tag, "name": given})
        t.read("ProbeTag", tag, "name { value }")

    register(Case("null", f"mandatory-{_label}", "A mandatory attribute, on a create and on an update.", _mandatory))


@case("null")
def several_mandatory_nulls(t: Talk) -> None:
    """Several nulls: one error each."""
    t.write("ProbeStrictUpsert", values(name=t.name(), amount=None, flag=None, entries=None))


@case("null")
def null_filter(t: Talk) -> None:
    """[haz] A filter whose value is null is dropped: it finds everything that the others let through."""
    t.write("ProbeTagUpsert", values(name=t.name(), description="d"))
    t.find("ProbeTag", {"name__value": t.name(), "description__value": None}, "description { value }")
