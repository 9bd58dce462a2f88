"""FF02: a short answer of a source is no mass removal."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from ledger.exit_codes import ExitCode
from ledger.plan.review import read_saved_plan, render_review
from producers.errors import PlanRefusedError, SourceUnreadableError
from producers.guards import rowcounts_of_snapshots
from producers.planning import PlannedRun
from tests.support.command_line import CommandLine
from tests.support.memory_source import MemorySource
from tests.support.planning import Rows, entry, mapped, small
from tests.support.whole_path import WholePath, names, operations

TAGS = entry("LabTag", "tags", ["name"], mapped("name"))
SITES = entry("LabSite", "sites", ["name"], mapped("name"), mapped("asset"))
PARTS = entry("LabPart", "parts", ["first", "second"], mapped("first"), mapped("second"))


def tags(count: int) -> Rows:
    return {"tags": [{"id": number, "name": f"t{number}", "tenant": number % 3} for number in range(count)]}


async def planned_and_applied(lab: WholePath) -> dict[str, int]:
    """Ten tags at both sides; returns the row counts that the next plan starts from."""
    run = await lab.plan(tags(10), [TAGS])
    assert (await lab.apply(run)).exit_code is ExitCode.DONE
    return rowcounts_of_snapshots(run.manifest.source_snapshot)


@pytest.mark.rules("C3", "C55", "A63")
@pytest.mark.parametrize("rows", [0, 1, 4])
async def test_ff02_less_than_half_of_the_last_rows_is_no_plan_until_somebody_names_it(
    lab: WholePath, rows: int
) -> None:
    baseline = await planned_and_applied(lab)
    before, written = lab.content(), len(lab.mutations())
    with pytest.raises(PlanRefusedError, match="--allow-rowcount-drop") as caught:
        await lab.plan(tags(rows), [TAGS], baseline=baseline)
    assert caught.value.exit_code is ExitCode.REFUSED
    assert names(caught.value) == ["RowCountDropError"]
    (finding,) = caught.value.findings
    assert (finding.checked, finding.expected, finding.found) == (
        "the rows of LabTag",
        "at least half of 10",
        str(rows),
    )
    assert len(lab.saved_plans()) == 1
    # somebody says so: what is gone is recorded, and never executed
    run = await lab.plan(tags(rows), [TAGS], baseline=baseline, allow_rowcount_drop=True)
    assert run.counts["remove"] == 10 - rows
    assert (await lab.apply(run)).exit_code is ExitCode.DONE
    assert lab.operation_events()[10:] == ["operation.skipped"] * (10 - rows)
    assert (lab.content(), len(lab.mutations())) == (before, written)


async def test_ff02_a_token_that_sees_one_tenant_of_three_is_noticed(lab: WholePath) -> None:
    baseline = await planned_and_applied(lab)
    visible = {"tags": [row for row in tags(10)["tags"] if row["tenant"] == 1]}
    with pytest.raises(PlanRefusedError, match="RowCountDropError"):
        await lab.plan(visible, [TAGS], baseline=baseline)


async def test_ff02_a_filter_that_suddenly_leaves_all_out_is_noticed(lab: WholePath) -> None:
    baseline = await planned_and_applied(lab)
    renamed = {**TAGS, "filters": [{"field": "tenant", "operation": ">", "value": 99}]}
    with pytest.raises(PlanRefusedError, match="RowCountDropError"):
        await lab.plan(tags(10), [renamed], baseline=baseline)


async def test_ff02_every_kind_that_shrank_is_named_at_once_and_an_unmapped_one_is_not(lab: WholePath) -> None:
    baseline = {"LabTag": 10, "LabSite": 10, "LabPart": 4, "LabRack": 9}
    rows: Rows = {"tags": [], "sites": [{"id": 1, "name": "s", "asset": "1"}], "parts": []}
    rows["parts"] = [{"id": n, "first": str(n), "second": "x"} for n in range(2)]
    with pytest.raises(PlanRefusedError) as caught:
        await lab.plan(rows, [TAGS, SITES, PARTS], baseline=baseline)
    assert [finding.checked for finding in caught.value.findings] == ["the rows of LabSite", "the rows of LabTag"]


@pytest.mark.parametrize("broken", ['{"id": 7, "na', "", "[]", "null", "\ufeff{}"], ids=repr)
async def test_ff02_a_source_that_breaks_off_is_no_short_one(lab: WholePath, broken: str) -> None:
    loaded = small(lab.folder, tags(6), [TAGS])
    file = lab.folder / "rows" / "tags.jsonl"
    file.write_text(file.read_text() + f"{broken}\n", encoding="utf-8")
    with pytest.raises(SourceUnreadableError, match=r"tags\.jsonl line 7") as caught:
        await lab.plan_loaded(loaded, continue_on_error=True)
    assert caught.value.exit_code is ExitCode.REFUSED
    assert lab.saved_plans() == []


@pytest.mark.parametrize("after", [0, 3, 5])
async def test_ff02_a_plug_in_that_fails_in_the_middle_leaves_no_plan(
    lab: WholePath, monkeypatch: pytest.MonkeyPatch, after: int
) -> None:
    failure = SourceUnreadableError(
        checked="page 3", expected="200", found="502", next_action="ask again when the source is well"
    )
    MemorySource(tags(6), {"tags": (after, failure)}).instead_of_files(monkeypatch)
    with pytest.raises(SourceUnreadableError, match="page 3"):
        await lab.plan(tags(0), [TAGS], continue_on_error=True)
    assert lab.saved_plans() == []


async def test_ff02_an_endpoint_that_is_not_there_is_no_empty_one(lab: WholePath) -> None:
    loaded = small(lab.folder, tags(6), [TAGS])
    (lab.folder / "rows" / "tags.jsonl").unlink()
    with pytest.raises(SourceUnreadableError, match="a missing endpoint is not an empty one"):
        await lab.plan_loaded(loaded)
    assert lab.saved_plans() == []


def review_of(run: PlannedRun) -> str:
    out = io.StringIO()
    render_review(read_saved_plan(run.run_dir), Console(file=out, width=200))
    return out.getvalue()


@pytest.mark.rules("C35", "C36", "C38", "C39", "A63")
async def test_ff02_not_computed_and_none_read_differently(lab: WholePath) -> None:
    await planned_and_applied(lab)
    none = await lab.plan(tags(10), [TAGS])
    some = await lab.plan(tags(9), [TAGS])
    blind = await lab.plan_loaded(small(lab.folder, tags(9), [TAGS], diffsync_flags=["SKIP_UNMATCHED_DST"]))
    assert [run.manifest.delete_operations_computed for run in (none, some, blind)] == [True, True, False]
    assert [run.counts["remove"] for run in (none, some, blind)] == [0, 1, 0]
    assert [operation.action for operation in operations(some)] == ["delete"]
    assert "not computed" in review_of(blind)
    assert "not computed" not in review_of(none) + review_of(some)
    assert len({none.manifest.plan_checksum, blind.manifest.plan_checksum}) == 2


@pytest.mark.integration
def test_ff02_a_person_is_told_and_decides(cli: CommandLine) -> None:
    cli.source(*({"name": f"t{number}"} for number in range(10)))
    assert cli.apply(cli.plan()).returncode == 0
    written = cli.mutations()
    cli.source({"name": "t0"})
    refused = cli.run("plan", "--config-file", "config.yml")
    assert refused.returncode == 3, refused.stderr
    assert "RowCountDropError" in refused.stderr
    assert "--allow-rowcount-drop" in refused.stderr
    assert cli.plan("--allow-rowcount-drop")["counts"]["remove"] == 9
    assert cli.mutations() == written
