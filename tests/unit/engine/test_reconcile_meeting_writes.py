"""What others write while a run is under way, between its look, its plan and its writes: judged again, recorded as it came out."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from dataclasses import replace

import pytest

from handler.config.settings import IgnoreRule, IgnoreSelect
from handler.model.event import Delivery
from handler.model.result import Outcome
from handler.state.record import State
from tests.fakes.apiserver import Call
from tests.fakes.apiserver.connection import Reply
from tests.unit.engine.in_memory_shop import RECORD, InMemoryShop, config_map

pytestmark = pytest.mark.slow

DELIVERY = Delivery("7", "github", "refs/heads/main", "a" * 40, "ann", "2026-03-01T12:00:00Z")
A = config_map("a")


@pytest.fixture
def shop() -> InMemoryShop:
    return InMemoryShop.holding(A)


def recorded(shop: InMemoryShop, change: Callable[[State], State]) -> Callable[[], object]:
    """Return what lets another worker change the record."""
    other = shop.another()
    return lambda: other.store(other.target("shop")).update(change)


def test_an_object_changed_after_the_plan_keeps_its_ignored_fields(shop: InMemoryShop) -> None:
    shop.configure(ignore=(IgnoreRule(IgnoreSelect(kind="ConfigMap"), ("/data/theirs",)),))
    shop.patch(A, {"data": {"theirs": "7"}}, "autoscaler")
    shop.push({**A, "data": {"key": "2", "theirs": "2"}})
    result = shop.meeting("PATCH", "a", lambda: shop.annotate(A, touched="yes"))
    assert result.outcome is Outcome.APPLIED
    live = shop.live(A)
    assert live
    assert live["data"] == {"key": "2", "theirs": "7"}
    assert live["metadata"]["annotations"]["touched"] == "yes", "it goes once a plan has shown it"


def test_a_plan_doesnt_show_what_a_controller_writes_while_it_is_made(shop: InMemoryShop) -> None:
    """Between the LIST and the dry-run, as it writes a revision or a status."""
    shop.push(config_map("a", "2"))
    asked: Counter[bool] = Counter()

    def touched(call: Call, do: Callable[[], Reply]) -> Reply:
        if call.asked.dry and call.asked.method == "PATCH":
            if not asked[True]:
                shop.patch(A, {"metadata": {"annotations": {"seen": "1"}}}, "a-controller")
            asked[True] += 1
        return do()

    shop.meet = touched
    plan = shop.run(dry_run=True).plan
    assert asked[True] == 2, "asked again, once"
    assert plan
    (change,) = plan.writes
    assert [(field.path, field.live, field.declared) for field in change.fields] == [("data.key", "1", "2")]
    assert change.resource_version == (shop.live(A) or {})["metadata"]["resourceVersion"]


def test_a_create_does_not_take_over_what_another_tool_made_meanwhile(shop: InMemoryShop) -> None:
    theirs = config_map("b", "theirs", labels={"kustomize.toolkit.fluxcd.io/name": "apps"})
    shop.push(config_map("a", "2"), config_map("b"))
    result = shop.meeting("PATCH", "b", lambda: shop.create(theirs))
    assert (result.outcome, result.code, result.counts) == (Outcome.FAILED, "apply-failed", {"configured": 1})
    (problem,) = result.problems
    assert (problem.message, problem.place) == ("belongs to Flux Kustomization apps", "shop/ConfigMap-b.json:1")
    assert (shop.live(theirs) or {})["data"] == {"key": "theirs"}


def test_a_create_adopts_an_unowned_object_made_after_the_plan_and_is_recorded_as_update(shop: InMemoryShop) -> None:
    by_hand = {**config_map("b", "by hand"), "data": {"key": "by hand", "more": "of it"}}
    shop.push(A, config_map("b"))
    result = shop.meeting("PATCH", "b", lambda: shop.create(by_hand))
    assert (result.outcome, result.counts) == (Outcome.APPLIED, {"unchanged": 1, "configured": 1})
    assert result.plan
    assert [change.adopted for change in result.plan.writes] == [True]
    assert (shop.live(by_hand) or {})["data"] == {"key": "1", "more": "of it"}, "it goes once a plan has shown it"
    shop.applied("drift")
    assert (shop.live(by_hand) or {})["data"] == {"key": "1"}


def test_a_prune_candidate_protected_in_the_last_moment_is_counted_and_recorded_as_kept(shop: InMemoryShop) -> None:
    shop.push(config_map("keep"))
    result = shop.meeting("DELETE", "a", lambda: shop.annotate(A, **{"anneal.dev/prune": "disabled"}))
    assert result.counts == {"created": 1, "skipped": 1}
    assert shop.live(A)
    state = shop.state()
    assert (state.history[0].counts, [each.identity.name for each in state.orphans]) == (result.counts, ["a"])


def test_a_record_that_changes_just_before_the_attempt_opens_is_planned_from_once_more(shop: InMemoryShop) -> None:
    shop.push(A, config_map("b"))
    result = shop.meeting("PUT", RECORD.name, recorded(shop, lambda state: replace(state, deliveries=(DELIVERY,))))
    assert result.outcome is Outcome.APPLIED
    assert (shop.state().deliveries, shop.state().commit) == ((DELIVERY,), shop.host.head)
    assert shop.live(config_map("b"))


def test_a_record_deleted_during_a_run_stops_it_before_prune(shop: InMemoryShop) -> None:
    shop.push(A, config_map("b"))
    shop.applied()
    shop.push(config_map("a", "2"))
    result = shop.meeting("PATCH", "a", shop.lose_record)
    assert (result.outcome, result.code) == (Outcome.BUSY, "lease-lost")
    assert shop.live(config_map("b"))
    for _ in range(2):  # what lives is found again, then planned fully
        shop.applied("tick")
    assert shop.live(config_map("b")) is None
    assert shop.state().commit == shop.host.head


def test_another_cluster_uid_behind_the_address_is_seen_under_the_lease(shop: InMemoryShop) -> None:
    """Its uid is remembered between runs, but asked again before anything is written."""
    shop.applied()
    shop.push(config_map("a", "2"))
    other = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "kube-system", "uid": "of-another-cluster"}}
    shop.meet = lambda call, do: (200, other, {}) if call.asked.path.endswith("/namespaces/kube-system") else do()
    result = shop.run()
    assert (result.outcome, result.code, shop.written) == (Outcome.FAILED, "target-moved", [])


def test_a_record_write_that_meets_a_409_is_repeated_soon(shop: InMemoryShop) -> None:
    shop.push(A, note="no object, but something that the render reads")
    began = time.time()
    result = shop.meeting("PUT", RECORD.name, recorded(shop, lambda state: replace(state, drift_due="2031-01-01T00:00:00Z")))
    assert result.outcome is Outcome.UNCHANGED
    assert began < result.next_try < time.time() + 5
    assert shop.run("tick").outcome is Outcome.UNCHANGED
    assert shop.state().commit == shop.host.head


def test_a_record_write_that_meets_an_annotation_is_made_at_once(shop: InMemoryShop) -> None:
    shop.push(A, note="no object, but something that the render reads")
    record = config_map(RECORD.name, space=RECORD.namespace)
    result = shop.meeting("PUT", RECORD.name, lambda: shop.annotate(record, touched="yes"))
    assert (result.outcome, result.next_try) == (Outcome.UNCHANGED, 0.0)
    assert shop.state().commit == shop.host.head
