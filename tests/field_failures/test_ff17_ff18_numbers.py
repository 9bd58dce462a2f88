"""FF17 and FF18: a number has one spelling or is none; both are decided by one rule, when planned and when read."""

from __future__ import annotations

import json
import math
from decimal import Decimal
from typing import Any

import pytest

from consumers.infrahub.errors import DestinationReadError
from ledger.destination import FieldSelection
from ledger.exit_codes import ExitCode
from ledger.plan.canonical import canonical_json_bytes, operation_id
from ledger.plan.errors import UnserializablePayloadValueError
from producers.errors import PlanRefusedError, SourceUnreadableError
from tests.support.memory_source import MemorySource
from tests.support.planning import Rows, entry, mapped, small
from tests.support.scripted_infrahub import ScriptedInfrahub, lab_reader, text
from tests.support.whole_path import WholePath

DEVICES = entry(
    "LabDevice",
    "devices",
    ["name"],
    *map(mapped, ("name", "settings", "labels", "height", "notes")),
    mapped("site", "site", "LabSite"),
)
SITES = entry("LabSite", "sites", ["name"], mapped("name"))
NAN, INF = math.nan, math.inf
SITE = {"id": "dc1", "name": "dc1"}

NO_NUMBERS: list[tuple[dict[str, Any], str, str]] = [
    ({"height": NAN}, "LabDevice.height", "float"),
    ({"height": INF}, "LabDevice.height", "float"),
    ({"height": Decimal("NaN")}, "LabDevice.height", "Decimal"),
    ({"height": Decimal("-Infinity")}, "LabDevice.height", "Decimal"),
    ({"name": NAN}, "LabDevice.name", "float"),
    ({"notes": -INF}, "LabDevice.notes", "float"),
    ({"settings": {"deep": [{"x": NAN}]}}, "LabDevice.settings", "float"),
    ({"settings": [Decimal("sNaN")]}, "LabDevice.settings", "Decimal"),
    ({"labels": [1, -INF]}, "LabDevice.labels", "float"),
    ({"id": NAN}, "LabDevice.id", "float"),
    ({"id": INF}, "LabDevice.id", "float"),
]


def devices(*rows: dict[str, Any]) -> Rows:
    return {
        "sites": [SITE],
        "devices": [{"id": f"d{n}", "name": f"d{n}", "site": "dc1", **r} for n, r in enumerate(rows)],
    }


@pytest.mark.rules("A20", "G11")
async def test_ff17_what_is_no_number_is_refused_by_kind_field_and_type_when_planned(
    lab: WholePath, monkeypatch: pytest.MonkeyPatch
) -> None:
    MemorySource(devices({}, *(row for row, _, _ in NO_NUMBERS))).instead_of_files(monkeypatch)
    with pytest.raises(PlanRefusedError) as caught:
        await lab.plan({}, [SITES, DEVICES])
    assert caught.value.exit_code is ExitCode.REFUSED
    told = [(finding.name, str(finding)) for finding in caught.value.findings]
    assert len(told) == len(NO_NUMBERS)
    for number, (_, field, kind) in enumerate(NO_NUMBERS, start=2):
        (words,) = (words for _, words in told if f"devices row {number}" in words)
        assert all(word in words for word in (field, kind, "a finite number")), words
    assert {name for name, _ in told} == {"UnserializablePayloadValueError"}
    assert lab.saved_plans() == []


@pytest.mark.rules("A20", "G11")
@pytest.mark.parametrize("token", ["NaN", "Infinity", "-Infinity", "1e400", "-1e400"])
async def test_ff17_tokens_of_a_source_file_are_refused_by_kind_and_field(lab: WholePath, token: str) -> None:
    loaded = small(lab.folder, devices(), [SITES, DEVICES])
    lines = [
        f'{{"id":1,"name":"a","site":"dc1","height":{token}}}',
        f'{{"id":2,"name":"b","site":"dc1","settings":{{"x":[{token}]}}}}',
    ]
    (lab.folder / "rows" / "devices.jsonl").write_text("\n".join(lines) + "\n")
    with pytest.raises(PlanRefusedError) as caught:
        await lab.plan_loaded(loaded)
    first, second = map(str, caught.value.findings)
    assert ("LabDevice.height" in first, "LabDevice.settings" in second) == (True, True)
    assert {finding.name for finding in caught.value.findings} == {"UnserializablePayloadValueError"}
    assert lab.saved_plans() == []


