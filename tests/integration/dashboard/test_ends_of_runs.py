"""How runs that were refused, failed or went on later are told, over runs whose orders came to every end."""

from __future__ import annotations

import html
import re
from collections.abc import AsyncIterator

import pytest

from ledger.api.tokens import Role
from ledger.cli.api_orders import CommandOrders
from ledger.cli.settings import DestinationSettings, Settings
from ledger.events import Body, NewEvent, OperationApplied, OperationFailed, RunEnded, new_event
from ledger.store.records import InFlight, OrderState
from ledger.store.served import ServedLedger
from tests.support.api import Served, served
from tests.support.events import BRANCH, URL
from tests.support.ordered_runs import record_orders
from tests.support.recorded_runs import BINDING, RecordedPlan, Recorder, make_plan, recorder
from tests.support.store import connection_to
from tests.support.visitors import Visitor, visitor

pytestmark = pytest.mark.integration

_DELETED = "the object was deleted, or never was on this branch: make a fresh plan"
_TOKEN = "give a valid token of the destination, then resume the run"


@pytest.fixture
async def recording(postgres18_ledger_dsns: dict[str, str]) -> AsyncIterator[Recorder]:
    async with recorder(postgres18_ledger_dsns) as recorded:
        await record_orders(recorded)
        yield recorded


@pytest.fixture
async def site(postgres18_ledger_dsns: dict[str, str], recording: Recorder) -> AsyncIterator[Served]:
    destination = DestinationSettings(url=BINDING.url, branch=BINDING.branch)
    async with (
        await ServedLedger.open(postgres18_ledger_dsns["writer"], allow_unsafe_fsync=True) as ledger,
        served(postgres18_ledger_dsns, orders=CommandOrders(Settings(destination=(destination,)), ledger)) as opened,
    ):
        yield opened


@pytest.fixture
async def operator(site: Served) -> AsyncIterator[Visitor]:
    async with visitor(site, Role.OPERATOR) as somebody:
        yield somebody


def _words(text: str) -> str:
    return " ".join(html.unescape(re.sub(r"(?s)<[^>]*>", " ", text)).split())


def _rows(page: str) -> list[str]:
    return [_words(row) for row in re.findall(r"(?s)<tr>.*?</tr>", page)]


def _table(page: str, caption: str) -> list[str]:
    found = re.search(rf'(?s)<caption id="{caption}".*?</table>', page)
    assert found is not None
    return [_words(row) for row in re.findall(r"(?s)<tr>.*?</tr>", found[0])][1:]


@pytest.mark.rules("G3")
async def test_g03_a_refusal_stays_told_when_its_run_went_on(operator: Visitor, recording: Recorder) -> None:
    said = _words((await operator.get("/refused")).text)
    assert "No plan was refused" not in said
    assert re.search(r"ordered-refused refused .* Its run went on and is now applied", said)
    assert "StalePlanError" in said
    again = make_plan("refused-twice", creates=1, deletes=0)
    await recording.commit(again)
    await recording.refused(again)
    page = (await operator.get("/refused")).text
    assert re.findall(r'<h3 id="plan-\d+"><a class="run" href="/bindings/1/runs/([^"]+)"', page) == [
        "refused-twice",
        "ordered-refused",
    ], "the newest first"
    assert _words(page).count("Nothing happened to it since") == 1


