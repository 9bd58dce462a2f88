"""Topic of the commits, and time limits of the intake in seconds."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field

from ledger.broker import TOPIC_NAME, BrokerSecurity


class IntakeSettings(BaseModel):
    """One consumer group on one topic.

    Attributes:
        brokers: ``host:port`` pairs, separated by commas.
        security: TLS and SASL.
        topic: of plan commits.
        group: of the consumers that share the topic's partitions.
        client_id: as the broker's log shows it.
        start_within: how long a broker may take to answer at the start.
        request_timeout: of one request to the broker.
        call_within: the longest that a call of the client is waited for; many of them have no limit of their own.
        session_timeout: how long a silent member keeps its partitions.
        heartbeat_interval: between two signs of life.
        poll_wait: how long one poll waits for messages.
        poll_records: at most so many messages in one poll.
        take_at_once: at most so many are taken in one transaction, which holds up the writer of their destination.
        stuck_after: without a finished poll or a taken message for so long the intake ends with a named reason.
        retry_wait: before a message is tried again while the ledger is unreachable.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    brokers: str = Field(min_length=1)
    security: BrokerSecurity = BrokerSecurity()
    topic: str = Field(default="plan-commits", pattern=TOPIC_NAME)
    group: str = Field(default="apply-ledger-intake", min_length=1)
    client_id: str = "apply-ledger-intake"
    start_within: float = Field(default=30.0, gt=0)
    request_timeout: float = Field(default=10.0, gt=0)
    call_within: float = Field(default=15.0, gt=0)
    session_timeout: float = Field(default=10.0, gt=0)
    heartbeat_interval: float = Field(default=3.0, gt=0)
    poll_wait: float = Field(default=0.5, gt=0)
    poll_records: int = Field(default=100, ge=1)
    take_at_once: int = Field(default=20, ge=1)
    stuck_after: float = Field(default=60.0, gt=0)
    retry_wait: float = Field(default=1.0, gt=0)
