"""The comparison that diffsync makes: typed, ordered where order counts, silent about absent fields."""

from __future__ import annotations

from typing import Any

import pytest
from diffsync.enum import DiffSyncFlags

from producers.diffsync_plan import Compared, Side, compare, compared_text


def _compared(
    source: dict[str, dict[str, Any]], destination: dict[str, dict[str, Any]], flags: DiffSyncFlags = DiffSyncFlags.NONE
) -> list[Compared]:
    def side(name: str, objects: dict[str, dict[str, Any]]) -> Side:
        texts = {key: {field: compared_text(value) for field, value in item.items()} for key, item in objects.items()}
        return Side(name, {"K": texts})

    return sorted(
        compare(side("s", source), side("d", destination), kinds=["K"], flags=flags), key=lambda item: item.identity
    )


@pytest.mark.parametrize(
    ("wanted", "observed"),
    [
        (True, 1),
        (1, 1.0),
        (0, False),
        ({"a": True}, {"a": 1}),
        ("\u00e9", "e\u0301"),
        (None, ""),
        ([1, 2], [2, 1]),
        ("1", 1),
    ],
)
def test_ff16_values_that_python_or_a_person_takes_for_equal_are_an_update(wanted: Any, observed: Any) -> None:
    assert _compared({"x": {"f": wanted}}, {"x": {"f": observed}}) == [Compared("K", "x", "update", ("f",))]


@pytest.mark.parametrize("value", [None, "", 0, False, [], {"b": 1, "a": 2}, 2**53 + 1])
def test_equal_values_are_no_change(value: Any) -> None:
    assert _compared({"x": {"f": value}}, {"x": {"f": value}})[0].change == "none"


def test_a_field_that_one_side_lacks_is_not_compared() -> None:
    assert _compared({"x": {}}, {"x": {"f": 1}})[0].change == "none"
    assert _compared({"x": {"f": 1}}, {"x": {}})[0].change == "none"


@pytest.mark.rules("H5", "H11")
def test_every_object_of_either_side_has_exactly_one_result() -> None:
    found = _compared({"a": {"f": 1}, "b": {"f": 1}, "c": {"f": 1}}, {"b": {"f": 2}, "c": {"f": 1}, "d": {}})
    assert [(item.identity, item.change) for item in found] == [
        ("a", "create"),
        ("b", "update"),
        ("c", "none"),
        ("d", "delete"),
    ]


def test_ff09_identities_that_join_to_one_text_stay_two_objects() -> None:
    first, second = compared_text(["x__y", "z"]), compared_text(["x", "y__z"])
    assert len(_compared({first: {}, second: {}}, {})) == 2


@pytest.mark.parametrize(
    ("flag", "left"),
    [
        (DiffSyncFlags.SKIP_UNMATCHED_SRC, ["delete", "none"]),
        (DiffSyncFlags.SKIP_UNMATCHED_DST, ["create", "none"]),
        (DiffSyncFlags.SKIP_UNMATCHED_BOTH, ["none"]),
    ],
)
def test_flags_hide_objects_of_one_side(flag: DiffSyncFlags, left: list[str]) -> None:
    found = _compared({"a": {}, "b": {}}, {"b": {}, "c": {}}, flag)
    assert sorted(item.change for item in found) == left
