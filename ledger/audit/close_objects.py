"""What somebody may have meant who named an object, or a kind, that the ledger does not know."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ledger.audit.bodies import parsed_object
from ledger.audit.errors import NeverWrittenError
from ledger.close_match import with_close_match
from ledger.plan.describe import identity_text, object_text
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
    records = [record for line in lines if (record := parsed_object(line)) is not None and record.get("kind") == kind]
    identities = [named for record in records if isinstance(named := record.get("identity"), dict)]
    alike = [named for named in identities if set(named) == set(identity)]
    if not alike and identities:
        return f"none; objects of this kind are named like {object_text(kind, identities[0])}"
    known = sorted({identity_text(kind, named) for named in alike})
    return f"no {kind} with {with_close_match(identity_text(kind, identity), known)}"
