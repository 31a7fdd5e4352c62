"""Puts the page together, where one is configured: its paths, which view each leads to, and what stands before all of them.

Law: a target that a visitor doesn't see is answered as one that isn't there. What changes anything is a POST that carries the form's token.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from flask import Flask, Response, request
from werkzeug.exceptions import HTTPException

from handler.config.instance_target import configured_as
from handler.config.secrets import Accepting
from handler.config.settings import Settings
from handler.model.errors import AnnealError, Problem
from handler.queues import Queue
from handler.web.page import site_pages, target_pages
from handler.web.page.access import PageAccess, SignInRequired, away
from handler.web.page.acts import ACTS, confirm, do
from handler.web.page.overview import OVERVIEW
from handler.web.page.rendering import STATIC, TYPES, asset, static
from handler.web.page.roles import Visitor
from handler.web.page.target_pages import TARGET_PAGES
from handler.web.page.views import Answers, Page
from handler.web.recent_deliveries import RecentDeliveries
from handler.web.status_api import WorkerLink
from handler.web.tokens import PathNotFound

if TYPE_CHECKING:
    from handler.web.page.live_feed import LiveFeed

_CSP = {
    "default-src": "'none'",
    "script-src": "'self'",
    "style-src": "'self'",
    "img-src": "'self'",
    "connect-src": "'self'",
    "form-action": "'self'",
    "base-uri": "'none'",
    "frame-ancestors": "'none'",
}
"""What a browser may do with a page: run our one script, show our own style and pictures, send forms to us; nothing else."""
PAGE_HEADERS = {
    "Content-Security-Policy": "; ".join(f"{kind} {source}" for kind, source in _CSP.items()),
    "Referrer-Policy": "same-origin",  # without any, browsers send `Origin: null` with forms
    "Cross-Origin-Opener-Policy": "same-origin",
}
_LOG = logging.getLogger("anneal.page")
_FOREVER = "public, max-age=31536000, immutable"
Route = Callable[..., Response]


def add_page(app: Flask, page: Page) -> None:
    """Add the page to an application."""
    for path, view in site_pages.PAGES.items():
        _add(app, page, path, "GET", _signed_in(page, view))
    for name, each in TARGET_PAGES.items():
        _add(app, page, f"/ui/targets/<target>/{name}".rstrip("/"), "GET", _of_target(page, each))
    for act in ACTS.values():
        for method, step in (("GET", confirm), ("POST", do)):
            _add(app, page, f"/ui/targets/<target>/{act.name}", method, _of_target(page, partial(step, act=act)))
    for route in page.access.routes():
        _add(app, page, route.rule, route.method, route.view)
    _add(app, page, "/ui/<path:path>", "GET", _nowhere)
    app.add_url_rule(f"{STATIC}<digest>/<name>", endpoint="static", view_func=_static, methods=["GET"], provide_automatic_options=False)


def _add(app: Flask, page: Page, path: str, method: str, view: Route) -> None:
    shown = partial(_shown, page, view)
    app.add_url_rule(path, endpoint=f"{method} {path}", view_func=shown, methods=[method], provide_automatic_options=False)


def _shown(page: Page, view: Route, **given: Any) -> Response:
    """Answer, errors as pages; a visitor who must sign in is led there and back."""
    try:
        response = view(**given)
    except SignInRequired as refusal:
        response = away(page.access.sign_in_path(request)) if request.method == "GET" else _error(page, refusal)
    except AnnealError as refusal:
        response = _error(page, refusal)
    except HTTPException:
        raise
    except Exception:  # noqa: BLE001 - our mistake is a page, too, without its inside
        _LOG.exception("a page failed", extra={"fields": {"path": _rule()}})
        response = _problem_page(page, 500)
    response.headers.update(PAGE_HEADERS)
    return response


def _error(page: Page, refusal: AnnealError) -> Response:
    status = getattr(refusal, "status", 500)
    fields = {"path": _rule(), "code": refusal.code, "seen": str(refusal)}
    _LOG.warning("a page was refused", extra={"fields": fields})
    return _problem_page(page, status, refusal.problems)


def _rule() -> str:
    return request.url_rule.rule if request.url_rule else ""


def _problem_page(page: Page, status: int, problems: Sequence[Problem] = ()) -> Response:
    try:
        visitor = page.access.visitor(request)
    except AnnealError:
        visitor = None
    return page.html(visitor, "error.html", status=status, problems=problems, number=status)


def _signed_in(page: Page, view: Callable[[Page, Visitor], Response]) -> Route:
    def seen() -> Response:
        visitor = page.access.visitor(request)
        return _settled(page, view(page.begun(), visitor), visitor)

    return seen


def _of_target(page: Page, view: Callable[..., Response]) -> Route:
    def seen(target: str) -> Response:
        visitor = page.access.visitor(request)
        found = configured_as(page.settings, target) if visitor.sees(target) else None
        if found is None:
            raise PathNotFound.of(f"target {target[:64]}", "isn't configured, or isn't yours to see")
        return _settled(page, view(page.begun(), visitor, found), visitor)

    return seen


def _settled(page: Page, response: Response, visitor: Visitor) -> Response:
    page.access.settled(response, visitor)
    return response


def _static(digest: str, name: str) -> Response:
    """Serve a file; under another version's digest, as replicas are replaced one by one, it isn't kept."""
    if name not in TYPES:
        raise PathNotFound.of("static file", "there is none of this name")
    kept = {"Cache-Control": _FOREVER} if asset(name) == f"{STATIC}{digest}/{name}" else {}
    return Response(static(name), content_type=TYPES[name], headers=kept)


def _nowhere(path: str) -> Response:
    raise PathNotFound.of(f"page {path[:64]}", "isn't there")


def add_configured(
    app: Flask,
    settings: Settings,
    secrets: Accepting,
    queue: Queue,
    worker: WorkerLink,
    recent: RecentDeliveries,
    failed: Callable[[], None],
    *,
    streams: bool,
) -> None:
    """Add the page that `settings.page` asks for. `failed`: counts wrong tokens; `streams`: changes come as events."""
    assert settings.page, "no page is configured"  # noqa: S101 - its caller asks first

    access = PageAccess(settings.page, secrets, failed)
    feed = _feed(settings, worker) if streams else None
    add_page(app, Page(settings, access, Answers(worker.ask), queue, recent, feed))


def _feed(settings: Settings, worker: WorkerLink) -> LiveFeed:
    """Make what sends changes to open pages; it stands on the server's own loop, which functions don't have."""
    from handler.web.page.live_feed import LiveFeed  # noqa: PLC0415 - see above

    def render(topic: str, data: Any) -> Mapping[str, str]:
        target = configured_as(settings, topic)
        return site_pages.rows(data) if topic == OVERVIEW or target is None else target_pages.fragments(target, data)

    return LiveFeed(worker.ask, render, [target.name for target in settings.targets])
