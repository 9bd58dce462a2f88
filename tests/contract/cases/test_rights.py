"""An account without the right to view is refused, and never takes what it may not see for absent (FF02)."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pydantic import SecretStr

from consumers.infrahub.connection import InfrahubSettings, open_reader
from consumers.infrahub.errors import DestinationReadError
from ledger.destination import FieldSelection
from tests.contract.cases.recording import place_on
from tests.contract.cases.talk import Talk, values

pytestmark = pytest.mark.contract


@pytest.fixture
def talk(served: tuple[str, str], request: pytest.FixtureRequest) -> Iterator[Talk]:
    """Speaks to a branch of the test's own, beside which there is an account without a role."""
    reader = ("reader-token", "not used") if served[1] == "contract-token" else None
    with place_on(*served, reader=reader) as place:
        talk = Talk(place, request.node.name)
        yield talk
        talk.close()


@pytest.mark.rules("G11")
@pytest.mark.parametrize(
    "fields", [FieldSelection(("name",)), FieldSelection(many=("tags",))], ids=["attributes", "peers"]
)
async def test_ff02_what_may_not_be_viewed_is_refused_and_not_read_as_absent(
    talk: Talk, fields: FieldSelection
) -> None:
    talk.write("ProbeSiteUpsert", values(name=talk.name("site"), asset=talk.name()))
    settings = InfrahubSettings(
        url=talk.place.url, branch=talk.place.branch, token=SecretStr(talk.place.reader_token), attempts=1
    )
    async with open_reader(settings) as reader:
        with pytest.raises(DestinationReadError, match=r"object:Probe:Site:view") as caught:
            [item async for item in reader.read("ProbeSite", fields)]
        assert await reader.counts(("ProbeSite",)) == {"ProbeSite": 1}
    assert "role" in caught.value.next_action
