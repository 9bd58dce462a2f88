"""The examples in ``docs/deploy`` fit the program: metrics exist, settings are read, commands are commands."""

from __future__ import annotations

import configparser
import os
import re
import shlex
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from ledger.cli.main import main
from ledger.cli.settings import PREFIX, Settings, load_settings
from ledger.exit_codes import ExitCode
from ledger.metrics.declaring import Metric
from ledger.metrics.table import METRICS

FOLDER = Path(__file__).resolve().parents[2] / "docs" / "deploy"
UNITS = sorted(FOLDER.glob("*.service"))

SERIES: Mapping[str, Metric] = {name: metric for metric in METRICS for name in metric.series}
_WORDS = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]*")
_SELECTED = re.compile(r"(apply_ledger_\w+)(?:\{([^}]*)\})?")
_MATCHER = re.compile(r'(\w+)(?:=~|!~|!=|=)"([^"]*)"')
_GROUPED = re.compile(r"\b(?:by|on) \(([^)]*)\)")
_TEMPLATE = re.compile(r"\$labels\.(\w+)")
_TARGET_LABELS = {"instance", "job"}
"""Added by Prometheus itself."""


def _rules() -> Iterator[dict[str, Any]]:
    document = yaml.safe_load((FOLDER / "alerts.yml").read_text(encoding="utf-8"))
    assert set(document) == {"groups"}
    for group in document["groups"]:
        assert set(group) == {"name", "rules"}
        yield from group["rules"]


RULES = list(_rules())


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule["alert"])
def test_an_alert_asks_for_series_and_labels_that_exist(rule: dict[str, Any]) -> None:
    expression = rule["expr"]
    selected = _SELECTED.findall(expression)
    assert selected, expression
    assert set(re.findall(r"apply_ledger_\w+", expression)) <= set(SERIES), expression
    labels: set[str] = set(_TARGET_LABELS)
    for name, matchers in selected:
        known = {label.name: label.values for label in SERIES[name].labels}
        labels |= set(known)
        for label, pattern in _MATCHER.findall(matchers):
            assert label in known, (name, label)
            for value in pattern.split("|") if known[label] else ():
                assert value in known[label], (name, label, value)
    for grouped in _GROUPED.findall(expression):
        assert set(_WORDS.findall(grouped)) <= labels, expression
    shown = set(_TEMPLATE.findall(" ".join(rule["annotations"].values())))
    kept = [set(_WORDS.findall(grouped)) for grouped in _GROUPED.findall(expression)]
    assert shown <= (set.union(*kept) if kept else labels), rule["alert"]


def test_an_alert_says_how_bad_it_is_what_it_is_and_what_to_do() -> None:
    assert len({rule["alert"] for rule in RULES}) == len(RULES)
    for rule in RULES:
        assert set(rule) <= {"alert", "expr", "for", "labels", "annotations"}, rule
        assert rule["labels"]["severity"] in ("warning", "critical"), rule["alert"]
        assert all(rule["annotations"][name].strip() for name in ("summary", "description")), rule["alert"]
        assert re.fullmatch(r"\d+[mhd]", rule.get("for", "1m")), rule["alert"]
        assert expression_is_balanced(rule["expr"]), rule["alert"]


def expression_is_balanced(expression: str) -> bool:
    depth = 0
    for character in expression:
        depth += (character in "([{") - (character in ")]}")
        if depth < 0:
            return False
    return depth == 0


def test_the_example_of_settings_is_read_by_the_program(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith((PREFIX, "INFRAHUB_"))]:
        monkeypatch.delenv(name)
    settings = load_settings(config=FOLDER / "apply-ledger.toml.example")
    assert [destination.url for destination in settings.destination] == ["https://infrahub.example.com"]
    assert settings.kafka.is_configured
    assert settings.checkpoint_events == 10_000


def test_each_key_that_the_example_leaves_out_is_a_key_as_well() -> None:
    text = (FOLDER / "apply-ledger.toml.example").read_text(encoding="utf-8")
    in_table = {"aliases", "ca_file"}
    for key in re.findall(r"^# (\w+) = ", text, re.MULTILINE):
        assert key in in_table | set(Settings.model_fields), key


@pytest.mark.parametrize("path", UNITS, ids=lambda path: path.name)
def test_a_unit_starts_a_command_that_exists_with_options_that_it_has(
    path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    program, *arguments = shlex.split(_unit(path)["Service"]["ExecStart"])
    assert Path(program).name == "apply-ledger"
    assert arguments[0] == "--config"
    assert main([*arguments, "--help"]) == ExitCode.DONE  # every option is looked up before help is shown
    assert re.search(r"Usage: .* (work|serve) \[OPTIONS\]", capsys.readouterr().out)
    assert main([*arguments, "--no-such-option", "--help"]) == ExitCode.USAGE


@pytest.mark.parametrize("path", UNITS, ids=lambda path: path.name)
def test_a_unit_sets_variables_that_the_program_reads_and_ends_it_in_its_own_time(path: Path) -> None:
    service = _unit(path)["Service"]
    names = {line.split("=", 1)[0] for line in service["Environment"].splitlines()}
    assert {name for name in names if name.startswith(PREFIX)} <= {f"{PREFIX}DSN_FILE"}
    assert service["KillSignal"] == "SIGTERM"
    if path.name == "apply-ledger.service":
        settings = load_settings(config=FOLDER / "apply-ledger.toml.example")
        assert float(service["TimeoutStopSec"]) > settings.writer.request_timeout + settings.writer.margin
        assert str(settings.destination[0].token_file).startswith(f"/run/credentials/{path.name}/")


def test_there_are_units_to_look_at() -> None:
    assert {path.name for path in UNITS} == {"apply-ledger.service", "apply-ledger-serve.service"}


def _unit(path: Path) -> Mapping[str, Mapping[str, str]]:
    """A unit file; a key that is given several times holds all its values, a line each."""

    class Several(dict[str, Any]):
        def __setitem__(self, key: str, value: Any) -> None:
            if isinstance(value, list) and isinstance(self.get(key), list):
                value = [*self[key], *value]
            super().__setitem__(key, value)

    parser = configparser.RawConfigParser(strict=False, dict_type=Several, interpolation=None)
    parser.optionxform = str  # type: ignore[assignment,method-assign] # as the module's documentation says
    parser.read_string(path.read_text(encoding="utf-8"))
    return {section: dict(parser[section]) for section in parser.sections()}
