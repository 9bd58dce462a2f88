"""Source plug-ins: one small protocol, found through the entry-point group ``apply_ledger.sources``.

A plug-in is a class (or function) that takes ``settings`` and ``base_directory`` and returns a :class:`Source`. It is
chosen by ``source.name`` of the configuration file. Two things it may tell, both optional:

- ``KNOWN_SETTINGS`` of the class or function: the names of all settings that it reads. Another one is refused then.
- ``location`` of the source: where it reads, for the people who review the plan. It must hold no credential.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Any, Protocol

from ledger.close_match import with_close_match
from ledger.errors import ConfigurationError
from producers.errors import UnknownSourceSettingError

ENTRY_POINT_GROUP = "apply_ledger.sources"


class Source(Protocol):
    """One inventory. Methods may block; they are called in a thread. An instance is used for one plan."""

    def count(self, endpoint: str) -> int | None:
        """How many rows the endpoint has now, or None where the source cannot tell.

        Raises:
            ApplyLedgerError: there is no such endpoint.
        """
        ...

    def rows(self, endpoint: str) -> Iterator[Mapping[str, Any]]:
        """All rows of an endpoint, in a stable order. ``id`` is the row's key in the source, where it has one.

        A failure in the middle raises; it never ends the rows early, because a short answer would look like removals.
        """
        ...


class SourceFactory(Protocol):
    """What an entry point leads to."""

    def __call__(self, *, settings: Mapping[str, Any], base_directory: Path) -> Source:
        """Open a source.

        Args:
            settings: ``source.settings`` of the file with overrides; credentials are ``SecretStr``.
            base_directory: the folder of the configuration file, from which relative paths start.
        """
        ...


def open_source(
    name: str,
    *,
    settings: Mapping[str, Any],
    base_directory: Path,
    overridden: Collection[str] = (),
    warn: Callable[[str], None] | None = None,
) -> Source:
    """The source that a configuration names.

    Args:
        name: of the plug-in.
        settings: of the file, with overrides.
        base_directory: the folder of the configuration file.
        overridden: the names that were given on the command line.
        warn: takes what people should know about settings that are passed on unchecked.

    Raises:
        ConfigurationError: no plug-in of that name is installed, or several are, or its settings are not usable.
        UnknownSourceSettingError: settings that the plug-in does not know, all named.
    """
    factory = _factory(name)
    known: Collection[str] | None = getattr(factory, "KNOWN_SETTINGS", None)
    if known is not None:
        _require_known(name, settings, known, overridden)
    elif overridden and warn is not None:
        given = ", ".join(sorted(overridden))
        warn(f"the source {name} does not say which settings it knows: whether {given} has an effect was not checked")
    return factory(settings=settings, base_directory=base_directory)


def location_of(source: Source) -> str | None:
    """Where a source reads, as it tells itself; None where it does not."""
    location = getattr(source, "location", None)
    return location if isinstance(location, str) else None


def _factory(name: str) -> SourceFactory:
    found: list[EntryPoint] = [point for point in entry_points(group=ENTRY_POINT_GROUP) if point.name == name]
    # one distribution may be seen twice on the path; two different targets are a real conflict
    targets = {point.value for point in found}
    if len(targets) != 1:
        installed = sorted({point.name for point in entry_points(group=ENTRY_POINT_GROUP)})
        raise ConfigurationError(
            checked="source.name",
            expected=f"exactly one installed source plug-in of that name (there are: {', '.join(installed) or 'none'})",
            found=f"{name!r}, provided by {', '.join(sorted(targets)) or 'nothing'}",
            next_action=f"install a package that provides {name!r} in the entry-point group {ENTRY_POINT_GROUP}",
        )
    factory: SourceFactory = found[0].load()
    return factory


def _require_known(
    source: str, settings: Mapping[str, Any], known: Collection[str], overridden: Collection[str]
) -> None:
    unknown = sorted(set(settings) - set(known))
    if not unknown:
        return
    told = [with_close_match(name, known) + (" in --source-setting" if name in overridden else "") for name in unknown]
    raise UnknownSourceSettingError(
        checked=f"the settings of the source {source}",
        expected=f"only settings that it knows: {', '.join(sorted(known)) or 'none'}",
        found=", ".join(told),
        next_action="correct the name, or leave the setting out",
    )
