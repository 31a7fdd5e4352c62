"""Deliveries come twice, late, in another order or not at all, and branches are forced: git is the linearizer."""

from __future__ import annotations

import random

import pytest

from handler.model.result import Outcome
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


def test_lost_late_and_replayed_webhook_deliveries_converge_at_the_head(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("handler.engine.run.push_lag.WAITS", (0.01,))
    schedule = Schedule(shop, 0)
    schedule.push()
    for _ in range(16):
        schedule.step()
    assert shop.run("tick").outcome in DONE
    shop.assert_converged()


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
