"""Runs of pushes that come twice, late, in another order or not at all, or that the host doesn't show yet: git is the linearizer."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace

import pytest

from handler.engine.run.push_lag import WAITS
from handler.model.event import Delivery, Job
from handler.model.result import Outcome, Result
from handler.queues.pending import Work
from tests.unit.engine.in_memory_shop import InMemoryShop, config_map

pytestmark = pytest.mark.slow


@pytest.fixture
def shop() -> InMemoryShop:
    return InMemoryShop.holding(config_map("a"))


def value(shop: InMemoryShop) -> str:
    return str((shop.live(config_map("a")) or {})["data"]["key"])


def unshown(shop: InMemoryShop, key: str) -> str:
    """Push what the host doesn't show yet; return the commit."""
    shop.host.lags = True
    return shop.push(config_map("a", key))


def test_a_late_delivery_of_an_older_commit_does_nothing(shop: InMemoryShop) -> None:
    older, newer = shop.host.head, shop.push(config_map("a", "newer"))
    shop.applied(hint=newer)
    result = shop.run(hint=older, looks=1)
    assert (result.outcome, result.next_try) == (Outcome.SUPERSEDED, 0.0)
    assert "deployed earlier" in result.message
    assert shop.run(hint=newer).outcome is Outcome.UNCHANGED
    assert value(shop) == "newer"


def test_a_branch_forced_back_to_what_was_deployed_is_looked_for_again(shop: InMemoryShop) -> None:
    older = shop.host.head
    shop.applied(hint=shop.push(config_map("a", "newer")))
    first = shop.run(hint=older)
    assert first.outcome is Outcome.LAGGING
    assert first.message.endswith("; looked at again in 1 s")
    shop.host.push(older)
    assert shop.run(hint=older, looks=1).outcome is Outcome.APPLIED
    assert (value(shop), shop.state().commit) == ("1", older)


def test_a_commit_that_the_host_never_shows_is_superseded_after_five_looks(shop: InMemoryShop) -> None:
    job, ends = Job("shop", "push", hint="f" * 40), list[Result]()
    shop.run("tick")
    revision = shop.server.store.revision
    while not ends or ends[-1].outcome is Outcome.LAGGING:
        began = time.time()
        ends.append(shop.handler.run(job))
        job = Work.of(job).again().job
        assert ends[-1].outcome is not Outcome.LAGGING or ends[-1].next_try >= began + WAITS[len(ends) - 1]
    assert [end.outcome for end in ends] == [*[Outcome.LAGGING] * 4, Outcome.SUPERSEDED]
    assert shop.server.store.revision == revision, "nothing is written"


def late(shop: InMemoryShop, before: Callable[[], object], trigger: str = "push") -> Result:
    """Deliver a push that the host doesn't show yet; `before` is what it shows. Return how the first run ended; a later one applies it."""
    before()
    sha = unshown(shop, "late")
    began = time.time()
    first = shop.run(trigger, hint=sha, actor="ann")
    assert first.again == Job("shop", "push", hint=sha, actor="ann", looks=1), first
    assert first.again_at >= began + WAITS[0]
    second = shop.handler.run(first.again)
    assert second.outcome is (Outcome.FAILED if first.outcome is Outcome.FAILED else Outcome.LAGGING), "the host takes its time"
    shop.host.show()
    last = shop.handler.run(replace(first.again, looks=2))
    assert (last.outcome, last.commit, last.again) == (Outcome.APPLIED, sha, None), last
    assert value(shop) == "late"
    return first


def test_a_push_behind_one_that_is_applied_meanwhile_is_looked_for_by_a_run_of_its_own(shop: InMemoryShop) -> None:
    first = late(shop, lambda: shop.push(config_map("a", "2")))
    assert (first.outcome, first.counts) == (Outcome.APPLIED, {"configured": 1})


def test_of_two_webhooks_delivered_in_the_wrong_order_the_later_push_isnt_forgotten(shop: InMemoryShop) -> None:
    second, third = shop.push(config_map("a", "2")), unshown(shop, "3")
    heard = [
        Job("shop", "push", hint=sha, deliveries=(Delivery(sha, "github", "refs/heads/main", sha, "ann", ""),)) for sha in (third, second)
    ]
    both = heard[0].merged(heard[1])
    first = shop.handler.run(both)
    assert (first.outcome, first.commit) == (Outcome.APPLIED, second)
    assert first.again
    assert (first.again.hint, [each.id for each in first.again.deliveries]) == (third, [third])
    unchanged = shop.handler.run(both)
    assert (unchanged.outcome, unchanged.again) == (Outcome.UNCHANGED, first.again), "the request whose push is there has ended"
    shop.host.show()
    assert shop.handler.run(first.again).outcome is Outcome.APPLIED
    assert value(shop) == "3"


@pytest.mark.parametrize("path", ["readme", "shop/note"])
def test_a_push_behind_one_that_changes_no_object_is_looked_for_again(shop: InMemoryShop, path: str) -> None:
    """One is recorded without a plan, the other with an empty one."""
    first = late(shop, lambda: shop.host.push(shop.host.commit({**shop.host.commits[shop.host.head], path: "# no object\n"})))
    assert first.outcome is Outcome.UNCHANGED


def test_a_push_behind_one_that_cant_be_rendered_may_be_its_cure(shop: InMemoryShop) -> None:
    first = late(shop, lambda: shop.push(config_map("a", space="elsewhere")))
    assert (first.outcome, first.who) == (Outcome.FAILED, "author")


def test_a_drift_run_that_takes_a_push_along_and_a_pinned_target_look_for_it_again(shop: InMemoryShop) -> None:
    good = shop.host.head
    assert late(shop, lambda: None, "drift").outcome is Outcome.UNCHANGED
    shop.applied("replay", commit=good, actor="ann")
    sha = unshown(shop, "3")
    assert shop.run(hint=sha).outcome is Outcome.LAGGING
    shop.host.show()
    assert shop.run(hint=sha, looks=1).commit == sha
    assert value(shop) == "3"


def test_a_dry_run_looks_for_no_late_push(shop: InMemoryShop) -> None:
    result = shop.run(hint="f" * 40, dry_run=True)
    assert (result.outcome, result.again) == (Outcome.PLANNED, None)


def test_a_push_during_a_run_is_deployed_by_that_run_and_what_was_planned_first_is_never_written(shop: InMemoryShop) -> None:
    """The head moves between the look and the Lease."""
    shop.push(config_map("a", "first"))
    result = shop.meeting("PUT", "anneal-shop", lambda: shop.push(config_map("b")))
    assert result.outcome is Outcome.APPLIED
    assert shop.written == ["PATCH b", "DELETE a"]
