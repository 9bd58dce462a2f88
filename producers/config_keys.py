"""Unknown keys of a configuration file, each with the known key that may have been meant."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel

from ledger.close_match import with_close_match
from producers.config_model import (
    EndTable,
    EntryTable,
    FieldTable,
    FilterTable,
    StoreTable,
    SyncConfiguration,
    TransformTable,
)


@dataclass(frozen=True, slots=True)
class UnknownKey:
    """One key: the dotted path of its table, and its text for people."""

    table: str
    told: str

    def __str__(self) -> str:
        return f"{self.table}.{self.told}" if self.table else self.told


def unknown_keys(document: Mapping[str, Any]) -> list[UnknownKey]:
    """All of a file, at every level but inside settings; the file need not be valid."""
    return list(_in_document(document))


def beside(unknown: Iterable[UnknownKey], table: str) -> str:
    """Words about the unknown keys of one table, to follow what is missing there; empty if there are none."""
    told = [key.told for key in unknown if key.table == table]
    return f"; unknown there: {', '.join(told)}" if told else ""


def _in_document(document: Mapping[str, Any]) -> Iterator[UnknownKey]:
    yield from _in_table("", document, SyncConfiguration)
    for end in ("source", "destination"):
        yield from _in_table(end, document.get(end), EndTable)
    yield from _in_table("store", document.get("store"), StoreTable)
    for index, entry in enumerate(_items(document.get("schema_mapping"))):
        where = f"schema_mapping.{index}"
        yield from _in_table(where, entry, EntryTable)
        if not isinstance(entry, Mapping):
            continue
        for part, model in (("fields", FieldTable), ("filters", FilterTable), ("transforms", TransformTable)):
            for position, item in enumerate(_items(entry.get(part))):
                yield from _in_table(f"{where}.{part}.{position}", item, model)


def _in_table(path: str, table: object, model: type[BaseModel]) -> Iterator[UnknownKey]:
    if isinstance(table, Mapping):
        for key in table:
            if key not in model.model_fields:
                yield UnknownKey(path, with_close_match(str(key), model.model_fields))


def _items(value: object) -> list[Any]:
    return value if isinstance(value, list) else []
