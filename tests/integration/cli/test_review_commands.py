"""``plan`` and ``show`` for those who decide: what was planned, whose objects it changes, and how it goes on."""

from __future__ import annotations

import asyncio
import json
from datetime import UTC, datetime
from typing import Any

import pytest

from consumers.infrahub.sandbox.faults import FaultRule
from ledger.destination import IncompleteExtractionError
from tests.support.command_here import CommandHere
from tests.support.command_line import CONFIGURATION, CommandLine

pytestmark = pytest.mark.integration

PLAN = ("plan", "--config-file", "config.yml")
FILTERED = CONFIGURATION.replace(
    "    identifiers", "    filters: [{field: name, operation: '!=', value: lab}]\n    identifiers"
)


def planned(here: CommandHere, *options: str) -> dict[str, Any]:
    done = here.run(*PLAN, "--output", "json", *options)
    assert done.returncode == 0, done.stderr
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def test_3_a_misspelt_source_setting_is_refused_and_nothing_is_planned(cli: CommandLine, here: CommandHere) -> None:
    cli.source({"name": "a"})
    done = here.run(*PLAN, "--source-setting", "dir=elsewhere")
    assert done.returncode == 3
    assert "UnknownSourceSettingError" in done.stderr
    assert "dir (did you mean directory?) in --source-setting" in done.stderr
    path = cli.folder / "config.yml"
    path.write_text(CONFIGURATION.replace("directory: data", "directory: data, directroy: other"), encoding="utf-8")
    done = here.run(*PLAN)
    assert done.returncode == 3
    assert "directroy (did you mean directory?)" in done.stderr
    assert list(cli.folder.glob("runs/tags/*/plan")) == []


def test_a_review_says_what_was_read_with_which_file_and_which_overrides(cli: CommandLine, here: CommandHere) -> None:
    cli.source({"name": "a"}, {"name": "lab"}, {"name": "b"})
    (cli.folder / "config.yml").write_text(FILTERED, encoding="utf-8")
    made = here.run(*PLAN, "--source-setting", "directory=./data")
    assert made.returncode == 0, made.stderr
    run = next(row.split()[3] for row in made.stderr.splitlines() if row.startswith("next: apply-ledger show "))
    for said in (made, here.run("show", run), here.run("show", run, "--detail")):
        rows = [" ".join(row.split()) for row in said.stdout.splitlines()]
        assert f"file {cli.folder / 'config.yml'}" in rows
        assert f"read from {cli.folder / 'data'}" in rows
        assert "overrides directory=./data" in rows
        assert "1 of 3 rows of tags" in rows
        assert said.stderr.splitlines()[-1].startswith(f"next: apply-ledger apply {run} --expected-checksum ")
    document = json.loads(here.run("show", run, "--output", "json").stdout)
    assert document["origin"] == {
        "configuration": str(cli.folder / "config.yml"),
        "location": str(cli.folder / "data"),
        "source_settings": {"directory": "./data"},
        "source_rows": {"tags": {"read": 3, "left_out": 1}},
        "warnings": ["schema_mapping.0 (BuiltinTag).description: no row of tags has description"],
    }


def test_warnings_of_a_plan_are_in_its_review_too(cli: CommandLine, here: CommandHere) -> None:
    cli.source({"name": "a"})
    (cli.folder / "config.yml").write_text(f"{CONFIGURATION}descripton: x\n", encoding="utf-8")
    made = here.run(*PLAN)
    warnings = [
        "unknown key descripton: ignored",
        "schema_mapping.0 (BuiltinTag).description: no row of tags has description",
    ]
    assert [made.stderr.count(warning) for warning in warnings] == [1, 1]
    assert "Warnings when this plan was made" not in made.stdout
    shown = here.run("show", planned(here)["run"])
    assert "Warnings when this plan was made (2)" in shown.stdout
    assert all(f"* {warning}" in shown.stdout for warning in warnings)


def test_where_nothing_is_to_be_written_no_apply_is_proposed(cli: CommandLine, here: CommandHere) -> None:
    cli.source({"name": "a"}, {"name": "b"})
    assert cli.apply(planned(here)).returncode == 0
    cli.source({"name": "a"})
    made = here.run(*PLAN)
    assert "1 remove" in made.stdout
    shown = here.run("show", planned(here)["run"])
    assert "apply-ledger apply" not in made.stderr + shown.stderr


