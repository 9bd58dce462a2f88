"""Documents and variables that are refused before anything runs, aliases, and odd HTTP requests."""

from __future__ import annotations

from tests.contract.cases.case import case
from tests.contract.cases.starts import a_tag
from tests.contract.cases.talk import Talk, peer, values


@case("document")
def unknown_field(t: Talk) -> None:
    """A field that the kind does not have: nothing runs, no path."""
    t.write("ProbeTagUpsert", values(name=t.name(), descripton="x"))
    t.find("ProbeTag", {"name__value": t.name()}, "id")


@case("document")
def several_unknown_fields(t: Talk) -> None:
    """Several unknown fields."""
    t.write("ProbeTagUpsert", values(name=t.name(), one="x", two="y"))


@case("document")
def read_only_field(t: Talk) -> None:
    """A read-only field is not in the input type."""
    t.write("ProbeDeviceUpsert", values(name=t.name(), serial="x"))


@case("document")
def computed_field(t: Talk) -> None:
    """Nor is a computed one."""
    t.write("ProbeDeviceUpsert", values(name=t.name(), title="x"))


@case("document")
def unknown_kind(t: Talk) -> None:
    """A kind that is not there."""
    t.write("ProbeNothingUpsert", values(name=t.name()))


@case("document")
def mutation_of_a_generic(t: Talk) -> None:
    """A generic has no mutations."""
    t.write("ProbePlaceUpsert", values(name=t.name()))


@case("document")
def unknown_field_in_the_answer(t: Talk) -> None:
    """A field that is asked for and not there."""
    t.write("ProbeTagUpsert", values(name=t.name()), below="ok object { id nothing }")


@case("document")
def syntax_error(t: Talk) -> None:
    """A text that is no document: HTTP 500, not JSON."""
    t.post("mutation {")


@case("document")
def empty_document(t: Talk) -> None:
    """An empty text."""
    t.post("")


@case("document")
def data_null(t: Talk) -> None:
    """No input at all."""
    t.write("ProbeTagUpsert", None)


@case("document")
def data_left_out(t: Talk) -> None:
    """The variable is not sent."""
    t.post("mutation A($data: ProbeTagUpsertInput!) { ProbeTagUpsert(data: $data) { ok } }", {})


@case("document")
def attribute_without_value(t: Talk) -> None:
    """A bare value in place of {value}."""
    t.write("ProbeTagUpsert", {"name": t.name()})


@case("document")
def literal_numbers(t: Talk) -> None:
    """Literals are strict where variables are not."""
    for literal in ("5", '"5"', "5.0", "true"):
        text = f'mutation {{ ProbeValueUpsert(data: {{name: {{value: "{t.name()}"}}, amount: {{value: {literal}}}}})'
        t.post(text + " { ok } }", call=f"the literal {literal}")


@case("document")
def literal_of_a_big_number_in_json(t: Talk) -> None:
    """[haz] A whole number above 32 bit as a literal inside JSON is stored as null."""
    text = (
        f'mutation {{ ProbeValueUpsert(data: {{name: {{value: "{t.name()}"}}, document: {{value: {{a: 4294967296}}}}}})'
    )
    made = t.post(text + " { ok object { id } } }", call="a literal above 32 bit")
    t.read("ProbeValue", made.id, "document { value }")


@case("document")
def aliases(t: Talk) -> None:
    """[haz] Aliased mutations run each for itself: what fails undoes none of the others."""
    gone = t.new_id("gone")
    text = f"""mutation {{
      a: ProbeTagUpsert(data: {{name: {{value: "{t.name("a")}"}}}}) {{ ok }}
      b: ProbeTagUpsert(data: {{id: "{gone}"}}) {{ ok }}
      c: ProbeTagUpsert(data: {{name: {{value: "{t.name("c")}"}}}}) {{ ok }}
    }}"""
    t.post(text, call="three aliases")
    t.find("ProbeTag", {"name__values": [t.name("a"), t.name("c")]}, "name { value }")


@case("document")
def aliases_with_a_crash(t: Talk) -> None:
    """[haz] A crash in one alias: HTTP 500 in text, and the others are written."""
    text = f"""mutation {{
      a: ProbeTagUpsert(data: {{name: {{value: "{t.name("a")}"}}}}) {{ ok }}
      b: ProbeTagUpsert(data: {{id: null}}) {{ ok }}
    }}"""
    t.post(text, call="two aliases")
    t.find("ProbeTag", {"name__value": t.name("a")}, "name { value }")


@case("document")
def aliases_with_an_unknown_field(t: Talk) -> None:
    """An unknown field in one alias: nothing at all is written."""
    text = f"""mutation {{
      a: ProbeTagUpsert(data: {{name: {{value: "{t.name("a")}"}}}}) {{ ok }}
      b: ProbeTagUpsert(data: {{nothing: {{value: 1}}}}) {{ ok }}
    }}"""
    t.post(text, call="two aliases")
    t.find("ProbeTag", {"name__value": t.name("a")}, "name { value }")


@case("document")
def enum_on_an_update(t: Talk) -> None:
    """[haz] An unknown choice of an enumeration: an update answers otherwise than a create.

    One fault a request: the order in which an update is checked differs from one start of the server to the next.
    """
    made = t.write("ProbeValueUpsert", values(name=t.name(), role="leaf", level=1)).id
    t.write("ProbeValueUpsert", {"id": made, **values(role="core")})
    t.write("ProbeValueUpsert", {"id": made, **values(level=3)})
    t.read("ProbeValue", made, "role { value } level { value }")


