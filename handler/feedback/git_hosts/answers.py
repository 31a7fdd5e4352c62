"""Asks a git host's API, and reads what it answers: each look names a place, and what must stand there.

Law: an answer of another shape ends as GitUnavailable that names the place; no row looks into JSON by itself.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from handler.model.errors import GitUnavailable
from handler.model.host_answer import HostRefusal, JsonApi, Query

GONE = frozenset({404, 410})
_COMMIT = re.compile(r"[0-9a-f]{40}")
_NUMBER = re.compile(r"[0-9]{1,18}")
_NAMES_COMMIT = re.compile(r"(?<![\w/-])commit(?![\w/-])", re.IGNORECASE)
NO_COMMIT = 422
"""The status of a refusal for a commit that a host has not, as GitHub gives it: 404 says that a token doesn't see the repository."""


@dataclass(frozen=True, slots=True)
class Answered:
    """What a host has answered, or a part of it. `subject`: the API; `place`: where the part stands."""

    value: Any
    subject: str
    place: str = ""

    def part(self, *keys: str) -> Answered:
        """Return what stands at a place; its `value` is None where nothing does."""
        found = self
        for key in keys:
            if not isinstance(found.value, dict | None):
                raise found.unlike("an object")
            place = f"{found.place}.{key}" if found.place else key
            found = Answered(found.value.get(key) if found.value else None, self.subject, place)
        return found

    def text(self, *keys: str) -> str:
        """Return a text, with no half of a character in it."""
        return str(self.must(str, "a text", *keys)).encode("utf-8", "replace").decode()

    def words(self, *keys: str) -> str:
        """Return a text that needn't be there: then it is empty."""
        return "" if self.part(*keys).value is None else self.text(*keys)

    def number(self, *keys: str) -> int:
        """Return a whole number."""
        return int(self.must(int, "a number", *keys))

    def key(self, *keys: str) -> str:
        """Return how the host knows something: a number or a text, as text."""
        return str(self.number(*keys)) if isinstance(self.part(*keys).value, int) else self.text(*keys)

    def flag(self, *keys: str) -> bool:
        """Return yes or no; no, where the host doesn't say it."""
        return self.part(*keys).value is not None and bool(self.must(bool, "true or false", *keys))

    def commit(self, *keys: str) -> str:
        """Return the whole id of a commit."""
        found = self.text(*keys)
        if not _COMMIT.fullmatch(found):
            raise self.part(*keys).unlike("the whole id of a commit")
        return found

    def rows(self, *keys: str) -> list[Answered]:
        """Return the parts of a list."""
        part = self.part(*keys)
        listed = part.must(list, "a list")
        return [Answered(each, self.subject, f"{part.place}[{number}]") for number, each in enumerate(listed)]

    def first(self, *keys: str) -> Answered:
        """Return the first part of a list; its `value` is None where the list is empty."""
        part = self.part(*keys)
        return next(iter(part.rows()), Answered(None, self.subject, f"{part.place}[0]"))

    def must(self, kind: type, words: str, *keys: str) -> Any:
        """Return what stands at a place and is of a type; true and false are no numbers."""
        part = self.part(*keys)
        if not isinstance(part.value, kind) or (kind is int and isinstance(part.value, bool)):
            raise part.unlike(words)
        return part.value

    def unlike(self, words: str) -> GitUnavailable:
        """Return the error of a part that isn't what it must be."""
        place = f"`{self.place}`" if self.place else "content"
        seen = f"has no {place}" if self.value is None else f"has as {place} something else than {words}"
        return GitUnavailable.of(self.subject, f"its answer {seen}")


class Asking:
    """An API, and how its answers are read. `needs`: what a token must be allowed to do; each raises as `JsonApi.send`."""

    def __init__(self, api: JsonApi) -> None:
        self.subject = api.subject
        self._api = api

    def get(self, path: str, query: Query | None = None, needs: str = "") -> Answered:
        """Return what is at a path."""
        return Answered(self._api.get(path, query, needs), self.subject)

    def send(self, method: str, path: str, body: Any = None, query: Query | None = None, needs: str = "") -> Answered:
        """Send one request, and return what is answered."""
        return Answered(self._api.send(method, path, body, query, needs), self.subject)

    def find(self, path: str, query: Query | None = None, needs: str = "") -> Answered | None:
        """Return what is at a path; None: nothing is (404, 410, or no content)."""
        return self.change("GET", path, None, query, needs)

    def change(self, method: str, path: str, body: Any = None, query: Query | None = None, needs: str = "") -> Answered | None:
        """Send one request about what may be gone, and return what is answered; None: it is gone."""
        try:
            answer = self._api.send(method, path, body, query, needs)
        except HostRefusal as refusal:
            if refusal.status in GONE:
                return None
            raise
        return None if answer is None else Answered(answer, self.subject)


@contextmanager
def about_commit(commit: str) -> Iterator[None]:
    """Let a refusal that names the commit as what isn't there have the status of that (`NO_COMMIT`)."""
    try:
        yield
    except HostRefusal as refusal:
        if refusal.status in GONE and (commit in refusal.said or _NAMES_COMMIT.search(refusal.said)):
            refusal.status = NO_COMMIT
        raise


def is_number(text: str) -> bool:
    """Whether a text is a number as hosts count: fit for a path."""
    return bool(_NUMBER.fullmatch(text))
