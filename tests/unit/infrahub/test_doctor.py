"""The checks of a destination: what each says of a server that is well, and of each way in which it is not."""

from __future__ import annotations

import json
import socket
from collections.abc import Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from consumers.infrahub.doctor import Identities, destination_checks
from consumers.infrahub.doctor.kinds import key_of
from consumers.infrahub.settings import InfrahubSettings
from ledger.checkup import CheckResult, Said, Verdict, run_checks
from ledger.schema import DestinationSchema, parse_schema
from tests.support.lab_schema import attribute, lab_document, lab_schema
from tests.support.telling_infrahub import CERTIFICATE, TOKEN, TellingInfrahub, telling_infrahub

REAL = parse_schema(json.loads((Path(__file__).parents[2] / "data" / "schema-api.json").read_text(encoding="utf-8")))
ALL = [
    "host name",
    "port",
    "HTTP",
    "version",
    "clock",
    "keep-alive",
    "token",
    "branch",
    "role",
    "schema",
    "kinds",
    "permissions",
]
IDENTITIES = {"LabSite": ("name",), "LabVlan": ("place", "vid")}


def _identities(_schema: DestinationSchema) -> Mapping[str, Sequence[str]]:
    return IDENTITIES


async def _checkup(
    server: TellingInfrahub | str, *, identities: Identities | None = _identities, **changes: Any
) -> dict[str, list[Said]]:
    """What every check said, by its name; nothing it said holds the token."""
    url = server if isinstance(server, str) else server.url
    values = {"url": url, "branch": "main", "token": TOKEN, "retry_wait": 0, "attempts": 1, "request_timeout": 5}
    said: dict[str, list[Said]] = {}
    async with destination_checks(InfrahubSettings(**{**values, **changes}), identities, keepalive=0.15) as checks:
        async for result in run_checks(url, checks):
            assert isinstance(result, CheckResult)
            assert TOKEN not in json.dumps(result.record())
            said.setdefault(result.check, []).append(result.said)
    return said


def _verdicts(said: dict[str, list[Said]]) -> dict[str, Verdict]:
    order = list(Verdict)
    return {name: max((one.verdict for one in looks), key=order.index) for name, looks in said.items()}


@pytest.mark.rules("P43", "G12")
async def test_a_server_that_is_well_passes_every_check_and_is_sent_no_write() -> None:
    async with telling_infrahub() as server:
        said = await _checkup(server)
        assert server.writes == []
    assert list(said) == ALL
    assert set(_verdicts(said).values()) == {Verdict.GOOD}, said
    assert said["token"][0].facts == {"account": "Writer"}
    assert said["kinds"][0].facts["table"] == [
        {
            "kind": "LabSite",
            "converges_on": "human-friendly id",
            "key": ["name__value"],
            "identity": ["name"],
            "problem": "",
        },
        {
            "kind": "LabVlan",
            "converges_on": "constraint",
            "key": ["place", "vid__value"],
            "identity": ["place", "vid"],
            "problem": "",
        },
    ]


async def test_without_a_configuration_no_kind_is_looked_at() -> None:
    async with telling_infrahub() as server:
        said = await _checkup(server, identities=None)
    assert [name for name, verdict in _verdicts(said).items() if verdict is not Verdict.GOOD] == [
        "kinds",
        "permissions",
    ]
    assert _verdicts(said)["kinds"] is Verdict.SKIPPED


async def test_a_port_that_nobody_listens_on_is_the_reason_for_all_that_follows() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    said = await _checkup(f"http://127.0.0.1:{port}")
    assert said["port"][0].verdict is Verdict.FAILURE
    assert "refused" in said["port"][0].found
    later = ALL[ALL.index("port") + 1 :]
    assert {said[name][0].found for name in later} == {"not looked at, because of the port"}


async def test_a_name_without_an_address_is_told_as_such() -> None:
    said = await _checkup("http://nobody.invalid:8000")
    assert said["host name"][0].verdict is Verdict.FAILURE
    assert said["port"][0].verdict is Verdict.SKIPPED


