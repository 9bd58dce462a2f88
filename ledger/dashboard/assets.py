"""Style sheets, scripts and pictures: read once, named by their content, kept by browsers for good."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from fastapi import APIRouter, Request
from starlette.responses import Response

from ledger.api.errors import not_there

FOLDER = Path(__file__).parent / "static"
PREFIX = "/static/"
_MEDIA_TYPES = {
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}

router = APIRouter()


@dataclass(frozen=True, slots=True)
class Asset:
    """One file as it is sent."""

    version: str
    media_type: str
    data: bytes


class Assets:
    """All files below a folder that a browser may have."""

    def __init__(self, folder: Path = FOLDER) -> None:
        found = (path for path in sorted(folder.rglob("*")) if path.suffix in _MEDIA_TYPES)
        self._files: Mapping[str, Asset] = {path.relative_to(folder).as_posix(): _read(path) for path in found}

    def url(self, name: str) -> str:
        """The address of a file; it changes with what is in it. A name that is not there is a KeyError."""
        return f"{PREFIX}{self._files[name].version}/{name}"

    def find(self, version: str, name: str) -> Asset | None:
        """A file by both parts of its address."""
        asset = self._files.get(name)
        return asset if asset is not None and asset.version == version else None


def _read(path: Path) -> Asset:
    data = path.read_bytes()
    return Asset(hashlib.sha256(data).hexdigest()[:16], _MEDIA_TYPES[path.suffix], data)


@router.get(PREFIX + "{version}/{name:path}")
async def static(request: Request, version: str, name: str) -> Response:
    """A file, to everybody: where one logs in looks like the rest."""
    assets: Assets = request.app.state.assets
    asset = assets.find(version, name)
    if asset is None:
        raise not_there("this file", "load the page again: this server may have been replaced by another version")
    return Response(
        asset.data, media_type=asset.media_type, headers={"Cache-Control": "public, max-age=31536000, immutable"}
    )
