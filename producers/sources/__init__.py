"""Source plug-ins: one small protocol, found through the entry-point group ``apply_ledger.sources``.

A plug-in is a class (or function) that takes ``settings`` and ``base_directory`` and returns a :class:`Source`. It is
chosen by ``source.name`` of the configuration file.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Any, Protocol

from ledger.errors import ConfigurationError

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


def open_source(name: str, *, settings: Mapping[str, Any], base_directory: Path) -> Source:
    """The source that a configuration names.

    Raises:
        ConfigurationError: no plug-in of that name is installed, or several are, or its settings are not usable.
    """
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
    return factory(settings=settings, base_directory=base_directory)
