"""What a person reads of a request that no view of the page answers: HTML without a template, since the loop writes it, too."""

from __future__ import annotations

from html import escape

TYPE = "text/html; charset=utf-8"


def is_page(path: str) -> bool:
    """Whether a path is one of the page, where there is one: people ask for it, and no program."""
    return path == "/" or path.startswith("/ui/")


def html_refusal(reason: str) -> str:
    """Return a whole page. `reason`: a few words, as HTTP has them."""
    title = f"<title>{escape(reason)} · Anneal</title>"
    head = f'<meta charset="utf-8"><meta name="viewport" content="width=device-width">{title}'
    body = f'<main><h1>{escape(reason)}</h1><p><a href="/">All targets</a></p></main>'
    return f'<!doctype html><html lang="en"><head>{head}</head><body>{body}</body></html>\n'