@case("document")
def two_operations(t: Talk) -> None:
    """Two operations and no name."""
    t.post("query A { ProbeTag { count } } query B { ProbeTag { count } }")


@case("document")
def batch(t: Talk) -> None:
    """A list of requests."""
    t.send("POST", f"/graphql/{t.place.branch}", [{"query": "{ ProbeTag { count } }"}], call="a list")


@case("document")
def body_without_json(t: Talk) -> None:
    """A body that is no JSON."""
    t.send("POST", f"/graphql/{t.place.branch}", b"no json", call="no JSON")


@case("document")
def body_without_query(t: Talk) -> None:
    """A body without a query."""
    t.send("POST", f"/graphql/{t.place.branch}", {"variables": {}}, call="no query")
    t.send("POST", f"/graphql/{t.place.branch}", {"query": 5}, call="a number as query")


@case("document")
def variables_in_a_list(t: Talk) -> None:
    """Variables that are no object."""
    t.send("POST", f"/graphql/{t.place.branch}", {"query": "{ __typename }", "variables": []}, call="an empty list")
    t.send("POST", f"/graphql/{t.place.branch}", {"query": "{ __typename }", "variables": [1]}, call="a list")
    t.send("POST", f"/graphql/{t.place.branch}", {"query": "{ __typename }", "variables": None}, call="null")


@case("document")
def at_on_a_mutation(t: Talk) -> None:
    """?at= is ignored on mutations."""
    text = "mutation A($data: ProbeTagUpsertInput!) { ProbeTagUpsert(data: $data) { ok } }"
    body = {"query": text, "variables": {"data": values(name=t.name())}}
    t.send("POST", f"/graphql/{t.place.branch}?at=2020-01-01", body, call="ProbeTagUpsert at 2020")
    t.send("POST", f"/graphql/{t.place.branch}?at=nonsense", body, call="ProbeTagUpsert at nonsense")
    t.find("ProbeTag", {"name__value": t.name()}, "id")


@case("document")
def at_on_a_query(t: Talk) -> None:
    """A moment that is none, one before everything, and one that is still to come."""
    tag = a_tag(t)
    body = {"query": f'query {{ ProbeTag(ids: ["{tag}"]) {{ count }} }}'}
    for moment in ("nonsense", "", "2020-01-01T00:00:00Z", "2020-01-01", "2100-01-01T00:00:00Z"):
        t.send("POST", f"/graphql/{t.place.branch}?at={moment}", body, call=f"at {moment}")
    for moment in ("nonsense", "2020-01-01"):
        reply = t.send("GET", f"/api/schema/summary?at={moment}", call=f"the schema at {moment}", shown=False)
        t.note(f"the schema at {moment}", [reply.status, reply.document.get("errors")])


@case("document")
def to_the_global_branch(t: Talk) -> None:
    """A request to the branch that holds what all branches share: a crash in text."""
    t.find("ProbeTag", {"name__value": t.name()}, "id", branch="-global-")
    t.write("ProbeTagUpsert", values(name=t.name()), branch="-global-")
    t.find("ProbeTag", {"name__value": t.name()}, "id")


@case("document")
def preconditions_are_ignored(t: Talk) -> None:
    """If-Match and Idempotency-Key change nothing."""
    tag = a_tag(t)
    text = "mutation A($data: ProbeTagUpsertInput!) { ProbeTagUpsert(data: $data) { ok object { id } } }"
    headers = {"content-type": "application/json", "X-INFRAHUB-KEY": t.place.token, "Idempotency-Key": "1"}
    for number in (1, 2):
        data = {"id": tag, **values(description=str(number))}
        t.post(text, {"data": data}, headers={**headers, "If-Match": '"nothing"'}, call=f"the same key, {number}")
    t.read("ProbeTag", tag, "description { value }")


@case("document")
def protected_value(t: Talk) -> None:
    """Protection and owners are advisory."""
    tag = a_tag(t)
    t.write("ProbeTagUpsert", {"id": tag, "description": {"value": "x", "is_protected": True}})
    t.write("ProbeTagUpsert", {"id": tag, "description": {"value": "y"}})
    t.read("ProbeTag", tag, "description { value is_protected }")
    t.write("ProbeTagUpsert", {"id": tag, "description": {"value": "z", "owner": "zzz"}})
    t.read("ProbeTag", tag, "description { value }")


@case("document")
def from_pool(t: Talk) -> None:
    """A value from a pool that is not there."""
    t.write("ProbeValueUpsert", {**values(name=t.name()), "amount": {"from_pool": {"id": t.new_id("pool")}}})


@case("document")
def computed_value_in_the_answer(t: Talk) -> None:
    """A computed attribute of the object's own values is right in the answer."""
    site = t.write("ProbeSiteUpsert", values(name=t.name("site"), asset=t.name())).id
    below = "ok object { id title { value } }"
    made = t.write("ProbeDeviceUpsert", {**values(name=t.name()), "site": peer(site)}, below=below)
    t.read("ProbeDevice", made.id, "title { value } serial { value }")
