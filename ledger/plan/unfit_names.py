"""Names in a schema with which Infrahub accepts the schema and then takes no creates, or no updates, of a kind.

Two things at the server go by names. It reads the input of a write with the methods of a mapping, and a field of the
same name is in such a method's place; and it chooses what a mutation does by the first action whose name is found
anywhere in the mutation's, so the name of a kind can make an upsert a create or an update. Its answers are errors of
its own making, after which nobody may say that nothing was written; so such writes are not sent.
"""

from __future__ import annotations

from ledger.schema import Kind

_FIELDS = {"get": ("create", "update"), "items": ("update",), "keys": ("update",)}
"""What fields of these names keep the destination from. Those of the mapping's other methods do no harm there."""


def why_never_taken(kind: Kind, action: str) -> list[str]:
    """What about the names of a kind and its fields keeps the destination from each such write of it; nothing: []."""
    fields = kind.attributes.keys() | kind.relationships.keys()
    reasons = [f"a field named '{name}'" for name, actions in _FIELDS.items() if action in actions and name in fields]
    if action == "update" and "Create" in kind.kind:
        reasons.append("a kind with 'Create' in its name")
    if action == "create" and _is_upsert_an_update(kind):
        reasons.append("a kind with 'Update' in its name")
    return reasons


def _is_upsert_an_update(kind: Kind) -> bool:
    """A create of what is keyed by a constraint alone is sent as one, which is looked for first."""
    return "Update" in kind.kind and "Create" not in kind.kind and not kind.keyed_by_constraint_alone