def device_line(settings: str = "{}", **parts: str) -> bytes:
    """A canonical line but for what is put in as text."""
    identity = {"name": "sw1", "site": {"identity": {"name": "dc1"}, "peer_kind": "LabSite"}}
    record = {
        "action": "create",
        "identity": identity,
        "kind": "LabDevice",
        "operation_id": operation_id("create", "LabDevice", identity),
        "payload": {"name": "sw1", "settings": "@settings"},
        "relationships": [
            {"cardinality": "one", "field": "site", "peer_kind": "LabSite", "peers": [{"name": "dc1"}]},
        ],
        "tier": 0,
    }
    line = canonical_json_bytes(record).decode().replace('"@settings"', settings)
    for part, replacement in parts.items():
        line = line.replace(
            {"tier": '"tier":0', "peer": '[{"name":"dc1"}]', "name": '"payload":{"name":"sw1"'}[part], replacement
        )
    return line.encode() + b"\n"


@pytest.mark.rules("A14", "A20", "G1", "G11")
@pytest.mark.parametrize("token", ["NaN", "Infinity", "-Infinity", "1e400", "-1e400"])
@pytest.mark.parametrize("place", ["payload", "peer", "name", "tier"])
async def test_ff17_tokens_in_a_plan_line_are_refused_when_read(lab: WholePath, token: str, place: str) -> None:
    lab.add("LabSite", name="dc1")
    lines = {
        "payload": device_line(f'{{"x":{token}}}'),
        "peer": device_line(peer=f'[{{"name":{token}}}]'),
        "name": device_line(name=f'"payload":{{"name":{token}'),
        "tier": device_line(tier=f'"tier":{token}'),
    }
    outcome = await lab.apply_lines(lines[place])
    assert outcome.exit_code is ExitCode.REFUSED
    assert "NonFiniteNumberError" in {finding.name for finding in outcome.findings}
    assert (lab.operation_events(), lab.mutations()) == ([], [])


@pytest.mark.rules("A20")
def test_ff17_the_encoder_has_no_way_out() -> None:
    for value in (NAN, INF, -INF, {"x": NAN}, [INF]):
        with pytest.raises(ValueError, match="not JSON compliant"):
            canonical_json_bytes(value)
        with pytest.raises(UnserializablePayloadValueError):
            operation_id("create", "LabDevice", {"x": value})


@pytest.mark.rules("G11")
@pytest.mark.parametrize("token", ["NaN", "-Infinity", "1e400", "9" * 5000, "[" * 100_000 + "]" * 100_000])
async def test_ff17_ff18_numbers_of_the_destination_that_are_none_fail_the_reading(token: str) -> None:
    server = ScriptedInfrahub()
    node = f'{{"id":"d-1","__typename":"LabDevice","extra":{{"value":{{"x":{token}}}}}}}'
    body = f'{{"data":{{"LabDevice":{{"count":1,"edges":[{{"node":{node}}}]}}}}}}'
    server.will_answer(*[text(body)] * 4)
    with pytest.raises((DestinationReadError, UnserializablePayloadValueError)) as caught:
        async with lab_reader(server, attempts=1) as reader:
            [item async for item in reader.read("LabDevice", FieldSelection(("extra",)))]
    assert "LabDevice" in caught.value.checked


KEPT = ["1", "1.0", "-0.0", "0.0", "1e-07", "1e+16", "9007199254740993", "9223372036854775808", "18446744073709551616"]
KEPT += ["-9223372036854775809", "1" + "0" * 400, "-" + "9" * 640, "[" * 63 + "]" * 63]
OTHER_SPELLINGS = ["1E2", "1e2", "100.00", "1.50", "0.0000001", "1e-7", "1e16", "-0", "1.0e0", " 1", "10e-1"]
NO_JSON = ["+1", "01", ".5", "1.", "0x1", "1_000", "1e", "--1", "0b1", "\u0661"]


