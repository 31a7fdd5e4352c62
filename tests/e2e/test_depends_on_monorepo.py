"""`dependsOn` inside of one repository: one push is for both, and the dependant waits until the other has recorded that very commit."""

from __future__ import annotations

import pytest

from handler.config.settings import Rollback, Wait
from handler.engine.run.errors import DependencyNotReady
from handler.model.result import Outcome, Result
from tests.e2e.documents import config_map, deployment
from tests.e2e.one_target import told
from tests.e2e.two_targets import Pair
from tests.e2e.workload_status import fated


@pytest.fixture
def pair(pair: Pair) -> Pair:
    """Let b depend on a, and both be deployed."""
    pair.configure(b={"depends_on": (pair.a.name,)})
    push(pair, "1")
    pair.applied(pair.a, pair.b)
    return pair


def push(pair: Pair, a: str = "", b: str = "") -> str:
    """Push versions of what a and b declare; without one it stays away."""
    made = [(config_map(pair.space, f"{name}-version", {"version": version}),) if version else () for name, version in (("a", a), ("b", b))]
    return pair.push(*made)


def assert_waits(result: Result, *words: str) -> None:
    assert (result.outcome, result.code) == (Outcome.WAITING, DependencyNotReady.code), told(result)
    assert all(word in result.message for word in words), result.message


def test_the_dependant_waits_for_the_very_commit_also_where_the_other_is_healthy_with_the_one_before(pair: Pair) -> None:
    sha = push(pair, "2", "2")
    assert_waits(pair.b.run(), f"git is at {sha[:12]}")
    pair.applied(pair.a)
    assert pair.b.run("tick").outcome is Outcome.APPLIED
    assert (pair.a.state().commit, pair.b.state().commit) == (sha, sha)


def test_a_commit_that_changes_only_the_dependant_waits_for_the_record_of_the_other(pair: Pair) -> None:
    sha = push(pair, "1", "2")
    assert_waits(pair.b.run(), pair.a.name)
    assert pair.a.run().outcome is Outcome.UNCHANGED, "nothing that it reads changed"
    assert pair.a.state().commit == sha
    assert pair.b.run("tick").outcome is Outcome.APPLIED


def test_a_commit_that_reads_the_same_is_recorded_and_waits_for_nothing(pair: Pair) -> None:
    sha = push(pair, "2")
    result = pair.b.run()
    assert (result.outcome, pair.b.state().commit, pair.b.state().awaits) == (Outcome.UNCHANGED, sha, None), told(result)


def test_a_paused_dependency_does_not_take_the_commit_that_was_meant_for_both(pair: Pair) -> None:
    pair.configure(a={"suspend": True})
    push(pair, "2", "2")
    assert_waits(pair.b.run(), "suspended in the configuration", f"set `suspend: false` for {pair.a.name} in anneal.yaml")


def test_after_a_way_back_of_the_other_the_bad_commit_waits_and_what_mends_it_goes(pair: Pair) -> None:
    pair.configure(a={"wait": Wait(timeout=3.0, progress_timeout=3.0), "rollback": Rollback(on_failure=True)})
    pair.applied(pair.a)
    bad = fated(deployment(pair.space, "web"), "crash-loop", replicas=1)
    good = pair.a.state().commit
    pair.push((bad,), (config_map(pair.space, "b-version", {"version": "2"}),))
    assert pair.a.run().outcome is Outcome.ROLLED_BACK
    assert_waits(pair.b.run(), f"it went back to {good[:12]}", f"anneal unpin {pair.a.name}")
    push(pair, "3", "3")
    pair.applied(pair.a)
    assert pair.b.run("tick").outcome is Outcome.APPLIED


def test_a_persons_pin_on_the_other_holds_nothing_up_until_its_path_moves_on(pair: Pair) -> None:
    first = pair.a.state().commit
    push(pair, "2")
    pair.applied(pair.a)
    assert pair.a.run("oneoff", commit=first).outcome is Outcome.APPLIED
    push(pair, "2", "2")
    assert pair.b.run().outcome is Outcome.APPLIED, "pinned, as a person wanted it"
    push(pair, "3", "3")
    assert_waits(pair.b.run(), pair.a.name)
    pair.applied(pair.a)
    assert pair.b.run("tick").outcome is Outcome.APPLIED


def test_a_head_that_went_back_to_what_is_recorded_ends_the_wait(pair: Pair) -> None:
    recorded = pair.b.state().commit
    push(pair, "2", "2")
    assert_waits(pair.b.run())
    pair.work.git("push", "--force", "origin", f"{recorded}:refs/heads/main")
    assert pair.b.run("tick").outcome is Outcome.UNCHANGED
    state = pair.b.state()
    assert (state.awaits, state.status.phase) == (None, "applied")
