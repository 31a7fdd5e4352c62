"""axe-core: what keeps people from using a page with a keyboard, a screen reader or weak eyes, found by its rules.

It is installed once from package-lock.json into the cache, outside the checkout, and put into a page by the browser's debugger: the
page's Content-Security-Policy stays as it is.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

from playwright.sync_api import Page

from infra.npminstall import installed

_RUN = "() => axe.run(document, {resultTypes: ['violations'], preload: false})"


def violations(page: Page) -> list[str]:
    """Return what axe finds on the page as it is now, a line for each element: rule and impact, element, what would help."""
    if not page.evaluate("'axe' in window"):
        page.evaluate(_source())
    found: list[dict[str, Any]] = page.evaluate(_RUN)["violations"]
    return [line for each in found for line in _lines(each)]


def _lines(violation: dict[str, Any]) -> list[str]:
    rule = f"{violation['id']} ({violation['impact']})"
    return [
        f"{rule} at {_target(node['target'])}: {violation['help']}. {' '.join(node['failureSummary'].split())}"
        for node in violation["nodes"]
    ]


def _target(path: list[str | list[str]]) -> str:
    """Write where an element is: a selector for each document or shadow root on the way."""
    return " ".join(each if isinstance(each, str) else " ".join(each) for each in path)


@cache
def _source() -> str:
    return library().read_text()


def library() -> Path:
    """Return the path of axe.min.js, installed now if the cache doesn't hold it. Raises RuntimeError: npm can't install it."""
    return installed("axe", Path(__file__).resolve().parent) / "node_modules" / "axe-core" / "axe.min.js"