@pytest.mark.rules("A14", "A69", "P102", "G1")
async def test_ff18_one_spelling_is_kept_on_the_whole_path_and_hashed_as_it_was_read(lab: WholePath) -> None:
    lab.add("LabSite", name="dc1")
    rows = devices()
    loaded = small(lab.folder, rows, [SITES, DEVICES])
    lines = [f'{{"id":{n},"name":"d{n}","site":"dc1","settings":{{"x":{text}}}}}' for n, text in enumerate(KEPT)]
    (lab.folder / "rows" / "devices.jsonl").write_text("\n".join(lines) + "\n")
    run = await lab.plan_loaded(loaded)
    stored = (run.run_dir / "plan" / "operations.jsonl").read_bytes()
    assert all(f'"settings":{{"x":{number}}}'.encode() in stored for number in KEPT)
    assert (await lab.apply(run)).exit_code is ExitCode.DONE
    for number, kept in enumerate(KEPT):
        assert json.dumps(lab.values("LabDevice", name=f"d{number}")["settings"]["x"]) == kept
    again = await lab.plan_loaded(loaded)
    assert (again.counts["none"], again.manifest.operations_count) == (len(KEPT) + 1, 0)


@pytest.mark.rules("A14", "G1", "G11")
@pytest.mark.parametrize("number", OTHER_SPELLINGS)
async def test_ff18_a_line_whose_encoding_differs_is_refused(lab: WholePath, number: str) -> None:
    outcome = await lab.apply_lines(device_line(f'{{"x":{number}}}'))
    assert outcome.exit_code is ExitCode.REFUSED
    assert "NonCanonicalLineError" in {finding.name for finding in outcome.findings}
    assert lab.mutations() == []


@pytest.mark.rules("A14", "G1", "G11")
@pytest.mark.parametrize(
    ("settings", "refusal"),
    [
        *((f'{{"x":{number}}}', "MalformedJsonError") for number in NO_JSON),
        (f'{{"x":{"9" * 5000}}}', "IntegerTooLongError"),
        (f'{{"x":{"9" * 641}}}', "IntegerTooLongError"),
        (f'{{"x":-{"9" * 641}}}', "IntegerTooLongError"),
        ("[" * 100_000 + "]" * 100_000, "NestingTooDeepError"),
        ('{"x":' * 100_000 + "1" + "}" * 100_000, "NestingTooDeepError"),
        ("[" * 100_000, "NestingTooDeepError"),
    ],
    ids=lambda value: str(value)[:24],
)
async def test_ff18_what_no_parser_should_meet_is_a_refusal_by_name(
    lab: WholePath, settings: str, refusal: str
) -> None:
    outcome = await lab.apply_lines(device_line(settings))
    assert outcome.exit_code is ExitCode.REFUSED
    assert refusal in {finding.name for finding in outcome.findings}
    assert all(len(str(finding)) < 2000 for finding in outcome.findings)
    assert (lab.operation_events(), lab.mutations()) == ([], [])


@pytest.mark.rules("G11", "P101")
@pytest.mark.parametrize(
    "value", ["9" * 5000, "[" * 100_000 + "]" * 100_000, "1e400", "NaN"], ids=lambda text: text[:8]
)
async def test_ff18_a_manifest_with_such_numbers_is_a_refusal_by_name(lab: WholePath, value: str) -> None:
    manifest = f'{{"format_version":3,"operations_count":{value}}}'.encode()
    outcome = await lab.apply_lines(device_line(), manifest)
    assert outcome.exit_code is ExitCode.REFUSED
    assert any("manifest" in finding.checked for finding in outcome.findings)
    assert lab.mutations() == []


@pytest.mark.rules("G11")
@pytest.mark.parametrize(
    "row",
    ['{"id":1,"x":%s}' % ("9" * 5000), "[" * 100_000 + "]" * 100_000, '{"x":' * 100_000],
    ids=lambda text: text[:8],
)
async def test_ff18_a_source_line_that_no_parser_takes_is_refused_by_its_number(lab: WholePath, row: str) -> None:
    loaded = small(lab.folder, devices({}), [SITES, DEVICES])
    file = lab.folder / "rows" / "devices.jsonl"
    file.write_text(file.read_text() + row + "\n")
    with pytest.raises(SourceUnreadableError, match=r"devices\.jsonl line 2") as caught:
        await lab.plan_loaded(loaded)
    assert caught.value.exit_code is ExitCode.REFUSED
    assert len(str(caught.value)) < 500
    assert lab.saved_plans() == []
