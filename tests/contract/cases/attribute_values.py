"""Every kind of attribute with its edges: sent as a variable, read back, sent again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.contract.cases.case import Case, case, register
from tests.contract.cases.talk import Talk, values

_BIG = 2**63

VALUES: dict[str, dict[str, Any]] = {
    "plain": {
        "empty": "",
        "blank": "   ",
        "blanks-at-the-ends": "  a b  ",
        "control": "a\tb\r\nc\x0b\x85\u2028",
        "nul": "a\u0000b",
        "zero-width": "a\u200bb",
        "emoji": "\U0001f600 $core {{x}} \\ \" '",
        "nfc": "\u00c5",
        "nfd": "A\u030a",
        "byte-order-mark": "\ufeffa",
        "NULL": "NULL",
        "null-in-small": "null",
        "4092-bytes": "x" * 4092,
        "4093-bytes": "x" * 4093,
        "4092-bytes-in-2046-characters": "\u00e4" * 2046,
        "4094-bytes-in-2047-characters": "\u00e4" * 2047,
        "number": 5,
        "fraction": 5.5,
        "true": True,
        "list": ["a"],
        "object": {"a": 1},
        "half-a-pair": "\ud800",
    },
    "area": {"5000-bytes": "x" * 5000, "NULL": "NULL", "empty": "", "lines": "a\r\nb\rc\n"},
    "amount": {
        "zero": 0,
        "negative": -5,
        "largest": _BIG - 1,
        "smallest": -_BIG,
        "2-to-63": _BIG,
        "below-smallest": -_BIG - 1,
        "2-to-53-and-1": 2**53 + 1,
        "text": "5",
        "text-of-a-fraction": "5.7",
        "fraction": 5.7,
        "whole-fraction": 5.0,
        "true": True,
        "false": False,
        "words": "abc",
        "empty-text": "",
        "blank-text": " 5 ",
        "underscored-text": "1_000",
        "exponent": "1e3",
        "list": [5],
    },
    "flag": {"true": True, "false": False, "one": 1, "zero": 0, "text": "true", "fraction": 1.0},
    "tick": {"true": True, "text": "true"},
    "role": {"known": "leaf", "unknown": "core", "case": "Leaf", "blank-behind": "leaf ", "empty": ""},
    "level": {"known": 1, "unknown": 3, "true": True, "text": "1"},
    "choice": {"known": "drained", "unknown": "bogus", "case": "Active", "label": "Drained", "empty": ""},
    "host": {
        "bare": "10.0.0.1",
        "prefix": "10.0.0.1/24",
        "netmask": "10.0.0.1/255.255.255.0",
        "upper-case": "2001:DB8::1",
        "long": "2001:0db8:0000:0000:0000:0000:0000:0001/64",
        "mapped": "::ffff:10.0.0.1",
        "mapped-with-prefix": "::ffff:10.0.0.1/120",
        "zone": "fe80::1%eth0",
        "zone-and-prefix": "fe80::1%eth0/64",
        "blank-before": " 10.0.0.1",
        "blank-behind": "10.0.0.1 ",
        "newline-behind": "10.0.0.1\n",
        "zero-led": "010.0.0.1",
        "prefix-33": "10.0.0.1/33",
        "prefix-zero-led": "10.0.0.1/024",
        "empty": "",
        "words": "abc",
        "number-as-text": "167772161",
        "any": "0.0.0.0/0",
        "ipv6-any": "::/0",
    },
    "network": {
        "bare": "10.0.0.0",
        "prefix": "10.0.0.0/8",
        "netmask": "10.0.0.0/255.255.255.0",
        "hostmask": "10.0.0.0/0.0.0.255",
        "upper-case": "2001:DB8::/32",
        "host-bits": "10.0.0.5/24",
        "zone": "fe80::%eth0/64",
        "mapped": "::ffff:10.0.0.0/120",
        "empty": "",
        "blank-before": " 10.0.0.0/8",
    },
    "mac": {
        "colons": "00:11:22:aa:bb:cc",
        "dashes": "00-11-22-aa-bb-cc",
        "dotted": "0011.22aa.bbcc",
        "bare": "001122aabbcc",
        "halves": "001122-aabbcc",
        "halves-with-colon": "001122:aabbcc",
        "one-digit": "0:11:22:a:b:c",
        "words-of-four-colons": "0011:22aa:bbcc",
        "words-of-four-dashes": "0011-22aa-bbcc",
        "short": "00:11",
        "mixed": "00:11-22:aa-bb:cc",
        "eui64": "00:11:22:aa:bb:cc:dd:ee",
        "blank-behind": "00:11:22:aa:bb:cc ",
        "newline-behind": "00:11:22:aa:bb:cc\n",
        "number-as-text": "73596058572",
        "empty": "",
        "prefixed": "0x001122aabbcc",
    },
    "entries": {
        "mixed": ["a", 2, False, None, 1.5, {"a": 1}, ["b"]],
        "empty": [],
        "text-of-a-list": '["a"]',
        "text-of-an-object": '{"a":1}',
        "text": "a",
        "empty-text": "",
        "object": {"a": 1},
        "number": 5,
        "true": True,
        "dollars": ["$x", "{{y}}"],
        "NULL": ["NULL"],
        "big": [2**63, 2**40],
    },
    "document": {
        "object": {"auth-token": 1, "1a": 2, "": 3, "$x": ["$y", None, True]},
        "list": [1, "a"],
        "empty-object": {},
        "empty-list": [],
        "text-of-an-object": '{"a": 1}',
        "text-of-a-number": "5",
        "text": "abc",
        "empty-text": "",
        "number": 5,
        "true": True,
        "one": {"a": 1},
        "one-point-zero": {"a": 1.0},
        "big": {"a": 2**53 + 1, "b": 2**64},
        "exponent": {"a": 1e300, "b": -0.0},
        "unordered": {"b": 1, "a": 2},
        "nested-null": {"a": None, "b": [None]},
        "NULL": {"a": "NULL"},
    },
    "anything": {"text": "a", "number": 5, "object": {"a": 1}, "list": [1], "true": True, "NULL": "NULL", "empty": ""}
    | {"fraction": 1.5, "mixed-list": ["a", 1], "list-of-lists": [[1]], "list-with-null": [1, None], "empty-list": []},
    "bare": {
        "address": "10.0.0.1",
        "prefix": "10.0.0.1/32",
        "upper-case": "2001:DB8::1",
        "mapped": "::ffff:10.0.0.1",
        "zone": "fe80::1%eth0",
        "empty": "",
        "zero-led": "010.0.0.1",
    },
    "since": {
        "zulu": "2026-01-01T10:00:00Z",
        "offset": "2026-01-01T10:00:00+02:00",
        "without-zone": "2026-01-01T10:00:00",
        "date": "2026-01-01",
        "nine-digits": "2026-01-01T10:00:00.123456789Z",
        "blank-between": "2026-01-01 10:00:00",
        "relative": "5m",
        "empty": "",
        "words": "soon",
        "month-13": "2026-13-01",
        "number-as-text": "1767261600",
        "lower-case": "2026-01-01t10:00:00z",
        "week": "2026-W01-1",
        "compact": "20260101T100000Z",
        "compact-date": "20260101",
        "days": "5d",
        "a-span-in-words": "in 3min",
        "year-and-month": "2026-01",
        "leap-second": "2016-12-31T23:59:60Z",
        "midnight-24": "2026-01-01T24:00:00Z",
        "named-zone": "2026-01-01T10:00:00+01:00[Europe/Berlin]",
        "hour-alone": "2026-01-01T10",
    },
    "link": {
        "https": "https://lab.example/x?y=1#z",
        "no-scheme": "lab.example",
        "path": "/a/b",
        "empty": "",
        "mailto": "mailto:a@b.c",
        "scheme-alone": "https://",
        "blank-behind": "https://lab.example ",
        "blank-inside": "https://lab example",
        "javascript": "javascript:alert(1)",
        "ftp": "ftp://lab.example",
        "word": "lab",
        "three-slashes": "file:///etc/hosts",
    },
    "mail": {"mail": "a@lab.example", "no-mail": "no mail at all", "empty": ""},
    "color": {"hex": "#00ff00", "word": "green", "odd": "no colour", "empty": ""},
    "speed": {"number": 1000, "negative": -1, "text": "10"},
    "path": {"path": "/a/b.txt", "empty": ""},
    "code": {
        "fits": "ABC1",
        "small": "abc",
        "empty": "",
        "newline-behind": "ABC\n",
        "fits-in-front": "ABC abc",
        "null-text": "NULL",
    },
    "sized": {
        "least": "ab",
        "most": "abcd",
        "less": "a",
        "more": "abcde",
        "empty": "",
        "emoji": "\U0001f600\U0001f600",
        "combining": "A\u030a",
    },
    "bounded": {"least": 1, "most": 9, "less": 0, "more": 10, "excluded": 5, "excluded-in-a-range": 8, "text": "3"},
}
"""What is sent, by attribute and a word for it."""


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
