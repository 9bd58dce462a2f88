"""All cases: importing this module registers them."""

from __future__ import annotations

from tests.contract.cases import (
    access,
    addresses,
    attribute_values,
    branches,
    creates,
    documents,
    generics,
    kinds,
    large,
    merges,
    nulls,
    paging,
    races,
    relations,
    upserts,
)
from tests.contract.cases.case import CASES, Case, groups

__all__ = ["CASES", "Case", "groups"]

MODULES = (
    *(
        upserts,
        creates,
        nulls,
        relations,
        generics,
        attribute_values,
        large,
        documents,
        paging,
        branches,
        merges,
        access,
    ),
    *(races, kinds, addresses),
)
"""The modules that register cases when they are imported."""
