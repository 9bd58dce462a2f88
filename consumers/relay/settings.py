"""Topic of the events, and time limits of the relay in seconds."""

from __future__ import annotations

from typing import Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from ledger.broker import TOPIC_NAME, BrokerSecurity


class RelaySettings(BaseModel):
    """One topic for the events of all bindings.

    Attributes:
        brokers: ``host:port`` pairs, separated by commas.
        security: TLS and SASL.
        topic: of the ledger's events.
        client_id: as the brokers' logs show it.
        request_timeout: of one request to a broker.
        send_within: how long the brokers may take for one batch.
        batch_events: at most so many events before the cursor is moved.
        claim_ttl: how long a relay that is silent keeps its binding.
        poll_interval: how often an idle relay looks for new events, and a waiting one for a free binding.
        retry_wait: after the brokers or the ledger were unreachable.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    brokers: str = Field(min_length=1)
    security: BrokerSecurity = BrokerSecurity()
    topic: str = Field(default="ledger-events", pattern=TOPIC_NAME)
    client_id: str = "apply-ledger-relay"
    request_timeout: float = Field(default=10.0, gt=0)
    send_within: float = Field(default=15.0, gt=0)
    batch_events: int = Field(default=500, ge=1)
    claim_ttl: float = Field(default=30.0, gt=0)
    poll_interval: float = Field(default=0.25, gt=0)
    retry_wait: float = Field(default=1.0, gt=0)

    @model_validator(mode="after")
    def _a_batch_fits_into_a_claim(self) -> Self:
        """Else two relays take turns at the same batch for as long as the brokers are slow."""
        if self.claim_ttl <= self.send_within:
            raise ValueError(f"claim_ttl ({self.claim_ttl} s) must be longer than send_within ({self.send_within} s)")
        return self
