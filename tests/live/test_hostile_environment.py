"""Nothing that is set for another tool changes a write: every variable of the SDK and of proxies, set to harm."""

from __future__ import annotations

import asyncio
import enum
import json
import re
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import infrahub_sdk.config
import infrahub_sdk.recorder
import pytest
from infrahub_sdk import Config
from pydantic_settings import BaseSettings

from consumers.infrahub.connection import InfrahubOpener, declared
from consumers.writer import BindingWriter
from ledger.destination import DestinationAwayError
from ledger.events import OUTCOME_KINDS
from tests.live.program import LiveProgram
from tests.live.writing import LiveWriter, create
from tests.support.http_relay import CERTIFICATE, Fate, HttpRelay, http_relay
from tests.support.inventory_operations import device_type, interface_template, manufacturer
from tests.support.operations import many, update

pytestmark = [pytest.mark.live, pytest.mark.timeout(300)]

PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy")
OURS = ("INFRAHUB_ADDRESS", "INFRAHUB_API_TOKEN", "INFRAHUB_DEFAULT_BRANCH")
"""Variables that the command line reads itself, because they name the destination."""
FATES = [
    Fate("lose answer"),  # the maker: written, and nobody heard
    Fate("pass"),
    Fate("unavailable"),  # the model: a proxy's 503, behind which anything may have happened
    Fate("pass"),
    Fate("shed"),  # the template: refused for the load, to be sent again by the client itself
    Fate("pass"),
    Fate("hold answer", 1.5),  # the site: later than a time-out of one second
]
"""What happens to the four writes of a run; where all goes well no limit and no retrying of a library is ever met."""
_ID = re.compile(rb"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")


@dataclass
class Trap:
    """A server that nobody may ever speak to."""

    url: str = ""
    connections: int = 0


