"""A configuration's mapping, compiled against the destination's schema: what is read, compared and written.

Faults of the mapping itself (an unknown kind or field, a read-only field, a Password kind, a reference that the
relationship cannot hold) are found here, once, before any row is read, and all of them are named.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from ledger.close_match import with_close_match
from ledger.destination import FieldSelection
from ledger.errors import ApplyLedgerError
from ledger.plan.errors import SchemaMismatchError, SecretValueRefusedError
from ledger.schema import Attribute, DestinationSchema, KeyPath, Kind, Relationship
from producers.config_model import EntryTable, FieldTable, SyncConfiguration
from producers.errors import MappingRefusedError
from producers.filters import CompiledFilter, compile_filter
from producers.transforms import CompiledTransform, compile_transform


@dataclass(frozen=True, slots=True)
class FieldPlan:
    """One field of one entry: where its value comes from, and what it is at the destination."""

    name: str
    path: tuple[str, ...]
    static: Any
    is_static: bool
    reference: str | None
    attribute: Attribute | None
    relationship: Relationship | None

    @property
    def source(self) -> str:
        """The dotted path in the row, as the file writes it; empty for a constant."""
        return ".".join(self.path)

    @property
    def is_constant_peer(self) -> bool:
        """``static`` with ``reference``: the value is the key of one peer, which may exist at the destination only."""
        return self.is_static and self.reference is not None


@dataclass(frozen=True, slots=True)
class EntryPlan:
    """One mapping entry; ``index`` is its place in the file."""

    index: int
    kind: str
    endpoint: str
    filters: tuple[CompiledFilter, ...]
    transforms: tuple[CompiledTransform, ...]
    fields: tuple[FieldPlan, ...]

    @property
    def label(self) -> str:
        """How reviews and refusals name the entry."""
        return f"{self.index}:{self.endpoint}"


@dataclass(frozen=True, slots=True)
class KindPlan:
    """All entries of one kind, its identity, and the candidates of its references.

    ``candidates`` holds, for each reference field, the kinds that any entry of this kind declares for it (A49).
    """

    kind: Kind
    identifiers: tuple[str, ...]
    entries: tuple[EntryPlan, ...]
    candidates: Mapping[str, tuple[str, ...]]

    @property
    def fields(self) -> tuple[str, ...]:
        """Every field that an entry of this kind maps, sorted."""
        return tuple(sorted({field.name for entry in self.entries for field in entry.fields}))


@dataclass(frozen=True, slots=True)
class MappingPlan:
    """The whole mapping: kinds in the order in which the file names them first."""

    schema: DestinationSchema
    kinds: Mapping[str, KindPlan]
    order: tuple[str, ...]

    @property
    def entries(self) -> tuple[EntryPlan, ...]:
        """All entries in the order of the file."""
        return tuple(sorted((e for plan in self.kinds.values() for e in plan.entries), key=lambda e: e.index))

    def _rules_of(self, generic: str) -> tuple[tuple[KeyPath, ...], ...]:
        known = self.schema.kinds.get(generic)
        return () if known is None else known.uniqueness_constraints

    def identity_fields(self, kind: str) -> tuple[str, ...]:
        """What identifies an object of a kind: the mapping's identifiers, else the schema's own key.

        Empty for a kind that is not mapped and has neither human-friendly id nor constraint.
        """
        if kind in self.kinds:
            return self.kinds[kind].identifiers
        known = self.schema.kinds.get(kind)
        if known is None:
            return ()
        key = known.human_friendly_id or next(iter(known.uniqueness_constraints), ())
        return tuple(dict.fromkeys(path.field for path in key))

    def sharing_kinds(self) -> tuple[str, ...]:
        """Kinds that are not mapped and that a uniqueness rule of a generic compares with mapped ones.

        A create of a mapped kind can collide with their objects, so they are read as well (P61).
        """
        mapped = [self.schema.kinds[kind] for kind in self.kinds]
        generics = {name for kind in mapped for name in kind.inherit_from if name in self.schema.kinds}
        ruled = [name for name in sorted(generics) if self.schema.kinds[name].uniqueness_constraints]
        found = {kind for name in ruled for kind in self.schema.concrete_kinds(name)}
        return tuple(sorted(found - set(self.kinds)))

    def selection(self, kind: str) -> FieldSelection:
        """What to read of a kind at the destination: mapped fields, identity, and all parts of its keys.

        Key parts that are not mapped are read because the collision check compares them (P61).
        """
        plan, known = self.kinds.get(kind), self.schema.kinds[kind]
        names = set(self.identity_fields(kind))
        if kind in self.sharing_kinds():
            rules = [rule for name in known.inherit_from for rule in self._rules_of(name)]
            names |= {path.field for rule in rules for path in rule}
        if plan is not None:
            keys = (known.human_friendly_id, *known.uniqueness_constraints)
            names |= {*plan.fields, *(path.field for key in keys for path in key)}
        attributes = [known.attributes[name] for name in sorted(names) if name in known.attributes]
        relationships = [known.relationships[name] for name in sorted(names) if name in known.relationships]
        return FieldSelection(
            attributes=tuple(item.name for item in attributes if not item.is_secret),
            one=tuple(item.name for item in relationships if item.cardinality == "one"),
            many=tuple(item.name for item in relationships if item.cardinality == "many"),
        )


def compile_mapping(config: SyncConfiguration, schema: DestinationSchema) -> MappingPlan:
    """Compile all entries.

    Raises:
        MappingRefusedError: every fault of the mapping, named by entry and field.
    """
    compiler = _Compiler(config, schema)
    kinds = {kind: plan for kind in config.kinds if (plan := compiler.kind_plan(kind)) is not None}
    if compiler.faults:
        raise MappingRefusedError(
            checked=f"the mapping of {config.name} against the destination's schema",
            findings=[finding for fault in compiler.faults for finding in fault.findings],
            next_action="correct the mapping or load the schema that it was written for; nothing was read",
        )
    return MappingPlan(schema=schema, kinds=kinds, order=tuple(config.order))


class _Compiler:
    """Collects faults while it compiles, so that one attempt names them all."""

    def __init__(self, config: SyncConfiguration, schema: DestinationSchema) -> None:
        self.faults: list[ApplyLedgerError] = []
        self._config = config
        self._schema = schema

    def kind_plan(self, name: str) -> KindPlan | None:
        """The plan of one kind, or None where the kind itself is a fault."""
        tables = [(index, entry) for index, entry in enumerate(self._config.schema_mapping) if entry.name == name]
        kind = self._schema.node(name)
        if kind is None:
            generic = name in self._schema.kinds
            nodes = [known for known in self._schema.kinds if self._schema.node(known) is not None]
            found = f"{name}: a generic" if generic else f"{with_close_match(name, nodes)}: no such kind"
            self._fault(f"schema_mapping.{tables[0][0]}.name", "a kind that can be written", found)
            return None
        entries = tuple(self._entry(index, table, kind) for index, table in tables)
        identifiers = self._identifiers(kind, [table for _, table in tables])
        for index, table in tables:
            # the file's fields, not the compiled ones: a field with a fault of its own is not missing as well
            missing = [field for field in identifiers if field not in {item.name for item in table.fields}]
            if missing:
                self._fault(
                    f"schema_mapping.{index} ({name}).fields",
                    f"a field for each identifier of the kind: {', '.join(identifiers)}",
                    f"none for {', '.join(missing)}",
                )
        return KindPlan(kind=kind, identifiers=identifiers, entries=entries, candidates=self._candidates(entries))

    def _identifiers(self, kind: Kind, tables: Iterable[EntryTable]) -> tuple[str, ...]:
        """Those of the first entry that has any; failing that, the unique attributes that are mapped."""
        tables = list(tables)
        declared = next((table.identifiers for table in tables if table.identifiers), None)
        if declared:
            return tuple(dict.fromkeys(declared))
        mapped = {field.name for table in tables for field in table.fields}
        unique = tuple(name for name in sorted(mapped) if name in kind.attributes and kind.attributes[name].unique)
        if not unique:
            self._fault(f"the identifiers of {kind.kind}", "identifiers, or a mapped attribute that is unique", "none")
        return unique

    def _candidates(self, entries: Iterable[EntryPlan]) -> dict[str, tuple[str, ...]]:
        found: dict[str, set[str]] = {}
        for entry in entries:
            for field in entry.fields:
                if field.reference is not None:
                    found.setdefault(field.name, set()).update(self._concrete(field.reference))
        return {name: tuple(sorted(kinds)) for name, kinds in found.items()}

    def _concrete(self, reference: str) -> tuple[str, ...]:
        """The kinds that a reference may mean; a generic stands for all kinds that inherit from it."""
        return self._schema.concrete_kinds(reference) or (reference,)

    def _entry(self, index: int, table: EntryTable, kind: Kind) -> EntryPlan:
        fields = (self._field(index, item, kind) for item in table.fields)
        return EntryPlan(
            index=index,
            kind=kind.kind,
            endpoint=table.mapping or "",
            filters=tuple(compile_filter(item) for item in table.filters),
            transforms=tuple(compile_transform(item) for item in table.transforms),
            fields=tuple(field for field in fields if field is not None),
        )

    def _field(self, index: int, table: FieldTable, kind: Kind) -> FieldPlan | None:
        attribute, relationship = kind.attributes.get(table.name), kind.relationships.get(table.name)
        where = f"schema_mapping.{index} ({kind.kind}).{table.name}"
        if attribute is None and relationship is None:
            told = with_close_match(table.name, [*kind.attributes, *kind.relationships])
            self._fault(where, "a field that the destination's schema has", f"an unknown field: {told}")
            return None
        if not self._writable(where, attribute, relationship):
            return None
        if attribute is not None and table.reference is not None:
            self._fault(where, "no reference, because the field is an attribute", f"reference {table.reference}")
        if relationship is not None and not self._reference_fits(where, table, relationship):
            return None
        return FieldPlan(
            name=table.name,
            path=tuple(table.mapping.split(".")) if table.mapping is not None else (),
            static=table.static,
            is_static=table.has_static,
            reference=table.reference,
            attribute=attribute,
            relationship=relationship,
        )

    def _writable(self, where: str, attribute: Attribute | None, relationship: Relationship | None) -> bool:
        if (attribute is not None and attribute.read_only) or (relationship is not None and relationship.read_only):
            self._fault(where, "a field that can be written", "a read-only field")
            return False
        if attribute is not None and attribute.is_secret:
            self.faults.append(
                SecretValueRefusedError(
                    checked=where,
                    expected="no value of a Password kind: plans are stored and shown",
                    found=f"a field that goes to an attribute of kind {attribute.kind}",
                    next_action="take the field out of the mapping; set passwords at the destination",
                )
            )
            return False
        return True

    def _reference_fits(self, where: str, table: FieldTable, relationship: Relationship) -> bool:
        if table.reference is None:
            self._fault(where, f"a reference to {relationship.peer}, because the field is a relationship", "none")
            return False
        # a stored schema document may leave out the generics of the core; any kind may stand there then
        if relationship.peer not in self._schema.kinds:
            return True
        allowed = self._schema.concrete_kinds(relationship.peer)
        if set(self._concrete(table.reference)) & set(allowed):
            return True
        self._fault(where, f"a reference to {relationship.peer} ({', '.join(allowed)})", f"to {table.reference}")
        return False

    def _fault(self, where: str, expected: str, found: str) -> None:
        self.faults.append(
            SchemaMismatchError(
                checked=where, expected=expected, found=found, next_action="correct this key of the configuration"
            )
        )
