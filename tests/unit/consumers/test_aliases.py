"""A destination under another of its declared names is the same destination, and no other one is."""

from __future__ import annotations

import pytest

from consumers.errors import AliasRecordedError
from ledger.binding import DestinationBinding
from tests.support.committed_plans import BINDING, tag
from tests.support.writer_bench import Bench

ALIAS = DestinationBinding(url="http://10.0.0.5:8000/", branch="main")


@pytest.mark.rules("G2", "A64")
async def test_g02_a_plan_made_under_a_declared_alias_is_for_this_destination(bench: Bench) -> None:
    bench.aliases = [ALIAS.normalised()]
    bench.commit([tag("a")], binding=ALIAS)
    assert (await bench.drain()).ending == "run.applied"


@pytest.mark.rules("A64")
@pytest.mark.parametrize(
    "planned",
    [ALIAS.model_copy(update={"branch": "other"}), DestinationBinding(url="http://10.0.0.6:8000", branch="main")],
)
async def test_an_alias_names_one_url_on_one_branch(bench: Bench, planned: DestinationBinding) -> None:
    bench.aliases = [ALIAS.normalised()]
    bench.commit([tag("a")], binding=planned)
    outcome = await bench.drain()
    assert [finding.name for finding in outcome.findings] == ["DestinationBindingMismatchError"]
    assert outcome.findings[0].expected == str(BINDING)


@pytest.mark.rules("G2")
async def test_g02_a_destination_that_the_ledger_keeps_under_an_alias_is_not_claimed(bench: Bench) -> None:
    bench.aliases = [ALIAS.normalised()]
    bench.ledger.other_bindings = [ALIAS.normalised()]
    bench.commit([tag("a")])
    with pytest.raises(AliasRecordedError) as refused:
        await bench.drain()
    assert "declare http://10.0.0.5:8000 as the url" in refused.value.next_action
    assert bench.ledger.log == []
