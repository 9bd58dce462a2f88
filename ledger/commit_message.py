"""A plan commit as a message: key, headers and body, and the checks of a received one (design 5).

The key is the binding, so that one partition holds all commits of a destination in their order. Headers are the
attributes of CloudEvents in Kafka's binary mode. The body is the commit's canonical bytes and carries no operations:
a plan of any size is named by its checksum, so a message stays far below every broker's limit (FF28).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import ClassVar

from pydantic import ValidationError

from ledger.binding import DestinationBinding
from ledger.commit import MAX_ACTOR_BYTES, MAX_REASON_BYTES, PlanCommit, commit_id
from ledger.errors import ApplyLedgerError, ConfigurationError
from ledger.exit_codes import ExitCode
from ledger.plan.canonical import canonical_json_bytes
from ledger.plan.decode import decode_json
from ledger.plan.errors import JsonDocumentError

COMMIT_TYPE = "apply-ledger.plan-commit.v1"
"""``ce_type``: kind and version of the body."""

CLOUD_EVENTS_VERSION = "1.0"
CONTENT_TYPE = "application/json"
MAX_MESSAGE_BYTES = 256 * 1024
"""Of a body. A commit is repeated whole in its event, whose body has the same limit (``ledger.events``)."""

_AGAIN = "publish the commit again with this program"
Headers = Sequence[tuple[str, bytes]]


@dataclass(frozen=True, slots=True)
class Message:
    """What is put on the topic."""

    key: bytes
    value: bytes
    headers: tuple[tuple[str, bytes], ...]


class MessageRefusedError(ApplyLedgerError):
    """Base of the reasons why a message is not a plan commit. Texts name fields and sizes, no payload's content."""

    exit_code: ClassVar[ExitCode] = ExitCode.REFUSED


class TombstoneMessageError(MessageRefusedError):
    """A message without a body; it cannot withdraw a commit."""


class MessageTooLargeError(MessageRefusedError):
    """The body, or one of its texts, is longer than a commit may be (FF28)."""


class MessageNotJsonError(MessageRefusedError):
    """The body is not one JSON object in UTF-8 (FF27)."""


class MissingHeaderError(MessageRefusedError):
    """A required header is missing or occurs more than once."""


class UnknownMessageVersionError(MessageRefusedError):
    """The message has another kind, or a version that this program does not know (G10)."""


class InvalidCommitError(MessageRefusedError):
    """The body is not a commit: fields are missing, unknown or of another type."""


class ContradictoryMessageError(MessageRefusedError):
    """Key, headers and body contradict each other."""


class CommitLocationError(MessageRefusedError):
    """The commit names a location that is not a run directory below an artifact root; it is never followed."""


def message_key(binding: DestinationBinding) -> bytes:
    """The key under which all commits of one destination stay in order: its url and branch, normalised."""
    named = binding.normalised()
    return canonical_json_bytes([named.url, named.branch])


def encode_commit(commit: PlanCommit) -> Message:
    """The message for a commit.

    Raises:
        MessageTooLargeError: the commit or one of its texts is too long; nothing was sent (FF28).
    """
    _require_short_texts(commit)
    value = commit.canonical_bytes()
    _require_size(value)
    headers = [
        ("ce_specversion", CLOUD_EVENTS_VERSION),
        ("ce_type", COMMIT_TYPE),
        ("ce_id", commit.commit_id),
        ("ce_source", f"urn:apply-ledger:source:{commit.source}"),
        ("ce_subject", commit.run_id),
        ("ce_time", commit.committed_at),
        ("content-type", CONTENT_TYPE),
    ]
    if commit.traceparent is not None:
        headers.append(("traceparent", commit.traceparent))
    return Message(message_key(commit.binding), value, tuple((name, text.encode()) for name, text in headers))


def decode_commit(key: bytes | None, value: bytes | None, headers: Headers) -> PlanCommit:
    """The commit that a message carries.

    Raises:
        MessageRefusedError: one of its subclasses; the message is no plan commit.
    """
    if value is None:
        raise TombstoneMessageError(
            checked="the body of the message",
            expected="a plan commit",
            found="no body at all",
            next_action="to stop a run use `apply-ledger stop`; a message cannot withdraw a commit",
        )
    _require_size(value)
    _require_version(headers)
    commit = _commit_of(value)
    _require_short_texts(commit)
    _require_agreement(commit, key, headers)
    _require_location(commit.artifact)
    return commit


