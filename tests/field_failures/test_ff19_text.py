"""FF19: text that UTF-8 or the database cannot hold is refused early; in the destination's own words it is escaped."""

from __future__ import annotations

import json
from typing import Any

import pytest

from consumers.settings import WriterSettings
from consumers.stores import postgres_connector
from consumers.writer import BindingWriter
from ledger.exit_codes import ExitCode
from ledger.plan.canonical import canonical_json_bytes, operation_id
from producers.errors import PlanRefusedError, SourceUnreadableError
from tests.support.committed_plans import tag
from tests.support.field_schema import field_schema
from tests.support.memory_source import MemorySource
from tests.support.planning import Rows, entry, mapped, small
from tests.support.real_writer import RealWriter
from tests.support.scripted_destination import ScriptedDestination, unknown
from tests.support.scripted_infrahub import ScriptedInfrahub, applied, error, refused, text
from tests.support.whole_path import WholePath

TAGS = entry("LabTag", "tags", ["name"], mapped("name"))
DEVICES = entry(
    "LabDevice",
    "devices",
    ["name"],
    *map(mapped, ("name", "settings", "labels", "notes")),
    mapped("site", "site", "LabSite"),
    mapped("tags", "tags", "LabTag"),
)
SITES = entry("LabSite", "sites", ["name"], mapped("name"))
UNHOLDABLE = ["a\u0000b", "\ud800", "x\udfffy", "\udc00\ud800", "\u0000"]


def devices(*rows: dict[str, Any]) -> Rows:
    found = [{"id": f"d{n}", "name": f"d{n}", "site": "dc1", **row} for n, row in enumerate(rows)]
    return {"tags": [], "sites": [{"id": "dc1", "name": "dc1"}], "devices": found}


@pytest.mark.rules("A14", "A20", "G10", "G11")
@pytest.mark.parametrize("bad", UNHOLDABLE, ids=ascii)
async def test_ff19_planning_refuses_it_wherever_a_row_can_hold_it_and_names_all_at_once(
    lab: WholePath, monkeypatch: pytest.MonkeyPatch, bad: str
) -> None:
    places: list[tuple[dict[str, Any], str]] = [
        ({"name": bad}, "LabDevice.name"),
        ({"notes": bad}, "LabDevice.notes"),
        ({"settings": {"deep": [bad]}}, "LabDevice.settings"),
        ({"settings": {bad: 1}}, "LabDevice.settings"),
        ({"labels": [bad]}, "LabDevice.labels"),
        ({"site": bad}, "LabDevice.site"),
        ({"site": {"id": bad}}, "LabDevice.site"),
        ({"tags": [bad]}, "LabDevice.tags"),
        ({"tags": [{"id": bad}]}, "LabDevice.tags"),
        ({"id": bad}, "LabDevice.id"),
    ]
    MemorySource(devices({}, *(row for row, _ in places))).instead_of_files(monkeypatch)
    with pytest.raises(PlanRefusedError) as caught:
        await lab.plan({}, [TAGS, SITES, DEVICES])
    assert caught.value.exit_code is ExitCode.REFUSED
    for number, (_, field) in enumerate(places, start=2):
        told = [
            str(f) for f in caught.value.findings if f"devices row {number}" in str(f) or f'"d{number - 1}"' in str(f)
        ]
        assert any("UnserializablePayloadValueError" in words and field in words for words in told), (number, told)
    str(caught.value).encode()  # the refusal itself can be shown and stored
    assert "\x00" not in str(caught.value)
    assert lab.saved_plans() == []
    run = await lab.plan({}, [TAGS, SITES, DEVICES], continue_on_error=True)
    assert (run.counts["create"], run.counts["skip"]) == (2, len(places))
    assert (await lab.apply(run)).exit_code is ExitCode.DONE


@pytest.mark.rules("A14", "G11")
@pytest.mark.parametrize(
    ("raw", "refusal"),
    [
        (b'{"id":1,"name":"a\x00b"}', SourceUnreadableError),
        (b'{"id":1,"name":"\xed\xa0\x80"}', SourceUnreadableError),
        (b'{"id":1,"name":"\xff"}', SourceUnreadableError),
        (b'{"id":1,"name":"a\\u0000b"}', PlanRefusedError),
        (b'{"id":1,"name":"\\ud800"}', PlanRefusedError),
        (b'{"id":1,"name":"\\ud800\\u0041"}', PlanRefusedError),
    ],
    ids=ascii,
)
async def test_ff19_a_source_file_is_refused_raw_and_escaped(
    lab: WholePath, raw: bytes, refusal: type[Exception]
) -> None:
    loaded = small(lab.folder, {"tags": []}, [TAGS])
    (lab.folder / "rows" / "tags.jsonl").write_bytes(raw + b"\n")
    with pytest.raises(refusal, match="tags") as caught:
        await lab.plan_loaded(loaded)
    str(caught.value).encode()
    assert lab.saved_plans() == []
    # an escaped pair is one character, and a good one
    (lab.folder / "rows" / "tags.jsonl").write_bytes(b'{"id":1,"name":"\\ud83d\\ude00"}\n')
    assert (await lab.apply(await lab.plan_loaded(loaded))).exit_code is ExitCode.DONE
    assert lab.values("LabTag")["name"] == "\U0001f600"


