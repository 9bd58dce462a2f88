"""One operation, one mutation: what is on the wire, and what is believed of the answer."""

from __future__ import annotations

import inspect
import json
from typing import Any

import httpx
import pytest
from structlog.testing import capture_logs

from consumers.infrahub import errors
from consumers.infrahub.errors import StaleDestinationIdError
from consumers.infrahub.write_surface import InfrahubWriteSurface
from ledger.destination import OutcomeUnknownError, PlannedWriteDestination, ProvenUnwrittenError
from ledger.plan.model import PlannedOperation
from tests.support.operations import create, many, one, update
from tests.support.scripted_infrahub import (
    Answer,
    Guard,
    LeaseTooShortError,
    ScriptedInfrahub,
    applied,
    error,
    found,
    graphql,
    open_surface,
    refused,
    text,
)

SITE = found("LabSite", {"id": "s-1", "name": {"value": "dc1"}})


async def apply(server: ScriptedInfrahub, operation: PlannedOperation, *answers: Answer, **opening: Any) -> str:
    """Write one operation; returns the node id."""
    server.will_answer(*answers)
    async with open_surface(server, **opening) as surface:
        node_id: str = await surface.apply_planned_operation(operation=operation, peers=surface.new_peer_resolver())
    return node_id


def device(action: str = "create", **payload: Any) -> PlannedOperation:
    values = {"name": "sw1", **payload}
    if action == "create":
        return create("LabDevice", {"name": "sw1"}, values, one("site", "LabSite", name="dc1"))
    return update("LabDevice", {"name": "sw1"}, values, destination_id="d-1")


def written(server: ScriptedInfrahub) -> dict[str, Any]:
    """The data of the one write."""
    (body,) = server.mutations
    data: dict[str, Any] = body["variables"]["data"]
    return data


@pytest.mark.rules("P5", "P6", "P7", "P8", "P16")
def test_the_surface_opts_in_and_has_exactly_the_two_members() -> None:
    assert issubclass(InfrahubWriteSurface, PlannedWriteDestination)
    assert PlannedWriteDestination.__abstractmethods__ == {"new_peer_resolver", "apply_planned_operation"}
    public = {name for name in vars(InfrahubWriteSurface) if not name.startswith("_")}
    assert public == {"new_peer_resolver", "apply_planned_operation"}
    signature = inspect.signature(InfrahubWriteSurface.apply_planned_operation)
    assert [p.name for p in signature.parameters.values() if p.kind is p.KEYWORD_ONLY] == ["operation", "peers"]
    assert inspect.iscoroutinefunction(InfrahubWriteSurface.apply_planned_operation)


@pytest.mark.rules("P17", "P19", "P20", "P25", "P26", "P32", "P34", "P42", "P64", "P99")
async def test_a_create_is_one_upsert_without_any_id() -> None:
    server = ScriptedInfrahub()
    operation = device(mtu=9000, enabled=False, description="")
    assert await apply(server, operation, SITE, applied("LabDeviceUpsert", "d-1")) == "d-1"
    (body,) = server.mutations
    assert body == {
        "query": "mutation Upsert($data: LabDeviceUpsertInput!) { LabDeviceUpsert(data: $data) { ok object { id } } }",
        "variables": {
            "data": {
                "name": {"value": "sw1"},
                "mtu": {"value": 9000},
                "enabled": {"value": False},
                "description": {"value": ""},
                "site": {"id": "s-1"},
            }
        },
    }


