"""The published document is the one that the API gives."""

from __future__ import annotations

from tests.support.openapi_document import PAGE, document, render


def test_the_document_is_not_stale() -> None:
    assert PAGE.read_text(encoding="utf-8") == render(), "run `make rules`"


def test_every_address_says_what_it_answers_to_whom() -> None:
    for path, methods in document()["paths"].items():
        for method, operation in methods.items():
            assert operation["summary"], (path, method)
            assert operation["description"], (path, method)
            for status, response in operation["responses"].items():
                if int(status) >= 400 and path != "/readyz":
                    assert list(response["content"]) == ["application/problem+json"], (path, status)
            assert operation["security"] == [] or operation["x-roles"], path