async def test_a_certificate_that_nobody_vouches_for_fails_and_with_its_authority_it_is_good() -> None:
    async with telling_infrahub(tls=True) as server:
        untrusted = await _checkup(server)
        trusted = await _checkup(server, ca_file=CERTIFICATE)
        unchecked = await _checkup(server, verify_tls=False)
    assert untrusted["TLS"][0].verdict is Verdict.FAILURE
    assert "ca_file" in untrusted["TLS"][0].next_action
    assert untrusted["HTTP"][0].verdict is Verdict.SKIPPED
    assert trusted["TLS"][0].verdict is Verdict.GOOD
    assert _verdicts(trusted)["permissions"] is Verdict.GOOD
    assert unchecked["TLS"][0].verdict is Verdict.WARNING


async def test_https_on_a_port_that_speaks_plain_http_is_told() -> None:
    async with telling_infrahub() as server:
        said = await _checkup(server.url.replace("http:", "https:"), connect_timeout=0.3)
    assert said["TLS"][0].verdict is Verdict.FAILURE
    assert "http://" in said["TLS"][0].next_action


@pytest.mark.parametrize(
    ("version", "verdict"),
    [
        ("1.11.9", Verdict.GOOD),
        ("1.11.0", Verdict.GOOD),
        ("1.12.1", Verdict.WARNING),
        ("1.4.2", Verdict.WARNING),
        ("1.0.0-dev0", Verdict.FAILURE),
        ("0.16.3", Verdict.FAILURE),
        ("2.0.0", Verdict.FAILURE),
        ("latest", Verdict.FAILURE),
    ],
)
async def test_the_version_is_measured_or_unmeasured_or_refused(version: str, verdict: Verdict) -> None:
    async with telling_infrahub(version=version) as server:
        said = await _checkup(server, identities=None)
    assert said["version"][0].verdict is verdict
    assert version in said["version"][0].found


@pytest.mark.parametrize(("behind", "words"), [(90, "behind"), (-90, "ahead of")])
async def test_a_clock_that_is_off_is_a_warning_that_says_by_how_much(behind: int, words: str) -> None:
    async with telling_infrahub(behind=timedelta(seconds=behind)) as server:
        (said,) = (await _checkup(server, identities=None))["clock"]
    assert said.verdict is Verdict.WARNING
    assert words in said.found
    assert abs(abs(said.facts["seconds"]) - 90) <= 2


async def test_a_server_that_tells_no_time_is_not_judged() -> None:
    async with telling_infrahub(tells_date=False) as server:
        assert (await _checkup(server, identities=None))["clock"][0].verdict is Verdict.SKIPPED


@pytest.mark.rules("G5")
@pytest.mark.parametrize(
    ("told", "verdict"),
    [
        ({"idle": 0.04}, Verdict.WARNING),
        ({"headers": "connection: close\r\n"}, Verdict.WARNING),
        ({"idle": 0.2}, Verdict.GOOD),
    ],
    ids=["closed before ours", "no keep-alive", "closed after ours"],
)
async def test_idle_connections_have_to_outlive_ours(told: dict[str, Any], verdict: Verdict) -> None:
    async with telling_infrahub(**told) as server:
        assert (await _checkup(server, identities=None))["keep-alive"][0].verdict is verdict


@pytest.mark.rules("G12")
async def test_a_token_that_is_not_accepted_is_told_without_being_shown() -> None:
    wrong = "canary-of-a-token-that-nobody-knows"
    async with telling_infrahub() as server:
        said = await _checkup(server, token=wrong)
    assert said["HTTP"][0].verdict is Verdict.GOOD
    assert said["token"][0].verdict is Verdict.FAILURE
    assert wrong not in str(said)
    assert said["branch"][0].found == "not looked at, because of the token"


async def test_an_account_that_is_not_active_fails() -> None:
    account = {"display_label": "Old", "status": {"value": "inactive"}}
    async with telling_infrahub(account=account) as server:
        (said,) = (await _checkup(server, identities=None))["token"]
    assert said.verdict is Verdict.FAILURE
    assert "inactive" in said.found


async def test_a_server_without_accounts_has_accepted_a_token_that_it_answers() -> None:
    async with telling_infrahub(knows_accounts=False) as server:
        said = await _checkup(server)
    assert said["token"][0].verdict is Verdict.GOOD
    assert [said[name][0].verdict for name in ("role", "permissions")] == [Verdict.SKIPPED, Verdict.SKIPPED]


