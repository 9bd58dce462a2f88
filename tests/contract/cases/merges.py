"""Merges that are refused: what both sides changed, what main holds by then, and what a write should not have left."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.contract.cases.case import Case, case, register
from tests.contract.cases.talk import Talk, peer, peers, values

_MERGE = "mutation M($name: String!) { BranchMerge(wait_until_completion: true, data: {name: $name}) { ok } }"
_REBASE = "mutation R($name: String!) { BranchRebase(wait_until_completion: true, data: {name: $name}) { ok } }"


def _merge(t: Talk, branch: str) -> None:
    t.post(_MERGE, {"name": branch}, branch="main", call="BranchMerge")
    text = "query B($name: String) { Branch(name: $name) { status } }"
    t.post(text, {"name": branch}, branch="main", call="Branch")


_POISONS: tuple[tuple[str, str, str, Callable[[Talk], dict[str, Any]]], ...] = (
    (
        "the-text-null",
        "[haz] The text NULL in a mandatory attribute, which was accepted.",
        "ProbeStrict",
        lambda t: values(name="NULL", amount=1, flag=True, entries=["a"]),
    ),
    (
        "a-line-break-behind-a-pattern",
        "[haz] A line break behind what a pattern allows, which was accepted.",
        "ProbeValue",
        lambda t: values(name=t.name(), code="ABC\n"),
    ),
)


def _poisoned(kind: str, make: Callable[[Talk], dict[str, Any]]) -> Callable[[Talk], None]:
    def hold(t: Talk) -> None:
        branch = t.new_branch("poisoned")
        t.write(f"{kind}Create", make(t), branch=branch)
        _merge(t, branch)

    return hold


for _label, _shows, _kind, _make in _POISONS:
    register(Case("merge", f"refused-for-{_label}", _shows, _poisoned(_kind, _make)))


@case("merge")
def poisoned_by_a_mandatory_peer_that_is_null(t: Talk) -> None:
    """[haz] A mandatory peer that is null is merged without a word, and then stops the merge of another branch."""
    bad = t.new_branch("bad")
    lonely = t.write("ProbeDeviceCreate", {**values(name=t.name("bad")), "site": None}, branch=bad).id
    _merge(t, bad)
    good = t.new_branch("good")
    site = t.write("ProbeSiteUpsert", values(name=t.name("site"), asset=t.name()), branch=good).id
    t.write("ProbeDeviceUpsert", {**values(name=t.name("good")), "site": peer(site)}, branch=good)
    _merge(t, good)
    t.write("ProbeDeviceDelete", {"id": lonely}, branch="main")


@case("merge")
def refused_for_a_key_that_main_holds(t: Talk) -> None:
    """[haz] The same key was made on the branch and then on main."""
    branch = t.new_branch("late")
    t.write("ProbeTagUpsert", values(name=t.name()), branch=branch)
    t.write("ProbeTagUpsert", values(name=t.name()), branch="main")
    _merge(t, branch)
    t.find("ProbeTag", {"name__value": t.name()}, "name { value }", branch="main")


@case("merge")
def refused_for_a_value_that_both_changed(t: Talk) -> None:
    """One attribute was changed on both sides to two values: a conflict, and a rebase is refused for it too."""
    tag = t.write("ProbeTagUpsert", values(name=t.name(), description="before"), branch="main").id
    branch = t.new_branch("apart")
    t.write("ProbeTagUpsert", {"id": tag, **values(description="branch")}, branch=branch)
    t.write("ProbeTagUpsert", {"id": tag, **values(description="main")}, branch="main")
    _merge(t, branch)
    t.post(_REBASE, {"name": branch}, branch="main", call="BranchRebase")
    t.read("ProbeTag", tag, "description { value }", branch="main")


@case("merge")
def refused_for_a_peer_that_both_changed(t: Talk) -> None:
    """A single peer was changed on both sides to two objects."""
    sites = [
        t.write("ProbeSiteUpsert", values(name=t.name(name), asset=t.name(name)), branch="main").id for name in "abc"
    ]
    device = {**values(name=t.name()), "site": peer(sites[0]), "backup": peer(sites[0])}
    made = t.write("ProbeDeviceUpsert", device, branch="main").id
    branch = t.new_branch("apart")
    t.write("ProbeDeviceUpsert", {"id": made, "backup": peer(sites[1])}, branch=branch)
    t.write("ProbeDeviceUpsert", {"id": made, "backup": peer(sites[2])}, branch="main")
    _merge(t, branch)
    t.read("ProbeDevice", made, "backup { node { display_label } }", branch="main")


@case("merge")
def of_the_same_change_on_both_sides(t: Talk) -> None:
    """Changed on both sides to one value, and sets of peers that both changed: merged without a word."""
    a, b, c = (t.write("ProbeTagUpsert", values(name=t.name(name)), branch="main").id for name in "abc")
    fields = {**values(name=t.name(), asset=t.name(), description="before"), "tags": peers(a)}
    site = t.write("ProbeSiteUpsert", fields, branch="main").id
    branch = t.new_branch("same")
    t.write("ProbeSiteUpsert", {"id": site, **values(description="after"), "tags": peers(a, b)}, branch=branch)
    t.write("ProbeSiteUpsert", {"id": site, **values(description="after"), "tags": peers(a, c)}, branch="main")
    _merge(t, branch)
    t.read("ProbeSite", site, "description { value } tags { edges { node { display_label } } }", branch="main")


@case("merge")
def of_what_main_deleted(t: Talk) -> None:
    """Changed on the branch, deleted on main."""
    tag = t.write("ProbeTagUpsert", values(name=t.name(), description="before"), branch="main").id
    branch = t.new_branch("gone")
    t.write("ProbeTagUpsert", {"id": tag, **values(description="branch")}, branch=branch)
    t.write("ProbeTagDelete", {"id": tag}, branch="main")
    _merge(t, branch)
    t.read("ProbeTag", tag, "description { value }", branch="main")


@case("merge")
def of_what_the_branch_deleted(t: Talk) -> None:
    """Deleted on the branch, changed on main."""
    tag = t.write("ProbeTagUpsert", values(name=t.name(), description="before"), branch="main").id
    branch = t.new_branch("gone")
    t.write("ProbeTagDelete", {"id": tag}, branch=branch)
    t.write("ProbeTagUpsert", {"id": tag, **values(description="main")}, branch="main")
    _merge(t, branch)
    t.read("ProbeTag", tag, "description { value }", branch="main")
