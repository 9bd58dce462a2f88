"""Settings of one Infrahub destination: address, credentials and time limits."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field, SecretStr, field_validator

from ledger.binding import DestinationBinding, normalise_url
from ledger.errors import ConfigurationError


class InfrahubSettings(BaseModel):
    """One declared Infrahub destination. Nothing in it is read from the environment.

    Times are seconds. ``request_timeout`` is the deadline of a whole request of an apply, from hand-over to the last
    byte of the answer; ``read_timeout`` is that of one page of a reader. Never-run requests are sent at most
    ``attempts`` times, with waits between ``retry_wait`` and ``retry_wait_max``.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)

    url: str
    branch: str = Field(min_length=1)
    token: SecretStr | None = None
    ca_file: Path | None = None
    verify_tls: bool = True
    request_timeout: float = Field(default=30.0, gt=0)
    read_timeout: float = Field(default=120.0, gt=0)
    connect_timeout: float = Field(default=5.0, gt=0)
    page_size: int = Field(default=200, ge=2, le=1000)
    attempts: int = Field(default=4, ge=1, le=20)
    retry_wait: float = Field(default=0.25, ge=0)
    retry_wait_max: float = Field(default=5.0, ge=0)

    @field_validator("url")
    @classmethod
    def _plain_address(cls, url: str) -> str:
        """Refuse an address that carries a credential: it would travel into logs and proxies (G12, C24)."""
        normalise_url(url)
        parts = urlsplit(url.strip())
        carried = [
            name
            for name, present in (
                ("user info", parts.username is not None or parts.password is not None),
                ("a query", bool(parts.query)),
                ("a fragment", bool(parts.fragment)),
            )
            if present
        ]
        if carried:
            raise ConfigurationError(
                checked="the address of the Infrahub destination",
                expected="scheme, host, port and path only",
                found=f"an address with {' and '.join(carried)}",
                next_action="take it out of the address; a token goes into INFRAHUB_API_TOKEN or a token file",
            )
        return url.strip().rstrip("/")

    @field_validator("token")
    @classmethod
    def _sendable_token(cls, token: SecretStr | None) -> SecretStr | None:
        """Refuse what HTTP cannot carry before a library prints it in an error of its own (G12)."""
        if token is None or token.get_secret_value() == "":
            return None
        if not all("\x21" <= character <= "\x7e" for character in token.get_secret_value()):
            raise ConfigurationError(
                checked="the token of the Infrahub destination",
                expected="printable ASCII without blanks",
                found="a character that no HTTP header can carry",
                next_action="check the token's file or variable, often it is a line break at the end",
            )
        return token

    @property
    def binding(self) -> DestinationBinding:
        """The binding under which this destination is written, normalised."""
        return DestinationBinding(url=self.url, branch=self.branch).normalised()

    @property
    def secrets(self) -> tuple[str, ...]:
        """What must never appear in a text: for the redactor alone."""
        return () if self.token is None else (self.token.get_secret_value(),)
