"""Reads a branch completely, page by page, and notices when it did not (FF01).

Pages come by offset, in the order of ids, which no change of a value can move. While objects come and go, one can
appear twice and another not at all, so three things are checked: each page after the first begins with the last object
of the page before, no id comes twice, and the number of objects is the count that every page names. The same holds for
an object's list of peers that the server cut and that is read on.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any

from consumers.infrahub.errors import DestinationReadError
from consumers.infrahub.exchange import Event, Exchange, FailedExchange
from consumers.infrahub.gateway import InfrahubGateway
from consumers.infrahub.known_schemas import KnownSchemas
from consumers.infrahub.pages import Page, count_text, page_text, peers_page_text, read_count, read_page, read_peers
from consumers.infrahub.schema import fetch_schema, fetch_schema_document
from ledger.binding import DestinationBinding
from ledger.destination import FieldSelection, IncompleteExtractionError, ObservedObject, PeerPointer
from ledger.plan.errors import SchemaMismatchError, SecretValueRefusedError
from ledger.schema import DestinationSchema, Kind

_LEAST_PAGE = 2
"""Objects of a page: the last one of the page before, and one that is new."""

_COUNTED_AT_ONCE = 20
"""Kinds in one request: counting a large one takes a server a second."""


class InfrahubReader:
    """Implements :class:`ledger.destination.DestinationReader` for one branch; open it with ``open_reader``."""

    def __init__(self, gateway: InfrahubGateway, known: KnownSchemas | None = None) -> None:
        """``known`` spares fetching a schema that has not changed."""
        self._gateway = gateway
        self._known_schemas = known
        self._schema: DestinationSchema | None = None
        self._page_size = gateway.settings.page_size

    @property
    def binding(self) -> DestinationBinding:
        """What is read, normalised."""
        return self._gateway.settings.binding

    async def schema(self) -> DestinationSchema:
        """The schema of the branch; fetched once.

        Raises:
            DestinationReadError: it cannot be fetched.
        """
        if self._schema is None:
            self._schema = await fetch_schema(self._gateway, self._known_schemas)
        return self._schema

    async def schema_document(self) -> Mapping[str, Any]:
        """The schema as a document that a sandbox can be made from.

        Raises:
            DestinationReadError: it cannot be fetched.
        """
        return await fetch_schema_document(self._gateway)

    async def counts(self, kinds: Sequence[str]) -> Mapping[str, int]:
        """How many objects of each kind there are now; of twenty kinds in one request.

        Raises:
            SchemaMismatchError: the branch has no such kind.
            DestinationReadError: the destination did not tell.
        """
        for kind in kinds:
            await self._known(kind)
        found: dict[str, int] = {}
        for start in range(0, len(kinds), _COUNTED_AT_ONCE):
            part = tuple(kinds[start : start + _COUNTED_AT_ONCE])
            data = await self._fetch(", ".join(part), count_text(part), {})
            for kind in part:
                count = read_count(data, kind)
                if count is None:
                    raise self._unread(
                        kind, "an answer without a count", "check that the address is an Infrahub server"
                    )
                found[kind] = count
        return found

    async def read(self, kind: str, fields: FieldSelection) -> AsyncIterator[ObservedObject]:
        """All objects of a kind with the named fields, in the order of their ids.

        Raises:
            IncompleteExtractionError: pages overlapped or missed objects, or a list of peers is not complete.
            SchemaMismatchError: the branch has no such kind or field.
            SecretValueRefusedError: a field of a Password kind was asked for (G12).
            DestinationReadError: a page could not be fetched.
        """
        _require_fields(await self._known(kind), fields)
        query = page_text(kind, tuple(fields.attributes), tuple(fields.one), tuple(fields.many))
        seen: set[str] = set()
        last: str | None = None
        total: int | None = None
        while total is None or len(seen) < total:
            page = await self._page(kind, query, fields, offset=max(len(seen) - 1, 0))
            total = self._checked_total(kind, page, total)
            fresh = self._fresh(kind, page, last)
            if not fresh and len(seen) < total:
                raise self._incomplete(kind, f"{total} objects", f"no more than {len(seen)}", last)
            for observed in fresh:
                if observed.id in seen:
                    raise self._incomplete(kind, "each object once", f"{observed.id} on two pages", observed.id)
                seen.add(observed.id)
                last = observed.id
                yield await self._with_all_peers(observed, page)
        if len(seen) != total:
            raise self._incomplete(kind, f"{total} objects", str(len(seen)), last)

    def _checked_total(self, kind: str, page: Page, total: int | None) -> int:
        if total is not None and page.count != total:
            raise self._incomplete(kind, f"{total} objects on every page", f"{page.count} on a later one", None)
        return page.count

    def _fresh(self, kind: str, page: Page, last: str | None) -> tuple[ObservedObject, ...]:
        """The objects after the one that overlaps with the page before."""
        if last is None:
            return page.objects
        first = page.objects[0].id if page.objects else "nothing"
        if first != last:
            raise self._incomplete(kind, f"a page that begins with {last}, the last of the one before", first, last)
        return page.objects[1:]

    async def _page(self, kind: str, query: str, fields: FieldSelection, *, offset: int) -> Page:
        data = await self._fetch_less_and_less(kind, query, {"offset": offset})
        page = read_page(data, kind, fields)
        if page is None:
            raise self._unread(
                kind, "a page that lacks a field that was asked for", "make sure of the server's version"
            )
        return page

    async def _fetch_less_and_less(self, kind: str, query: str, variables: Mapping[str, Any]) -> Mapping[str, Any]:
        """One page; of objects so large that a page exceeds what is read, half as many, and so on for the rest."""
        while True:
            try:
                return await self._gateway.read(query, {**variables, "limit": self._page_size})
            except FailedExchange as failed:
                if failed.exchange.event is not Event.TOO_LARGE or self._page_size <= _LEAST_PAGE:
                    raise self._not_fetched(kind, failed.exchange) from None  # foreign text is not masked
            self._page_size = max(self._page_size // 2, _LEAST_PAGE)

    async def _with_all_peers(self, observed: ObservedObject, page: Page) -> ObservedObject:
        """The object with complete peer lists, where the server cut one it is read on by itself."""
        many = dict(observed.many)
        for name, total in page.peer_counts[observed.id].items():
            peers = list(many[name])
            while len(peers) < total:
                peers += await self._more_peers(observed, name, peers, total)
            distinct = len({peer.id for peer in peers})
            if not len(peers) == distinct == total:
                found = f"{len(peers)}, of which {distinct} differ"
                raise self._incomplete(observed.kind, f"{total} peers under {name}, each once", found, observed.id)
            many[name] = tuple(peers)
        return ObservedObject(observed.kind, observed.id, observed.attributes, observed.one, many)

    async def _more_peers(
        self, observed: ObservedObject, name: str, known: list[PeerPointer], total: int
    ) -> tuple[PeerPointer, ...]:
        """The peers after the known ones, the last of which is asked for once more, so that a shift shows."""
        query = peers_page_text(observed.kind, name)
        last = tuple(known[-1:])
        variables = {"ids": [observed.id], "offset": len(known) - len(last)}
        data = await self._fetch_less_and_less(observed.kind, query, variables)
        page = read_peers(data, observed.kind, name, node_id=observed.id)
        if page is None:
            raise self._incomplete(observed.kind, f"the peers under {name}", "the object is gone", observed.id)
        more = page.peers[len(last) :]
        if page.count != total or page.peers[: len(last)] != last or not more:
            expected = f"{total} peers under {name}, on pages that go on with the last peer of the one before"
            found = f"{page.count} in all, and a page of {len(page.peers)} that does not go on there"
            raise self._incomplete(observed.kind, expected, found, observed.id)
        return more

    async def _known(self, kind: str) -> Kind:
        found = (await self.schema()).node(kind)
        if found is None:
            raise SchemaMismatchError(
                checked=f"kind {kind!r} of {self.binding}",
                expected="a node kind of the destination's schema",
                found="none of that name",
                next_action="load the schema that the mapping was made for, or correct the mapping",
            )
        return found

    async def _fetch(self, kind: str, query: str, variables: Mapping[str, Any]) -> Mapping[str, Any]:
        try:
            return await self._gateway.read(query, variables)
        except FailedExchange as failed:
            raise self._not_fetched(kind, failed.exchange) from None  # foreign text is not masked

    def _not_fetched(self, kind: str, exchange: Exchange) -> DestinationReadError:
        return self._gateway.not_read(exchange, **self._checked(kind))

    def _unread(self, kind: str, found: str, next_action: str) -> DestinationReadError:
        return DestinationReadError(**self._checked(kind), found=found, next_action=next_action)

    def _checked(self, kind: str) -> dict[str, str]:
        return {"checked": f"reading {kind} of {self.binding}", "expected": "the objects of that kind"}

    def _incomplete(self, kind: str, expected: str, found: str, node_id: str | None) -> IncompleteExtractionError:
        at = "" if node_id is None else f" at {self._gateway.shown(node_id)}"
        return IncompleteExtractionError(
            checked=f"the destination side, {kind} of {self.binding}{at}",
            expected=self._gateway.shown(expected),  # ids are the destination's words
            found=self._gateway.shown(found),
            next_action="plan again while nobody writes to the destination; if it stays, look at that object there",
        )


def _require_fields(kind: Kind, fields: FieldSelection) -> None:
    wanted = dict.fromkeys(fields.attributes, "attribute") | {
        name: f"relationship of cardinality {cardinality}"
        for cardinality, names in (("one", fields.one), ("many", fields.many))
        for name in names
    }
    for name, what in wanted.items():
        attribute, relationship = kind.attributes.get(name), kind.relationships.get(name)
        if attribute is not None and attribute.is_secret:
            raise SecretValueRefusedError(
                checked=f"field {kind.kind}.{name}",
                expected="no value of a Password kind",
                found="a request to read one",
                next_action="take the field out of the mapping",
            )
        known = attribute is not None if what == "attribute" else relationship is not None
        if not known or (relationship is not None and not what.endswith(relationship.cardinality)):
            raise SchemaMismatchError(
                checked=f"field {kind.kind}.{name}",
                expected=f"an {what}" if what == "attribute" else f"a {what}",
                found="no such field in the destination's schema",
                next_action="load the schema that the mapping was made for, or correct the mapping",
            )
