"""Who may see which page, and send which form: one row for each address, as for the API (:mod:`ledger.api.rights`)."""

from __future__ import annotations

from ledger.api.rights import Rights
from ledger.api.tokens import Role

OPEN = frozenset({"/login", "/static/{version}/{name:path}"})
"""What is answered to who did not log in."""

_ALL = frozenset(Role)
_AUDITOR = frozenset({Role.AUDITOR, Role.OPERATOR})
_OPERATOR = frozenset({Role.OPERATOR})
_RUN = "/bindings/{binding_id}/runs/{run_id}"

PAGE_RIGHTS: Rights = {
    ("POST", "/logout"): _ALL,
    ("GET", "/"): _ALL,
    ("GET", "/bindings/{binding_id}"): _ALL,
    ("GET", "/runs"): _ALL,
    ("GET", _RUN): _ALL,
    ("GET", f"{_RUN}/operations"): _ALL,
    ("GET", f"{_RUN}/operations/{{ordinal}}"): _ALL,
    ("GET", "/objects"): _ALL,
    ("GET", "/inbox"): _ALL,
    ("GET", "/refused"): _ALL,
    ("GET", "/verification"): _ALL,
    ("GET", "/workers"): _ALL,
    # The record itself, with every reason, name and message in it.
    ("GET", "/bindings/{binding_id}/objects/{object_key}"): _AUDITOR,
    ("GET", "/bindings/{binding_id}/events"): _AUDITOR,
    ("GET", "/bindings/{binding_id}/events/{position}"): _AUDITOR,
    ("GET", "/commit"): _OPERATOR,
    ("POST", "/commit"): _OPERATOR,
    ("GET", f"{_RUN}/resume"): _OPERATOR,
    ("POST", f"{_RUN}/resume"): _OPERATOR,
    ("GET", f"{_RUN}/stop"): _OPERATOR,
    ("POST", f"{_RUN}/stop"): _OPERATOR,
}
SEES_THE_RECORD = _AUDITOR
"""Who may read events, and with them every message of a destination (as the API's addresses of events)."""
