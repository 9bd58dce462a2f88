"""Texts in a review: hostile ones, secret ones, big ones (C38, H21)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ledger.plan.coverage import Difference, MappingEntry
from ledger.plan.review import read_saved_plan, review_document
from ledger.schema import Attribute
from tests.support.plan_rules import coverage_line as line
from tests.support.plan_rules import (
    create,
    kind,
    operation,
    pair,
    ref,
    save_plan,
    schema,
    update,
)
from tests.support.reviewed_plans import shown


@pytest.mark.rules("H21", "A92")
def test_texts_of_very_many_lines_are_counted_and_not_compared(tmp_path: Path) -> None:
    old, new = ("\n".join(f"{number} {word}" for number in range(2_001)) for word in ("old", "new"))
    planned = update("B", {"name": "b"}, {"text": new})
    told = {"text": Difference(observed=old, desired=new)}
    plan = save_plan(tmp_path / "a", [planned], [line("update", "B", {"name": "b"}, differences=told)])
    text = " ".join(shown(plan, detail=True).split())
    assert "text: differs (2,001 lines; too many to compare here, --output json shows all)" in text


class TestHostileText:
    def test_nothing_of_a_plan_reaches_the_terminal_raw(self, tmp_path: Path) -> None:
        hostile = "\x1b[2J\u202e\u200b\u2028\x85[bold]x[/bold]\r"
        lines = [line("skip", "A", {"name": hostile}, reason=hostile, entry=MappingEntry(index=0, name=hostile))]
        planned = update("B", {"name": "b"}, {"text": hostile})
        lines.append(
            line("update", "B", {"name": "b"}, differences={hostile: Difference(observed=hostile, desired="")})
        )
        plan = save_plan(tmp_path / "a", [planned], lines, source=hostile, config_version="x")
        text = shown(plan, detail=True)
        for char in hostile:
            assert char.isprintable() or char not in text
        assert "[bold]x[/bold]" in text
        assert "\\u001b[2J\\u202e\\u200b\\u2028\\u0085" in text


class TestSecrets:
    @pytest.mark.rules("G12")
    @pytest.mark.parametrize("known", [True, False])
    def test_g12_a_secret_is_masked_in_every_form_of_a_review(self, tmp_path: Path, known: bool) -> None:
        field = "pin" if known else "admin_password"
        account = kind("Account", attributes=[Attribute(name="pin", kind="Password")])
        options: dict[str, Any] = {"schema": schema(account)} if known else {}
        owner = {"name": "bot", field: "hunter2"}
        operations = [
            create("Account", {"name": "a"}, {field: "hunter2"}),
            update("Account", {"name": "b"}, {field: "hunter2\nof two lines"}),
            create("Account", {"name": "c", "peer": pair("Account", **owner)}, {}, ref("peer", "Account", owner)),
            operation("delete", "Account", {field: "hunter2"}),
        ]
        lines = [
            line("create", "Account", operations[0].identity),
            line(
                "update",
                "Account",
                {"name": "b"},
                differences={field: Difference(observed="hunter2", desired="hunter2\nof two lines")},
            ),
            line("create", "Account", operations[2].identity),
            line("remove", "Account", {field: "hunter2"}),
        ]
        plan = save_plan(tmp_path / "a", operations, lines)
        text = shown(plan, detail=True, **options)
        document = json.dumps(review_document(read_saved_plan(plan), **options))
        assert "hunter2" not in text + document
        assert "two lines" not in text + document
        assert f"{field}: (sensitive)" in text
        assert "(sensitive)" in document


class TestBigTexts:
    @pytest.mark.rules("H21")
    @pytest.mark.parametrize(
        ("observed", "desired", "wanted"),
        [
            ("a\nb", "a\nc\nd", "differs (2 → 3 lines)"),
            ("a\r\nb", "a\nb", "differs (2 lines)"),
            ("x" * 200, "y" * 300, "differs (1 line, 200 → 300 characters)"),
            (None, "a\nb", "null → text of 2 lines (3 characters)"),
            ("a\nb", None, "text of 2 lines (3 characters) → null"),
        ],
    )
    def test_big_texts_differ_by_lines(self, tmp_path: Path, observed: Any, desired: Any, wanted: str) -> None:
        changed = [
            line("update", "A", {"name": "a"}, differences={"text": Difference(observed=observed, desired=desired)})
        ]
        plan = save_plan(tmp_path / "a", [update("A", {"name": "a"}, {"text": desired})], changed)
        assert f"text: {wanted}" in shown(plan, detail=True)
        (change,) = review_document(read_saved_plan(plan))["resources"][0]["changes"]
        assert change == {"field": "text", "observed": observed, "desired": desired}

    def test_a_huge_difference_is_cut_and_the_cut_is_said(self, tmp_path: Path) -> None:
        old, new = "\n".join(f"a{n}" for n in range(500)), "\n".join(f"b{n}" for n in range(500))
        changed = [line("update", "A", {"name": "a"}, differences={"text": Difference(observed=old, desired=new)})]
        text = shown(save_plan(tmp_path / "a", [update("A", {"name": "a"}, {"text": new})], changed), detail=True)
        assert "961 lines more; --output json shows all" in text
