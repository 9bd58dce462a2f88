"""No secret is stored or shown (G12): planted in every place, used, and then looked for in every place.

One operator's day, with real processes, a real database of its own and a destination that tells all it was sent. Each
step proves that its secret was really there. At the end every byte that the day left behind is searched.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import asyncpg
import pytest

from consumers.infrahub.sandbox.server import RunningSandbox
from ledger.plan.checksum import plan_checksum
from ledger.store.embedded import Dsns, EmbeddedPostgres
from tests.canary import canaries, remains
from tests.canary.canaries import PLANTED, Found, search
from tests.canary.echoing import ECHOES, EchoingDestination
from tests.canary.workplace import Workplace
from tests.support.field_schema import field_schema

pytestmark = [pytest.mark.integration, pytest.mark.rules("G12")]


@pytest.fixture(scope="module")
def sandbox() -> Iterator[RunningSandbox]:
    with RunningSandbox(field_schema(), token=canaries.TOKEN) as running:
        running.store.create("LabSafe", {"name": "main safe", "code": canaries.STORED_PASSWORD}, branch="main")
        yield running


@pytest.fixture(scope="module")
def echoing(sandbox: RunningSandbox) -> Iterator[EchoingDestination]:
    with EchoingDestination(sandbox.url) as destination:
        yield destination


@pytest.fixture(scope="module")
def data_dir() -> Iterator[Path]:
    # the server's own account must be able to pass through every parent, so not below root's private folders
    folder = Path(tempfile.mkdtemp(prefix="apply-ledger-canary-"))
    os.chmod(folder, 0o755)
    yield folder / "ledger"
    asyncio.run(EmbeddedPostgres(folder / "ledger").stop())
    shutil.rmtree(folder)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory, echoing: EchoingDestination, data_dir: Path) -> Workplace:
    workplace = Workplace(tmp_path_factory.mktemp("canary"), echoing.url, data_dir)
    workplace.prepare()
    return workplace


def test_g12_the_token_is_used_from_each_place_and_shown_from_none(
    place: Workplace, echoing: EchoingDestination
) -> None:
    planned = place.plan("tags")
    assert canaries.TOKEN in echoing.tokens
    place.run("show", planned["run"])
    place.apply(planned, "--reason", "first import")
    for options, configuration in ((("--config", "with-file.toml"), "tags.yml"), ((), "own-token.yml")):
        echoing.tokens.clear()
        place.run(*options, "plan", "--config-file", configuration, INFRAHUB_API_TOKEN="")
        assert echoing.tokens == {canaries.TOKEN}
    assert "INFRAHUB_API_TOKEN" in place.last_said()


def test_ff37_echoed_credentials_and_those_in_an_operators_words_are_not_recorded(
    place: Workplace, echoing: EchoingDestination
) -> None:
    place.tags("prod", "echoed")
    planned = place.plan("tags")
    try:
        for number, echo in enumerate(ECHOES.values()):
            echoing.echo, echoing.answered = echo, 0
            if number == 0:
                place.apply(planned, code=5)
            else:
                place.run("resume", planned["run"], "--reason", "once more", code=5)
            assert echoing.answered == 1
    finally:
        echoing.echo = None
    place.run("runs", "show", planned["run"])
    place.run("resume", planned["run"], "--reason", f"the token is {canaries.TOKEN}, see the wiki", code=64)
    assert "SecretInWordsError" in place.last_said()
    place.apply(planned, "--actor", f"me:{canaries.TOKEN}", code=64)


@pytest.mark.parametrize(
    "address",
    [
        f"https://operator:{canaries.USER_INFO}@infrahub.invalid/?token={canaries.QUERY}",
        f"https://operator:{canaries.USER_INFO}@infrahub.invalid:notaport/?token={canaries.QUERY}#{canaries.QUERY}",
    ],
    ids=["an address", "no address"],
)
def test_g12_an_address_with_a_credential_is_refused_without_showing_it(place: Workplace, address: str) -> None:
    assert place.try_it("plan", "--config-file", "tags.yml", INFRAHUB_ADDRESS=address) != 0
    assert "address" in place.last_said()
    planted = place.folder / "with-alias.toml"
    planted.write_text(f'[[destination]]\nurl = "{place.url}"\naliases = ["{address}"]\n')
    place.try_it("--config", planted.name, "runs")
    planted.unlink()


def test_g12_a_password_is_neither_planned_nor_read_back(place: Workplace, sandbox: RunningSandbox) -> None:
    place.run("plan", "--config-file", "codes.yml", code=3)
    assert "(LabSafe).code" in place.last_said()
    assert place.plan("safes")["counts"]["none"] == 1
    (safe,) = [item for item in sandbox.store.content(branch="main") if canaries.STORED_PASSWORD in str(item)]
    assert "main safe" in str(safe)


def test_ff37_a_manifest_with_a_credential_beside_its_binding_is_refused(place: Workplace) -> None:
    place.tags("prod", "forged")
    planned = place.plan("tags")
    folder = place.runs / planned["run"] / "plan"
    manifest, operations = (
        json.loads((folder / "manifest.json").read_text()),
        (folder / "operations.jsonl").read_bytes(),
    )
    binding = manifest["destination_binding"]
    forgeries = [
        {**binding, "token": canaries.MANIFEST},
        {**binding, "url": binding["url"].replace("//", f"//operator:{canaries.MANIFEST}@")},
        {**binding, "url": f"{binding['url']}/?token={canaries.MANIFEST}"},
    ]
    for number, forged in enumerate(forgeries):
        document = {**manifest, "destination_binding": forged}
        document["plan_checksum"] = plan_checksum(document, operations)
        (folder / "manifest.json").write_text(json.dumps(document))
        ended = place.try_it("apply", planned["run"], "--expected-checksum", document["plan_checksum"])
        assert ended != 0, f"forgery {number}"
    shutil.rmtree(folder.parent)  # the forgeries themselves are no remains of ours


_DEFECTIVE = """
import consumers.infrahub.write_surface as surface

