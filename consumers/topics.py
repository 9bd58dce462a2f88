"""Creates or checks the two topics with the settings that the guarantees need.

``plan-commits`` carries orders: what is acknowledged must survive the loss of a broker, and must not be gone before an
intake has read it. ``ledger-events`` carries the record: a reader of the topic alone can verify the chain only as long
as nothing of it is removed, so it neither expires nor compacts.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, ClassVar, Literal

from aiokafka.admin import AIOKafkaAdminClient, NewTopic
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType
from pydantic import BaseModel, ConfigDict, Field

from consumers.intake.errors import BrokerUnavailableError
from ledger.broker import BrokerSecurity, reason_of, told_by_client
from ledger.commit_message import MAX_MESSAGE_BYTES
from ledger.errors import ApplyLedgerError, Finding, RefusalGroup
from ledger.events import MAX_BODY_BYTES
from ledger.exit_codes import ExitCode
from ledger.kafka_producer import Unreachable

_FRAME = 32 * 1024
"""Room for key, headers and the frame of a batch beside a body."""
_DAY = 24 * 3600 * 1000
_TOPIC_EXISTS = 36
_ENOUGH_BROKERS = 3
_OFFSETS_KEPT = "offsets.retention.minutes"
_LOOK_AGAIN = 0.05


class TopicNotCreatedError(ApplyLedgerError):
    """The brokers refused to create a topic."""


class TopicDiffersError(RefusalGroup):
    """A topic exists with other settings than the guarantees need; it is not changed."""

    exit_code: ClassVar[ExitCode] = ExitCode.ERROR


class TopicSettings(BaseModel):
    """Which topics, at which brokers, and how. Times are seconds.

    Attributes:
        brokers: ``host:port`` pairs, separated by commas.
        security: TLS and SASL.
        client_id: as the brokers' logs show it.
        commits_topic: of plan commits.
        events_topic: of the ledger's events.
        partitions: of a topic that is made; all messages of one destination are in one of them.
        replication: copies of each message; by default three, or as many as there are brokers.
        commit_retention_days: how long a commit is kept for an intake that is unreachable.
        call_within: how long the brokers may take for one answer.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    brokers: str = Field(min_length=1)
    security: BrokerSecurity = BrokerSecurity()
    client_id: str = "apply-ledger-admin"
    commits_topic: str
    events_topic: str
    partitions: int = Field(default=6, ge=1)
    replication: int | None = Field(default=None, ge=1)
    commit_retention_days: int = Field(default=30, ge=1)
    call_within: float = Field(default=15.0, gt=0)


class Verdict(StrEnum):
    """What a check found."""

    HOLDS = "holds"
    WEAK = "weak"
    FAILS = "fails"


@dataclass(frozen=True, slots=True)
class BrokerCheck:
    """One thing that was looked at. ``WEAK``: works, and promises less than it could."""

    checked: str
    verdict: Verdict
    expected: str
    found: str
    next_action: str

    @property
    def finding(self) -> Finding:
        """For a refusal."""
        return Finding(
            name="TopicSettingDiffers",
            checked=self.checked,
            expected=self.expected,
            found=self.found,
            next_action=self.next_action,
        )


@dataclass(frozen=True, slots=True)
class TopicState:
    """What became of one topic."""

    name: str
    state: Literal["created", "was there"]
    partitions: int
    replication: int
    settings: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class _Wanted:
    name: str
    partitions: int
    replication: int
    exact: Mapping[str, str]
    at_least: Mapping[str, int]

    @property
    def settings(self) -> dict[str, str]:
        return {**self.exact, **{key: str(value) for key, value in self.at_least.items()}}


