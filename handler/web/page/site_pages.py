"""The pages that are of no single target: all targets, what git hosts have sent, and the stream of changes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from flask import Response, request
from werkzeug.exceptions import MethodNotAllowed

from handler.model.errors import WorkerUnavailable
from handler.model.instance import is_instance
from handler.web.page.overview import ORDERS, OVERVIEW, choice, link, overview, row_view
from handler.web.page.rendering import render
from handler.web.page.roles import Visitor
from handler.web.page.views import NotAnswered, Page, PageView

_DELIVERIES = 100


def targets(page: Page, visitor: Visitor) -> Response:
    """Show all targets that a visitor sees."""
    asked, (known, gone) = choice(request.args), page.answers.overview(page.seen_by(visitor))
    retired = [each for each in gone if visitor.sees(str(each["target"]))]
    troubled = any(row["trouble"] for row in known)
    shown: dict[str, Any] = {"asked": asked, "overview": overview(known, asked), "orders": ORDERS, "link": partial(link, asked)}
    return page.html(visitor, "overview.html", topic=OVERVIEW, troubled=troubled, retired=retired, **shown)


def rows(changed: Sequence[Mapping[str, Any]]) -> Mapping[str, str]:
    """Return the rows of targets that have changed, by the ids of their elements."""
    return {f"row-{row['target']}": render("row.html", view=row_view(row)) for row in changed}


def deliveries(page: Page, visitor: Visitor) -> Response:
    """Show what git hosts have sent, and what was decided of it."""
    names = page.seen_by(visitor)
    here = page.recent.shown(frozenset(names).__contains__, everything=visitor.sees_everything, limit=_DELIVERIES)
    kept = _recorded(page, names)
    return page.html(visitor, "deliveries.html", here=here, since=page.recent.since, recorded=kept["recorded"], unread=kept["unread"])


def _recorded(page: Page, names: Sequence[str]) -> Mapping[str, Any]:
    """Return what targets have recorded of deliveries; where the worker is away nothing, and why: what came is here."""
    try:
        return page.answers.ask("deliveries", names=names)
    except (WorkerUnavailable, NotAnswered) as error:
        return {"recorded": [], "unread": [{"target": each.subject, "message": each.message} for each in error.problems]}


def live(page: Page, visitor: Visitor) -> Response:
    """Keep the connection for the changes of a topic; 503: there is no feed, no loop or no room, so that the page polls.

    Raises MethodNotAllowed: a HEAD has no body, and would keep a stream's place.
    """
    if request.method != "GET":
        raise MethodNotAllowed(["GET"])
    topic = request.args.get("topic", OVERVIEW)
    seen = frozenset([*page.seen_by(visitor), *([topic] if is_instance(topic) and visitor.sees(topic) else ())])
    if page.feed and page.feed.open(request.environ, topic, seen, visitor.until, visitor.name, request.args.get("since", "")):
        return Response(status=200)  # never sent: the loop sends a head of its own
    return Response(status=503, headers={"Retry-After": "5"})


PAGES: Mapping[str, PageView] = {"/": targets, "/ui/deliveries": deliveries, "/ui/live": live}
