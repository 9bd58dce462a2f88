"""Who may see which page, cell by cell; what a role may not see, it is told so."""

from __future__ import annotations

import html
import itertools
import re

import pytest

from ledger.api.rights import Address
from ledger.api.tokens import Role
from ledger.dashboard.application import page_addresses
from ledger.dashboard.rights import OPEN, PAGE_RIGHTS
from tests.support.api import Served
from tests.support.page_examples import EXAMPLES
from tests.support.visitors import visitor

pytestmark = pytest.mark.integration

RUN = "/bindings/{binding_id}/runs/{run_id}"
TABLE: dict[Address, str] = {
    ("GET", "/"): "reader auditor operator",
    ("GET", "/bindings/{binding_id}"): "reader auditor operator",
    ("GET", "/runs"): "reader auditor operator",
    ("GET", RUN): "reader auditor operator",
    ("GET", f"{RUN}/operations"): "reader auditor operator",
    ("GET", f"{RUN}/operations/{{ordinal}}"): "reader auditor operator",
    ("GET", "/objects"): "reader auditor operator",
    ("GET", "/inbox"): "reader auditor operator",
    ("GET", "/refused"): "reader auditor operator",
    ("GET", "/verification"): "reader auditor operator",
    ("GET", "/workers"): "reader auditor operator",
    ("POST", "/logout"): "reader auditor operator",
    ("GET", "/bindings/{binding_id}/objects/{object_key}"): "auditor operator",
    ("GET", "/bindings/{binding_id}/events"): "auditor operator",
    ("GET", "/bindings/{binding_id}/events/{position}"): "auditor operator",
    ("GET", "/commit"): "operator",
    ("POST", "/commit"): "operator",
    ("GET", f"{RUN}/resume"): "operator",
    ("POST", f"{RUN}/resume"): "operator",
    ("GET", f"{RUN}/stop"): "operator",
    ("POST", f"{RUN}/stop"): "operator",
}
"""What is meant, written down a second time and by hand."""

_NO_ROLE = "ForbiddenError"


def _example(address: Address) -> str:
    if address[1] in EXAMPLES:
        return EXAMPLES[address[1]][0][1]
    return address[1].replace("{binding_id}", "1").replace("{run_id}", "run-create")


def test_every_page_has_its_row_and_no_row_is_of_another() -> None:
    addresses = {address for address in page_addresses() if address[1] not in OPEN}
    assert addresses == set(TABLE)
    assert {address: set(roles) for address, roles in PAGE_RIGHTS.items()} == {
        address: {Role(role) for role in roles.split()} for address, roles in TABLE.items()
    }


async def test_each_role_sees_what_it_may_and_nothing_else(site: Served) -> None:
    for role in Role:
        async with visitor(site, role) as somebody:
            # A form that is sent without its key ends behind the right and in front of everything else.
            for address in sorted(TABLE, key=lambda row: row[0]):
                answer = await somebody.client.request(address[0], _example(address))
                may = role.value in TABLE[address].split()
                assert (_NO_ROLE not in answer.text) == may, (role, address)
                assert answer.status_code != 404, address
                if not may:
                    assert answer.status_code == 403
                    assert f"<strong>{role.value}</strong>" in answer.text, "who was refused is told as whom"


async def test_nobody_gets_a_page_without_a_session(site: Served) -> None:
    async with visitor(site, None) as nobody:
        for address, headers in itertools.product(
            TABLE, ({}, {"Authorization": f"Bearer {site.tokens[Role.OPERATOR]}"}, {"Cookie": "apply-ledger=x"})
        ):
            answer = await nobody.client.request(address[0], _example(address), headers=headers)
            assert (answer.status_code, answer.text) == (303, ""), (address, headers)


async def test_the_navigation_offers_what_may_be_seen(site: Served) -> None:
    async with visitor(site, Role.READER) as somebody:
        assert 'href="/commit"' not in (await somebody.get("/")).text
    async with visitor(site, Role.OPERATOR) as somebody:
        assert 'href="/commit"' not in (await somebody.get("/")).text, "this server takes no orders"


async def test_messages_of_a_destination_are_for_who_may_read_the_record(site: Served) -> None:
    for role, sees in ((Role.READER, False), (Role.AUDITOR, True), (Role.OPERATOR, True)):
        async with visitor(site, role) as somebody:
            for path in ("/bindings/1/runs/run-doubt", "/bindings/1/runs/run-hostile/operations/5"):
                text = (await somebody.get(path)).text
                assert "ReadTimeout" in text or "unknown" in text
                assert ("/bindings/1/events/" in text) == sees, (role, path)
            hostile = (await somebody.get("/bindings/1/runs/run-hostile")).text
            assert ("<dt>Next</dt>" in hostile) == sees
            assert ("role auditor or operator sees them" in hostile) != sees


@pytest.mark.parametrize("role", [Role.READER, Role.AUDITOR])
async def test_no_page_leads_to_what_who_looks_at_it_may_not_see(site: Served, role: Role) -> None:
    found: dict[str, str] = {}
    async with visitor(site, role) as somebody:
        for examples in EXAMPLES.values():
            for name, path in examples:
                page = await somebody.get(path)
                if page.status_code == 200:
                    found |= {html.unescape(link): name for link in re.findall(r' href="(/[^"#]*)', page.text)}
        assert len(found) > 50
        refused = {
            (name, link)
            for link, name in found.items()
            if not link.startswith("/static/") and (await somebody.get(link)).status_code == 403
        }
    assert refused == set()
