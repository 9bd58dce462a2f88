"""What keeps a record from being changed: triggers are what they call and when, functions are their words (G8)."""

from __future__ import annotations

import pytest

from ledger.audit import Level, LevelReport, Status, verify_binding
from ledger.store.ledger import Ledger
from ledger.store.sql_functions import defined_functions
from tests.support.recorded_runs import BINDING
from tests.support.store import connection_to

pytestmark = pytest.mark.integration


async def _guards(dsns: dict[str, str]) -> LevelReport:
    async with await Ledger.open(dsns["reader"], allow_unsafe_fsync=True) as ledger:
        report = await verify_binding(ledger, BINDING)
    assert {level.level for level in report.levels if level.total} <= {Level.GUARDS}
    return report.level(Level.GUARDS)


async def _after(dsns: dict[str, str], *statements: str) -> LevelReport:
    async with connection_to(dsns["admin"]) as admin:
        for statement in statements:
            await admin.execute(statement)
    return await _guards(dsns)


_TRIGGER = "create trigger refuse_row_change before {} on ledger.plan_operation for each row {} execute function {}"
_PASSES = (
    "create function public.let_pass() returns trigger language plpgsql as $$begin return new; end$$",
    "drop trigger refuse_row_change on ledger.plan_operation",
)
_IN_FORCE = "alter table ledger.plan_operation enable always trigger refuse_row_change"
_GUARD = "ledger.refuse_change()"
_TRIGGERS = {
    "off": ("alter table ledger.plan_operation disable trigger refuse_truncate",),
    "not for every session": ("alter table ledger.plan_operation enable trigger refuse_row_change",),
    "of another function": (*_PASSES, _TRIGGER.format("update or delete", "", "public.let_pass()"), _IN_FORCE),
    "of a condition": (_PASSES[1], _TRIGGER.format("update or delete", "when (false)", _GUARD), _IN_FORCE),
    "of deletes alone": (_PASSES[1], _TRIGGER.format("delete", "", _GUARD), _IN_FORCE),
    "of one column": (_PASSES[1], _TRIGGER.format("delete or update of ordinal", "", _GUARD), _IN_FORCE),
    "gone": (_PASSES[1],),
}


@pytest.mark.rules("G8")
@pytest.mark.parametrize("statements", _TRIGGERS.values(), ids=_TRIGGERS)
async def test_g08_a_trigger_that_does_not_refuse_is_found(
    told_dsns: dict[str, str], statements: tuple[str, ...]
) -> None:
    guards = await _after(told_dsns, *statements)
    assert [finding.checked for finding in guards.findings] == ["what guards ledger.plan_operation"]


_STRANGERS = {
    "a trigger that rewrites": (
        _PASSES[0],
        "create trigger a_helper before insert on ledger.inbox for each row execute function public.let_pass()",
    ),
    "a rule that drops": ("create rule quiet as on insert to ledger.inbox where new.kind = 'stop' do instead nothing",),
    "a policy that hides": (
        "alter table ledger.inbox enable row level security",
        "create policy hides on ledger.inbox using (inbox_id <> 1)",
    ),
    "rows of a table that inherits": ("create table public.more () inherits (ledger.inbox)",),
}


@pytest.mark.rules("G8", "G10")
@pytest.mark.parametrize("statements", _STRANGERS.values(), ids=_STRANGERS)
async def test_g08_what_changes_or_hides_rows_is_found(told_dsns: dict[str, str], statements: tuple[str, ...]) -> None:
    async with connection_to(told_dsns["admin"]) as admin:
        for statement in statements:
            await admin.execute(statement)
    async with await Ledger.open(told_dsns["reader"], allow_unsafe_fsync=True) as ledger:
        guards = (await verify_binding(ledger, BINDING)).level(Level.GUARDS)
    assert [finding.checked for finding in guards.findings] == ["what guards ledger.inbox"]


@pytest.mark.rules("G8")
@pytest.mark.parametrize("url", ["upper(url)", "url || '/'", "'no address'"])
async def test_g08_a_second_log_of_a_destination_in_another_spelling_is_found(
    told_dsns: dict[str, str], url: str
) -> None:
    guards = await _after(
        told_dsns,
        f"insert into ledger.binding (url, branch) select {url}, branch from ledger.binding",
    )
    assert [finding.name for finding in guards.findings] == ["BindingSpelledOtherwise"]


