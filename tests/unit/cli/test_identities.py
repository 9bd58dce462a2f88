"""What the words behind KIND can mean, and which of them mean nothing."""

from __future__ import annotations

import pytest

from ledger.audit.identities import identities_of
from ledger.errors import UsageError


def test_pairs_are_text_first_and_then_what_they_look_like() -> None:
    assert identities_of(["name=red"]) == [{"name": "red"}]
    assert identities_of(["name=a=b", "vid=7"]) == [{"name": "a=b", "vid": "7"}, {"name": "a=b", "vid": 7}]
    assert identities_of(['site={"identity":{"name":"x"},"peer_kind":"Site"}'])[1] == {
        "site": {"identity": {"name": "x"}, "peer_kind": "Site"}
    }


def test_one_json_object_is_taken_as_it_is() -> None:
    assert identities_of(['{"name": "red", "vid": 7}']) == [{"name": "red", "vid": 7}]


@pytest.mark.parametrize("arguments", [["red"], ["=red"], ["name=a", "name=b"], ["{}"], ["{"], ["[1]"], ["{" * 10_000]])
def test_what_names_nothing_is_a_usage_error(arguments: list[str]) -> None:
    with pytest.raises(UsageError, match="IDENTITY"):
        identities_of(arguments)
