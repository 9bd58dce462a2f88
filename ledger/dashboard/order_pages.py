"""Forms for orders: commit a reviewed plan, go on with a run, stop one. What takes them is what takes those of the API.

A form that is refused comes back with what was entered and with the refusal; nothing was ordered then. Where the ledger
went away meanwhile nobody knows whether something was, and the page says so. Each form brings the key of one order
along, so that sending it twice is one order; it keeps that key when it comes back.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from typing import Annotated, Any, TypeVar

from fastapi import APIRouter, Form, Request
from fastapi import Query as Parameters
from pydantic import BaseModel, Field, ValidationError
from starlette.responses import RedirectResponse, Response

from ledger.api.errors import (
    IdempotencyConflictError,
    InvalidRequestError,
    UnauthenticatedError,
)
from ledger.api.models import RunDetail
from ledger.api.orders import CommitOrder, ResumeOrder, RunName, StopOrder, order_id_of
from ledger.api.problems import problem_of
from ledger.api.service import BindingId, RunIdPath
from ledger.api.statuses import headers_of, status_of
from ledger.api.tokens import Caller
from ledger.commit import Policy
from ledger.dashboard.pages import Maker, OwnForm, PageMaker, Query
from ledger.dashboard.templating import href
from ledger.errors import ApplyLedgerError, SecretInWordsError

router = APIRouter()

_RUN = "/bindings/{binding_id}/runs/{run_id}"
_MOST = 70_000
_LABELS = {"run": "Run", "expected_checksum": "Checksum of the plan", "reason": "Reason", "policy": "Policy"}
OrderT = TypeVar("OrderT", bound=BaseModel)


class CommitQuery(Query):
    """A run to begin with; its checksum is for who reviewed it to give."""

    run: Annotated[str | None, Field(max_length=300)] = None


class PolicyForm(BaseModel):
    """What the writer does where a person would have to decide, as a form sends it."""

    on_unknown: str = Policy().on_unknown
    on_crash: str = Policy().on_crash
    on_overlap: str = Policy().on_overlap
    allow_destination_change: str = ""
    allow_stale: str = ""

    @classmethod
    def of(cls, policy: Policy) -> PolicyForm:
        """The form with this policy chosen."""
        return cls(**{name: "yes" if value is True else value or "" for name, value in policy.model_dump().items()})

    def document(self) -> dict[str, Any]:
        """As an order wants it; a box that is not ticked is not sent at all."""
        ticks = {"allow_destination_change", "allow_stale"}
        chosen = self.model_dump(include=PolicyForm.model_fields.keys() - ticks)
        return chosen | {tick: getattr(self, tick) == "yes" for tick in ticks}


class CommitForm(PolicyForm):
    """What the form of a commit sends."""

    run: Annotated[str, Field(max_length=300)] = ""
    expected_checksum: Annotated[str, Field(max_length=300)] = ""
    reason: Annotated[str, Field(max_length=_MOST)] = ""
    form_key: str = ""


class ResumeForm(PolicyForm):
    """What the form of a resumption sends."""

    reason: Annotated[str, Field(max_length=_MOST)] = ""
    order_key: Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]{1,64}$")]
    form_key: str = ""


class StopForm(BaseModel):
    """What the form of a stop sends."""

    reason: Annotated[str, Field(max_length=_MOST)] = ""
    order_key: Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]{1,64}$")]
    form_key: str = ""


@router.get("/commit")
async def commit_page(request: Request, maker: Maker, query: Annotated[CommitQuery, Parameters()]) -> Response:
    """Asks which plan to apply."""
    return _commit_form(maker, request, CommitForm(run=query.run or "").model_dump())


@router.post("/commit", dependencies=[OwnForm])
async def commit(request: Request, maker: Maker, form: Annotated[CommitForm, Form()]) -> Response:
    """Orders a reviewed plan to be applied; a run is committed once, however often its form is sent."""
    try:
        # People copy digests in capitals and with blanks in them.
        checksum = "".join(form.expected_checksum.split()).lower()
        order = _order(
            CommitOrder,
            run=form.run.strip(),
            expected_checksum=checksum,
            reason=form.reason,
            policy=form.document(),
        )
        receipt = await maker.service.require_orders().commit(order, actor=_caller(request).actor, traceparent=None)
    except ApplyLedgerError as exc:
        return _commit_form(maker, request, form.model_dump(), exc)
    if receipt.binding_id is None or receipt.order_id is None:
        return RedirectResponse(href("/runs", ordered="commit"), status_code=303)
    return _to_run(receipt.binding_id, receipt.run_id, "commit")


def _commit_form(
    maker: PageMaker, request: Request, given: Mapping[str, Any], error: ApplyLedgerError | None = None
) -> Response:
    return _form(maker, request, "commit.html", title="Commit a plan", current="/commit", error=error, given=given)


@router.get(_RUN + "/resume")
async def resume_page(request: Request, maker: Maker, binding_id: BindingId, run_id: RunIdPath) -> Response:
    """Asks how to go on with a run; the policy is that of its commit until another one is chosen."""
    committed = (await maker.service.reader.run(binding_id, run_id)).commit.policy
    form = ResumeForm(order_key=_new_key(), **PolicyForm.of(committed).model_dump())
    return await _run_form(maker, request, "resume", binding_id, run_id, form.model_dump())


@router.post(_RUN + "/resume", dependencies=[OwnForm])
async def resume(
    request: Request, maker: Maker, binding_id: BindingId, run_id: RunIdPath, form: Annotated[ResumeForm, Form()]
) -> Response:
    """Orders to go on with a run, from the first operation without a success."""
    caller = _caller(request)
    try:
        await maker.service.require_orders().resume(
            RunName(binding_id=binding_id, run_id=run_id),
            _order(ResumeOrder, reason=form.reason, policy=form.document()),
            actor=caller.actor,
            order_id=order_id_of(caller.token_id, form.order_key),
        )
    except ApplyLedgerError as exc:
        return await _run_form(maker, request, "resume", binding_id, run_id, _again(form, exc), exc)
    return _to_run(binding_id, run_id, "resume")


@router.get(_RUN + "/stop")
async def stop_page(request: Request, maker: Maker, binding_id: BindingId, run_id: RunIdPath) -> Response:
    """Asks whether to stop a run."""
    return await _run_form(maker, request, "stop", binding_id, run_id, StopForm(order_key=_new_key()).model_dump())


@router.post(_RUN + "/stop", dependencies=[OwnForm])
async def stop(
    request: Request, maker: Maker, binding_id: BindingId, run_id: RunIdPath, form: Annotated[StopForm, Form()]
) -> Response:
    """Orders to stop a run behind the operation in flight. What was written stays."""
    caller = _caller(request)
    try:
        await maker.service.require_orders().stop(
            RunName(binding_id=binding_id, run_id=run_id),
            _order(StopOrder, reason=form.reason),
            actor=caller.actor,
            order_id=order_id_of(caller.token_id, form.order_key),
        )
    except ApplyLedgerError as exc:
        return await _run_form(maker, request, "stop", binding_id, run_id, _again(form, exc), exc)
    return _to_run(binding_id, run_id, "stop")


async def _run_form(
    maker: PageMaker,
    request: Request,
    kind: str,
    binding_id: int,
    run_id: str,
    given: Mapping[str, Any],
    error: ApplyLedgerError | None = None,
) -> Response:
    return _form(
        maker,
        request,
        f"{kind}.html",
        title=f"{kind.capitalize()} {run_id}",
        current="/runs",
        error=error,
        given=given,
        binding_id=binding_id,
        run_id=run_id,
        run=await _run_for(maker, binding_id, run_id, error),
    )


async def _run_for(maker: PageMaker, binding_id: int, run_id: str, error: ApplyLedgerError | None) -> RunDetail | None:
    """The run that a form is for; a form that comes back needs none, as its key must not be lost with the ledger."""
    try:
        return await maker.service.reader.run(binding_id, run_id)
    except ApplyLedgerError as exc:
        if error is None or status_of(exc) < 500:
            raise
        return None


def _form(
    maker: PageMaker,
    request: Request,
    template: str,
    *,
    title: str,
    current: str,
    error: ApplyLedgerError | None,
    given: Mapping[str, Any],
    **values: Any,
) -> Response:
    """A form, as it was sent where it was refused, with the refusal in front of it."""
    maker.service.require_orders()
    if isinstance(error, UnauthenticatedError):
        raise error
    return maker.page(
        request,
        template,
        title=title,
        current=current,
        status=200 if error is None else status_of(error),
        headers={} if error is None else headers_of(error),
        problem=error and problem_of(error, request.url.path),
        refused_title=error and _what_became_of_it(error),
        given={**given, "reason": ""} if isinstance(error, SecretInWordsError) else given,
        **values,
    )


def _order(kind: type[OrderT], **fields: Any) -> OrderT:
    """The order that a form means.

    Raises:
        InvalidRequestError: it means none; every fault is named, no value is repeated.
    """
    try:
        return kind.model_validate(fields)
    except ValidationError as exc:
        named = sorted({_fault(str(fault["loc"][0]), fault["msg"], fields) for fault in exc.errors()})
        raise InvalidRequestError(
            checked="what was entered",
            expected="what is stated next to each field",
            found="; ".join(named),
            next_action="correct these fields and send the form again; nothing was ordered",
        ) from None


def _fault(field: str, said: str, given: Mapping[str, Any]) -> str:
    """What is wrong with a field, by the name that it has on the page; its value is not repeated."""
    text = str(given.get(field, ""))
    if not text and field in ("run", "expected_checksum"):
        return f"{_LABELS[field]}: nothing"
    if field == "expected_checksum":
        other = sum(character not in "0123456789abcdef" for character in text)
        wrong = f", {other:,} of them no hexadecimal digits" if other else ""
        return f"{_LABELS[field]}: {len(text):,} characters instead of 64 hexadecimal digits{wrong}"
    if field == "run":
        return (
            f"{_LABELS[field]}: no name of the form SOURCE/RUN or RUN, of letters, digits, dots, dashes and underscores"
        )
    return f"{_LABELS.get(field, field)}: {said}"


def _what_became_of_it(error: ApplyLedgerError) -> str:
    """What a form that comes back says first; trouble of the server may have come behind the order (FF33)."""
    if isinstance(error, IdempotencyConflictError):
        return "Refused: this form was sent before with other content, and that order is still valid"
    if status_of(error) >= 500:
        return "It is not known whether this was ordered: send the same form again, it is one order"
    return "Refused: nothing was ordered"


def _again(form: ResumeForm | StopForm, error: ApplyLedgerError) -> dict[str, Any]:
    """What was entered, under the same key: what is sent again must be the same order, whatever became of it (G7).

    Only a key that is another order's already is of no use to this one.
    """
    return form.model_dump() | ({"order_key": _new_key()} if isinstance(error, IdempotencyConflictError) else {})


def _new_key() -> str:
    return secrets.token_urlsafe(18)


def _caller(request: Request) -> Caller:
    caller: Caller = request.scope["caller"]
    return caller


def _to_run(binding_id: int, run_id: str, ordered: str) -> Response:
    where = href("/bindings/{binding_id}/runs/{run_id}", {"binding_id": binding_id, "run_id": run_id}, ordered=ordered)
    return RedirectResponse(where, status_code=303)
