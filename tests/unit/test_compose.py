"""The compose file and the image: right by the specification, and right about this program."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import typer.main
import yaml
from compose_spec import PyCompose

from ledger.cli.main import application
from ledger.cli.settings import load_settings

ROOT = Path(__file__).resolve().parents[2]
TEXT = re.sub(r"(?m)^ *#.*$", "", (ROOT / "docker-compose.yml").read_text(encoding="utf-8"))
COMPOSE: dict[str, Any] = yaml.safe_load(TEXT)
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
OURS = {name: service for name, service in SERVICES.items() if service["image"] == "apply-ledger:local"}
VARIABLE = re.compile(r"\$\$|\$\{(?P<name>[A-Z_]+)(?::-(?P<default>[^}]*))?\}")


def interpolated(given: dict[str, str]) -> dict[str, Any]:
    """What compose makes of the file before it looks at it, with these variables set and no others."""
    text = VARIABLE.sub(
        lambda found: "$$" if found["name"] is None else given.get(found["name"]) or found["default"] or "", TEXT
    )
    document: dict[str, Any] = yaml.safe_load(text)
    return document


def judged(document: dict[str, Any]) -> PyCompose:
    """By the specification; merge keys are resolved, which the judge leaves to its caller."""
    return PyCompose.from_yaml(yaml.safe_dump(document))


@pytest.mark.parametrize("given", [{}, {"POSTGRES_PORT": "15432", "KAFKA_PORT": "29092", "RUNS": "/srv/runs"}])
def test_the_file_is_right_by_the_specification(given: dict[str, str]) -> None:
    assert "$" not in VARIABLE.sub("", TEXT), "a form of interpolation that this test does not know"
    assert set(judged(interpolated(given)).service_names()) == set(SERVICES)


@pytest.mark.parametrize(
    "fault",
    [
        ("restart: unless-stopped", "restart: sometimes"),
        ("healthcheck:", "healthcheque:"),
        ("condition: service_healthy", "condition: service_well"),
    ],
)
def test_a_fault_in_the_file_would_be_found(fault: tuple[str, str]) -> None:
    broken = yaml.safe_dump(interpolated({})).replace(*fault)
    with pytest.raises(ValueError, match=r"services\."):
        PyCompose.from_yaml(broken)


def test_whatever_a_service_names_is_there_and_can_come_about() -> None:
    for name, service in SERVICES.items():
        for other, how in service.get("depends_on", {}).items():
            waited_for = SERVICES[other]
            if how["condition"] == "service_healthy":
                assert "healthcheck" in waited_for, f"{name} waits for {other}, which never tells its health"
            elif how["condition"] == "service_completed_successfully":
                assert waited_for["restart"] == "no", f"{name} waits for the end of {other}, which is started again"
            assert set(waited_for.get("profiles", ())) <= set(service.get("profiles", ())), f"{name} needs {other}"
        named = [str(volume).split(":")[0] for volume in service.get("volumes", ())]
        assert {volume for volume in named if re.fullmatch("[a-z-]+", volume)} <= set(COMPOSE["volumes"])
        assert {config["source"] for config in service.get("configs", ())} <= set(COMPOSE.get("configs", {}))
    assert {"postgres", "kafka", "worker", "api"} <= set(SERVICES)
    assert all("healthcheck" in SERVICES[name] for name in ("postgres", "kafka", "worker", "api"))


@pytest.mark.parametrize("name", OURS)
def test_each_command_is_one_of_this_program(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = [str(argument) for argument in OURS[name]["command"]]
    command = typer.main.get_command(application())
    with pytest.raises(SystemExit) as ended:
        command.main([*arguments, "--help"], prog_name="apply-ledger")
    assert ended.value.code == 0
    assert f"Usage: apply-ledger {arguments[0]}" in capsys.readouterr().out


@pytest.mark.parametrize("name", OURS)
@pytest.mark.rules("G12")
def test_g12_each_environment_is_one_of_this_program_and_holds_no_password(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = {"INFRAHUB_ADDRESS": "https://infrahub.example.com", "INFRAHUB_API_TOKEN": "t", "LEDGER_PASSWORD": "p"}
    environment = interpolated(given)["services"][name]["environment"]
    for key, value in environment.items():
        monkeypatch.setenv(key, value or "")
    settings = load_settings(config=None)
    assert bool(settings.destination) == (name in ("worker", "api"))
    assert settings.kafka.is_configured == (name != "migrate")
    for dsn in (settings.dsn, settings.admin_dsn):
        assert dsn is None or re.fullmatch(r"postgresql://[a-z_]+@postgres:5432/apply_ledger", dsn.get_secret_value())


def test_the_image_copies_what_is_there_and_runs_as_a_user_of_its_own() -> None:
    lines = (ROOT / "Dockerfile").read_text(encoding="utf-8").splitlines()
    allowed = set((ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines())
    for line in (line for line in lines if line.startswith("COPY ")):
        for source in line.split()[1:-1]:
            assert (ROOT / source).exists(), source
            assert f"!{source}" in allowed, f"{source} is kept out by .dockerignore"
    assert [line for line in lines if line.startswith("USER ")] == ["USER apply-ledger"]
    assert lines.index("USER apply-ledger") < lines.index('ENTRYPOINT ["apply-ledger"]')
    assert SERVICES["worker"]["build"] == "."
