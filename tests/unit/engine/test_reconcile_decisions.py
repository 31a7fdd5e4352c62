"""What people decide: approvals, pauses, pins. Each is in the record, so every worker sees it."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import replace

import pytest

from handler.config.settings import HoldAbove, Prune
from handler.model.event import Job
from handler.model.result import Outcome, Result
from handler.state.record import Suspend
from tests.fakes.apiserver import Call
from tests.fakes.apiserver.connection import Reply, straight
from tests.unit.engine.in_memory_shop import DONE, RECORD, Body, InMemoryShop, body, config_map
from tests.unit.engine.killed_runs import Death, Killed

pytestmark = pytest.mark.slow

PAUSE = Suspend(by="ann", reason="release freeze")


def maps(count: int, value: str = "1") -> list[Body]:
    return [config_map(f"c{number}", value) for number in range(count)]


def values(shop: InMemoryShop, count: int = 12) -> list[str]:
    """Return what lives of these objects."""
    lives = [shop.live(each) for each in maps(count)]
    return [live["data"]["key"] for live in lives if live]


def held_by(result: Result) -> str:
    assert result.outcome is Outcome.HELD, result
    assert result.plan
    assert result.plan.hold
    return result.plan.hold.id


# --- approvals
@pytest.fixture
def careful() -> InMemoryShop:
    """A shop of twelve where more than two deletions wait for approval."""
    shop = InMemoryShop()
    shop.configure(prune=Prune(hold_above=HoldAbove(2, 0.1)))
    shop.push(*maps(12))
    shop.applied()
    return shop


def test_a_held_plan_waits_writes_nothing_more_and_passes_when_approved(careful: InMemoryShop) -> None:
    careful.push(*maps(6, "2"))
    first = held_by(careful.run())
    record = careful.server.store.get(RECORD)
    assert held_by(careful.run("tick")) == first
    assert careful.server.store.get(RECORD) == record
    assert values(careful) == ["1"] * 12
    careful.applied("replay", approve=first, actor="ann")
    assert values(careful) == ["2"] * 6
    assert (careful.state().held, careful.state().approval) == (None, None)


def test_an_approval_of_another_plan_is_refused_and_nothing_goes(careful: InMemoryShop) -> None:
    careful.push(*maps(6))
    older = held_by(careful.run())
    careful.push(*maps(5))
    newer = held_by(careful.run())
    assert newer != older
    result = careful.run("replay", approve=older, actor="ann")
    assert (result.outcome, result.code) == (Outcome.REFUSED, "request-refused")
    assert newer in str(result.problems[0])
    assert careful.state().status.phase == "held"
    assert len(values(careful)) == 12


def test_an_approval_does_not_cover_what_was_pushed_after_it(careful: InMemoryShop) -> None:
    """The head moves between the approval and the plan: the approved deletions are of other inputs now."""
    careful.push(*maps(6))
    approved = held_by(careful.run())
    result = careful.meeting("PUT", RECORD.name, lambda: careful.push(*maps(4)), trigger="replay", approve=approved, actor="ann")
    assert held_by(result) != approved
    assert len(values(careful)) == 12


def test_a_smaller_deletion_of_the_approved_inputs_passes(careful: InMemoryShop) -> None:
    careful.push(*maps(6))
    approved = held_by(careful.run())
    careful.delete(config_map("c11"))
    careful.applied("replay", approve=approved, actor="ann")
    assert len(values(careful)) == 6


def test_the_last_member_is_held_too() -> None:
    shop = InMemoryShop()
    shop.configure(prune=Prune(allow_empty=True))
    shop.push(*maps(1))
    shop.applied()
    shop.push(readme="moved away")
    shop.applied("replay", approve=held_by(shop.run()))
    assert values(shop) == []


def test_an_approved_mass_deletion_that_was_killed_goes_on_without_another_approval() -> None:
    """Some are left, however many threads were deleting."""
    shop, many = InMemoryShop(), [config_map(f"c{number}") for number in range(50)]
    shop.push(*many, config_map("kept"))
    shop.applied()
    shop.push(config_map("kept"))
    approval = held_by(shop.run())
    death = Death(5, done=True)
    shop.meet = lambda call, do: death(call, do) if death.dead or call.asked.method == "DELETE" else do()
    with contextlib.suppress(Killed):
        shop.run("replay", approve=approval, actor="ann")
    assert death.dead
    shop.meet = straight
    shop.free_lease()
    left = sum(1 for each in many if shop.live(each))
    assert 0 < left < 50
    assert shop.applied("tick").counts["pruned"] == left
    assert shop.state().approval is None


# --- pauses
@pytest.fixture
def shop() -> InMemoryShop:
    return InMemoryShop.holding(*maps(2))


def suspend(shop: InMemoryShop, suspended: Suspend | None) -> None:
    shop.another().store(shop.target).update(lambda state: replace(state, suspend=suspended))


@pytest.mark.parametrize("trigger", ["push", "tick", "drift", "replay"])
def test_a_suspended_target_says_who_and_why_and_writes_nothing(shop: InMemoryShop, trigger: str) -> None:
    suspend(shop, PAUSE)
    shop.push(*maps(1, "2"))
    result = shop.run(trigger, force=trigger == "replay")
    assert result.outcome is Outcome.SUSPENDED
    assert "ann" in result.message
    assert "release freeze" in result.message
    assert "anneal resume" in result.problems[0].fix
    assert shop.written == []
    suspend(shop, None)
    assert shop.run().outcome is Outcome.APPLIED
    assert values(shop) == ["2"]


def test_a_suspension_ends_by_itself_when_its_time_is_over(shop: InMemoryShop) -> None:
    suspend(shop, replace(PAUSE, until="2001-01-01T00:00:00Z"))
    shop.push(*maps(3))
    shop.applied()
    assert len(values(shop)) == 3


def test_a_suspension_between_two_stages_stops_there_and_the_next_run_goes_on(shop: InMemoryShop) -> None:
    older = shop.host.head
    space, inside = body("more", "Namespace", space=""), config_map("inside", space="more")
    shop.configure(namespaces=("shop", "more"))
    shop.push(space, inside, *maps(1))
    assert shop.meeting("PATCH", "more", lambda: suspend(shop, PAUSE)).outcome is Outcome.SUSPENDED
    assert (bool(shop.live(space)), shop.live(inside)) == (True, None)
    assert len(values(shop)) == 2, "nothing is pruned"
    assert (shop.state().commit, bool(shop.state().attempt)) == (older, True)
    suspend(shop, None)
    shop.applied("tick")
    assert shop.live(inside)
    assert (values(shop), shop.state().commit) == (["1"], shop.host.head)


# --- pins
@pytest.fixture
def three(shop: InMemoryShop) -> tuple[str, str, str]:
    """Three commits, each deployed."""
    made = []
    for value in "123":
        made.append(shop.push(*maps(2, value)))
        shop.applied()
    return (made[0], made[1], made[2])


def assert_pinned(shop: InMemoryShop, commit: str, value: str = "1") -> None:
    assert values(shop) == [value] * 2
    assert shop.state().pin
    assert {shop.state().commit, shop.state().pin.commit} == {commit}  # type: ignore[union-attr]  # it is pinned


def assert_at_head(shop: InMemoryShop) -> None:
    assert (shop.state().commit, shop.state().pin) == (shop.host.head, None)


def test_an_explicit_older_commit_pins_and_every_kind_of_run_holds_it(shop: InMemoryShop, three: tuple[str, str, str]) -> None:
    shop.applied("replay", commit=three[0], actor="ann")
    assert_pinned(shop, three[0])
    for trigger in ("tick", "push", "drift"):
        assert shop.run(trigger, hint=three[2]).outcome in (Outcome.UNCHANGED, Outcome.SUPERSEDED)
        assert_pinned(shop, three[0])
    shop.delete(config_map("c0"))
    shop.applied("drift")
    assert_pinned(shop, three[0])


def test_an_unrelated_push_keeps_the_pin_and_new_content_ends_it(shop: InMemoryShop, three: tuple[str, str, str]) -> None:
    shop.applied("replay", commit=three[0])
    shop.host.push(shop.host.commit({**shop.host.commits[shop.host.head], "docs/readme.md": "words"}))
    shop.run()
    assert_pinned(shop, three[0])
    shop.push(*maps(3, "4"))
    shop.applied()
    assert_at_head(shop)
    assert values(shop) == ["4"] * 3


@pytest.mark.parametrize("by", ["unpin", "commit"])
def test_unpin_and_the_heads_own_commit_return_to_the_head(shop: InMemoryShop, three: tuple[str, str, str], by: str) -> None:
    shop.applied("replay", commit=three[0])
    shop.applied("replay", **({"unpin": True} if by == "unpin" else {"commit": three[2]}))
    assert_at_head(shop)
    assert values(shop) == ["3"] * 2


def test_a_commit_nobody_knows_needs_force(shop: InMemoryShop, three: tuple[str, str, str]) -> None:
    side = shop.host.commit(shop.host.commits[three[1]])
    refused = shop.run("replay", commit=side)
    assert (refused.outcome, refused.code) == (Outcome.REFUSED, "request-refused")
    assert shop.state().status.phase == "applied"
    assert "--force" in refused.problems[0].fix
    shop.applied("replay", commit=side, force=True)
    assert_pinned(shop, side, "2")


def test_a_rollback_killed_in_the_middle_is_finished_by_a_tick_not_undone(shop: InMemoryShop, three: tuple[str, str, str]) -> None:
    def die(call: Call, do: Callable[[], Reply]) -> Reply:
        if dead or (call.writes and "/namespaces/shop/configmaps/" in call.asked.path):
            if not dead:
                do()
            dead.append(True)
            raise Killed
        return do()

    dead: list[bool] = []
    shop.meet = die
    with pytest.raises(Killed):
        shop.handler.run(Job("shop", "replay", commit=three[0], actor="ann"))
    shop.meet = straight
    shop.free_lease()
    assert shop.run("tick").outcome in DONE
    assert_pinned(shop, three[0])
