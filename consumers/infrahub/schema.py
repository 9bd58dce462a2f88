"""The schema of a branch, fetched once per apply through infrahub-sdk."""

from __future__ import annotations

from infrahub_sdk.exceptions import Error
from infrahub_sdk.schema import GenericSchemaAPI, NodeSchemaAPI
from pydantic import ValidationError

from consumers.infrahub.answers import read_answer
from consumers.infrahub.classification import classify
from consumers.infrahub.errors import DestinationReadError
from consumers.infrahub.exchange import FailedExchange
from consumers.infrahub.gateway import InfrahubGateway
from consumers.infrahub.observation import observe
from ledger.schema import DestinationSchema, parse_schema


async def fetch_schema(gateway: InfrahubGateway) -> DestinationSchema:
    """Every kind of the branch. Profiles and templates are left out: they are never written.

    Raises:
        DestinationReadError: it could not be fetched, or is no schema that infrahub-sdk can read.
    """
    branch = gateway.settings.branch
    client = gateway.client
    try:
        await gateway.retrying(client.schema.all, branch, True)
    except FailedExchange as failed:
        answer = read_answer(failed.exchange)
        row = classify(observe(failed.exchange, answer, None))
        raise _unread(
            gateway, gateway.describe(failed.exchange), row.next_action
        ) from None  # foreign text is not masked
    except (Error, ValidationError, KeyError, TypeError) as exc:
        # The SDK checks little of what the server sends: an odd document ends in any of these.
        raise _unread(gateway, f"a document that infrahub-sdk cannot read ({type(exc).__name__})", _VERSION) from exc
    fetched = client.schema.cache[branch]
    kinds = list(fetched.nodes.values())
    return parse_schema(
        {
            "main": fetched.hash or None,
            "nodes": [kind.model_dump(mode="json") for kind in kinds if isinstance(kind, NodeSchemaAPI)],
            "generics": [kind.model_dump(mode="json") for kind in kinds if isinstance(kind, GenericSchemaAPI)],
        }
    )


_VERSION = "check that the address is an Infrahub server of version 1.x"


def _unread(gateway: InfrahubGateway, found: str, next_action: str) -> DestinationReadError:
    return DestinationReadError(
        checked=f"the schema of {gateway.settings.binding}",
        expected="the schema document of the branch",
        found=found,
        next_action=next_action,
    )
