"""An address of every page over the shown ledger; what the tests of pages visit, and what is drawn to be looked at."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tests.support.shown_ledger import ENDLESS, HOSTILE_RUN, OBJECT_PAGES, REFUSED_RUN, REVERSED, SCRIPT, SITE_PAGE

Example = tuple[str, str]
"""A short name, and an address below the server's own."""

_RUN = f"/bindings/1/runs/{HOSTILE_RUN.run_id}"
_LAST = len(HOSTILE_RUN.operations) - 1

EXAMPLES: Mapping[str, Sequence[Example]] = {
    "/": [("overview", "/")],
    "/bindings/{binding_id}": [("binding", "/bindings/1"), ("binding-hostile", "/bindings/2")],
    "/runs": [("runs", "/runs"), ("runs-none", "/runs?state=refused&source=nobody")],
    "/bindings/{binding_id}/runs/{run_id}": [
        ("run-failed", _RUN),
        ("run-refused", f"/bindings/1/runs/{REFUSED_RUN.run_id}"),
        ("run-applied", "/bindings/1/runs/run-create"),
        ("run-waits", "/bindings/1/runs/run-waits"),
    ],
    "/bindings/{binding_id}/runs/{run_id}/operations": [("operations", f"{_RUN}/operations")],
    "/bindings/{binding_id}/runs/{run_id}/operations/{ordinal}": [
        ("operation", f"{_RUN}/operations/0"),
        ("operation-unknown", f"{_RUN}/operations/{_LAST}"),
    ],
    "/bindings/{binding_id}/runs/{run_id}/resume": [("resume", f"{_RUN}/resume")],
    "/bindings/{binding_id}/runs/{run_id}/stop": [("stop", "/bindings/1/runs/run-waits/stop")],
    "/commit": [("commit", "/commit")],
    "/objects": [
        ("objects", "/objects"),
        ("objects-found", "/objects?kind=BuiltinTag&identity=name%3Dred"),
        ("objects-none", "/objects?kind=BuiltinTag&identity=name%3Dpink"),
    ],
    "/bindings/{binding_id}/objects/{object_key}": [
        ("object", f"/bindings/1/objects/{OBJECT_PAGES['red']}"),
        ("object-deleted", f"/bindings/1/objects/{OBJECT_PAGES['green']}"),
        ("object-script", f"/bindings/1/objects/{OBJECT_PAGES[SCRIPT]}"),
        ("object-reversed", f"/bindings/1/objects/{OBJECT_PAGES[REVERSED]}"),
        ("object-endless", f"/bindings/1/objects/{OBJECT_PAGES[ENDLESS]}"),
        ("object-reference", f"/bindings/1/objects/{SITE_PAGE}"),
    ],
    "/inbox": [("inbox", "/inbox"), ("inbox-of-one", "/inbox?binding=1")],
    "/refused": [("refused", "/refused")],
    "/verification": [("verification", "/verification")],
    "/workers": [("workers", "/workers")],
    "/bindings/{binding_id}/events": [("events", "/bindings/1/events")],
    "/bindings/{binding_id}/events/{position}": [
        ("event", "/bindings/1/events/1"),
        ("event-hostile", "/bindings/1/events/24"),
    ],
}
"""By the address as the table of rights has it."""

FOR_NOBODY: Sequence[Example] = [("login", "/login")]
NO_PAGES = {"/static/{version}/{name:path}", "/login"}
"""Addresses that are no pages of their own, or that nobody has to log in for."""

ALL: Sequence[Example] = [example for examples in EXAMPLES.values() for example in examples]
EMPTY: Sequence[Example] = [
    (f"empty-{name}", path)
    for name, path in ALL
    if path in ("/", "/runs", "/objects", "/inbox", "/refused", "/verification", "/workers", "/commit")
]
"""Over a ledger to which nothing was ever committed."""
