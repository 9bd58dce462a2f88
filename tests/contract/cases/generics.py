"""Generics: constraints and human-friendly ids that span kinds, and reads across them."""

from __future__ import annotations

from tests.contract.cases.case import case
from tests.contract.cases.starts import a_site
from tests.contract.cases.talk import Talk, peer, values


@case("generic")
def constraint_of_siblings(t: Talk) -> None:
    """[haz] A key that an object of a sibling kind holds: neither created nor updated."""
    site = a_site(t)
    place = {**values(name=t.name("p")), "site": peer(site)}
    t.write("ProbeRackUpsert", place)
    t.write("ProbeCabinetUpsert", place)
    t.write("ProbeCabinetCreate", place)
    t.find("ProbePlace", {"name__value": t.name("p")}, "__typename")


@case("generic")
def constraint_of_siblings_on_main(t: Talk) -> None:
    """The same on the default branch, where another text is said."""
    t.write("ProbeAlphaUpsert", values(name=t.name()), branch="main")
    t.write("ProbeBetaUpsert", values(name=t.name()), branch="main")
    t.find("ProbeLetter", {"name__value": t.name()}, "__typename", branch="main")


@case("generic")
def unique_attribute_of_siblings(t: Talk) -> None:
    """A unique attribute of a generic spans its kinds."""
    t.write("ProbeAlphaUpsert", values(name=t.name()))
    t.write("ProbeBetaUpsert", values(name=t.name()))
    t.write("ProbeBetaCreate", values(name=t.name()))


@case("generic")
def converges_within_its_kind(t: Talk) -> None:
    """A kind whose key its generic declares too converges."""
    site = a_site(t)
    place = {**values(name=t.name("p")), "site": peer(site)}
    t.write("ProbeRackUpsert", place)
    t.write("ProbeRackUpsert", place)


@case("generic")
def constraint_without_a_key_of_its_own(t: Talk) -> None:
    """[haz] The generic has the constraint, only the kind has the human-friendly id: a second upsert is refused."""
    site = a_site(t)
    spot = {**values(name=t.name("s"), description="d"), "site": peer(site)}
    t.write("ProbeStallUpsert", spot)
    t.write("ProbeStallUpsert", spot)
    t.write("ProbeBoothUpsert", {**spot, **values(name=t.name("b"), number=int(site[:7], 16))})
    t.write("ProbeBoothUpsert", {**spot, **values(name=t.name("b"), number=int(site[:7], 16))})


@case("generic")
def read_by_human_friendly_id(t: Talk) -> None:
    """A generic is read with all its kinds."""
    site = a_site(t)
    t.write("ProbeRackUpsert", {**values(name=t.name("r")), "site": peer(site)})
    t.write("ProbeCabinetUpsert", {**values(name=t.name("c")), "site": peer(site)})
    below = "__typename display_label hfid name { value } ... on ProbeRack { site { node { display_label } } }"
    t.find("ProbePlace", {"site__name__value": t.name("site")}, below)
    t.find("ProbePlace", {"hfid": [t.name("site"), t.name("c")]}, below)
    t.find("ProbePlace", {"site__ids": [site]}, below)


@case("generic")
def deleted_with_its_site(t: Talk) -> None:
    """Components behind a generic go with their parent."""
    site = a_site(t)
    rack = t.write("ProbeRackUpsert", {**values(name=t.name("r")), "site": peer(site)}).id
    t.write("ProbeSiteDelete", {"id": site})
    t.read("ProbeRack", rack, "id")
