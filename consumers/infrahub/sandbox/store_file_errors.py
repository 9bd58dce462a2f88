"""Refusals of the file that keeps a sandbox's store. None of them touches the file."""

from __future__ import annotations

from ledger.errors import ConfigurationError


class StoreFileError(ConfigurationError):
    """The file that keeps a sandbox's store cannot be read or written."""


class StoreFileForeignError(StoreFileError):
    """The file is none of a sandbox; it is left as it is."""


class StoreFileTornError(StoreFileError):
    """The file was a sandbox's store, and bytes of it are missing or others than were written."""


class StoreFileNewerError(StoreFileError):
    """A newer program wrote the file; this one would lose what it does not know."""


class StoreFileSchemaError(StoreFileError):
    """The file keeps the objects of another schema than the one to be served."""


class StoreFileBusyError(StoreFileError):
    """Another sandbox keeps its store in the file."""
