"""Refusals of the file that keeps a sandbox's store. None of them touches the file."""

from __future__ import annotations

from ledger.errors import ConfigurationError


class StoreFileError(ConfigurationError):
    """The file that keeps a sandbox's store cannot be read or written."""


class StoreFileForeignError(StoreFileError):
    """The file is not the store of a sandbox; it is not changed."""


class StoreFileTornError(StoreFileError):
    """The file is a damaged store of a sandbox: bytes are missing or changed."""


class StoreFileNewerError(StoreFileError):
    """A newer program wrote the file; this one would lose data that it does not know."""


class StoreFileSchemaError(StoreFileError):
    """The file contains objects of another schema than the one to be served."""


class StoreFileBusyError(StoreFileError):
    """Another sandbox keeps its store in the file."""
