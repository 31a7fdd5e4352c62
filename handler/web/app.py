"""The WSGI application: which path leads where, and how every error is answered."""

from __future__ import annotations

import logging
from collections.abc import Callable

from flask import Flask, Response, jsonify, request
from werkzeug.exceptions import HTTPException

from handler.config.secrets import Secrets
from handler.config.settings import Settings
from handler.model.errors import AnnealError
from handler.queues import Queue
from handler.triggers import TRIGGERS
from handler.web import answers, body
from handler.web.replay import Replay
from handler.web.webhooks import Webhooks

_LOG = logging.getLogger("anneal.web")


def create_app(settings: Settings, secrets: Secrets, queue: Queue, ready: Callable[[], bool], *, max_body: int = body.MAX_BODY) -> Flask:
    """Make the door of these targets.

    `ready` says whether the worker takes jobs, `max_body` is in bytes.
    """
    app = Flask("anneal", static_folder=None)
    webhooks = Webhooks(settings.targets, secrets, queue)
    replay = Replay(settings, secrets, queue)

    def receive(provider: str) -> Response:
        body.require_json(request.headers.get("Content-Type", ""), request.headers.get("Content-Encoding", ""))
        return webhooks.receive(provider, _headers(), body.read(request.environ, max_body))

    def ask(target: str) -> Response:
        sent = body.read(request.environ, max_body)
        if sent:
            body.require_json(request.headers.get("Content-Type", ""), request.headers.get("Content-Encoding", ""))
        return replay.receive(target, request.headers.get("Authorization", ""), sent)

    for provider in TRIGGERS:
        _route(app, f"/webhooks/{provider}", "POST", receive, provider=provider)
    _route(app, "/replay/<target>", "POST", ask)
    _route(app, "/healthz", "GET", lambda: jsonify(web="ok"))
    _route(app, "/readyz", "GET", lambda: _readiness(ready()))
    app.register_error_handler(AnnealError, answers.error)
    app.register_error_handler(HTTPException, _http_error)
    app.register_error_handler(Exception, _unexpected)
    app.after_request(_with_headers)
    return app


def _route(app: Flask, path: str, method: str, view: Callable[..., Response], **fixed: str) -> None:
    app.add_url_rule(path, endpoint=path, view_func=view, methods=[method], defaults=fixed or None, provide_automatic_options=False)


def _headers() -> dict[str, str]:
    """Return the request's headers; WSGI has already joined those that occur twice."""
    return dict(request.headers.items())


def _readiness(reachable: bool) -> Response:
    response = jsonify(web="ok", worker="ok" if reachable else "unreachable")
    response.status_code = 200 if reachable else 503
    return response


def _with_headers(response: Response) -> Response:
    response.headers.update(answers.HEADERS)
    return response


def _http_error(raised: HTTPException) -> Response:
    """Werkzeug's own errors (404, 405 …) as JSON; 405 keeps its Allow header."""
    response = answers.refused(raised.code or 500, raised.name.lower().replace(" ", "-"), raised.name.lower())
    response.headers.extend((name, value) for name, value in raised.get_headers() if name == "Allow")
    return response


def _unexpected(raised: Exception) -> Response:
    """Our own mistake: logged with its trace, answered without."""
    _LOG.error("request failed", exc_info=raised, extra={"fields": {"method": request.method, "path": request.path}})
    return answers.refused(500, "internal", "internal error")
