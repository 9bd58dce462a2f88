"""The sandbox's own routes, below ``/sandbox``; Infrahub has none of them."""

from __future__ import annotations

from pydantic import TypeAdapter, ValidationError
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from consumers.infrahub.sandbox.access import Access
from consumers.infrahub.sandbox.faults import FaultRule, SandboxFaults
from consumers.infrahub.sandbox.journal import Journal

_RULES = TypeAdapter(list[FaultRule])


class AdminRoutes:
    """Faults and journal over HTTP, with the token that writes need."""

    def __init__(self, access: Access, faults: SandboxFaults, journal: Journal) -> None:
        self._access = access
        self._faults = faults
        self._journal = journal

    def routes(self) -> list[Route]:
        """All routes."""
        return [
            Route("/sandbox/faults", self.faults, methods=["GET", "POST", "DELETE"]),
            Route("/sandbox/faults/{number:int}/release", self.release, methods=["POST"]),
            Route("/sandbox/journal", self.journal, methods=["GET", "DELETE"]),
        ]

    async def faults(self, request: Request) -> Response:
        """List rules, add one or a list of them, or switch all off."""
        if self._access.credential(request) != "good":
            return _error(401, "the sandbox's token is needed")
        if request.method == "DELETE":
            self._faults.clear()
        elif request.method == "POST":
            try:
                rules = _RULES.validate_json(_as_list(await request.body()))
            except ValidationError as exc:
                return _error(422, str(exc))
            return JSONResponse([self._faults.add(rule).as_json() for rule in rules])
        return JSONResponse([fault.as_json() for fault in self._faults.active()])

    async def release(self, request: Request) -> Response:
        """Let the request go on that a rule holds."""
        if self._access.credential(request) != "good":
            return _error(401, "the sandbox's token is needed")
        for fault in self._faults.active():
            if fault.number == request.path_params["number"]:
                fault.release()
                return JSONResponse(fault.as_json())
        return _error(404, "no such rule is active")

    async def journal(self, request: Request) -> Response:
        """The mutations received, behind the position ``?after=``; DELETE forgets them."""
        if self._access.credential(request) != "good":
            return _error(401, "the sandbox's token is needed")
        if request.method == "DELETE":
            self._journal.clear()
        after = request.query_params.get("after", "0")
        if not after.isdecimal():
            return _error(422, "after is a position")
        return JSONResponse(self._journal.as_json(after=int(after)))


def _as_list(body: bytes) -> bytes:
    return body if body.lstrip().startswith(b"[") else b"[" + body + b"]"


def _error(status: int, message: str) -> Response:
    error = {"message": message, "extensions": {"code": status}}
    return JSONResponse({"data": None, "errors": [error]}, status_code=status)
