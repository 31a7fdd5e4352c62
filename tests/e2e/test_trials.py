"""New pods are tried beside the old ones: promoted, refused, superseded, killed. On the real control plane."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest

from handler.build import Handler, Options
from handler.config.secrets import resolve_all
from handler.config.settings import Prometheus, Rollback
from handler.model.names import GroupKind
from handler.model.result import Outcome
from handler.run import looking
from handler.run.actions import stage
from infra.prometheushost import Exporter, PrometheusHost
from tests.e2e.conftest import Open
from tests.e2e.documents import Document, deployment
from tests.e2e.killing import Wire, kill_after
from tests.e2e.rollouts import ROLLOUT, key_of
from tests.e2e.serving import until
from tests.e2e.shop import DONE, MORTAL, Shop, told
from tests.e2e.trials import LET_GO, Running, Trial, owners

OLD, NEW, NEWER = "shop:1", "shop:2", "shop:3"
Opened = Callable[..., Trial]


@pytest.fixture
def open_trial(open_shop: Open) -> Opened:
    """Open a shop whose Deployment runs four old pods; nothing was tried for it, since nothing ran before."""

    def opened(**settings: Any) -> Trial:
        shop = open_shop(rollout=ROLLOUT, **settings)
        shop.create_namespace()
        trial = Trial(shop)
        trial.push(OLD)
        shop.applied()
        assert (trial.canary, [(step.mark, step.outcome) for step in trial.steps()]) == (None, [("", "done")])
        return trial

    return opened


def test_a_canary_is_held_beside_the_old_pods_and_promoted(open_trial: Opened) -> None:
    trial = open_trial(lease=MORTAL)
    shop, before = trial.shop, trial.stable
    until(lambda: trial.behind_the_service() == {OLD: 4}, told=lambda: str(trial.behind_the_service()))
    trial.push(NEW, [{"weight": 25, "for": "0s"}, {"weight": 50, "for": "1s"}], success=[LET_GO])
    planned = shop.run(dry_run=True).plan
    assert planned
    assert f"Deployment/{shop.name}/api goes by canary: 25 % for 0s, 50 % for 1s" in planned.notes
    running = Running.of(shop)
    trial.holds("hold 0")
    until(lambda: trial.behind_the_service() == {OLD: 4, NEW: 1}, told=lambda: str(trial.behind_the_service()))
    assert owners("replicasets", shop) == {OLD: "Deployment/api", NEW: "Deployment/api-canary"}
    held = trial.stable
    assert (held["metadata"]["generation"], held["status"]["replicas"]) == (before["metadata"]["generation"], 4)

    state = shop.state()
    assert GroupKind("apps", "Deployment") in state.kinds
    assert shop.name in state.namespaces

    # Another worker, while it is held: neither prunes it nor calls it an orphan.
    other = shop.handler_at(shop.kubectl.kubeconfig).run(shop.job("drift"))
    assert other.outcome is Outcome.BUSY, told(other)
    kept = shop.handler_at(shop.kubectl.kubeconfig).run(shop.job(dry_run=True)).plan
    assert kept
    assert [(str(change.action), change.reason) for change in kept.prunes] == [
        ("skip", f"canary of Deployment/{shop.name}/api; goes when its rollout ends")
    ]
    # Somebody scales the Deployment: the next share is one of what it has then.
    shop.kubectl.run("scale", "deployment", "api", "-n", shop.name, "--replicas=7")
    trial.let_go()
    trial.holds("hold 1")
    assert trial.canary
    assert trial.canary["spec"]["replicas"] == 4
    result = running.result()
    assert result.outcome in DONE, told(result)
    trial.assert_promoted(NEW)
    assert (trial.steps()[0].outcome, shop.state().orphans) == ("done", ())


@pytest.fixture
def exporter() -> Iterator[Exporter]:
    with Exporter() as running:
        yield running


@pytest.fixture
def prometheus(exporter: Exporter) -> Iterator[PrometheusHost]:
    with PrometheusHost(exporter.address) as running:
        yield running


def test_metrics_refuse_one_canary_and_let_the_next_pass(open_trial: Opened, exporter: Exporter, prometheus: PrometheusHost) -> None:
    trial = open_trial()
    shop, before = trial.shop, trial.stable
    shop.settings = replace(shop.settings, prometheus=(Prometheus(url=prometheus.url),))
    shop.handler = shop.handler_at(shop.kubectl.kubeconfig)
    query = 'errors{track="canary"}'
    exporter.set("errors", 0.5, track="canary")
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

    exporter.set("errors", 0.001, track="canary")
    prometheus.wait(query, 0.001)
    trial.push(NEWER, [{"weight": 25, "for": "1s"}], success=success, failure=failure)
    shop.applied()
    trial.assert_promoted(NEWER)


def writes_to(name: str, method: str = "PATCH") -> Callable[[str, str], bool]:
    return lambda sent, path: sent == method and path.partition("?")[0].endswith(f"/deployments/{name}") and "dryRun" not in path


def test_a_run_killed_in_any_phase_is_gone_on_with(open_trial: Opened, wired: Wire) -> None:
    trial = open_trial(lease=MORTAL)
    shop = trial.shop
    trial.push(NEW, [{"weight": 25, "for": "0s"}, {"weight": 50, "for": "1s"}], success=[LET_GO])
    assert kill_after(shop, wired, 1, writes_to("api-canary"))
    assert trial.mark().startswith("scale 0")
    uid = trial.canary["metadata"]["uid"] if trial.canary else ""
    child = shop.child().begin(shop.job())
    trial.holds("hold 0")
    child.signal(signal.SIGKILL)
    assert child.result() is None
    trial.let_go()
    for name, method, mark in (
        ("api", "PATCH", "promote 1"),
        ("api-canary", "DELETE", "remove 1"),
    ):
        assert trial.canary
        assert trial.canary["metadata"]["uid"] == uid, "one canary is gone on with"
        assert kill_after(shop, wired, 1, writes_to(name, method)), f"{mark}: the run had ended"
        assert trial.mark().startswith(mark)
    result = shop.run()
    assert result.outcome is Outcome.APPLIED, told(result)
    trial.assert_promoted(NEW)


def test_who_may_not_wait_leaves_the_canary_to_the_next_run(open_trial: Opened) -> None:
    """As functions do: the time that is held counts from run to run."""
    trial = open_trial()
    shop = trial.shop
    options = Options(kubeconfig=str(shop.kubectl.kubeconfig), patience=0.0)
    shop.handler = Handler(shop.settings, resolve_all(shop.settings, os.environ, needs={"git"}), shop.sandbox, os.environ, options)
    trial.push(NEW, [{"weight": 50, "for": "1s"}])
    ends: list[tuple[Outcome, str]] = []

    def is_applied() -> bool:
        ends.append((shop.run("tick" if ends else "push").outcome, trial.mark().partition(" ")[0]))
        return ends[-1][0] is Outcome.APPLIED

    until(is_applied, told=lambda: str(ends))
    assert {outcome for outcome, _ in ends[:-1]} == {Outcome.WAITING}
    assert (Outcome.WAITING, "hold") in ends
    trial.assert_promoted(NEW)


def test_a_newer_commit_takes_over_or_takes_away(open_trial: Opened, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(looking, "HEAD_EVERY", 0.3)
    trial = open_trial()
    shop, before = trial.shop, trial.stable
    trial.push(NEW, [{"weight": 50, "for": "1h"}])
    running = Running.of(shop)
    trial.holds("hold 0")
    uid = trial.canary["metadata"]["uid"] if trial.canary else ""

    trial.push(NEWER, [{"weight": 25, "for": "0s"}], success=[LET_GO])
    assert running.result().outcome is Outcome.SUPERSEDED
    running = Running.of(shop)
    trial.holds("hold 0")
    canary = trial.canary
    assert canary
    assert (trial.image(canary), canary["metadata"]["uid"], canary["spec"]["replicas"]) == (NEWER, uid, 1)

    trial.push(OLD, [{"weight": 25, "for": "1h"}])
    assert running.result().outcome is Outcome.SUPERSEDED
    shop.applied()
    assert trial.canary is None
    assert trial.stable == before, "back where it was, nothing is tried and nothing written"
    shop.assert_converged()

    trial.push(NEW, [{"weight": 50, "for": "1h"}])
    running = Running.of(shop)
    trial.holds("hold 0")
    trial.push(NEW, action="CreateOrUpdate")
    assert running.result().outcome is Outcome.SUPERSEDED
    done = shop.applied()
    assert done.counts["pruned"] == 1, "without its step it is what git doesn't declare"
    trial.assert_promoted(NEW)


def test_a_canary_that_is_not_gone_yet_is_no_end(open_trial: Opened, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stage, "GONE_TIMEOUT", 0.5)
    trial = open_trial()
    shop = trial.shop
    trial.push(NEW, success=[LET_GO])
    running = Running.of(shop)
    trial.holds("hold 0")
    shop.kubectl.run("patch", "deployment", "api-canary", "-n", shop.name, "-p", '{"metadata":{"finalizers":["example.com/hold"]}}')
    trial.let_go()
    result = running.result()
    assert (result.outcome, result.code) == (Outcome.PRUNING, "still-deleting"), told(result)
    assert "example.com/hold" in result.message
    assert trial.canary
    shop.kubectl.run("patch", "deployment", "api-canary", "-n", shop.name, "-p", '{"metadata":{"finalizers":null}}')
    shop.applied()
    trial.assert_promoted(NEW)


def nowhere(shop: Shop, name: str) -> Document:
    """A Deployment whose pods find no node, and that gives up soon."""
    found: Document = deployment(shop.name, name, NEW, 4)
    found["spec"]["progressDeadlineSeconds"] = 1
    found["spec"]["template"]["spec"]["nodeSelector"] = {"nowhere": "yes"}
    return found


def test_pods_that_never_run_take_only_the_canary_down(open_trial: Opened) -> None:
    trial = open_trial()
    shop, before = trial.shop, trial.stable
    trial.rollout({"name": "api", "object": trial.key, "action": "Canary", "steps": [{"weight": 10, "for": "1h"}]})
    shop.push(*trial.documents(OLD)[:1], nowhere(shop, "api"))
    result = shop.run()
    assert (result.outcome, result.code) == (Outcome.FAILED, "rollout-failed"), told(result)
    assert f"Deployment/{shop.name}/api-canary" in result.message
    assert trial.canary is None
    assert trial.stable == before


def test_a_canary_beside_a_step_that_fails_goes_with_the_rollout(open_trial: Opened) -> None:
    trial = open_trial()
    shop, before = trial.shop, trial.stable
    held = {"name": "api", "object": trial.key, "action": "Canary", "steps": [{"weight": 10, "for": "1h"}]}
    bad = nowhere(shop, "bad")
    failing = {"name": "bad", "object": key_of(bad), "action": "CreateOrUpdate", "success": [{"healthy": {}}]}
    trial.rollout(held, failing)
    shop.push(*trial.documents(NEW), bad)
    result = shop.run()
    assert (result.outcome, result.code) == (Outcome.FAILED, "rollout-failed"), told(result)
    assert {step.step: step.outcome for step in trial.steps()} == {"api": "skipped", "bad": "failed"}
    until(lambda: trial.canary is None)
    assert trial.stable == before


def test_a_rollout_back_tries_nothing(open_trial: Opened) -> None:
    """What fails as it is promoted is gone back from at once: what was recorded has been trusted, what it replaces isn't."""
    trial = open_trial(rollback=Rollback(on_failure=True))
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


def test_what_has_a_canarys_name_is_refused_before_anything_is_written(open_trial: Opened) -> None:
    trial = open_trial()
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


def test_a_canary_goes_with_its_deployment(open_trial: Opened, monkeypatch: pytest.MonkeyPatch) -> None:
    """By label and identity it is a member like any other."""
    monkeypatch.setattr(looking, "HEAD_EVERY", 0.3)
    trial = open_trial()
    shop = trial.shop
    trial.push(NEW, [{"weight": 50, "for": "1h"}])
    running = Running.of(shop)
    trial.holds("hold 0")
    trial.rollout({"object": f"Service-{shop.name}-api.yaml", "action": "CreateOrUpdate"})
    shop.push(*trial.documents(NEW)[:1])
    assert running.result().outcome is Outcome.SUPERSEDED
    done = shop.applied()
    assert (done.counts["pruned"], trial.canary, trial.named("api")) == (2, None, None)
    assert shop.state().orphans == ()
