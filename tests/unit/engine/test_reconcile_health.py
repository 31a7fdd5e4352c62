"""What runs say of a target's health: by the objects that they have read, without a watch."""

from __future__ import annotations

from dataclasses import replace

import pytest

from handler.config.settings import HoldAbove, Prune
from handler.model.event import Job
from handler.model.health import HealthState
from handler.model.result import Outcome
from handler.state.record import TargetHealth
from handler.state.record_format import seconds_of, stamp
from tests.unit.engine.in_memory_shop import InMemoryShop, body, config_map

pytestmark = pytest.mark.slow

WEB, A = body("web", "Service", spec={"ports": [{"port": 80}]}), config_map("a")
GONE = (HealthState.DEGRADED, ("Service/shop/web: is not there",))


def health(shop: InMemoryShop) -> tuple[str, tuple[str, ...]]:
    found = shop.state().health
    return found.state, found.worst


@pytest.fixture
def shop() -> InMemoryShop:
    """One that is healthy."""
    made = InMemoryShop()
    made.push(WEB, A)
    made.applied()
    assert health(made) == (HealthState.HEALTHY, ())
    return made


def test_each_run_judges_health_by_the_objects_it_has_read(shop: InMemoryShop) -> None:
    api = body("api", "Deployment", "apps/v1", spec={"replicas": 1})
    shop.push(WEB, api)
    shop.applied()
    assert shop.state().health.state == HealthState.PROGRESSING
    counts = dict.fromkeys(("replicas", "updatedReplicas", "readyReplicas", "availableReplicas"), 1)
    available = [{"type": "Available", "status": "True"}]
    shop.patch(api, {"status": {"observedGeneration": 1, "conditions": available, **counts}}, "kube-controller-manager")
    assert shop.run("drift").outcome is Outcome.UNCHANGED
    assert shop.state().health.state == HealthState.HEALTHY


def test_drift_report_of_a_deleted_object_makes_health_degraded(shop: InMemoryShop) -> None:
    shop.configure(drift="report")
    shop.applied()
    shop.delete(WEB)
    assert shop.run("drift").outcome is Outcome.DRIFTED
    assert health(shop) == GONE


def test_a_held_run_makes_health_degraded_by_a_deleted_object(shop: InMemoryShop) -> None:
    shop.configure(prune=Prune(hold_above=HoldAbove(0, 0.1)))
    shop.delete(WEB)
    shop.push(WEB)
    assert shop.run().outcome is Outcome.HELD
    assert health(shop) == GONE


def test_a_target_of_which_nothing_was_ever_applied_is_not_healthy() -> None:
    shop = InMemoryShop()
    shop.push(A | {"unknown": 1})
    assert shop.run().outcome is Outcome.FAILED
    shop.another(looks=True).run(Job("shop", "tick"))
    assert shop.state().health == TargetHealth()


def test_ticks_of_a_function_judge_health_after_a_recent_run_or_while_not_healthy(shop: InMemoryShop) -> None:
    store, function = shop.handler.store(shop.target), shop.another(looks=True)

    def tick() -> str:
        assert function.run(Job("shop", "tick")).outcome is Outcome.UNCHANGED
        return store.read().resource_version

    def age() -> str:
        stored = store.read()
        assert stored.state
        run = stored.state.history[0]
        old = replace(run, started=stamp(seconds_of(run.started) - 601.0))
        return store.swap(stored, replace(stored.state, history=(old, *stored.state.history[1:]))).resource_version

    assert tick() == store.read().resource_version
    shop.delete(WEB)
    aged = age()
    assert tick() == aged, "well, and long ago: drift runs look at it"
    assert shop.run("drift").outcome is Outcome.APPLIED
    shop.delete(WEB)
    seen = tick()
    assert health(shop) == GONE
    assert tick() == seen, "the same verdict"
    aged = age()
    shop.create(WEB)
    assert tick() == aged, "there, but without our label"


def test_a_drift_run_renews_an_old_health_verdict_only_where_nothing_watches(shop: InMemoryShop) -> None:
    store = shop.handler.store(shop.target)
    stored = store.read()
    assert stored.state
    interval = shop.handler.settings.drift_interval
    old = replace(stored.state.health, judged=stamp(seconds_of(stored.state.health.judged) - 3 * interval))
    written = store.swap(stored, replace(stored.state, health=old))
    assert shop.another(watches=True).run(Job("shop", "drift")).outcome is Outcome.UNCHANGED
    assert store.read().resource_version == written.resource_version
    assert shop.run("drift").outcome is Outcome.UNCHANGED
    assert shop.state().health.judged > old.judged
