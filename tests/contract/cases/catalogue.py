"""All cases: importing this module registers them."""

from __future__ import annotations

from tests.contract.cases import (
    access,
    attribute_values,
    branches,
    creates,
    documents,
    generics,
    nulls,
    races,
    relations,
    upserts,
)
from tests.contract.cases.case import CASES, Case, groups

__all__ = ["CASES", "Case", "groups"]

MODULES = (upserts, creates, nulls, relations, generics, attribute_values, documents, branches, access, races)
"""The modules that register cases when they are imported."""
