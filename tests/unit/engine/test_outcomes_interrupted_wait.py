"""A wait that a request for something else interrupts: what record, history and result say of it, whatever becomes of the request."""

from __future__ import annotations

from dataclasses import replace

import pytest

from handler.engine.reconcile import _ended_by
from handler.engine.run.context import RunContext
from handler.engine.waits.interrupts import Interrupts
from handler.model.errors import NewerHead
from handler.model.event import Job
from handler.model.result import Outcome
from handler.state.record import Run, WaitingFor
from handler.state.record_format import seconds_of
from tests.fakes.engine import cluster, engine, pushed, state_of
from tests.fakes.git_host import GitHost
from tests.unit.engine.waiting_run import NOON, Scene


@pytest.fixture
def scene() -> Scene:
    server, host = cluster(), GitHost()
    first = pushed(host)
    handler = engine(server, host)
    handler.run(Job("shop", "tick"))
    return Scene(server, host, handler, commit=first)


def interrupted(scene: Scene, job: Job) -> RunContext:
    """A wait for a push, on which this is asked for; its place is free again."""
    run = scene.wait(Job("shop", "push", actor="bob"))
    waits = WaitingFor(run.revision.commit, "everything", NOON)
    run.record(lambda state: replace(state, waiting=waits))
    lookout = Interrupts(run)
    scene.around.jobs = (job,)
    with pytest.raises(NewerHead) as ended:
        lookout.look()
    assert ended.value.asked
    result = _ended_by(run, ended.value)
    assert run.lease
    run.lease.hand_over()
    assert (result.outcome, result.recorded) == (Outcome.WAITING, True)
    return run


def told(scene: Scene) -> list[tuple[str, str]]:
    return [(entry.outcome, entry.commit) for entry in state_of(scene.handler).history]


def test_a_wait_that_a_refused_request_interrupts_goes_on_and_is_never_superseded(scene: Scene) -> None:
    """The record, what watches it, and the history say the same: it waits, and since when it did."""
    newer = pushed(scene.host, "2")
    mistaken = Job("shop", "replay", commit="a" * 40, rollback=True, actor="ann", run="shop.asked")
    for number in range(3):
        run = interrupted(scene, mistaken)
        state = run.state
        assert (state.status.phase, bool(state.status.next_try), state.status.failures) == ("waiting", True, 0)
        asked = replace(mistaken, run=f"shop.asked{number}")
        refused = scene.handler.run(asked)
        assert (refused.outcome, refused.again) == (Outcome.REFUSED, Job("shop", "tick"))
        assert refused.standing
        assert refused.standing.waiting == seconds_of(NOON)
    after = state_of(scene.handler)
    assert (after.attempt and after.attempt.commit, after.waiting and after.waiting.since) == (newer, NOON)
    assert told(scene) == [("refused", ""), ("waiting", newer), ("refused", ""), ("refused", ""), ("applied", scene.commit)]
    assert "something else was asked for while this commit was waited for (commit aaaaaaaaaaaa, by ann)" in after.history[1].message
    assert scene.handler.run(Job("shop", "tick")).outcome is Outcome.APPLIED
    assert [outcome for outcome, _ in told(scene)] == ["applied", "refused", "waiting", "refused", "refused", "applied"]


def test_a_wait_is_superseded_once_what_interrupts_it_opens_an_attempt(scene: Scene) -> None:
    newer = pushed(scene.host, "2")
    back = Job("shop", "replay", rollback=True, actor="ann", run="shop.back")
    interrupted(scene, back)
    assert told(scene)[0] == ("waiting", newer)
    assert scene.handler.run(back).outcome is Outcome.APPLIED
    assert told(scene) == [("applied", scene.commit), ("superseded", newer), ("applied", scene.commit)]
    entry = state_of(scene.handler).history[1]
    assert (entry.actor, entry.trigger) == ("bob", "push")
    assert entry.message.endswith(f"(a rollback, by ann); overtaken by {scene.commit[:12]}")


def test_a_commit_that_failed_before_isnt_superseded(scene: Scene) -> None:
    """It had its end before another one came."""
    pushed(scene.host, "2")
    run = interrupted(scene, Job("shop", "replay", commit="a" * 40, actor="ann"))
    failed = Run("shop.failed", "tick", "failed", NOON, run.revision.commit)
    run.deps.store.update(lambda state: replace(state, history=(failed, *state.history)))
    mended = pushed(scene.host, "3")
    assert scene.handler.run(Job("shop", "push")).outcome is Outcome.APPLIED
    assert told(scene) == [
        ("applied", mended),
        ("failed", run.revision.commit),
        ("waiting", run.revision.commit),
        ("applied", scene.commit),
    ]


def test_a_wait_that_a_newer_head_ends_after_a_refused_one_is_superseded(scene: Scene) -> None:
    """What became of another commit in between says nothing of its attempt, and neither does that the wait went on and was ended again."""
    waited = pushed(scene.host, "2")
    interrupted(scene, Job("shop", "replay", commit="a" * 40, actor="ann"))
    scene.around.jobs = ()
    run = replace(scene.wait(Job("shop", "tick")), run="shop.second")
    broken = scene.host.commit({"shop/web.yaml": "kind: [Broken"})
    scene.host.push(broken)
    scene.around.jobs = (Job("shop", "push", hint=broken),)
    with pytest.raises(NewerHead) as ended:
        Interrupts(run).look()
    assert _ended_by(run, ended.value).outcome is Outcome.SUPERSEDED
    assert run.lease
    run.lease.hand_over()
    assert scene.handler.run(Job("shop", "push")).outcome is Outcome.FAILED
    assert told(scene)[:3] == [("failed", broken), ("superseded", waited), ("waiting", waited)]
    mended = pushed(scene.host, "3")
    assert scene.handler.run(Job("shop", "push")).outcome is Outcome.APPLIED
    assert told(scene)[:4] == [("applied", mended), ("failed", broken), ("superseded", waited), ("superseded", waited)]
