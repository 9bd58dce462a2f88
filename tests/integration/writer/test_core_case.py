"""The core case: two sources plan from one observation, commit at once, and follow each other."""

from __future__ import annotations

import pytest

from ledger.commit import Policy
from ledger.exit_codes import ExitCode
from tests.support.inventory_operations import device_type, interface_template, manufacturer
from tests.support.real_writer import RealWriter

pytestmark = pytest.mark.integration


@pytest.mark.rules("P1", "P36", "P37", "G2", "G7")
async def test_two_sources_commit_at_once_and_the_second_run_says_what_it_overwrites(real: RealWriter) -> None:
    observed = await real.head()
    library = await real.commit(
        "library-1",
        [
            manufacturer("Juniper", description="from the library"),
            device_type("Juniper", "EX9214", slug="juniper-ex9214", subdevice_role="parent"),
            manufacturer("Vertiv"),
        ],
        source="from-devicetype-library",
        position=observed,
    )
    demo = await real.commit(
        "demo-1",
        [
            manufacturer("Juniper", description="from NetBox"),
            device_type("Juniper", "EX9214", slug="ex9214"),
            manufacturer("Cisco"),
        ],
        source="from-netbox-demo",
        position=observed,
    )
    assert (await real.writer().drain("demo-1", by="ada")).ending == "run.applied"

    order = [(e.kind, e.run_id) for e in await real.events() if e.kind in ("run.started", "run.applied")]
    assert order == [
        ("run.started", "library-1"),
        ("run.applied", "library-1"),
        ("run.started", "demo-1"),
        ("run.applied", "demo-1"),
    ]
    assert (await real.body("library-1", "run.started"))["overlaps"] == []
    overlaps = (await real.body("demo-1", "run.started"))["overlaps"]
    assert [(o["kind"], o["operation_id"], o["fields"], o["source"], o["run_id"]) for o in overlaps] == [
        (
            "OrganizationManufacturer",
            demo[0].operation_id,
            ["description"],
            "from-devicetype-library",
            "library-1",
        ),
        ("DcimDeviceType", demo[1].operation_id, ["slug"], "from-devicetype-library", "library-1"),
    ]
    applied = {e.operation_id: e.position for e in await real.events("library-1") if e.kind == "operation.applied"}
    assert [o["position"] for o in overlaps] == [applied[library[0].operation_id], applied[library[1].operation_id]]
    values = {(row["kind"], row["values"]["name"]): row["values"] for row in real.content() if "name" in row["values"]}
    assert values["OrganizationManufacturer", "Juniper"]["description"] == "from NetBox"
    assert values["DcimDeviceType", "EX9214"]["slug"] == "ex9214"
    assert values["DcimDeviceType", "EX9214"]["subdevice_role"] == "parent"


@pytest.mark.rules("P59", "P60", "P65")
@pytest.mark.parametrize("on_overlap", ["warn", "refuse"])
async def test_an_overlap_in_kinds_keyed_by_a_constraint_alone_is_named_before_the_first_write(
    real: RealWriter, on_overlap: str
) -> None:
    observed = await real.head()
    shared = [manufacturer("Juniper"), device_type("Juniper", "EX9214")]
    ports = [interface_template("Juniper", "EX9214", name) for name in ("xe-0/0/0", "xe-0/0/1")]
    await real.commit("library-1", [*shared, *ports], source="from-devicetype-library", position=observed)
    other = interface_template("Juniper", "EX9214", "xe-0/0/9")
    await real.commit(
        "demo-1",
        [*shared, ports[0], other],
        source="from-netbox-demo",
        position=observed,
        policy=Policy.model_validate({"on_overlap": on_overlap}),
    )
    before = len(real.sandbox.journal)
    outcome = await real.writer().drain("demo-1", by="ada")
    assert outcome.ending == "plan.refused"
    assert outcome.exit_code is ExitCode.REFUSED
    named = [finding for finding in outcome.findings if finding.name == "OverlappingCreateError"]
    assert [ports[0].operation_id in finding.checked for finding in named] == [True]
    assert "from-devicetype-library" in named[0].found
    assert await real.kinds("demo-1") == ["plan.committed", "plan.refused"]
    assert len(real.sandbox.journal) - before == 4  # the library's; not one of the second run
