"""A source of Python objects: what a plug-in may hand over, which no JSON file can hold."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest


@dataclass
class MemorySource:
    """Implements ``Source`` over rows in memory; an endpoint in ``failures`` raises after that many rows."""

    endpoints: Mapping[str, Sequence[Mapping[str, Any]]]
    failures: Mapping[str, tuple[int, Exception]] = field(default_factory=dict)

    def count(self, endpoint: str) -> int | None:
        return None

    def rows(self, endpoint: str) -> Iterator[Mapping[str, Any]]:
        after, failure = self.failures.get(endpoint, (0, None))
        for number, row in enumerate(self.endpoints[endpoint]):
            if failure is not None and number == after:
                raise failure
            yield row

    def instead_of_files(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Let every plan of this test read this source, whatever its configuration names."""
        monkeypatch.setattr("producers.planning.open_source", lambda *_args, **_settings: self)
