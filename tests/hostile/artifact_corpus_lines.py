"""Operation lines that are refused: as text, and as records."""

from __future__ import annotations

import json

from tests.hostile.artifact_corpus_spoils import (
    TAG_LINE,
    Hostile,
    changed,
    with_line,
    with_operations,
    with_records,
    with_value,
)
from tests.hostile.artifact_files import encode, lines_of
from tests.hostile.artifact_judge import CANARY
from tests.hostile.artifact_plans import record, reference

_A, _B = (record("create", "BuiltinTag", {"name": name}) for name in "ab")
_FIRST, _SECOND = sorted((_A, _B), key=lambda found: str(found["operation_id"]))

JSON_TEXTS = (
    Hostile("a byte order mark", with_operations(b"\xef\xbb\xbf" + encode(_A) + b"\n"), "ByteOrderMarkError"),
    Hostile(
        "carriage returns", with_operations(lines_of([_FIRST, _SECOND]).replace(b"\n", b"\r\n")), "CarriageReturnError"
    ),
    Hostile("UTF-16", with_operations(encode(_A).decode().encode("utf-16-le") + b"\n"), "NullCharacterError"),
    Hostile("no last newline", with_operations(encode(_A), operations_count=1), "UnterminatedLineError"),
    Hostile("a blank line", with_operations(encode(_FIRST) + b"\n\n" + encode(_SECOND) + b"\n"), "BlankLineError"),
    Hostile("zeros", with_operations(b"\x00" * 4096, operations_count=1), "UnterminatedLineError"),
    Hostile("an invalid byte", with_value(b'"\xff"'), "InvalidUtf8Error"),
    Hostile("a raw surrogate", with_value(b'"\xed\xa0\x80"'), "InvalidUtf8Error"),
    Hostile("an escaped surrogate", with_value(b'"\\ud800"'), "LoneSurrogateError"),
    Hostile("a raw U+0000", with_value(b'"a\x00b"'), "NullCharacterError"),
    Hostile("an escaped U+0000", with_value(b'"a\\u0000b"'), "NullCharacterError"),
    Hostile("NaN", with_value(b"NaN"), "NonFiniteNumberError"),
    Hostile("minus infinity", with_value(b"-Infinity"), "NonFiniteNumberError"),
    Hostile("1e400", with_value(b"1e400"), "NonFiniteNumberError"),
    Hostile("5 000 digits", with_value(b"9" * 5000), "IntegerTooLongError"),
    Hostile("one digit too many", with_value(b"9" * 641), "IntegerTooLongError"),
    Hostile("10^400", with_value(b"1" + b"0" * 400), "SchemaMismatchError"),
    Hostile("100 000 lists", with_value(b"[" * 100_000 + b"]" * 100_000), "NestingTooDeepError"),
    Hostile("100 000 objects", with_value(b'{"a":' * 100_000 + b"1" + b"}" * 100_000), "NestingTooDeepError"),
    Hostile("66 levels", with_value(b"[" * 66 + b"]" * 66), "UnserializablePayloadValueError"),
    Hostile("a key twice at depth", with_value(b'{"a":[{"b":1,"b":1}]}'), "DuplicateJsonKeyError"),
    Hostile("a key twice", with_line(TAG_LINE[:-1] + b',"tier":0}'), "DuplicateJsonKeyError"),
    Hostile("half a record", with_line(TAG_LINE[:40]), "MalformedJsonError"),
    Hostile("two records", with_line(encode(_FIRST) + encode(_SECOND)), "MalformedJsonError"),
    Hostile("a comment", with_line(encode(_A) + b" // really"), "MalformedJsonError"),
    Hostile("blanks between", with_line(json.dumps(_A, sort_keys=True).encode()), "NonCanonicalLineError"),
    Hostile("unsorted keys", with_line(json.dumps(_A, separators=(",", ":")).encode()), "NonCanonicalLineError"),
    Hostile("an escaped letter", with_value(b'"\\u0061"'), "NonCanonicalLineError"),
    Hostile("1E2", with_value(b"1E2"), "NonCanonicalLineError"),
    Hostile("minus zero", with_value(b"-0"), "NonCanonicalLineError"),
)

