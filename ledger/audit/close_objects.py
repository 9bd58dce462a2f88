"""What somebody may have meant who named an object, or a kind, that the ledger does not know."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ledger.audit.bodies import parsed_object
from ledger.audit.errors import NeverWrittenError
from ledger.close_match import with_close_match
from ledger.plan.describe import identity_text, is_reference, object_text
from ledger.store.ledger import Ledger
from ledger.store.records import BindingRow

_LINES_FOR_KINDS = 100_000
_LINES_FOR_OBJECTS = 5_000
"""Bounds: this only helps with a slip of the hand, and a ledger may hold millions of lines."""


async def known_kinds(ledger: Ledger, rows: Sequence[BindingRow]) -> list[str]:
    """The kinds of the plans that were committed last on these bindings, by name."""
    return sorted({kind for row in rows for kind in await ledger.known_kinds(row.id, among=_LINES_FOR_KINDS)})


async def require_known_kind(ledger: Ledger, rows: Sequence[BindingRow], kind: str) -> None:
    """For whoever asks for a kind and would be shown nothing: a mistyped one must not look like one without an object.

    Raises:
        NeverWrittenError: the plans that were committed last have no object of this kind.
    """
    kinds = await known_kinds(ledger, rows)
    if kinds and kind not in kinds:
        raise NeverWrittenError(
            checked=f"the kind {kind} on {', '.join(str(row.binding) for row in rows)}",
            expected="one of which a committed plan has an object",
            found=with_close_match(kind, kinds),
            next_action="kinds are named as in the schema of the destination; `apply-ledger show RUN` lists a plan's",
        )


async def named_in_part(
    ledger: Ledger, rows: Sequence[BindingRow], kind: str, identity: Mapping[str, Any]
) -> list[dict[str, Any]]:
    """The identities that somebody may mean who names only some fields, or a reference by a value of its object.

    ``manufacturer=Cisco`` is a manufacturer of whose identity a value is ``Cisco``; ``manufacturer.name=Cisco`` one
    whose name it is. Looked for among the plans that were committed last.

    Args:
        ledger: open, with any role that may read.
        rows: the bindings that are looked at.
        kind: that was named.
        identity: by field, or by field and fields of references behind it, the value that was named.
    """
    texts = [value for value in identity.values() if isinstance(value, str)]
    found: dict[str, dict[str, Any]] = {}
    for row in rows:
        for line in await ledger.known_lines(row.id, kind, most=_LINES_FOR_OBJECTS, holding=texts):
            named = _identity(line, kind)
            if named is not None and all(_is_meant(named, path, value) for path, value in identity.items()):
                found.setdefault(identity_text(kind, named), named)
    return list(found.values())


def _is_meant(identity: Mapping[str, Any], path: str, wanted: Any) -> bool:
    value: Any = identity
    for name in path.split("."):
        inner = value["identity"] if is_reference(value) else value
        value = inner.get(name) if isinstance(inner, Mapping) else None
    return value == wanted or any(leaf == wanted or str(leaf) == wanted for leaf in _leaves(value))


def _leaves(value: Any) -> Iterator[Any]:
    """The plain values of an identity's component; those of a reference are those of its object's identity."""
    if is_reference(value):
        for inner in value["identity"].values():
            yield from _leaves(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _leaves(inner)
    elif value is not None:
        yield value


def _identity(line: bytes, kind: str) -> dict[str, Any] | None:
    record = parsed_object(line) or {}
    identity = record.get("identity")
    return identity if record.get("kind") == kind and isinstance(identity, dict) else None


async def none_but(ledger: Ledger, rows: Sequence[BindingRow], kind: str, identity: Mapping[str, Any]) -> str:
    """That there is none, and what is known instead: a close kind, a close object, or by which fields others are named.

    Args:
        ledger: open, with any role that may read.
        rows: the bindings that were looked at.
        kind: that was named.
        identity: that was named.
    """
    kinds = await known_kinds(ledger, rows)
    if kind not in kinds:
        return f"no object of the kind {with_close_match(kind, kinds)}" if kinds else "none: no plan was committed"
    lines = [line for row in rows for line in await ledger.known_lines(row.id, kind, most=_LINES_FOR_OBJECTS)]
    identities = [named for line in lines if (named := _identity(line, kind)) is not None]
    alike = [named for named in identities if set(named) == set(identity)]
    if not alike and identities:
        return f"none; objects of this kind are named like {object_text(kind, identities[0])}"
    known = sorted({identity_text(kind, named) for named in alike})
    return f"no {kind} with {with_close_match(identity_text(kind, identity), known)}"
