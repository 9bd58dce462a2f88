"""Large values, and what becomes of the connection behind an answer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.contract.cases.case import Case, case, register
from tests.contract.cases.talk import Talk, values

_MEGABYTE = 1_000_000
_GOOD = "{ ProbeTag(limit: 1) { __typename } }"


def _large(field: str, make: Callable[[str], Any]) -> Callable[[Talk], None]:
    def hold(t: Talk) -> None:
        value = make(t.known("x" * _MEGABYTE, "1 MB"))
        made = t.write("ProbeValueUpsert", values(name=t.name(), **{field: value})).id
        t.reconnect()  # the server closes the connection behind such a write: see the case about that
        t.read("ProbeValue", made, f"{field} {{ value }}")
        t.write("ProbeValueUpsert", {"id": made, **values(plain="beside it")})
        t.reconnect()
        t.read("ProbeValue", made, f"plain {{ value }} {field} {{ value }}")

    return hold


for _field, _make in (
    ("area", lambda text: text),
    ("entries", lambda text: [text]),
    ("document", lambda text: {"a": text}),
):
    register(Case("large", _field, f"{_field} with 1 MB of text, kept beside an update.", _large(_field, _make)))


@case("large")
def text_that_is_indexed(t: Talk) -> None:
    """A text of 1 MB where 4092 bytes are taken."""
    t.write("ProbeValueUpsert", values(name=t.name(), plain=t.known("x" * _MEGABYTE, "1 MB")))


@case("connection")
def behind_a_crash(t: Talk) -> None:
    """[haz] Behind a crash in text the connection is closed, and no header said so: the next request is lost."""
    t.over_one_connection("a syntax error", ["mutation {", _GOOD])
    crash = f'mutation {{ ProbeTagUpsert(data: {{id: null, name: {{value: "{t.name()}"}}}}) {{ ok }} }}'
    t.over_one_connection("a null id", [crash, _GOOD])


@case("connection")
def behind_a_large_write(t: Talk) -> None:
    """[haz] Behind a write with a value of 0.8 MB the connection is lost with the next request; with 0.4 MB it is not.

    The answer says neither; what is written is written.
    """
    for label, size in (("0.4 MB", 400_000), ("0.8 MB", 800_000), ("2 MB", 2_000_000)):
        name = t.name(label)
        text = "x" * size
        write = (
            f'mutation {{ ProbeValueUpsert(data: {{name: {{value: "{name}"}}, area: {{value: "{text}"}}}}) {{ ok }} }}'
        )
        t.over_one_connection(label, [write, _GOOD])
        t.find("ProbeValue", {"name__value": name}, "name { value }")


@case("connection")
def behind_other_answers(t: Talk) -> None:
    """It stays open behind answers that hold errors, whatever their status."""
    t.over_one_connection("data", [_GOOD, _GOOD])
    t.over_one_connection("an unknown field", ["{ ProbeTag { nothing } }", _GOOD])
    gone = f'mutation {{ ProbeTagUpsert(data: {{id: "{t.new_id("gone")}"}}) {{ ok }} }}'
    t.over_one_connection("an unknown id", [gone, _GOOD])
    t.over_one_connection("an unknown branch", [_GOOD, _GOOD], branch="nope")
    t.over_one_connection("a wrong key", [_GOOD, _GOOD], key="wrong")
