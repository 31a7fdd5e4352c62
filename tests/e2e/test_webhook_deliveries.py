"""Deliveries come twice, late, in another order or not at all, and branches are forced: git is the linearizer."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from dataclasses import replace

import pytest

from handler.app.build import Handler
from handler.engine.run.push_lag import WAITS
from handler.model.event import Delivery
from handler.model.result import Outcome, Result
from handler.queues.pending import Work
from tests.e2e.api_proxy import Wired
from tests.e2e.documents import config_map, service
from tests.e2e.one_target import DONE, Shop, told


class Schedule:
    """A seeded course of pushes, forces, and deliveries that arrive as a bad network would bring them."""

    def __init__(self, shop: Shop, seed: int) -> None:
        self.shop = shop
        self.random = random.Random(seed)
        self.undelivered: list[str] = []
        self.commits: list[tuple[str, tuple[dict[str, object], ...]]] = []

    def step(self) -> None:
        act = self.random.choice([self.push, self.push, self.deliver, self.deliver, self.drop, self.force, self.drift])
        act()

    def push(self) -> None:
        count, value = self.random.randrange(1, 5), str(self.random.randrange(1000))
        kept = [config_map(self.shop.name, f"c{number}", {"key": value}) for number in range(count)]
        sha = self.shop.push(service(self.shop.name, "web"), *kept)
        self.commits.append((sha, self.shop.documents))
        self.undelivered.append(sha)

    def force(self) -> None:
        """Force the branch back to an older commit."""
        if self.commits:
            sha, documents = self.random.choice(self.commits)
            self.shop.work.git("reset", "-q", "--hard", sha)
            self.shop.work.push(force=True)
            self.shop.documents = documents
            self.undelivered.append(sha)

    def deliver(self) -> None:
        """Deliver any of what was pushed, perhaps again: what runs must be the head, whatever the hint."""
        if self.undelivered:
            hint = self.random.choice(self.undelivered)
            if self.random.random() < 0.5:
                self.undelivered.remove(hint)
            head = self.shop.head
            result = self.shop.run(hint=hint)
            assert result.outcome in (*DONE, Outcome.SUPERSEDED), told(result)
            assert self.shop.state().commit == head

    def drop(self) -> None:
        if self.undelivered:
            self.undelivered.remove(self.random.choice(self.undelivered))

    def drift(self) -> None:
        if self.commits:
            assert self.shop.run("drift").outcome in DONE


@pytest.mark.parametrize("seed", range(4))
def test_lost_late_and_replayed_webhook_deliveries_converge_at_the_head(shop: Shop, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("handler.engine.run.push_lag.WAITS", (0.01,))
    schedule = Schedule(shop, seed)
    schedule.push()
    for _ in range(16):
        schedule.step()
    assert shop.run("tick").outcome in DONE
    shop.assert_converged()


def test_a_late_delivery_of_an_older_commit_does_nothing(shop: Shop) -> None:
    older = shop.push(config_map(shop.name, "a", {"key": "older"}))
    shop.applied(hint=older)
    newer = shop.push(config_map(shop.name, "a", {"key": "newer"}))
    shop.applied(hint=newer)
    result = shop.run(hint=older)
    assert (result.outcome, result.next_try) == (Outcome.SUPERSEDED, 0.0), told(result)
    assert "deployed earlier" in result.message
    assert shop.run(hint=newer).outcome is Outcome.UNCHANGED
    shop.assert_converged(newer)


def test_a_branch_forced_back_to_what_was_deployed_is_looked_for_again(shop: Shop) -> None:
    older = shop.push(config_map(shop.name, "a", {"key": "older"}))
    shop.applied()
    shop.applied(hint=shop.push(config_map(shop.name, "a", {"key": "newer"})))
    first = shop.handler.run(shop.job(hint=older))
    assert first.outcome is Outcome.LAGGING, told(first)
    assert first.message.endswith("; looked at again in 1 s")
    shop.work.git("reset", "-q", "--hard", older)
    shop.work.push(force=True)
    assert shop.handler.run(shop.job(hint=older, looks=1)).outcome is Outcome.APPLIED
    shop.documents = (config_map(shop.name, "a", {"key": "older"}),)
    shop.assert_converged(older)


def test_a_commit_that_the_host_never_shows_is_superseded_after_five_looks(shop: Shop, wired: Callable[[], Wired]) -> None:
    shop.push(config_map(shop.name, "a"))
    shop.applied()
    wire = wired()
    handler, job = shop.handler_at(wire.kubeconfig), shop.job(hint="f" * 40)
    ends: list[Result] = []
    handler.run(shop.job("tick"))
    wire.forget()
    while not ends or ends[-1].outcome is Outcome.LAGGING:
        began = time.time()
        ends.append(handler.run(job))
        job = Work.of(job).again().job
        assert ends[-1].outcome is not Outcome.LAGGING or ends[-1].next_try >= began + WAITS[len(ends) - 1]
    assert [end.outcome for end in ends] == [*[Outcome.LAGGING] * 4, Outcome.SUPERSEDED]
    assert wire.writes == []


def test_a_push_that_the_host_shows_late_is_looked_for_again(shop: Shop) -> None:
    shop.push(config_map(shop.name, "a"))
    shop.applied()
    sha = shop.declare(config_map(shop.name, "a", {"key": "2"}))
    first = shop.handler.run(shop.job(hint=sha))
    assert (first.outcome, first.message[-20:]) == (Outcome.LAGGING, "looked at again in 1 s"[-20:]), told(first)
    shop.work.push()
    assert shop.handler.run(shop.job(hint=sha, looks=1)).outcome is Outcome.APPLIED
    shop.assert_converged(sha)


def late(shop: Shop, before: Callable[[], object], trigger: str = "push") -> Result:
    """Deliver a push that the host doesn't show yet; `before` is what it shows. Return how the first run ended; a later one applies it."""
    before()
    sha = shop.declare(config_map(shop.name, "a", {"key": "late"}))
    began = time.time()
    first = shop.handler.run(shop.job(trigger, hint=sha, actor="ann"))
    assert first.again == shop.job("push", hint=sha, actor="ann", looks=1), told(first)
    assert first.again_at >= began + WAITS[0]
    second = shop.handler.run(first.again)
    assert second.outcome is (Outcome.FAILED if first.outcome is Outcome.FAILED else Outcome.LAGGING), "the host takes its time"
    shop.work.push()
    last = shop.handler.run(replace(first.again, looks=2))
    assert (last.outcome, last.commit, last.again) == (Outcome.APPLIED, sha, None), told(last)
    shop.assert_converged(sha)
    return first


