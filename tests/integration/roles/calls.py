"""Calls of the functions that the writer's role may run, with arguments that it should not get through with.

Binding 1 is held by ``writer-1`` under epoch 1, binding 2 by ``writer-2`` under epoch 1; ``committed-run`` is a run of
binding 1 in which operation 0 was applied.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Call:
    """A call and the state that refuses it."""

    name: str
    statement: str
    state: str


def event(**other: str) -> str:
    """The eight lists of an append of one event, as SQL."""
    lists = {
        "id": "array[gen_random_uuid()]",
        "kind": "array['operation.applied']",
        "version": "array[1]",
        "run": "array['committed-run']",
        "operation": "array['op_9']",
        "ordinal": "array[9::bigint]",
        "attempt": "array[1]",
        "body": "array['{}']",
    } | other
    return ", ".join(lists.values())


def append(
    events: str = "",
    *,
    holder: str = "1, 'writer-1', 1",
    mark: str = "'keep', null, null, null, null",
    closes: str = "'{}', '{}'",
) -> str:
    """A call of ``append_v1``."""
    return f"select ledger.append_v1({holder}, {events or event()}, null, {mark}, {closes})"


def success(
    *, holder: str = "1, 'writer-1', 1", operation: str = "'op_9', 9, 1", body: str = "'{}'", mark: str = "'r', 1, 1"
) -> str:
    """A call of ``applied_and_next_v1``."""
    return f"select ledger.applied_and_next_v1({holder}, gen_random_uuid(), 1, 'r', {operation}, {body}, {mark})"


def control(kind: str = "plan.refused", run: str = "another-run", body: str = "{}") -> str:
    """A call of ``append_control_v1``."""
    lists = f"array[gen_random_uuid()], array['{kind}'], array[1], array['{run}'], array['{body}']"
    return f"select ledger.append_control_v1(1, {lists}, null)"


def claim(body: str, *, binding: int = 1, epoch: int = 1) -> str:
    """A call of ``claim_v1``."""
    return f"select ledger.claim_v1({binding}, 'mine', 60, 0, 'host', {epoch}, gen_random_uuid(), 1, '{body}')"


_GENESIS = "decode(repeat('00', 32), 'hex')"
_COMMIT = '{"run_id": "r", "commit_id": "%s"}' % ("0" * 32)
_PLAN = "(select checksum from ledger.plan)"
_DONE = "array['op_0000000000000000']"
_ONE = ("gen_random_uuid()", "'run.stopped'::text", "1", "'r'::text", "null::text", "null::bigint", "null::integer")
MANY = ", ".join(f"array_fill({value}, array[501])" for value in (*_ONE, "'{}'::text"))
TWICE = ", ".join(f"array_fill({value}, array[2])" for value in (*_ONE, "'{}'::text"))

FENCE = [
    Call("another's binding with an epoch of one's own", append(holder="2, 'writer-1', 1"), "LG001"),
    Call("an epoch to come", append(holder="1, 'writer-1', 2"), "LG001"),
    Call("no epoch", append(holder="1, 'writer-1', null"), "LG001"),
    Call("no name", append(holder="1, null, 1"), "LG001"),
    Call("no binding", append(holder="99, 'writer-1', 1"), "LG010"),
    Call("no binding and no name", append(holder="99, null, null"), "LG010"),
    Call("a lease that is held", claim('{"epoch": 2, "role": "ledger_writer"}'), "LG003"),
    Call("another's lease, prolonged", "select ledger.renew_v1(2, 'writer-1', 1, 60)", "LG001"),
    Call("another's lease, given back", "select ledger.release_v1(2, 'writer-1', 1)", "LG001"),
    Call("another's order", "select ledger.close_order_v1(1, 'writer-2', 1, 1, 'done')", "LG001"),
    Call("a success at another's binding", success(holder="2, 'writer-1', 1"), "LG001"),
    Call("a success of an epoch to come", success(holder="1, 'writer-1', 2"), "LG001"),
    Call("a success of no epoch", success(holder="1, 'writer-1', null"), "LG001"),
    Call("a success of nobody", success(holder="1, null, 1"), "LG001"),
    Call("a success nowhere", success(holder="99, 'writer-1', 1"), "LG010"),
    Call("a success and half a mark", success(mark="'r', null, 1"), "LG021"),
    Call("a success and no mark", success(mark="null, null, null"), "LG021"),
    Call("a success without a body", success(body="null"), "23502"),
    Call("a success of no operation", success(operation="null, 9, 1"), "23514"),
    Call("a claim of no time", "select ledger.claim_v1(1, 'm', 0, 0, 'h', 1, gen_random_uuid(), 1, '{}')", "LG021"),
]

KINDS = [
    *(
        Call(f"{kind} without a lease", control(kind), "LG009")
        for kind in (
            "operation.applied",
            "operation.skipped",
            "operation.failed",
            "operation.unknown",
            "run.started",
            "run.resumed",
            "run.stopped",
            "run.applied",
            "run.failed",
            "run.interrupted",
            "writer.opened",
            "plan.committed",
            "made.up",
        )
    ),
    Call("the end of another's run", control(run="committed-run"), "LG023"),
    Call("writer.opened without a claim", append(event(kind="array['writer.opened']")), "LG009"),
    Call("plan.committed without an order", append(event(kind="array['plan.committed']")), "LG009"),
    Call("a kind of one's own", append(event(kind="array['made.up']")), "LG009"),
    Call("no kind", append(event(kind="array[null::text]")), "LG009"),
]

EVENTS = [
    Call("a second success", append(event(operation=_DONE, attempt="array[2]")), "23505"),
    Call(
        "two outcomes",
        append(event(kind="array['operation.failed']", operation=_DONE)),
        "23505",
    ),
    Call("one id twice", append(TWICE), "23505"),
    Call("no id", append(event(id="array[null::uuid]")), "23502"),
    Call("a negative ordinal", append(event(ordinal="array[-1::bigint]")), "23514"),
    Call("attempt nought", append(event(attempt="array[0]")), "23514"),
    Call("version nought", append(event(version="array[0]")), "23514"),
    Call("an outcome of no operation", append(event(operation="array[null::text]")), "23514"),
    Call("an outcome of no run", append(event(run="array[null::text]")), "23514"),
    Call("a run of no name", append(event(run="array['']")), "23514"),
    Call("a run of a long name", append(event(run="array[repeat('x', 129)]")), "23514"),
    Call("an operation of a long name", append(event(operation="array[repeat('x', 129)]")), "23514"),
    Call("an event of a run without it", append(event(kind="array['run.stopped']", run="array[null::text]")), "23514"),
]
BODIES = [
    Call("a large body", append(event(body="array['{\"a\":\"' || repeat('x', 262144) || '\"}']")), "LG007"),
    Call("a list", append(event(body="array['[]']")), "23514"),
    Call("a number", append(event(body="array['1']")), "23514"),
    Call("nothing", append(event(body="array['null']")), "23514"),
    Call("no body", append(event(body="array[null::text]")), "23502"),
    Call("no JSON", append(event(body="array['{']")), "22P02"),
    Call("two values", append(event(body="array['{} {}']")), "22P02"),
    Call("NUL, escaped", append(event(body='array[\'{"a":"\\u0000"}\']')), "22P05"),
    Call("half a character", append(event(body='array[\'{"a":"\\ud800"}\']')), "22P02"),
    Call("no number", append(event(body="array['{\"a\":NaN}']")), "22P02"),
    Call("depth", append(event(body="array[repeat('{\"a\":', 20000) || '1' || repeat('}', 20000)]")), "54001"),
    Call("digits", append(event(body="array['{\"a\":1' || repeat('0', 200000) || '}']")), "22003"),
    Call("a list without a lease", control(body="[]"), "23514"),
    Call("NUL without a lease", control(body='{"a":"\\u0000"}'), "22P05"),
]

ARRAYS = [
    Call("no lists", append(", ".join(["null"] * 8)), "LG021"),
    Call("one list is missing", append(event(run="null")), "LG021"),
    Call("one list is longer", append(event(run="array['a', 'b']")), "LG021"),
    Call("many", append(MANY), "LG008"),
    Call("a mark of no operation", append(mark="'set', null, null, null, null"), "LG021"),
    Call("a mark before the first", append(mark="'set', 'r', -1, 1, null"), "23514"),
    Call("a mark and a quiet period", append(mark="'set', 'r', 1, 1, 1"), "LG021"),
    Call("a mark of its own", append(mark="'drop', null, null, null, null"), "LG021"),
    Call("a quiet period that is over", append(mark="'keep', null, null, null, -1"), "LG021"),
    Call("an order that is not there", append(closes="array[99::bigint], array['done']"), "LG018"),
    Call("an order, opened", append(closes="array[1::bigint], array['open']"), "LG018"),
    Call("an order in a state of its own", append(closes="array[1::bigint], array['mine']"), "LG018"),
    Call("orders without states", append(closes="array[1::bigint], null"), "23502"),
    Call("orders in two dimensions", append(closes="array[array[1::bigint]], array[array['done']]"), "LG018"),
]

FORGERIES = [
    Call(
        "a claim in another's name",
        "select ledger.claim_v1(3, 'mine', 60, 0, 'host', 0, gen_random_uuid(), 1,"
        ' \'{"epoch": 1, "role": "postgres"}\')',
        "LG021",
    ),
    Call(
        "a claim of another epoch",
        "select ledger.claim_v1(3, 'mine', 60, 0, 'host', 0, gen_random_uuid(), 1,"
        ' \'{"epoch": 7, "role": "ledger_writer"}\')',
        "LG021",
    ),
    Call(
        "a commit beside another event",
        f"select ledger.submit_commit_v1(1, gen_random_uuid(), '{_COMMIT}', gen_random_uuid(), 1,"
        " '{\"commit\": {}}')",
        "LG021",
    ),
    Call(
        "a commit of nothing",
        "select ledger.submit_commit_v1(1, gen_random_uuid(), '{}', gen_random_uuid(), 1, '{\"commit\": {}}')",
        "23502",
    ),
    Call(
        "half a commit",
        f"select ledger.submit_commit_v1(1, gen_random_uuid(), '{_COMMIT}', gen_random_uuid(), 1,"
        f" '{{\"commit\": {_COMMIT}}}')",
        "23514",
    ),
    Call(
        "an order of one's own",
        "select ledger.submit_order_v1(1, gen_random_uuid(), 'apply', 'committed-run', '{}')",
        "LG021",
    ),
    Call("a commit as an order", "select ledger.submit_order_v1(1, gen_random_uuid(), 'commit', 'r', '{}')", "LG021"),
    Call("an order for no run", "select ledger.submit_order_v1(1, gen_random_uuid(), 'stop', 'nobody', '{}')", "LG015"),
    Call(
        "a large order",
        "select ledger.submit_order_v1(1, gen_random_uuid(), 'stop', 'committed-run', repeat(' ', 262145))",
        "LG021",
    ),
    Call(
        "an order that is no object",
        "select ledger.submit_order_v1(1, gen_random_uuid(), 'stop', 'committed-run', '[]')",
        "23514",
    ),
]

PLANS = [
    Call("another body under a checksum", f"select ledger.open_plan_v1({_PLAN}, '{{}}', 1, null, null)", "LG019"),
    Call("a plan that is never sealed", "select ledger.open_plan_v1(sha256('x'), '{}', 1, null, null)", "23503"),
    Call(
        "lines for a sealed plan",
        f"select ledger.add_plan_lines_v1({_PLAN}, 1, array[E'{{}}\\n'], array[sha256('x')])",
        "LG021",
    ),
    Call("coverage for a sealed plan", f"select ledger.add_plan_coverage_v1({_PLAN}, 1, array[E'{{}}\\n'])", "LG021"),
    Call("sealed twice", f"select ledger.seal_plan_v1({_PLAN})", "LG021"),
    Call("sealed without a plan", "select ledger.seal_plan_v1(sha256('y'))", "LG021"),
    Call(
        "another artifact",
        f"select ledger.store_artifact_v1(1, 'committed-run', {_PLAN}, 's', '[]', sha256('x'))",
        "LG020",
    ),
    Call(
        "an artifact of no plan",
        "select ledger.store_artifact_v1(1, 'r', sha256('x'), 's', '[]', sha256('x'))",
        "23503",
    ),
    Call("no detail", "select ledger.store_detail_v1(null)", "23502"),
    Call(
        "another refusal from one place",
        "select ledger.refuse_message_v1('topic', 0, 2147483649, sha256('y'), 'r', null, null, null, null)",
        "LG024",
    ),
    Call(
        "a refusal from before the first place",
        "select ledger.refuse_message_v1('topic', 0, -1, sha256('y'), 'r', null, null, null, null)",
        "23514",
    ),
]

RELAY = [
    Call("a relay of no binding", "select ledger.claim_relay_v1(99, 'topic', 'mine', 60)", "LG010"),
    Call("a relay of nobody", "select ledger.claim_relay_v1(1, 'topic', null, 60)", "LG021"),
    Call("a relay for ever", "select ledger.claim_relay_v1(1, 'topic', 'mine', 'Infinity')", "LG021"),
    Call("a relay to no topic", "select ledger.claim_relay_v1(1, '', 'mine', 60)", "23514"),
    Call("a held relay", "select ledger.claim_relay_v1(1, 'held', 'mine', 60)", "LG025"),
    Call("another's cursor", f"select ledger.advance_relay_v1(1, 'held', 'mine', 1, 0, {_GENESIS}, 1)", "LG026"),
    Call("an epoch to come", f"select ledger.advance_relay_v1(1, 'held', 'relay-1', 2, 0, {_GENESIS}, 1)", "LG026"),
    Call("no epoch", f"select ledger.advance_relay_v1(1, 'held', 'relay-1', null, 0, {_GENESIS}, 1)", "LG026"),
    Call(
        "a cursor that goes back", f"select ledger.advance_relay_v1(1, 'held', 'relay-1', 1, 0, {_GENESIS}, 1)", "LG027"
    ),
    Call(
        "a cursor behind the end",
        f"select ledger.advance_relay_v1(1, 'held', 'relay-1', 1, 999, {_GENESIS}, 1)",
        "LG027",
    ),
    Call(
        "a cursor of another log",
        f"select ledger.advance_relay_v1(1, 'held', 'relay-1', 1, 2, {_GENESIS}, 1)",
        "LG027",
    ),
]

WORKERS = [
    Call("a worker for ever", "select ledger.worker_beat_v1('mine', 'host', '{}', 0, 'Infinity')", "LG021"),
    Call("a worker of no name", "select ledger.worker_beat_v1(null, 'host', '{}', 0, 1)", "23502"),
    Call("a worker that holds less than nothing", "select ledger.worker_beat_v1('mine', 'host', '{}', -1, 1)", "23514"),
    Call("a worker of no host", "select ledger.worker_beat_v1('mine', null, '{}', 0, 1)", "23502"),
    Call("nobody goes", "select ledger.worker_gone_v1(null)", "LG021"),
]

_TOKEN = "select ledger.create_api_token_v1({}, sha256('x'), null)"
TOKENS = [
    Call(
        "a token for ever and a day",
        "select ledger.create_api_token_v1('1111111111111111', 'n', 'reader', sha256('x'), 'Infinity')",
        "LG021",
    ),
    Call("a token of a role that there is not", _TOKEN.format("'1111111111111111', 'n', 'owner'"), "23514"),
    Call("a token of no name", _TOKEN.format("'1111111111111111', null, 'reader'"), "23502"),
    Call("a token of another shape", _TOKEN.format("'1', 'n', 'reader'"), "23514"),
    Call("a second token of one name", _TOKEN.format("'1111111111111111', 'a token', 'reader'"), "LG030"),
    Call("a second token of one id", _TOKEN.format("'0000000000000000', 'n', 'reader'"), "23505"),
]

CALLS = [*TOKENS, *WORKERS, *RELAY, *FENCE, *KINDS, *EVENTS, *BODIES, *ARRAYS, *FORGERIES, *PLANS]
