"""Loads an infrahub-sync 2.0 configuration file; refuses unsupported keys and warns about unknown ones.

Three classes of keys. Keys that the format does not know are warned about and ignored, as upstream does silently
(they occur in the wild, such as the misspelt ``dyffsync_flags``). Keys whose meaning we do not implement are refused,
because ignoring them would change what is planned. Settings that have no effect here are warned about.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from ledger.errors import ApplyLedgerError, ConfigurationError, Finding, UsageError
from ledger.plan.config_version import config_version
from producers.binding import resolve_binding
from producers.config_checks import configuration_faults, configuration_warnings
from producers.config_keys import UnknownKey, beside, unknown_keys
from producers.config_model import SyncConfiguration
from producers.errors import ConfigurationRefusedError
from producers.settings import protect_settings, secret_settings
from producers.yaml_document import read_yaml_document

__all__ = ["LoadedConfiguration", "find_configuration", "load_configuration", "resolve_binding"]

OVERRIDES_KEY = "apply_ledger"
"""Our key in the document that ``config_version`` is taken over; the file itself never has it."""


@dataclass(frozen=True, slots=True)
class LoadedConfiguration:
    """A configuration file with its overrides.

    ``document`` is what ``config_version`` was computed from. It may hold a credential of the file and is therefore
    left out of the representation; ``config`` holds credentials only as ``SecretStr``.
    """

    config: SyncConfiguration
    path: Path
    config_version: str
    source_settings: Mapping[str, str] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()
    document: Mapping[str, Any] = field(default_factory=dict, repr=False)

    @property
    def base_directory(self) -> Path:
        """The folder of the file: what relative paths in settings and overrides start from."""
        return self.path.parent


def load_configuration(path: Path, *, source_settings: Mapping[str, str] | None = None) -> LoadedConfiguration:
    """Read, check and version one configuration file.

    Args:
        path: the YAML file.
        source_settings: overrides of ``source.settings`` (``--source-setting name=value``). They are part of
            ``config_version`` and are recorded in ``run.json``, so a credential among them is refused.

    Raises:
        ConfigurationError: no such file, no YAML, a duplicate key, a credential among the overrides.
        ConfigurationRefusedError: every other fault of the file, all listed.
    """
    overrides = dict(source_settings or {})
    _require_no_secret_override(overrides)
    document = read_yaml_document(path)
    versioned = {**document, OVERRIDES_KEY: {"source_settings": overrides}} if overrides else document
    config = _validated(_with_overrides(document, overrides), path)
    faults = configuration_faults(document, config)
    if faults:
        raise ConfigurationRefusedError(
            checked=f"the configuration {path.name}",
            findings=faults,
            next_action="correct the file; nothing was read or planned",
        )
    return LoadedConfiguration(
        config=config,
        path=path.resolve(),
        config_version=config_version(versioned),
        source_settings=overrides,
        warnings=tuple(configuration_warnings(document, config)),
        document=versioned,
    )


def find_configuration(directory: Path, name: str) -> Path:
    """The one ``config.yml`` below a directory whose ``name`` is the one asked for.

    Raises:
        UsageError: none of them has that name, or several have.
    """
    found = [path for path, document in _documents(directory) if document.get("name") == name]
    if len(found) != 1:
        raise UsageError(
            checked=f"the configuration files below {directory}",
            expected=f"exactly one config.yml with name {name!r}",
            found=", ".join(str(path) for path in found) or "none",
            next_action="give the file itself with --config-file",
        )
    return found[0]


def _documents(directory: Path) -> Iterator[tuple[Path, Mapping[str, Any]]]:
    for path in sorted(directory.rglob("config.yml")):
        try:
            yield path, read_yaml_document(path)
        except ApplyLedgerError:
            continue  # another file's fault is no answer to the question which file has this name


def _require_no_secret_override(overrides: Mapping[str, str]) -> None:
    secrets = sorted(secret_settings(overrides))
    if secrets:
        raise ConfigurationError(
            checked="the overrides of source settings",
            expected="no credential, because overrides are recorded in run.json",
            found=f"a value for {', '.join(secrets)}",
            next_action="give credentials through the environment",
        )


def _with_overrides(document: Mapping[str, Any], overrides: Mapping[str, str]) -> dict[str, Any]:
    """The document with overrides in place and credentials wrapped, so that no text made from it can show them."""
    merged = dict(document)
    for end in ("source", "destination"):
        table = merged.get(end)
        if isinstance(table, Mapping):
            settings = table.get("settings") or {}
            if not isinstance(settings, Mapping):
                continue  # the model says what is wrong with it
            extra = overrides if end == "source" else {}
            merged[end] = {**table, "settings": protect_settings({**settings, **extra})}
    return merged


def _validated(document: Mapping[str, Any], path: Path) -> SyncConfiguration:
    try:
        return SyncConfiguration.model_validate(document)
    except ValidationError as exc:
        unknown = unknown_keys(document)
        findings = [_finding(error["loc"], error["msg"], unknown) for error in exc.errors(include_input=False)]
    raise ConfigurationRefusedError(
        checked=f"the configuration {path.name}",
        findings=findings,
        next_action="correct the file; nothing was read or planned",
    )


def _finding(location: Sequence[int | str], message: str, unknown: Sequence[UnknownKey]) -> Finding:
    table = ".".join(map(str, location[:-1]))
    return Finding(
        name=ConfigurationError.__name__,
        checked="configuration key " + ".".join(str(part) for part in location),
        expected="a value of the infrahub-sync 2.0 format",
        found=f"{message}{beside(unknown, table)}",
        next_action="correct this key",
    )
