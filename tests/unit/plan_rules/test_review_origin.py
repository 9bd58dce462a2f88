"""What a review says of where a plan comes from, and of what other sources wrote."""

from __future__ import annotations

import json
from pathlib import Path
from typing import ClassVar

import pytest

from ledger.errors import Finding
from ledger.events import Overlap
from ledger.plan.canonical import object_key
from ledger.plan.review import (
    EndpointCount,
    LastWriter,
    LedgerWords,
    PlanOrigin,
    read_saved_plan,
    review_document,
)
from tests.support.plan_rules import (
    DESTINATION_ID,
)
from tests.support.reviewed_plans import shown

DEPTHS = [False, True]


def test_deletes_are_grouped_by_the_source_that_wrote_the_object_last(run_dir: Path) -> None:
    told = LedgerWords(
        last_writers={object_key("IpamASN", {"asn": 65001}): LastWriter("from-ipam", "20260101T0000-1", 7)}
    )
    text = shown(run_dir, ledger=told, detail=True)
    block = [row.strip() for row in text[text.index("Deletes (2)") :].splitlines()]
    assert [row for row in block if row.startswith(("- ", "last written", "never written"))] == [
        "last written by from-ipam",
        f"- IpamASN(asn=65001)  id {DESTINATION_ID}",
        "never written through this ledger",
        f'- BuiltinTag(name="old")  id {DESTINATION_ID}',
    ]
    document = review_document(read_saved_plan(run_dir), ledger=told)
    deletes = [item for item in document["resources"] if item["action"] == "remove"]
    assert sorted(str(item["last_writer"]) for item in deletes) == ["None", "from-ipam"]
    assert {"run_id": "20260101T0000-1", "position": 7} in [item["last_write"] for item in deletes]


def test_deletes_of_objects_of_other_sources_are_counted_by_kind_unless_all_is_asked_for(run_dir: Path) -> None:
    def block(source: str) -> list[str]:
        writers = {object_key("IpamASN", {"asn": 65001}): LastWriter(source, "20260101T0000-1", 7)}
        text = shown(run_dir, ledger=LedgerWords(last_writers=writers))
        return [row.strip() for row in text[text.index("Deletes (2)") :].splitlines()[1:3]]

    assert block("from-ipam")[0] == "last written by from-ipam: IpamASN 1; --detail lists them"
    assert block("from-netbox-demo") == [
        "last written by from-netbox-demo",
        f"- IpamASN(asn=65001)  id {DESTINATION_ID}",
    ]


class TestWritersOfWhatAPlanWrites:
    """Two sources that fight for one object must be seen before an apply."""

    OTHERS = LastWriter("from-ipam", "20260101T0000-00000001", 1234)
    WRITERS: ClassVar = {
        object_key("DcimDevice", {"name": "sw1"}): OTHERS,
        object_key("BuiltinTag", {"name": "prod"}): OTHERS,
        object_key("LocationSite", {"name": "dc1"}): LastWriter("from-netbox-demo", "20260101T0000-00000002", 99),
        object_key("DcimPlatform", {"name": "p1"}): OTHERS,
    }

    def test_a_summary_counts_them_by_source_and_marks_each(self, run_dir: Path) -> None:
        text = shown(run_dir, ledger=LedgerWords(last_writers=self.WRITERS))
        assert "1 update changes an object that another source wrote last: from-ipam 1\n" in text
        assert "1 create is of an object that another source wrote last: from-ipam 1\n" in text
        marked = [row for row in text.splitlines() if "last written by" in row]
        assert [row.split()[:2] for row in marked] == [["+", 'name="prod"'], ["~", 'name="sw1"']]
        assert all(row.endswith("  last written by from-ipam") for row in marked)

    def test_the_detail_names_the_run_and_where_it_stands(self, run_dir: Path) -> None:
        rows = shown(run_dir, detail=True, ledger=LedgerWords(last_writers=self.WRITERS)).splitlines()
        told = "last written by from-ipam, run 20260101T0000-00000001, position 1,234"
        assert [index for index, row in enumerate(rows) if row.strip() == told] == [
            next(index for index, row in enumerate(rows) if row.strip().startswith(sign)) + 1
            for sign in ('+ name="prod"', '~ name="sw1"')
        ]

    def test_nothing_is_said_without_a_ledger_or_of_the_plans_own_source(self, run_dir: Path) -> None:
        own = {key: LastWriter("from-netbox-demo", "20260101T0000-00000002", 99) for key in self.WRITERS}
        for told in (LedgerWords(), LedgerWords(last_writers={}), LedgerWords(last_writers=own)):
            for detail in DEPTHS:
                assert "another source" not in shown(run_dir, ledger=told, detail=detail)
                assert "last written by from-ipam" not in shown(run_dir, ledger=told, detail=detail)

    def test_a_document_has_the_writer_of_everything_that_has_an_operation(self, run_dir: Path) -> None:
        found = review_document(read_saved_plan(run_dir), ledger=LedgerWords(last_writers=self.WRITERS))["resources"]
        told = {str(item["identity"].get("name")): item["last_writer"] for item in found if "last_writer" in item}
        assert told == {
            "prod": "from-ipam",
            "staging": None,
            "r1": None,
            "sw1": "from-ipam",
            "dc1": "from-netbox-demo",
            "old": None,
            "None": None,
        }
        silent = review_document(read_saved_plan(run_dir))["resources"]
        assert not any("last_writer" in item for item in silent)


