"""Checks the server: that it is an Infrahub, its version, its clock, and the state of the branch."""

from __future__ import annotations

import re
import time
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

from consumers.infrahub.exchange import FailedExchange
from consumers.infrahub.gateway import InfrahubGateway
from ledger.checkup import Said, clock_said, failure, good, skipped, warning

MEASURED_VERSION = "1.11.9"
"""The version whose every answer was compared with what is expected of it."""

_MEASURED_SERIES = (1, 11)
_OLDEST_SERIES = (1, 1)
_VERSION = re.compile(r"(\d+)\.(\d+)(?:\.(\d+))?")

_BRANCH = "query Branches($name: String!) { Branch(name: $name) { name status is_default } }"
_NO_WRITES = {
    "MERGED": ("it is merged and takes no writes", "make a new branch, and a plan for that"),
    "DELETING": ("it is being deleted", "make a new branch, and a plan for that"),
    "MERGING": ("it is being merged and takes no writes meanwhile", "wait until the merge is over"),
    "MERGE_FAILED": ("its merge failed half-way", "have an administrator recover the merge"),
    "NEED_REBASE": ("it takes no writes before a rebase", "rebase the branch, then make a fresh plan"),
    "NEED_UPGRADE_REBASE": (
        "it was made by an older server, and wants a rebase",
        "rebase the branch, then plan afresh",
    ),
}


class ServerChecks:
    """Asks the server over the gateway of a run."""

    def __init__(self, gateway: InfrahubGateway) -> None:
        self._gateway = gateway
        self._info: dict[str, Any] = {}
        self._told: tuple[datetime | None, datetime | None, datetime | None] = (None, None, None)
        self.is_default_branch: bool | None = None

    async def answering(self) -> Said:
        """An Infrahub answers under that address."""
        before, began = datetime.now(UTC), time.monotonic()
        try:
            answer = await self._gateway.get("/api/info")
        except FailedExchange as failed:
            if failed.exchange.status == 401:
                # that is the token's affair, and the next check's to say
                self._told = (_date(failed.exchange.headers.get("date")), before, datetime.now(UTC))
                return good("an Infrahub answers, and wants another token")
            raise self._gateway.not_read(
                failed.exchange, checked="GET /api/info", expected="version and deployment of an Infrahub"
            ) from None  # foreign text is not masked
        took = (time.monotonic() - began) * 1000
        self._told = (_date(answer.headers.get("date")), before, datetime.now(UTC))
        found = answer.json()
        version, deployment = found.get("version"), found.get("deployment_id")
        if not isinstance(version, str) or not isinstance(deployment, str):
            return failure("an answer without version and deployment", "check that the address is an Infrahub server")
        self._info = {"version": self._gateway.shown(version), "deployment_id": self._gateway.shown(deployment)}
        said = f"an Infrahub answers in {took:.0f} ms, deployment {self._info['deployment_id']}"
        return good(said, milliseconds=round(took, 1), deployment_id=self._info["deployment_id"])

    async def supported(self) -> Said:
        """The version is one that is known."""
        text = self._info.get("version")
        if text is None:
            return skipped("not told to this token")
        found = _VERSION.match(text)
        series = (int(found[1]), int(found[2])) if found is not None else None
        if series == _MEASURED_SERIES:
            return good(f"{text}; every answer was measured on {MEASURED_VERSION}", version=text)
        if series is None or series[0] != 1 or series < _OLDEST_SERIES:
            return failure(
                f"{text}, of which nothing is known or what is known is bad: 1.0 made objects of unknown ids",
                f"use a server of version 1.11 ({MEASURED_VERSION} is measured)",
                version=text,
            )
        advice = f"rehearse before you apply; if it misbehaves, use 1.11 ({MEASURED_VERSION} is measured)"
        return warning(f"{text}, which is not measured", advice, version=text)

    async def clock(self) -> Said:
        """The server's clock and ours, by the date of an answer."""
        told, before, after = self._told
        if told is None or before is None or after is None:
            return skipped("the server does not tell its time")
        return clock_said(told, before, after, whose="the server's clock", resolution=1.0)

    async def branch(self) -> Said:
        """The branch is there and takes writes."""
        name = self._gateway.settings.branch
        try:
            data = await self._gateway.read(_BRANCH, {"name": name})
        except FailedExchange as failed:
            if failed.exchange.status == 404:
                return failure(f"there is no branch {name!r}", "create it, or name another one", branch=name)
            raise self._gateway.not_read(
                failed.exchange, checked=f"the branch {name}", expected="how it stands"
            ) from None  # foreign text is not masked
        found = data.get("Branch")
        row = found[0] if isinstance(found, list) and len(found) == 1 and isinstance(found[0], dict) else {}
        if row.get("name") != name:
            return failure(f"there is no branch {name!r}", "create it, or name another one", branch=name)
        return self._branch_said(name, str(row.get("status")), bool(row.get("is_default")))

    def _branch_said(self, name: str, status: str, is_default: bool) -> Said:
        self.is_default_branch = is_default
        facts = {"branch": name, "status": self._gateway.shown(status), "is_default": is_default}
        if status in _NO_WRITES:
            found, advice = _NO_WRITES[status]
            return failure(f"{name}: {found}", advice, **facts)
        if status != "OPEN":
            return warning(f"{name} is {facts['status']}, a state that is not known here", "look at it there", **facts)
        which = "the default branch" if is_default else "a branch of its own, open"
        return good(f"{name} is {which}", **facts)


def _date(text: str | None) -> datetime | None:
    """The moment that a Date header names: a whole second, cut down."""
    try:
        found = None if text is None else parsedate_to_datetime(text)
    except (TypeError, ValueError):
        return None
    return None if found is None or found.tzinfo is None else found.astimezone(UTC)
