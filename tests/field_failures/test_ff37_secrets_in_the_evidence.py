"""FF37: a planted secret is found nowhere: not in events, files, pages, logs, errors, nor in what caused them."""

from __future__ import annotations

import asyncio
import json
import logging
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx
import pytest
from pydantic import SecretStr, ValidationError

from consumers.infrahub.connection import InfrahubOpener, InfrahubSettings, declared, open_reader
from ledger.audit.replay import replay_record
from ledger.binding import DestinationBinding
from ledger.errors import ApplyLedgerError
from ledger.exit_codes import ExitCode
from ledger.plan.reader import load_plan_artifact
from tests.support.command_line import TOKEN, CommandLine
from tests.support.forged_plans import FORGED, commit_forged
from tests.support.inventory_operations import device_type, manufacturer
from tests.support.lab_schema import lab_document
from tests.support.operations import create, one
from tests.support.plans import manifest_document
from tests.support.real_writer import REAL_SCHEMA, RealWriter
from tests.support.scripted_infrahub import ScriptedInfrahub, applied, graphql, text
from tests.support.store import connection_to

pytestmark = pytest.mark.integration

SECRET = 'c4nary/7+f"ae\\9b2=d-secret'
"""With every character that some spelling writes in another way."""
PASSWORD = "hunter2-canary-password"
DOCUMENT = json.loads(REAL_SCHEMA.read_bytes())
PIECES = {SECRET[:12], SECRET[-12:], PASSWORD[:10], PASSWORD[-10:]}
"""Half a secret is one too."""


def chain(exc: BaseException | None) -> Iterator[BaseException]:
    """An exception and all that led to it, shown or not."""
    seen: set[int] = set()
    left = [exc]
    while left:
        one_of_them = left.pop()
        if one_of_them is None or id(one_of_them) in seen:
            continue
        seen.add(id(one_of_them))
        yield one_of_them
        left += [one_of_them.__cause__, one_of_them.__context__]


def require_clean(*texts: object) -> None:
    """None of the texts holds a piece of the secrets."""
    for found in texts:
        shown = found if isinstance(found, str) else repr(found)
        for piece in PIECES:
            assert piece not in shown
            assert json.dumps(piece)[1:-1] not in shown


def require_clean_error(exc: BaseException) -> None:
    """Neither the error, nor what caused it, nor its printed traceback, nor its notes."""
    for link in chain(exc):
        require_clean(str(link), repr(link.args), *getattr(link, "__notes__", ()))
    require_clean("".join(traceback.format_exception(exc)))


async def everything_kept(real: RealWriter, admin_dsn: str) -> str:
    """All text of all tables of the ledger."""
    async with connection_to(admin_dsn) as admin:
        tables = await admin.fetch("select tablename from pg_tables where schemaname = 'ledger'")
        rows = [
            row["found"]
            for table in tables
            for row in await admin.fetch(f'select t::text as found from ledger."{table["tablename"]}" t')
        ]
        assert rows
    return "\n".join(rows) + "\n".join(json.dumps(replay_record(event)) for event in await real.events())


def echoes(secret: str) -> dict[str, httpx.Response]:
    """Answers in which a server shows what it was sent."""
    quoted = json.dumps(secret)[1:-1]
    long = "x" * 1990
    field = "OrganizationManufacturerUpsert"
    return {
        "the header": graphql({"errors": [{"message": f"bad header X-INFRAHUB-KEY: {secret}"}]}),
        "authorization": graphql({"errors": [{"message": f"got Authorization: Bearer {secret} instead"}]}),
        "all headers": text(f"headers = {{'x-infrahub-key': '{secret}', 'accept': '*/*'}}", status=500),
        "a broken document": text('{"request": {"token": "' + quoted + '", ', status=502),
        "across the cut": graphql({"errors": [{"message": f"{long}{secret}{long}"}]}),
        "across the cut of a page": text(f"{'y' * 290}{secret}", status=503),
        "across a cut after many": graphql({"errors": [{"message": f"{'z' * 97} {secret}"}] * 40}),
        "in a code": graphql({"errors": [{"message": "no", "extensions": {"code": secret, "http_status": 400}}]}),
        "in the path": graphql({"errors": [{"message": "no", "path": [secret]}]}),
        "percent-encoded": text(f"GET /graphql?token={httpx.QueryParams({'t': secret})}", status=500),
        "user info": text(f"proxy http://user:{PASSWORD}@proxy:3128/ refused for {quote(secret)}", status=502),
        "a cookie": text(f"Set-Cookie: session={secret}; HttpOnly", status=500),
        "as the id": applied(field, secret),
        "beside the data": graphql({"data": {field: None}, "errors": [{"message": secret}]}),
        "a redirect": httpx.Response(302, headers={"location": f"https://login/?token={secret}"}),
        "a reason": httpx.Response(418, headers={"x-debug": secret}, content=secret.encode()),
    }


