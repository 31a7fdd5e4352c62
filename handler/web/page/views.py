"""What every view of the page works with, and the frame around what it shows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from flask import Response

from handler.config.settings import Settings, Target
from handler.queues import Queue
from handler.web.page.access import PageAccess
from handler.web.page.rendering import render
from handler.web.page.roles import Visitor
from handler.web.page.worker_answers import Answers
from handler.web.recent_deliveries import RecentDeliveries

if TYPE_CHECKING:
    from handler.web.page.live_feed import LiveFeed


_NOTHING = "0"  # no feed's position


@dataclass(frozen=True, slots=True)
class Page:
    """The parts. `feed`: what open pages hear of changes by; None: they ask again. `since`: its position when a request began."""

    settings: Settings
    access: PageAccess
    answers: Answers
    queue: Queue
    recent: RecentDeliveries
    feed: LiveFeed | None
    since: str = ""

    def begun(self) -> Page:
        """Return the page for a request that begins now: what it shows is no older than what the feed has sent."""
        return replace(self, since=self.feed.position if self.feed else "")

    def seen_by(self, visitor: Visitor) -> list[str]:
        """Return the names of the targets that a visitor sees, sorted."""
        return sorted(target.name for target in self.settings.targets if visitor.sees(target.name))

    def html(
        self, visitor: Visitor | None, template: str, *, status: int = 200, topic: str = "", troubled: bool = False, **values: Any
    ) -> Response:
        """Return a page. `visitor`: None: a stranger; `topic`: of the changes that it shows, empty: it doesn't change.

        `troubled`: it shows something that couldn't be read for it: its stream begins with all that the feed knows.
        """
        csrf = self.access.csrf(visitor) if visitor else ""
        frame = {"visitor": visitor, "csrf": csrf, "topic": topic, "streams": self.since and (_NOTHING if troubled else self.since)}
        return Response(render(template, **frame, **values), status, mimetype="text/html")


PageView = Callable[[Page, Visitor], Response]
TargetPageView = Callable[[Page, Visitor, Target], Response]
