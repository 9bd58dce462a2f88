"""Credentials, permissions, and the REST side."""

from __future__ import annotations

from tests.contract.cases.case import case
from tests.contract.cases.talk import Talk, values

_WRITE = "mutation A($data: ProbeTagUpsertInput!) { ProbeTagUpsert(data: $data) { ok object { id } } }"
_READ = 'query { ProbeTag(name__value: "not there") { count } }'
_READS = {
    "how many": "count",
    "ids": "count edges { node { id __typename } }",
    "names": "count edges { node { display_label hfid } }",
    "values": "count edges { node { id name { value } } }",
    "peers": "count edges { node { id tags { count edges { node { id } } } } }",
}
"""From what tells least of an object to what tells most."""
_JSON = {"content-type": "application/json"}


def _read_all(t: Talk, headers: dict[str, str], *, branch: str | None = None) -> None:
    """Read an object that is there."""
    tag = t.write("ProbeTagUpsert", values(name=t.name("tag")), branch=branch).id
    site = {**values(name=t.name("site"), asset=t.name("site")), "tags": [{"id": tag}]}
    t.write("ProbeSiteUpsert", site, branch=branch)
    for call, below in _READS.items():
        text = f"query R($name: String) {{ ProbeSite(name__value: $name) {{ {below} }} }}"
        t.post(text, {"name": t.name("site")}, branch=branch, headers=headers, call=call)


@case("access")
def none(t: Talk) -> None:
    """Without a credential: reads are answered, writes are not."""
    _read_all(t, _JSON)
    t.post(_WRITE, {"data": values(name=t.name())}, headers=_JSON, call="a write")
    t.find("ProbeTag", {"name__value": t.name()}, "id")


@case("access")
def wrong_key(t: Talk) -> None:
    """A wrong key is refused for reads too."""
    headers = {**_JSON, "X-INFRAHUB-KEY": "wrong"}
    t.post(_READ, headers=headers, call="a read")
    t.post(_WRITE, {"data": values(name=t.name())}, headers=headers, call="a write")


@case("access")
def wrong_bearer(t: Talk) -> None:
    """A wrong bearer token."""
    headers = {**_JSON, "Authorization": "Bearer wrong"}
    t.post(_READ, headers=headers, call="a read")
    t.post(_WRITE, {"data": values(name=t.name())}, headers=headers, call="a write")


@case("access")
def empty_key(t: Talk) -> None:
    """An empty key."""
    t.post(_WRITE, {"data": values(name=t.name())}, headers={**_JSON, "X-INFRAHUB-KEY": ""}, call="a write")


def _of_reader(t: Talk) -> dict[str, str]:
    return {**_JSON, "X-INFRAHUB-KEY": t.place.reader_token}


@case("access")
def expired_token(t: Talk) -> None:
    """A token of the API that has expired is a wrong one."""
    headers = {**_JSON, "X-INFRAHUB-KEY": t.place.old_token}
    t.post(_READ, headers=headers, call="a read")
    t.post(_WRITE, {"data": values(name=t.name())}, headers=headers, call="a write")
    t.send("GET", "/api/schema/summary", headers=headers, call="summary")


@case("access")
def account_without_a_role_reads(t: Talk) -> None:
    """An account without a role may count objects and make a branch; what it may see of an object, and of a schema."""
    _read_all(t, _of_reader(t))
    reply = t.send("GET", "/api/schema/summary", headers=_of_reader(t), call="summary", shown=False)
    t.note("summary", reply.status)
    text = "mutation B($data: BranchCreateInput!) { BranchCreate(data: $data) { ok } }"
    data = {"name": t.name("made"), "sync_with_git": False}
    t.post(text, {"data": data}, branch="main", headers=_of_reader(t), call="BranchCreate")


@case("access")
def account_without_a_role_reads_main(t: Talk) -> None:
    """The same on the default branch, and what is there for nobody."""
    _read_all(t, _of_reader(t), branch="main")
    t.post(_READ, branch="main", headers=_of_reader(t), call="what is not there")
    text = 'query { ProbeTag(name__value: "not there") { edges { node { name { value } } } } }'
    t.post(text, branch="main", headers=_of_reader(t), call="values of what is not there")
    text = "query { ProbeTag(limit: 1) { count edges { node { id } } } ProbeSite(limit: 1) { count } }"
    t.post(text, branch="main", headers=_of_reader(t), call="two kinds")