@pytest.mark.parametrize(
    "status", ["MERGED", "DELETING", "MERGING", "MERGE_FAILED", "NEED_REBASE", "NEED_UPGRADE_REBASE"]
)
async def test_a_branch_that_takes_no_writes_fails(status: str) -> None:
    async with telling_infrahub(branches={"main": "OPEN", "lab1": status}) as server:
        (said,) = (await _checkup(server, branch="lab1", identities=None))["branch"]
    assert said.verdict is Verdict.FAILURE
    assert said.facts == {"branch": "lab1", "status": status, "is_default": False}


async def test_a_state_of_a_branch_that_nobody_knows_is_a_warning() -> None:
    async with telling_infrahub(branches={"lab1": "FROZEN"}) as server:
        assert (await _checkup(server, branch="lab1", identities=None))["branch"][0].verdict is Verdict.WARNING


async def test_a_branch_that_is_not_there_fails_and_nothing_is_asked_of_it() -> None:
    async with telling_infrahub() as server:
        said = await _checkup(server, branch="nowhere")
    assert said["branch"][0].verdict is Verdict.FAILURE
    assert said["schema"][0].found == "not looked at, because of the branch"


async def test_the_default_branch_needs_a_right_that_other_branches_do_not() -> None:
    async with telling_infrahub(global_rights=[("merge_branch", 6), ("edit_default_branch", 4)]) as server:
        on_main = await _checkup(server, identities=None)
        on_branch = await _checkup(server, branch="lab1", identities=None)
    assert on_main["role"][0].verdict is Verdict.FAILURE
    assert "edit_default_branch" in on_main["role"][0].next_action
    assert on_branch["role"][0].verdict is Verdict.GOOD


async def test_rights_are_judged_for_the_branch_that_is_written() -> None:
    rights = {"LabSite": {"create": "ALLOW_OTHER", "update": "ALLOW_OTHER"}}
    async with telling_infrahub(rights=rights) as server:
        on_main = await _checkup(server)
        on_branch = await _checkup(server, branch="lab1")
    assert on_branch["permissions"][0].verdict is Verdict.GOOD
    (said,) = on_main["permissions"]
    assert said.verdict is Verdict.FAILURE
    assert said.facts == {"kinds": ["LabSite"], "actions": ["create", "update"]}


async def test_kinds_that_lack_the_same_rights_are_one_line() -> None:
    none = {"view": "DENY", "create": "DENY", "update": "DENY"}
    async with telling_infrahub(rights=dict.fromkeys(IDENTITIES, none)) as server:
        (said,) = (await _checkup(server))["permissions"]
    assert said.found == (
        "all 2 kinds: the account may not view or create or update; nothing of these can be planned, because the server"
        " refuses to show them"
    )


@pytest.mark.rules("P40", "P43", "P45", "P60")
def test_kinds_without_a_usable_key_are_named_with_what_is_missing() -> None:
    kinds = lab_schema().kinds
    uncovered = key_of(kinds["LabRack"], ("name",))
    assert (uncovered.converges_on, uncovered.problem) == (
        "human-friendly id",
        "site__name__value is not in the identity",
    )
    keyless = key_of(kinds["LabNote"], ("text",))
    assert keyless.converges_on == "nothing"
    assert "one more object" in keyless.problem
    # the identifiers of a configuration are not what the destination converges on
    assert key_of(kinds["LabSite"], ("description", "name")).key == ("name__value",)


@pytest.mark.rules("P43", "P63")
async def test_names_that_stand_in_the_way_of_writes_are_told() -> None:
    document = lab_document()
    (site,) = (raw for raw in document["nodes"] if raw["kind"] == "LabSite")
    site["attributes"] += [attribute("items", optional=True), attribute("get", optional=True)]
    async with telling_infrahub(schema_document=document) as server:
        said = (await _checkup(server))["kinds"]
    assert [one.found for one in said if one.verdict is Verdict.FAILURE] == [
        "LabSite: a field named 'get'; the server takes no creates and no updates of it",
        "LabSite: a field named 'items'; the server takes no updates of it",
    ]


@pytest.mark.rules("P43")
def test_the_table_tells_crossing_keys_and_constraints_of_the_real_schema() -> None:
    identities = {"InterfacePhysical": ("device", "name"), "IpamVLAN": ("vlan_group", "vlan_id")}
    told = {kind: key_of(REAL.kinds[kind], identity) for kind, identity in identities.items()}
    assert told["InterfacePhysical"].key == ("device__name__value", "name__value")
    assert told["IpamVLAN"].converges_on == "constraint"
    assert [key.problem for key in told.values()] == ["", ""]
