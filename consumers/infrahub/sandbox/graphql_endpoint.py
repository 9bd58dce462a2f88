"""``POST /graphql`` and ``POST /graphql/{branch}``: the one way in for reads and writes."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any, Literal

from graphql import GraphQLSyntaxError
from starlette.requests import Request
from starlette.types import Receive, Scope, Send

from consumers.infrahub.sandbox.access import Access, Credential
from consumers.infrahub.sandbox.answers import (
    HttpAnswer,
    branch_not_found,
    faulty_answer,
    forbidden,
    json_answer,
    made_up_success,
    plain_500,
    plain_refusal,
    unauthorised,
)
from consumers.infrahub.sandbox.documents import RequestRefusedError
from consumers.infrahub.sandbox.errors import UNDEFINED, PlainServerError
from consumers.infrahub.sandbox.execution import Answer, Engine, MutationField, PreparedRequest
from consumers.infrahub.sandbox.faults import ActiveFault, RequestFacts, SandboxFaults
from consumers.infrahub.sandbox.journal import SENDER_HEADER, Journal, JournalEntry
from consumers.infrahub.sandbox.moments import MomentRefusedError, check_moment
from consumers.infrahub.sandbox.overlap import Glimpse
from consumers.infrahub.sandbox.records import Node
from consumers.infrahub.sandbox.store import DEFAULT_BRANCH, GLOBAL_BRANCH

_RIGHTS = {"Create": ("create",), "Upsert": ("create", "update"), "Update": ("update",), "Delete": ("delete",)}
"""What an account must be allowed for each mutation of a kind."""

_LARGEST_WRITE = 750_000
"""Bytes of a write from which on the server loses the connection behind the answer.