def _require_size(value: bytes) -> None:
    if len(value) > MAX_MESSAGE_BYTES:
        raise MessageTooLargeError(
            checked="the size of the commit's message",
            expected=f"at most {MAX_MESSAGE_BYTES:,} bytes",
            found=f"{len(value):,} bytes",
            next_action="name the plan by its checksum and location; operations are never part of a commit",
        )


def _require_short_texts(commit: PlanCommit) -> None:
    for field, text, limit in (("reason", commit.reason, MAX_REASON_BYTES), ("actor", commit.actor, MAX_ACTOR_BYTES)):
        size = len(text.encode("utf-8", "surrogatepass"))
        if size > limit:
            raise MessageTooLargeError(
                checked=f"the field {field} of the commit",
                expected=f"at most {limit:,} bytes",
                found=f"{size:,} bytes",
                next_action=f"shorten the {field}, or name a document that holds it",
            )


def _header(headers: Headers, name: str) -> bytes:
    values = [value for found, value in headers if found == name]
    if len(values) != 1:
        raise MissingHeaderError(
            checked=f"the header {name}",
            expected="exactly one",
            found=f"{len(values)}",
            next_action=_AGAIN,
        )
    return values[0]


def _require_version(headers: Headers) -> None:
    for name, expected in (("ce_specversion", CLOUD_EVENTS_VERSION), ("ce_type", COMMIT_TYPE)):
        found = _header(headers, name)
        if found != expected.encode():
            raise UnknownMessageVersionError(
                checked=f"the header {name}",
                expected=expected,
                found=f"another value of {len(found)} bytes",
                next_action="if the message has a newer version, update this program; otherwise publish with this one",
            )


def _commit_of(value: bytes) -> PlanCommit:
    try:
        document = decode_json(value, what="the body of the message")
    except JsonDocumentError as exc:
        raise MessageNotJsonError(
            checked=exc.checked, expected=exc.expected, found=exc.found, next_action=_AGAIN
        ) from None  # the cause could show the payload
    try:
        commit = PlanCommit.model_validate(document)
        commit.binding.normalised()
    except ValidationError as exc:
        # Only names of our own: a field that the sender made up is part of the payload.
        faults = sorted(
            {
                "a field that a commit does not have"
                if fault["type"] == "extra_forbidden"
                else _told(fault["loc"], fault["type"])
                for fault in exc.errors(include_input=False)
            }
        )
        raise InvalidCommitError(
            checked="the fields of the commit",
            expected="a plan commit of version 1",
            found=f"{len(faults)} at fault: {', '.join(faults)}",
            next_action=_AGAIN,
        ) from None  # the cause would show the values
    except ConfigurationError as exc:
        raise InvalidCommitError(
            checked="the binding of the commit", expected=exc.expected, found="another url", next_action=_AGAIN
        ) from None  # a url may hold a secret
    return commit


def _told(place: tuple[int | str, ...], fault: str) -> str:
    return f"{'.'.join(map(str, place)) or 'body'} ({fault})"


def _require_agreement(commit: PlanCommit, key: bytes | None, headers: Headers) -> None:
    named = commit_id(commit.run_id, commit.plan_checksum)
    agree = {
        "commit_id, against run id and checksum": commit.commit_id == named,
        "ce_id, against commit_id": _header(headers, "ce_id") == commit.commit_id.encode(),
        "key, against the binding": key == message_key(commit.binding),
    }
    wrong = [what for what, holds in agree.items() if not holds]
    if wrong:
        raise ContradictoryMessageError(
            checked="that key, headers and body of the message belong together",
            expected="one commit of one run, under the key of its binding",
            found=f"a difference in {'; in '.join(wrong)}",
            next_action=_AGAIN,
        )


def _require_location(artifact: str) -> None:
    parts = PurePosixPath(artifact).parts
    if (
        "://" in artifact
        or "\\" in artifact
        or "\0" in artifact
        or not parts
        or artifact.startswith("/")
        or ".." in parts
    ):
        raise CommitLocationError(
            checked="the artifact's location in the commit",
            expected="a run directory relative to the writer's artifact root, as <sync name>/<run id>",
            found="a URL, an absolute path, or a path that leads out",
            next_action="commit the run again from the root that the writer is configured with",
        )