class TestOrigin:
    """What was planned: two plans of two days must not look alike."""

    ORIGIN = PlanOrigin(
        configuration="/etc/sync/netbox.yml",
        location="/data/day0",
        overrides={"directory": "day0", "bearer": "hunter2", "url": "https://me:hunter2@x.example/?token=hunter2"},
        rows={"dcim.devices": EndpointCount(63, 13), "dcim.racks": EndpointCount(42, 0), "x": EndpointCount(1200, 1)},
    )

    @pytest.mark.parametrize("detail", DEPTHS)
    @pytest.mark.rules("G12")
    def test_g12_file_place_and_overrides_are_shown_and_no_secret_among_them(self, run_dir: Path, detail: bool) -> None:
        text = shown(run_dir, detail=detail, origin=self.ORIGIN)
        rows = [" ".join(row.split()) for row in text.splitlines()]
        assert "file /etc/sync/netbox.yml" in rows
        assert "read from /data/day0" in rows
        assert any(
            row.startswith("overrides directory=day0, bearer=(sensitive), url=https://…@x.example") for row in rows
        )
        document = review_document(read_saved_plan(run_dir), origin=self.ORIGIN)
        assert document["origin"]["configuration"] == "/etc/sync/netbox.yml"
        assert document["origin"]["source_settings"]["directory"] == "day0"
        assert "hunter2" not in text + json.dumps(document)

    def test_a_plan_that_was_made_elsewhere_says_so(self, run_dir: Path) -> None:
        assert "not recorded: there is no run.json beside this plan" in shown(run_dir, origin=PlanOrigin())

    def test_rows_that_filters_left_out_are_counted_by_endpoint(self, run_dir: Path) -> None:
        text = shown(run_dir, origin=self.ORIGIN)
        block = text[text.index("Rows of the source left out by filters (14)") :].splitlines()
        assert [row.strip() for row in block[1:4]] == [
            "13 of 63 rows of dcim.devices",
            "1 of 1,200 rows of x",
            "",
        ]
        of_devices = shown(run_dir, origin=self.ORIGIN, kind="DcimDevice")
        assert "13 of 63 rows of dcim.devices" in of_devices
        assert "rows of x" not in of_devices
        assert review_document(read_saved_plan(run_dir), origin=self.ORIGIN)["origin"]["source_rows"]["dcim.racks"] == {
            "read": 42,
            "left_out": 0,
        }


def test_what_other_sources_wrote_since_is_shown(run_dir: Path) -> None:
    overlap = Overlap(
        kind="DcimDevice",
        identity={"name": "sw1"},
        operation_id="op_0000000000000000",
        fields=["mtu"],
        source="from-ipam",
        run_id="20261129T1700-00000000",
        position=17,
    )
    text = shown(run_dir, ledger=LedgerWords(overlaps=[overlap]))
    assert "Also written by other sources since this plan was made (1)" in text
    assert (
        '* DcimDevice(name="sw1") by from-ipam, run 20261129T1700-00000000, position 17: the values differ in mtu'
        in text
    )
    assert shown(run_dir, ledger=LedgerWords(overlaps=[overlap]), kind="BuiltinTag").count("from-ipam") == 0


def test_a_plan_that_the_gate_would_call_stale_says_so_above_everything_else(run_dir: Path) -> None:
    finding = Finding(
        name="StalePlanError", checked="the plan", expected="the newest", found="one at position 9", next_action="plan"
    )
    told = LedgerWords(stale=[finding])
    text = shown(run_dir, ledger=told)
    assert "This plan is stale: `apply` refuses it (exit code 6)" in text
    assert "one at position 9" in text
    assert "stale" not in shown(run_dir)
    assert review_document(read_saved_plan(run_dir), ledger=told)["stale"] == [finding.model_dump()]
