"""Proofs of one operation's outcome: they hold offline, disclose no other operation, and cannot be bent."""

from __future__ import annotations

import base64
import json
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from hypothesis import given, settings
from hypothesis import strategies as st

from ledger.audit.errors import (
    NoCheckpointForProofError,
    NoTrustedKeyError,
    OperationNotProvableError,
    ProofUnreadableError,
)
from ledger.audit.proof import prove_operation
from ledger.audit.proof_check import CheckedProof, ProvenEvent, check_proof
from ledger.audit.publish import publish_checkpoint
from ledger.audit.signed_note import SigningKey
from ledger.chain import event_hash
from ledger.events import Overlap
from ledger.store.ledger import Ledger
from tests.support.recorded_runs import Recorder, make_plan
from tests.support.told_story import CREATED, DOUBTED, UPDATED

pytestmark = pytest.mark.integration

KEY = SigningKey("tests", Ed25519PrivateKey.from_private_bytes(bytes(range(32))))
RED = UPDATED.operations[0].operation_id


@pytest.fixture
async def ledger(told_dsns: dict[str, str]) -> AsyncIterator[Ledger]:
    async with await Ledger.open(told_dsns["writer"], allow_unsafe_fsync=True) as opened:
        yield opened


async def _proof(ledger: Ledger, run_id: str = "run-update", operation_id: str = RED) -> dict[str, Any]:
    row = (await ledger.bindings())[0]
    await publish_checkpoint(ledger, row, [KEY])
    return await prove_operation(ledger, (await ledger.bindings())[0], run_id, operation_id)


def _check(proof: dict[str, Any], *keys: SigningKey) -> CheckedProof:
    return check_proof(json.dumps(proof).encode(), [key.public for key in keys or (KEY,)])


@pytest.mark.rules("G8", "G3")
async def test_g08_a_proof_shows_one_operation_and_who_stands_behind_it(ledger: Ledger) -> None:
    checked = _check(await _proof(ledger))
    assert checked.findings == []
    facts = checked.facts
    assert (facts["run_id"], facts["source"], facts["actor"], facts["reason"]) == (
        "run-update",
        "library",
        "bob",
        "colours of the year",
    )
    assert facts["operation"]["payload"]["description"] == "warm"
    assert [(outcome["kind"], outcome["attempt"]) for outcome in facts["outcomes"]] == [
        ("operation.unknown", 1),
        ("operation.applied", 2),
    ]
    assert facts["signed_by"] == ["tests"]
    assert any("no other event" in text for text in facts["not_proven"])


@pytest.mark.rules("G8", "G3")
async def test_g08_a_proof_names_who_had_a_run_go_on_that_was_refused_or_interrupted(
    ledger: Ledger, recording: Recorder
) -> None:
    assert [word["by"] for word in _check(await _proof(ledger)).facts["resumptions"]] == ["eve"]
    plan = make_plan("run-renewed", creates=1, deletes=0)
    await recording.commit(plan)
    await recording.started(plan, by="on-call", reason="token renewed")
    await recording.outcome(plan, 0, "applied")
    await recording.ended(plan, "run.applied")
    proof = await _proof(recording.ledger, "run-renewed", plan.operations[0].operation_id)
    checked = _check(proof)
    assert checked.findings == []
    (word,) = checked.facts["resumptions"]
    assert (word["by"], word["reason"]) == ("on-call", "token renewed")


async def test_a_proof_discloses_no_other_operation(ledger: Ledger) -> None:
    text = json.dumps(await _proof(ledger))
    assert "warm" in text
    for operation in (*CREATED.operations, *DOUBTED.operations, UPDATED.operations[1]):
        assert operation.operation_id not in text or operation.operation_id == RED
    assert "cold" not in text
    assert "blue" not in text


async def test_a_proof_leaves_out_a_start_that_names_another_object(recording: Recorder) -> None:
    plan = make_plan("run-renewed", creates=1, deletes=0)
    other = Overlap(
        kind="BuiltinTag",
        identity={"name": "undisclosed"},
        operation_id="op_0123456789abcdef",
        fields=["description"],
        source="library",
        run_id="run-before",
        position=1,
    )
    await recording.commit(plan)
    await recording.started(plan, by="on-call", reason="token renewed", overlaps=[other])
    await recording.outcome(plan, 0, "applied")
    await recording.ended(plan, "run.applied")
    proof = await _proof(recording.ledger, "run-renewed", plan.operations[0].operation_id)
    assert "undisclosed" not in json.dumps(proof)
    checked = _check(proof)
    assert (checked.findings, checked.facts["resumptions"]) == ([], [])
    assert any("names other objects" in text for text in checked.facts["not_proven"])