async def create_topics(settings: TopicSettings) -> list[TopicState]:
    """Make the topics that are missing, and compare those that are there. Doing it again changes nothing.

    Raises:
        BrokerUnavailableError: no broker answered.
        TopicNotCreatedError: the brokers refused one.
        TopicDiffersError: one is there with settings that a guarantee cannot live with; each difference is named.
    """
    async with _admin(settings) as admin:
        wanted = _wanted(settings, await _broker_count(admin, settings))
        made = [topic.name for topic in wanted if await _create(admin, settings, topic)]
        differing: list[BrokerCheck] = []
        states = []
        for topic in wanted:
            partitions, replication, found = await _described(admin, settings, topic)
            differing += [
                check for check in _compared(topic, partitions, replication, found) if check.verdict is Verdict.FAILS
            ]
            state: Literal["created", "was there"] = "created" if topic.name in made else "was there"
            states.append(
                TopicState(topic.name, state, partitions, replication, {key: found[key] for key in topic.settings})
            )
    if differing:
        raise TopicDiffersError(
            checked="the topics that were there before",
            findings=[check.finding for check in differing],
            next_action="change these settings with the brokers' own tools (kafka-configs), then check again",
        )
    return states


async def check_topics(settings: TopicSettings) -> list[BrokerCheck]:
    """Everything at the brokers that a guarantee rests on, as it is; nothing is changed.

    Raises:
        BrokerUnavailableError: no broker answered.
    """
    async with _admin(settings) as admin:
        count = await _broker_count(admin, settings)
        checks = [_enough_brokers(count), await _kept_offsets(admin, settings)]
        names = set(await _within(settings, admin.list_topics()))
        for topic in _wanted(settings, count):
            if topic.name in names:
                checks += _compared(topic, *await _described(admin, settings, topic))
            else:
                checks.append(
                    BrokerCheck(
                        f"the topic {topic.name}", Verdict.FAILS, "that it exists", "none", "apply-ledger kafka init"
                    )
                )
    return checks


def _wanted(settings: TopicSettings, brokers: int) -> Sequence[_Wanted]:
    copies = settings.replication or min(_ENOUGH_BROKERS, brokers)
    durable = {"min.insync.replicas": max(1, copies - 1)}
    exact = {"cleanup.policy": "delete", "unclean.leader.election.enable": "false"}
    return (
        _Wanted(
            settings.commits_topic,
            settings.partitions,
            copies,
            exact,
            durable
            | {
                "retention.ms": settings.commit_retention_days * _DAY,
                "retention.bytes": -1,
                "max.message.bytes": MAX_MESSAGE_BYTES + _FRAME,
            },
        ),
        _Wanted(
            settings.events_topic,
            settings.partitions,
            copies,
            exact,
            durable | {"retention.ms": -1, "retention.bytes": -1, "max.message.bytes": MAX_BODY_BYTES + _FRAME},
        ),
    )


def _compared(topic: _Wanted, partitions: int, replication: int, found: Mapping[str, str]) -> list[BrokerCheck]:
    def check(what: str, holds: bool, expected: str, is_there: str, what_to_do: str) -> BrokerCheck:
        verdict = Verdict.HOLDS if holds else Verdict.FAILS
        return BrokerCheck(f"{what} of topic {topic.name}", verdict, expected, is_there, what_to_do)

    checks = [
        # Another number is no fault: the key decides the partition, and the same key is always in the same one.
        check("partitions", partitions >= 1, "at least 1", str(partitions), "apply-ledger kafka init"),
        check(
            "replication",
            replication >= topic.replication,
            f"at least {topic.replication}",
            str(replication),
            "give it more replicas (kafka-reassign-partitions), or it is lost with its broker",
        ),
    ]
    for key, value in topic.exact.items():
        checks.append(check(key, found.get(key) == value, value, found.get(key, "unknown"), _set(topic, key, value)))
    for key, least in topic.at_least.items():
        checks.append(
            check(
                key,
                _is_at_least(found.get(key, ""), least),
                "no limit" if least == -1 else f"at least {least}",
                found.get(key, "unknown"),
                _set(topic, key, str(least)),
            )
        )
    return checks


def _set(topic: _Wanted, key: str, value: str) -> str:
    return f"kafka-configs --alter --entity-type topics --entity-name {topic.name} --add-config {key}={value}"


def _is_at_least(found: str, least: int) -> bool:
    """-1 is no limit, which is more than any number."""
    try:
        number = int(found)
    except ValueError:
        return False
    return number == -1 or (least != -1 and number >= least)


