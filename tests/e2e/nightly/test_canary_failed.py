"""New pods that are tried and refused take nothing down with them: by metrics, by their health, by what stands beside them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from handler.config.settings import PrometheusSettings, Rollback
from handler.engine.apply import wait_deleted
from handler.model.result import Outcome
from infra.prometheushost import Exporter, PrometheusHost
from tests.e2e.canary_target import LET_GO, NEW, NEWER, OLD, SEEN, Running, Trial
from tests.e2e.conftest import Open
from tests.e2e.documents import Document, deployment
from tests.e2e.one_target import Shop, told
from tests.e2e.rollouts import key_of
from tests.patience import until


def test_metrics_refuse_one_canary_and_let_the_next_pass(open_shop: Open, exporter: Exporter, prometheus: PrometheusHost) -> None:
    trial = Trial.of(open_shop)
    shop, before = trial.shop, trial.stable
    shop.settings = replace(shop.settings, prometheus=(PrometheusSettings(url=prometheus.url),))
    shop.handler = shop.handler_at(shop.kubectl.kubeconfig)
    metric = f"errors_{shop.name.replace('-', '_')}"
    query = f'{metric}{{track="canary"}}'
    exporter.set(metric, 0.5, track="canary")
    prometheus.wait(query, 0.5)
    failure = [{"name": "errors", "prometheus": {"query": query, "is": "> 0.05"}}]
    success = [{"name": "few errors", "prometheus": {"query": query, "is": "< 0.01", "for": "1s", "interval": "1s"}}]
    trial.push(NEW, [{"weight": 25, "for": "1s"}], success=success, failure=failure)
    refused = shop.run()
    assert (refused.outcome, refused.code) == (Outcome.FAILED, "rollout-failed"), told(refused)
    assert "0.5" in refused.message
    assert trial.canary is None
    assert trial.stable == before, "nothing of the Deployment was written"
    again = shop.run("tick")
    assert (again.outcome, again.code, trial.canary) == (Outcome.FAILED, "rollout-failed", None), "its steps aren't tried by themselves"

    exporter.set(metric, 0.001, track="canary")
    prometheus.wait(query, 0.001)
    trial.push(NEWER, [{"weight": 25, "for": "1s"}], success=success, failure=failure)
    shop.applied()
    trial.assert_promoted(NEWER)


def nowhere(shop: Shop, name: str) -> Document:
    """A Deployment whose pods find no node, and that gives up soon."""
    found: Document = deployment(shop.name, name, NEW, 4)
    found["spec"]["progressDeadlineSeconds"] = 1
    found["spec"]["template"]["spec"]["nodeSelector"] = {"nowhere": "yes"}
    return found


def test_pods_that_never_run_take_only_the_canary_down(open_shop: Open) -> None:
    trial = Trial.of(open_shop)
    shop, before = trial.shop, trial.stable
    trial.rollout({"name": "api", "object": trial.key, "action": "Canary", "steps": [{"weight": 10, "for": "1h"}]})
    shop.push(*trial.documents(OLD)[:1], nowhere(shop, "api"))
    result = shop.run()
    assert (result.outcome, result.code) == (Outcome.FAILED, "rollout-failed"), told(result)
    assert f"Deployment/{shop.name}/api-canary" in result.message
    assert trial.canary is None
    assert trial.stable == before


def test_a_refused_canary_that_takes_its_time_to_go_says_why_it_goes(open_shop: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wait_deleted, "TIMEOUT", 0.5)
    trial = Trial.of(open_shop)
    shop = trial.shop
    trial.push(NEW, [{"weight": 25, "for": "1h"}], failure=[{"name": "seen", **LET_GO}])
    running = Running.of(shop)
    trial.holds("hold 0")
    shop.kubectl.run("patch", "deployment", "api-canary", "-n", shop.name, "-p", '{"metadata":{"finalizers":["example.com/hold"]}}')
    trial.let_go()
    assert running.result().outcome is Outcome.PRUNING
    assert trial.steps()[0].message.startswith("the canary is removed: failure check seen: ")
    monkeypatch.setattr(wait_deleted, "TIMEOUT", 60.0)
    shop.kubectl.run("patch", "deployment", "api-canary", "-n", shop.name, "-p", '{"metadata":{"finalizers":null}}')
    result = shop.run()
    assert (result.outcome, result.code) == (Outcome.FAILED, "rollout-failed"), told(result)


def test_a_canary_beside_a_step_that_fails_goes_with_the_rollout(open_shop: Open) -> None:
    trial = Trial.of(open_shop)
    shop, before = trial.shop, trial.stable
    held = {"name": "api", "object": trial.key, "action": "Canary", "steps": [{"weight": 10, "for": "1h"}]}
    bad = nowhere(shop, "bad")
    del bad["spec"]["progressDeadlineSeconds"]
    failing = {"name": "bad", "object": key_of(bad), "action": "CreateOrUpdate", "success": [{"healthy": {}}]}
    trial.rollout(held, failing | {"failure": [{"name": "seen", **LET_GO}]})
    trial.pushed = shop.push(*trial.documents(NEW), bad)
    running = Running.of(shop)
    trial.holds("hold 0")
    until(lambda: trial.named("bad"))
    shop.kubectl.run("label", "deployment", "bad", "-n", shop.name, f"{SEEN}=yes")
    result = running.result()
    assert (result.outcome, result.code) == (Outcome.FAILED, "rollout-failed"), told(result)
    assert {step.step: step.outcome for step in trial.steps()} == {"api": "skipped", "bad": "failed"}
    until(lambda: trial.canary is None)
    assert trial.stable == before


def test_a_rollback_runs_without_a_canary(open_shop: Open) -> None:
    """What fails as it is promoted is gone back from at once: what was recorded has been trusted, what it replaces isn't."""
    trial = Trial.of(open_shop, rollback=Rollback(on_failure=True))
    shop, old = trial.shop, trial.pushed
    is_stable = {"expectedValues": [{"path": "{.metadata.name}", "value": {"static": "api"}}]}
    trial.push(NEW, failure=[{"name": "stable", "fieldComparisons": is_stable}])
    result = shop.run()
    assert result.outcome is Outcome.ROLLED_BACK, told(result)
    assert (trial.canary, trial.image(trial.stable)) == (None, OLD)
    assert trial.stable["metadata"]["generation"] > 2, "it had been promoted"
    rollout = shop.state().rollout
    assert rollout
    assert (rollout.commit, [(step.mark, step.outcome) for step in rollout.steps]) == (old, [("", "done")])


def test_what_has_a_canarys_name_is_refused_before_anything_is_written(open_shop: Open) -> None:
    trial = Trial.of(open_shop)
    shop, name = trial.shop, f"Deployment/{trial.shop.name}/api-canary"
    trial.push(NEW)
    shop.push(*trial.documents(NEW), deployment(shop.name, "api-canary"))
    declared = shop.run()
    assert (declared.outcome, declared.code) == (Outcome.FAILED, "plan-refused"), told(declared)
    assert f"{name}: has the name that the canary of Deployment/{shop.name}/api gets" in declared.message

    shop.kubectl.apply(deployment(shop.name, "api-canary"))
    trial.push(NEW)
    taken = shop.run()
    assert (taken.outcome, taken.code) == (Outcome.FAILED, "plan-refused"), told(taken)
    assert f"{name}: exists already and isn't our canary" in taken.message
    assert trial.image(trial.stable) == OLD
