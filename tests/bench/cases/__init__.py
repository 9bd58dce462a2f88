"""All cases, in the order in which they run. A new one is a module here with a ``CASE``, and a line below."""

from __future__ import annotations

from tests.bench.cases import (
    append,
    apply,
    audit,
    bindings,
    broker,
    dispatch,
    million,
    pages,
    plan_rows,
    replay,
    verify_parse,
)
from tests.bench.frame import Case

CASES: tuple[Case, ...] = (
    apply.AT_ONCE,
    apply.SLOW,
    bindings.CASE,
    dispatch.CASE,
    broker.CASE,
    append.CASE,
    replay.CASE,
    audit.CASE,
    pages.CASE,
    million.CASE,
    verify_parse.CASE,
    plan_rows.CASE,
)