def _enough_brokers(count: int) -> BrokerCheck:
    enough = count >= _ENOUGH_BROKERS
    return BrokerCheck(
        "the number of brokers",
        Verdict.HOLDS if enough else Verdict.WEAK,
        f"at least {_ENOUGH_BROKERS}, so that one may be lost without losing a commit or waiting for it",
        str(count),
        "nothing" if enough else "run three brokers where a commit must outlive the disk of one",
    )


async def _kept_offsets(admin: Any, settings: TopicSettings) -> BrokerCheck:
    """How long the brokers remember what a group has read, if nobody of it is there."""
    wanted = settings.commit_retention_days * 24 * 60
    brokers = (await _within(settings, admin.describe_cluster()))["brokers"]
    resources = [ConfigResource(ConfigResourceType.BROKER, str(broker["node_id"])) for broker in brokers]
    found: list[int] = []
    for answer in await _within(settings, admin.describe_configs(resources)):
        for _, _, _, _, entries in answer.resources:
            found += [int(entry[1]) for entry in entries if entry[0] == _OFFSETS_KEPT]
    least = min(found, default=0)
    return BrokerCheck(
        _OFFSETS_KEPT,
        Verdict.HOLDS if least >= wanted else Verdict.WEAK,
        f"at least {wanted}, as long as commits are kept; otherwise, if all intakes are stopped for "
        "longer, they read old commits again (the inbox ignores them)",
        str(least) if found else "unknown",
        "nothing" if least >= wanted else f"set {_OFFSETS_KEPT}={wanted} in the brokers' configuration",
    )


@asynccontextmanager
async def _admin(settings: TopicSettings) -> AsyncIterator[Any]:
    admin = AIOKafkaAdminClient(
        bootstrap_servers=settings.brokers,
        client_id=settings.client_id,
        request_timeout_ms=round(settings.call_within * 1000),
        **settings.security.client_options(),
    )
    with told_by_client() as told:
        try:
            await _within(settings, admin.start())
            yield admin
        except Unreachable as exc:
            raise BrokerUnavailableError(
                checked=f"the brokers {settings.brokers}",
                expected=f"an answer within {settings.call_within:g} s",
                found=reason_of(exc, told),
                next_action="check address, credentials and certificate",
            ) from exc
        finally:
            with suppress(*Unreachable):  # what happened before is what counts
                await _within(settings, admin.close())


async def _within(settings: TopicSettings, call: Any) -> Any:
    async with asyncio.timeout(settings.call_within):
        return await call


async def _broker_count(admin: Any, settings: TopicSettings) -> int:
    return len((await _within(settings, admin.describe_cluster()))["brokers"])


async def _create(admin: Any, settings: TopicSettings, topic: _Wanted) -> bool:
    """Whether it was made now. Errors come in the reply and are never raised by the client."""
    new = NewTopic(topic.name, topic.partitions, topic.replication, topic_configs=topic.settings)
    reply = await _within(settings, admin.create_topics([new]))
    for name, code, message in ((error[0], error[1], error[2]) for error in reply.topic_errors):
        if code == _TOPIC_EXISTS:
            return False
        if code != 0:
            raise TopicNotCreatedError(
                checked=f"the creation of topic {name}",
                expected=f"{topic.partitions} partitions with {topic.replication} copies each",
                found=message or f"error {code} of Kafka",
                next_action="fix the stated cause; a topic needs as many brokers as it has copies",
            )
    return True


async def _described(admin: Any, settings: TopicSettings, topic: _Wanted) -> tuple[int, int, dict[str, str]]:
    """Partitions, the least number of copies, and the settings of a topic that is there.

    A broker answers the creation of a topic a little before it knows what was created.
    """
    resource = ConfigResource(ConfigResourceType.TOPIC, topic.name)
    async with asyncio.timeout(settings.call_within):
        while True:
            (description,) = await admin.describe_topics([topic.name])
            partitions = description["partitions"]
            found: dict[str, str] = {}
            for answer in await admin.describe_configs([resource]):
                for _, _, _, _, entries in answer.resources:
                    found |= {entry[0]: entry[1] for entry in entries}
            if partitions and found:
                return len(partitions), min(len(partition["replicas"]) for partition in partitions), found
            await asyncio.sleep(_LOOK_AGAIN)
