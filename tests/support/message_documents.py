"""Makes the pages of ``docs/messages``: JSON Schemas of both messages, and the AsyncAPI document of both topics.

``python -m tests.support.message_documents`` writes them; a test fails while one is stale. Everything comes from the
models and from the modules that make up the messages; nothing is described twice.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

from ledger.cli.kafka_settings import KafkaSettings
from ledger.commit import PlanCommit
from ledger.commit_message import CLOUD_EVENTS_VERSION, COMMIT_TYPE, CONTENT_TYPE, MAX_MESSAGE_BYTES
from ledger.event_message import EVENT_TYPE, HEADERS, OPTIONAL_HEADERS
from ledger.events import BODIES, SCHEMA_VERSION

FOLDER = Path(__file__).resolve().parents[2] / "docs" / "messages"
_DIALECT = "https://json-schema.org/draft/2020-12/schema"
_KEY = {
    "type": "string",
    "description": "canonical JSON of [url, branch] of the destination, both normalised; what orders its messages",
    "examples": ['["http://infrahub.example:8000","main"]'],
}
_TRACE = {"traceparent": {"type": "string", "description": "W3C trace context of the committer"}}
_COMMIT_HEADERS = {
    "ce_specversion": {"const": CLOUD_EVENTS_VERSION},
    "ce_type": {"const": COMMIT_TYPE},
    "ce_id": {"type": "string", "format": "uuid", "description": "the commit id"},
    "ce_source": {"type": "string", "description": "urn:apply-ledger:source:<name of the sync>"},
    "ce_subject": {"type": "string", "description": "the run id"},
    "ce_time": {"type": "string", "format": "date-time"},
    "content-type": {"const": CONTENT_TYPE},
}


def commit_schema() -> dict[str, Any]:
    """Of the body of a plan commit."""
    schema = PlanCommit.model_json_schema(mode="validation")
    described = f"Body of a plan commit: canonical JSON of at most {MAX_MESSAGE_BYTES:,} bytes; carries no operations."
    return {"$schema": _DIALECT, "$id": "urn:apply-ledger:schema:plan-commit.v1", **schema, "description": described}


def event_schema() -> dict[str, Any]:
    """Of the body of a ledger event: one shape for each kind, which the header ``ledger_kind`` names."""
    definitions: dict[str, Any] = {}
    shapes: list[dict[str, Any]] = []
    for kind, model in sorted(BODIES.items()):
        schema = model.model_json_schema(mode="serialization", ref_template="#/$defs/{model}")
        definitions |= schema.pop("$defs", {})
        definitions[kind] = schema | {"title": kind}
        shapes.append({"$ref": f"#/$defs/{kind}"})
    return {
        "$schema": _DIALECT,
        "$id": f"urn:apply-ledger:schema:ledger-event.v{SCHEMA_VERSION}",
        "title": "LedgerEvent",
        "description": "Body of an event: the very bytes that were stored and hashed. ledger_kind says which shape.",
        "anyOf": shapes,
        "$defs": definitions,
    }


def asyncapi() -> dict[str, Any]:
    """Both topics, with keys, headers and bodies."""
    defaults = KafkaSettings()
    return {
        "asyncapi": "3.0.0",
        "info": {
            "title": "apply-ledger",
            "version": version("apply-ledger"),
            "description": "Plan commits in, ledger events out. Both are CloudEvents in Kafka's binary mode.",
            "license": {"name": "Apache-2.0"},
        },
        "defaultContentType": CONTENT_TYPE,
        "channels": {
            "planCommits": _channel(defaults.commits_topic, "planCommit", "Orders to apply a plan; at least once."),
            "ledgerEvents": _channel(
                defaults.events_topic,
                "ledgerEvent",
                "Every event of every binding in its order; at least once, so a position may come again.",
            ),
        },
        "operations": {
            "takeCommit": _operation("receive", "planCommits", "planCommit"),
            "relayEvent": _operation("send", "ledgerEvents", "ledgerEvent"),
        },
        "components": {
            "messages": {
                "planCommit": _message("plan-commit.schema.json", _COMMIT_HEADERS | _TRACE, tuple(_COMMIT_HEADERS)),
                "ledgerEvent": _message("ledger-event.schema.json", _event_headers(), tuple(HEADERS)),
            }
        },
    }


def _event_headers() -> dict[str, Any]:
    texts: Mapping[str, str] = {**HEADERS, **OPTIONAL_HEADERS}
    headers = {name: {"type": "string", "description": text} for name, text in texts.items()}
    fixed = {"ce_specversion": CLOUD_EVENTS_VERSION, "ce_type": EVENT_TYPE, "content-type": CONTENT_TYPE}
    return headers | {name: {"const": value} for name, value in fixed.items()}


def _channel(topic: str, message: str, description: str) -> dict[str, Any]:
    return {
        "address": topic,
        "description": description,
        "messages": {message: {"$ref": f"#/components/messages/{message}"}},
        "bindings": {"kafka": {"topic": topic, "bindingVersion": "0.5.0"}},
    }


def _operation(action: str, channel: str, message: str) -> dict[str, Any]:
    return {
        "action": action,
        "channel": {"$ref": f"#/channels/{channel}"},
        "messages": [{"$ref": f"#/channels/{channel}/messages/{message}"}],
    }


def _message(schema: str, headers: Mapping[str, Any], required: tuple[str, ...]) -> dict[str, Any]:
    return {
        "contentType": CONTENT_TYPE,
        "headers": {"type": "object", "required": list(required), "properties": dict(headers)},
        "payload": {"$ref": f"./{schema}"},
        "bindings": {"kafka": {"key": _KEY, "bindingVersion": "0.5.0"}},
    }


DOCUMENTS: Mapping[str, Callable[[], dict[str, Any]]] = {
    "plan-commit.schema.json": commit_schema,
    "ledger-event.schema.json": event_schema,
    "asyncapi.json": asyncapi,
}


def render(name: str) -> str:
    """One document as it stands in its file."""
    return json.dumps(DOCUMENTS[name](), indent=2, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    FOLDER.mkdir(parents=True, exist_ok=True)
    for name in DOCUMENTS:
        (FOLDER / name).write_text(render(name), encoding="utf-8")
    sys.stdout.write(f"wrote docs/messages/{', '.join(DOCUMENTS)}\n")
