"""One fetch serves all callers of its commit, one look at the head all that accept its age; also their errors; a wait has a timeout."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable
from dataclasses import dataclass, field

import pytest

from handler.config.git_settings import Revision
from handler.model.errors import AnnealError, GitUnavailable
from handler.model.refs import Head
from handler.model.tree import CommitInfo
from handler.source.fetch_cache import FetchCache, HeadCache, TreeCache
from handler.source.fetched_tree import FetchedTree
from handler.source.host_limits import HostLimits
from tests.patience import PATIENCE
from tests.unit.waiting import joined

ONE, TWO = "1" * 40, "2" * 40


@dataclass
class Fetched:
    """A host that counts, that can be held back, and that fails with `error`."""

    error: Exception | None = None
    seen: list[str] = field(default_factory=list)
    begun: threading.Event = field(default_factory=threading.Event)
    gate: threading.Event = field(default_factory=threading.Event)

    def __call__(self, sha: str, path: str) -> FetchedTree:
        self.seen.append(sha)
        self.begun.set()
        assert self.gate.wait(PATIENCE)
        if self.error:
            raise self.error
        return FetchedTree(CommitInfo(sha, "", "", 0), "0" * 40, {"0" * 40: (2, b"x" * 10)}, HostLimits())


@pytest.fixture
def waiting(monkeypatch: pytest.MonkeyPatch) -> threading.Semaphore:
    return joined(monkeypatch)


def ended(get: Callable[[], object], ends: list[object]) -> None:
    try:
        ends.append(get())
    except (AnnealError, ZeroDivisionError) as error:
        ends.append(error)


def fifty(host: Fetched, fetches: FetchCache, waiting: threading.Semaphore) -> list[object]:
    """Let fifty threads ask for one commit, and the host answer when all but one wait."""
    ends: list[object] = []
    threads = [threading.Thread(target=ended, args=(lambda: fetches.get(ONE, ""), ends)) for _ in range(50)]
    for thread in threads:
        thread.start()
    for _ in range(49):
        assert waiting.acquire(timeout=PATIENCE)
    host.gate.set()
    for thread in threads:
        thread.join(PATIENCE)
    assert len(ends) == 50
    return ends


def test_a_failing_fetch_fails_all_waiting_threads_and_isnt_cached(waiting: threading.Semaphore) -> None:
    host = Fetched(GitUnavailable.of("repository", "took longer than 120 s"))
    fetches = FetchCache(host, "repository", PATIENCE, TreeCache(1000))
    ends = fifty(host, fetches, waiting)
    assert all(isinstance(end, GitUnavailable) and "took longer than 120 s" in str(end) for end in ends)
    assert len({id(end) for end in ends}) == 50, "an exception belongs to one thread"
    assert host.seen == [ONE]
    host.error = None
    assert fetches.get(ONE, "").commit.sha == ONE


@pytest.mark.parametrize("kept", [1000, 1])
def test_a_commit_larger_than_the_cache_is_fetched_once_for_all_waiting_threads(waiting: threading.Semaphore, kept: int) -> None:
    host = Fetched()
    fetches = FetchCache(host, "repository", PATIENCE, TreeCache(kept))
    ends = fifty(host, fetches, waiting)
    assert len({id(end) for end in ends}) == 1
    assert host.seen == [ONE]
    fetches.get(ONE, "")
    assert len(host.seen) == (1 if kept == 1000 else 2)


@pytest.mark.slow
def test_an_unexpected_exception_is_transient_to_waiting_callers(waiting: threading.Semaphore) -> None:
    host = Fetched(ZeroDivisionError())
    ends = fifty(host, FetchCache(host, "repository", PATIENCE, TreeCache(1000)), waiting)
    assert sum(isinstance(end, ZeroDivisionError) for end in ends) == 1
    assert sum(isinstance(end, GitUnavailable) for end in ends) == 49


def test_the_wait_for_another_commits_fetch_has_a_timeout() -> None:
    host = Fetched()
    fetches = FetchCache(host, "repository", 0.01, TreeCache(1000))
    ends: list[object] = []
    first = threading.Thread(target=ended, args=(lambda: fetches.get(ONE, ""), ends))
    first.start()
    assert host.begun.wait(PATIENCE)
    for _ in range(2):
        with pytest.raises(GitUnavailable, match="repository: the host is busy with another fetch"):
            fetches.get(TWO, "")
    host.gate.set()
    first.join(PATIENCE)
    assert isinstance(ends[0], FetchedTree)
    assert host.seen == [ONE]
    assert fetches.get(TWO, "").commit.sha == TWO


def test_a_dropped_commit_is_fetched_anew_and_trim_evicts_what_exceeds_the_size_limit() -> None:
    host = Fetched()
    host.gate.set()
    fetches = FetchCache(host, "repository", PATIENCE, TreeCache(1000))
    tree = fetches.get(ONE, "")
    fetches.drop(ONE)
    fetches.drop(ONE)
    assert fetches.get(ONE, "") is not tree
    fetches.trim()
    fetches.get(ONE, "")
    assert len(host.seen) == 2
    fetches.get(ONE, "")._inflated = 1001
    fetches.trim()
    fetches.get(ONE, "")
    assert len(host.seen) == 3


def test_the_wait_for_blobs_of_a_commit_has_a_timeout() -> None:
    begun, gate = threading.Event(), threading.Event()

    def blobs(oids: object) -> dict[str, tuple[int, bytes]]:
        begun.set()
        assert gate.wait(PATIENCE)
        return {"3" * 40: (3, b"file")}

    tree = FetchedTree(CommitInfo(ONE, "", "", 0), "0" * 40, {}, HostLimits(total=0.01), blobs)
    ends: list[object] = []
    first = threading.Thread(target=ended, args=(lambda: tree.blobs(["3" * 40]), ends))
    first.start()
    assert begun.wait(PATIENCE)
    with pytest.raises(GitUnavailable, match="busy with other files"):
        tree.blobs(["4" * 40])
    gate.set()
    first.join(PATIENCE)
    assert ends == [{"3" * 40: b"file"}]


def test_repositories_that_share_a_cache_find_only_their_own_commits() -> None:
    """The same id in two repositories is two commits; what one keeps makes room for what the other brings."""
    hosts = Fetched(), Fetched()
    for host in hosts:
        host.gate.set()
    kept = TreeCache(1000)
    ours, theirs = (FetchCache(host, "repository", PATIENCE, kept) for host in hosts)
    mine = ours.get(ONE, "")
    assert theirs.get(ONE, "") is not mine
    assert ours.get(ONE, "") is mine
    theirs.drop(ONE)
    assert ours.get(ONE, "") is mine
    assert [host.seen for host in hosts] == [[ONE], [ONE]]
    small = TreeCache(1)
    ours, theirs = (FetchCache(host, "repository", PATIENCE, small) for host in hosts)
    ours.get(TWO, "")
    theirs.get(TWO, "")
    ours.get(TWO, "")
    assert hosts[0].seen == [ONE, TWO, TWO]


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


def joined_all(made: list[threading.Thread]) -> None:
    for thread in made:
        thread.join(PATIENCE)
        assert not thread.is_alive()


def test_fifty_concurrent_callers_ask_the_host_once() -> None:
    host = Asked(now=5.0)
    host.gate.clear()
    made, ends = threads(host, 50, since=5.0)
    host.gate.set()
    joined_all(made)
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
    joined_all([*first, *second])
    assert (early, late) == (["a"], ["b"] * 3)
    assert len(host.seen) == 2
    assert host.looks.get(MAIN, 5.0).commit == "b", "an older answer that lands late doesn't replace a newer one"


def test_an_unexpected_exception_is_transient_to_callers_that_wait_for_a_head(
    waiting: threading.Semaphore, monkeypatch: pytest.MonkeyPatch
) -> None:
    host, raised = Asked(now=5.0, error=ZeroDivisionError()), threading.Event()
    monkeypatch.setattr(threading, "excepthook", lambda _: raised.set())
    host.gate.clear()
    made, ends = threads(host, 2, since=5.0)
    assert waiting.acquire(timeout=PATIENCE)
    host.gate.set()
    joined_all(made)
    assert raised.is_set()
    assert [str(end) for end in ends] == ["refs/heads/main: another run asked the host for it, and failed unexpectedly; see the log"]