@pytest.mark.rules("G12", "C24", "C25", "C26", "P130")
async def test_ff37_whatever_the_destination_echoes(
    real: RealWriter, postgres18_ledger_dsns: dict[str, str], caplog: pytest.LogCaptureFixture, capsys: Any
) -> None:
    caplog.set_level(logging.DEBUG)
    real.changes["settle_seconds"] = 0.0
    settings = real.destination.model_copy(update={"token": SecretStr(SECRET), "retry_wait": 0.0})
    server = ScriptedInfrahub(schema_document=DOCUMENT)
    opener = InfrahubOpener(declared(settings), factory=server.new_transport)
    await real.commit("run-1", [manufacturer("Juniper")])
    for number, (what, answer) in enumerate(echoes(SECRET).items()):
        server.will_answer(answer)
        if number:
            await real.resume("run-1")
        outcome = await real.writer(opener).drain("run-1", by="ada")
        assert outcome.ending == "run.interrupted", what
        require_clean(await real.body("run-1", "operation.unknown"))
    require_clean(await everything_kept(real, postgres18_ledger_dsns["admin"]))
    captured = capsys.readouterr()
    require_clean(caplog.text, captured.out, captured.err)
    assert SECRET in server.requests[-1].headers["x-infrahub-key"]  # it was really sent, and so could be echoed


@pytest.mark.rules("G12")
@pytest.mark.parametrize(
    "fault",
    [
        httpx.ConnectError(f"proxy said {SECRET}"),
        httpx.RemoteProtocolError(f"illegal header value {SECRET.encode()!r}"),
        ValueError(f"Authorization: Bearer {SECRET}"),
    ],
    ids=lambda fault: type(fault).__name__,
)
async def test_ff37_the_whole_chain_of_exceptions(
    real: RealWriter, postgres18_ledger_dsns: dict[str, str], caplog: pytest.LogCaptureFixture, fault: Exception
) -> None:
    """What is recorded, and what a refusal of ours drags along. A defect leaves as it is: its text is not ours."""
    settings = real.destination.model_copy(update={"token": SecretStr(SECRET), "attempts": 1})
    server = ScriptedInfrahub(schema_document=DOCUMENT)
    server.will_answer(fault)
    opener = InfrahubOpener(declared(settings), factory=server.new_transport)
    await real.commit("run-1", [device_type("Juniper", "EX")])
    if isinstance(fault, httpx.HTTPError):
        assert (await real.writer(opener).drain("run-1", by="ada")).ending == "run.interrupted"
    else:
        with pytest.raises(type(fault)) as defect:
            await real.writer(opener).drain("run-1", by="ada")
        assert defect.value is fault
    require_clean(await everything_kept(real, postgres18_ledger_dsns["admin"]))
    if isinstance(fault, httpx.HTTPError):
        require_clean(caplog.text)


@pytest.mark.rules("G12")
async def test_ff37_a_reader_that_fails_says_nothing_of_its_token(real: RealWriter) -> None:
    settings = real.destination.model_copy(update={"token": SecretStr(SECRET), "attempts": 1, "retry_wait": 0.0})
    for what, answer in echoes(SECRET).items():
        server = ScriptedInfrahub(schema_document=DOCUMENT)
        server.will_answer(*[answer] * 5)
        async with open_reader(settings, factory=server.new_transport) as reader:
            with pytest.raises(ApplyLedgerError) as refused:
                await reader.counts(("BuiltinTag",))
        require_clean_error(refused.value)
        assert what


ADDRESSES = [
    f"https://user:{PASSWORD}@infrahub.example/",
    f"https://infrahub.example/?token={PASSWORD}",
    f"https://{PASSWORD}@infrahub.example",
    f"https://infrahub.example/#token={PASSWORD}",
    f"https://user:{PASSWORD}@infrahub.example:99999/",
    f"https://user:{PASSWORD}@[::1/",
    f"ftp://user:{PASSWORD}@infrahub.example/",
]


@pytest.mark.rules("G12", "C24", "C25", "C26", "A64")
@pytest.mark.parametrize("address", ADDRESSES)
def test_ff37_an_address_that_carries_a_credential(address: str) -> None:
    with pytest.raises((ApplyLedgerError, ValidationError)) as refused:
        InfrahubSettings(url=address, branch="main")
    require_clean_error(refused.value)
    try:
        kept = DestinationBinding(url=address, branch="main").normalised()
    except ApplyLedgerError as exc:
        require_clean_error(exc)
    else:
        require_clean(str(kept), repr(kept), kept.model_dump_json())