What it cannot send is an event of 1.5 MB, in which every value is twice. Old values are in there too; here the new ones
are taken for the whole.
"""


class GraphQLEndpoint:
    """Authenticates, finds the branch, runs the request, and answers it truly or by a fault."""

    def __init__(self, engine: Engine, access: Access, faults: SandboxFaults, journal: Journal) -> None:
        self._engine = engine
        self._access = access
        self._faults = faults
        self._journal = journal

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        answer = await self._answer(Request(scope, receive))
        await answer(scope, receive, send)

    async def _answer(self, request: Request) -> HttpAnswer:
        credential = self._access.credential(request)
        if credential == "wrong":
            return unauthorised("Invalid token")
        name = request.path_params.get("branch", DEFAULT_BRANCH)
        branch = self._engine.store.branches.get(name)
        if branch is None:
            return plain_500() if name == GLOBAL_BRANCH else branch_not_found(name)
        raw = await request.body()
        body = _body(raw)
        if isinstance(body, HttpAnswer):
            return body
        variables = body.get("variables") or {}
        sender = request.headers.get(SENDER_HEADER)
        try:
            prepared = self._engine.prepare(branch, body["query"], variables, body.get("operationName"))
        except GraphQLSyntaxError:
            return plain_500()
        except RequestRefusedError as exc:
            self._refused(name, exc, variables, sender)
            return self._not_allowed(credential, name, [what for _, what in exc.mutations]) or json_answer(exc.answer)
        asked = [mutation.name for mutation in prepared.mutations]
        if refused := self._moment_refused(request, reads=not asked):
            return refused
        prepared = replace(prepared, may_write=credential == "good")
        if credential == "reader" and not asked and (seen := self._engine.looked_into(prepared)):
            ending = "default" if name == DEFAULT_BRANCH else "other"
            return _denied([self._engine.permission(kind, "view", on=ending) for kind in seen])
        answer = self._not_allowed(credential, name, asked) or await self._serve(prepared, body, sender)
        return replace(answer, last=True) if asked and len(raw) > _LARGEST_WRITE else answer

    def _moment_refused(self, request: Request, *, reads: bool) -> HttpAnswer | None:
        """The refusal of a moment; on mutations any will do."""
        store = self._engine.store
        beginning = store.default_branch.info.branched_from if reads else None
        given = request.query_params.get("at")
        try:
            if given is not None:
                check_moment(given, beginning=beginning, now=datetime.fromisoformat(store.now()))
        except MomentRefusedError as exc:
            extensions = {"code": UNDEFINED, "http_status": exc.status, "data": {}}
            error = {"message": str(exc), "extensions": extensions}
            return json_answer({"data": None, "errors": [error]}, exc.status)
        return None

    def _not_allowed(self, credential: Credential, branch: str, mutations: Sequence[str]) -> HttpAnswer | None:
        """The refusal of writes that this credential may not send; it comes before a word about a bad document."""
        if credential == "none":
            return unauthorised() if mutations else None
        needed = [right for name in mutations for right in self._rights(name)] if credential == "reader" else []
        if not needed:
            return None
        if branch == DEFAULT_BRANCH:
            return forbidden("You are not allowed to change data in the default branch")
        return _denied(needed)

    def _rights(self, mutation: str) -> list[str]:
        """What an account must be allowed for a mutation of a kind; that of others is seen to where they run."""
        kind, action = self._engine.kind_and_action(mutation)
        if kind is None or action is None:
            return []
        return [self._engine.permission(kind, right) for right in _RIGHTS[action]]

    async def _serve(self, prepared: PreparedRequest, body: dict[str, Any], sender: str | None) -> HttpAnswer:
        entries = {mutation.key: self._received(prepared, mutation, body, sender) for mutation in prepared.mutations}
        fault = self._faults.hit(_facts(prepared, body))
        if fault is None:
            return self._truth(prepared, entries)
        for entry in entries.values():
            entry.fault = fault.rule.answer.value
        return await self._serve_by_fault(fault, prepared, entries)

    async def _serve_by_fault(
        self, fault: ActiveFault, prepared: PreparedRequest, entries: dict[str, JournalEntry]
    ) -> HttpAnswer:
        rule = fault.rule
        if fault.before is not None:
            fault.before()
        await _wait(fault, rule.delay_before_write, held=rule.hold == "before-write")
        glimpse = None
        if rule.hold == "amid-write":
            glimpse = self._engine.glimpse(prepared)
            await _wait(fault, 0.0, held=True)
        answer: Answer = made_up_success(prepared.mutations)
        if rule.writes:
            try:
                answer = self._run(prepared, entries, glimpse)
            except PlainServerError:
                return plain_500()
        else:
            for entry in entries.values():
                entry.decided()
        await _wait(fault, rule.delay_before_answer, held=rule.hold == "before-answer")
        return faulty_answer(rule.answer, answer, prepared.mutations)

    def _truth(self, prepared: PreparedRequest, entries: dict[str, JournalEntry]) -> HttpAnswer:
        try:
            return json_answer(self._run(prepared, entries))
        except PlainServerError:
            return plain_500()

    def _run(
        self, prepared: PreparedRequest, entries: dict[str, JournalEntry], glimpse: Glimpse | None = None
    ) -> Answer:
        if not prepared.mutations:
            return self._engine.run_query(prepared)

        def written(mutation: MutationField, node: Node | None) -> None:
            entries[mutation.key].written = True
            entries[mutation.key].object_id = node.id if node is not None else mutation.data.get("id")

        try:
            return self._engine.run_mutations(prepared, written, glimpse)
        finally:
            for entry in entries.values():
                entry.decided()

    def _refused(
        self, branch: str, refusal: RequestRefusedError, variables: dict[str, Any], sender: str | None
    ) -> None:
        """Mutations that never ran were on the wire all the same."""
        for key, name in refusal.mutations:
            kind, action = self._engine.kind_and_action(name)
            entry = self._journal.receive(
                branch=branch,
                mutation=name,
                key=key,
                kind=kind,
                action=action,
                data={},
                variables=variables,
                sender=sender,
            )
            entry.decided()

    def _received(
        self, prepared: PreparedRequest, mutation: MutationField, body: dict[str, Any], sender: str | None
    ) -> JournalEntry:
        return self._journal.receive(
            branch=prepared.branch.info.name,
            mutation=mutation.name,
            key=mutation.key,
            kind=mutation.kind,
            action=mutation.action,
            data=mutation.data,
            variables=body.get("variables") or {},
            sender=sender,
        )


def _denied(needed: Sequence[str]) -> HttpAnswer:
    return forbidden(f"You do not have one of the following permissions: {' | '.join(needed)}")


async def _wait(fault: ActiveFault, seconds: float, *, held: bool) -> None:
    if seconds:
        await asyncio.sleep(seconds)
    if held:
        fault.reached.set()
        # Released from any thread, so it is no event of this loop.
        await asyncio.to_thread(fault.released.wait)


def _facts(prepared: PreparedRequest, body: dict[str, Any]) -> RequestFacts:
    operation: Literal["mutation", "query"] = "mutation" if prepared.mutations else "query"
    names = [root.selected.name for root in prepared.plan.roots]
    roots = tuple((m.name, m.kind, m.action) for m in prepared.mutations) or tuple((n, n, None) for n in names)
    return RequestFacts(operation, prepared.branch.info.name, roots, lambda: json.dumps(body, ensure_ascii=False))


def _body(raw: bytes) -> dict[str, Any] | HttpAnswer:
    """The request, or what is answered where it is none."""
    try:
        body = json.loads(raw)
    except ValueError:
        return plain_refusal("Request body is not a valid JSON")
    if isinstance(body, list):
        return plain_refusal("This server does not support batching")
    if not isinstance(body, dict) or not isinstance(body.get("query"), str):
        return plain_500()
    return body if isinstance(body.get("variables"), dict | None) else plain_500()
