"""A review for programs: the same facts as the printed one, as one JSON document (H22).

Values of secret fields are replaced. Everything else is shown in full: nothing is cut, whatever its size.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from ledger.plan.coverage import COVERAGE_ACTIONS
from ledger.plan.describe import SecretFields
from ledger.plan.model import APPLICABLE_FORMATS
from ledger.plan.review_changes import NOT_RECORDED, also_sent, field_changes, masked, masked_identity
from ledger.plan.review_frame import SIGNS
from ledger.plan.review_ledger import NO_LEDGER, LedgerWords
from ledger.plan.review_origin import PlanOrigin
from ledger.plan.review_writers import last_writer
from ledger.plan.saved_plan import Resource, SavedPlan
from ledger.schema import DestinationSchema

DOCUMENT = "apply-ledger.plan-review"
DOCUMENT_VERSION = 1


def review_document(
    saved: SavedPlan,
    *,
    kind: str | None = None,
    ledger: LedgerWords = NO_LEDGER,
    origin: PlanOrigin | None = None,
    schema: DestinationSchema | None = None,
) -> dict[str, Any]:
    """A plan as a document of plain JSON values; arguments as for :func:`ledger.plan.review_render.render_review`.

    ``counts`` are of the whole plan; ``groups`` and ``resources`` are of ``kind`` where one is given. A change without
    ``observed`` is one of which the plan records no observed value.
    """
    secrets = SecretFields(schema)
    resources = saved.resources(kind)
    summary = saved.summary
    return {
        "document": DOCUMENT,
        "version": DOCUMENT_VERSION,
        "plan": _header(saved),
        "origin": None if origin is None else origin.record(),
        "counts": summary.counts,
        "coverage_recorded": summary.coverage_recorded,
        "delete_operations_computed": summary.delete_operations_computed,
        "deletes": "recorded, not executed",
        "problems": [finding.model_dump() for finding in saved.problems],
        "stale": [finding.model_dump() for finding in ledger.stale],
        "overlaps": [item.model_dump() for item in ledger.overlaps if kind is None or item.kind == kind],
        "kind": kind,
        "groups": _groups(resources),
        "resources": [_resource(resource, secrets, ledger) for resource in resources],
    }


def _header(saved: SavedPlan) -> dict[str, Any]:
    manifest = saved.manifest
    binding = manifest.destination_binding
    return {
        "source": manifest.source,
        "destination_binding": None if binding is None else binding.model_dump(),
        "run_id": manifest.run_id,
        "created_at": manifest.created_at,
        "config_version": manifest.config_version,
        "plan_checksum": manifest.plan_checksum,
        "format_version": manifest.format_version,
        "applicable": manifest.format_version in APPLICABLE_FORMATS and not saved.problems,
        "operations_count": manifest.operations_count,
        "source_snapshot": [record.model_dump() for record in manifest.source_snapshot],
    }


def _groups(resources: Sequence[Resource]) -> list[dict[str, Any]]:
    found = Counter((resource.tier, resource.kind, resource.action) for resource in resources)
    return [
        {"tier": tier, "kind": kind, "counts": {action: found[tier, kind, action] for action in COVERAGE_ACTIONS}}
        for tier, kind in sorted({(tier, kind) for tier, kind, _ in found})
    ]


def _resource(resource: Resource, secrets: SecretFields, ledger: LedgerWords) -> dict[str, Any]:
    line, operation = resource.line, resource.operation
    record: dict[str, Any] = {
        "action": resource.action,
        "sign": SIGNS[resource.action],
        "kind": resource.kind,
        "tier": resource.tier,
        "identity": masked_identity(resource.kind, resource.identity, secrets),
        "operation_id": None if operation is None else operation.operation_id,
        "destination_id": resource.destination_id,
        "executed": resource.action in ("create", "update"),
        "changes": _changes(resource, secrets),
        "also_sent": {name: masked(resource.kind, name, value, secrets) for name, value in also_sent(resource).items()},
        "reason": None if line is None else line.reason,
        "entry": None if line is None or line.entry is None else line.entry.model_dump(),
        "filters": [] if line is None else line.filters,
        "providers": None if line is None else line.providers.model_dump(),
    }
    if resource.action in ("create", "update", "remove") and ledger.last_writers is not None:
        found = last_writer(resource, ledger)
        record["last_writer"] = None if found is None else found.source
        record["last_write"] = None if found is None else {"run_id": found.run_id, "position": found.position}
    return record


def _changes(resource: Resource, secrets: SecretFields) -> list[dict[str, Any]]:
    changes = []
    for change in field_changes(resource):
        record = {"field": change.field}
        for name, value in (("observed", change.observed), ("desired", change.desired)):
            if value is not NOT_RECORDED:
                record[name] = masked(resource.kind, change.field, value, secrets)
        changes.append(record)
    return changes
