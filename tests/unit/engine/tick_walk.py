"""A recorded target, and a git host and a store for the walk of its tick: up to where it would begin to work."""

from __future__ import annotations

from typing import Any

from handler.config.git_settings import Repository, Revision
from handler.config.settings import Target
from handler.model.errors import RefNotFound
from handler.model.refs import Head
from handler.state.configmap import encode
from handler.state.record import RunStatus, State
from handler.state.store import StateStore
from tests.fakes.objects import FakeObjects
from tests.unit.state import samples

NOW = 1_900_000_000.0
URL = "https://git.example.com/acme/shop.git"
HEAD, OTHER, SETTINGS = samples.sha("a"), samples.sha("b"), "c" * 64
TARGET = Target("shop", Repository(URL), ("shop",))
GOOD = samples.blank(commit=HEAD, reads="d" * 64, settings=SETTINGS, status=RunStatus("applied", samples.NOON))


class Host:
    """A git host that shows a head and has no commit to give."""

    def __init__(self, head: str) -> None:
        self.named = head

    def head(self, revision: Revision, since: float = 0.0) -> Head:
        return Head(self.named)

    def fetch(self, sha: str, path: str = "") -> Any:
        raise RefNotFound.of(sha, "is gone")

    def recheck(self, sha: str, path: str = "") -> None:
        raise AssertionError("nothing is prepared")


class Worked(Exception):
    """The walk went beyond what an unchanged target's does."""


def works(*_: Any) -> Any:
    """Stand for what begins to work."""
    raise Worked


def stored(state: State) -> tuple[StateStore, dict[str, Any]]:
    """Write a state, whatever it holds; return its store and its metadata."""
    objects = FakeObjects()
    body = objects.create(encode(state, samples.NAMESPACE, samples.TOOLING))
    return StateStore(objects, samples.NAMESPACE, "shop", "default", samples.TOOLING), body["metadata"]
