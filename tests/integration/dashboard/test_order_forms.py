"""Orders from a page are the orders of the command line; a form that is refused says why and keeps what was entered."""

from __future__ import annotations

import html
import re
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any, NoReturn

import pytest

from ledger.api.orders import CommitOrder
from ledger.api.reading import LedgerReader
from ledger.api.tokens import Role
from ledger.cli.api_orders import CommandOrders
from ledger.cli.settings import DestinationSettings, Settings
from ledger.commit import PlanCommit, Policy
from ledger.store.errors import LedgerUnavailableError
from ledger.store.served import ServedLedger
from tests.integration.api.conftest import several_runs
from tests.support.api import Served, served
from tests.support.recorded_runs import BINDING, Recorder, make_commit, make_plan, recorder
from tests.support.visitors import Visitor, hidden_fields, visitor

pytestmark = pytest.mark.integration

RESUME, STOP = "/bindings/1/runs/run-2/resume", "/bindings/1/runs/run-3/stop"
_SAID = {"resume": "resume", "stop": "stop"}
SECRET = "hunter2-hunter2"  # looked for in what an operator says


@pytest.fixture
async def recording(postgres18_ledger_dsns: dict[str, str]) -> AsyncIterator[Recorder]:
    """``run-1`` was applied, ``run-2`` was interrupted, ``run-3`` waits."""
    async with recorder(postgres18_ledger_dsns) as recorded:
        await several_runs(recorded)
        yield recorded


@pytest.fixture
async def site(
    postgres18_ledger_dsns: dict[str, str], recording: Recorder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Served]:
    monkeypatch.setenv("INFRAHUB_API_TOKEN", SECRET)
    destination = DestinationSettings(url=BINDING.url, branch=BINDING.branch)
    installation = Settings(destination=(destination,), cache_dir=tmp_path / "runs")
    async with (
        await ServedLedger.open(postgres18_ledger_dsns["writer"], allow_unsafe_fsync=True) as ledger,
        served(postgres18_ledger_dsns, orders=CommandOrders(installation, ledger)) as opened,
    ):
        yield opened


@pytest.fixture
async def operator(site: Served) -> AsyncIterator[Visitor]:
    async with visitor(site, Role.OPERATOR) as somebody:
        yield somebody


