"""The documents of both messages are those of the models, and what is sent is what they say."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest

from ledger.commit_message import encode_commit
from ledger.event_message import encode_event
from ledger.events import BODIES
from tests.support.events import EventLog
from tests.support.message_documents import DOCUMENTS, FOLDER, asyncapi, commit_schema, event_schema, render
from tests.support.store import make_commit


@pytest.mark.parametrize("name", DOCUMENTS)
def test_the_document_is_the_one_that_the_models_make(name: str) -> None:
    assert (FOLDER / name).read_text(encoding="utf-8") == render(name), "run `make rules`"


def test_the_schema_of_a_commit_has_each_field_that_is_sent_and_no_other() -> None:
    schema = commit_schema()
    body = json.loads(make_commit().canonical_bytes())
    assert set(schema["properties"]) == set(body)
    assert set(schema["required"]) <= set(body)
    assert schema["additionalProperties"] is False


def test_the_schema_of_an_event_has_a_closed_shape_for_each_kind() -> None:
    schema = event_schema()
    for kind, model in BODIES.items():
        shape = schema["$defs"][kind]
        assert set(shape["properties"]) == set(model.model_fields), kind
        assert shape["additionalProperties"] is False, kind
    assert {each["$ref"] for each in schema["anyOf"]} == {f"#/$defs/{kind}" for kind in BODIES}


@pytest.mark.rules("G8")
def test_g08_the_headers_that_are_sent_are_those_of_the_document() -> None:
    messages = asyncapi()["components"]["messages"]
    log = EventLog()
    log.commit(1)
    log.started(1)
    log.applied(0)
    sent = [("planCommit", encode_commit(make_commit()))] + [("ledgerEvent", encode_event(e)) for e in log.events]
    for name, message in sent:
        headers = messages[name]["headers"]
        found = {key: value.decode() for key, value in message.headers}
        assert set(headers["required"]) <= set(found) <= set(headers["properties"])
        for key, value in found.items():
            assert headers["properties"][key].get("const", value) == value, key


def test_every_reference_within_the_documents_leads_somewhere() -> None:
    for name in DOCUMENTS:
        text = (FOLDER / name).read_text(encoding="utf-8")
        document = json.loads(text)
        for reference in re.findall(r'"\$ref": "([^"]+)"', text):
            if reference.startswith("#/"):
                assert _found(document, reference.removeprefix("#/").split("/")), f"{name}: {reference}"
            else:
                assert (FOLDER / reference).is_file(), f"{name}: {reference}"


ASYNCAPI_SCHEMA = Path(__file__).parents[1] / "support" / "asyncapi" / "schema-3.0.0.json"
"""Of the specification; its licence stands beside it."""


def _is_asyncapi(document: dict[str, Any]) -> bool:
    schema = json.loads(ASYNCAPI_SCHEMA.read_text(encoding="utf-8"))
    return jsonschema_rs.Draft7Validator(schema).is_valid(document)


def test_the_document_of_the_topics_is_right_by_the_specification() -> None:
    document = asyncapi()
    assert _is_asyncapi(document)
    (channel, *_) = document["channels"]
    (operation, *_) = document["operations"]
    assert not _is_asyncapi(document | {"info": {"title": "no version"}})
    assert not _is_asyncapi(document | {"channels": {channel: document["channels"][channel] | {"adress": "typo"}}})
    wrong = document["operations"][operation] | {"action": "publish"}
    assert not _is_asyncapi(document | {"operations": {operation: wrong}})


def _found(document: dict[str, Any], path: list[str]) -> bool:
    for step in path:
        if step not in document:
            return False
        document = document[step]
    return True
