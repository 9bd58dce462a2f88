"""Who may ask for what: one row for each address. An address without a row is refused to everybody."""

from __future__ import annotations

from collections.abc import Mapping

from ledger.api.errors import ForbiddenError
from ledger.api.tokens import Caller, Role

BASE = "/api/v1"
NOBODY_ASKED = frozenset({"/healthz", "/readyz"})
"""What is answered without a token: whether the process lives, and whether it can answer."""

_ALL = frozenset(Role)
_AUDITOR = frozenset({Role.AUDITOR, Role.OPERATOR})
_OPERATOR = frozenset({Role.OPERATOR})

Address = tuple[str, str]
"""Method and path, as the routes have it."""

Rights = Mapping[Address, frozenset[Role]]

RIGHTS: Rights = {
    ("GET", "/metrics"): _ALL,
    ("GET", f"{BASE}/openapi.json"): _ALL,
    ("GET", f"{BASE}/bindings"): _ALL,
    ("GET", f"{BASE}/bindings/{{binding_id}}"): _ALL,
    ("GET", f"{BASE}/runs"): _ALL,
    ("GET", f"{BASE}/bindings/{{binding_id}}/runs"): _ALL,
    ("GET", f"{BASE}/bindings/{{binding_id}}/runs/{{run_id}}"): _ALL,
    ("GET", f"{BASE}/bindings/{{binding_id}}/runs/{{run_id}}/summary"): _ALL,
    ("GET", f"{BASE}/bindings/{{binding_id}}/runs/{{run_id}}/operations"): _ALL,
    ("GET", f"{BASE}/bindings/{{binding_id}}/runs/{{run_id}}/operations/{{ordinal}}"): _ALL,
    ("GET", f"{BASE}/bindings/{{binding_id}}/inbox"): _ALL,
    ("GET", f"{BASE}/workers"): _ALL,
    ("GET", f"{BASE}/objects"): _ALL,
    # The record itself, with every reason and name in it.
    ("GET", f"{BASE}/bindings/{{binding_id}}/events"): _AUDITOR,
    ("GET", f"{BASE}/bindings/{{binding_id}}/events/stream"): _AUDITOR,
    ("GET", f"{BASE}/bindings/{{binding_id}}/events/{{position}}"): _AUDITOR,
    ("GET", f"{BASE}/bindings/{{binding_id}}/events/{{position}}/body"): _AUDITOR,
    ("GET", f"{BASE}/bindings/{{binding_id}}/runs/{{run_id}}/events"): _AUDITOR,
    ("GET", f"{BASE}/bindings/{{binding_id}}/runs/{{run_id}}/events/stream"): _AUDITOR,
    ("GET", f"{BASE}/refused-messages"): _AUDITOR,
    ("GET", f"{BASE}/bindings/{{binding_id}}/objects/{{object_key}}/history"): _AUDITOR,
    ("GET", f"{BASE}/bindings/{{binding_id}}/objects/{{object_key}}/blame"): _AUDITOR,
    # What proves it, and what is made of all of it.
    ("GET", f"{BASE}/checkpoint-keys"): _AUDITOR,
    ("GET", f"{BASE}/bindings/{{binding_id}}/checkpoints"): _AUDITOR,
    ("GET", f"{BASE}/bindings/{{binding_id}}/checkpoints/{{checkpoint}}"): _AUDITOR,
    ("POST", f"{BASE}/bindings/{{binding_id}}/verify"): _AUDITOR,
    ("GET", f"{BASE}/bindings/{{binding_id}}/state"): _AUDITOR,
    ("GET", f"{BASE}/bindings/{{binding_id}}/state/diff"): _AUDITOR,
    ("GET", f"{BASE}/bindings/{{binding_id}}/export"): _AUDITOR,
    ("GET", f"{BASE}/bindings/{{binding_id}}/runs/{{run_id}}/proofs/{{operation_id}}"): _AUDITOR,
    ("POST", f"{BASE}/commits"): _OPERATOR,
    ("POST", f"{BASE}/bindings/{{binding_id}}/runs/{{run_id}}/resume"): _OPERATOR,
    ("POST", f"{BASE}/bindings/{{binding_id}}/runs/{{run_id}}/stop"): _OPERATOR,
}


def require_right(caller: Caller, address: Address, rights: Rights = RIGHTS) -> None:
    """Refuse what this caller's role may not ask for, by a table of addresses.

    Raises:
        ForbiddenError: it may not, or nobody may.
    """
    roles = rights.get(address, frozenset())
    if caller.role not in roles:
        wanted = " or ".join(role for role in Role if role in roles) or "no role: nobody has this right"
        raise ForbiddenError(
            checked=f"the role of {caller.name}",
            expected=wanted,
            found=caller.role.value,
            next_action="ask with a token of such a role: `apply-ledger token create NAME --role ROLE`",
        )
