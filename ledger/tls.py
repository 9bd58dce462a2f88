"""Whom a TLS connection of ours trusts, and nothing else that the environment has to say about it."""

from __future__ import annotations

import ssl
from pathlib import Path


def trusting(ca_file: Path | None) -> ssl.SSLContext:
    """A client's context that trusts the authorities of the file, or those of the system.

    OpenSSL finds those of the system, by SSL_CERT_FILE and SSL_CERT_DIR where they are set. Not made by
    ``ssl.create_default_context``: it takes SSLKEYLOGFILE of the environment for an order to write the keys of every
    connection into that file, and with them the credentials that go over it (G12).

    Raises:
        OSError: the file cannot be read, or holds no authority (``ssl.SSLError`` is one).
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)  # which checks certificates and names
    if ca_file is None:
        context.load_default_certs(ssl.Purpose.SERVER_AUTH)
    else:
        context.load_verify_locations(cafile=ca_file)
    return context
