"""The service's own settings, from option, environment, ``apply-ledger.toml``, user file, or default.

A sync's configuration file says what to read and where it is to go; these settings say what this installation may
write to (declared destinations), where the ledger is, and how long a writer may take for what.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, Self

from pydantic import (
    AliasChoices,
    BaseModel,
    ConfigDict,
    Field,
    SecretStr,
    ValidationError,
    field_validator,
    model_validator,
)
from pydantic.fields import FieldInfo
from pydantic_settings import (
    BaseSettings,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
    SettingsError,
    TomlConfigSettingsSource,
)

from consumers.settings import WriterTimes
from ledger.api.limits import ApiLimits
from ledger.binding import DestinationBinding
from ledger.cli.kafka_settings import KafkaSettings
from ledger.cli.secret_files import secret_file
from ledger.cli.variables import ANOTHER_NAME, require_known_variables
from ledger.close_match import with_close_match
from ledger.errors import ConfigurationError
from ledger.plan.object_store import ObjectStore

PREFIX = "APPLY_LEDGER_"
FILE_NAME = "apply-ledger.toml"
LogLevel = Literal["error", "warning", "info"]
"""The lowest level of the events that are logged."""


class DestinationSettings(BaseModel):
    """One destination that this installation may write to."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    url: str
    branch: str = Field(default="main", min_length=1)
    token_env: str | None = None
    token_file: Path | None = None
    ca_file: Path | None = None
    verify_tls: bool = True
    aliases: tuple[str, ...] = ()

    @model_validator(mode="after")
    def _one_token_source(self) -> Self:
        if self.token_env and self.token_file:
            raise ValueError("give token_env or token_file, not both")
        return self

    @property
    def binding(self) -> DestinationBinding:
        """The normalised binding of this destination."""
        return DestinationBinding(url=self.url, branch=self.branch).normalised()

    @property
    def other_names(self) -> tuple[DestinationBinding, ...]:
        """The normalised bindings under which a plan may name this destination as well."""
        return tuple(DestinationBinding(url=url, branch=self.branch).normalised() for url in self.aliases)

    def names(self, binding: DestinationBinding) -> bool:
        """Whether ``binding`` is this destination under its url or one of its aliases."""
        return binding.normalised() in (self.binding, *self.other_names)

    def token(self, environ: Mapping[str, str]) -> SecretStr:
        """The API token, from the named file or variable.

        Raises:
            ConfigurationError: neither has one; the message names the place, never a value.
        """
        if self.token_file is not None:
            token = secret_file("token_file", self.token_file)
            if not token:
                raise _no_token(f"{self.token_file} is empty", "write a token of that Infrahub into it")
            return SecretStr(token)
        name = self.token_env or "INFRAHUB_API_TOKEN"
        value = environ.get(name, "").strip()
        if not value:
            raise _no_token(f"the variable {name} is unset or empty", f"export {name} with a token of that Infrahub")
        return SecretStr(value)


def _no_token(found: str, next_action: str) -> ConfigurationError:
    return ConfigurationError(
        checked="the destination's API token",
        expected="a token in a file or an environment variable",
        found=found,
        next_action=next_action,
    )


