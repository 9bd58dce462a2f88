"""Sixty random edits with all rights; ``make tamper`` does a thousand and more."""

from __future__ import annotations

import pytest

from tests.support.postgres import PostgresServer
from tests.support.tampering_campaign import IN_AN_EXPORT, run_campaign

pytestmark = pytest.mark.integration


@pytest.mark.rules("G8", "G9")
@pytest.mark.timeout(600)
def test_g08_every_random_edit_is_found(postgres18_server: PostgresServer) -> None:
    result = run_campaign(postgres18_server, count=60, seed=20261131)
    assert result.missed == []
    # all kinds were tried: what tells by itself, what only a checkpoint tells, and what is told of an export
    kinds = ("without a checkpoint as well", "with a checkpoint only", IN_AN_EXPORT)
    assert min(result.found[kind] for kind in kinds) > 2
