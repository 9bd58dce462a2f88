"""What a person means who names an object: fields and values, or the JSON that plans have."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from ledger.errors import UsageError


def identities_of(arguments: Sequence[str]) -> list[dict[str, Any]]:
    """What the arguments can mean, the likeliest first: values as text, then as the JSON that they look like.

    Raises:
        UsageError: neither one JSON object nor pairs of field and value.
    """
    if len(arguments) == 1 and arguments[0].lstrip().startswith("{"):
        try:
            document = json.loads(arguments[0])
        except (ValueError, RecursionError):
            document = None
        if isinstance(document, dict) and document:
            return [document]
        raise _no_identity(arguments[0])
    texts: dict[str, Any] = {}
    for argument in arguments:
        name, equals, value = argument.partition("=")
        if not equals or not name or name in texts:
            raise _no_identity(argument)
        texts[name] = value
    values = {name: _json_or_text(value) for name, value in texts.items()}
    return [texts] if values == texts else [texts, values]


def _json_or_text(value: str) -> Any:
    try:
        return json.loads(value)
    except (ValueError, RecursionError):
        return value


def _no_identity(found: str) -> UsageError:
    return UsageError(
        checked="IDENTITY",
        expected="FIELD=VALUE, each field once, or one JSON object",
        found=found,
        next_action="for example: apply-ledger blame BuiltinTag name=prod",
    )
