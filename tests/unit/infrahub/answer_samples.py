"""Whole answers for every row of the classification, as a real server, a proxy or a broken one words them."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import Any

from consumers.infrahub.exchange import Event, Exchange
from consumers.infrahub.observation import Expectation

UPDATE = Expectation(field="LabSiteUpsert", action="update", node_id="id-1")
CREATE = Expectation(field="LabSiteUpsert", action="create")
OWN_ID = Expectation(field="LabVlanCreate", action="create", node_id="own-1")


@dataclass(frozen=True)
class Sample:
    """One answer and the row that it must reach."""

    row: str
    exchange: Exchange
    expected: Expectation | None = UPDATE


def _json(document: Any, status: int = 200, **headers: str) -> Exchange:
    return Exchange(Event.ANSWERED, status=status, headers=headers, body=json.dumps(document).encode())


def _raw(body: bytes, status: int = 200) -> Exchange:
    return Exchange(Event.ANSWERED, status=status, body=body)


def _error(message: str, code: str | None, status: int | None, **data: Any) -> dict[str, Any]:
    return {
        "message": message,
        "path": ["LabSiteUpsert"],
        "extensions": {"code": code, "http_status": status, "data": data},
    }


def _errors(*errors: Any, data: Any = None) -> Exchange:
    return _json({"data": {"LabSiteUpsert": None} if data is None else data, "errors": list(errors)})


def _result(result: Any) -> Exchange:
    return _json({"data": {"LabSiteUpsert": result}})


_SHED = {"data": None, "errors": [{"message": "Server is shedding load; retry later.", "extensions": {"code": 429}}]}
_PEER = _error("Unable to find the node p / BuiltinTag", "NODE_NOT_FOUND", 404, node_kind="BuiltinTag", identifier="p")
_STALE = _error("Unable to find the node id-1 / LabSite", "NODE_NOT_FOUND", 404, node_kind="LabSite", identifier="id-1")
_KEY_HELD = _error(
    "Node main-1 / LabSite uses this human-friendly ID, but does not exist on this branch. Please rebase this branch",
    "NODE_NOT_FOUND",
    404,
    node_kind="LabSite",
    identifier="main-1",
)
_OTHER_KIND = _error(
    "Node with id id-1 exists, but it is a BuiltinTag, not LabSite",
    "NODE_NOT_FOUND",
    404,
    node_kind="LabSite",
    identifier="id-1",
)
_IN_USE = {
    "message": "own-1 is already in use at id",
    "path": ["LabVlanCreate"],
    "extensions": {
        "code": "ATTRIBUTE_CONSTRAINT_VIOLATION",
        "http_status": 422,
        "data": {"node_kind": "LabVlan", "field_name": "id", "constraint": "own-1 is already in use", "detail": None},
    },
}
_DEFUNCT = _error("Failed to read from defunct connection IPv4Address(...)", "UNDEFINED_ERROR", 500)

SAMPLES: tuple[Sample, ...] = (
    Sample("refused", Exchange(Event.REFUSED)),
    Sample("connect time-out", Exchange(Event.CONNECT_TIMEOUT)),
    Sample("no free connection", Exchange(Event.NO_FREE_CONNECTION)),
    Sample("deadline before sending", Exchange(Event.DEADLINE_UNSENT)),
    Sample("time-out", Exchange(Event.TIMED_OUT)),
    Sample("connection lost", Exchange(Event.CONNECTION_LOST)),
    Sample("broken encoding", Exchange(Event.UNDECODABLE)),
    Sample("too large", Exchange(Event.TOO_LARGE)),
    Sample("echoed credential", Exchange(Event.CREDENTIAL_ECHOED)),
    Sample("unforeseen fault", Exchange(Event.OTHER_FAULT)),
    Sample("shed", _json(_SHED, 429, **{"x-infrahub-admission": "shed", "retry-after": "1"})),
    Sample("rate limit", _raw(b"slow down", 429), CREATE),
    Sample("rate limit", _json(_SHED, 429)),
    Sample("server fault", _raw(b"Internal Server Error", 500)),
    Sample("server fault", _json({"data": None, "errors": [_DEFUNCT]}, 503)),
    Sample("server fault", _json({"data": {"LabSiteUpsert": {"ok": True, "object": {"id": "id-1"}}}}, 500)),
    Sample("redirect", _raw(b"", 302)),
    Sample("unauthorised", _json({"data": None, "errors": None}, 401)),
    Sample("unauthorised", _raw(b"<html>", 401)),
    Sample("forbidden", _json({"errors": [{"message": "no", "extensions": {"code": 403}}]}, 403)),
    Sample("not found", _json({"errors": ["Branch: nope not found."]}, 404)),
    Sample("other refusal", _json({"detail": [{"msg": "bad"}]}, 422)),
    Sample("other refusal", _json({"data": None, "errors": [_STALE]}, 400)),
    Sample("odd status", _json({"data": {"LabSiteUpsert": {"ok": True, "object": {"id": "id-1"}}}}, 201)),
    Sample("odd status", _raw(b"", 999)),
    Sample("no status", Exchange(Event.ANSWERED)),
    Sample("no JSON", _raw(b"<html>Sign in</html>")),
    Sample("no JSON", _raw(b"")),
    Sample("no JSON", _raw(b"\xff\xfe\xfa")),
    Sample("no JSON", _raw(b"[" * 200_000)),
    Sample("no JSON", _raw(b"\xef\xbb\xbf{}")),
    Sample("no JSON", _raw(b'{"data": {}, "data": {"LabSiteUpsert": {"ok": true, "object": {"id": "id-1"}}}}')),
    Sample("no JSON", _raw(b'{"data": {"LabSiteUpsert": {"ok": true, "object": {"id": "id-1"}}}, "cost": NaN}')),
    Sample("no object", _json([{"data": {}}])),
    Sample("no object", _json(None)),
    Sample("neither data nor errors", _json({})),
    Sample("unusable data", _json({"data": None})),
    Sample("unusable data", _json({"data": []})),
    Sample("empty errors", _json({"data": {"LabSiteUpsert": {"ok": True, "object": {"id": "id-1"}}}, "errors": []})),
    Sample("empty errors", _json({"data": {"LabSiteUpsert": None}, "errors": None})),
    Sample("foreign errors", _json({"errors": ["text"]})),
    Sample("foreign errors", _json({"errors": {"message": "text"}})),
    Sample("foreign errors", _json({"errors": "text"})),
    Sample("stale id", _errors(_STALE)),
    Sample("stale id", _json({"data": None, "errors": [_STALE]})),
    Sample("stale id of another kind", _errors(_OTHER_KIND)),
    Sample("own id in use", _json({"data": {"LabVlanCreate": None}, "errors": [_IN_USE]}), OWN_ID),
    Sample("result beside errors", _errors(_STALE, data={"LabSiteUpsert": {"ok": True, "object": {"id": "id-1"}}})),
    Sample("result beside errors", _errors(_DEFUNCT, data={"Other": {"ok": True}})),
    Sample("inner fault", _errors(_DEFUNCT), CREATE),
    Sample("database away", _errors(_error("Unable to connect to the database", "UNDEFINED_ERROR", 503))),
    Sample("database away", _errors(_DEFUNCT, _error("Unable to connect to the database", "UNDEFINED_ERROR", 503))),
    Sample("not started", _json({"data": None, "errors": [{**_DEFUNCT, "path": None}]})),
    Sample("inner fault", _errors(_STALE, _DEFUNCT)),
    Sample("uniqueness", _errors(_error("Violates uniqueness constraint 'name'", "UNDEFINED_ERROR", 422)), CREATE),
    Sample("credential", _errors(_error("no", "TOKEN_EXPIRED", 401))),
    Sample("credential", _errors(_error("no", "AUTHENTICATION_REQUIRED", 401))),
    Sample("permission", _errors(_error("no", "PERMISSION_DENIED", 403))),
    Sample("branch", _errors(_error("no", "BRANCH_NEEDS_REBASE", 400))),
    Sample("branch", _errors(_error("no", "BRANCH_ALREADY_MERGED", 400))),
    Sample("merge", _errors(_error("no", "MERGE_IN_PROGRESS", 423))),
    Sample("any other errors", _errors(_PEER)),
    Sample("any other errors", _errors(_PEER), CREATE),
    Sample("any other errors", _errors(_KEY_HELD), replace(CREATE, data={"next": {"id": "main-1"}})),
    Sample("any other errors", _errors(_KEY_HELD), replace(CREATE, data={"all": [{"id": "x"}, {"id": "main-1"}]})),
    Sample("any other errors", _errors(_KEY_HELD)),
    Sample("any other errors", _errors({**_KEY_HELD, "path": ["Other"]}), CREATE),
    Sample("any other errors", _errors(_KEY_HELD, _PEER), CREATE),
    Sample("key elsewhere", _errors(_KEY_HELD), CREATE),
    Sample(
        "key elsewhere", _errors(_KEY_HELD), replace(CREATE, data={"next": {"id": "x"}, "name": {"value": "main-1"}})
    ),
    Sample("any other errors", _errors(_error("bad", "ATTRIBUTE_CONSTRAINT_VIOLATION", 422, field_name="name"))),
    Sample("any other errors", _json({"data": {"LabVlanCreate": None}, "errors": [_IN_USE]}), CREATE),
    Sample("any other errors", _errors(_error("Too long", "UNDEFINED_ERROR", 422))),
    Sample("any other errors", _json({"data": None, "errors": [{"message": "Field 'x' is not defined"}]})),
    Sample("any other errors", _json({"data": None, "errors": [{}]})),
    Sample("no result", _json({"data": {}})),
    Sample("no result", _result(None)),
    Sample("no result", _result([])),
    Sample("no result", _json({"data": {"LabSiteUpsert": {"ok": True, "object": {"id": "id-1"}}, "Other": None}})),
    Sample("not ok", _result({"ok": False, "object": {"id": "id-1"}})),
    Sample("not ok", _result({"object": {"id": "id-1"}})),
    Sample("not ok", _result({"ok": "true", "object": {"id": "id-1"}})),
    Sample("not ok", _result({"ok": 1, "object": {"id": "id-1"}})),
    Sample("no object in result", _result({"ok": True})),
    Sample("no object in result", _result({"ok": True, "object": None})),
    Sample("no id", _result({"ok": True, "object": {}})),
    Sample("no id", _result({"ok": True, "object": {"id": ""}}), CREATE),
    Sample("no id", _result({"ok": True, "object": {"id": " "}}), CREATE),
    Sample("no id", _result({"ok": True, "object": {"id": 7}}), CREATE),
    Sample("other id", _result({"ok": True, "object": {"id": "id-2"}})),
    Sample("other id", _result({"ok": True, "object": {"id": "ID-1"}})),
    Sample("not looked at", _json({"data": {"LabSite": {"edges": []}}}), None),
    Sample("done", _result({"ok": True, "object": {"id": "id-1"}})),
    Sample("done", _result({"ok": True, "object": {"id": "anything"}}), CREATE),
)
