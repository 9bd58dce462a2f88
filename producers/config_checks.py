"""Checks of a configuration beyond the shape of its tables."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from diffsync.enum import DiffSyncFlags

from ledger.errors import ApplyLedgerError, ConfigurationError, Finding
from producers.binding import TOKEN_VARIABLE
from producers.config_keys import UnknownKey, beside, unknown_keys
from producers.config_model import EntryTable, SyncConfiguration
from producers.errors import UnsupportedConfigurationKeyError
from producers.filters import compile_filter
from producers.settings import secret_settings
from producers.transforms import compile_transform

DESTINATION = "infrahub"
LOCAL_STORE = "local"
INEFFECTIVE_DESTINATION_SETTINGS = {
    "source": "objects are not stamped with a source: the server does not enforce it",
    "owner": "objects are not stamped with an owner: the server does not enforce it",
    "verify_ssl": "transport security is set through INFRAHUB_TLS_INSECURE and INFRAHUB_TLS_CA_FILE",
}
KNOWN_DESTINATION_SETTINGS = frozenset({"url", "token", "branch", *INEFFECTIVE_DESTINATION_SETTINGS})
INEFFECTIVE_FLAGS = {
    "CONTINUE_ON_FAILURE": "an apply always stops at the first operation that fails",
    "LOG_UNCHANGED_RECORDS": "unchanged objects are always recorded in the plan's coverage",
}


def configuration_faults(document: Mapping[str, Any], config: SyncConfiguration) -> list[Finding]:
    """Everything for which the file is refused, in the order of the file."""
    unknown = unknown_keys(document)
    errors = [*_unsupported(config), *_flag_faults(config), *_order_faults(config)]
    for index, entry in enumerate(config.schema_mapping):
        errors += _entry_faults(index, entry, unknown)
    return [finding for error in errors for finding in error.findings]


def _unsupported(config: SyncConfiguration) -> Iterator[ApplyLedgerError]:
    if config.incremental is not None:
        yield _unsupported_key("incremental", "both sides are always read completely")
    if config.adapters_path:
        yield _unsupported_key("adapters_path", "source plug-ins are found through Python entry points")
    if config.store is not None and config.store.type != LOCAL_STORE:
        yield _unsupported_key("store.type", f"only {LOCAL_STORE!r} exists, found {config.store.type!r}")
    for name, end in (("source", config.source), ("destination", config.destination)):
        if end.adapter is not None and end.adapter != end.name:
            yield _unsupported_key(f"{name}.adapter", "the plug-in is chosen by name")
    if config.destination.name != DESTINATION:
        yield _unsupported_key("destination.name", f"only {DESTINATION!r} can be planned for")


def _unsupported_key(key: str, why: str) -> UnsupportedConfigurationKeyError:
    return UnsupportedConfigurationKeyError(
        checked=f"configuration key {key}",
        expected="a key that is implemented here",
        found=f"one that is not: {why}",
        next_action="take the key out of the file",
    )


def _flag_faults(config: SyncConfiguration) -> Iterator[ApplyLedgerError]:
    for name in config.diffsync_flags:
        if name not in DiffSyncFlags.__members__:
            yield _fault("diffsync_flags", f"one of {', '.join(DiffSyncFlags.__members__)}", repr(name))


def _order_faults(config: SyncConfiguration) -> Iterator[ApplyLedgerError]:
    if not config.order:
        return
    repeated = sorted({kind for kind in config.order if config.order.count(kind) > 1})
    if repeated:
        yield _fault("order", "each kind once", f"{', '.join(repeated)} several times")
    missing = [kind for kind in config.kinds if kind not in config.order]
    if missing:
        # upstream leaves such kinds out without a word
        yield _fault("order", "every mapped kind, because order says when each is written", f"no {', '.join(missing)}")


def _entry_faults(index: int, entry: EntryTable, unknown: list[UnknownKey]) -> Iterator[ApplyLedgerError]:
    table = f"schema_mapping.{index}"
    where = f"{table} ({entry.name})"
    if entry.mapping is None:
        yield _fault(
            f"{where}.mapping",
            "a source endpoint: without one every object would be a delete",
            f"none{beside(unknown, table)}",
        )
    if not entry.fields:
        yield _fault(f"{where}.fields", "at least one field", f"none{beside(unknown, table)}")
    names = [field.name for field in entry.fields]
    for name in sorted({name for name in names if names.count(name) > 1}):
        yield _fault(f"{where}.fields", "each field once", f"{name!r} several times")
    for position, field in enumerate(entry.fields):
        if field.mapping is None and not field.has_static:
            misspelt = beside(unknown, f"{table}.fields.{position}")
            yield _fault(f"{where}.fields.{field.name}", "mapping or static", f"neither{misspelt}")
    for condition in entry.filters:
        try:
            compile_filter(condition)
        except ConfigurationError as exc:
            yield exc
    for transform in entry.transforms:
        try:
            compile_transform(transform)
        except ConfigurationError as exc:
            yield exc


def _fault(key: str, expected: str, found: str) -> ConfigurationError:
    return ConfigurationError(
        checked=f"configuration key {key}", expected=expected, found=found, next_action="correct this key"
    )


def configuration_warnings(document: Mapping[str, Any], config: SyncConfiguration) -> list[str]:
    """What people should know about a file that is accepted; never a value of a credential."""
    return [
        *(f"unknown key {key}: ignored" for key in unknown_keys(document)),
        *_credential_warnings(config),
        *_ineffective(config),
        *_mapping_warnings(config),
    ]


def _credential_warnings(config: SyncConfiguration) -> Iterator[str]:
    for name in sorted(secret_settings(config.destination.settings)):
        yield (
            f"destination.settings.{name} holds a credential: it is used for planning alone and never stored or shown; "
            f"set {TOKEN_VARIABLE}, which apply needs as well"
        )
    for name in sorted(secret_settings(config.source.settings)):
        yield (
            f"source.settings.{name} holds a credential: it is accepted and never stored or shown; "
            "use a ${NAME} reference to the environment instead"
        )


def _ineffective(config: SyncConfiguration) -> Iterator[str]:
    for name, why in INEFFECTIVE_DESTINATION_SETTINGS.items():
        if name in config.destination.settings:
            yield f"destination.settings.{name} has no effect: {why}"
    for name in sorted(set(config.destination.settings) - KNOWN_DESTINATION_SETTINGS):
        if name not in secret_settings(config.destination.settings):
            yield f"unknown key destination.settings.{name}: ignored"
    for name, why in INEFFECTIVE_FLAGS.items():
        if name in config.diffsync_flags:
            yield f"diffsync_flags {name} has no effect: {why}"


def _mapping_warnings(config: SyncConfiguration) -> Iterator[str]:
    for kind in config.order:
        if kind not in config.kinds:
            yield f"order names {kind}, which is not mapped"
    first: dict[str, list[str]] = {}
    for index, entry in enumerate(config.schema_mapping):
        if entry.identifiers and first.setdefault(entry.name, entry.identifiers) != entry.identifiers:
            yield (
                f"schema_mapping.{index} ({entry.name}).identifiers differ from those of the kind's first entry, "
                f"which are used: {', '.join(first[entry.name])}"
            )