@pytest.fixture
async def trap() -> AsyncIterator[Trap]:
    sprung = Trap()

    async def serve(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        sprung.connections += 1
        writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        sprung.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        yield sprung


def sdk_settings() -> list[type[BaseSettings]]:
    """Every class of the SDK that reads the environment."""

    def below(base: type[BaseSettings]) -> list[type[BaseSettings]]:
        return [found for each in base.__subclasses__() for found in (each, *below(each))]

    modules = (infrahub_sdk.config.__name__, infrahub_sdk.recorder.__name__)
    return [each for each in below(BaseSettings) if each.__module__ in modules]


def harmful(annotation: Any, default: Any, url: str) -> str:
    """A value that the SDK accepts for a field and that would change what it does."""
    if annotation is bool:
        return str(not default)
    if annotation in (int, float):
        return "1"
    if isinstance(annotation, type) and issubclass(annotation, enum.Enum):
        return str(list(annotation)[-1].value)
    if annotation == list[int]:
        return "[200, 429, 500]"
    return url


def hostile_variables(manner: str, url: str) -> dict[str, str]:
    """Every variable of the SDK's settings, with a plausible value or one that nobody can read; and all proxies."""
    found = {
        str(field.validation_alias or f"{each.model_config.get('env_prefix', '')}{name}").upper(): (
            harmful(field.annotation, field.default, url) if manner == "plausible" else "\x7f not a value"
        )
        for each in sdk_settings()
        for name, field in each.model_fields.items()
    }
    return found | dict.fromkeys(PROXIES, url)


def wanted_by(writer: LiveWriter) -> list[Any]:
    """A create by key, one under an id of ours, an update by id with a set of peers."""
    red = create(writer.live, "BuiltinTag", name={"value": "red"})
    site = create(writer.live, "LocationSite", name={"value": "s"})
    assert red
    tags = many("tags", "BuiltinTag", {"name": "red"})
    return [
        manufacturer("Arista", description="first"),
        device_type("Arista", "7050"),
        interface_template("Arista", "7050", "eth0"),
        update("LocationSite", {"name": "s"}, {"name": "s", "description": "d"}, tags, destination_id=site),
    ]


def on_the_wire(relay: HttpRelay, branch: str) -> list[bytes]:
    """What was sent, the branch and ids of the server's making replaced by words."""
    return [_ID.sub(b"<id>", request.replace(branch.encode(), b"<branch>")) for request in relay.requests]


@dataclass(frozen=True)
class Course:
    """How a run went: what was sent, and what is recorded of each attempt."""

    requests: list[bytes]
    outcomes: list[tuple[str, Any, Any, Any]]


async def course_of(writer: LiveWriter, relay: HttpRelay, hand: BindingWriter | None = None) -> Course:
    """Apply the run against all that may happen to it."""
    relay.requests.clear()
    relay.fates.extend(FATES)
    await writer.commit("run-1", wanted_by(writer))
    while (ending := (await (hand or writer.writer()).drain("run-1", by="ada")).ending) == "run.interrupted":
        await writer.resume("run-1")
    assert ending == "run.applied"
    assert not relay.fates, "each fate was met"
    outcomes = []
    for event in await writer.events("run-1"):
        if event.kind in OUTCOME_KINDS:
            body = json.loads(event.body)
            outcomes.append((event.kind, body.get("error"), body.get("http_status"), body.get("sent")))
    return Course(on_the_wire(relay, writer.branch), outcomes)


def test_the_variables_are_all_of_the_sdk(trap: Trap) -> None:
    names = hostile_variables("plausible", trap.url)
    assert {f"INFRAHUB_{field}".upper() for field in Config.model_fields} <= set(names)
    assert {"INFRAHUB_PROXY_MOUNTS_HTTP", "INFRAHUB_RETRY_ON_FAILURE", "INFRAHUB_RECORDER"} <= set(names)


@contextmanager
def hostile(
    writer: LiveWriter, relay: HttpRelay, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, variables: dict[str, str]
) -> Iterator[LiveWriter]:
    """A writer of another branch, in an empty folder, with everything set to harm."""
    branch = writer.live.infrahub.new_branch("hostile")
    folder = tmp_path / "empty"
    folder.mkdir(parents=True)
    with monkeypatch.context() as patched:
        for name, value in variables.items():
            patched.setenv(name, value)
        patched.chdir(folder)
        yield replace(writer, url=relay.url, branch=branch.name, live=branch, root=tmp_path / "disturbed")
    assert list(folder.iterdir()) == [], "something wrote a file"
    branch.discard()


@pytest.mark.rules("P99", "G5", "G6")
async def test_ff24_no_variable_changes_what_the_writer_sends_and_records_whatever_happens_to_its_requests(
    live_writer: LiveWriter,
    relay: HttpRelay,
    trap: Trap,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    calm = await course_of(live_writer, relay)
    told = [(kind.removeprefix("operation."), status) for kind, _, status, _ in calm.outcomes]
    assert told == [("unknown", None), ("applied", None), ("unknown", 503), *[("applied", None)] * 3]
    for manner in ("plausible", "unreadable"):
        variables = hostile_variables(manner, trap.url)
        with hostile(live_writer, relay, monkeypatch, tmp_path / manner, variables) as disturbed:
            assert await course_of(disturbed, relay) == calm
    assert trap.connections == 0


@pytest.mark.rules("P99", "G5", "G12")
async def test_ff24_no_variable_changes_whom_an_encrypted_connection_trusts_or_who_can_read_it(
    live_writer: LiveWriter, trap: Trap, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A key log would let whoever has it read the token out of every recorded connection."""
    async with http_relay(live_writer.live.url, tls=True) as relay:
        keys = tmp_path / "keys"
        variables = hostile_variables("plausible", trap.url) | {
            "SSLKEYLOGFILE": str(keys),
            "SSL_CERT_FILE": str(tmp_path / "nothing"),
            "SSL_CERT_DIR": str(tmp_path / "nothing"),
            "INFRAHUB_TLS_INSECURE": "true",
            "INFRAHUB_TLS_CA_FILE": str(CERTIFICATE),
        }
        calm = replace(live_writer, url=relay.url, root=tmp_path / "calm")
        expected = await course_of(calm, relay, trusting(calm))
        with hostile(live_writer, relay, monkeypatch, tmp_path, variables) as disturbed:
            assert await course_of(disturbed, relay, trusting(disturbed)) == expected
            # whoever is not told of the authority in the settings trusts nobody, and sends nothing
            relay.requests.clear()
            await disturbed.commit("run-2", [manufacturer("Cisco")], position=await disturbed.head())
            with pytest.raises(DestinationAwayError):
                await disturbed.writer().drain("run-2", by="ada")
            assert relay.requests == []
        # clients of the tests' own open it; whatever is no comment is a key
        logged = keys.read_text(encoding="ascii").splitlines() if keys.exists() else []
        assert [line for line in logged if not line.startswith("#")] == []
    assert trap.connections == 0


def trusting(writer: LiveWriter) -> BindingWriter:
    """The writer of a destination whose settings name the relay's authority."""
    settings = writer.destination.model_copy(update={"ca_file": CERTIFICATE})
    return writer.writer(InfrahubOpener(declared(settings)))


@pytest.mark.rules("P99", "G5", "G12")
async def test_ff24_no_variable_changes_what_the_program_does(
    live_program: LiveProgram, relay: HttpRelay, trap: Trap, tmp_path: Path
) -> None:
    (tmp_path / "rows").mkdir()
    (tmp_path / "rows/tags.jsonl").write_text('{"id": "1", "name": "red"}\n{"id": "2", "name": "blue"}\n')
    configuration = tmp_path / "config.yml"
    configuration.write_text(CONFIGURATION)
    through = replace(live_program.branch, infrahub=replace(live_program.branch.infrahub, url=relay.url))
    wires = []
    for number, variables in enumerate(({}, hostile_variables("plausible", trap.url))):
        branch = live_program.branch.infrahub.new_branch("program")
        folder = tmp_path / str(number)
        folder.mkdir()
        given = {name: value for name, value in variables.items() if name not in OURS}
        given["XDG_CACHE_HOME"] = str(folder / "cache")  # what one has fetched the other fetches again
        program = LiveProgram(folder, live_program.database, replace(through, name=branch.name), given)
        relay.requests.clear()
        planned = await asyncio.to_thread(program.plan, configuration)
        summary = await asyncio.to_thread(program.apply, planned)
        assert summary["state"] == "applied"
        wires.append(on_the_wire(relay, branch.name))
        branch.discard()
    assert wires[0] == wires[1]
    assert trap.connections == 0


CONFIGURATION = """
name: tags
source: {name: jsonl, settings: {directory: rows}}
destination: {name: infrahub}
schema_mapping:
  - name: BuiltinTag
    mapping: tags
    identifiers: [name]
    fields: [{name: name, mapping: name}]
"""
