"""What was asked of the database, in the words of whoever asked: the first line of a refusal names it."""

from __future__ import annotations

from collections.abc import Mapping

ASKED: Mapping[str, str] = {
    "append": "what the writer recorded",
    "applied_and_next": "what the writer recorded",
    "append_control": "what was recorded beside the writer",
    "add_plan_coverage": "storing the plan",
    "add_plan_lines": "storing the plan",
    "open_plan": "storing the plan",
    "seal_plan": "storing the plan",
    "store_artifact": "storing the plan's manifest",
    "store_detail": "storing the whole list of an event",
    "register_binding": "the destination's place in the ledger",
    "submit_commit": "the commit",
    "submit_commits": "the commits",
    "submit_order": "the order",
    "close_order": "the end of an order",
    "refuse_message": "the refusal of a message",
    "claim": "the claim to be the writer of the destination",
    "renew": "the writer's hold on the destination",
    "release": "the end of the writer's hold on the destination",
    "claim_relay": "the claim to relay events",
    "advance_relay": "how far events were relayed",
    "release_relay": "the end of a relay",
    "worker_beat": "what a worker says of itself",
    "worker_gone": "the end of a worker",
    "create_api_token": "the new token",
    "revoke_api_token": "the end of a token",
    "use_api_token": "the use of a token",
    "ring": "telling writers that something was ordered",
}
"""By query: every one that calls a function of the ledger, which may refuse with a state of its own."""


def words_of(name: str) -> str:
    """What was asked by a named query; one that only reads says what it reads."""
    return ASKED.get(name) or f"reading the ledger ({name.replace('_', ' ')})"
