"""A page without a violation of axe's rules, in both colour schemes."""

from __future__ import annotations

from playwright.sync_api import Page

from infra.browser import axe
from infra.browser.chromium import SCHEMES, Scheme


def axe_clean(page: Page) -> None:
    """Assert it for the page as it is now, and leave it in the scheme that it was in."""
    before, found = _scheme(page), []
    for scheme in SCHEMES:
        page.emulate_media(color_scheme=scheme)
        found += [f"{scheme}: {each}" for each in axe.violations(page)]
    page.emulate_media(color_scheme=before)
    assert not found, "axe finds:\n" + "\n".join(found)


def _scheme(page: Page) -> Scheme:
    return "dark" if page.evaluate("matchMedia('(prefers-color-scheme: dark)').matches") else "light"