RECORDS = (
    Hostile("no record but a list", with_records([]), "PlanOperationInvalidError"),
    Hostile("no record but null", with_records(None), "PlanOperationInvalidError"),
    Hostile("nothing in a record", with_records({}), "PlanOperationInvalidError"),
    Hostile("an unknown key", with_records({**_A, "comment": "x"}), "PlanOperationInvalidError"),
    Hostile(
        "a thousand unknown keys",
        with_records({**_A, **{f"k{n}": n for n in range(1000)}}),
        "PlanOperationInvalidError",
    ),
    Hostile("an unknown action", changed(0, action="upsert"), "UnsupportedOperationActionError"),
    Hostile("an action of coverage alone", changed(0, action="none"), "UnsupportedOperationActionError"),
    Hostile("a tier of text", changed(0, tier="0"), "PlanOperationInvalidError"),
    Hostile("a tier of true", changed(0, tier=True), "PlanOperationInvalidError"),
    Hostile("a tier of 1.0", changed(0, tier=1.0), "PlanOperationInvalidError"),
    Hostile("a negative tier", changed(0, tier=-1), "PlanOperationInvalidError"),
    Hostile("no identity", changed(0, identity={}), "PlanOperationInvalidError"),
    Hostile("an identity that is not written", changed(0, identity={"name": "x"}), "PlanOperationInvalidError"),
    Hostile(
        "an identity of another type",
        changed(0, identity={"name": 1}, payload={"name": True}),
        "PlanOperationInvalidError",
    ),
    Hostile("an empty kind", changed(0, kind=""), "PlanOperationInvalidError"),
    Hostile(
        "an id of something else", with_records({**_A, "operation_id": _B["operation_id"]}), "PlanOperationInvalidError"
    ),
    Hostile("an id in capitals", with_records({**_A, "operation_id": "op_" + "F" * 16}), "PlanOperationInvalidError"),
    Hostile(
        "an id with a newline",
        with_records({**_A, "operation_id": f"{_A['operation_id']}\n"}),
        "PlanOperationInvalidError",
    ),
    Hostile("one operation twice", with_records(_A, _A), "DuplicateOperationIdError"),
    Hostile("one operation in two tiers", with_records(_A, {**_A, "tier": 1}), "DuplicateOperationIdError"),
    Hostile("the wrong order", with_records(_SECOND, _FIRST), "OperationOrderError"),
    Hostile("a tier before a lower one", with_records({**_FIRST, "tier": 1}, _SECOND), "OperationOrderError"),
    Hostile("a create with a recorded id", changed(0, destination_id="x"), "PlanOperationInvalidError"),
    Hostile("an update without one", changed(4, destination_id=...), "PlanOperationInvalidError"),
    Hostile("an update with a blank one", changed(4, destination_id="\u2003"), "PlanOperationInvalidError"),
    Hostile("a null in place of nothing", changed(4, relationships=None), "PlanOperationInvalidError"),
    Hostile("a delete that writes", changed(5, payload={"name": "old"}), "PlanOperationInvalidError"),
    Hostile("a create without a payload", changed(0, payload=...), "PlanOperationInvalidError"),
    Hostile("an empty list of relationships", changed(0, relationships=[]), "PlanOperationInvalidError"),
    Hostile(
        "a relationship twice",
        changed(3, relationships=[reference("rack", "LabRack", {"name": "r"})] * 2),
        "PlanOperationInvalidError",
    ),
    Hostile(
        "two peers for one",
        changed(3, relationships=[{**reference("site", "LabSite"), "peers": [{"name": "a"}, {"name": "b"}]}]),
        "PlanOperationInvalidError",
    ),
    Hostile(
        "peers out of order",
        changed(3, relationships=[reference("tags", "BuiltinTag", {"name": "b"}, {"name": "a"}, many=True)]),
        "PlanOperationInvalidError",
    ),
    Hostile(
        "a peer without identity",
        changed(3, relationships=[reference("tags", "BuiltinTag", {}, many=True)]),
        "PlanOperationInvalidError",
    ),
    Hostile(
        "a field with two sources", changed(3, payload={"name": "sw1", "site": "dc1"}), "PlanOperationInvalidError"
    ),
    Hostile("a kind that nobody has", changed(0, kind="\u202eNoKind\x1b[2J"), "SchemaMismatchError"),
    Hostile("a kind of 100 000 letters", changed(0, kind="K" * 100_000), "SchemaMismatchError"),
    Hostile("a generic", changed(0, kind="LabPlace"), "SchemaMismatchError"),
    Hostile("a field that nobody has", changed(0, payload={"name": "prod", "\x1b]0;x\x07": 1}), "SchemaMismatchError"),
    Hostile("a password", changed(3, payload={"name": "sw1", "secret": CANARY}), "SecretValueRefusedError"),
    Hostile(
        "a value from a pool", changed(3, payload={"name": "sw1", "mtu": {"from_pool": "p"}}), "SchemaMismatchError"
    ),
    Hostile(
        "a create without a key",
        changed(0, kind="LabNote", identity={"text": "x"}, payload={"text": "x"}),
        "UnkeyedCreateRefusedError",
    ),
    Hostile(
        "a blank key", changed(0, identity={"name": " "}, payload={"name": " "}), "UnaccountedIdentityComponentError"
    ),
    Hostile(
        "two spellings of one address",
        with_records(
            *sorted(
                (record("create", "LabAddress", {"address": text}) for text in ("10.0.0.1", "10.0.0.1/32")),
                key=lambda found: str(found["operation_id"]),
            )
        ),
        "DestinationIdentityCollisionError",
    ),
)