@pytest.mark.rules("G8")
async def test_g08_rows_of_no_binding_are_found(told_dsns: dict[str, str]) -> None:
    guards = await _after(
        told_dsns,
        "insert into ledger.event select (jsonb_populate_record(e, '{\"binding_id\": 9}')).* from ledger.event e"
        " where e.position = 1",
    )
    assert [(finding.name, finding.found) for finding in guards.findings] == [
        ("RowsOfNoBinding", "the id 9, which is none's")
    ]


_FOREIGN_KEYS = {
    "off, and only the guards on again": (
        "alter table ledger.artifact disable trigger all",
        "alter table ledger.artifact enable always trigger refuse_row_change",
        "alter table ledger.artifact enable always trigger refuse_truncate",
    ),
    "gone": ("alter table ledger.artifact drop constraint artifact_plan_checksum_fkey",),
    "not checked": (
        "alter table ledger.artifact drop constraint artifact_plan_checksum_fkey",
        "alter table ledger.artifact add foreign key (plan_checksum) references ledger.plan (checksum) not valid",
    ),
    "of another table": (
        "alter table ledger.artifact drop constraint artifact_plan_checksum_fkey",
        "alter table ledger.artifact add foreign key (plan_checksum) references ledger.plan_seal (checksum)",
    ),
}


@pytest.mark.rules("G8")
@pytest.mark.parametrize("statements", _FOREIGN_KEYS.values(), ids=_FOREIGN_KEYS)
async def test_g08_a_foreign_key_that_is_not_in_force_is_found(
    told_dsns: dict[str, str], statements: tuple[str, ...]
) -> None:
    """Whoever switches all triggers off to edit a row leaves this trace, unless it is thought of."""
    guards = await _after(told_dsns, *statements)
    assert [finding.checked for finding in guards.findings] == ["what guards ledger.artifact"]


_REFUSE = "create {or_replace} function {name} returns trigger language plpgsql{path} as $$begin return new; end$$"
_PATH = " set search_path = pg_catalog, pg_temp"
_FUNCTIONS = {
    "another body": (
        _REFUSE.format(or_replace="or replace", name="ledger.refuse_change()", path=_PATH),
        "refuse_change",
    ),
    "a blank more": (
        "do $$ declare t text := pg_get_functiondef('ledger.close_order_v1'::regproc); begin"
        " execute replace(t, 'begin', 'begin '); end $$",
        "close_order_v1",
    ),
    "names found elsewhere": ("alter function ledger.append_v1 set search_path = public, ledger", "append_v1"),
    "names found anywhere": ("alter function ledger.append_v1 reset search_path", "append_v1"),
    "another's rights": ("alter function ledger.lock_binding security definer", "lock_binding"),
    "a second one": (
        "create function ledger.lock_binding(text) returns text language sql return '1'",
        "lock_binding",
    ),
    "a tree that is text": (
        "create or replace function ledger.lp(p_value bytea) returns bytea language sql immutable parallel safe"
        " as 'select p_value'",
        "lp",
    ),
    "none": ("drop function ledger.check_seconds", "check_seconds"),
}


@pytest.mark.rules("G8")
@pytest.mark.parametrize(("statement", "name"), _FUNCTIONS.values(), ids=_FUNCTIONS)
async def test_g08_a_function_that_is_not_what_the_migrations_made_it_is_found(
    told_dsns: dict[str, str], statement: str, name: str
) -> None:
    guards = await _after(told_dsns, statement)
    assert [finding.checked for finding in guards.findings] == [f"the function ledger.{name}"]


@pytest.mark.rules("G8")
async def test_g08_every_function_of_an_untouched_ledger_is_known(recorded_dsns: dict[str, str]) -> None:
    async with connection_to(recorded_dsns["admin"]) as admin:
        names = {row[0] for row in await admin.fetch(_NAMES)}
    assert names == set(defined_functions())
    guards = await _guards(recorded_dsns)
    assert (guards.status, guards.checked) == (Status.HELD, 1)


_NAMES = "select proname from pg_proc where pronamespace = 'ledger'::regnamespace"