def test_a_push_behind_one_that_is_applied_meanwhile_is_looked_for_by_a_run_of_its_own(shop: Shop) -> None:
    shop.push(config_map(shop.name, "a"))
    shop.applied()
    first = late(shop, lambda: shop.push(config_map(shop.name, "a", {"key": "2"})))
    assert (first.outcome, first.counts) == (Outcome.APPLIED, {"configured": 1}), told(first)


def test_of_two_webhooks_delivered_in_the_wrong_order_the_later_push_isnt_forgotten(shop: Shop) -> None:
    shop.push(config_map(shop.name, "a"))
    shop.applied()
    second = shop.push(config_map(shop.name, "a", {"key": "2"}))
    third = shop.declare(config_map(shop.name, "a", {"key": "3"}))
    heard = [shop.job(hint=sha, deliveries=(Delivery(sha, "github", "refs/heads/main", sha, "ann", ""),)) for sha in (third, second)]
    both = heard[0].merged(heard[1])
    first = shop.handler.run(both)
    assert (first.outcome, first.commit) == (Outcome.APPLIED, second), told(first)
    assert first.again
    assert (first.again.hint, [each.id for each in first.again.deliveries]) == (third, [third])
    unchanged = shop.handler.run(both)
    assert (unchanged.outcome, unchanged.again) == (Outcome.UNCHANGED, first.again), "the request whose push is there has ended"
    shop.work.push()
    assert shop.handler.run(first.again).outcome is Outcome.APPLIED
    shop.assert_converged(third)


@pytest.mark.parametrize("path", ["readme", "deploy/note.yaml"])
def test_a_push_behind_one_that_changes_no_object_is_looked_for_again(shop: Shop, path: str) -> None:
    """One is recorded without a plan, the other with an empty one."""
    shop.push(config_map(shop.name, "a"))
    shop.applied()

    def note() -> None:
        shop.work.write(path, "# no object\n")
        shop.work.commit("A note")
        shop.work.push()

    first = late(shop, note)
    assert (first.outcome, first.commit) == (Outcome.UNCHANGED, shop.state().history[1].commit), told(first)


def test_a_push_behind_one_that_cant_be_rendered_may_be_its_cure(shop: Shop) -> None:
    shop.push(config_map(shop.name, "a"))
    shop.applied()
    first = late(shop, lambda: shop.push(config_map("elsewhere", "a")))
    assert (first.outcome, first.who) == (Outcome.FAILED, "author"), told(first)


def test_a_drift_run_that_takes_a_push_along_and_a_pinned_target_look_for_it_again(shop: Shop) -> None:
    good = shop.push(config_map(shop.name, "a"))
    shop.applied()
    assert late(shop, lambda: None, "drift").outcome is Outcome.UNCHANGED
    shop.applied("replay", commit=good, actor="ann")
    sha = shop.declare(config_map(shop.name, "a", {"key": "3"}))
    assert shop.handler.run(shop.job(hint=sha)).outcome is Outcome.LAGGING
    shop.work.push()
    assert shop.handler.run(shop.job(hint=sha, looks=1)).commit == sha
    shop.assert_converged(sha)


def test_a_dry_run_looks_for_no_late_push(shop: Shop) -> None:
    shop.push(config_map(shop.name, "a"))
    result = shop.handler.run(shop.job(hint="f" * 40, dry_run=True))
    assert (result.outcome, result.again) == (Outcome.PLANNED, None)


def test_a_push_during_a_run_is_deployed_by_that_run_or_the_next(shop: Shop, wired: Callable[[], Wired]) -> None:
    """The head moves between the look and the Lease: what was planned first is never written."""
    shop.push(config_map(shop.name, "a", {"key": "first"}))
    wire = wired()
    handler: Handler = shop.handler_at(wire.kubeconfig)

    def push_another(_: object) -> bool:
        shop.push(config_map(shop.name, "b", {"key": "second"}))
        return True

    wire.meet(1, push_another, lambda method, path: method == "POST" and "/leases" in path)
    result = handler.run(shop.job())
    assert result.outcome is Outcome.APPLIED, told(result)
    shop.assert_converged()
    assert not any("configmaps/a?" in path and "dryRun" not in path for _, path in wire.object_writes)


def test_a_vanished_branch_is_an_error_and_deletes_nothing(shop: Shop) -> None:
    shop.push(config_map(shop.name, "a"))
    shop.applied()
    before = shop.versions()
    shop.work.git("push", "-q", "origin", ":refs/heads/main")
    for trigger in ("push", "tick", "drift"):
        result = shop.run(trigger)
        assert (result.outcome, result.code) == (Outcome.FAILED, "ref-not-found")
    assert shop.versions() == before
    shop.work.push()
    assert shop.run().outcome in DONE
    shop.assert_converged()