def _set(*path: Any, to: Any) -> Callable[[dict[str, Any]], None]:
    def edit(proof: dict[str, Any]) -> None:
        *parents, last = path
        at: Any = proof
        for step in parents:
            at = at[step]
        assert at[last] != to
        at[last] = to

    return edit


def _replaced(*path: Any, old: str, new: str) -> Callable[[dict[str, Any]], None]:
    def edit(proof: dict[str, Any]) -> None:
        *parents, last = path
        at: Any = proof
        for step in parents:
            at = at[step]
        assert old in at[last]
        at[last] = at[last].replace(old, new)

    return edit


def _forged_body(body: Any) -> Callable[[dict[str, Any]], None]:
    """Another body of the commit, with the hash that it has."""

    def edit(proof: dict[str, Any]) -> None:
        event = proof["events"][0]
        event["body"] = json.dumps(body)
        event["hash"] = event_hash(ProvenEvent.model_validate_json(json.dumps(event)).event()).hex()

    return edit


_BENT: dict[str, tuple[Callable[[dict[str, Any]], None], str]] = {
    "another value in the line": (_replaced("operation", "line", old="warm", new="wart"), "ProofLineNotSealed"),
    "another place of the line": (_set("operation", "ordinal", to=1), "ProofLineNotSealed"),
    "another size of the plan": (_set("operation", "plan_size", to=3), "ProofLineNotSealed"),
    "a path of nothing": (_set("operation", "path", to=[]), "ProofLineNotSealed"),
    "a path that is none": (_set("operation", "path", to=["!"]), "ProofLineNotSealed"),
    "another actor": (_replaced("events", 0, "body", old="bob", new="eve"), "ProofEventChanged"),
    "another outcome": (_set("events", 2, "kind", to="operation.failed"), "ProofEventChanged"),
    "another time": (_set("events", 1, "recorded_at", to="2020-01-01T00:00:00+00:00"), "ProofEventChanged"),
    "another position": (_set("events", 1, "position", to=2), "ProofEventNotCovered"),
    "another hash": (_set("events", 1, "hash", to="00" * 32), "ProofEventNotCovered"),
    "no hash": (_set("events", 1, "hash", to="zz"), "ProofEventInvalid"),
    "a path elsewhere": (
        _set("events", 1, "path", to=[base64.b64encode(bytes(32)).decode()]),
        "ProofEventNotCovered",
    ),
    "no seal": (lambda proof: proof["events"].pop(), "ProofNotWhole"),
    "no commit": (lambda proof: proof["events"].pop(0), "ProofNotWhole"),
    "an outcome twice": (lambda proof: proof["events"].insert(2, proof["events"][2]), "ProofEventOutOfOrder"),
    "another order": (lambda proof: proof["events"].reverse(), "ProofEventOutOfOrder"),
    "about another operation": (_set("about", "operation_id", to="op_0000000000000000"), "ProofOfSomethingElse"),
    "about another run": (_set("about", "run_id", to="run-create"), "ProofOfSomethingElse"),
    "about another plan": (_set("about", "plan_checksum", to="0" * 64), "ProofOfSomethingElse"),
    "about more events": (_set("about", "events", to=99), "ProofOfSomethingElse"),
    "a commit that is a number": (_forged_body({"commit": 5}), "ProofEventInvalid"),
    "a commit without its words": (_forged_body({"commit": {"run_id": "run-update"}}), "ProofEventInvalid"),
    "an event of another kind": (_set("events", 1, "kind", to="run.started"), "ProofEventInvalid"),
    "another head": (lambda proof: _bend_note(proof), "CheckpointNotSigned"),
}


def _bend_note(proof: dict[str, Any]) -> None:
    lines = proof["checkpoint"].split("\n")
    lines[1] = str(int(lines[1]) + 1)
    proof["checkpoint"] = "\n".join(lines)


