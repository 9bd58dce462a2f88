"""Addresses of pages as they come back in links: where somebody was, and never another site."""

from __future__ import annotations

from urllib.parse import quote, urlsplit

from fastapi import Request

MAX_ADDRESS = 2048
"""Characters of an address to which a login leads back."""


def address_of(request: Request) -> str:
    """The address that was asked for, with its parameters, as an address is spelled."""
    return quote(request.scope["path"]) + (f"?{request.url.query}" if request.url.query else "")


def page_of(address: str) -> str:
    """Path and parameters of a whole address, as a browser says where it is; empty where it is none."""
    try:
        parts = urlsplit(address)
    except ValueError:
        return ""
    return parts.path + (f"?{parts.query}" if parts.query else "")


def own_address(address: str) -> str:
    """An address of this server, else that of the overview: a link must not lead elsewhere.

    A path that begins with two strokes is none, although this server was asked for it: in a link, what follows them is
    the name of another one.
    """
    try:
        parts = urlsplit(address)
    except ValueError:
        return "/"
    own = address.startswith("/") and not address.startswith(("//", "/\\")) and not parts.scheme and not parts.netloc
    return address if own and address.isascii() and address.isprintable() and "\\" not in address else "/"
