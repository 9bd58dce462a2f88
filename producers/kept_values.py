"""Updates that the destination acknowledges but does not make.

It compares a new value with the stored one as Python does: inside a list or a mapping 1, 1.0 and true are equal there,
so the stored one stays, whatever is sent. Likewise an object that is made its own peer is taken, and reads as if it had
no peer. A plan holds such updates, because both sides differ (FF16); nobody may believe that they come true.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from producers.drafts import Draft


def warn_of_kept_values(drafts: Iterable[Draft]) -> list[str]:
    """One warning for each field of a kind in which updates will change nothing."""
    kept: Counter[tuple[str, str]] = Counter()
    circles: Counter[tuple[str, str]] = Counter()
    for draft in drafts:
        if draft.observed is not None:
            kept.update((draft.record.kind, name) for name in draft.differing if _is_kept(draft, name))
            circles.update((draft.record.kind, name) for name in draft.differing if _is_itself(draft, name))
    return [
        f"{kind}.{name}: {count:,} updates will change nothing and be planned again, because inside a list or a "
        "mapping 1, 1.0 and true are one value to the destination; clear the field there, or give the source its type"
        for (kind, name), count in sorted(kept.items())
    ] + [
        f"{kind}.{name}: {count:,} objects are to be their own peer; the destination takes that, reads it as no peer, "
        "and the update will be planned again"
        for (kind, name), count in sorted(circles.items())
    ]


def _is_kept(draft: Draft, name: str) -> bool:
    """Both sides have a list or a mapping there, and Python finds them equal although their texts differ."""
    observed = draft.observed.values.get(name) if draft.observed is not None else None
    return isinstance(observed, (list, dict)) and bool(draft.record.values.get(name) == observed)


def _is_itself(draft: Draft, name: str) -> bool:
    peers = draft.record.peers.get(name) or ()
    return any((peer.kind, peer.text) == (draft.record.kind, draft.record.identity_text) for peer in peers)
