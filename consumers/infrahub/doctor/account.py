"""Checks the token's account and its rights; both are read from the server, nothing is written."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from consumers.infrahub.answers import read_answer
from consumers.infrahub.doctor.server import ServerChecks
from consumers.infrahub.exchange import FailedExchange
from consumers.infrahub.gateway import InfrahubGateway
from ledger.checkup import Said, failure, good, skipped, warning

_ACCOUNT = "query Account { AccountProfile { display_label status { value } } }"
_GLOBAL = "query Rights { InfrahubPermissions { global_permissions { edges { node { action decision } } } } }"
_ANY_QUERY = "query Known { __typename }"

_WRITES_DEFAULT_BRANCH = frozenset({"super_admin", "edit_default_branch"})
_ALLOW_DEFAULT = 2
"""The bit of a decision that speaks of the default branch."""

_UNKNOWN_FIELD = "Cannot query field"


class AccountChecks:
    """Asks over the gateway of a run, with its token."""

    def __init__(self, gateway: InfrahubGateway, server: ServerChecks) -> None:
        self._gateway = gateway
        self._server = server
        self.tells = True
        """Whether this server tells accounts and permissions at all."""

    async def accepted(self) -> Said:
        """The token is one of the server's, of an account that is active."""
        if self._gateway.settings.token is None:
            return failure("there is none", "set the variable or the file that its declaration names")
        try:
            data = await self._gateway.read(_ACCOUNT, {})
        except FailedExchange as failed:
            return await self._not_told(failed)
        profile = data.get("AccountProfile")
        if not isinstance(profile, dict):
            return failure("the server knows no account for it", "give a token of an account that is there")
        name = self._gateway.shown(str(profile.get("display_label")))
        status = profile.get("status")
        state = status.get("value") if isinstance(status, dict) else None
        if state not in (None, "active"):
            return failure(
                f"its account {name} is {self._gateway.shown(str(state))}", "activate the account", account=name
            )
        return good(f"accepted, of the account {name}", account=name)

    async def _not_told(self, failed: FailedExchange) -> Said:
        if failed.exchange.status == 401:
            return failure(
                f"not accepted: {self._gateway.describe(failed.exchange)}",
                "make a new token for the account, and put it where the old one stands",
            )
        if failed.exchange.status == 404:
            # no such branch, which the next check says; a token that is not accepted is refused before that
            return good("accepted; of which account cannot be asked without the branch")
        if not _has_no_such_field(failed):
            raise self._gateway.not_read(
                failed.exchange, checked="whose token it is", expected="an account"
            ) from None  # foreign text is not masked
        # a server that refuses wrong tokens, which ours all do, has accepted it when it answers anything
        self.tells = False
        try:
            await self._gateway.read(_ANY_QUERY, {})
        except FailedExchange as again:
            raise self._gateway.not_read(
                again.exchange, checked="the token", expected="an answer"
            ) from None  # foreign text is not masked
        return good("accepted; this server does not say of which account")

    async def may_write(self) -> Said:
        """On the default branch an account needs a right of its own, whatever it may do with the kinds."""
        if self._server.is_default_branch is False:
            return good("no right beside those on the kinds is needed on a branch")
        if not self.tells:
            return skipped("this server does not tell rights")
        try:
            data = await self._gateway.read(_GLOBAL, {})
        except FailedExchange as failed:
            raise self._gateway.not_read(
                failed.exchange, checked="the rights of the token's account", expected="a list"
            ) from None  # foreign text is not masked
        rights = _global_rights(data)
        if rights is None:
            return warning("an answer that is no list of rights", "look at the roles of the account at the destination")
        held = sorted(rights & _WRITES_DEFAULT_BRANCH)
        if held:
            return good(f"the account may change the default branch ({', '.join(held)})", rights=sorted(rights))
        return failure(
            "the account may not change the default branch",
            "give its role the global permission edit_default_branch, or write to a branch",
            rights=sorted(rights),
        )


def _global_rights(data: Mapping[str, Any]) -> set[str] | None:
    """The actions that are allowed on the default branch."""
    try:
        edges = data["InfrahubPermissions"]["global_permissions"]["edges"]
        nodes = [edge["node"] for edge in edges]
        return {str(node["action"]) for node in nodes if int(node["decision"]) & _ALLOW_DEFAULT}
    except (KeyError, TypeError, ValueError):
        return None


def _has_no_such_field(failed: FailedExchange) -> bool:
    errors = read_answer(failed.exchange).errors
    return bool(errors) and all(error.message.startswith(_UNKNOWN_FIELD) for error in errors)
