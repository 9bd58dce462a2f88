"""Stores one message in the inbox, or records its refusal with its origin (G7, G10)."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass
from typing import Protocol

import structlog

from consumers.intake.errors import IntakeDefectError, UndeclaredBindingError
from ledger import spans
from ledger.binding import DestinationBinding
from ledger.commit import PlanCommit
from ledger.commit_message import Headers, decode_commit, message_key
from ledger.errors import ApplyLedgerError, Finding
from ledger.store.errors import (
    InvalidCallError,
    LedgerPermissionError,
    MigrationError,
    TransientStoreError,
    UnknownBindingError,
    UnsafeServerError,
)
from ledger.store.records import BindingRow, MessagePlace, Receipt

_log = structlog.get_logger(__name__)

_NOT_ABOUT_THE_MESSAGE = (TransientStoreError, LedgerPermissionError, MigrationError, UnsafeServerError)
"""Errors that every other message would meet as well."""


class InboxPort(Protocol):
    """What the intake needs of the ledger. Contracts: :class:`ledger.store.ledger.Ledger`."""

    async def register_binding(self, binding: DestinationBinding) -> int: ...  # noqa: D102 - see the class

    async def binding(self, binding: DestinationBinding) -> BindingRow | None: ...  # noqa: D102

    async def submit_commit(self, binding_id: int, commit: PlanCommit) -> Receipt: ...  # noqa: D102

    async def submit_commits(self, binding_id: int, commits: Sequence[PlanCommit]) -> list[Receipt]: ...  # noqa: D102

    async def refuse_message(  # noqa: D102
        self, place: MessagePlace, *, digest: bytes, findings: Sequence[Finding], binding: BindingRow | None
    ) -> bool: ...


@dataclass(frozen=True, slots=True)
class ReceivedMessage:
    """A message as it was read from the topic."""

    place: MessagePlace
    key: bytes | None
    value: bytes | None
    headers: Headers


class MessageTaker:
    """Takes messages for the declared destinations."""

    def __init__(self, ledger: InboxPort, declared: Iterable[DestinationBinding]) -> None:
        self._ledger = ledger
        self._declared = {message_key(binding): binding.normalised() for binding in declared}
        self._ids: dict[DestinationBinding, int] = {}

    async def take(self, message: ReceivedMessage) -> Receipt | None:
        """Put the commit into the inbox, or record why it is refused. Taking a message twice changes nothing.

        Returns:
            The inbox's receipt, or None where the message was refused.

        Raises:
            TransientStoreError: neither was recorded for certain; take it again.
            LedgerPermissionError, MigrationError, UnsafeServerError: no message can be taken.
        """
        try:
            return await self._submit(message)
        except _NOT_ABOUT_THE_MESSAGE:
            raise
        except ApplyLedgerError as exc:
            await self._refuse(message, exc)
        except Exception as exc:  # noqa: BLE001 - one message must not stop or spin the intake; the defect is logged whole
            _log.exception("a message could not be taken because of a defect", place=str(message.place))
            await self._refuse(message, _defect(exc))
        return None

    async def take_together(
        self, messages: Sequence[ReceivedMessage], *, alive: Callable[[], object] = lambda: None
    ) -> list[Receipt | None]:
        """The same for several in their order, in one transaction where nothing speaks against it.

        Where anything does (one is no commit, or is refused, or they are of two destinations) each is taken alone.

        Args:
            messages: of one partition, in the topic's order.
            alive: called whenever the ledger answered for some of them: as many single takes may last as long as all
                of them may, and are not to look like one that hangs.

        Raises:
            As :meth:`take`; what came before is then recorded or not, and taking all of them again changes nothing.
        """
        together = await self._submit_together(messages) if len(messages) > 1 else None
        alive()
        if together is not None:
            return list(together)
        receipts: list[Receipt | None] = []
        for message in messages:
            receipts.append(await self.take(message))
            alive()
        return receipts

    async def _submit_together(self, messages: Sequence[ReceivedMessage]) -> list[Receipt] | None:
        """Their receipts, or None where they have to be taken one by one; nothing is recorded of them then."""
        place = str(messages[0].place)
        try:
            commits = [decode_commit(message.key, message.value, message.headers) for message in messages]
            keys = {message_key(commit.binding) for commit in commits}
            binding = self._declared.get(min(keys))
            if len(keys) > 1 or binding is None:
                _log.info("messages are taken one by one: not all of one declared destination", place=place)
                return None
            with ExitStack() as stack:
                for commit in commits:
                    stack.enter_context(_span_of(commit, beside=True))
                return await self._ledger.submit_commits(await self._id_of(binding), commits)
        except _NOT_ABOUT_THE_MESSAGE:
            raise
        except ApplyLedgerError as exc:
            _log.info("messages are taken one by one: one is refused", place=place, why=type(exc).__name__)
        except Exception:  # noqa: BLE001 - one message must not stop or spin the intake; the defect is logged whole
            _log.exception("messages are taken one by one because of a defect", place=place)
        return None

    async def _submit(self, message: ReceivedMessage) -> Receipt:
        commit = decode_commit(message.key, message.value, message.headers)
        binding = self._declared.get(message_key(commit.binding))
        if binding is None:
            raise UndeclaredBindingError(
                checked="the destination of the commit",
                expected="one that this service declares, under its declared url",
                found=str(commit.binding.normalised()),
                next_action="declare the destination here, or commit to its declared url; aliases are not followed",
            )
        with _span_of(commit):
            return await self._put(binding, commit)

    async def _put(self, binding: DestinationBinding, commit: PlanCommit) -> Receipt:
        try:
            return await self._ledger.submit_commit(await self._id_of(binding), commit)
        except (UnknownBindingError, InvalidCallError):
            del self._ids[binding]  # remembered of a database that was recreated since?
        return await self._ledger.submit_commit(await self._id_of(binding), commit)

    async def _id_of(self, binding: DestinationBinding) -> int:
        """The binding's row, asked for once: an id never changes."""
        if binding not in self._ids:
            self._ids[binding] = await self._ledger.register_binding(binding)
        return self._ids[binding]

    async def _refuse(self, message: ReceivedMessage, error: ApplyLedgerError) -> None:
        digest = hashlib.sha256(message.value or b"")
        where = f"message {message.place} (sha256 {digest.hexdigest()})"
        findings = [finding.model_copy(update={"checked": f"{where}: {finding.checked}"}) for finding in error.findings]
        known = self._declared.get(message.key or b"")
        binding = None if known is None else await self._ledger.binding(known)
        first = await self._ledger.refuse_message(
            message.place, digest=digest.digest(), findings=findings, binding=binding
        )
        if first:
            _log.warning(
                "a message is no plan commit and was recorded as refused",
                place=str(message.place),
                digest=digest.hexdigest(),
                refusals=[finding.name for finding in findings],
            )


def _span_of(commit: PlanCommit, *, beside: bool = False) -> AbstractContextManager[object]:
    told = {"apply_ledger.run_id": commit.run_id}
    return spans.span("intake", kind="consumer", parent=commit.traceparent, attributes=told, beside=beside)


def _defect(error: Exception) -> IntakeDefectError:
    return IntakeDefectError(
        checked="whether the message can be taken",
        expected="a commit, or a refusal that says why not",
        found=f"a defect of this program ({type(error).__name__}); its log has the traceback",
        next_action="report the defect; commit the run again with a corrected program",
    )