@pytest.mark.rules("G7")
async def test_g07_a_plan_is_committed_from_a_page_once_however_often_its_form_is_sent(
    operator: Visitor, recording: Recorder, site: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = make_plan("run-4", creates=2)
    seen: list[CommitOrder] = []

    def built(self: CommandOrders, order: CommitOrder, actor: str, traceparent: str | None) -> PlanCommit:
        """As if the plan lay below the root of runs; what is entered is compared here."""
        seen.append(order)
        return make_commit(plan).model_copy(update={"actor": actor, "reason": order.reason, "policy": order.policy})

    monkeypatch.setattr(CommandOrders, "_built", built)
    checksum = plan.checksum
    entered = {
        "run": " netbox/run-4 ",
        "expected_checksum": f" {checksum[:32].upper()} {checksum[32:]}",
        "reason": "CHG-1",
    }
    form = await operator.form("/commit") | entered | {"on_unknown": "converge", "allow_stale": "yes"}
    for _ in range(2):
        answer = await operator.send("/commit", form)
        assert (answer.status_code, answer.headers.get("location")) == (
            303,
            "/bindings/1/runs/run-4?ordered=commit",
        ), answer.text
    assert {(order.run, order.expected_checksum) for order in seen} == {("netbox/run-4", checksum)}
    page = await operator.get(answer.headers["location"])
    assert "The plan is committed" in page.text
    [order] = [order for order in await recording.ledger.open_orders(1) if order.run_id == "run-4"]
    assert (order.body["reason"], order.body["plan_checksum"]) == ("CHG-1", checksum)
    policy = order.body["policy"]
    assert (policy["on_unknown"], policy["allow_stale"], policy["allow_destination_change"]) == (
        "converge",
        True,
        False,
    )
    assert order.body["actor"] == f"the operator (token {site.tokens[Role.OPERATOR][4:20]})"


@pytest.mark.rules("G11")
async def test_g11_a_form_that_is_refused_says_why_and_keeps_what_was_entered(
    operator: Visitor, recording: Recorder, tmp_path: Path
) -> None:
    checksum = "a" * 64
    before = await recording.ledger.open_orders(1)
    cases = {
        ("netbox/run-5", checksum): 404,
        ("netbox/run-5", "<b>no checksum"): 422,
        ("../run-5", checksum): 422,
        ("", ""): 422,
    }
    for (run, wanted), status in cases.items():
        form = await operator.form("/commit") | {"run": run, "expected_checksum": wanted, "reason": "<i>because"}
        answer = await operator.send("/commit", form)
        assert answer.status_code == status, (run, answer.text)
        assert all(word in answer.text for word in ("Checked", "Expected", "Found", "Next"))
        assert f'name="run" value="{html.escape(run)}"' in answer.text
        assert "&lt;i&gt;because</textarea>" in answer.text
        assert str(tmp_path) not in answer.text
        assert "nothing was ordered" in answer.text
    assert await recording.ledger.open_orders(1) == before


@pytest.mark.rules("G11")
async def test_g11_what_is_wrong_with_a_commit_is_said_in_the_words_of_its_form(operator: Visitor) -> None:
    cases = {
        ("netbox/run-5", "a" * 63): ["Checksum of the plan: 63 characters instead of 64 hexadecimal digits"],
        ("netbox/run-5", "a" * 62 + "xy"): ["64 characters", "2 of them no hexadecimal digits"],
        ("../run-5", "a" * 64): ["Run: no name of the form SOURCE/RUN or RUN"],
        ("", ""): ["Run: nothing", "Checksum of the plan: nothing"],
        ("netbox/run-5", "a" * 64): ["the saved plan netbox/run-5 in the folder of runs of this server", "cache_dir"],
    }
    for (run, wanted), told in cases.items():
        form = await operator.form("/commit") | {"run": run, "expected_checksum": wanted}
        answer = html.unescape((await operator.send("/commit", form)).text)
        assert all(words in answer for words in told), (run, wanted)
        assert "should match pattern" not in answer
    assert "apply-ledger show RUN" in (await operator.get("/commit")).text


@pytest.mark.rules("G7")
async def test_g07_resume_and_stop_from_a_page_are_one_order_each(operator: Visitor, recording: Recorder) -> None:
    for page, kind, run_id in ((RESUME, "resume", "run-2"), (STOP, "stop", "run-3")):
        form = await operator.form(page) | {"reason": "looked at it"}
        for _ in range(2):
            answer = await operator.send(page, form)
            assert (answer.status_code, answer.headers["location"]) == (
                303,
                f"/bindings/1/runs/{run_id}?ordered={kind}",
            )
        orders = [order for order in await recording.ledger.open_orders(1) if order.kind == kind]
        assert [(order.run_id, order.body["reason"]) for order in orders] == [(run_id, "looked at it")]
        assert f"The order to {_SAID[kind]} is given" in (await operator.get(answer.headers["location"])).text
        other = {"resume": "stop", "stop": "resume"}[kind]
        lying = await operator.get(f"/bindings/1/runs/{run_id}?ordered={other}")
        assert f"The order to {_SAID[other]} is given" not in lying.text
        # Also once it was carried out: a form that a browser sends again is no other order.
        await recording.writer.close_order(recording.lease, orders[0].inbox_id, "done")
        assert (await operator.send(page, form)).status_code == 303
        assert [order for order in await recording.ledger.open_orders(1) if order.kind == kind] == []
        assert "is given" not in (await operator.get(answer.headers["location"])).text


@pytest.mark.rules("G1")
async def test_g01_the_form_to_resume_begins_with_the_policy_of_the_commit(
    operator: Visitor, recording: Recorder
) -> None:
    plan = make_plan("run-careful", creates=1, deletes=0)
    await recording.commit(plan, policy=Policy(on_overlap="refuse", allow_stale=True))
    await recording.refused(plan)
    page = (await operator.get("/bindings/1/runs/run-careful/resume")).text
    chosen = re.findall(r'name="(\w+)" value="(\w+)" checked', page)
    assert dict(chosen) == {"on_unknown": "stop", "on_crash": "resume", "on_overlap": "refuse", "allow_stale": "yes"}


def _away() -> LedgerUnavailableError:
    return LedgerUnavailableError(
        checked="the database", expected="an answer", found="none", next_action="look at the database"
    )


def _answer_lost(order: Callable[..., Any]) -> Callable[..., Any]:
    """An order that is recorded, and whose receipt never arrives."""

    async def lost(*arguments: Any, **named: Any) -> NoReturn:
        await order(*arguments, **named)
        raise _away()

    return lost


async def _nothing_is_read(*_: Any, **__: Any) -> NoReturn:
    raise _away()


@pytest.mark.rules("G7")
async def test_g07_a_form_whose_answer_was_lost_is_the_same_order_when_it_is_sent_again(
    operator: Visitor, recording: Recorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    for page, kind in ((RESUME, "resume"), (STOP, "stop")):
        form = await operator.form(page)
        with monkeypatch.context() as trouble:
            trouble.setattr(CommandOrders, kind, _answer_lost(getattr(CommandOrders, kind)))
            trouble.setattr(LedgerReader, "run", _nothing_is_read)
            answer = await operator.send(page, form | {"reason": "looked at it"})
        assert (answer.status_code, "LedgerUnavailableError" in answer.text) == (503, True)
        assert "It is not known whether this was ordered" in answer.text
        assert "nothing was ordered" not in answer.text
        assert "looked at it</textarea>" in answer.text
        assert hidden_fields(answer.text) == form
        again = await operator.send(page, hidden_fields(answer.text) | {"reason": "looked at it"})
        assert again.status_code == 303, again.text
        assert len([order for order in await recording.ledger.open_orders(1) if order.kind == kind]) == 1
        # With other words it would be another order, and has to be seen as one.
        other = await operator.send(page, form | {"reason": "looked again"})
        assert (other.status_code, "that order is still valid" in other.text) == (409, True)
        assert "nothing was ordered" not in other.text
        assert hidden_fields(other.text)["order_key"] != form["order_key"]
    # Also where the ledger is gone before anything is ordered: a form loaded anew would be another order.
    form = await operator.form(STOP)
    with monkeypatch.context() as trouble:
        trouble.setattr(ServedLedger, "token", _nothing_is_read)
        for answer, offered in ((await operator.send(STOP, form), False), (await operator.get(STOP), True)):
            assert answer.status_code == 503
            assert (f'href="{STOP}"' in answer.text) == offered
            assert ("send the same form again" in answer.text) != offered
    monkeypatch.setattr(CommandOrders, "commit", _nothing_is_read)
    entered = {"run": "netbox/run-5", "expected_checksum": "a" * 64}
    lost = await operator.send("/commit", await operator.form("/commit") | entered)
    assert (lost.status_code, "It is not known whether this was ordered" in lost.text) == (503, True)
    assert "nothing was ordered" not in lost.text


@pytest.mark.rules("G12")
async def test_g12_what_the_command_refuses_a_form_refuses_and_orders_nothing(
    operator: Visitor, recording: Recorder, site: Served
) -> None:
    before = await recording.ledger.open_orders(1)
    token = site.tokens[Role.READER]
    cases = [
        ("/bindings/1/runs/run-1/resume", {}, 409, "RunFinishedError"),
        ("/bindings/1/runs/run-1/stop", {}, 409, "RunFinishedError"),
        ("/bindings/1/runs/run-3/resume", {}, 409, "RunStillOpenError"),
        (RESUME, {"reason": f"with {SECRET}"}, 422, "SecretInWordsError"),
        (RESUME, {"reason": f"use {token}"}, 422, "SecretInWordsError"),
        (RESUME, {"reason": "☃" * 30_000}, 413, "BodyTooLargeError"),
        (RESUME, {"on_unknown": "guess"}, 422, "InvalidRequestError"),
    ]
    for page, fields, status, code in cases:
        answer = await operator.send(page, await operator.form(page) | fields)
        assert (answer.status_code, code in answer.text) == (status, True), (page, fields, answer.status_code)
        assert token not in answer.text
        refusal = answer.text.partition('<section class="refusal"')[2].partition("</section>")[0]
        assert SECRET not in refusal
        assert (SECRET in answer.text, "☃☃☃" in answer.text) == (False, code == "BodyTooLargeError")
    assert (await operator.send("/bindings/1/runs/run-9/resume", await operator.form(RESUME))).status_code == 404
    assert await recording.ledger.open_orders(1) == before


async def test_a_form_of_another_session_or_site_orders_nothing(
    operator: Visitor, recording: Recorder, site: Served
) -> None:
    before = await recording.ledger.open_orders(1)
    own = await operator.form(RESUME)
    async with visitor(site, Role.OPERATOR) as other:
        theirs = (await other.form(RESUME))["form_key"]
    for form_key in ("", "x", theirs):
        answer = await operator.send(RESUME, own | {"form_key": form_key})
        assert (answer.status_code, "ForeignFormError" in answer.text) == (403, True)
    for origin in ("https://evil.example", "null", "http://api.example.evil"):
        answer = await operator.send(RESUME, own, origin=origin)
        assert (answer.status_code, "ForeignOriginError" in answer.text) == (403, True), origin
    for media_type in ("application/json", "text/plain", "multipart/form-data; boundary=x"):
        answer = await operator.client.post(RESUME, content=b"{}", headers={"Content-Type": media_type})
        assert (answer.status_code, "MediaTypeError" in answer.text) == (415, True), media_type
    huge = await operator.client.post(RESUME, data=own | {"reason": "x" * 600_000})
    assert huge.status_code == 413
    assert await recording.ledger.open_orders(1) == before


async def test_forms_are_where_something_can_be_ordered(operator: Visitor, site: Served) -> None:
    text = {run: (await operator.get(f"/bindings/1/runs/{run}")).text for run in ("run-1", "run-2", "run-3")}
    assert [RESUME in text["run-2"], STOP in text["run-3"]] == [True, True]
    for run, kind in (("run-1", "resume"), ("run-1", "stop"), ("run-2", "stop"), ("run-3", "resume")):
        assert f'/bindings/1/runs/{run}/{kind}"' not in text[run], (run, kind)
    assert 'href="/commit"' in text["run-1"]
    async with visitor(site, Role.AUDITOR) as auditor:
        assert RESUME not in (await auditor.get("/bindings/1/runs/run-2")).text
