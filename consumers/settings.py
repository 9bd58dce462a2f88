"""The writer's times and limits. All are settings, so that a test or a small installation can make them short."""

from __future__ import annotations

from pathlib import Path
from typing import Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from ledger.plan.object_store import ObjectStore

MOST_SECONDS = 86_400.0
"""The longest lease and quiet period; the ledger's functions refuse more, because no other function ends either."""


class WriterTimes(BaseModel):
    """How long a writer may take for what. Times are seconds.

    Attributes:
        lease_ttl: how long a claim holds without renewal; it is renewed at a third of this.
        request_timeout: the longest time one request to the destination may take.
        margin: room for clock steps and scheduling between the last check and the end of a request.
        settle_seconds: how long after a lost answer nobody writes to that destination, because the server may still
            be working on it (30 is several times the slowest write seen on a loaded server).
        max_converge_attempts: with ``on_unknown: converge``, attempts at one operation before the run stops.
        converge_wait: with ``on_unknown: converge``, the first wait before another attempt at an operation of which
            nothing was sent; it doubles, so that a server has the time of a restart (one that may have been sent
            settles instead).
        poll_interval: how often an idle writer looks for orders, and a waiting one for the lease.
        stop_poll_interval: how often a running writer looks for an order to stop; 0 looks before every operation.
        open_attempts: how often an unreachable destination is tried before the attempt ends; the order stays open.
        open_retry_wait: the first wait between two such attempts; it doubles.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    lease_ttl: float = Field(default=60.0, gt=0, le=MOST_SECONDS)
    request_timeout: float = Field(default=30.0, gt=0)
    margin: float = Field(default=5.0, ge=0)
    settle_seconds: float = Field(default=30.0, ge=0, le=MOST_SECONDS)
    max_converge_attempts: int = Field(default=3, ge=1)
    converge_wait: float = Field(default=10.0, ge=0)
    poll_interval: float = Field(default=1.0, gt=0)
    stop_poll_interval: float = Field(default=0.5, ge=0)
    open_attempts: int = Field(default=4, ge=1)
    open_retry_wait: float = Field(default=0.5, ge=0)

    @model_validator(mode="after")
    def _request_fits_into_lease(self) -> Self:
        """A request that may outlive the lease could meet the next writer at the destination (G2)."""
        if self.lease_ttl <= self.request_timeout + self.margin:
            raise ValueError(
                f"lease_ttl ({self.lease_ttl} s) must be longer than request_timeout + margin "
                f"({self.request_timeout + self.margin} s)"
            )
        return self


class WriterSettings(WriterTimes):
    """How one writer behaves.

    Attributes:
        artifact_root: run directories are looked for below this folder, or in this object store, and nowhere else;
            nothing is written there.
    """

    artifact_root: Path | ObjectStore