def line_with(place: str, spelled: bytes) -> bytes:
    """A canonical line of a plug with one text put in as bytes."""
    identity: dict[str, Any] = {"name": "@name"}
    record = {
        "action": "create",
        "identity": identity,
        "kind": "LabPlug",
        "operation_id": operation_id("create", "LabPlug", {"name": "p"}),
        "payload": {"name": "@name"},
        "relationships": [
            {"cardinality": "one", "field": "host", "peer_kind": "LabHost", "peers": [{"address": "@peer"}]}
        ],
        "tier": 0,
    }
    line = canonical_json_bytes(record)
    return line.replace(f"@{place}".encode(), spelled).replace(b"@name", b"p").replace(b"@peer", b"10.0.0.1") + b"\n"


@pytest.mark.rules("A14", "G1", "G10", "G11")
@pytest.mark.parametrize("place", ["name", "peer"])
@pytest.mark.parametrize(
    ("spelled", "refusal"),
    [
        (b"a\x00b", "NullCharacterError"),
        (b"a\\u0000b", "NullCharacterError"),
        (b"\xed\xa0\x80", "InvalidUtf8Error"),
        (b"\xff", "InvalidUtf8Error"),
        (b"\\ud800", "LoneSurrogateError"),
        (b"\\udc00\\ud800", "LoneSurrogateError"),
    ],
    ids=ascii,
)
async def test_ff19_a_hand_made_plan_is_refused_when_it_is_read(
    lab: WholePath, place: str, spelled: bytes, refusal: str
) -> None:
    outcome = await lab.apply_lines(line_with(place, spelled))
    assert outcome.exit_code is ExitCode.REFUSED
    assert refusal in {finding.name for finding in outcome.findings}
    assert (lab.operation_events(), lab.mutations()) == ([], [])


HOSTILE = "bad \x00 and \ud800 text"


@pytest.mark.rules("G5", "G10")
async def test_ff19_the_destinations_words_are_escaped_there_and_recorded(lab: WholePath) -> None:
    lab.answered_by = server = ScriptedInfrahub(schema_document=field_schema())
    fault = error(HOSTILE, field_name="LabTagUpsert", code="UNDEFINED_ERROR", http_status=422)
    server.will_answer(refused("LabTagUpsert", fault))
    run = await lab.plan({"tags": [{"id": 1, "name": "a\\u0000"}]}, [TAGS])
    assert (await lab.apply(run)).exit_code is ExitCode.STOPPED_MAYBE_WRITTEN
    (event,) = lab.events("operation.unknown")
    assert "bad \\u0000 and \\ud800 text" in event["message"]
    json.dumps(event).encode()


@pytest.mark.rules("G5", "G6", "G10")
@pytest.mark.parametrize("node_id", ["a\x00b", "\ud800", " ", "x" * 100_000], ids=lambda text: ascii(text)[:12])
async def test_ff19_an_id_that_cannot_be_recorded_confirms_nothing(lab: WholePath, node_id: str) -> None:
    lab.answered_by = server = ScriptedInfrahub(schema_document=field_schema())
    server.will_answer(applied("LabTagUpsert", node_id))
    run = await lab.plan({"tags": [{"id": 1, "name": "a"}]}, [TAGS])
    assert (await lab.apply(run)).exit_code is ExitCode.STOPPED_MAYBE_WRITTEN
    assert lab.operation_events() == ["operation.unknown"]


@pytest.mark.rules("G5", "G10")
@pytest.mark.parametrize("body", [b"\xff\xfe", b"\x00" * 10, b"\xed\xa0\x80", b""], ids=ascii)
async def test_ff19_bytes_that_are_no_text_are_an_outcome_too(lab: WholePath, body: bytes) -> None:
    lab.answered_by = server = ScriptedInfrahub(schema_document=field_schema())
    server.will_answer(text(body, 500))
    run = await lab.plan({"tags": [{"id": 1, "name": "a"}]}, [TAGS])
    assert (await lab.apply(run)).exit_code is ExitCode.STOPPED_MAYBE_WRITTEN
    assert lab.operation_events() == ["operation.unknown"]


@pytest.mark.integration
@pytest.mark.rules("G5", "G10")
async def test_ff19_the_real_ledger_takes_the_words_of_a_hostile_destination(real: RealWriter) -> None:
    (operation,) = await real.commit("run-1", [tag("a")])
    destination = ScriptedDestination(answers={operation.operation_id: [unknown(found=HOSTILE)]})
    settings: WriterSettings = real.settings
    connect = postgres_connector(settings, allow_unsafe_fsync=True)
    writer = BindingWriter(real.dsn, real.binding, destination, settings, connect=connect)
    assert (await writer.drain("run-1", by="ada")).exit_code is ExitCode.STOPPED_MAYBE_WRITTEN
    body = await real.body("run-1", "operation.unknown")
    assert "bad \\u0000 and \\ud800 text" in body["message"]