def test_64_a_kind_that_the_plan_is_not_about(cli: CommandLine, here: CommandHere) -> None:
    cli.source({"name": "a"})
    run = planned(here)["run"]
    for form in ("table", "json"):
        done = here.run("show", run, "--kind", "BuiltinTags", "--output", form)
        assert (done.returncode, done.stdout) == (64, "")
        assert "BuiltinTags (did you mean BuiltinTag?)" in done.stderr
    assert here.run("show", run, "--kind", "BuiltinTag").returncode == 0
    done = here.run(*PLAN, "--allow-rowcount-drop-of", "Tag")
    assert done.returncode == 64
    assert "Tag (did you mean BuiltinTag?)" in done.stderr


def test_a_review_says_which_other_source_wrote_an_object_last_and_how_it_goes_on(
    cli: CommandLine, here: CommandHere
) -> None:
    cli.source({"name": "a", "description": "ours"}, {"name": "b"})
    first = planned(here)
    assert cli.apply(first).returncode == 0
    committed = here.run("show", first["run"])
    assert committed.stderr.splitlines()[-1] == f"next: apply-ledger runs show {first['run']}"
    cli.source({"name": "a", "description": "theirs"}, {"name": "c"})
    (cli.folder / "config.yml").write_text(CONFIGURATION.replace("name: tags", "name: others", 1), encoding="utf-8")
    made = here.run(*PLAN)
    second = planned(here)
    short, detail = here.run("show", second["run"]), here.run("show", second["run"], "--detail")
    for said in (made, short, detail):
        assert "1 update changes an object that another source wrote last: tags 1" in said.stdout
        assert "is of an object that another source" not in said.stdout
    assert "last written by tags: BuiltinTag 1; --detail lists them" in short.stdout
    assert f"last written by tags, run {first['run_id']}, position " in detail.stdout
    document = json.loads(here.run("show", second["run"], "--output", "json").stdout)
    writers = {item["identity"]["name"]: item["last_writer"] for item in document["resources"]}
    assert writers == {"a": "tags", "b": "tags", "c": None}


def test_ff02_a_drop_of_one_kind_can_be_allowed_by_name(cli: CommandLine, here: CommandHere) -> None:
    cli.source(*({"name": f"t{number}"} for number in range(5)))
    assert cli.apply(planned(here)).returncode == 0
    cli.source({"name": "t0"})
    refused = here.run(*PLAN)
    assert refused.returncode == 3
    assert sum(row.split()[:1] == ["next"] for row in refused.stderr.splitlines()) == 1
    assert planned(here, "--allow-rowcount-drop-of", "BuiltinTag")["counts"]["remove"] == 4


@pytest.mark.parametrize("ended", [False, True])
@pytest.mark.rules("G11")
def test_g11_a_moving_destination_is_told_with_its_writer(
    cli: CommandLine, here: CommandHere, monkeypatch: pytest.MonkeyPatch, ended: bool
) -> None:
    cli.source({"name": "a"}, {"name": "b"})
    first = planned(here)
    held = cli.sandbox.faults.add(FaultRule(kind="BuiltinTag", branch=cli.branch, nth=2, hold="before-answer"))
    began = datetime.now(UTC).replace(microsecond=0)
    process = None

    async def load(*_: Any) -> None:
        nonlocal process
        process = cli.start("apply", first["run"], "--expected-checksum", first["plan_checksum"])
        assert await asyncio.to_thread(held.wait_reached, 60)
        if ended:
            held.release()
            await asyncio.to_thread(process.communicate, timeout=60)
        raise IncompleteExtractionError(checked="c", expected="2 objects", found="1 object", next_action="again")

    monkeypatch.setattr("producers.loading.load_destination", load)
    done = here.run(*PLAN)
    held.release()
    assert process is not None
    process.communicate(timeout=60)
    assert done.returncode == 3
    found = next(row for row in done.stderr.splitlines() if row.strip().startswith("found"))
    how = "wrote here meanwhile, last at" if ended else "is being applied to this destination, since"
    assert f"1 object; run {first['run_id']} of source tags {how} " in found
    moment = datetime.strptime(found.split()[-1], "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=UTC)
    assert began <= moment <= datetime.now(UTC)
    assert f"plan again when run {first['run_id']} has ended" in done.stderr
