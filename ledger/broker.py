"""How Kafka's brokers are reached: addresses, TLS, SASL; and what their client said when they were not.

Nothing here imports a client: producers and consumers speak to Kafka, each with one of its own.
"""

from __future__ import annotations

import logging
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal, Self

from pydantic import BaseModel, ConfigDict, SecretStr, model_validator

from ledger.errors import ConfigurationError
from ledger.tls import trusting

SecurityProtocol = Literal["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"]
SaslMechanism = Literal["SCRAM-SHA-512", "SCRAM-SHA-256", "PLAIN"]
TOPIC_NAME = r"^[A-Za-z0-9._-]{1,249}$"

_CLIENTS_LOGGER = "aiokafka"


class BrokerSecurity(BaseModel):
    """Who we are to the brokers, and how we know that they are the right ones.

    Attributes:
        protocol: with or without TLS, with or without SASL.
        sasl_mechanism: how the password is proven; SCRAM never sends it.
        username: of the SASL account.
        password: of the SASL account.
        ca_file: authorities in PEM that brokers' certificates are checked against; by default the system's.
        cert_file: our own certificate in PEM, where brokers ask for one; may hold the key as well.
        key_file: its key, where that stands in a file of its own.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    protocol: SecurityProtocol = "PLAINTEXT"
    sasl_mechanism: SaslMechanism = "SCRAM-SHA-512"
    username: str | None = None
    password: SecretStr | None = None
    ca_file: Path | None = None
    cert_file: Path | None = None
    key_file: Path | None = None

    @model_validator(mode="after")
    def _belongs_together(self) -> Self:
        """What would be passed over in silence by the client is refused: it was given for a reason."""
        if self.has_sasl and not (self.username and self.password):
            raise ValueError(f"{self.protocol} needs a username and a password")
        if not self.has_sasl and (self.username or self.password):
            raise ValueError(f"a username or a password is of no use with {self.protocol}; SASL_SSL takes them")
        if not self.has_tls and (self.ca_file or self.cert_file or self.key_file):
            raise ValueError(f"certificate files are of no use with {self.protocol}; SSL and SASL_SSL take them")
        if self.key_file and not self.cert_file:
            raise ValueError("a key_file needs the cert_file that it belongs to")
        return self

    @property
    def has_sasl(self) -> bool:
        """Whether a password is proven to the broker."""
        return self.protocol.startswith("SASL_")

    @property
    def has_tls(self) -> bool:
        """Whether the connection is encrypted and the broker's certificate checked."""
        return self.protocol.endswith("SSL")

    def client_options(self) -> dict[str, Any]:
        """Arguments of every client of aiokafka.

        Raises:
            ConfigurationError: a certificate file cannot be read or is none.
        """
        options: dict[str, Any] = {"security_protocol": self.protocol}
        if self.has_sasl and self.password is not None:
            options |= {
                "sasl_mechanism": self.sasl_mechanism,
                "sasl_plain_username": self.username,
                "sasl_plain_password": self.password.get_secret_value(),
            }
        if self.has_tls:
            options["ssl_context"] = self._tls()
        return options

    def _tls(self) -> ssl.SSLContext:
        try:
            context = trusting(self.ca_file)
        except (OSError, ssl.SSLError) as exc:
            raise _unusable("ca_file", self.ca_file, exc) from exc
        if self.cert_file is not None:
            try:
                # an encrypted key would ask on the terminal, and a service has none
                context.load_cert_chain(str(self.cert_file), self.key_file and str(self.key_file), password="")
            except (OSError, ssl.SSLError) as exc:
                raise _unusable("cert_file or key_file", self.cert_file, exc) from exc
        return context


def _unusable(what: str, path: Path | None, error: Exception) -> ConfigurationError:
    return ConfigurationError(
        checked=f"the {what} for the brokers",
        expected="a readable PEM file without a passphrase",
        found=f"{path}: {type(error).__name__}",
        next_action="correct the setting, or make the file readable for this user",
    )


@contextmanager
def told_by_client() -> Iterator[list[str]]:
    """Collects what the brokers' client logs meanwhile, the newest last.

    A wrong password, a wrong certificate and nobody there raise one and the same error; the reason is only in its log.
    """
    told: list[str] = []

    class Listener(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            told.append(record.getMessage())

    listener = Listener(logging.WARNING)
    logger = logging.getLogger(_CLIENTS_LOGGER)
    logger.addHandler(listener)
    try:
        yield told
    finally:
        logger.removeHandler(listener)


def reason_of(error: BaseException | None, told: list[str]) -> str:
    """The error's name, and what the client logged last."""
    return ": ".join([type(error).__name__, *told[-1:]])
