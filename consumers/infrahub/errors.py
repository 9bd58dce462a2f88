"""Every way in which Infrahub can fail us, one class each.

Three families. Below :class:`~ledger.destination.ProvenUnwrittenError`: nothing was written, proven (P132, P133).
Below :class:`~ledger.destination.OutcomeUnknownError`: everything else that is no success, whatever the server says of
itself (G5). :class:`DestinationReadError`: a read that is no part of writing an operation.
Which answer becomes which class is decided in one place, :mod:`consumers.infrahub.classification`.
"""

from __future__ import annotations

from ledger.destination import DestinationAwayError, OutcomeUnknownError, ProvenUnwrittenError
from ledger.errors import ApplyLedgerError


class StaleDestinationIdError(ProvenUnwrittenError):
    """The destination does not know the id recorded for this update; an id-keyed write creates nothing (P27, P133)."""


class PeerNotFoundError(ProvenUnwrittenError):
    """No object carries a peer's identity, or the identity cannot name one; never a silent skip (P80, P83)."""


class PeerAmbiguousError(ProvenUnwrittenError):
    """Several objects carry a peer's identity (P81)."""


class DestinationUnreachableError(OutcomeUnknownError):
    """No connection was made: refused, unknown host, no free connection, or the deadline passed before sending."""


class AnswerLostError(OutcomeUnknownError):
    """The request was sent and no complete answer came back; the server may still be processing it."""


class UnreadableAnswerError(OutcomeUnknownError):
    """The answer is not a GraphQL answer."""


class AnswerTooLargeError(OutcomeUnknownError):
    """The answer is larger than any expected answer; it was not read to its end."""


class CredentialEchoedError(OutcomeUnknownError):
    """An answer contains the token of its request; it is not used, because the token would be recorded (G12)."""


class AdmissionShedError(OutcomeUnknownError):
    """The server says that it shed this request before running it (429 with its mark)."""


class CredentialRejectedError(OutcomeUnknownError):
    """The destination does not accept the token."""


class PermissionRefusedError(OutcomeUnknownError):
    """The token's account may not do this."""


class BranchUnavailableError(OutcomeUnknownError):
    """The branch is unknown, merged, or needs a rebase, or the address is not Infrahub's."""


class DestinationBusyError(OutcomeUnknownError):
    """A merge holds the branch, or the server limits requests."""


class DestinationFaultError(OutcomeUnknownError):
    """The server failed inside; such answers have hidden committed writes."""


class DestinationRejectedError(OutcomeUnknownError):
    """The destination refused the operation for a reason of its own."""


class UniquenessConflictError(DestinationRejectedError):
    """Another object holds a value that must be unique. Told by the message alone, so it proves nothing."""


class KeyElsewhereError(DestinationRejectedError):
    """The key of a create belongs to an object that this branch cannot reach: one made on the default branch since the
    branch was made, or one of another kind of the same generic. No fresh plan sees it either.
    """


class ContradictoryAnswerError(OutcomeUnknownError):
    """The answer carries errors and a result at once, or an empty list of errors."""


class UnconfirmedWriteError(OutcomeUnknownError):
    """No errors, but not ``ok: true`` with a node id either (G6)."""


class OtherNodeError(OutcomeUnknownError):
    """The destination answered with another id than the one that was sent (G6)."""


class OwnIdElsewhereError(OutcomeUnknownError):
    """Our id for a create is in use, but no object of that kind has it on this branch: it was deleted, or is elsewhere.

    The id follows from the run, so no repeat under that run can end otherwise.
    """


class OwnIdDoubledError(OutcomeUnknownError):
    """Several objects have our id for a create: two attempts overlapped at the server, and both made one."""


class OwnIdUnreadError(OutcomeUnknownError):
    """Our id for a create is in use, and the server did not say whether the object is there."""


class PeerLookupFailedError(OutcomeUnknownError):
    """A peer could not be looked up; the write itself was not sent."""


class DestinationReadError(ApplyLedgerError):
    """Reading the schema or objects failed; nothing was written by it."""


class DestinationNotAnsweringError(DestinationReadError, DestinationAwayError):
    """A read failed, perhaps temporarily: no connection, no answer, a server fault, or a server that sheds load."""
