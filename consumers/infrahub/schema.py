"""The schema of a branch, fetched once per apply through infrahub-sdk; not at all where it is known and unchanged."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode

from infrahub_sdk.exceptions import Error
from infrahub_sdk.schema import GenericSchemaAPI, NodeSchemaAPI
from infrahub_sdk.schema.main import BranchSchema

from consumers.infrahub.errors import DestinationReadError
from consumers.infrahub.exchange import Event, FailedExchange
from consumers.infrahub.gateway import InfrahubGateway
from consumers.infrahub.known_schemas import KnownSchemas
from ledger.errors import ConfigurationError
from ledger.schema import DestinationSchema, parse_schema


async def fetch_schema(gateway: InfrahubGateway, known: KnownSchemas | None = None) -> DestinationSchema:
    """Every kind of the branch. Profiles and templates are left out: they are never written.

    With ``known`` the server is asked for the hash of its schema first.

    Raises:
        DestinationReadError: it could not be fetched, or is no schema that infrahub-sdk can read;
            DestinationNotAnsweringError where it may be fetched later.
    """
    if known is None:
        return (await _fetch(gateway))[1]
    url = gateway.settings.binding.url
    version = await _live_version(gateway)
    found = None if version is None else known.find(url, version)
    if found is None:
        document, found = await _fetch(gateway)
        known.keep(url, document, found)
    return found


async def _live_version(gateway: InfrahubGateway) -> str | None:
    """The server's hash of the branch's schema; None where it says none, whatever the reason: then all is fetched."""
    query = urlencode({"branch": gateway.settings.branch})
    try:
        summary = (await gateway.get(f"/api/schema/summary?{query}")).json()
    except FailedExchange as failed:
        if failed.exchange.event is Event.ANSWERED and not failed.exchange.may_pass:
            return None
        raise gateway.not_read(failed.exchange, **_checked(gateway)) from None  # foreign text is not masked
    version = summary.get("main") if isinstance(summary, dict) else None
    return version if isinstance(version, str) and version else None


async def fetch_schema_document(gateway: InfrahubGateway) -> Mapping[str, Any]:
    """The same as a document in the shape of ``GET /api/schema``: what a sandbox is made from.

    Raises:
        DestinationReadError: see :func:`fetch_schema`.
    """
    document, _ = await _fetch(gateway)
    return document


async def _fetch(gateway: InfrahubGateway) -> tuple[Mapping[str, Any], DestinationSchema]:
    branch = gateway.settings.branch
    client = gateway.client
    try:
        await gateway.reading(client.schema.all, branch, True)
        document = _document(client.schema.cache[branch])
        return document, parse_schema(document)
    except FailedExchange as failed:
        raise gateway.not_read(failed.exchange, **_checked(gateway)) from None  # foreign text is not masked
    except ConfigurationError as exc:
        raise _unread(gateway, gateway.shown(exc.found), exc.next_action) from None  # likewise
    except _UNREADABLE as exc:
        found = f"a document that infrahub-sdk cannot read ({type(exc).__name__})"
        raise _unread(gateway, found, _VERSION) from None  # likewise


_UNREADABLE = (Error, LookupError, TypeError, ValueError, AttributeError, ArithmeticError, RecursionError)
"""The SDK checks little of what the server sends: an odd document ends in any of these (pydantic's are ValueErrors)."""


def _document(fetched: BranchSchema) -> dict[str, Any]:
    kinds = list(fetched.nodes.values())
    document = {
        "main": fetched.hash or None,
        "nodes": [kind.model_dump(mode="json") for kind in kinds if isinstance(kind, NodeSchemaAPI)],
        "generics": [kind.model_dump(mode="json") for kind in kinds if isinstance(kind, GenericSchemaAPI)],
    }
    json.dumps(document, ensure_ascii=False).encode()  # halves of surrogate pairs could be neither sent nor recorded
    return document


_VERSION = "check that the address is an Infrahub server of version 1.x"


def _unread(gateway: InfrahubGateway, found: str, next_action: str) -> DestinationReadError:
    return DestinationReadError(**_checked(gateway), found=found, next_action=next_action)


def _checked(gateway: InfrahubGateway) -> dict[str, str]:
    return {"checked": f"the schema of {gateway.settings.binding}", "expected": "the schema document of the branch"}
