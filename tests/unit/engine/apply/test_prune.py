"""Pruning deletes what the plan showed, and only that: an object that moved, is declared or has changed hands since stays."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from handler.engine.apply import wait_deleted
from handler.model.errors import AccessDenied, LeaseLost, Moved, StillDeleting, Suspended
from handler.model.names import identity_of
from handler.model.plan import Action
from tests.unit.engine.apply.planned_target import MAPS, TARGET, Lease, PlannedTarget, answering, before, both, config_map, ours

DENIED = 'configmaps "gone" is forbidden: User "jo" cannot delete resource "configmaps" in API group "" in the namespace "shop"'
PROTECTED = {"anneal.dev/prune": "disabled"}
PRUNED = (Action.PRUNE, "gone", "no longer declared")


@pytest.fixture
def shop() -> PlannedTarget:
    """A target with an applied ConfigMap that git doesn't declare any more."""
    made = PlannedTarget()
    made.post(MAPS, ours(config_map("gone")))
    return made


def test_what_the_plan_showed_goes(shop: PlannedTarget) -> None:
    planned = shop.plan()
    assert shop.prune(planned) == [PRUNED]
    assert shop.written == ["DELETE gone"]


def test_what_was_just_applied_stays_though_it_was_a_candidate_under_another_kind(shop: PlannedTarget) -> None:
    """An object that is served in two groups has one uid."""
    planned = shop.plan()
    (change,) = planned.plan.prunes
    assert shop.prune(planned, keep={change.uid}) == []
    assert (shop.written, shop.value("gone")) == ([], "1")


def test_an_object_of_the_same_name_made_anew_since_the_plan_stays(shop: PlannedTarget) -> None:
    planned = shop.plan()
    shop.delete("gone")
    shop.post(MAPS, ours(config_map("gone", "anew")))
    assert shop.prune(planned) == [(Action.PRUNE, "gone", "is gone already")]
    assert shop.value("gone") == "anew"


def test_an_object_that_changed_since_the_plan_is_judged_again(shop: PlannedTarget) -> None:
    planned = shop.plan()
    shop.patch("gone", data={"key": "2"})
    assert shop.prune(planned) == [PRUNED]
    assert shop.value("gone") is None


@pytest.mark.parametrize(
    ("metadata", "reason"),
    [
        ({"annotations": PROTECTED}, "protected by anneal.dev/prune: disabled"),
        ({"annotations": {"anneal.dev/identity": None}}, "is no longer ours"),
    ],
)
def test_an_object_that_is_protected_or_let_go_since_the_plan_stays(shop: PlannedTarget, metadata: dict[str, Any], reason: str) -> None:
    planned = shop.plan()
    shop.patch("gone", metadata=metadata)
    assert shop.prune(planned) == [(Action.SKIP, "gone", reason)]
    assert shop.written == []


def test_an_object_that_moves_at_each_try_ends_the_run(shop: PlannedTarget) -> None:
    planned, values = shop.plan(), iter("23456")
    shop.meet = before("DELETE", "gone", lambda: shop.patch("gone", data={"key": next(values)}), times=5)
    with pytest.raises(Moved):
        shop.prune(planned)
    assert shop.value("gone") == "4"


def test_a_lost_lease_ends_the_run_also_where_nothing_is_left_to_delete(shop: PlannedTarget) -> None:
    lease, planned = Lease(shop), shop.plan()
    shop.meet = before("DELETE", "gone", both(lambda: shop.patch("gone", metadata={"annotations": PROTECTED}), lease.lose))
    made = shop.pruner(planned)
    with pytest.raises(LeaseLost):
        made.prune()
    assert made.outcomes == []


def test_a_namespace_is_looked_at_again_right_before_it_goes() -> None:
    space = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop-old"}}
    target = PlannedTarget(replace(TARGET, namespaces=("shop", "shop-old")))
    target.post("/api/v1/namespaces", ours(space))
    planned = target.plan()
    assert [change.identity.name for change in planned.plan.prunes if change.writes] == ["shop-old"]
    target.post("/api/v1/namespaces/shop-old/configmaps", config_map("inside", metadata={"name": "inside", "namespace": "shop-old"}))
    assert target.prune(planned) == [(Action.SKIP, "shop-old", "still holds ConfigMap/shop-old/inside")]
    assert target.written == []


def test_what_a_sibling_may_declare_since_the_plan_stays(shop: PlannedTarget) -> None:
    planned = shop.plan()
    planned.decision.handover = SimpleNamespace(doubt=lambda _: ("web", "hand over to web"))  # type: ignore[assignment]  # its one method
    made = shop.pruner(planned)
    made.prune()
    assert [(change.action, change.reason, change.sibling) for change in made.outcomes] == [(Action.SKIP, "hand over to web", "web")]
    assert shop.written == []


def test_a_refusal_ends_the_run_before_the_next_stage(shop: PlannedTarget) -> None:
    """The Secret goes in a later stage than the ConfigMap that depends on it."""
    shop.patch("gone", metadata={"annotations": {"config.kubernetes.io/depends-on": "/namespaces/shop/Secret/behind"}})
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "behind", "namespace": "shop"}}
    shop.post("/api/v1/namespaces/shop/secrets", ours(secret))
    planned = shop.plan()
    shop.meet = answering("DELETE", "gone", 403, DENIED)
    made = shop.pruner(planned)
    with pytest.raises(AccessDenied):
        made.prune()
    assert (made.outcomes, shop.written) == ([], [])
    shop.meet = lambda _, do: do()
    assert [name for _, name, _ in shop.prune(planned)] == ["gone", "behind"]


def test_a_pause_between_two_stages_stops_the_rest(shop: PlannedTarget) -> None:
    made = shop.pruner(shop.plan())

    def paused() -> None:
        raise Suspended.of("target shop", "suspended by ann: a look first")

    made.between = paused
    with pytest.raises(Suspended):
        made.prune()
    assert (made.outcomes, shop.written) == ([], [])


def test_what_is_not_gone_in_time_ends_the_run(shop: PlannedTarget, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wait_deleted, "TIMEOUT", 0.0)
    planned = shop.plan()

    def accepted(call: Any, do: Any) -> Any:
        """Take the DELETE in as a server does whose object has a finalizer."""
        return (200, {"kind": "Status", "status": "Success"}, {}) if call.asked.method == "DELETE" else do()

    shop.meet = accepted
    with pytest.raises(StillDeleting, match="ConfigMap/shop/gone"):
        shop.prune(planned)


@pytest.mark.parametrize(("count", "named"), [(1, "ConfigMap/shop/new"), (2, "ConfigMap/shop/new and 1 more")])
def test_nothing_is_pruned_while_something_declared_is_unwritten(shop: PlannedTarget, count: int, named: str) -> None:
    planned = shop.plan()
    made = shop.pruner(planned)
    made.keep_all([identity_of(config_map("new"))] * count)
    assert [(each.action, each.reason) for each in made.outcomes] == [
        (Action.SKIP, f"{named} wasn't written by its step, so nothing is pruned")
    ]
