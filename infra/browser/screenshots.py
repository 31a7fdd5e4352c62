"""Pictures of the page as Chromium shows it: PNGs.

Law: a picture is of a page without a fault. The demo's stage is what README shows: `scripts/screenshots`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from playwright.sync_api import Page

from infra.browser.chromium import SCHEMES, WIDTHS, Chromium, Scheme
from infra.browser.faults import Faults

IMAGES = Path("docs/images")
PAGES = {
    "login": "/ui/login",
    "overview": "/",
    "deliveries": "/ui/deliveries",
    "held": "/ui/targets/shop",
    "unhealthy": "/ui/targets/vouchers",
    "rollout": "/ui/targets/checkout",
    **{each: f"/ui/targets/shop/{each}" for each in ("gap", "inventory", "history", "orphans", "events")},
    "logs": "/ui/targets/shop/logs?object=Deployment/shop-front/web",
}
"""Each page by a name, as the demo's stage has it."""


@dataclass(frozen=True, slots=True)
class Shot:
    """One picture. `name`: its file's, without `.png`; `height`: 0 for what belongs to the width; `whole`: with what lies below it."""

    name: str
    path: str
    scheme: Scheme = "light"
    width: int = 1440
    height: int = 0
    whole: bool = False


_WHOLE = "() => !document.querySelector('[data-from]') && (!document.body.dataset.topic || document.querySelector('.live[data-on]'))"
"""A page has what it loads from others, and hears of changes."""
README = (Shot("page-overview", "/", width=1280, height=600), Shot("page-target", "/ui/targets/checkout", "dark", width=1280, height=720))
"""The pictures of README."""


def everywhere() -> list[Shot]:
    """Return a picture of each page, whole, in each scheme and width."""
    return [
        Shot(f"{name}-{width}-{scheme}", path, scheme, width, whole=True)
        for name, path in PAGES.items()
        for width in WIDTHS
        for scheme in SCHEMES
    ]


def take(chromium: Chromium, url: str, token: str, shots: Sequence[Shot], out: Path) -> list[Path]:
    """Sign in with a token, empty for none, and write each picture into `out`; returns their paths.

    Raises:
        AssertionError: the browser complains about a page.

    """
    out.mkdir(parents=True, exist_ok=True)
    return [_taken(chromium, url, token, shot, out / f"{shot.name}.png") for shot in shots]


def _taken(chromium: Chromium, url: str, token: str, shot: Shot, path: Path) -> Path:
    faults = Faults()
    context = chromium.context(url, scheme=shot.scheme, width=shot.width, height=shot.height)
    faults.watch(context, url)
    page = context.new_page()
    try:
        if token:
            sign_in(page, token)
        page.goto(shot.path)
        page.evaluate("() => document.fonts.ready.then(() => true)")
        page.wait_for_function(_WHOLE)
        page.screenshot(path=path, full_page=shot.whole, animations="disabled", caret="hide")
    finally:
        faults.close()
    return path


def sign_in(page: Page, token: str) -> None:
    """Sign in with a static token, by the form that a person fills in; returns on the page behind it."""
    page.goto("/ui/login")
    page.get_by_label("Token").fill(token)
    page.get_by_role("button", name="Sign in").click()
    page.wait_for_url(lambda url: "/ui/login" not in url)
