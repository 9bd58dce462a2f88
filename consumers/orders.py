"""Orders of the inbox as the writer reads them: which one is next, and the policy under which it is carried out."""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import ValidationError

from consumers.errors import UnusableOrderError
from consumers.history import RunHistory
from ledger.commit import PlanCommit, Policy
from ledger.store.records import Order


def next_order(orders: Sequence[Order]) -> Order | None:
    """The first commit or resume, strictly in the order of arrival; a stop is obeyed by the run that it names."""
    return next((order for order in orders if order.kind != "stop"), None)


def moot_stops(orders: Sequence[Order]) -> list[Order]:
    """Stops of runs for which nothing else is ordered: the run ended before it could obey."""
    ordered = {order.run_id for order in orders if order.kind != "stop"}
    return [order for order in orders if order.kind == "stop" and order.run_id not in ordered]


def policy_of(order: Order, commit: PlanCommit) -> Policy:
    """The commit's policy, or the one that an order to resume carries.

    Raises:
        UnusableOrderError: the order's policy cannot be read.
    """
    if order.kind == "commit":
        return commit.policy
    try:
        return Policy.model_validate(order.body.get("policy", {}))
    except ValidationError as exc:
        raise unusable(order, "the fields of a policy", _bad_fields(exc)) from exc


def commit_of(order: Order) -> PlanCommit:
    """The commit that an order of that kind is.

    Raises:
        UnusableOrderError: the order cannot be read; it is refused, and the next one is carried out (G10).
    """
    try:
        return PlanCommit.model_validate(dict(order.body))
    except ValidationError as exc:
        raise unusable(order, "the fields of a plan commit", _bad_fields(exc)) from exc


def unusable(order: Order, expected: str, found: str) -> UnusableOrderError:
    """The refusal of an order that does not say what its kind says."""
    return UnusableOrderError(
        checked=f"the order to {order.kind} run {order.run_id} ({order.order_id})",
        expected=expected,
        found=found,
        next_action="order it again with this program",
    )


def _bad_fields(exc: ValidationError) -> str:
    """Names of the fields, never their values."""
    return "unusable: " + ", ".join(sorted({".".join(map(str, error["loc"])) for error in exc.errors()}))


def is_carried_out(order: Order, history: RunHistory) -> bool:
    """Whether nothing is left to do: the run is applied, or this commit led to an end that only a resume continues.

    A commit delivered twice ends here (G7). A run that its writer's death interrupted is still being carried out.
    """
    if history.last_terminal == "run.applied":
        return True
    ended = history.last_terminal is not None and not history.open
    return order.kind == "commit" and ended and not history.interrupted_by_crash
