"""What the service asks of a destination. Nothing here knows Infrahub.

``PlannedWriteDestination`` has exactly two members (P5). It is an abstract base class, so that a destination opts in
by subclassing; an object that merely has members of these names does not pass the gate (P13, P14 and ADR 0002).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

from ledger.binding import DestinationBinding
from ledger.errors import ApplyLedgerError
from ledger.exit_codes import ExitCode
from ledger.plan.model import PlannedOperation
from ledger.schema import DestinationSchema


class PeerResolver(Protocol):
    """Maps a peer's identity to its id at the destination; lives for one apply (P67 to P84)."""

    async def resolve(self, *, peer_kind: str, identity: Mapping[str, Any], referring_operation_id: str) -> str:
        """The id of exactly one object; a miss or several hits raise, never a silent skip (P79 to P83)."""
        ...

    def remember(self, kind: str, identity: Mapping[str, Any], node_id: str) -> None:
        """Keep the id of an object that this apply wrote (P71)."""
        ...


class PlannedWriteDestination(ABC):
    """A destination that a saved plan can be applied to."""

    @abstractmethod
    def new_peer_resolver(self) -> PeerResolver:
        """A resolver for one apply."""

    @abstractmethod
    async def apply_planned_operation(self, *, operation: PlannedOperation, peers: PeerResolver) -> str:
        """Write one operation and return the node id that the destination answered with.

        Raises:
            ProvenUnwrittenError: nothing was written, proven (P132, P133).
            OutcomeUnknownError: anything else that is no success.
        """


class ProvenUnwrittenError(ApplyLedgerError):
    """An operation failed and is proven to have written nothing (``wrote: false``)."""

    exit_code: ClassVar[ExitCode] = ExitCode.STOPPED_UNWRITTEN


class OutcomeUnknownError(ApplyLedgerError):
    """An operation failed and may have written (``wrote: null``).

    ``sent`` is False where the request provably never left (G5: still unknown, but nothing has to settle).
    ``final`` says that another plan is the way on: the same operation is not sent again under its run by itself.
    """

    exit_code: ClassVar[ExitCode] = ExitCode.STOPPED_MAYBE_WRITTEN

    def __init__(
        self,
        *,
        checked: str,
        expected: str,
        found: str,
        next_action: str,
        sent: bool,
        http_status: int | None = None,
        code: str | None = None,
        final: bool = False,
    ) -> None:
        super().__init__(checked=checked, expected=expected, found=found, next_action=next_action)
        self.sent = sent
        self.final = final
        self.http_status = http_status
        self.code = code


class DestinationAwayError(ApplyLedgerError):
    """The destination does not answer, or says that it cannot now. That is no verdict about a plan, which can wait."""

    exit_code: ClassVar[ExitCode] = ExitCode.BUSY


@dataclass(frozen=True, slots=True)
class PeerPointer:
    """A peer as the destination names it when read: concrete kind and id."""

    kind: str
    id: str


@dataclass(frozen=True, slots=True)
class ObservedObject:
    """One object as read. Values are as served, not yet in normal form; only requested fields are present."""

    kind: str
    id: str
    attributes: Mapping[str, Any]
    one: Mapping[str, PeerPointer | None]
    many: Mapping[str, tuple[PeerPointer, ...]]


@dataclass(frozen=True, slots=True)
class FieldSelection:
    """Which fields of a kind to read."""

    attributes: Sequence[str] = ()
    one: Sequence[str] = ()
    many: Sequence[str] = ()


class DestinationReader(Protocol):
    """Reads a destination completely, page by page."""

    @property
    def binding(self) -> DestinationBinding:
        """What is read."""
        ...

    async def schema(self) -> DestinationSchema:
        """The schema of the branch; fetched once."""
        ...

    async def counts(self, kinds: Sequence[str]) -> Mapping[str, int]:
        """How many objects of each kind there are now; one request where the destination can."""
        ...

    def read(self, kind: str, fields: FieldSelection) -> AsyncIterator[ObservedObject]:
        """All objects of a kind.

        Raises:
            IncompleteExtractionError: pages overlapped or missed objects (FF01).
        """
        ...


class DispatchGuard(Protocol):
    """The last checks before a request leaves: not before its operation is marked (G4), not after the lease (G2)."""

    async def ready(self) -> None:
        """Return when the operation in flight is durable; a request that is all but sent waits here until then."""
        ...

    def before_send(self, *, write: bool = True) -> None:
        """Return when the request may be sent now; raise otherwise (nothing was sent then).

        ``write`` is False only for a request that can change nothing at the destination, whatever becomes of it.
        """
        ...


@dataclass(frozen=True, slots=True)
class OpenDestination:
    """A destination opened for one run.

    Attributes:
        writes: the write surface.
        schema: of the branch, as it was when the destination was opened.
        longest_request: seconds after which the destination's client gives up a request, whatever it waits for.
        waits_for_guard: every request of ``writes`` awaits :meth:`DispatchGuard.ready`. Then the writer may begin an
            operation while its mark is being recorded.
    """

    writes: PlannedWriteDestination | object
    schema: DestinationSchema
    longest_request: float
    waits_for_guard: bool = False


class DestinationOpener(Protocol):
    """Opens a declared destination. ``run_id`` goes into ids that we choose for creates of constraint-only kinds."""

    def __call__(
        self, binding: DestinationBinding, *, run_id: str, guard: DispatchGuard
    ) -> AbstractAsyncContextManager[OpenDestination]:
        """Connect, fetch the schema once, and close at the end of the block.

        Raises:
            DestinationAwayError: it may answer later; everything else that is raised is a verdict.
        """
        ...


class IncompleteExtractionError(ApplyLedgerError):
    """A side could not be read completely; no plan is made from a part (FF01, C37)."""

    exit_code: ClassVar[ExitCode] = ExitCode.REFUSED
