"""What goes over the wire between a client and a made-up git host, and what both speak of."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from typing import Any
from urllib.parse import unquote

Json = Any
Schema = Mapping[str, Any]


def moment() -> str:
    """Return what time it is, as hosts write it."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


@dataclass(frozen=True)
class Request:
    """A request as it came. `path`: below the API's root, as sent; `headers`: names in lower case."""

    method: str
    path: str
    query: Mapping[str, list[str]]
    headers: Mapping[str, str]
    content: bytes

    @cached_property
    def body(self) -> Json:
        """The JSON in it; None: it has none."""
        return json.loads(self.content) if self.content else None

    def __str__(self) -> str:
        return f"{self.method} {self.path}"


@dataclass(frozen=True)
class Answer:
    """What is sent back. `text`: instead of JSON."""

    status: int
    body: Json = None
    headers: Mapping[str, str] = field(default_factory=dict)
    text: str = ""

    @property
    def content(self) -> bytes:
        return self.text.encode() if self.text else b"" if self.body is None else json.dumps(self.body).encode()


class Refused(Exception):
    """Ends the answering of a request with another answer."""

    def __init__(self, answer: Answer) -> None:
        super().__init__(f"{answer.status} {answer.body}")
        self.answer = answer


@dataclass(frozen=True)
class Asked:
    """A request that has a route. `at`: what its path names; `user`: whose token it carries."""

    request: Request
    route: Route
    at: Mapping[str, str]
    user: str

    @property
    def body(self) -> Json:
        return self.request.body

    def one(self, name: str, otherwise: str = "") -> str:
        """Return the first value of a query parameter."""
        return self.request.query.get(name, [otherwise])[0]


@dataclass(frozen=True)
class Route:
    """One operation. `path`: its parts in braces are names; `needs`: scopes of which a token has one; `query`: parameters it knows."""

    method: str
    path: str
    answer: Callable[[Asked], Answer]
    needs: tuple[str, ...] = ()
    body: Schema | None = None
    query: frozenset[str] = frozenset()

    def at(self, request: Request) -> dict[str, str] | None:
        """Return what the request's path names; None: it is another operation's."""
        wanted, given = self.path.split("/"), request.path.split("/")
        if request.method != self.method or len(wanted) != len(given):
            return None
        found = {}
        for name, value in zip(wanted, given, strict=True):
            if name.startswith("{"):
                found[name.strip("{}")] = unquote(value)
            elif name.lower() != value.lower():
                return None
        return found


@dataclass(frozen=True)
class Grant:
    """What a token may do, and whose it is."""

    user: str
    scopes: frozenset[str]


@dataclass
class PullRequest:
    """A pull request. `head`, `base`: commits; `fork`: its branch is another repository's; `state`: open, closed or merged.

    `orphan`: the repository of the fork is gone.
    """

    number: int
    head: str
    base: str
    title: str = "A change"
    source: str = "feature"
    target: str = "main"
    author: str = "ada"
    state: str = "open"
    draft: bool = False
    fork: bool = False
    orphan: bool = False
    locked: bool = False


@dataclass
class Comment:
    """A comment. `pull_request`: its number; `version`: how often it was changed; `thread`: where a host has threads."""

    number: int
    pull_request: int
    text: str
    author: str
    version: int = 0
    thread: int = 0
    deleted: bool = False
