"""A source for infrahub-sync: the JSON Lines files that our own source reads; runs in infrahub-sync's environment.

Filters, transforms and the reading of paths are infrahub-sync's own functions. Peers are found by an index, not by
looking at every object of the peer's kind, as the adapters that come with it do: so its time is not our adapter's.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from diffsync import Adapter, DiffSyncModel

# infrahub-sync is not installed where types are checked
from infrahub_sync import DiffSyncMixin, DiffSyncModelMixin  # type: ignore[import-not-found]
from infrahub_sync.adapters.utils import get_value  # type: ignore[import-not-found]


class JsonlAdapter(DiffSyncMixin, Adapter):  # type: ignore[misc]  # as above
    """One file for each endpoint in the folder of the setting ``directory``."""

    type = "jsonl"

    def __init__(self, *args: Any, target: str, adapter: Any, config: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.target = target
        self.config = config
        self._directory = Path(adapter.settings["directory"])
        self._by_id: dict[tuple[str, str], str] = {}

    def model_loader(self, model_name: str, model: Any) -> None:
        """Add the objects of a kind, of all entries that the mapping has for it."""
        for entry in self.config.schema_mapping:
            if entry.name != model_name:
                continue
            path = self._directory / f"{entry.mapping}.jsonl"
            rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
            rows = model.filter_records(records=rows, schema_mapping=entry)
            rows = model.transform_records(records=rows, schema_mapping=entry)
            for row in rows:  # first who they are: an object may refer to one of its own kind that comes later
                own = {name: value for name, value in self._fields(row, entry, model) if name in model._identifiers}
                self._by_id[model_name, str(row["id"])] = model.create_unique_id(**own)
            for row in rows:
                self.add(model(local_id=str(row["id"]), **dict(self._fields(row, entry, model))))

    def _fields(self, row: dict[str, Any], entry: Any, model: Any) -> list[tuple[str, Any]]:
        """What the mapping says of a row; a field without a value keeps the model's default."""
        found = []
        for field in entry.fields:
            value = get_value(row, field.mapping)
            if value is None:
                continue
            if field.reference and isinstance(value, list):
                peers = (self._peer(field.reference, peer) for peer in value)
                value = sorted(peer for peer in peers if peer is not None)
            elif field.reference:
                value = self._peer(field.reference, value)
            if value is not None:
                found.append((field.name, value))
        return found

    def _peer(self, kind: str, reference: dict[str, Any]) -> str | None:
        return self._by_id.get((kind, str(reference["id"])))


class JsonlModel(DiffSyncModelMixin, DiffSyncModel):  # type: ignore[misc]  # as above
    """What the generated models of the source inherit; nothing is written to a source."""
