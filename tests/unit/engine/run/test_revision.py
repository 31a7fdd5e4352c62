"""Which commit a run aims at; and what it knows of it when a look at the git host fails in between."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace

import pytest

from handler.app.build import Handler
from handler.config.git_settings import Revision
from handler.engine.reconcile import reconcile
from handler.engine.run import revision
from handler.engine.run.context import Round, RunContext
from handler.engine.run.errors import RequestRefused
from handler.engine.run.refusals import inputs_of
from handler.model.errors import GitUnavailable, RefNotFound
from handler.model.event import Job
from handler.model.refs import Head
from handler.model.result import Outcome, Result
from handler.model.tree import Tree
from handler.state.record import Pin, Refusal
from tests.fakes.engine import pushed
from tests.fakes.git_host import GitHost

pytestmark = pytest.mark.slow

NOON = "2026-03-01T12:00:00Z"
OLD, PUSHED, UNKNOWN = "d" * 40, "e" * 40, "f" * 40


@dataclass
class Source:
    """A git host that answers a look by `known` where an older answer will do, else by `now`; `fetches`: raises what goes wrong there."""

    host: GitHost
    now: Callable[[], str]
    known: str = ""
    fetches: Callable[[str], None] = lambda _: None
    looks: list[float] = field(default_factory=list)

    def head(self, _: Revision, since: float = math.inf) -> Head:
        self.looks.append(since)
        return Head(self.known if self.known and since != math.inf else self.now())

    def fetch(self, sha: str, path: str = "") -> Tree:
        self.fetches(sha)
        if sha not in self.host.commits:
            raise RefNotFound.of(sha, "the host no longer has it")
        return self.host.tree(sha)

    def recheck(self, sha: str, path: str = "") -> None:
        """Nothing here is signed."""


def leave(handler: Handler, **parts: object) -> None:
    """Let the record be as another run has left it."""
    handler.store(handler.target("shop")).update(lambda state: replace(state, **parts))  # type: ignore[arg-type]  # keywords


def run_of(handler: Handler, source: Source, job: Job) -> RunContext:
    deps = handler.dependencies("shop")
    deps.preparer.source, deps.preparer.recorded = source, None
    run = RunContext(deps, job, threading.Event(), "shop.chooses", Round(deps.clock()))
    run.read()
    return run


def result_of(handler: Handler, source: Source, job: Job) -> Result:
    deps = handler.dependencies("shop")
    deps.preparer.source, deps.preparer.recorded = source, None
    return reconcile(deps, job)


def failing(error: Exception) -> Callable[..., str]:
    def fail(*_: object) -> str:
        raise error

    return fail


def test_a_run_aims_at_the_head(handler: Handler, host: GitHost) -> None:
    newer = pushed(host, "2")
    run = run_of(handler, Source(host, lambda: newer), Job("shop", "tick"))
    revision.choose(run)
    found = run.revision
    assert (found.commit, found.head, found.named, found.refused, found.behind) == (newer, newer, Head(newer), False, False)


def test_an_older_answer_serves_where_it_is_the_recorded_commit_and_is_asked_again_where_it_is_not(handler: Handler, host: GitHost) -> None:
    applied, newer = host.head, pushed(host, "2")
    job = Job("shop", "tick", asked=time.monotonic())
    same, other = Source(host, lambda: newer, known=applied), Source(host, lambda: newer, known=OLD)
    found = []
    for source in (same, other):
        run = run_of(handler, source, job)
        revision.choose(run)
        found.append((run.revision.commit, len(source.looks)))
    assert found == [(applied, 1), (newer, 2)]


def test_a_push_that_the_host_does_not_show_is_looked_for_again_also_if_the_second_look_fails(handler: Handler, host: GitHost) -> None:
    source = Source(host, failing(RefNotFound.of("main", "isn't there")), known=OLD)
    result = result_of(handler, source, Job("shop", "push", hint=PUSHED, asked=time.monotonic()))
    assert (result.outcome, result.who, len(source.looks)) == (Outcome.FAILED, "author", 2)
    assert result.again is not None
    assert (result.again.hint, result.again.looks) == (PUSHED, 1)


def test_a_pin_holds_while_the_head_reads_the_same(handler: Handler, host: GitHost) -> None:
    applied, newer = host.head, pushed(host, "2")
    source = Source(host, lambda: newer)
    away = handler.dependencies("shop").preparer.reads_at(newer)
    leave(handler, pin=Pin(applied, away, "ann", "kept", NOON))
    run = run_of(handler, source, Job("shop", "tick"))
    revision.choose(run)
    assert (run.revision.commit, run.revision.head) == (applied, newer)
    leave(handler, pin=Pin(applied, "0" * 64, "ann", "kept", NOON))
    run = run_of(handler, source, Job("shop", "tick"))
    revision.choose(run)
    assert run.revision.commit == newer


def test_a_failure_to_compare_a_head_with_its_pin_is_recorded_as_the_heads(handler: Handler, host: GitHost) -> None:
    applied, newer = host.head, pushed(host, "2")
    leave(handler, pin=Pin(applied, "0" * 64, "ann", "kept", NOON))
    down = failing(GitUnavailable.of("https://git.example.com", "doesn't answer"))
    result = result_of(handler, Source(host, lambda: newer, fetches=down), Job("shop", "tick"))  # type: ignore[arg-type]  # it raises
    assert (result.outcome, result.commit, result.recorded) == (Outcome.FAILED, newer, True)
    assert handler.store(handler.target("shop")).read().state.history[0].commit == newer  # type: ignore[union-attr]  # it has run


def test_a_failure_to_compare_a_commit_with_what_is_refused_is_recorded_as_its_own(handler: Handler, host: GitHost) -> None:
    """The pinned commit's, not the head's."""
    applied, newer = host.head, pushed(host, "2")
    deps = handler.dependencies("shop")
    away = deps.preparer.reads_at(newer)
    state = handler.store(handler.target("shop")).read().state
    assert state
    refusal = Refusal(OLD, inputs_of(deps.target), "0" * 64, ("shop",))
    leave(handler, pin=Pin(applied, away, "ann", "kept", NOON), status=replace(state.status, phase="failed", refusal=refusal))

    def down_for_the_pinned(sha: str) -> None:
        if sha == applied:
            raise GitUnavailable.of("https://git.example.com", "doesn't answer")

    result = result_of(handler, Source(host, lambda: newer, fetches=down_for_the_pinned), Job("shop", "tick"))
    assert (result.outcome, result.commit) == (Outcome.FAILED, applied)


@pytest.mark.parametrize("drift", [False, True])
def test_while_the_head_is_refused_a_drift_run_aims_at_the_recorded_commit(handler: Handler, host: GitHost, drift: bool) -> None:
    applied, newer = host.head, pushed(host, "2")
    deps = handler.dependencies("shop")
    state = handler.store(deps.target).read().state
    assert state
    leave(handler, status=replace(state.status, phase="failed", refusal=Refusal(newer, inputs_of(deps.target))))
    run = run_of(handler, Source(host, lambda: newer), Job("shop", "drift" if drift else "tick"))
    revision.choose(run)
    found = run.revision
    assert (found.commit, found.head, found.refused, found.behind) == (applied if drift else newer, newer, True, drift)


def test_an_explicit_commit_is_one_that_the_target_ran_or_is_forced(handler: Handler, host: GitHost) -> None:
    applied, newer = host.head, pushed(host, "2")
    source, chosen = Source(host, lambda: newer), []
    for job in (Job("shop", "oneoff", commit=applied), Job("shop", "oneoff", commit=UNKNOWN, force=True)):
        run = run_of(handler, source, job)
        revision.choose(run)
        chosen.append((run.revision.commit, run.revision.head))
    assert chosen == [(applied, newer), (UNKNOWN, newer)]
    with pytest.raises(RequestRefused):
        revision.choose(run_of(handler, source, Job("shop", "oneoff", commit=UNKNOWN)))


def test_a_forced_commit_that_the_host_does_not_have_is_the_requests_mistake(handler: Handler, host: GitHost) -> None:
    before = handler.store(handler.target("shop")).read().state
    result = result_of(handler, Source(host, lambda: host.head), Job("shop", "oneoff", commit=UNKNOWN, force=True, run="shop.asked"))
    after = handler.store(handler.target("shop")).read().state
    assert (result.outcome, result.code, result.commit) == (Outcome.REFUSED, "ref-not-found", "")
    assert before
    assert after
    assert (after.status, after.commit) == (before.status, before.commit)