@case("access")
def account_without_a_role_writes_to_a_branch(t: Talk) -> None:
    """[haz] HTTP 403 with data null and no path: nothing ran, and each write names the permissions that it needs."""
    tag = t.write("ProbeTagUpsert", values(name=t.name("there"))).id
    inputs = {
        "ProbeTagUpsert": values(name=t.name()),
        "ProbeTagCreate": values(name=t.name()),
        "ProbeTagUpdate": {"id": tag, **values(description="x")},
    }
    for name, data in inputs.items():
        text = f"mutation A($data: {name}Input!) {{ {name}(data: $data) {{ ok }} }}"
        t.post(text, {"data": data}, headers=_of_reader(t), call=name)
    text = "mutation A($data: DeleteInput!) { ProbeTagDelete(data: $data) { ok } }"
    t.post(text, {"data": {"id": tag}}, headers=_of_reader(t), call="ProbeTagDelete")
    site = t.write("ProbeSiteUpsert", values(name=t.name(), asset=t.name())).id
    text = "mutation A($data: RelationshipNodesInput!) { RelationshipAdd(data: $data) { ok } }"
    data = {"id": site, "name": "tags", "nodes": [{"id": tag}]}
    t.post(text, {"data": data}, headers=_of_reader(t), call="RelationshipAdd")
    t.read("ProbeSite", site, "tags { count }")
    t.find("ProbeTag", {"name__value": t.name()}, "id")
    t.read("ProbeTag", tag, "description { value }")


@case("access")
def account_without_a_role_writes_to_main(t: Talk) -> None:
    """On the default branch that is what is said, whatever is written."""
    t.post(_WRITE, {"data": values(name=t.name())}, branch="main", headers=_of_reader(t), call="a write")
    t.find("ProbeTag", {"name__value": t.name()}, "id", branch="main")


@case("access")
def account_without_a_role_and_a_bad_document(t: Talk) -> None:
    """Which is said first: no permission, or an unknown field."""
    for branch in ("main", t.place.branch):
        t.post(_WRITE, {"data": values(nothing=1)}, branch=branch, headers=_of_reader(t), call="an unknown field")


@case("access")
def none_beside_a_bad_document(t: Talk) -> None:
    """Which is said first: no credential, or an unknown field."""
    t.post(_WRITE, {"data": values(nothing=1)}, headers=_JSON, call="a write")


@case("access")
def wrong_key_on_an_unknown_branch(t: Talk) -> None:
    """Which is said first: a wrong key, or an unknown branch."""
    t.post(_READ, branch="nope", headers={**_JSON, "X-INFRAHUB-KEY": "wrong"}, call="a read")


@case("access")
def schema_without_a_key(t: Talk) -> None:
    """The schema is readable without a key; with a wrong one it is not."""
    for label, headers in (("none", {}), ("wrong", {"X-INFRAHUB-KEY": "wrong"})):
        reply = t.send("GET", "/api/schema", call=f"schema, key: {label}", headers=headers, shown=False)
        t.note(f"schema, key: {label}", [reply.status, sorted(reply.document)])


@case("access")
def schema_of_an_unknown_branch(t: Talk) -> None:
    """The schema of a branch that is not there."""
    t.send("GET", "/api/schema?branch=nope", call="schema of nope")


@case("access")
def schema_hash(t: Talk) -> None:
    """The summary's hash is the schema's own, and that of a new branch is the one of main."""
    for branch in ("main", t.place.branch):
        reply = t.send("GET", f"/api/schema/summary?branch={branch}", call="summary", shown=False)
        whole = t.send("GET", f"/api/schema?branch={branch}", call="schema", shown=False)
        t.note("keys", sorted(reply.document))
        t.note("one hash", reply.document["main"] == whole.document["main"])


@case("access")
def schema_hash_of_an_unknown_branch(t: Talk) -> None:
    """The summary of a branch that is not there."""
    t.send("GET", "/api/schema/summary?branch=nope", call="summary of nope")


@case("access")
def info(t: Talk) -> None:
    """Version and deployment id answer without a token."""
    t.send("GET", "/api/info", call="info", headers={})


@case("access")
def unknown_route(t: Talk) -> None:
    """A path that is not there."""
    t.send("GET", "/api/nothing", call="an unknown route")