async def test_refusals_go_on_page_by_page_behind_the_same_place(
    operator: Visitor, recording: Recorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    from ledger.dashboard import inbox_pages

    monkeypatch.setattr(inbox_pages, "REFUSED_PER_PAGE", 2)
    for number in range(4):
        plan = make_plan(f"refused-{number}", creates=1, deletes=0)
        await recording.commit(plan)
        await recording.refused(plan)
    found: list[str] = []
    following: str | None = "/refused"
    while following:
        page = (await operator.get(following)).text
        found += re.findall(r'<h3 id="plan-\d+"><a class="run" href="/bindings/1/runs/([^"]+)"', page)
        more = re.search(r'rel="next" href="([^"]+)"', page)
        following = html.unescape(more[1]) if more else None
    assert found == ["refused-3", "refused-2", "refused-1", "refused-0", "ordered-refused"]


async def test_a_ledger_without_a_refusal_says_so_and_no_more(postgres18_ledger_dsns: dict[str, str]) -> None:
    async with served(postgres18_ledger_dsns) as site, visitor(site, Role.READER) as reader:
        said = _words((await reader.get("/refused")).text)
        assert "No plan was refused No log has a refusal of a plan." in said
        assert "passed its checks" not in said


@pytest.mark.rules("G3")
async def test_g03_a_run_tells_every_order_and_who_had_it_begin_after_a_refusal(operator: Visitor) -> None:
    page = (await operator.get("/bindings/1/runs/ordered-refused")).text
    resumed, committed = _table(page, "orders")
    assert re.match(r"resume closed .* eve it is safe$", resumed)
    assert re.match(r"commit refused .* somebody$", committed)
    started = next(row for row in _table(page, "steps") if row.startswith("started"))
    assert "eve it is safe" in started
    stopped = (await operator.get("/bindings/1/runs/ordered-stopped")).text
    assert [row.split()[0] for row in _table(stopped, "orders")] == ["resume", "stop", "commit"]


def _of_first(plan: RecordedPlan, kind: str, body: Body) -> NewEvent:
    """An outcome of the first operation of a plan."""
    return new_event(
        kind,
        body,
        url=URL,
        branch=BRANCH,
        n=1,
        run_id=plan.run_id,
        operation_id=plan.operations[0].operation_id,
        ordinal=0,
        attempt=1,
    )


async def _fails(recording: Recorder, run_id: str, advice: str) -> RecordedPlan:
    plan = make_plan(run_id, creates=2, deletes=0)
    await recording.commit(plan)
    await recording.started(plan)
    body = OperationFailed(error="StaleDestinationIdError", message=f"gone. Next: {advice}", next_action=advice)
    await recording.writer.append(recording.lease, [_of_first(plan, "operation.failed", body)])
    await recording.ended(plan, "run.failed")
    return plan


@pytest.mark.rules("G11")
async def test_g11_a_run_that_only_a_fresh_plan_helps_puts_that_first_and_no_resumption(
    operator: Visitor, recording: Recorder
) -> None:
    for run_id, advice, fresh in (("gone", _DELETED, True), ("no-token", _TOKEN, False)):
        await _fails(recording, run_id, advice)
        page = (await operator.get(f"/bindings/1/runs/{run_id}")).text
        said = _words(page)
        button = re.search(r'<a id="order-resume" class="([^"]+)"[^>]*>([^<]+)</a>', page)
        assert button is not None
        assert button.groups() == (("button", "Resume all the same…") if fresh else ("button primary", "Resume…"))
        assert ("Next: a fresh plan" in said) == fresh
        assert ("apply-ledger plan --config-file" in said) == fresh
        assert said.count(advice) == 1, "what to do next stands there once"
        operation = _words((await operator.get(f"/bindings/1/runs/{run_id}/operations/0")).text)
        assert operation.count(advice) == 1


async def test_what_was_ordered_is_told_as_long_as_it_waits_and_below_what_is_wrong(
    operator: Visitor, recording: Recorder
) -> None:
    plan = await _fails(recording, "gone", _DELETED)
    path = "/bindings/1/runs/gone?ordered=resume"
    assert "The order to resume is given" not in (await operator.get(path)).text
    await recording.ordered_to_resume(plan, by="eve", reason="again")
    for page in ((await operator.get(path)).text, (await operator.part(path)).text):
        assert page.index("StaleDestinationIdError") < page.index("The order to resume is given")
        assert f'data-hx-get="{path}"' in page, "what is swapped asks for the same"
        assert "Next: a fresh plan" not in page
    await recording.resumed(plan, 0)
    assert "The order to resume is given" not in (await operator.part(path)).text


async def test_a_run_whose_writer_died_says_that_nobody_writes_it_and_that_the_next_writer_goes_on(
    operator: Visitor, recording: Recorder, postgres18_ledger_dsns: dict[str, str]
) -> None:
    """Also where an operation is in flight: then nothing says that it was not written."""
    plan = make_plan("cut-off", creates=3, deletes=0)
    await recording.commit(plan)
    await recording.started(plan)
    applied = _of_first(plan, "operation.applied", OperationApplied(node_id="n", sent_ms=1, duration_ms=1))
    await recording.writer.append(recording.lease, [applied], in_flight=InFlight(plan.run_id, 1, 1))
    live = (await operator.get("/bindings/1/runs/cut-off")).text
    assert "A writer carries it out" in live
    assert "not known while operation 1 is in flight" in _words(live)
    async with connection_to(postgres18_ledger_dsns["admin"]) as admin:
        await admin.execute("update ledger.binding set lease_expires_at = now() - interval '70 seconds'")
    for answer in (await operator.get("/bindings/1/runs/cut-off"), await operator.part("/bindings/1/runs/cut-off")):
        said = _words(answer.text)
        assert "Nobody writes it now" in said
        assert re.search(r"the lease of the last one ended 1 min \d+ s ago", said)
        assert "operation 1 , attempt 1: it may have been written" in said
        assert "apply-ledger work" in said
        assert "stalled" in said
        assert "followed as it happens" not in said
    for path in ("/", "/bindings/1", "/runs", "/inbox"):
        rows = [row for row in _rows((await operator.get(path)).text) if "cut-off" in row]
        assert rows, path
        assert all("stalled" in row and "applying" not in row for row in rows), (path, rows)
        assert not any("being carried out" in row for row in rows), (path, rows)


async def test_what_stopped_an_earlier_attempt_asks_for_nothing_while_the_run_goes_on(
    operator: Visitor, recording: Recorder
) -> None:
    """``ordered-stopped``: its writer died at operation 1 and its order stays open."""
    said = _words((await operator.get("/bindings/1/runs/ordered-stopped")).text)
    assert "An earlier attempt stopped at operation 1: WriterDiedError" in said
    assert "nothing about this operation: the run goes on with it and sends it again" in said
    assert "Resume…" not in said
    dead = _words((await operator.get("/bindings/1/runs/ordered-dead")).text)
    assert "Stopped at operation 0: WriterDiedError" in dead, "to be stopped where its writer dies"
    assert "Resume…" in dead


async def test_a_stop_that_came_too_late_does_not_keep_a_run_from_being_resumed(
    operator: Visitor, recording: Recorder
) -> None:
    plan = make_plan("late", creates=1, deletes=0)
    await recording.commit(plan)
    await recording.started(plan)
    await recording.ledger.submit_stop(recording.binding_id, run_id=plan.run_id, by="bob", reason="too late")
    await recording.outcome(plan, 0, "failed")
    opened = await recording.ledger.open_orders(recording.binding_id)
    commits = [order for order in opened if (order.run_id, order.kind) == ("late", "commit")]
    closed: list[tuple[int, OrderState]] = [(order.inbox_id, "done") for order in commits]
    body = RunEnded(
        applied=0, skipped=0, not_attempted=0, failed_operation=None, failed_operation_wrote=None, last_ordinal=0
    )
    event = new_event("run.failed", body, url=URL, branch=BRANCH, n=0, run_id="late")
    await recording.writer.append(recording.lease, [event], close_orders=closed)
    page = (await operator.get("/bindings/1/runs/late")).text
    assert 'id="order-resume"' in page
    assert "data-live" not in page


async def test_the_inbox_tells_an_order_from_what_became_of_its_run(operator: Visitor, recording: Recorder) -> None:
    await _fails(recording, "gone", _DELETED)
    going = make_plan("going", creates=2, deletes=0)
    await recording.commit(going)
    await recording.started(going)
    for path in ("/inbox", "/inbox?binding=1"):
        rows = " / ".join(_rows((await operator.get(path)).text))
        assert "commit closed gone failed" in rows
        assert "commit being carried out going applying" in rows
        assert "commit waiting ordered-waits waiting" in rows
        assert "done" not in rows


async def test_all_that_is_known_of_a_run_is_part_of_what_is_swapped(operator: Visitor, recording: Recorder) -> None:
    """So that nothing on the page is older than its end."""
    plan = make_plan("followed", creates=2, deletes=1)
    await recording.whole_run(plan)
    part = (await operator.part("/bindings/1/runs/followed")).text
    facts = _words(part)
    assert "data-live" not in part
    for told in ("Operations applied applied_operations 2", "skipped_delete_count 1", "commit closed", "Took"):
        assert told in facts, told
    assert _words((await operator.get("/bindings/1/runs/followed")).text).count("Operations applied") == 1