@pytest.mark.rules("G12", "C24", "C25", "A64")
@pytest.mark.parametrize("address", ADDRESSES)
async def test_ff37_a_plan_whose_address_carries_one_is_not_taken_apart_in_public(tmp_path: Path, address: str) -> None:
    run_dir = tmp_path / FORGED
    (run_dir / "plan").mkdir(parents=True)
    document = manifest_document(b"", destination_binding={"url": address, "branch": "main"})
    (run_dir / "plan" / "manifest.json").write_text(json.dumps(document))
    (run_dir / "plan" / "operations.jsonl").write_bytes(b"")
    with pytest.raises(ApplyLedgerError) as refused:
        load_plan_artifact(run_dir)
    require_clean_error(refused.value)


@pytest.mark.rules("G12", "C24", "A64", "A67")
@pytest.mark.parametrize(
    "binding",
    [{"token": PASSWORD}, {"password": PASSWORD, "username": "u"}, {"branch": [PASSWORD]}, {"url": {"t": PASSWORD}}],
    ids=lambda binding: next(iter(binding)),
)
async def test_ff37_a_binding_with_a_key_too_many(
    real: RealWriter, postgres18_ledger_dsns: dict[str, str], binding: dict[str, Any]
) -> None:
    await commit_forged(
        real, manufacturer("Juniper").line(), destination_binding={**real.binding.model_dump(), **binding}
    )
    with pytest.raises(ApplyLedgerError) as refused:
        load_plan_artifact(real.root / "sync" / FORGED)
    require_clean_error(refused.value)
    outcome = await real.writer().drain(FORGED, by="ada")
    assert outcome.exit_code is ExitCode.REFUSED
    require_clean(*map(str, outcome.findings))
    require_clean(await everything_kept(real, postgres18_ledger_dsns["admin"]))
    assert real.sent() == []


@pytest.mark.rules("G12", "P65")
async def test_ff37_a_password_in_a_payload_is_refused_before_its_line_is_kept(
    real: RealWriter, postgres18_ledger_dsns: dict[str, str]
) -> None:
    server = ScriptedInfrahub(schema_document=lab_document())
    opener = InfrahubOpener(declared(real.destination), factory=server.new_transport)
    device = create(
        "LabDevice", {"name": "sw1"}, {"name": "sw1", "secret": PASSWORD}, one("site", "LabSite", name="here")
    )
    as_key = create(
        "LabDevice",
        {"name": "sw2", "secret": PASSWORD},
        {"name": "sw2", "secret": PASSWORD},
        one("site", "LabSite", name="here"),
    )
    await real.commit("run-1", [device, as_key])
    outcome = await real.writer(opener).drain("run-1", by="ada")
    assert outcome.exit_code is ExitCode.REFUSED
    assert any("secret" in str(finding) for finding in outcome.findings)
    require_clean(*map(str, outcome.findings))
    require_clean(await everything_kept(real, postgres18_ledger_dsns["admin"]))
    assert server.mutations == []


@pytest.mark.rules("G12", "C24", "C25")
def test_ff37_nothing_of_a_command_holds_the_token(cli: CommandLine) -> None:
    """Every line that is printed is searched by the support of these tests; here also every file that is left."""
    cli.source({"name": "prod", "description": "Production"})
    planned = cli.plan()
    cli.summary(cli.apply(planned), 0)
    address = cli.sandbox.url.replace("http://", f"http://user:{PASSWORD}@")
    refused = cli.run("plan", "--config-file", "config.yml", INFRAHUB_ADDRESS=f"{address}/?token={PASSWORD}")
    assert refused.returncode in (1, 3)
    require_clean(refused.stdout, refused.stderr)
    files = [path for path in cli.folder.rglob("*") if path.is_file()]
    assert len(files) > 5
    for path in files:
        data = path.read_bytes()
        assert TOKEN.encode() not in data, path
        assert PASSWORD.encode() not in data, path


def test_ff37_the_search_would_find_it() -> None:
    """A test of the tests: a chain that nobody shows is looked into."""

    async def failing() -> None:
        try:
            raise ValueError(f"token {SECRET}")
        except ValueError:
            raise RuntimeError("clean") from None

    with pytest.raises(RuntimeError) as caught:
        asyncio.run(failing())
    with pytest.raises(AssertionError):
        require_clean_error(caught.value)
