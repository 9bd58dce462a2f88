"""Each rule of what a planned write does is shown on a real server, or there is a reason why nothing is to be shown."""

from __future__ import annotations

from tests.support.rules_document import collect_proofs, read_catalogue

RULES = [f"P{number}" for number in range(17, 100)]


def test_a_live_test_proves_each_of_them_or_there_is_nothing_to_show() -> None:
    rules, _ = read_catalogue()
    proofs = collect_proofs()
    live = {rule for rule in RULES if any(proof.startswith("tests/live/") for proof in proofs.get(rule, []))}
    assert [rule for rule in RULES if rule not in live and rules[rule].nothing_to_show is None] == []