async def test_an_answer_is_taken_apart_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Strictly, below the library, which is handed what was read: each operation waits for it."""
    server, loads, read = ScriptedInfrahub(), json.loads, []
    server.will_answer(applied("LabSiteUpsert", "s-1"))

    def counted(*given: Any, **how: Any) -> Any:
        read.append(given)
        return loads(*given, **how)

    async with open_surface(server) as surface:
        monkeypatch.setattr(json, "loads", counted)
        operation = create("LabSite", {"name": "a"}, {"name": "a"})
        await surface.apply_planned_operation(operation=operation, peers=surface.new_peer_resolver())
        monkeypatch.undo()
    assert len(read) == 1


@pytest.mark.rules("P24", "P25", "P32", "P33", "P34", "P41", "P53", "P54")
async def test_an_update_is_the_same_upsert_with_the_recorded_id_beside_the_data() -> None:
    server = ScriptedInfrahub()
    operation = update("LabDevice", {"name": "renamed"}, {"name": "renamed"}, destination_id="d-1")
    assert await apply(server, operation, applied("LabDeviceUpsert", "d-1")) == "d-1"
    assert len(server.sent) == 1, "no read, no second write"
    assert written(server) == {"name": {"value": "renamed"}, "id": "d-1"}


@pytest.mark.rules("P31", "P53")
async def test_an_update_of_a_kind_without_any_key_is_written() -> None:
    server = ScriptedInfrahub()
    operation = update("LabNote", {"text": "a"}, {"text": "a"}, destination_id="n-1")
    assert await apply(server, operation, applied("LabNoteUpsert", "n-1")) == "n-1"


@pytest.mark.rules("P3", "P18")
async def test_the_schema_is_fetched_once_and_nothing_else_is_read() -> None:
    server = ScriptedInfrahub()
    server.will_answer(applied("LabSiteUpsert", "s-1"), applied("LabSiteUpsert", "s-2"))
    async with open_surface(server) as surface:
        peers = surface.new_peer_resolver()
        for name in ("a", "b"):
            await surface.apply_planned_operation(
                operation=create("LabSite", {"name": name}, {"name": name}), peers=peers
            )
    assert [request.method for request in server.requests] == ["GET", "POST", "POST"]
    assert len({body["query"] for body in server.sent}) == 1, "one text per kind"


@pytest.mark.rules("P28", "P71")
async def test_a_written_object_is_remembered_for_later_references() -> None:
    server = ScriptedInfrahub()
    server.will_answer(applied("LabSiteUpsert", "s-9"), applied("LabDeviceUpsert", "d-1"))
    async with open_surface(server) as surface:
        peers = surface.new_peer_resolver()
        await surface.apply_planned_operation(
            operation=create("LabSite", {"name": "dc1"}, {"name": "dc1"}), peers=peers
        )
        await surface.apply_planned_operation(operation=device(), peers=peers)
    assert server.mutations[1]["variables"]["data"]["site"] == {"id": "s-9"}


@pytest.mark.rules("P28", "G6")
async def test_g06_what_was_not_confirmed_is_not_remembered() -> None:
    server = ScriptedInfrahub()
    server.will_answer(text("broken", 500), found("LabSite"))
    async with open_surface(server) as surface:
        peers = surface.new_peer_resolver()
        with pytest.raises(OutcomeUnknownError):
            await surface.apply_planned_operation(
                operation=create("LabSite", {"name": "dc1"}, {"name": "dc1"}), peers=peers
            )
        with pytest.raises(errors.PeerNotFoundError):
            await surface.apply_planned_operation(operation=device(), peers=peers)


@pytest.mark.rules("P20", "P93", "P94", "P95", "P96", "P97", "P98", "P99")
@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (["a", "c"], [{"id": "t-a"}, {"id": "t-c"}]),
        (["c", "a"], [{"id": "t-a"}, {"id": "t-c"}]),
        (["a", "a"], [{"id": "t-a"}]),
        ([], []),
        (None, None),
    ],
    ids=str,
)
async def test_a_set_of_peers_is_sent_whole_in_the_one_write(names: list[str] | None, expected: Any) -> None:
    server = ScriptedInfrahub()
    references = [] if names is None else [many("tags", "BuiltinTag", *({"name": name} for name in names))]
    operation = update("LabDevice", {"name": "sw1"}, {"name": "sw1"}, *references, destination_id="d-1")
    server.will_answer(applied("LabDeviceUpsert", "d-1"))
    async with open_surface(server) as surface:
        peers = surface.new_peer_resolver()
        for name in ("a", "c"):
            peers.remember("BuiltinTag", {"name": name}, f"t-{name}")
        await surface.apply_planned_operation(operation=operation, peers=peers)
    assert len(server.sent) == 1
    assert written(server).get("tags") == expected


@pytest.mark.rules("P83", "P65", "P132")
async def test_one_missing_peer_of_a_set_refuses_the_whole_write() -> None:
    server = ScriptedInfrahub()
    tags = many("tags", "BuiltinTag", {"name": "a"}, {"name": "missing"})
    operation = update("LabDevice", {"name": "sw1"}, {"name": "sw1"}, tags, destination_id="d-1")
    with pytest.raises(errors.PeerNotFoundError):
        await apply(server, operation, found("BuiltinTag", {"id": "t", "name": {"value": "a"}}), found("BuiltinTag"))
    assert server.mutations == []


@pytest.mark.rules("P76", "P82")
async def test_the_referring_operation_is_named_to_the_resolver() -> None:
    operation = device()
    with pytest.raises(errors.PeerNotFoundError, match=operation.operation_id):
        await apply(ScriptedInfrahub(), operation, found("LabSite"))


async def test_a_null_attribute_is_sent_as_a_null_value() -> None:
    server = ScriptedInfrahub()
    await apply(server, device("update", description=None, mtu=None), applied("LabDeviceUpsert", "d-1"))
    assert written(server) == {
        "id": "d-1",
        "name": {"value": "sw1"},
        "description": {"value": None},
        "mtu": {"value": None},
    }


@pytest.mark.rules("P88", "P90", "P91")
async def test_a_null_peer_of_an_update_is_left_out_and_said() -> None:
    server, operation = ScriptedInfrahub(), device("update", rack=None)
    with capture_logs() as logs:
        await apply(server, operation, applied("LabDeviceUpsert", "d-1"))
    assert "rack" not in written(server)
    (line,) = logs
    assert (line["log_level"], line["operation_id"], line["kind"], line["field"]) == (
        "warning",
        operation.operation_id,
        "LabDevice",
        "rack",
    )


@pytest.mark.rules("P88", "P89")
async def test_a_null_peer_of_a_create_is_left_out_silently() -> None:
    server = ScriptedInfrahub()
    with capture_logs() as logs:
        await apply(server, device(rack=None), SITE, applied("LabDeviceUpsert", "d-1"))
    assert "rack" not in written(server)
    assert logs == []


async def test_every_value_reaches_the_wire_as_it_is() -> None:
    extra = {"auth-token": 1, "1a": 2, "": 3, "$x": ["$y", 2**40, 'a"b', None, True]}
    values = {"description": 'two\r\nlines\t\\ "q" Ünï 😀 $x', "extra": extra, "labels": ["$x", 1, "b"]}
    server = ScriptedInfrahub()
    await apply(server, device("update", **values), applied("LabDeviceUpsert", "d-1"))
    assert {name: written(server)[name]["value"] for name in values} == values


@pytest.mark.rules("P27", "P38", "P39", "P55", "P133", "G5")
@pytest.mark.parametrize(
    ("message", "advice"),
    [
        ("Unable to find the node d-1 / LabDevice in the database.", "deleted"),
        ("Node with id d-1 exists, but it is a BuiltinTag, not LabDevice", "another kind"),
    ],
)
async def test_g05_a_recorded_id_that_is_gone_is_proven_unwritten(message: str, advice: str) -> None:
    stale = error(
        message,
        field_name="LabDeviceUpsert",
        code="NODE_NOT_FOUND",
        http_status=404,
        data={"node_kind": "LabDevice", "identifier": "d-1"},
    )
    server = ScriptedInfrahub()
    with pytest.raises(StaleDestinationIdError) as caught:
        await apply(server, device("update"), refused("LabDeviceUpsert", stale))
    assert isinstance(caught.value, ProvenUnwrittenError)
    assert "fresh plan" in caught.value.next_action
    assert advice in caught.value.next_action
    assert "d-1" in caught.value.expected
    assert len(server.mutations) == 1


@pytest.mark.rules("P39", "P133", "G5")
async def test_g05_a_missing_peer_gives_the_same_pair_and_proves_nothing() -> None:
    missing = error(
        "Unable to find the node t-1 / BuiltinTag in the database.",
        field_name="LabDeviceUpsert",
        code="NODE_NOT_FOUND",
        http_status=404,
        data={"node_kind": "BuiltinTag", "identifier": "t-1"},
    )
    with pytest.raises(OutcomeUnknownError) as caught:
        await apply(ScriptedInfrahub(), device("update"), refused("LabDeviceUpsert", missing))
    assert (caught.value.sent, caught.value.code) == (True, "NODE_NOT_FOUND")


@pytest.mark.rules("G6", "P7")
@pytest.mark.parametrize(
    "result",
    [
        {"ok": False, "object": {"id": "d-1"}},
        {"ok": None, "object": {"id": "d-1"}},
        {"ok": True, "object": None},
        {"ok": True, "object": {"id": ""}},
        {"ok": True, "object": {"id": None}},
        {"ok": True, "object": {"id": "another"}},
        None,
    ],
    ids=str,
)
async def test_g06_applied_needs_ok_and_the_recorded_id(result: Any) -> None:
    with pytest.raises(OutcomeUnknownError) as caught:
        await apply(ScriptedInfrahub(), device("update"), graphql({"data": {"LabDeviceUpsert": result}}))
    assert caught.value.sent is True
    assert json.dumps(result) in caught.value.found


@pytest.mark.rules("G5", "P127", "P128", "P129", "P131")
@pytest.mark.parametrize(
    ("answer", "error_class", "status", "code"),
    [
        (httpx.ReadError("reset"), errors.AnswerLostError, None, None),
        (httpx.ReadTimeout("late"), errors.AnswerLostError, None, None),
        (text("Internal Server Error", 500), errors.DestinationFaultError, 500, None),
        (text("<html>", 200), errors.UnreadableAnswerError, 200, None),
        (graphql({"data": None, "errors": []}), errors.ContradictoryAnswerError, 200, None),
        (
            refused("LabDeviceUpsert", error("defunct", field_name="x", code="UNDEFINED_ERROR", http_status=500)),
            errors.DestinationFaultError,
            200,
            "UNDEFINED_ERROR",
        ),
        (
            refused(
                "LabDeviceUpsert",
                error("Violates uniqueness constraint 'name'", field_name="x", code="UNDEFINED_ERROR", http_status=422),
            ),
            errors.UniquenessConflictError,
            200,
            "UNDEFINED_ERROR",
        ),
        (graphql({"errors": ["Branch: lab1 not found."]}, 404), errors.BranchUnavailableError, 404, None),
        (graphql({"errors": [{"message": "no"}]}, 401), errors.CredentialRejectedError, 401, None),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
async def test_g05_no_other_answer_says_whether_it_wrote(
    answer: Answer, error_class: type[OutcomeUnknownError], status: int | None, code: str | None
) -> None:
    server = ScriptedInfrahub()
    with pytest.raises(error_class) as caught:
        await apply(server, device("update"), answer)
    assert isinstance(caught.value, OutcomeUnknownError)
    assert not isinstance(caught.value, ProvenUnwrittenError)
    assert (caught.value.sent, caught.value.http_status, caught.value.code) == (True, status, code)
    assert caught.value.next_action
    assert len(server.mutations) == 1, "a write that may have landed is never repeated here"


@pytest.mark.rules("G5", "G11")
async def test_g11_a_key_that_is_held_out_of_reach_is_named_as_that() -> None:
    """A fresh plan reads the same branch and plans the same create: alone it would lead round in a circle."""
    held = error(
        "Node main-1 / LabDevice uses this human-friendly ID, but does not exist on this branch. Please rebase ...",
        field_name="LabDeviceUpsert",
        code="NODE_NOT_FOUND",
        http_status=404,
        data={"node_kind": "LabDevice", "identifier": "main-1"},
    )
    with pytest.raises(errors.KeyElsewhereError, match="main-1") as caught:
        await apply(ScriptedInfrahub(), device(), SITE, refused("LabDeviceUpsert", held))
    assert (caught.value.sent, caught.value.final) == (True, True)
    assert "rebase the branch" in caught.value.next_action


@pytest.mark.rules("G11", "G5")
async def test_g11_every_message_of_a_list_of_errors_is_kept() -> None:
    items = [error(f"bad {n}", field_name="x", code="ATTRIBUTE_REQUIRED", http_status=422) for n in range(3)]
    with pytest.raises(errors.DestinationRejectedError) as caught:
        await apply(ScriptedInfrahub(), device("update"), refused("LabDeviceUpsert", *items))
    assert all(f"bad {n}" in caught.value.found for n in range(3))


@pytest.mark.rules("G2")
async def test_g02_the_guard_is_asked_before_every_request_and_its_refusal_passes() -> None:
    server = ScriptedInfrahub()
    for refuse_from, sent in ((2, 0), (3, 1)):
        server = ScriptedInfrahub()
        with pytest.raises(LeaseTooShortError):
            await apply(server, device(), SITE, guard=Guard(refuse_from=refuse_from))
        assert (len(server.sent), len(server.mutations)) == (sent, 0)


@pytest.mark.rules("P36", "P37")
async def test_a_create_of_an_object_that_is_there_converges_under_its_own_action() -> None:
    server = ScriptedInfrahub()
    operation = create("LabSite", {"name": "dc1"}, {"name": "dc1"})
    assert await apply(server, operation, applied("LabSiteUpsert", "there-already")) == "there-already"
    assert len(server.sent) == 1, "nothing is read to find out"
