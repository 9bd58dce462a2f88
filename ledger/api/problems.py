"""Every error as a problem document (RFC 9457), in the words of the command line (G11)."""

from __future__ import annotations

import re
from http import HTTPStatus
from typing import Any

import structlog
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, ConfigDict, Field
from starlette.exceptions import HTTPException
from starlette.responses import Response

from ledger.api.errors import (
    DefectError,
    InvalidRequestError,
    MethodNotAllowedError,
    not_there,
)
from ledger.api.statuses import headers_of, status_of
from ledger.api.tokens import without_tokens
from ledger.errors import MAX_NAMED, ApplyLedgerError, Finding

MEDIA_TYPE = "application/problem+json"
_PREFIX = "urn:apply-ledger:problem:"
_log = structlog.get_logger(__name__)


class Problem(BaseModel):
    """What was checked, expected and found, and what to do next."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "type": "urn:apply-ledger:problem:not-there",
                    "title": "Not Found",
                    "status": 404,
                    "detail": "the run 20261129T1900-0a1b2c3d: expected something that the ledger knows, found nothing."
                    " Next: list the runs of this binding",
                    "instance": "/api/v1/bindings/1/runs/20261129T1900-0a1b2c3d",
                    "code": "NotThereError",
                    "checked": "the run 20261129T1900-0a1b2c3d",
                    "expected": "something that the ledger knows",
                    "found": "nothing",
                    "next_action": "list the runs of this binding",
                    "findings": [],
                }
            ]
        }
    )

    type: str = Field(description="A URN of this kind of problem; it never changes.")
    title: str = Field(description="The words of the status.")
    status: int = Field(ge=400, le=599)
    detail: str
    instance: str = Field(description="The path that was asked for.")
    code: str = Field(description="The class of the refusal, as in docs/refusals.md.")
    checked: str
    expected: str
    found: str
    next_action: str
    findings: list[Finding] = Field(
        description="Each single thing that is wrong, where there are several (100 at most)."
    )


def problem_type(error: type[ApplyLedgerError]) -> str:
    """The URN of a class of refusals."""
    words = re.sub(r"(?<!^)(?=[A-Z])", "-", error.__name__.removesuffix("Error")).lower()
    return _PREFIX + words


def problem_of(error: ApplyLedgerError, path: str) -> Problem:
    """The document of one refusal."""
    status = status_of(error)
    findings = error.findings
    return Problem(
        type=problem_type(type(error)),
        title=HTTPStatus(status).phrase,
        status=status,
        detail=f"{error.checked}: expected {error.expected}, found {error.found}. Next: {error.next_action}",
        instance=path,
        code=type(error).__name__,
        checked=error.checked,
        expected=error.expected,
        found=error.found,
        next_action=error.next_action,
        findings=list(findings[:MAX_NAMED]) if len(findings) > 1 or findings[0].name != type(error).__name__ else [],
    )


def problem_response(error: ApplyLedgerError, path: str) -> Response:
    """The answer to a request that is refused."""
    problem = problem_of(error, path)
    # Somebody put it into an address or a name: it would stand in the logs of whoever reads the answer.
    return Response(
        without_tokens(problem.model_dump_json()),
        status_code=problem.status,
        media_type=MEDIA_TYPE,
        headers={"Cache-Control": "no-store"} | headers_of(error),
    )


def answer_errors(app: FastAPI) -> None:
    """Let every error of an application leave as a problem document."""
    app.add_exception_handler(ApplyLedgerError, _refusal)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(HTTPException, _http)
    app.add_exception_handler(Exception, _defect)


async def _refusal(request: Request, error: Exception) -> Response:
    if not isinstance(error, ApplyLedgerError):
        raise error
    if status_of(error) >= 500:
        _log.warning("a request could not be answered", path=without_tokens(request.url.path), error=str(error))
    return problem_response(error, request.url.path)


async def _invalid(request: Request, error: Exception) -> Response:
    """What pydantic found, without the value: a token pasted into the wrong place must not come back (G12)."""
    faults = error.errors() if isinstance(error, RequestValidationError) else []
    named = sorted({f"{'.'.join(_shown(part) for part in fault['loc'])}: {fault['msg']}" for fault in faults})
    return problem_response(
        InvalidRequestError(
            checked="the parameters and the body of the request",
            expected="what the OpenAPI document says",
            found="; ".join(named[:20]),
            next_action="correct what is named; /api/v1/openapi.json has each parameter",
        ),
        request.url.path,
    )


def _shown(part: Any) -> str:
    """A name that the sender chose is cut."""
    return str(part)[:64]


async def _http(request: Request, error: Exception) -> Response:
    path = request.url.path
    status = error.status_code if isinstance(error, HTTPException) else 500
    if status == 404:
        return problem_response(not_there("this address", "look at /api/v1/openapi.json for the addresses"), path)
    if status == 405:
        response = problem_response(
            MethodNotAllowedError(
                checked=f"the method {request.method}",
                expected="a method that this address takes",
                found="another one",
                next_action="look at the header Allow, or at /api/v1/openapi.json",
            ),
            path,
        )
        response.headers.update((error.headers if isinstance(error, HTTPException) else None) or {})
        return response
    return problem_response(
        InvalidRequestError(
            checked="the request",
            expected="one that can be read",
            found="one that cannot",
            next_action="look at /api/v1/openapi.json for what this address takes",
        ),
        path,
    )


async def _defect(request: Request, error: Exception) -> Response:
    """The traceback goes to the log; the answer says nothing that the error may hold."""
    _log.error("a defect", path=without_tokens(request.url.path), error=type(error).__name__)
    return problem_response(
        DefectError(
            checked="this request",
            expected="an answer, or a refusal by name",
            found="a defect of this program",
            next_action="look at the server's log, and report what it says",
        ),
        request.url.path,
    )
