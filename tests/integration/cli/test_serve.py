"""``serve`` and ``token`` as a person meets them: processes, files, a sandbox and a real writer."""

from __future__ import annotations

import json
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx
import pytest

from tests.support.command_here import CommandHere
from tests.support.command_line import CommandLine

pytestmark = pytest.mark.integration


@contextmanager
def _serving(cli: CommandLine, *options: str) -> Iterator[str]:
    """`serve` on a free port; the address of the API. It ends with 0 at SIGTERM."""
    process = cli.start("serve", "--port", "0", *options)
    assert process.stderr is not None
    line = process.stderr.readline()
    assert line.startswith("the ledger at "), line + process.stderr.read()
    yield line.removeprefix("the ledger at ").strip()
    process.send_signal(signal.SIGTERM)
    _, stderr = process.communicate(timeout=60)
    assert process.returncode == 0, stderr
    assert "Traceback" not in stderr


def _follow(url: str, run: dict[str, Any], until: set[str]) -> list[str]:
    kinds = []
    path = f"{url}/bindings/{run['binding_id']}/runs/{run['run_id']}/events/stream"
    with httpx.stream("GET", path, timeout=60.0) as response:
        for line in response.iter_lines():
            if line.startswith("event: "):
                kinds.append(line.removeprefix("event: "))
                if kinds[-1] in until:
                    return kinds
    raise AssertionError(f"the stream ended after {kinds}")


def test_a_plan_is_committed_over_http_and_followed_to_its_end(
    cli: CommandLine, here: CommandHere, service: subprocess.Popen[str]
) -> None:
    cli.source({"name": "one", "description": "first"}, {"name": "two", "description": "second"})
    planned = json.loads(here.run("plan", "--config-file", "config.yml", "--output", "json").stdout)
    with _serving(cli, "--local") as url, httpx.Client(timeout=60.0) as client:
        order = {"run": planned["run"], "expected_checksum": planned["plan_checksum"], "reason": "from the page"}
        wrong = client.post(f"{url}/commits", json=order | {"expected_checksum": "0" * 64})
        assert (wrong.status_code, wrong.json()["code"]) == (409, "UnexpectedChecksumError")
        trace = "00-" + "a" * 32 + "-" + "b" * 16 + "-01"
        taken = client.post(f"{url}/commits", json=order, headers={"traceparent": trace})
        assert taken.status_code == 202, taken.text
        kinds = _follow(url, taken.json(), {"run.applied", "run.failed", "plan.refused"})
        assert kinds == ["plan.committed", "run.started", "operation.applied", "operation.applied", "run.applied"]
        again = client.post(f"{url}/commits", json=order)
        assert (again.status_code, again.json()["first"]) == (202, False)
        run = client.get(url.removesuffix("/api/v1") + taken.headers["location"]).json()
        assert (run["state"], run["applied"], run["commit"]["reason"]) == ("applied", 2, "from the page")
        assert (run["commit"]["traceparent"], run["actor"]) == (trace, "local")
    shown = json.loads(here.run("runs", "show", planned["run"], "--output", "json").stdout)
    assert (shown["state"], shown["applied"]) == ("applied", 2)


def test_tokens_are_made_listed_used_and_revoked(cli: CommandLine, here: CommandHere) -> None:
    made = here.run("token", "create", cli.branch, "--role", "reader", "--expires-in", "1")
    assert made.returncode == 0, made.stderr
    token = made.stdout.strip()
    assert token not in made.stderr
    assert "shown this once" in made.stderr
    again = here.run("token", "create", cli.branch, "--role", "operator")
    assert (again.returncode, "TokenNameTakenError" in again.stderr) == (3, True)
    listed = here.run("token", "list", "--output", "json")
    assert token not in listed.stdout
    [mine] = [row for row in json.loads(listed.stdout) if row["name"] == cli.branch]
    assert (mine["role"], mine["state"], mine["token_id"]) == ("reader", "works", token[4:20])
    with _serving(cli) as url:
        headers = {"Authorization": f"Bearer {token}"}
        assert httpx.get(f"{url}/runs", headers=headers).status_code == 200
        assert httpx.get(f"{url}/runs").status_code == 401
        assert here.run("token", "revoke", mine["token_id"]).returncode == 0
        assert httpx.get(f"{url}/runs", headers=headers).status_code == 401
    assert here.run("token", "revoke", "no such token").returncode == 1
    assert here.run("token", "create", "a\nb", "--role", "reader").returncode == 64
    secret = here.run("stop", "20261129T1900-0a1b2c3d", "--reason", f"see {token}")
    assert (secret.returncode, token in secret.stderr) == (64, False)


@pytest.mark.rules("G12")
@pytest.mark.parametrize(
    ("variables", "warned"),
    [({}, True), ({"APPLY_LEDGER_API__SECURE_COOKIES": "true"}, False)],
    ids=["plain", "proxied"],
)
def test_g12_plain_http_is_warned_of(cli: CommandLine, variables: dict[str, str], warned: bool) -> None:
    cli.variables |= variables
    process = cli.start("serve", "--port", "0", "--host", "0.0.0.0")
    assert process.stderr is not None
    served = [process.stderr.readline() for _ in range(2)]
    process.send_signal(signal.SIGTERM)
    with process:  # what was read ahead of these lines is in the same buffer; ``communicate`` would pass it over
        told = "".join(served) + process.stderr.read()
    assert "its pages at" in told
    assert ("pass the network in clear" in told) is warned


def test_local_mode_on_an_address_that_others_reach_is_refused(here: CommandHere) -> None:
    done = here.run("serve", "--local", "--host", "0.0.0.0", "--port", "0")
    assert (done.returncode, "UnguardedAddressError" in done.stderr) == (1, True)
    half = here.run("serve", "--tls-certificate", "chain.pem")
    assert half.returncode == 64
