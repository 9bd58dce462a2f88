"""Compares both sides with diffsync.

One DiffSync model class per kind. The unique id of an object is the canonical text of its identity, so no joined
string can make two objects one (FF09). Each field's value is the canonical JSON text of its normal form, so 1, 1.0
and true differ (FF16); peers are canonical pairs of kind and identity, sorted, so their order is no difference. Only
the fields that an object has are compared: diffsync looks at the fields that both sides have (design 4.5).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from diffsync import Adapter, DiffSyncModel
from diffsync.enum import DiffSyncFlags
from diffsync.helpers import DiffSyncDiffer

from ledger.plan.canonical import canonical_json_text

_Objects = Mapping[str, Mapping[str, str]]
Change = Literal["create", "update", "delete", "none"]


class ComparedObject(DiffSyncModel):
    """One object in the form in which it is compared; subclasses name the kind."""

    _identifiers = ("identity",)
    _attributes = ("fields",)

    identity: str
    fields: dict[str, str]

    def get_unique_id(self) -> str:
        """The canonical text of the identity."""
        return self.identity

    def get_shortname(self) -> str:
        """The same: what diffsync keys its elements by."""
        return self.identity

    def get_identifiers(self) -> dict[str, Any]:
        """The identity under one name; without the detour through a dump of the model."""
        return {"identity": self.identity}

    def get_attrs(self) -> dict[str, Any]:
        """The fields that this object has, so that an absent one is not compared."""
        return self.fields


@dataclass(frozen=True, slots=True)
class Compared:
    """What diffsync says of one object: the change, and for an update the fields that differ."""

    kind: str
    identity: str
    change: Change
    fields: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Side:
    """Objects of one side: kind to identity text to field to canonical text."""

    name: str
    objects: Mapping[str, Mapping[str, Mapping[str, str]]]


def compared_text(value: Any) -> str:
    """The text under which a canonical value is compared."""
    return canonical_json_text(value)


def compare(
    source: Side,
    destination: Side,
    *,
    kinds: Iterable[str],
    flags: DiffSyncFlags,
    progress: Callable[[int, int], None] | None = None,
) -> list[Compared]:
    """Diff both sides.

    Args:
        source: what is wanted.
        destination: what was observed.
        kinds: the mapped kinds; objects of others are no subject of the comparison.
        flags: from the configuration. Objects that a flag hides are not in the result.
        progress: called with objects looked at and their total.

    Returns:
        One entry for each identity that either side has, unchanged ones included (H11), in no particular order.
    """
    models = {kind: _model(kind) for kind in kinds}
    equal = {kind: _equal(source.objects.get(kind, {}), destination.objects.get(kind, {})) for kind in models}
    wanted, observed = _adapter(source, models, equal), _adapter(destination, models, equal)
    differ = DiffSyncDiffer(wanted, observed, flags, callback=_callback(progress))
    diff = differ.calculate_diffs()
    unchanged = [Compared(kind, identity, "none", ()) for kind, found in equal.items() for identity in found]
    return unchanged + [_compared(element) for element in diff.get_children()]


def _callback(progress: Callable[[int, int], None] | None) -> Callable[[str, int, int], None] | None:
    return None if progress is None else lambda _stage, done, total: progress(done, total)


def _compared(element: Any) -> Compared:
    change: Change = element.action or "none"
    differing = element.get_attrs_diffs().get("+", {}) if change == "update" else {}
    return Compared(
        kind=element.type, identity=element.keys["identity"], change=change, fields=tuple(sorted(differing))
    )


def _model(kind: str) -> type[ComparedObject]:
    return type(kind, (ComparedObject,), {"_modelname": kind, "__module__": __name__})


def _equal(wanted: _Objects, observed: _Objects) -> set[str]:
    """Identities under which no field that both sides have differs.

    Whatever the flags say, diffsync finds such a pair unchanged. A world that was applied before consists of them, and
    to make models and elements of each costs more than anything else that is done with it.
    """
    return {
        identity
        for identity, fields in wanted.items()
        if (found := observed.get(identity)) is not None
        and all(found.get(name, text) == text for name, text in fields.items())
    }


def _adapter(
    side: Side, models: Mapping[str, type[ComparedObject]], left_out: Mapping[str, Collection[str]]
) -> Adapter:
    adapter_class = type("ComparedSide", (Adapter,), {"top_level": list(models), **models})
    adapter: Adapter = adapter_class(name=side.name)
    for kind, model in models.items():
        for identity, fields in side.objects.get(kind, {}).items():
            if identity not in left_out[kind]:
                adapter.add(model(identity=identity, fields=dict(fields)))
    return adapter
