"""Reviewing a saved plan: two depths, five counts, nothing written, nothing leaked (A85, C38, C39, C49, H11 to H22)."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from ledger.plan.coverage import Difference
from ledger.plan.errors import PlanArtifactAbsentError, UnrecognisedPlanFormatError
from ledger.plan.model import PlannedOperation
from ledger.plan.review import (
    read_saved_plan,
    review_document,
)
from tests.support.plan_rules import (
    DATA,
    DESTINATION_ID,
    RUN_ID,
    create,
    operation,
    ref,
    save_plan,
    update,
)
from tests.support.plan_rules import coverage_line as line
from tests.support.reviewed_plans import shown

DEPTHS = [False, True]


@pytest.mark.rules("H12", "H14", "A85")
@pytest.mark.parametrize("detail", DEPTHS)
def test_the_last_line_is_always_the_five_counts(run_dir: Path, detail: bool) -> None:
    counts = "3 create · 2 update · 2 remove · 1 skip · 40 none"
    assert shown(run_dir, detail=detail).splitlines()[-1] == counts
    assert shown(run_dir, detail=detail, kind="DcimDevice").splitlines()[-1] == counts
    assert shown(run_dir, detail=detail, kind="Nope").splitlines()[-1] == counts
    assert shown(run_dir, detail=detail, width=30).splitlines()[-1] == counts


@pytest.mark.rules("H20")
@pytest.mark.parametrize("detail", DEPTHS)
def test_the_header_says_what_for_which_destination_under_which_checksum(run_dir: Path, detail: bool) -> None:
    text = shown(run_dir, detail=detail)
    checksum = json.loads((run_dir / "plan/manifest.json").read_bytes())["plan_checksum"]
    for wanted in ("from-netbox-demo", "http://infrahub.example:8000 [main]", RUN_ID, "5f2c9b1e7a4d3c8f", checksum):
        assert wanted in text
    assert "7 in 2 tiers" in text


@pytest.mark.rules("A85", "C49", "H3")
def test_a_review_writes_nothing(run_dir: Path) -> None:
    def state() -> dict[str, tuple[int, bytes]]:
        files = sorted(path for path in run_dir.parent.rglob("*") if path.is_file())
        return {str(path): (path.stat().st_mtime_ns, path.read_bytes()) for path in files}

    before = state()
    shown(run_dir, detail=True)
    review_document(read_saved_plan(run_dir))
    assert state() == before
    with pytest.raises(PlanArtifactAbsentError):
        read_saved_plan(run_dir.parent / "20260101T0000-00000000")
    assert state() == before
    assert not (run_dir.parent / "20260101T0000-00000000").exists()


@pytest.mark.rules("H11", "H15", "H19")
def test_the_summary_lists_operations_and_skips_and_counts_the_unchanged(run_dir: Path) -> None:
    text = shown(run_dir)
    assert '+ name="prod"' in text
    assert f'~ name="sw1"  id {DESTINATION_ID}  comments, description, mtu, site\n' in text
    assert '! name="sw9"  its location was skipped' in text
    assert 'name="p7"' not in text
    assert [row.split()[-1] for row in text.splitlines() if "DcimPlatform" in row] == ["40"]


@pytest.mark.rules("H11", "H15", "H16", "H17", "H18", "H21")
def test_the_detail_shows_observed_and_desired_of_each_field_and_every_resource(run_dir: Path) -> None:
    text = shown(run_dir, detail=True)
    assert text.count("= name=") == 40
    for wanted in (
        "mtu: 9000 → 0",
        'description: "" → null',
        'site: LocationSite(name="dc0") → LocationSite(name="dc1")',
        "comments: differs (3 lines)",
        "asns: 2 peers → 0 peers",
        "- IpamASN(asn=1)",
        'description: "Production"',
        "from mapping entry 12 (dcim.devices) where name is_not_empty, through jsonl → infrahub",
    ):
        assert wanted in text
    lines = [row.strip() for row in text.splitlines()]
    assert lines.index("- b") + 1 == lines.index("+ B")


@pytest.mark.rules("A47", "C17", "C19")
def test_references_are_shown_by_kind_and_identity(run_dir: Path) -> None:
    assert '+ name="r1", site=LocationSite(name="dc1")' in shown(run_dir)


@pytest.mark.rules("C35", "C36", "P145")
@pytest.mark.parametrize("detail", DEPTHS)
def test_deletes_have_a_block_of_their_own_and_say_that_nothing_executes_them(run_dir: Path, detail: bool) -> None:
    text = shown(run_dir, detail=detail)
    assert "Deletes (2): recorded, not executed" in text
    block = text[text.index("Deletes (2)") :]
    assert '- BuiltinTag(name="old")' in block
    assert "last writer not looked up" in block
    assert '- name="old"' not in text


def test_the_table_has_one_line_for_each_kind_with_its_tiers(tmp_path: Path) -> None:
    def rack(name: str, tier: int) -> PlannedOperation:
        return operation("create", "LocationRack", {"name": name}, {}, tier=tier)

    plan = save_plan(tmp_path / "a", [create("BuiltinTag", {"name": "t"}), rack("a", 1), rack("b", 2), rack("c", 4)])
    rows = [row.split() for row in shown(plan).splitlines() if row.endswith("0") and row.split()[0][0].isupper()]
    assert rows == [["BuiltinTag", "0", "1", "0", "0", "0", "0"], ["LocationRack", "1-4", "3", "0", "0", "0", "0"]]


def test_recorded_deletes_are_not_counted_as_something_to_write(run_dir: Path, tmp_path: Path) -> None:
    assert "7 in 2 tiers: 5 to write, 2 recorded deletes (never executed)" in shown(run_dir)
    assert "operations   1 in 1 tier\n" in shown(save_plan(tmp_path / "a", [create("BuiltinTag", {"name": "t"})]))


@pytest.mark.parametrize("width", [40, 80, 200])
def test_no_line_ends_with_blanks_however_often_it_is_wrapped(run_dir: Path, width: int) -> None:
    for options in ({"detail": True}, {"detail": False}, {"kind": "Nope"}):
        assert [row for row in shown(run_dir, width=width, **options).splitlines() if row != row.rstrip()] == []


@pytest.mark.rules("C37", "C38", "C39")
@pytest.mark.parametrize("detail", DEPTHS)
def test_deletes_that_were_not_computed_are_said_in_words_at_both_depths(tmp_path: Path, detail: bool) -> None:
    words = "Deletes were not computed"
    assert words in shown(save_plan(tmp_path / "a", [], delete_operations_computed=False), detail=detail)
    computed = shown(save_plan(tmp_path / "b", []), detail=detail)
    assert words not in computed
    assert "Deletes were computed: no object exists only at the destination." in computed


@pytest.mark.rules("H11", "H12")
@pytest.mark.parametrize("detail", DEPTHS)
def test_a_plan_without_coverage_says_so_and_still_counts_five(tmp_path: Path, detail: bool) -> None:
    plain = save_plan(tmp_path / "a", [update("BuiltinTag", {"name": "a"}, {"description": "x"})])
    text = shown(plain, detail=detail)
    assert "Coverage not recorded" in text
    assert text.splitlines()[-1] == "0 create · 1 update · 0 remove · 0 skip · 0 none"
    assert ('description: (observed value not recorded) → "x"' in text) is detail
    assert review_document(read_saved_plan(plain))["resources"][0]["changes"] == [
        {"field": "description", "desired": "x"}
    ]


@pytest.mark.rules("H30", "H31")
def test_an_empty_plan_says_that_there_is_nothing_to_write(tmp_path: Path) -> None:
    text = shown(save_plan(tmp_path / "a", [], [line("none", "BuiltinTag", {"name": "a"})]))
    assert "Nothing to write" in text
    assert text.splitlines()[-1] == "0 create · 0 update · 0 remove · 0 skip · 1 none"


@pytest.mark.rules("H22")
def test_signs_stand_beside_every_colour(run_dir: Path) -> None:
    plain, coloured = shown(run_dir, detail=True), shown(run_dir, detail=True, colour=True)
    assert "\x1b[" in coloured
    assert "\x1b[" not in plain
    for sign in "+~-=!":
        assert any(row.strip().startswith(f"{sign} ") for row in plain.splitlines())


def test_a_long_list_is_cut_in_the_summary_and_the_cut_is_said(tmp_path: Path) -> None:
    many = [create("BuiltinTag", {"name": f"tag-{number}"}) for number in range(25)]
    many += [operation("delete", "BuiltinTag", {"name": f"gone-{number}"}) for number in range(25)]
    plan = save_plan(tmp_path / "a", many)
    text = shown(plan)
    assert "+ … 5 more to create; --detail lists all" in text
    assert "- … 5 more; --detail lists all" in text
    names = [row.strip() for row in shown(plan, detail=True).splitlines() if "+ name=" in row]
    assert names == [f'+ name="tag-{number}"' for number in range(25)]


@pytest.mark.rules("A2", "H16", "G12")
def test_what_an_update_sends_besides_its_differences_is_shown_too(tmp_path: Path) -> None:
    sent = {"description": "new", "mtu": 9216, "api_token": "hunter2", "comments": "x" * 500}
    planned = update("B", {"name": "b"}, sent, ref("tags", "BuiltinTag", {"name": "t"}, many=True))
    told = {"description": Difference(observed="old", desired="new")}
    plan = save_plan(tmp_path / "a", [planned], [line("update", "B", {"name": "b"}, differences=told)])
    text = shown(plan, detail=True)
    told_besides = " ".join(text[text.index("also sent") :].split())
    assert told_besides.startswith('also sent: api_token=(sensitive), comments="xxx')
    assert 'mtu=9216, tags=[BuiltinTag(name="t")]' in told_besides
    (resource,) = review_document(read_saved_plan(plan))["resources"]
    assert resource["also_sent"].keys() == {"api_token", "comments", "mtu", "tags"}
    assert resource["also_sent"]["mtu"] == 9216
    assert "hunter2" not in text + json.dumps(resource)


def test_one_kind_alone_can_be_shown(run_dir: Path) -> None:
    text = shown(run_dir, kind="DcimDevice")
    assert 'name="sw1"' in text
    assert 'name="prod"' not in text
    assert "Shown: DcimDevice alone (0 create · 1 update · 0 remove · 1 skip · 0 none)" in text
    assert "No resource of kind Nope" in shown(run_dir, kind="Nope")
    assert {item["kind"] for item in review_document(read_saved_plan(run_dir), kind="DcimDevice")["resources"]} == {
        "DcimDevice"
    }


class TestProblems:
    @pytest.mark.rules("A67", "C30")
    def test_a_wrong_checksum_is_named_above_the_plan(self, tmp_path: Path) -> None:
        text = shown(save_plan(tmp_path / "a", [], plan_checksum="0" * 64))
        assert "This plan will be refused" in text
        assert "the plan checksum" in text
        assert not review_document(read_saved_plan(tmp_path / "a"))["plan"]["applicable"]

    def test_a_changed_or_missing_account_is_named_and_the_operations_are_still_shown(self, run_dir: Path) -> None:
        path = run_dir / "plan/coverage.jsonl"
        original = path.read_bytes()
        lines = original.splitlines(keepends=True)
        path.write_bytes(b"".join(lines[:-1]))
        assert "plan/coverage.jsonl" in shown(run_dir)
        assert "This plan will be refused" in shown(run_dir)
        path.write_bytes(b"{}\n")
        text = shown(run_dir)
        assert "This plan will be refused" in text
        assert 'name="prod"' in text
        assert "Coverage not recorded" in text
        path.unlink()
        assert "no such file" in " ".join(shown(run_dir).split())

    def test_an_account_that_the_manifest_does_not_know_is_not_believed(self, tmp_path: Path) -> None:
        plan = save_plan(tmp_path / "a", [create("A", {"name": "a"})])
        (plan / "plan/coverage.jsonl").write_bytes(line("skip", "A", {"name": "b"}, reason="x").line())
        text = shown(plan)
        assert "a file that nothing vouches for" in text
        assert text.splitlines()[-1] == "1 create · 0 update · 0 remove · 0 skip · 0 none"


class TestFormats:
    @pytest.mark.rules("P108", "A65")
    def test_format_2_can_be_reviewed_and_says_that_it_cannot_be_applied(self, tmp_path: Path) -> None:
        keyless = update("BuiltinTag", {"name": "a"}).model_copy(update={"destination_id": None})
        plan = save_plan(tmp_path / "a", [keyless], format_version=2, destination_binding=None)
        manifest = json.loads((plan / "plan/manifest.json").read_bytes())
        manifest.pop("destination_binding")
        (plan / "plan/manifest.json").write_text(json.dumps(manifest))
        text = shown(plan)
        assert "for review only" in text
        assert "id not recorded" in text
        assert "not recorded (an older plan)" in text

    @pytest.mark.rules("A11", "C21")
    def test_an_unknown_format_is_refused_and_not_partly_read(self, tmp_path: Path) -> None:
        with pytest.raises(UnrecognisedPlanFormatError):
            read_saved_plan(save_plan(tmp_path / "a", [], format_version=4))

    @pytest.mark.rules("A80", "A81", "A85")
    @pytest.mark.parametrize("name", ["golden-one-create", "every-shape"])
    def test_plans_of_infrahub_sync_can_be_reviewed(self, tmp_path: Path, name: str) -> None:
        shutil.copytree(DATA / "golden-plan" / name, tmp_path / "run")
        saved = read_saved_plan(tmp_path / "run")
        assert saved.problems == ()
        text = shown(tmp_path / "run", detail=True)
        assert "Coverage not recorded" in text
        assert text.splitlines()[-1] == saved.summary.line
        assert saved.summary.counts["create"] == (1 if name == "golden-one-create" else 4)


@pytest.mark.rules("H22", "H12", "C38")
def test_the_document_holds_the_same_facts_for_programs(run_dir: Path) -> None:
    document = json.loads(json.dumps(review_document(read_saved_plan(run_dir))))
    assert document["counts"] == {"create": 3, "update": 2, "remove": 2, "skip": 1, "none": 40}
    assert document["delete_operations_computed"] is True
    assert document["deletes"] == "recorded, not executed"
    assert len(document["resources"]) == 48
    assert document["plan"]["applicable"] is True
    changed = next(item for item in document["resources"] if item["identity"] == {"name": "sw1"})
    assert changed["destination_id"] == DESTINATION_ID
    assert changed["executed"] is True
    assert {"field": "mtu", "observed": 9000, "desired": 0} in changed["changes"]
    assert changed["entry"] == {"index": 12, "name": "dcim.devices"}
    assert [item["executed"] for item in document["resources"] if item["action"] == "remove"] == [False, False]
    tiers = [(group["tier"], group["kind"]) for group in document["groups"]]
    assert tiers == sorted(tiers)
