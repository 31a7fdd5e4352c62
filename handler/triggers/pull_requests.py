"""What the providers' deliveries about pull requests share: an Event of one, a note of what plans nothing, the text that asks for a plan.

Law: of a payload only the repository's URLs, the number and a comment's id are taken. A comment's text is only looked at to ignore at once
what asks for nothing; the host is asked for it again before anything is planned.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any

from handler.model.event import PULL_REQUEST, Event
from handler.model.pull_request import COMMAND
from handler.triggers import payload

PULL, COMMENT = "pull_request", "issue_comment"
"""What GitHub calls its events, and Gitea after it."""
TALK = f"a comment asks for a plan only when its whole text is `{COMMAND}`"
ISSUE = "comments ask for something on pull requests alone"
MAX_ID = 10**19
"""A comment's id is lower; hosts count in 64 bits."""
_OF_ONE = re.compile(r"(?:git\.)?(?:pull_?request|pr)[_:.]")
"""How the names of hosts' events about pull requests begin."""


@dataclass(frozen=True, slots=True)
class Sent:
    """A delivery, of which the event isn't known yet."""

    provider: str
    delivery: str
    actor: str

    def other(self, note: str) -> Event:
        """Return the Event of what asks for nothing."""
        return Event(self.provider, "other", self.delivery, actor=self.actor, note=note)

    def plan(self, urls: tuple[str, ...], number: int, comment: str = "") -> Event:
        """Return the Event of a pull request; `urls`: what its repository is called. Raises BadPayload: it isn't called anything."""
        named = payload.urls(*urls)
        return Event(self.provider, PULL_REQUEST, self.delivery, named, actor=self.actor, pull_request=number, comment=comment)


def asks(comment: dict[str, Any], key: str) -> bool:
    """Say whether a comment asks for the plan. `key`: where its text is."""
    return payload.text(comment, key, sys.maxsize).strip() == COMMAND


def commented(document: dict[str, Any], issue: dict[str, Any], sent: Sent, urls: Callable[[dict[str, Any]], tuple[str, ...]]) -> Event:
    """Read a comment on a pull request as GitHub sends it, and Gitea after it. Raises BadPayload."""
    action, comment = payload.event_name(payload.text(document, "action"), "action"), payload.section(document, "comment")
    if action != "created":
        return sent.other(payload.unasked(f"{COMMENT} {action}"))
    if not asks(comment, "body"):
        return sent.other(TALK)
    return sent.plan(urls(document), payload.number(issue, "number"), comment_id(comment))


def named_by(keys: Collection[str]) -> str | None:
    """Return the name that GitHub, and Gitea after it, has for an event with these keys; None: it's another."""
    if {"action", "issue", "comment"} <= set(keys):
        return COMMENT
    return PULL if {"action", "number", "pull_request"} <= set(keys) else None


def comment_id(comment: dict[str, Any]) -> str:
    """Return the id of a comment."""
    return str(payload.number(comment, "id", MAX_ID))


def unasked(name: str, plans: str) -> str:
    """Return the note of an event that asks for nothing. `plans`: how its host calls those of pull requests that ask for something."""
    note = payload.unasked(name)
    return f"{note}; for plans on pull requests, tick {plans}" if _OF_ONE.match(name) else note
