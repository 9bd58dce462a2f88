"""Both sides are read completely, or there is no plan."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from ledger.destination import FieldSelection, IncompleteExtractionError, ObservedObject, PeerPointer
from ledger.errors import ApplyLedgerError
from ledger.plan.errors import UnserializablePayloadValueError
from producers.errors import PlanRefusedError, SourceUnreadableError
from producers.planning import PlanOptions, make_plan
from producers.run_directory import read_run_record
from producers.sources.jsonl import JsonLinesSource
from tests.support.fake_reader import FakeDestination, StoredObject
from tests.support.planning import CLOCK, Rows, entry, mapped, operations, plan, small

TAGS = entry("BuiltinTag", "tags", ["name"], mapped("name"))
SITES = entry("LocationSite", "sites", ["name"], mapped("name"), mapped("tags", "tags", "BuiltinTag"))


class PagedDestination(FakeDestination):
    """Serves 101 tags in pages of 50, with what a moving server does to pages."""

    def __init__(self, *, repeated: bool = False, missing: bool = False, counted: int = 101) -> None:
        super().__init__(namespaces=())
        for number in range(101):
            self.add("BuiltinTag", name=f"t{number}")
        self._repeated = repeated
        self._missing = missing
        self._counted = counted

    async def counts(self, kinds: Sequence[str]) -> Mapping[str, int]:
        counts = dict(await super().counts(kinds))
        return counts | {"BuiltinTag": self._counted} if "BuiltinTag" in counts else counts

    async def read(self, kind: str, fields: FieldSelection) -> AsyncIterator[ObservedObject]:
        items = [item async for item in super().read(kind, fields)]
        if kind == "BuiltinTag" and self._repeated:
            items[50] = items[49]
        if kind == "BuiltinTag" and self._missing:
            del items[70]
        for item in items:
            yield item


@pytest.mark.rules("C37", "A5", "G11", "P145")
@pytest.mark.parametrize(
    ("destination", "found"),
    [
        (PagedDestination(repeated=True), "twice"),
        (PagedDestination(missing=True), "100 distinct ids"),
        (PagedDestination(counted=102), "101 distinct ids"),
    ],
    ids=["repeated", "missing", "inserted"],
)
@pytest.mark.parametrize("concurrent", [True, False])
async def test_ff01_pages_that_overlap_or_miss_fail_the_extraction(
    tmp_path: Path, destination: FakeDestination, found: str, concurrent: bool
) -> None:
    loaded = small(tmp_path, {"tags": [{"id": 1, "name": "t1"}]}, [TAGS])
    with pytest.raises(IncompleteExtractionError) as caught:
        await plan(loaded, destination, tmp_path, concurrent_load=concurrent)
    assert caught.value.checked == "the destination side, kind BuiltinTag"
    assert found in caught.value.found
    assert not list(tmp_path.glob("small/*/plan"))


@pytest.mark.rules("A5", "G11")
async def test_ff01_a_repeated_id_in_the_source_fails_the_extraction(tmp_path: Path) -> None:
    rows: Rows = {"tags": [{"id": n % 100, "name": f"t{n}"} for n in range(101)]}
    with pytest.raises(IncompleteExtractionError) as caught:
        await plan(small(tmp_path, rows, [TAGS]), FakeDestination(), tmp_path)
    assert caught.value.checked == "the source side, endpoint tags"
    assert "id 0" in caught.value.found


@pytest.mark.rules("A5", "G11")
async def test_ff01_fewer_rows_than_the_source_counted_fail_the_extraction(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(JsonLinesSource, "count", lambda self, endpoint: 3)
    rows: Rows = {"tags": [{"id": n, "name": f"t{n}"} for n in range(2)]}
    with pytest.raises(IncompleteExtractionError) as caught:
        await plan(small(tmp_path, rows, [TAGS]), FakeDestination(), tmp_path)
    assert (caught.value.expected, caught.value.found) == ("3 rows, as the source counted before", "2 rows")


@pytest.mark.parametrize("concurrent", [True, False])
async def test_ff01_who_knows_more_of_a_moving_destination_is_asked_and_of_a_moving_source_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, concurrent: bool
) -> None:
    async def explain(refusal: IncompleteExtractionError) -> IncompleteExtractionError:
        return IncompleteExtractionError(
            checked=refusal.checked, expected=refusal.expected, found="run x writes", next_action="wait for run x"
        )

    loaded = small(tmp_path, {"tags": [{"id": 1, "name": "t1"}]}, [TAGS])
    options = PlanOptions(concurrent_load=concurrent)

    async def refusal(destination: FakeDestination) -> IncompleteExtractionError:
        with pytest.raises(IncompleteExtractionError) as caught:
            await make_plan(loaded, destination, root=tmp_path, options=options, clock=CLOCK, explain=explain)
        return caught.value

    assert (await refusal(PagedDestination(repeated=True))).found == "run x writes"
    (run_dir,) = (path for path in (tmp_path / "small").iterdir() if path.is_dir())
    assert pq.read_table(run_dir / "errors.parquet").to_pylist()[0]["next_action"] == "wait for run x"
    monkeypatch.setattr(JsonLinesSource, "count", lambda self, endpoint: 3)
    assert (await refusal(FakeDestination())).found == "1 rows"


@pytest.mark.rules("C37")
async def test_ff01_a_peer_that_no_page_brought_fails_the_extraction(tmp_path: Path) -> None:
    destination = FakeDestination(namespaces=())
    site = destination.add("LocationSite", name="s")
    site.many["tags"] = [PeerPointer("BuiltinTag", "not-there")]
    with pytest.raises(IncompleteExtractionError, match="not-there"):
        await plan(small(tmp_path, {"tags": [], "sites": []}, [TAGS, SITES]), destination, tmp_path)


async def test_peers_of_kinds_that_nobody_maps_are_read_by_their_own_key(tmp_path: Path) -> None:
    destination = FakeDestination(namespaces=())
    region = destination.add("LocationRegion", slug="r", name="R")
    destination.add("LocationSite", name="s", parent=region)
    regions = entry("LocationRegion", "regions", ["slug"], mapped("slug"), mapped("name"))
    sites = entry("LocationSite", "sites", ["name"], mapped("name"), mapped("parent", "parent", "LocationRegion"))
    rows: Rows = {"sites": [{"id": 1, "name": "s", "parent": None}], "regions": []}
    run = await plan(small(tmp_path, rows, [sites]), destination, tmp_path)
    assert run.counts["none"] == 1
    assert destination.requested["LocationRegion"] == FieldSelection(attributes=("slug",))
    both: Rows = {
        "sites": [{"id": 1, "name": "s", "parent": {"id": 1}}],
        "regions": [{"id": 1, "slug": "r", "name": "R"}],
    }
    assert (await plan(small(tmp_path, both, [regions, sites]), destination, tmp_path)).counts["none"] == 2


async def test_g11_failures_of_both_sides_are_told_together(tmp_path: Path) -> None:
    loaded = small(tmp_path, {"tags": []}, [TAGS])
    (tmp_path / "rows" / "tags.jsonl").write_bytes(b"{broken\n")
    with pytest.raises(PlanRefusedError) as caught:
        await plan(loaded, PagedDestination(repeated=True), tmp_path)
    assert [finding.name for finding in caught.value.findings] == ["SourceUnreadableError", "IncompleteExtractionError"]


@pytest.mark.rules("C5", "C8")
async def test_a_failed_plan_leaves_its_findings_and_no_plan(tmp_path: Path) -> None:
    loaded = small(tmp_path, {"tags": []}, [TAGS])
    (tmp_path / "rows" / "tags.jsonl").write_bytes(b"{broken\n")
    with pytest.raises(SourceUnreadableError):
        await plan(loaded, FakeDestination(), tmp_path)
    (run_dir,) = (path for path in (tmp_path / "small").iterdir() if path.is_dir())
    assert read_run_record(run_dir).status == "failed"
    assert sorted(path.name for path in run_dir.iterdir() if path.is_file()) == ["errors.parquet", "run.json"]
    assert not list(run_dir.glob("*/*"))


async def test_a_defect_does_not_hide_behind_a_refusal(tmp_path: Path) -> None:
    class Broken(FakeDestination):
        async def counts(self, kinds: Sequence[str]) -> Mapping[str, int]:
            raise ZeroDivisionError(kinds)

    loaded = small(tmp_path, {"tags": []}, [TAGS])
    (tmp_path / "rows" / "tags.jsonl").write_bytes(b"{broken\n")
    with pytest.raises(ZeroDivisionError):
        await plan(loaded, Broken(), tmp_path)


@pytest.mark.rules("G11")
async def test_several_objects_of_one_identity_at_the_destination_are_never_updated_by_guess(tmp_path: Path) -> None:
    destination = FakeDestination(namespaces=())
    twins: list[StoredObject] = [destination.add("BuiltinTag", name="twin") for _ in range(2)]
    loaded = small(tmp_path, {"tags": [{"id": 1, "name": "twin"}]}, [TAGS])
    with pytest.raises(ApplyLedgerError) as caught:
        await plan(loaded, destination, tmp_path)
    assert [finding.name for finding in caught.value.findings] == ["AmbiguousDestinationObjectError"]
    assert all(twin.id in str(caught.value) for twin in twins)
    nobody = await plan(small(tmp_path, {"tags": []}, [TAGS]), destination, tmp_path)
    assert (nobody.counts["skip"], nobody.manifest.operations_count) == (2, 0)


@pytest.mark.rules("A20", "G11")
async def test_ff19_text_at_the_destination_that_cannot_be_recorded_is_refused_by_object(tmp_path: Path) -> None:
    destination = FakeDestination(namespaces=())
    tag = destination.add("BuiltinTag", name="a\u0000b")
    with pytest.raises(UnserializablePayloadValueError) as caught:
        await plan(small(tmp_path, {"tags": []}, [TAGS]), destination, tmp_path)
    assert caught.value.checked == f"the value of BuiltinTag.name at the destination, id {tag.id}"


async def test_an_object_without_an_identity_at_the_destination_is_a_skip(tmp_path: Path) -> None:
    destination = FakeDestination(namespaces=())
    destination.add("IpamVLAN", name="v", vlan_id=5)
    vlans = entry(
        "IpamVLAN", "vlans", ["vlan_group", "vlan_id"], mapped("vlan_id"), mapped("vlan_group", "site", "LocationSite")
    )
    run = await plan(small(tmp_path, {"vlans": []}, [vlans]), destination, tmp_path)
    assert run.counts == {"create": 0, "update": 0, "remove": 0, "skip": 1, "none": 0}
    assert operations(run) == ()
