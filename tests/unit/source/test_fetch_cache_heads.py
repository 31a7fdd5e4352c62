"""One request to the host serves all callers that accept its age, and no others."""

from __future__ import annotations

import math
import threading
from dataclasses import dataclass, field

import pytest

from handler.config.git_settings import Revision
from handler.model.errors import GitUnavailable, RefNotFound
from handler.model.refs import Head
from handler.source.fetch_cache import HeadCache
from tests.patience import PATIENCE
from tests.unit.waiting import joined

MAIN, OTHER = Revision(branch="main"), Revision(branch="other")


@dataclass
class Asked:
    """A host that counts, and that can be held back."""

    now: float = 0.0
    commit: str = "a"
    error: Exception | None = None
    seen: list[str] = field(default_factory=list)
    gate: threading.Event = field(default_factory=threading.Event)

    def __post_init__(self) -> None:
        self.gate.set()
        self.looks = HeadCache(self, lambda: self.now)

    def __call__(self, revision: Revision) -> Head:
        answer = Head(self.commit, revision.ref)
        self.seen.append(str(revision))
        assert self.gate.wait(PATIENCE)
        if self.error:
            raise self.error
        return answer


def test_a_head_serves_callers_that_came_before_it_was_asked_for() -> None:
    host = Asked(now=10.0)
    assert host.looks.get(MAIN, 9.0).commit == "a"
    host.commit, host.now = "b", 20.0
    assert host.looks.get(MAIN, 10.0).commit == "a"
    assert len(host.seen) == 1
    assert host.looks.get(MAIN, 10.1).commit == "b"
    assert len(host.seen) == 2
    assert host.looks.get(MAIN, 5.0).commit == "b", "the newest answer is the one that is kept"


def test_a_run_with_a_lease_asks_anew_and_others_use_its_head() -> None:
    host = Asked(now=10.0)
    host.looks.get(MAIN, 0.0)
    host.commit, host.now = "b", 11.0
    assert host.looks.get(MAIN, math.inf).commit == "b"
    assert host.looks.get(MAIN, 0.0).commit == "b"
    assert len(host.seen) == 2


def test_each_revision_has_its_own_head() -> None:
    host = Asked(now=1.0)
    assert host.looks.get(MAIN, 0.0).ref == "refs/heads/main"
    assert host.looks.get(Revision(), 0.0).ref == "refs/heads/main"
    assert host.looks.get(OTHER, 0.0).ref == "refs/heads/other"
    host.looks.get(Revision(semver="^1"), 0.0)
    host.looks.get(Revision(semver="^2"), 0.0)
    host.looks.get(Revision(tag="main"), 0.0)
    assert len(host.seen) == 5


def threads(host: Asked, count: int, since: float) -> tuple[list[threading.Thread], list[object]]:
    ends: list[object] = []

    def look() -> None:
        try:
            ends.append(host.looks.get(MAIN, since).commit)
        except GitUnavailable as error:
            ends.append(error)

    made = [threading.Thread(target=look) for _ in range(count)]
    for thread in made:
        thread.start()
    return made, ends


def ended(made: list[threading.Thread]) -> None:
    for thread in made:
        thread.join(PATIENCE)
        assert not thread.is_alive()


def test_fifty_concurrent_callers_ask_the_host_once() -> None:
    host = Asked(now=5.0)
    host.gate.clear()
    made, ends = threads(host, 50, since=5.0)
    host.gate.set()
    ended(made)
    assert ends == ["a"] * 50
    assert len(host.seen) == 1


def test_a_request_under_way_doesnt_serve_a_later_caller_that_asks_anew() -> None:
    host = Asked(now=5.0)
    host.gate.clear()
    first, early = threads(host, 1, since=5.0)
    while not host.seen:
        pass
    host.now, host.commit = 6.0, "b"
    second, late = threads(host, 3, since=5.5)
    while len(host.seen) < 2:
        pass
    host.gate.set()
    ended([*first, *second])
    assert (early, late) == (["a"], ["b"] * 3)
    assert len(host.seen) == 2
    assert host.looks.get(MAIN, 5.0).commit == "b", "an older answer that lands late doesn't replace a newer one"


@pytest.fixture
def waiting(monkeypatch: pytest.MonkeyPatch) -> threading.Semaphore:
    return joined(monkeypatch)


def test_an_error_reaches_all_waiting_callers_and_isnt_cached(waiting: threading.Semaphore) -> None:
    host = Asked(now=5.0, error=GitUnavailable.of("repository", "doesn't answer"))
    host.gate.clear()
    made, ends = threads(host, 20, since=5.0)
    for _ in range(19):
        assert waiting.acquire(timeout=PATIENCE)  # who came later would ask anew
    host.gate.set()
    ended(made)
    assert all(isinstance(end, GitUnavailable) and "doesn't answer" in str(end) for end in ends)
    assert len({id(end) for end in ends}) == 20, "an exception belongs to one thread"
    host.error = None
    assert host.looks.get(MAIN, 0.0).commit == "a"


def test_an_unexpected_exception_is_transient_to_waiting_callers(waiting: threading.Semaphore, monkeypatch: pytest.MonkeyPatch) -> None:
    host, raised = Asked(now=5.0, error=ZeroDivisionError()), threading.Event()
    monkeypatch.setattr(threading, "excepthook", lambda _: raised.set())
    host.gate.clear()
    made, ends = threads(host, 2, since=5.0)
    assert waiting.acquire(timeout=PATIENCE)
    host.gate.set()
    ended(made)
    assert raised.is_set()
    assert [str(end) for end in ends] == ["refs/heads/main: another run asked the host for it, and failed unexpectedly; see the log"]


def test_an_unexpected_exception_leaves_no_caller_waiting() -> None:
    host = Asked(error=ZeroDivisionError())
    with pytest.raises(ZeroDivisionError):
        host.looks.get(MAIN, 0.0)
    host.error = RefNotFound.of("refs/heads/main", "not on the host")
    with pytest.raises(RefNotFound):
        host.looks.get(MAIN, 0.0)
