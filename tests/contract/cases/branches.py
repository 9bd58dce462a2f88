"""Branches: what is only on main, only on a branch, and branches that are not there."""

from __future__ import annotations

from tests.contract.cases.case import case
from tests.contract.cases.talk import Talk, peer, values


@case("branch")
def id_made_on_main_after_the_fork(t: Talk) -> None:
    """An id that is only on main is not found on the branch."""
    tag = t.write("ProbeTagUpsert", values(name=t.name()), branch="main").id
    t.write("ProbeTagUpsert", {"id": tag, **values(description="x")})
    t.read("ProbeTag", tag, "id")


@case("branch")
def key_made_on_main_after_the_fork(t: Talk) -> None:
    """[haz] A key that is only on main: the identifier is main's node, not what was sent."""
    t.write("ProbeTagUpsert", values(name=t.name()), branch="main")
    t.write("ProbeTagUpsert", values(name=t.name()))
    t.write("ProbeTagCreate", values(name=t.name()))
    t.find("ProbeTag", {"name__value": t.name()}, "id")


@case("branch")
def constraint_held_on_main_after_the_fork(t: Talk) -> None:
    """A constraint that is held on main only, for a kind without a human-friendly id."""
    site = t.write("ProbeSiteUpsert", values(name=t.name(), asset=t.name()), branch="main").id
    device = t.write("ProbeDeviceUpsert", {**values(name=t.name()), "site": peer(site)}, branch="main").id
    branch = t.new_branch("fork")
    t.write("ProbePortUpsert", {**values(name="p1"), "device": peer(device)}, branch="main")
    t.write("ProbePortUpsert", {**values(name="p1"), "device": peer(device)}, branch=branch)


@case("branch")
def key_made_on_a_branch_only(t: Talk) -> None:
    """Main does not see a branch's keys."""
    t.write("ProbeTagUpsert", values(name=t.name()))
    t.write("ProbeTagUpsert", values(name=t.name()), branch="main")


@case("branch")
def peer_made_on_main_after_the_fork(t: Talk) -> None:
    """A peer that is only on main."""
    site = t.write("ProbeSiteUpsert", values(name=t.name(), asset=t.name()), branch="main").id
    t.write("ProbeDeviceUpsert", {**values(name=t.name()), "site": peer(site)})
    t.write("ProbeDeviceUpsert", {**values(name=t.name()), "site": {"hfid": [t.name()]}})


@case("branch")
def changed_apart(t: Talk) -> None:
    """An object of main, changed on a branch and then on main."""
    tag = t.write("ProbeTagUpsert", values(name=t.name(), description="main"), branch="main").id
    branch = t.new_branch("fork")
    t.write("ProbeTagUpsert", values(name=t.name(), description="branch"), branch=branch)
    t.write("ProbeTagUpsert", {"id": tag, **values(description="main again")}, branch="main")
    for where in ("main", branch):
        t.read("ProbeTag", tag, "description { value }", branch=where)


@case("branch")
def unchanged_on_the_branch(t: Talk) -> None:
    """[haz] What main changes after the fork: whether a branch that did not touch it sees it."""
    tag = t.write("ProbeTagUpsert", values(name=t.name(), description="before"), branch="main").id
    branch = t.new_branch("fork")
    t.write("ProbeTagUpsert", {"id": tag, **values(description="after")}, branch="main")
    t.read("ProbeTag", tag, "description { value }", branch=branch)


@case("branch")
def deleted_on_the_branch(t: Talk) -> None:
    """Deleted on a branch: still on main."""
    tag = t.write("ProbeTagUpsert", values(name=t.name()), branch="main").id
    branch = t.new_branch("fork")
    t.write("ProbeTagDelete", {"id": tag}, branch=branch)
    t.write("ProbeTagUpsert", {"id": tag, **values(description="x")}, branch=branch)
    t.write("ProbeTagUpsert", {"id": tag, **values(description="x")}, branch="main")
    t.write("ProbeTagUpsert", values(name=t.name()), branch=branch)


@case("branch")
def deleted_on_main_after_the_fork(t: Talk) -> None:
    """Deleted on main: still on the branch."""
    tag = t.write("ProbeTagUpsert", values(name=t.name()), branch="main").id
    branch = t.new_branch("fork")
    t.write("ProbeTagDelete", {"id": tag}, branch="main")
    t.write("ProbeTagUpsert", {"id": tag, **values(description="x")}, branch=branch)
    t.read("ProbeTag", tag, "description { value }", branch=branch)


@case("branch")
def unknown(t: Talk) -> None:
    """A branch that is not there: HTTP 404 with plain strings."""
    t.write("ProbeTagUpsert", values(name=t.name()), branch="nope")
    t.find("ProbeTag", {"name__value": t.name()}, "id", branch="nope")


@case("branch")
def deleted(t: Talk) -> None:
    """A branch that was deleted."""
    branch = t.new_branch("gone")
    text = "mutation B($data: BranchDeleteInput!) { BranchDelete(data: $data) { ok } }"
    t.post(text, {"data": {"name": branch}}, branch="main", call="BranchDelete")
    t.write("ProbeTagUpsert", values(name=t.name()), branch=branch)
    t.post(text, {"data": {"name": branch}}, branch="main", call="BranchDelete")


