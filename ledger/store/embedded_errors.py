"""Refusals of the embedded database: binaries, system account, data folder, start and stop."""

from __future__ import annotations

from ledger.errors import ApplyLedgerError


class EmbeddedServerError(ApplyLedgerError):
    """Base of everything that can keep the embedded PostgreSQL from serving."""


class BinariesNotFoundError(EmbeddedServerError):
    """No usable set of PostgreSQL programs of the wanted major version."""


class BinariesUnreachableError(EmbeddedServerError):
    """The server's system account can neither reach the programs nor a copy of them."""


class SystemAccountError(EmbeddedServerError):
    """Started as root, and no system account for the server exists or can be made."""


class ForeignDataFolderError(EmbeddedServerError):
    """The folder contains data of another program, or belongs to another user."""


class DataFolderNotWritableError(EmbeddedServerError):
    """The data folder, or the folder in which it would be made, cannot be written."""


class DataFolderUnreachableError(EmbeddedServerError):
    """The server's account may not pass through a parent of the data folder."""


class CredentialsMissingError(EmbeddedServerError):
    """The database exists, but the file with its passwords is missing or unreadable."""


class DataFolderBusyError(EmbeddedServerError):
    """Another process is starting or stopping the server of this folder and did not finish in time."""


class OtherMajorVersionError(EmbeddedServerError):
    """The data folder was made by another major version of PostgreSQL than the programs at hand."""


class UnsafeSocketFolderError(EmbeddedServerError):
    """The folder for the socket exists, and other users can access it."""


class ServerStartError(EmbeddedServerError):
    """The server did not accept connections in time."""


class ServerStopError(EmbeddedServerError):
    """The server did not stop in time."""