def upsert(kind, payload, peers, *, destination_id):
    import os
    token = os.environ["INFRAHUB_API_TOKEN"]
    raise RuntimeError("a defect with " + str(kind.kind))

surface.upsert = upsert
from ledger.cli.main import run
run()
"""


def test_g12_a_defect_leaves_a_traceback_without_secrets(place: Workplace) -> None:
    place.tags("prod", "defect")
    planned = place.plan("tags")
    defective = place.folder / "defective.py"
    defective.write_text(_DEFECTIVE)
    order = ("apply", planned["run"], "--expected-checksum", planned["plan_checksum"])
    done = subprocess.run(
        [sys.executable, str(defective), "-v", *order],
        cwd=place.folder,
        env={**place.environment, "PYTHONPATH": str(Path(__file__).parents[2])},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
    )
    place.keep("apply with a defect", done.stdout, done.stderr)
    assert done.returncode == 1
    assert b"RuntimeError: a defect with LabTag" in done.stderr


def test_g12_the_passwords_of_a_database_are_used_and_shown_nowhere(place: Workplace) -> None:
    dsns = asyncio.run(EmbeddedPostgres(place.data_dir).ensure_running())
    own = asyncio.run(_own_role(dsns))
    for command in ("runs", "verify", "migrate"):
        place.run(command, APPLY_LEDGER_DSN=own, APPLY_LEDGER_ADMIN_DSN=dsns.admin)
    for wrong in (
        own.replace(canaries.DSN, canaries.DSN * 2),
        f"postgresql://me:{canaries.DSN}@[::1/nowhere?{canaries.DSN}",
        f"password={canaries.DSN} host=",
    ):
        place.run("runs", code=1, APPLY_LEDGER_DSN=wrong)


async def _own_role(dsns: Dsns) -> str:
    connection = await asyncpg.connect(dsns.admin)
    try:
        await connection.execute(f"create role canary login password '{canaries.DSN}'")
        await connection.execute("grant ledger_writer, ledger_projector to canary")
    finally:
        await connection.close()
    parts = urlsplit(dsns.admin)
    return parts._replace(netloc=f"canary:{canaries.DSN}@{parts.netloc.rpartition('@')[2]}").geturl()


@pytest.mark.parametrize(
    ("number", "command"), [(signal.SIGSEGV, "apply"), (signal.SIGABRT, "work")], ids=["SEGV", "ABRT"]
)
def test_g12_a_crash_in_a_write_shows_no_secret(
    place: Workplace, echoing: EchoingDestination, number: signal.Signals, command: str
) -> None:
    place.tags("prod", f"crash of {command}")
    planned = place.plan("tags")
    order = (planned["run"], "--expected-checksum", planned["plan_checksum"])
    if command == "work":
        place.run("commit", *order, "--reason", "for the service")
    echoing.held.clear()
    echoing.hold = threading.Event()
    process = place.start(command, *(order if command == "apply" else ()))
    try:
        assert echoing.held.wait(60)
        place.said += remains.of_process(process.pid, environment=False)
        assert canaries.PROXY.encode() in dict(remains.of_process(process.pid))[f"environment of {process.pid}"]
    finally:
        process.send_signal(number)
        stderr = place.end(process)
        echoing.hold.set()
        echoing.hold = None
    assert process.returncode == -number
    assert b"Fatal Python error" in stderr
    assert b"Current thread" in stderr, "this is the dump of faulthandler"


def test_g12_nothing_of_all_this_is_found_anywhere(place: Workplace) -> None:
    """The last one: it searches what the others left."""
    place.run("runs", "--output", "ndjson")
    place.run("replay", "--output", "ndjson")
    place.run("verify")
    server = EmbeddedPostgres(place.data_dir)
    passwords = json.loads((place.data_dir / "credentials.json").read_text())
    secrets = PLANTED | {f"embedded database's {role}": password for role, password in passwords.items()}
    pid = server.status().pid
    assert pid is not None
    dsns = asyncio.run(server.ensure_running())
    found = _searched(secrets, place, dsns, pid)
    assert found == [], "\n".join(f"{item.secret} in {item.place}: {item.around}" for item in found)


def _searched(secrets: dict[str, str], place: Workplace, dsns: Dsns, pid: int) -> list[Found]:
    rows = asyncio.run(_rows(dsns))
    assert sum(name.startswith("ledger.") for name, _ in rows) > 50, "the ledger was searched"
    left = [*place.left(), *remains.of_runs(place.runs), *remains.of_process(pid)]
    assert sum(name.startswith("rows of") for name, _ in left) > 5, "the packed snapshots were searched"
    files = list(remains.of_cluster(place.data_dir))
    for places in (rows, left, files):
        assert search(places, {"what is no secret": "first import"}), "what was recorded is found where it must be"
    return search([*rows, *left, *files], secrets)


async def _rows(dsns: Dsns) -> list[tuple[str, bytes]]:
    return [item async for item in remains.of_ledger(dsns.admin)]


@pytest.mark.parametrize("name", PLANTED)
def test_the_search_would_find_each_of_them(name: str) -> None:
    for needle in canaries.spellings(PLANTED[name]):
        assert len(needle) >= 12
        assert [item.secret for item in search([("somewhere", b"..." + needle + b"...")], PLANTED)][:1] == [name]
