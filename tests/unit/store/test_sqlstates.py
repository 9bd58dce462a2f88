"""The table from SQLSTATE to exception class is complete, and says only what is true."""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

import asyncpg
import pytest

from ledger.errors import ApplyLedgerError
from ledger.exit_codes import ExitCode
from ledger.store import errors
from ledger.store.asked import ASKED, words_of
from ledger.store.sql_files import migrations, query, sql_folder
from ledger.store.sqlstates import OWN_STATES, STANDARD_STATES, is_transient, translated

RAISED = re.compile(r"errcode = '([A-Z0-9]{5})'")


def server_error(state: str, message: str = "it says so", **fields: str) -> Any:
    """An error as the driver raises it."""
    parts = {"S": "ERROR", "V": "ERROR", "C": state, "M": message} | fields
    return asyncpg.PostgresError.new(parts, query=None)


def raised_states() -> set[str]:
    """Every state that a migration raises."""
    return {state for migration in migrations() for state in RAISED.findall(migration.text)}


def code_of(text: str) -> str:
    """SQL in lower case without its comments."""
    return "\n".join(line.split("--")[0] for line in text.lower().splitlines())


@pytest.mark.rules("G11")
def test_g11_every_state_that_the_sql_raises_has_a_class_and_every_class_is_raised() -> None:
    assert raised_states() == set(OWN_STATES)


def test_own_states_are_in_a_class_that_no_standard_and_no_retry_helper_knows() -> None:
    assert all(re.fullmatch(r"LG[0-9]{3}", state) for state in OWN_STATES)
    assert all(not state.startswith("LG") for state in STANDARD_STATES)


def test_an_own_state_is_one_class_and_one_class_is_one_own_state() -> None:
    counts = Counter(meaning.error for meaning in OWN_STATES.values())
    assert [error.__name__ for error, count in counts.items() if count > 1] == []


@pytest.mark.rules("G11")
def test_g11_every_meaning_says_what_was_expected_and_what_to_do_next() -> None:
    for state, meaning in [*OWN_STATES.items(), *STANDARD_STATES.items()]:
        assert meaning.expected, state
        assert meaning.next_action, state
        assert issubclass(meaning.error, ApplyLedgerError)


@pytest.mark.rules("G11")
def test_g11_whatever_the_database_may_refuse_is_named_in_the_words_of_who_asked() -> None:
    texts = "\n".join(path.read_text(encoding="utf-8") for path in sorted((sql_folder() / "queries").glob("*.sql")))
    names = re.findall(r"^-- name: (\w+)$", texts, re.MULTILINE)
    calling = {name for name in names if re.search(r"\bledger\.\w+_v\d+\(", code_of(query(name)))}
    assert {"submit_order", "append", "claim"} <= calling
    assert calling - set(ASKED) == set()
    assert set(ASKED) - set(names) == set()
    assert words_of("submit_order") == "the order"
    assert words_of("run_marks") == "reading the ledger (run marks)"


@pytest.mark.rules("G2")
@pytest.mark.parametrize("state", sorted(OWN_STATES))
def test_g02_no_own_state_is_ever_asked_again(state: str) -> None:
    assert not is_transient(server_error(state))


@pytest.mark.parametrize(
    "state", ["08006", "08003", "25P03", "25P04", "40001", "40P01", "53300", "55P03", "57014", "57P01", "57P03"]
)
def test_trouble_of_the_server_may_be_asked_again(state: str) -> None:
    assert is_transient(server_error(state))


@pytest.mark.parametrize("state", ["22P02", "23505", "23514", "28P01", "42501", "25006", "XX000"])
def test_a_refusal_is_not_asked_again(state: str) -> None:
    assert not is_transient(server_error(state))


def test_a_lost_connection_may_be_asked_again_and_a_wrong_dsn_may_not() -> None:
    assert is_transient(ConnectionResetError())
    assert is_transient(TimeoutError())
    assert is_transient(asyncpg.InterfaceError("connection is closed"))
    assert not is_transient(asyncpg.ClientConfigurationError("bad"))
    assert not is_transient(ValueError())


def test_the_facts_of_an_own_state_come_from_its_detail() -> None:
    error = translated(server_error("LG001", "gone", D='{"epoch": 7}'), doing="an append")
    assert type(error) is errors.FencedWriterError
    assert error.facts == {"epoch": 7}
    assert error.found == "gone (epoch 7)"  # in words; the state's own code says nothing to a person
    for detail in ("not json", "[1]", ""):
        assert translated(server_error("LG001", "gone", D=detail), doing="an append").facts == {}


@pytest.mark.rules("G2", "G12")
def test_g02_who_is_told_that_a_lease_is_held_does_not_learn_with_what_it_is_written_under() -> None:
    detail = '{"owner": "3f1c", "host": "there", "epoch": 7, "seconds": 59.820127}'
    error = translated(server_error("LG003", "held", D=detail), doing="the claim")
    assert error.found == "held (host there, epoch 7, seconds 59.8)"
    assert error.facts["owner"] == "3f1c"  # the program itself compares it
    assert "3f1c" not in str(error)


@pytest.mark.rules("G12")
def test_g12_the_detail_of_a_standard_state_is_left_out_because_it_quotes_values() -> None:
    error = translated(server_error("23505", "duplicate key", D="Key (x)=(secret) exists", n="some_key"), doing="it")
    assert type(error) is errors.DuplicateFactError
    assert "secret" not in str(error)
    assert error.facts == {"constraint": "some_key"}


def test_a_state_that_nobody_knows_is_named() -> None:
    error = translated(server_error("XX001", "page torn"), doing="an append")
    assert type(error) is errors.UnexpectedDatabaseError
    assert "XX001" in str(error)


@pytest.mark.parametrize("state", ["53000", "53200", "53400", "57000", "57P04", "58000", "58030", "58P01", "XX001"])
def test_trouble_of_the_server_is_no_defect_of_a_program(state: str) -> None:
    error = translated(server_error(state), doing="an append")
    assert "server" in error.next_action or "ask again" in error.next_action
    assert "defect" not in error.next_action
    assert error.exit_code is (ExitCode.ERROR if state.startswith("XX") else ExitCode.BUSY)


def test_busy_and_away_end_with_the_exit_code_for_it() -> None:
    for state in ("55P03", "57014", "57P01", "08006", "LG003", "LG006"):
        assert translated(server_error(state), doing="it").exit_code is ExitCode.BUSY
    assert translated(OSError("refused"), doing="it").exit_code is ExitCode.BUSY


@pytest.mark.rules("G7")
def test_g07_no_sql_of_ours_passes_over_a_conflict() -> None:
    # ON CONFLICT DO NOTHING makes a lost write look like success.
    for migration in migrations():
        assert "on conflict" not in code_of(migration.text), migration.version


@pytest.mark.rules("G8")
def test_g08_positions_come_from_no_sequence_and_notify_is_not_inside() -> None:
    code = "\n".join(code_of(migration.text) for migration in migrations())
    assert code.count("generated always as identity") == 1, "the id of a binding alone"
    for word in ("nextval", "serial", "notify", "uuidv7", " now()"):
        assert word not in code, word


def test_every_query_of_the_store_says_what_it_is_for() -> None:
    for subject in ("bindings", "history", "migrations", "orders", "plans", "writer"):
        text = (sql_folder() / "queries" / f"{subject}.sql").read_text(encoding="utf-8")
        for block in text.split("-- name: ")[1:]:
            name, purpose = block.splitlines()[:2]
            assert purpose.startswith("-- "), name
            assert query(name)
