"""What a maker of trouble puts into a plan: bytes, texts, names and values of every kind that once broke something."""

from __future__ import annotations

from random import Random
from typing import Any

TOKENS = (
    b"\xef\xbb\xbf",
    b"\x00",
    b"\r\n",
    b"\n",
    b"\n\n",
    b"\r",
    b"\t",
    b" ",
    b"\xed\xa0\x80",
    b"\xff",
    b"\xc0\x80",
    b"\xe2\x80\xa8",
    b"\\u0000",
    b"\\ud800",
    b"\\u0061",
    b"NaN",
    b"Infinity",
    b"-Infinity",
    b"1e400",
    b"1E2",
    b"-0",
    b"-0.0",
    b"01",
    b"+1",
    b"9" * 641,
    b"9" * 5000,
    b"[" * 101,
    b"{" * 101,
    b'{"a":' * 101,
    b"]",
    b"}",
    b'"',
    b"\\",
    b",",
    b":",
    b"null",
    b"true",
    b'"kind":',
    b',"kind":"x"',
    b',"identity":{}',
    b',"operation_id":"op_0000000000000000"',
    b"//",
    b"\x1b[31m",
    b"\xe2\x80\xae",
)

TEXTS = (
    "",
    " ",
    "\t",
    "a\nb",
    "a\r\nb",
    "\u2028",
    "\u0085",
    "\u200b",
    "\u202ergb",
    "\x1b[2J\x1b]0;x\x07",
    "\x7f",
    "\x9b31m",
    "\u0000",
    "\ud800",
    "x\udfff",
    "\U000e0041",
    "\ufeff",
    "NULL",
    "null",
    "..",
    "A/../../etc/passwd",
    "/etc/passwd",
    "A/x\u0000y",
    "A\\b",
    "op_0000000000000000",
    "op_FFFFFFFFFFFFFFFF",
    "create",
    "delete",
    "none",
    "skip",
    "remove",
    "upsert",
    "LabDevice",
    "LabPlace",
    "BuiltinTag",
    '","kind":"LabSite',
    '"}',
    "a" * 5000,
    "\u0301" * 300,
    "%s",
    "{0}",
    "[red]x[/red]",
    "http://[::1",
    "http://u:p@h/?q=1#f",
    "2026-07-26T18:04:11+00:00",
    "2026-07-26T18:04:11+02:00",
    "9999-12-31T23:59:59.999999+00:00",
    "0" * 64,
    "F" * 64,
    "$(id)",
    "'; drop",
)

NAMES = (
    "kind",
    "identity",
    "operation_id",
    "payload",
    "tier",
    "action",
    "relationships",
    "peer_kind",
    "peers",
    "field",
    "cardinality",
    "name",
    "site",
    "secret",
    "serial",
    "extra",
    "labels",
    "mtu",
    "tags",
    "",
    "a.b",
    "a__b",
    "id",
    "hfid",
    "__proto__",
    "format_version",
    "destination_id",
    "from_pool",
    "coverage",
    "counts",
    "digest",
    "reason",
    "entry",
    "differences",
    "observed",
    "desired",
    "filters",
)


def any_value(chance: Random, depth: int = 0) -> Any:
    """Any value that a maker of trouble may think of."""
    choice = chance.randrange(12)
    if choice < 4 or depth > 3:
        return chance.choice(TEXTS)
    if choice < 7:
        numbers = (
            0,
            -1,
            1,
            1.0,
            -0.0,
            1e-7,
            1e308,
            2**53 + 1,
            2**63,
            2**64,
            10**400,
            10**639,
            -(10**640),
            True,
            False,
            None,
        )
        return chance.choice(numbers)
    if choice == 7:
        return f"@{chance.choice(('NaN', '-Infinity', '1e400', '9' * 20, '1E2'))}@"
    if choice == 8:
        return [any_value(chance, depth + 1) for _ in range(chance.randrange(3))]
    if choice == 9:
        return {chance.choice(NAMES): any_value(chance, depth + 1) for _ in range(chance.randrange(3))}
    if choice == 10:
        return {"identity": {chance.choice(NAMES): any_value(chance, depth + 1)}, "peer_kind": chance.choice(TEXTS)}
    nested: Any = chance.choice(TEXTS)
    for _ in range(chance.choice((10, 60, 90, 101, 400))):
        nested = [nested] if chance.random() < 0.5 else {"a": nested}
    return nested