@case("branch")
def names(t: Talk) -> None:
    """Names that are too short, taken, or odd."""
    text = "mutation B($data: BranchCreateInput!) { BranchCreate(data: $data) { ok } }"
    for name in ("ab", "main", t.known(t.place.branch, "taken"), "with blank", "", "-global-"):
        data = {"name": name, "sync_with_git": False}
        t.post(text, {"data": data}, branch="main", call=f"BranchCreate {name}")


@case("branch")
def default_deleted(t: Talk) -> None:
    """The default branch stays."""
    text = "mutation B($data: BranchDeleteInput!) { BranchDelete(data: $data) { ok } }"
    t.post(text, {"data": {"name": "main"}}, branch="main", call="BranchDelete")


@case("branch")
def query_parameter(t: Talk) -> None:
    """[haz] ?branch= is ignored on /graphql: the write goes to main."""
    text = "mutation A($data: ProbeTagUpsertInput!) { ProbeTagUpsert(data: $data) { ok object { id } } }"
    body = {"query": text, "variables": {"data": values(name=t.name())}}
    t.send("POST", f"/graphql?branch={t.place.branch}", body, call="ProbeTagUpsert with ?branch=")
    t.find("ProbeTag", {"name__value": t.name()}, "id", branch="main")
    t.find("ProbeTag", {"name__value": t.name()}, "id")


@case("branch")
def shown(t: Talk) -> None:
    """What the Branch query says."""
    text = "query B($name: String) { Branch(name: $name) { name status is_default sync_with_git description } }"
    t.post(text, {"name": "main"}, branch="main", call="Branch main")
    t.post(text, {"name": "nope"}, branch="main", call="Branch nope")


_MERGE = "mutation M($name: String!) { BranchMerge(wait_until_completion: true, data: {name: $name}) { ok } }"
_REBASE = "mutation R($name: String!) { BranchRebase(wait_until_completion: true, data: {name: $name}) { ok } }"


@case("branch")
def merged(t: Talk) -> None:
    """What was written to a branch stands on main after its merge, and the branch takes no writes any more."""
    old = t.write("ProbeTagUpsert", values(name=t.name("old"), description="main"), branch="main").id
    gone = t.write("ProbeTagUpsert", values(name=t.name("gone")), branch="main").id
    site = {**values(name=t.name("site"), asset=t.name("site")), "tags": [{"id": gone}]}
    place = t.write("ProbeSiteUpsert", site, branch="main").id
    branch = t.new_branch("merged")
    own = t.write("ProbeTagUpsert", values(name=t.name("own")), branch=branch).id
    t.write("ProbeSiteUpsert", {"id": place, "tags": [{"id": old}, {"id": own}]}, branch=branch)
    t.write("ProbeTagDelete", {"id": gone}, branch=branch)
    t.write("ProbeTagUpsert", {"id": old, **values(description="main again")}, branch="main")
    t.post(_MERGE, {"name": branch}, branch="main", call="BranchMerge")
    for mutation in ("ProbeTagUpsert", "ProbeTagUpdate"):
        t.write(mutation, {"id": own, **values(description="late")}, branch=branch)
    t.write("ProbeTagCreate", values(name=t.name("late")), branch=branch)
    t.write("ProbeTagDelete", {"id": own}, branch=branch)
    for tag in (old, own, gone):
        t.read("ProbeTag", tag, "name { value } description { value }", branch="main")
    t.read("ProbeSite", place, "tags { edges { node { id } } }", branch="main")
    t.read("ProbeTag", own, "name { value } description { value }", branch=branch)
    t.find("ProbeTag", {"name__value": t.name("late")}, "id", branch=branch)
    text = "query B($name: String) { Branch(name: $name) { status } }"
    t.post(text, {"name": branch}, branch="main", call="Branch")
    t.post(_MERGE, {"name": branch}, branch="main", call="BranchMerge again")
    t.post(_REBASE, {"name": branch}, branch="main", call="BranchRebase")


@case("branch")
def rebased(t: Talk) -> None:
    """What main got after the fork is there after a rebase, beside what was written to the branch."""
    old = t.write("ProbeTagUpsert", values(name=t.name("old"), description="main"), branch="main").id
    branch = t.new_branch("rebased")
    t.write("ProbeTagUpsert", {"id": old, **values(description="branch")}, branch=branch)
    own = t.write("ProbeTagUpsert", values(name=t.name("own")), branch=branch).id
    late = t.write("ProbeTagUpsert", values(name=t.name("late")), branch="main").id
    t.write("ProbeTagUpsert", {"id": late, **values(description="x")}, branch=branch)
    t.post(_REBASE, {"name": branch}, branch="main", call="BranchRebase")
    t.write("ProbeTagUpsert", {"id": late, **values(description="x")}, branch=branch)
    for tag in (old, own, late):
        t.read("ProbeTag", tag, "name { value } description { value }", branch=branch)
    t.find("ProbeTag", {"name__value": t.name("own")}, "id", branch="main")
