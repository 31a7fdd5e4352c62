"""What people decide: approvals, pauses, pins. Each is in the state, so every worker sees it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from handler.config.settings import HoldAbove, Prune
from handler.model.result import Outcome, Result
from handler.state.record import Suspend
from tests.e2e.api_proxy import is_object_write
from tests.e2e.documents import Document, config_map, namespace
from tests.e2e.killed_runs import Wire, kill_after
from tests.e2e.one_target import DONE, Shop, told
from tests.rooms.cluster.faulty_proxy import Handler


def maps(shop: Shop, count: int, value: str = "1") -> list[Document]:
    return [config_map(shop.name, f"c{number}", {"key": value}) for number in range(count)]


def held_by(result: Result) -> str:
    assert result.outcome is Outcome.HELD, told(result)
    assert result.plan
    assert result.plan.hold
    return result.plan.hold.id


@pytest.fixture
def careful(shop: Shop) -> Shop:
    """A shop of twelve where more than two deletions wait for approval."""
    shop.configure(prune=Prune(hold_above=HoldAbove(2, 0.1)))
    shop.push(*maps(shop, 12))
    shop.applied()
    return shop


def test_a_held_plan_waits_writes_nothing_more_and_passes_when_approved(careful: Shop) -> None:
    before = careful.versions()
    careful.push(*maps(careful, 6, "2"))
    first = held_by(careful.run())
    record = careful.recorded()
    assert held_by(careful.run("tick")) == first
    assert careful.recorded() == record
    assert careful.versions() == before
    assert careful.state().held
    careful.applied("replay", approve=first, actor="ann")
    careful.assert_converged()
    assert (careful.state().held, careful.state().approval) == (None, None)


def test_an_approval_of_another_plan_is_refused_and_nothing_goes(careful: Shop) -> None:
    careful.push(*maps(careful, 6))
    older = held_by(careful.run())
    before = careful.versions()
    careful.push(*maps(careful, 5))
    newer = held_by(careful.run())
    assert newer != older
    result = careful.run("replay", approve=older, actor="ann")
    assert (result.outcome, result.code) == (Outcome.REFUSED, "request-refused")
    assert newer in str(result.problems[0])
    assert careful.state().status.phase == "held"
    assert careful.versions() == before


def test_an_approval_does_not_cover_what_was_pushed_after_it(careful: Shop, wired: Wire) -> None:
    """The head moves between the approval and the plan: the approved deletions are of other inputs now."""
    careful.push(*maps(careful, 6))
    approved = held_by(careful.run())
    before = careful.versions()
    wire = wired()
    worker = careful.handler_at(wire.kubeconfig)

    def push_more(_: Handler) -> bool:
        careful.push(*maps(careful, 4))
        return True

    wire.meet(1, push_more, lambda method, path: method == "PUT" and "/configmaps/anneal-" in path)
    assert held_by(worker.run(careful.job("replay", approve=approved, actor="ann"))) != approved
    assert careful.versions() == before


def test_a_smaller_deletion_of_the_approved_inputs_passes(careful: Shop) -> None:
    careful.push(*maps(careful, 6))
    approved = held_by(careful.run())
    careful.kubectl.run("delete", "cm", "c11", "-n", careful.name)
    careful.applied("replay", approve=approved, actor="ann")
    careful.assert_converged()


def test_the_last_member_is_held_too(shop: Shop) -> None:
    shop.configure(prune=Prune(allow_empty=True))
    shop.push(config_map(shop.name, "last"))
    shop.applied()
    shop.documents = ()
    shop.work.remove("deploy").write("deploy/readme.md", "moved away")
    shop.work.commit("Moved away")
    shop.work.push()
    hold = held_by(shop.run())
    shop.applied("replay", approve=hold)
    assert shop.labelled() == {}


def suspend(shop: Shop, suspended: Suspend | None) -> None:
    shop.handler.store(shop.target).update(lambda state: replace(state, suspend=suspended))


PAUSE = Suspend(by="ann", reason="release freeze")


@pytest.mark.parametrize("trigger", ["push", "tick", "drift", "replay"])
def test_a_suspended_target_says_who_and_why_and_writes_nothing(shop: Shop, trigger: str) -> None:
    shop.push(*maps(shop, 2))
    shop.applied()
    suspend(shop, PAUSE)
    before = shop.versions()
    shop.push(*maps(shop, 1, "2"))
    result = shop.run(trigger, force=trigger == "replay")
    assert result.outcome is Outcome.SUSPENDED
    assert "ann" in result.message
    assert "release freeze" in result.message
    assert "anneal resume" in result.problems[0].fix
    assert shop.versions() == before
    suspend(shop, None)
    assert shop.run().outcome is Outcome.APPLIED
    shop.assert_converged()


def test_a_suspension_ends_by_itself_when_its_time_is_over(shop: Shop) -> None:
    shop.push(*maps(shop, 1))
    shop.applied()
    suspend(shop, replace(PAUSE, until="2001-01-01T00:00:00Z"))
    shop.push(*maps(shop, 2))
    shop.applied()


def test_a_suspension_between_two_stages_stops_there_and_the_next_run_goes_on(shop: Shop, wired: Wire) -> None:
    jobs = f"{shop.name}-jobs"
    shop.push(config_map(shop.name, "a"))
    shop.applied()
    older = shop.head
    shop.push(namespace(jobs), config_map(jobs, "inside"), config_map(shop.name, "b"))
    wire = wired()
    worker = shop.handler_at(wire.kubeconfig)

    def pause(handler: Handler) -> bool:
        suspend(shop, PAUSE)
        return True

    wire.meet(1, pause, lambda method, path: method == "PATCH" and f"/namespaces/{jobs}?" in path and "dryRun" not in path)
    assert worker.run(shop.job()).outcome is Outcome.SUSPENDED
    assert shop.live(namespace(jobs))
    assert shop.live(config_map(jobs, "inside")) is None
    assert shop.live(config_map(shop.name, "a")), "nothing is pruned"
    assert (shop.state().commit, bool(shop.state().attempt)) == (older, True)
    suspend(shop, None)
    assert shop.run("tick").outcome in DONE
    shop.assert_converged()


@pytest.fixture
def three(shop: Shop) -> list[tuple[str, tuple[Document, ...]]]:
    """Three commits, each deployed: (commit, its documents)."""
    made = []
    for value in ("1", "2", "3"):
        sha = shop.push(*maps(shop, 2, value))
        shop.applied()
        made.append((sha, shop.documents))
    return made


def assert_pinned(shop: Shop, commit: str, documents: tuple[Document, ...]) -> None:
    shop.documents = documents
    shop.assert_converged(commit)
    pin = shop.state().pin
    assert pin
    assert pin.commit == commit


Commits = list[tuple[str, tuple[Document, ...]]]


def test_an_explicit_older_commit_pins_and_every_kind_of_run_holds_it(shop: Shop, three: Commits) -> None:
    older, documents = three[0]
    shop.applied("replay", commit=older, actor="ann")
    assert_pinned(shop, older, documents)
    for trigger in ("tick", "push", "drift"):
        assert shop.run(trigger, hint=three[2][0]).outcome in (Outcome.UNCHANGED, Outcome.SUPERSEDED)
        assert_pinned(shop, older, documents)
    shop.kubectl.run("delete", "cm", "c0", "-n", shop.name)
    shop.applied("drift")
    assert_pinned(shop, older, documents)


def test_an_unrelated_push_keeps_the_pin_and_new_content_ends_it(shop: Shop, three: Commits) -> None:
    older, documents = three[0]
    shop.applied("replay", commit=older)
    shop.work.write("docs/readme.md", "words")
    shop.work.commit("Unrelated")
    shop.work.push()
    shop.run()
    assert_pinned(shop, older, documents)
    sha = shop.push(*maps(shop, 3, "4"))
    shop.applied()
    shop.assert_converged(sha)
    assert shop.state().pin is None


def test_unpin_returns_to_the_head(shop: Shop, three: Commits) -> None:
    shop.applied("replay", commit=three[0][0])
    shop.documents = three[2][1]
    assert shop.run("replay", unpin=True).outcome in DONE
    shop.assert_converged(three[2][0])
    assert shop.state().pin is None


def test_going_back_to_the_head_ends_the_pin(shop: Shop, three: Commits) -> None:
    shop.applied("replay", commit=three[0][0])
    shop.documents = three[2][1]
    assert shop.run("replay", commit=three[2][0]).outcome in DONE
    shop.assert_converged(three[2][0])
    assert shop.state().pin is None


def test_a_commit_nobody_knows_needs_force(shop: Shop, three: Commits) -> None:
    shop.work.git("switch", "-q", "-c", "side")
    side = shop.declare(*maps(shop, 1, "side"))
    documents = shop.documents
    shop.work.push(ref="HEAD:refs/heads/side")
    refused = shop.run("replay", commit=side)
    assert (refused.outcome, refused.code) == (Outcome.REFUSED, "request-refused")
    assert shop.state().status.phase == "applied"
    assert "--force" in refused.problems[0].fix
    shop.applied("replay", commit=side, force=True)
    assert_pinned(shop, side, documents)


def test_a_rollback_killed_in_the_middle_is_finished_by_a_tick_not_undone(shop: Shop, three: Commits, wired: Wire) -> None:
    older, documents = three[0]
    assert kill_after(shop, wired, 1, is_object_write, shop.job("replay", commit=older, actor="ann"))
    assert shop.run("tick").outcome in DONE
    assert_pinned(shop, older, documents)
