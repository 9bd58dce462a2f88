"""Refuses reasons and actors that contain a known secret, because they are recorded for ever."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote, urlsplit

from pydantic import SecretStr

from ledger.api.tokens import SHAPE
from ledger.cli.settings import Settings
from ledger.errors import ConfigurationError, SecretInWordsError

_LEAST = 8
"""Characters of a secret from which on it is looked for: a shorter one may be part of any word."""


_OF_OBJECT_STORES = ("AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN")


def refuse_secrets(settings: Settings, *, config_file: Path | None = None, **words: str | None) -> None:
    """Refuse words with a credential in them, in whatever spelling.

    Args:
        settings: of this installation.
        config_file: of a sync, whose own token is a secret too.
        words: what was given, by the name of its option.

    Raises:
        SecretInWordsError: names the option, never the value.
    """
    from consumers.infrahub.redaction import Redactor

    redactor = Redactor(secret for secret in _known(settings, config_file) if len(secret) >= _LEAST)
    for option, text in words.items():
        if text and (redactor.holds_secret(text) or SHAPE.search(text)):
            raise SecretInWordsError(
                checked=f"--{option}",
                expected="text without a credential: it is kept in the ledger for ever",
                found="a token of a destination or of the API, or a password of the database or the brokers",
                next_action="write it without the credential; if others have seen that text, change the credential",
            )


def _known(settings: Settings, config_file: Path | None) -> Iterator[str]:
    yield os.environ.get("INFRAHUB_API_TOKEN", "").strip()
    for destination in settings.destination:
        try:
            yield destination.token(os.environ).get_secret_value()
        except ConfigurationError:
            continue  # its absence is reported where the token is needed
    try:
        password = settings.kafka.known_password()
    except ConfigurationError:
        password = None  # reported where the brokers are needed
    if password is not None:
        yield password.get_secret_value()
    for dsn in (settings.dsn, settings.admin_dsn):
        yield from _password(dsn)
    yield from filter(None, (os.environ.get(name) for name in _OF_OBJECT_STORES))
    if config_file is not None:
        yield from _token_of_sync(config_file)


def _password(dsn: SecretStr | None) -> Iterator[str]:
    try:
        password = None if dsn is None else urlsplit(dsn.get_secret_value()).password
    except ValueError:
        return  # no address; reported where the database is opened
    if password:
        yield unquote(password)


def _token_of_sync(config_file: Path) -> Iterator[str]:
    from producers.binding import TOKEN_VARIABLE, destination_token
    from producers.config import load_configuration

    environ = {name: value for name, value in os.environ.items() if name != TOKEN_VARIABLE}
    try:
        token = destination_token(load_configuration(config_file).config, environ=environ)
    except ConfigurationError:
        return  # what is wrong with the file is reported where it is used
    if token is not None:
        yield token.get_secret_value()