class Settings(BaseSettings):
    """Everything the command line needs to know about this installation.

    ``APPLY_LEDGER_<KEY>`` sets a key (``APPLY_LEDGER_WRITER__LEASE_TTL`` a nested one); for the two secrets
    ``APPLY_LEDGER_<KEY>_FILE`` names a file that holds the value.
    """

    model_config = SettingsConfigDict(
        extra="forbid", frozen=True, env_prefix=PREFIX, env_nested_delimiter="__", env_ignore_empty=True
    )

    dsn: SecretStr | None = None
    admin_dsn: SecretStr | None = None
    data_dir: Path | None = None
    cache_dir: Path = Field(
        default=Path(".infrahub-sync-cache"), validation_alias=AliasChoices("INFRAHUB_SYNC_CACHE_DIR", "cache_dir")
    )
    artifact_store: str | None = None
    checkpoint_keys: Path = Field(default_factory=lambda: _configuration_folder(os.environ) / "keys")
    checkpoint_dir: Path = Path("checkpoints")
    checkpoint_events: int | None = Field(default=None, ge=1)
    checkpoint_seconds: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    writer: WriterTimes = WriterTimes()
    kafka: KafkaSettings = KafkaSettings()
    api: ApiLimits = ApiLimits()
    require_reason: bool = False
    log_level: LogLevel = "warning"
    destination: tuple[DestinationSettings, ...] = ()

    @field_validator("cache_dir")
    @classmethod
    def _root_of_artifacts(cls, path: Path) -> Path:
        """Variables and ``~`` are expanded, and a path that leads upwards is refused (C9)."""
        from producers.run_directory import CACHE_VARIABLE, cache_root

        return cache_root({CACHE_VARIABLE: str(path)})

    @field_validator("artifact_store")
    @classmethod
    def _store_of_artifacts(cls, address: str | None) -> str | None:
        if address is not None:
            try:
                ObjectStore.at(address)
            except ConfigurationError as exc:
                raise ValueError(f"expected {exc.expected}; {exc.next_action}") from None
        return address

    @property
    def artifact_root(self) -> Path | ObjectStore:
        """Where a writer looks for what a commit names."""
        return self.cache_dir if self.artifact_store is None else ObjectStore.at(self.artifact_store)

    @model_validator(mode="after")
    def _one_declaration_of_each(self) -> Self:
        """Two declarations of one server and branch would be two bindings, and two bindings have two writers (G2)."""
        seen: set[DestinationBinding] = set()
        for destination in self.destination:
            names = {destination.binding, *destination.other_names}
            if twice := names & seen:
                raise ValueError(f"{min(map(str, twice))} is declared twice, as url or alias; declare it once")
            seen |= names
        return self

    def recorded_as(self, binding: DestinationBinding) -> DestinationBinding:
        """The one binding under which the ledger keeps a destination, whichever of its declared names is given.

        A binding that is not declared here is returned unchanged.
        """
        found = (destination.binding for destination in self.destination if destination.names(binding))
        return next(found, binding.normalised())

    def declared(self, binding: DestinationBinding) -> DestinationSettings:
        """The declared destination that ``binding`` names.

        Raises:
            ConfigurationError: it is not declared; nothing is ever written to an undeclared address.
        """
        for destination in self.destination:
            if destination.names(binding):
                return destination
        known = ", ".join(str(destination.binding) for destination in self.destination) or "none"
        raise ConfigurationError(
            checked=f"the destination {binding.normalised()}",
            expected=f"a declared destination ({known})",
            found="not declared",
            next_action=f"add a [[destination]] with this url and branch to {FILE_NAME}, or set "
            "INFRAHUB_ADDRESS and INFRAHUB_DEFAULT_BRANCH",
        )


_TABLES: Mapping[str, type[BaseModel]] = {
    "writer": WriterTimes,
    "kafka": KafkaSettings,
    "api": ApiLimits,
    "destination": DestinationSettings,
}
"""The tables of the file. Destinations are the one that no variable sets."""


def load_settings(*, config: Path | None) -> Settings:
    """Read the file and lay the environment over it.

    Args:
        config: the file named by ``--config``; else ``APPLY_LEDGER_CONFIG``, ``./apply-ledger.toml``, the user's file.

    Raises:
        ConfigurationError: unreadable or malformed file, unknown key or variable, value out of range.
    """
    _require_known_variables()
    path = _find_file(config, os.environ)

    class FromFile(Settings):
        @classmethod
        def settings_customise_sources(
            cls,
            settings_cls: type[BaseSettings],
            init_settings: PydanticBaseSettingsSource,
            env_settings: PydanticBaseSettingsSource,
            dotenv_settings: PydanticBaseSettingsSource,
            file_secret_settings: PydanticBaseSettingsSource,
        ) -> tuple[PydanticBaseSettingsSource, ...]:
            return (
                env_settings,
                _SecretFiles(settings_cls),
                TomlConfigSettingsSource(settings_cls, path),
                _Implied(settings_cls),
            )

    try:
        return FromFile()
    except ValidationError as exc:
        # only location and message: pydantic's own text would show the offending input, a secret perhaps
        faults = "; ".join(_fault(error["type"], error["loc"], error["msg"]) for error in exc.errors())
        raise _malformed(path, faults) from None
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError, SettingsError) as exc:
        raise _malformed(path, f"{type(exc).__name__}: {exc}") from exc


