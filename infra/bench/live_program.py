"""`anneal serve` with live events and a stand-in for the page's templates: `python -m infra.bench.live_program --config … serve …`.

Its web process is the same module. `/ui/live?topic=…` shows every target to each visitor.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Mapping
from functools import partial
from typing import Any, cast

import jinja2
from flask import Flask, Response, request

from handler.cli import engine, main
from handler.cli import serve as serving
from handler.config.settings import Settings
from handler.web import __main__ as door
from handler.web import bootstrap
from handler.web.app import create_app
from handler.web.connection_limits import FrontLimits
from handler.web.page.live_feed import LiveFeed
from handler.web.page.overview import OVERVIEW
from handler.worker.worker import Parts

_WEB = "handler.web"  # what web processes are known by
_ROW = """<tr id="row-{{ row.target }}" class="{{ row.phase }} {{ row.health }}">
{% for name in ("target", "repository", "revision", "path", "commit", "subject", "applied", "phase", "since", "health", "healthSince") %}
<td class="{{ name }}"><a href="/ui/targets/{{ row.target }}" title="{{ row.trouble or '' }}">{{ row[name] or "-" }}</a></td>
{% endfor %}</tr>"""
_LIVE = """<section id="live" class="{{ live.phase }}"><h2>{{ live.run }} {{ live.commit }} {{ live.total }} {{ live.ended }}</h2>
<ul>{% for each in live.written %}<li class="{{ each.action }}">{{ each.object }}</li>{% endfor %}</ul>
<ul>{% for each in live.waits %}
<li>{{ each.what }}{% for line in each.missing %}<p>{{ line }}</p>{% endfor %}</li>{% endfor %}</ul></section>"""
_HEAD = """<header id="head"><h1>{{ target.target }}</h1><p>{{ target.state.commit }} {{ target.state.status.phase }}</p>
<ol>{% for run in target.state.history %}
<li>{{ run.id }} {{ run.outcome }} {{ run.subject }} {{ run.started }}</li>{% endfor %}</ol></header>"""
_TEMPLATES = jinja2.Environment(autoescape=True)
row, live, head = (_TEMPLATES.from_string(text) for text in (_ROW, _LIVE, _HEAD))


def render(topic: str, data: Any) -> Mapping[str, str]:
    """Render as much as a page does."""
    if topic == OVERVIEW:
        return {f"row-{each['target']}": row.render(row=each) for each in data}
    return {"live": live.render(live=data["live"] or {}), "head": head.render(target=data["target"])}


def _created(settings: Settings, *more: Any, **given: Any) -> Flask:
    app, names = create_app(settings, *more, **given), frozenset(target.name for target in settings.targets)
    feed = LiveFeed(given["worker"].ask, render, names)

    def opened() -> Response:
        topic, visitor = request.args.get("topic", OVERVIEW), request.args.get("visitor", "")
        return Response(status=200 if feed.open(request.environ, topic, names, time.time() + 3600, visitor) else 503)

    app.add_url_rule("/ui/live", "live", opened)
    return app


def _web() -> int:
    vars(bootstrap).update(create_app=_created, FrontLimits=partial(FrontLimits, streams=True))
    return door.main(os.environ)


def _fresh(_session: object, environ: Mapping[str, str]) -> int:
    os.execve(sys.executable, [sys.executable, "-m", "infra.bench.live_program", _WEB], environ)  # noqa: S606 - this module, no shell


if __name__ == "__main__":
    if sys.argv[1:] == [_WEB]:
        sys.exit(_web())
    vars(engine).update(Parts=cast("Any", partial(Parts, live=True)))
    vars(serving).update(_serve_door=_fresh)
    main()
