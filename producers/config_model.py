"""The infrahub-sync 2.0 configuration format as pydantic models, one model per table of the file.

Unknown keys are kept out of the models and reported by :mod:`producers.config`. ``static`` is tested for presence,
not for truth, so that ``static: false`` and ``static: 0`` are constants (upstream loses them).
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from diffsync.enum import DiffSyncFlags
from pydantic import BaseModel, ConfigDict, Field, StringConstraints, field_validator

from ledger.commit import SourceName

FilterOperation = Literal[
    "==",
    "!=",
    ">",
    "<",
    ">=",
    "<=",
    "in",
    "not in",
    "contains",
    "not contains",
    "is_empty",
    "is_not_empty",
    "regex",
    "is_ip_within",
]
FieldName = Annotated[str, StringConstraints(min_length=1)]


class Table(BaseModel):
    """Base of all tables of the file: unknown keys are left to the caller, nothing is coerced."""

    model_config = ConfigDict(extra="ignore", frozen=True, strict=True)


class FilterTable(Table):
    """One condition on a raw source record."""

    field: FieldName
    operation: FilterOperation
    value: Any = None

    def __str__(self) -> str:
        return f"{self.field} {self.operation}" + ("" if self.value is None else f" {self.value!r}")


class TransformTable(Table):
    """One Jinja expression whose result becomes a field of the record."""

    field: FieldName
    expression: str


class FieldTable(Table):
    """One field of the destination and where its value comes from."""

    name: FieldName
    mapping: FieldName | None = None
    static: Any = None
    reference: FieldName | None = None

    @property
    def has_static(self) -> bool:
        """Whether ``static`` is written in the file, whatever its value."""
        return "static" in self.model_fields_set


class EntryTable(Table):
    """One mapping entry: a source endpoint onto a destination kind."""

    name: FieldName
    mapping: FieldName | None = None
    identifiers: list[FieldName] | None = None
    filters: list[FilterTable] = Field(default_factory=list)
    transforms: list[TransformTable] = Field(default_factory=list)
    fields: list[FieldTable] = Field(default_factory=list)

    @field_validator("filters", "transforms", "fields", mode="before")
    @classmethod
    def _null_is_empty(cls, value: Any) -> Any:
        return [] if value is None else value


class EndTable(Table):
    """The source or the destination: a plug-in's name and its settings."""

    name: FieldName
    adapter: str | None = None
    settings: dict[str, Any] = Field(default_factory=dict)

    @field_validator("settings", mode="before")
    @classmethod
    def _null_is_empty(cls, value: Any) -> Any:
        return {} if value is None else value


class StoreTable(Table):
    """Where comparison objects are kept while planning; only ``local`` (memory) exists here."""

    type: str
    settings: dict[str, Any] | None = None


class SyncConfiguration(Table):
    """A whole configuration file."""

    name: SourceName
    source: EndTable
    destination: EndTable
    store: StoreTable | None = None
    order: list[FieldName] = Field(default_factory=list)
    schema_mapping: list[EntryTable] = Field(min_length=1)
    adapters_path: list[str] | None = None
    diffsync_flags: list[str] = Field(default_factory=list)
    incremental: dict[str, Any] | None = None

    @field_validator("order", "diffsync_flags", mode="before")
    @classmethod
    def _null_is_empty(cls, value: Any) -> Any:
        return [] if value is None else value

    @property
    def flags(self) -> DiffSyncFlags:
        """The named flags as one value; names are checked when the file is loaded."""
        combined = DiffSyncFlags.NONE
        for name in self.diffsync_flags:
            combined |= DiffSyncFlags[name]
        return combined

    @property
    def kinds(self) -> tuple[str, ...]:
        """The mapped kinds, in the order in which the file names them first."""
        return tuple(dict.fromkeys(entry.name for entry in self.schema_mapping))
