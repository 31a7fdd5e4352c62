"""What a git host shows of a commit: a state, a context, a short text. Values, and how their texts fit. Pure.

The states are ours: each host's file of `handler.feedback.git_hosts` says what it calls them. Superseded is never success.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from enum import StrEnum

from handler.model.quotation import escaped

TEXT = 140
"""Characters of a text: GitHub's limit, the smallest (docs.github.com, "Create a commit status")."""


class StatusState(StrEnum):
    """How a commit fares on a target. PENDING is the only one that isn't an end; UNTOUCHED: nothing that the target reads changed."""

    PENDING = "pending"
    SUCCESS = "success"
    FAILURE = "failure"
    HELD = "held"
    SUPERSEDED = "superseded"
    UNTOUCHED = "untouched"


@dataclass(frozen=True, slots=True)
class CommitStatus:
    """One status of one commit. `link`: the page that shows more, empty: none."""

    commit: str
    context: str
    state: StatusState
    text: str
    link: str = ""


def status_context(installation: str, target: str = "", purpose: str = "") -> str:
    """Return the name that a status goes by on its commit: `anneal/<installation>/<target>/<purpose>`, without what is empty."""
    return "/".join(part for part in ("anneal", installation, target, purpose) if part)


def hashed(context: str, most: int) -> str:
    """Return a context for a host that allows so many characters: itself, or its beginning with a hash of the whole."""
    if len(context) <= most:
        return context
    digest = hashlib.sha256(context.encode()).hexdigest()[:12]
    return f"{context[: most - len(digest) - 1]}-{digest}"


def fitting(text: str, most: int = TEXT) -> str:
    """Return a text as one line of so many characters, without what turns lines or hides in them; GitHub refuses those above U+FFFF."""
    words = " ".join("".join(each if each <= "\uffff" else "\ufffd" for each in text).split())
    line = escaped(words)
    return line if len(line) <= most else f"{line[: most - 1].rstrip()}…"
