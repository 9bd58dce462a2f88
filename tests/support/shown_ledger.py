"""A ledger with something on every page: the told story, refusals, a worker, a checkpoint; and hostile text everywhere.

Beside the runs of :mod:`tests.support.told_story`:

    run-hostile   everything in it that anybody may choose is chosen by an enemy; stops in doubt at its second operation
    run-refused   refused with many findings, before anything was written
    run-waits     committed, and nobody takes it up
"""

from __future__ import annotations

from collections.abc import Iterator

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from ledger.audit.publish import publish_checkpoint
from ledger.audit.signed_note import SigningKey
from ledger.binding import DestinationBinding
from ledger.errors import Finding
from ledger.events import Cut, OperationFailed, OperationUnknown, PlanRefused, new_event
from ledger.plan.canonical import canonical_json_bytes, object_key
from ledger.store.records import MessagePlace
from tests.support.events import BRANCH, URL
from tests.support.operations import create, one
from tests.support.postgres import ROLES, PostgresServer, migrate_fully
from tests.support.recorded_runs import RecordedPlan, Recorder, make_commit, make_plan, recorder
from tests.support.told_story import TAG, changed_tag, commit, tag, tell, told_plan

SCRIPT = "<script>window.ran = 1</script>"
PICTURE = "\"'><img src=x onerror='window.ran = 1'>"
REVERSED = "\u202egpj.exe\u2066 \u200b\u0007\u2028,\u0085}\u2029 {{ 7 * 7 }}"
ENDLESS = "x" * 10_000
HOSTILE = (SCRIPT, PICTURE, REVERSED, ENDLESS)
ALL_HOSTILE = " ".join((SCRIPT, PICTURE, REVERSED, ENDLESS))
HOSTILE_ACTOR = f"{SCRIPT} {PICTURE} {REVERSED}"

HOSTILE_RUN = told_plan(
    "run-hostile",
    "netbox",
    [
        *(tag(name, description=f"about {name}", **{f"field {PICTURE}": name}) for name in HOSTILE),
        changed_tag("red", description=ALL_HOSTILE, tags=[SCRIPT, REVERSED]),
        create(
            "LocationSite", {"name": SCRIPT}, {"name": SCRIPT}, one("parent", "LocationRegion", name=f"over {PICTURE}")
        ),
    ],
    {"red": {"description": f"was {ALL_HOSTILE}"}},
)
REFUSED_RUN = told_plan("run-refused", "library", [tag("violet")])
OBJECT_PAGES = {name: object_key(TAG, {"name": name}).hex() for name in ("red", "blue", "green", *HOSTILE)}
SITE_PAGE = object_key("LocationSite", {"name": SCRIPT}).hex()


async def show(recording: Recorder) -> None:
    """Record all of it."""
    await tell(recording)
    await _hostile_run(recording)
    await _refused_run(recording)
    await commit(recording, make_plan("run-waits", creates=1), actor="ada", reason="when somebody comes")
    ledger = recording.ledger
    stranger = DestinationBinding(url="http://other.example/instance", branch=f"{SCRIPT} {PICTURE} {REVERSED}"[:200])
    other = await ledger.register_binding(stranger)
    lost = make_commit(make_plan("run-lost", creates=1)).model_copy(
        update={"binding": stranger.normalised(), "actor": HOSTILE_ACTOR, "reason": ALL_HOSTILE}
    )
    await ledger.submit_commit(other, lost)
    for offset, text in enumerate(HOSTILE):
        place = MessagePlace("plan-commits", 0, offset)
        await ledger.refuse_message(place, digest=bytes(32), findings=[_finding(text)], binding=None)
    await ledger.worker_beat("worker-1", host=PICTURE, serves=[stranger], held=1, ttl=86_400.0)
    row = next(row for row in await ledger.bindings() if row.id == recording.binding_id)
    key = SigningKey("shown", Ed25519PrivateKey.from_private_bytes(bytes(range(32))))
    await publish_checkpoint(ledger, row, [key])


async def _hostile_run(recording: Recorder) -> None:
    await commit(recording, HOSTILE_RUN, actor=HOSTILE_ACTOR, reason=ALL_HOSTILE)
    await recording.started(HOSTILE_RUN)
    for ordinal in range(len(HOSTILE_RUN.operations) - 2):
        await recording.outcome(HOSTILE_RUN, ordinal, "applied")
    failed = OperationFailed(error="RefusedError", message=ALL_HOSTILE, next_action=ALL_HOSTILE)
    await _outcome(recording, HOSTILE_RUN, len(HOSTILE_RUN.operations) - 2, "failed", failed)
    unknown = OperationUnknown(error="ReadTimeout", message=ALL_HOSTILE, sent=True, next_action=ALL_HOSTILE)
    await _outcome(recording, HOSTILE_RUN, len(HOSTILE_RUN.operations) - 1, "unknown", unknown)
    await recording.ended(HOSTILE_RUN, "run.interrupted")


async def _outcome(
    recording: Recorder, plan: RecordedPlan, ordinal: int, outcome: str, body: OperationFailed | OperationUnknown
) -> None:
    event = new_event(
        f"operation.{outcome}",
        body,
        url=URL,
        branch=BRANCH,
        n=1,
        run_id=plan.run_id,
        operation_id=plan.operations[ordinal].operation_id,
        ordinal=ordinal,
        attempt=1,
    )
    await recording.writer.append(recording.lease, [event])


async def _refused_run(recording: Recorder) -> None:
    await commit(recording, REFUSED_RUN, actor=HOSTILE_ACTOR, reason="ticket 9")
    findings = [_finding(text) for text in HOSTILE] * 3
    whole = [finding.model_dump(mode="json") for finding in findings] * 5
    cut = Cut(total=len(whole), sha256=await recording.ledger.store_detail(canonical_json_bytes(whole)))
    await recording.event("plan.refused", PlanRefused(findings=findings, cut=cut), REFUSED_RUN.run_id, n=0)


def _finding(text: str) -> Finding:
    return Finding(name="PeerNotFoundError", checked=text, expected=text, found=text, next_action=text)


def shown_database(server: PostgresServer) -> Iterator[dict[str, str]]:
    """DSNs of a new copy of this ledger; for fixtures."""

    async def migrate_and_show(admin_dsn: str) -> None:
        await migrate_fully(admin_dsn)
        async with recorder(_dsns(server, server.database_of(admin_dsn))) as recording:
            await show(recording)

    name = server.create_database(server.template("a shown ledger", migrate_and_show))
    yield _dsns(server, name)
    server.drop_database(name)


def _dsns(server: PostgresServer, name: str) -> dict[str, str]:
    return {"admin": server.dsn(name)} | {key: server.dsn(name, user=role) for key, role in ROLES.items()}
