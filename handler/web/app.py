"""The WSGI application: which path leads where, and how every error is answered."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from flask import Flask, Response, g, jsonify, request
from werkzeug.exceptions import HTTPException, NotFound

from handler import __version__
from handler.app.run_events import RunEvents
from handler.config.secrets import Accepting
from handler.config.settings import Settings
from handler.feedback.prometheus import DoorCounts
from handler.model.errors import AnnealError, WorkerUnavailable
from handler.queues import Queue
from handler.triggers import WEBHOOKS, Webhook
from handler.web import request_body, responses
from handler.web.access_log import OTHER, ROUTE
from handler.web.delivery_decision import watch
from handler.web.html_refusal import TYPE, html_refusal, is_page
from handler.web.recent_deliveries import RecentDeliveries
from handler.web.replay_endpoint import ReplayEndpoint
from handler.web.status_api import StatusApi, WorkerLink, logged
from handler.web.tokens import Tokens
from handler.web.webhooks import WebhookEndpoint

_LOG = logging.getLogger("anneal.web")


def _no_worker(question: str, **_about: Any) -> dict[str, Any]:
    raise WorkerUnavailable.of("worker", f"there is none to ask for {question}")


NO_WORKER = WorkerLink(_no_worker, lambda _request: None)
Part = Literal["webhooks", "replay", "reads", "ready", "page", "streams"]
WHOLE: frozenset[Part] = frozenset({"webhooks", "replay", "reads", "ready", "page", "streams"})
"""Which routes are served; /healthz always is. A function serves a part, and knows only the secrets of that."""


@dataclass(frozen=True, slots=True)
class Routes:
    """Which routes there are. `triggers`: the providers whose deliveries are understood, each a path. `follows_objects`: see `watch`."""

    parts: Collection[Part] = WHOLE
    triggers: Mapping[str, Webhook] = field(default_factory=lambda: WEBHOOKS)
    follows_objects: bool = True


def create_app(
    settings: Settings,
    secrets: Accepting,
    queue: Queue,
    ready: Callable[[], bool],
    *,
    worker: WorkerLink = NO_WORKER,
    metrics: DoorCounts | None = None,
    events: RunEvents | None = None,
    routes: Routes = Routes(),
) -> Flask:
    """Make the door of these targets.

    `ready` returns whether the worker takes jobs, `worker` answers questions, `metrics` counts requests, `events` takes deliveries.
    """
    app = Flask("anneal", static_folder=None)
    app.url_map.merge_slashes = False  # nothing is redirected
    events, parts = events or _events(), routes.parts
    counts = metrics or events.add("door", __version__, lambda: 0.0, lambda: 0.0)
    deliveries, tokens = RecentDeliveries(), Tokens(secrets, lambda: counts.token_failure(_rule()))
    watched = watch(settings.targets, follows_objects=routes.follows_objects)
    webhooks = WebhookEndpoint(watched, secrets, queue, deliveries, events.announce, routes.triggers)
    replay = ReplayEndpoint(settings, tokens, queue)

    def receive(provider: str) -> Response:
        return webhooks.receive(provider, dict(request.headers.items()), delivered)

    def delivered() -> bytes:
        _require_json()
        return request_body.read(request.environ, settings.webhooks.max_body)

    def asked() -> bytes:
        found = request_body.read(request.environ, settings.webhooks.max_body)
        if found:
            _require_json()
        return found

    for provider in routes.triggers if "webhooks" in parts else ():
        _route(app, f"/webhooks/{provider}", "POST", receive, provider=provider)
    if "replay" in parts:
        _route(app, "/replay/<target>", "POST", lambda target: replay.receive(target, _bearer(), asked))
    if "reads" in parts:
        _read_routes(app, StatusApi(settings, tokens, worker, deliveries, counts))
    paged = settings.page is not None and "page" in parts
    if paged:
        from handler.web.page.routes import add_configured  # noqa: PLC0415 - a door without a page doesn't load it

        add_configured(app, settings, secrets, queue, worker, deliveries, tokens.failed, streams="streams" in parts)
    if "ready" in parts:
        _route(app, "/readyz", "GET", lambda: _readiness(ready()))
    _route(app, "/healthz", "GET", lambda: jsonify(web="ok"))
    _frame(app, counts, paged=paged)
    return app


def _frame(app: Flask, counts: DoorCounts, *, paged: bool) -> None:
    """Set what happens around every view: how errors are answered, what is let in, what is counted. `paged`: there is a page."""
    app.register_error_handler(AnnealError, responses.error)
    app.register_error_handler(HTTPException, lambda raised: _http_error(raised, html=paged and is_page(request.path)))
    app.register_error_handler(Exception, _unexpected)
    app.before_request(_started)
    app.after_request(lambda response: _ended(response, counts))


def _events() -> RunEvents:
    events = RunEvents()
    events.add("log")
    return events


def _bearer() -> str:
    return request.headers.get("Authorization", "")


def _require_json() -> None:
    request_body.require_json(request.headers.get("Content-Type", ""), request.headers.get("Content-Encoding", ""))


def _read_routes(app: Flask, reads: StatusApi) -> None:
    views: dict[str, Callable[..., Response]] = {
        "/api/targets": lambda: reads.targets(_bearer(), request.args),
        "/api/targets/<target>": lambda target: reads.target(_bearer(), target),
        "/api/targets/<target>/instances": lambda target: reads.instances(_bearer(), target, request.args),
        "/api/targets/<target>/gap": lambda target: reads.gap(_bearer(), target, request.args),
        "/api/targets/<target>/orphans": lambda target: reads.orphans(_bearer(), target),
        "/api/runs/<run>": lambda run: reads.run(_bearer(), run),
        "/api/deliveries": lambda: reads.deliveries(_bearer(), request.args),
        "/api/openapi.json": lambda: reads.openapi(_bearer()),
        "/metrics": lambda: reads.metrics(_bearer()),
    }
    for path, view in views.items():
        _route(app, path, "GET", logged(path, view))


def _route(app: Flask, path: str, method: str, view: Callable[..., Response], **fixed: str) -> None:
    app.add_url_rule(path, endpoint=path, view_func=view, methods=[method], defaults=fixed or None, provide_automatic_options=False)


def _readiness(reachable: bool) -> Response:
    response = jsonify(web="ok", worker="ok" if reachable else "unreachable")
    response.status_code = 200 if reachable else 503
    return response


def _rule() -> str:
    """Name the route of this request by our own rule, never by what was sent."""
    return request.url_rule.rule if request.url_rule else OTHER


def _started() -> None:
    """Let in only paths as our rules are written: Werkzeug decodes what is percent-encoded and takes several leading slashes for one."""
    g.started = time.monotonic()
    path, raw = request.environ["PATH_INFO"], request.environ.get("RAW_URI", "")
    if path[1:2] == "/" or "%" in raw.partition("?")[0]:
        request.url_rule = None
        raise NotFound


def _ended(response: Response, metrics: DoorCounts) -> Response:
    request.environ[ROUTE] = _rule()
    metrics.request(_rule(), response.status_code, time.monotonic() - g.started)
    for name, value in responses.HEADERS.items():
        response.headers.setdefault(name, value)
    return response


def _http_error(raised: HTTPException, *, html: bool) -> Response:
    """Werkzeug's own errors (404, 405 …) as JSON, or HTML for a person; 405 keeps its Allow header."""
    if html:
        response = Response(html_refusal(raised.name), raised.code, content_type=TYPE)
    else:
        response = responses.refused(raised.code or 500, raised.name.lower().replace(" ", "-"), raised.name.lower())
    response.headers.extend((name, value) for name, value in raised.get_headers() if name == "Allow")
    return response


def _unexpected(raised: Exception) -> Response:
    """Our own mistake: logged with its trace, answered without."""
    _LOG.error("request failed", exc_info=raised, extra={"fields": {"method": request.method, "path": _rule()}})
    return responses.refused(500, "internal", "internal error")
