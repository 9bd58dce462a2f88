"""TLS of ours: certificates and names are checked, and no variable has the keys of a connection written down."""

from __future__ import annotations

import ssl
from collections.abc import Callable
from pathlib import Path

import pytest

from consumers.infrahub.transport import tls_context
from ledger.broker import BrokerSecurity
from ledger.tls import trusting
from tests.support.scripted_infrahub import lab_settings

CERTIFICATE = Path(__file__).parents[1] / "support" / "localhost.pem"

CONTEXTS: dict[str, Callable[[], ssl.SSLContext]] = {
    "destination": lambda: tls_context(lab_settings(url="https://infrahub.test")),
    "destination with a file": lambda: tls_context(lab_settings(url="https://infrahub.test", ca_file=CERTIFICATE)),
    "brokers": lambda: BrokerSecurity(protocol="SSL").client_options()["ssl_context"],
    "brokers with a file": lambda: BrokerSecurity(protocol="SSL", ca_file=CERTIFICATE).client_options()["ssl_context"],
}


@pytest.mark.rules("G12")
@pytest.mark.parametrize("made", CONTEXTS.values(), ids=CONTEXTS)
def test_g12_no_variable_has_the_keys_of_a_connection_written_down(
    made: Callable[[], ssl.SSLContext], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("SSLKEYLOGFILE", str(tmp_path / "keys"))
    ssl.create_default_context()
    (tmp_path / "keys").unlink()  # the variable is one that Python follows, as soon as such a context is made
    context = made()
    assert not context.keylog_filename
    assert list(tmp_path.iterdir()) == []
    assert (context.verify_mode, context.check_hostname) == (ssl.CERT_REQUIRED, True)


@pytest.mark.rules("G12")
def test_g12_a_file_of_authorities_takes_the_place_of_the_systems() -> None:
    assert trusting(CERTIFICATE).cert_store_stats()["x509"] == 1


def test_a_context_is_as_the_library_makes_it_but_for_the_keys() -> None:
    ours, theirs = trusting(CERTIFICATE), ssl.create_default_context(cafile=CERTIFICATE)
    for name in ("verify_mode", "check_hostname", "verify_flags", "options", "minimum_version", "protocol"):
        assert getattr(ours, name) == getattr(theirs, name), name
