"""No request may outlast what the lease is held for: the destination's client and the writer reckon alike."""

from __future__ import annotations

import pytest

from consumers.errors import RequestOutlivesLeaseError, WriterNotSetUpError
from consumers.infrahub.connection import InfrahubOpener, declared
from tests.support.committed_plans import tag
from tests.support.scripted_infrahub import RUN_ID, Guard, ScriptedInfrahub, lab_settings
from tests.support.writer_bench import Bench


@pytest.mark.rules("G2", "G11")
async def test_g02_a_destination_whose_requests_may_outlast_the_lease_is_not_written_to(bench: Bench) -> None:
    bench.commit([tag("a")])
    bench.destination.longest_request = bench.settings.request_timeout + 0.5
    with pytest.raises(RequestOutlivesLeaseError, match="same time-out") as caught:
        await bench.drain()
    assert isinstance(caught.value, WriterNotSetUpError), "a fault of this process: the order waits"
    assert ("20 s" in caught.value.expected, "20.5 s" in caught.value.found) == (True, True)
    assert (bench.destination.received, [order.state for order in bench.ledger.orders]) == ([], ["open"])
    bench.destination.longest_request = bench.settings.request_timeout
    assert (await bench.drain()).ending == "run.applied"


@pytest.mark.rules("G2")
async def test_g02_a_destination_says_how_long_its_client_really_waits() -> None:
    settings = lab_settings(request_timeout=7.5)
    opener = InfrahubOpener(declared(settings), factory=ScriptedInfrahub().new_transport)
    async with opener(settings.binding, run_id=RUN_ID, guard=Guard()) as opened:
        assert opened.longest_request == 7.5
