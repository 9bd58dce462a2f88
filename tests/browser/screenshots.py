"""Draws every page, in light and dark, wide and narrow: ``python -m tests.browser.screenshots --to FOLDER``."""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from playwright.async_api import Browser

from ledger.api.tokens import Role
from tests.browser.conftest import Site, database_of, site_over
from tests.support.browser import NARROW, SCHEMES, WIDE, chromium
from tests.support.page_examples import ALL, EMPTY, FOR_NOBODY, Example
from tests.support.postgres import PostgresServer
from tests.support.shown_ledger import shown_database

SIZES = {"wide": WIDE, "narrow": NARROW}
DRAWN_AFTER = 250
"""Milliseconds for a chart to be drawn; a picture is no test, so nothing depends on it."""

FORBIDDEN: Sequence[Example] = [("no-rights", "/commit")]
MISSING: Sequence[Example] = [("not-there", "/bindings/9")]


async def main(folder: Path) -> int:
    """Draw all of them; returns how many."""
    folder.mkdir(parents=True, exist_ok=True)
    server = await asyncio.to_thread(PostgresServer.start, "18")
    try:
        async with chromium() as browser:
            drawn = 0
            async with _shown(server, browser) as site:
                drawn += await _draw(site, Role.OPERATOR, [*ALL, *MISSING], folder)
                drawn += await _draw(site, Role.READER, FORBIDDEN, folder)
                drawn += await _draw(site, None, FOR_NOBODY, folder)
            with database_of(server) as dsns:
                async with site_over(dsns, browser) as site:
                    drawn += await _draw(site, Role.OPERATOR, EMPTY, folder)
    finally:
        server.stop()
    return drawn


@asynccontextmanager
async def _shown(server: PostgresServer, browser: Browser) -> AsyncIterator[Site]:
    for dsns in shown_database(server):
        async with site_over(dsns, browser) as site:
            yield site


async def _draw(site: Site, role: Role | None, examples: Sequence[Example], folder: Path) -> int:
    window = await site.window(role)
    for name, path in examples:
        await window.page.goto(site.origin + path)
        await window.page.wait_for_timeout(DRAWN_AFTER)
        for size, (width, height) in SIZES.items():
            await window.page.set_viewport_size({"width": width, "height": height})
            for scheme in SCHEMES:
                await window.page.emulate_media(color_scheme=scheme)
                await window.page.screenshot(path=folder / f"{name}-{size}-{scheme}.png", full_page=True)
    await window.page.context.close()
    return len(examples) * len(SIZES) * len(SCHEMES)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--to", type=Path, required=True, help="folder for the pictures")
    to: Path = parser.parse_args().to
    print(f"{asyncio.run(main(to))} pictures in {to}")
