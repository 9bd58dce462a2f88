"""Places in a log as people name them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from ledger.audit.window import place_of

SECOND = datetime(2026, 11, 30, 15, 16, 33, tzinfo=UTC)


@pytest.mark.parametrize("text", ["2026-11-30T15:16:33", "2026-11-30T15:16:33Z", "2026-11-30T16:16:33+01:00"])
def test_a_time_to_the_second_ends_behind_that_second_and_begins_with_it(text: str) -> None:
    assert place_of(text, option="--from") == SECOND
    assert place_of(text, option="--to", ends=True) == SECOND + timedelta(microseconds=999_999)


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("2026-11-30T15:16:33.25", SECOND + timedelta(milliseconds=250)),
        ("2026-11-30T15:16", SECOND.replace(second=0)),
        ("2026-11-30", datetime(2026, 11, 30, tzinfo=UTC)),
        ("1200", 1200),
    ],
)
def test_what_is_finer_or_coarser_than_a_second_is_that_moment(text: str, moment: datetime | int) -> None:
    assert place_of(text, option="--to", ends=True) == moment
