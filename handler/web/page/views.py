"""What every view of the page works with, and the frame around what it shows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from flask import Response

from handler.config.settings import Settings, Target
from handler.model.errors import BadPayload, SenderError, ShownOtherwise
from handler.queues import Queue
from handler.web.page.access import PageAccess
from handler.web.page.rendering import render
from handler.web.page.roles import Visitor
from handler.web.recent_deliveries import RecentDeliveries
from handler.web.status_api import MOST_INSTANCES, AskWorker

if TYPE_CHECKING:
    from handler.web.page.live_feed import LiveFeed

Json = Mapping[str, Any]


class NotAnswered(SenderError, code="not-answered", status=502):
    """A question that has no answer: a cluster or a git host doesn't give one."""


class NotTheTargets(SenderError, code="not-the-targets", status=404):
    """An object or a commit that isn't the target's."""


_KINDS: Mapping[str, type[SenderError]] = {"request-refused": NotTheTargets, "no-instance": NotTheTargets}
_ACTS: Mapping[str, type[SenderError]] = {"request-refused": BadPayload, "shown-otherwise": ShownOtherwise}


@dataclass(frozen=True, slots=True)
class Answers:
    """Asks the worker. Each method raises WorkerUnavailable; NotAnswered, NotTheTargets, BadPayload, ShownOtherwise: with the reason."""

    worker: AskWorker

    def ask(self, question: str, **about: Any) -> Json:
        """Return the answer to one question."""
        answer = self.worker(question, **about)
        if trouble := answer.get("trouble"):
            kinds = _ACTS if question in ("suspend", "resume") else _KINDS
            raise kinds.get(trouble["code"], NotAnswered).of(f"target {about.get('name', '')}".strip(), str(trouble["message"]))
        return answer

    def overview(self, names: Sequence[str]) -> tuple[list[Json], list[Json]]:
        """Return a row for each of these targets, and those of retired ones."""
        found = self.ask("targets", names=list(names), retired=True) if names else {"targets": [], "retired": []}
        return list(found["targets"]), list(found["retired"])

    def target(self, name: str) -> Json:
        """Return all that is recorded of a target."""
        found: Json = self.ask("target", name=name)["target"]
        return found

    def instances(self, name: str) -> Json:
        """Return how many instances a template has, and rows of those that need a person most."""
        return self.ask("instances", name=name, globs=["*"], after="", limit=MOST_INSTANCES, worst=True)

    def live(self, name: str) -> Json | None:
        """Return the picture of a target's run under way, where the worker beside knows of one."""
        found: Json | None = self.ask("picture", name=name)["picture"]
        return found


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
