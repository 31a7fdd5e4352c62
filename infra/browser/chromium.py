"""A real Chromium, driven by Playwright: what a person's browser would show, for tests of the page and for its pictures.

Law: it reaches this machine alone. Each context begins with nothing that another left: no cookie, no cache, no storage. Chromium is
Debian's package; Playwright downloads no browser. While it runs, asyncio takes a loop to be running in this thread: no other can.
"""

from __future__ import annotations

import shutil
from typing import Literal

from playwright.sync_api import Browser, BrowserContext, Playwright, sync_playwright

from infra.patience import PATIENCE

Scheme = Literal["light", "dark"]

SCHEMES: tuple[Scheme, ...] = ("light", "dark")
HEIGHTS = {390: 844, 900: 1200, 1440: 900}
"""Of a phone, a tablet and a desk."""
WIDTHS = tuple(HEIGHTS)
_LOOPBACK = "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, EXCLUDE localhost"


class NoChromium(Exception):
    """There is none on PATH; it says what helps."""


class Chromium:
    """One browser, which many contexts share. As a context manager it is ended with them."""

    def __init__(self) -> None:
        self._playwright: Playwright | None = None
        self._browser: Browser | None = None

    def __enter__(self) -> Chromium:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(self) -> Chromium:
        """Start it; a process that is killed takes it along. Raises NoChromium."""
        path = program()
        self._playwright = sync_playwright().start()
        try:
            self._browser = self._playwright.chromium.launch(executable_path=path, args=[_LOOPBACK], timeout=1000 * PATIENCE)
        except BaseException:
            self.stop()
            raise
        return self

    def stop(self) -> None:
        """End it."""
        browser, playwright, self._browser, self._playwright = self._browser, self._playwright, None, None
        if browser:
            browser.close()
        if playwright:
            playwright.stop()

    def context(self, url: str, *, scheme: Scheme = "light", width: int = 1440, height: int = 0, scripts: bool = True) -> BrowserContext:
        """Return a new context, to which paths are those of the server `url`.

        `scripts`: whether the page's own may run; `height`: 0 for what belongs to the width.
        """
        context = self._running().new_context(
            base_url=url,
            color_scheme=scheme,
            viewport={"width": width, "height": height or HEIGHTS.get(width, 900)},
            java_script_enabled=scripts,
            reduced_motion="reduce",  # what moves is neither judged nor pictured half-way
            locale="en-GB",
            timezone_id="UTC",
        )
        context.set_default_timeout(1000 * PATIENCE)
        return context

    def _running(self) -> Browser:
        if self._browser is None:
            raise RuntimeError("Chromium isn't started")
        return self._browser


def program() -> str:
    """Return the path of Chromium. Raises NoChromium."""
    found = shutil.which("chromium")
    if not found:
        raise NoChromium("chromium is needed and not on PATH: on Debian apt-get install --no-install-recommends chromium")
    return found
