"""The page of rules says what the tests say, and the number of open rules only falls."""

from __future__ import annotations

from tests.support.rules_document import PAGE, collect_proofs, expected_numbers, open_rules, read_catalogue, render


def test_every_rule_is_in_the_catalogue() -> None:
    rules, _ = read_catalogue()
    assert sorted(rules) == sorted(expected_numbers())


def test_every_marker_names_a_known_rule() -> None:
    rules, _ = read_catalogue()
    unknown = {number: tests for number, tests in collect_proofs().items() if number not in rules}
    assert unknown == {}


def test_the_page_is_not_stale() -> None:
    assert PAGE.read_text(encoding="utf-8") == render(), "run `make rules`"


def test_the_number_of_open_rules_only_falls() -> None:
    rules, limit = read_catalogue()
    still_open = open_rules(rules, collect_proofs())
    assert len(still_open) == limit, (
        f"open: {still_open}; set open_limit in docs/rules.toml to {len(still_open)}, never higher"
    )


def test_a_rule_with_a_test_has_no_excuse() -> None:
    rules, _ = read_catalogue()
    proofs = collect_proofs()
    assert [n for n, rule in rules.items() if rule.nothing_to_show and n in proofs] == []