@pytest.mark.rules("G8")
async def test_g08_a_proof_that_is_bent_anywhere_does_not_hold(ledger: Ledger) -> None:
    proof = await _proof(ledger)
    for name, (bend, expected) in _BENT.items():
        bent = json.loads(json.dumps(proof))
        bend(bent)
        checked = _check(bent)
        assert expected in {finding.name for finding in checked.findings}, name
        assert checked.facts == {}, name
    stranger = SigningKey("tests", Ed25519PrivateKey.generate())
    assert [finding.name for finding in _check(proof, stranger).findings] == ["CheckpointNotSigned"]


_OTHER_TYPES: tuple[Any, ...] = (None, True, 0, -1, 2**70, 0.5, "", "\x00", "x" * 70, [], [[]], {}, {"a": {}})


def _leaves(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Where every value of a document stands, the document itself left out."""
    steps = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for step, inner in steps:
        yield (*path, step)
        yield from _leaves(inner, (*path, step))


@pytest.mark.rules("G8", "G11")
async def test_g11_whatever_stands_in_a_proof_it_is_refused_or_found_and_crashes_nothing(ledger: Ledger) -> None:
    proof = await _proof(ledger)
    facts = _check(proof).facts
    paths = list(_leaves(proof))
    assert len(paths) > 80

    @settings(deadline=None, max_examples=400, derandomize=True, database=None)
    @given(st.sampled_from(paths), st.sampled_from(_OTHER_TYPES), st.booleans())
    def bend(path: tuple[Any, ...], other: Any, rehash: bool) -> None:
        bent = json.loads(json.dumps(proof))
        at = bent
        for step in path[:-1]:
            at = at[step]
        at[path[-1]] = other
        if rehash:
            _rehash(bent)
        try:
            checked = _check(bent)
        except ProofUnreadableError:
            return
        assert checked.findings or checked.facts == facts
        if checked.findings:
            assert checked.facts == {}

    bend()


def _rehash(proof: Any) -> None:
    """Whoever forges an event writes its hash anew, where that can be done."""
    for event in proof["events"] if isinstance(proof["events"], list) else ():
        try:
            event["hash"] = event_hash(ProvenEvent.model_validate_json(json.dumps(event)).event()).hex()
        except (TypeError, ValueError):
            continue


@pytest.mark.rules("G8")
async def test_g08_the_outcome_of_another_operation_or_run_does_not_fit(ledger: Ledger) -> None:
    proof = await _proof(ledger)
    other = await prove_operation(
        ledger, (await ledger.bindings())[0], "run-update", UPDATED.operations[1].operation_id
    )
    mixed = {**proof, "operation": other["operation"]}
    assert {finding.name for finding in _check(mixed).findings} == {"ProofOfAnotherOperation", "ProofOfSomethingElse"}
    elsewhere = await prove_operation(
        ledger, (await ledger.bindings())[0], "run-create", CREATED.operations[0].operation_id
    )
    mixed = {**elsewhere, "events": [*elsewhere["events"][:-1], proof["events"][-1]]}
    assert "ProofOfAnotherPlan" in {finding.name for finding in _check(mixed).findings}


async def test_what_cannot_be_proven_is_a_named_refusal(ledger: Ledger) -> None:
    row = (await ledger.bindings())[0]
    with pytest.raises(NoCheckpointForProofError, match="checkpoint publish"):
        await prove_operation(ledger, row, "run-update", RED)
    with pytest.raises(OperationNotProvableError, match="stored plan"):
        await prove_operation(ledger, row, "run-9", RED)
    with pytest.raises(OperationNotProvableError, match="none with this id"):
        await prove_operation(ledger, row, "run-update", "op_0")
    with pytest.raises(OperationNotProvableError, match="no outcome"):
        await prove_operation(ledger, row, "run-doubt", DOUBTED.operations[1].operation_id)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"{",
        b"[]",
        b'{"format":"apply-ledger-proof","version":1}',
        b"[" * 100_000,
        b"\xff",
        b'{"checkpoint":"\\ud800"}',
    ],
)
def test_what_is_no_proof_is_a_named_refusal(data: bytes) -> None:
    with pytest.raises(ProofUnreadableError):
        check_proof(data, [KEY.public])


async def test_a_proof_needs_a_key_that_is_trusted(ledger: Ledger) -> None:
    proof = json.dumps(await _proof(ledger)).encode()
    with pytest.raises(NoTrustedKeyError):
        check_proof(proof, [])