def _fault(fault: str, location: tuple[int | str, ...], message: str) -> str:
    """One fault of the file in a few words; an unknown key with the known one that may have been meant."""
    if fault != "extra_forbidden":
        return f"{'.'.join(map(str, location)) or 'settings'}: {message}"
    *tables, key = (str(part) for part in location)
    known = (_TABLES[tables[0]] if tables and tables[0] in _TABLES else Settings).model_fields
    return f"{'.'.join([*tables, with_close_match(key, known)])}: unknown key"


def _require_known_variables() -> None:
    keys = {name.upper() for name in Settings.model_fields} - set(ANOTHER_NAME)
    require_known_variables(
        os.environ,
        prefix=PREFIX,
        keys={*keys, "CONFIG", *(f"{key.upper()}_FILE" for key in _IN_FILES)},
        nested={
            table.upper(): [name.upper() for name in model.model_fields]
            for table, model in _TABLES.items()
            if table != "destination"
        },
    )


def _malformed(path: Path | None, found: str) -> ConfigurationError:
    return ConfigurationError(
        checked=f"the settings ({path or 'environment'})",
        expected="readable TOML in UTF-8 with known keys and values in range",
        found=found,
        next_action="correct the file or the variable; docs/reference.md lists all keys",
    )


def _find_file(config: Path | None, environ: Mapping[str, str]) -> Path | None:
    """A file that was named must exist; the two usual places may be empty."""
    named = config or (Path(environ[f"{PREFIX}CONFIG"]) if environ.get(f"{PREFIX}CONFIG") else None)
    if named is not None:
        if not named.is_file():
            raise _malformed(named, "no such file")
        return named
    candidates = (Path(FILE_NAME), _configuration_folder(environ) / FILE_NAME)
    return next((path for path in candidates if path.is_file()), None)


def _configuration_folder(environ: Mapping[str, str]) -> Path:
    home = Path(environ.get("XDG_CONFIG_HOME") or Path(environ.get("HOME", "~")).expanduser() / ".config")
    return home / "apply-ledger"


_IN_FILES = ("dsn", "admin_dsn")


class _SecretFiles(PydanticBaseSettingsSource):
    """``APPLY_LEDGER_DSN_FILE`` and ``APPLY_LEDGER_ADMIN_DSN_FILE``: the value is in a file."""

    def get_field_value(self, field: FieldInfo, field_name: str) -> tuple[Any, str, bool]:
        name = f"{PREFIX}{field_name.upper()}_FILE"
        path = os.environ.get(name)
        return (secret_file(name, Path(path)) if path else None), field_name, False

    def __call__(self) -> dict[str, Any]:
        found = {key: self.get_field_value(Settings.model_fields[key], key)[0] for key in _IN_FILES}
        return {key: value for key, value in found.items() if value is not None}


class _Implied(PydanticBaseSettingsSource):
    """``INFRAHUB_ADDRESS`` declares a destination by itself where no file declares any (lowest precedence)."""

    def get_field_value(self, field: FieldInfo, field_name: str) -> tuple[Any, str, bool]:
        return None, field_name, False

    def __call__(self) -> dict[str, Any]:
        address = os.environ.get("INFRAHUB_ADDRESS") or os.environ.get("INFRAHUB_URL")
        if not address:
            return {}
        branch = os.environ.get("INFRAHUB_DEFAULT_BRANCH") or "main"
        return {"destination": [{"url": address, "branch": branch}]}
