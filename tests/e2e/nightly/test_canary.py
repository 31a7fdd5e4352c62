"""New pods are tried beside the old ones: held, promoted, superseded, killed. On the real control plane."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable

import pytest

from handler.app.build import Handler, Options
from handler.cluster.connect import ClusterConnection
from handler.config.secrets import resolve_all
from handler.engine.apply import wait_deleted
from handler.engine.waits import interrupts
from handler.model.names import GroupKind
from handler.model.result import Outcome
from tests.e2e.canary_target import LET_GO, NEW, NEWER, OLD, Running, Trial, owners
from tests.e2e.conftest import Open
from tests.e2e.documents import deployment
from tests.e2e.killed_runs import Wire, kill_after, outlive
from tests.e2e.object_history import Watching, is_available
from tests.e2e.one_target import DONE, told
from tests.patience import until


def test_a_canary_is_held_beside_the_old_pods_and_promoted(open_shop: Open, connection: ClusterConnection) -> None:
    trial = Trial.of(open_shop)
    shop, before = trial.shop, trial.stable
    until(lambda: trial.behind_the_service() == {OLD: 4}, lambda: str(trial.behind_the_service()))
    trial.push(NEW, [{"weight": 25, "for": "0s"}, {"weight": 50, "for": "1s"}], success=[LET_GO])
    planned = shop.run(dry_run=True).plan
    assert planned
    assert f"Deployment/{shop.name}/api goes by canary: 25 % for 0s, 50 % for 1s" in planned.notes
    running = Running.of(shop)
    trial.holds("hold 0")
    until(lambda: trial.behind_the_service() == {OLD: 4, NEW: 1}, lambda: str(trial.behind_the_service()))
    assert owners("replicasets", shop) == {OLD: "Deployment/api", NEW: "Deployment/api-canary"}
    held = trial.stable
    assert (held["metadata"]["generation"], held["status"]["replicas"]) == (before["metadata"]["generation"], 4)

    state = shop.state()
    assert GroupKind("apps", "Deployment") in state.kinds
    assert shop.name in state.namespaces

    # Another worker, while it is held: neither prunes it nor calls it an orphan.
    hurried = threading.Event()
    hurried.set()
    other = shop.handler_at(shop.kubectl.kubeconfig).run(shop.job("drift"), hurried)
    assert other.outcome is Outcome.BUSY, told(other)
    kept = shop.handler_at(shop.kubectl.kubeconfig).run(shop.job(dry_run=True)).plan
    assert kept
    assert [(str(change.action), change.reason) for change in kept.prunes] == [
        ("skip", f"canary of Deployment/{shop.name}/api; goes when its rollout ends")
    ]
    # A person scales the Deployment: the next share is one of what it has then.
    shop.kubectl.run("scale", "deployment", "api", "-n", shop.name, "--replicas=7")
    with Watching.of(connection, shop.name) as watching:
        trial.let_go()
        result = running.result()
    assert result.outcome in DONE, told(result)
    canary = deployment(shop.name, "api-canary")
    assert watching.first(canary, lambda live: live["spec"]["replicas"] == 4 and is_available(live))
    assert not watching.first(canary, lambda live: live["spec"]["replicas"] not in (1, 4))
    trial.assert_promoted(NEW)
    assert (trial.steps()[0].outcome, shop.state().orphans) == ("done", ())


def writes_to(name: str, method: str = "PATCH") -> Callable[[str, str], bool]:
    return lambda sent, path: sent == method and path.partition("?")[0].endswith(f"/deployments/{name}") and "dryRun" not in path


def test_a_run_killed_in_any_phase_is_gone_on_with(open_shop: Open, wired: Wire) -> None:
    trial = Trial.of(open_shop)
    shop = trial.shop
    trial.push(NEW, [{"weight": 25, "for": "0s"}, {"weight": 50, "for": "1s"}], success=[LET_GO])
    assert kill_after(shop, wired, 1, writes_to("api-canary"))
    assert trial.mark().startswith("scale 0")
    uid = trial.canary["metadata"]["uid"] if trial.canary else ""
    child = shop.child().begin(shop.job())
    trial.holds("hold 0")
    child.signal(signal.SIGKILL)
    assert child.result() is None
    outlive(shop)
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


def test_a_function_leaves_the_canary_to_the_next_run(open_shop: Open) -> None:
    """As functions do: the time that is held counts from run to run."""
    trial = Trial.of(open_shop)
    shop = trial.shop
    options = Options(kubeconfig=str(shop.kubectl.kubeconfig), patience=0.0)
    shop.handler = Handler(shop.settings, resolve_all(shop.settings, os.environ, needs={"git"}), shop.sandbox, os.environ, options)
    trial.push(NEW, [{"weight": 50, "for": "3s"}])
    ends: list[tuple[Outcome, str]] = []

    def is_applied() -> bool:
        ends.append((shop.run("tick" if ends else "push").outcome, trial.mark().partition(" ")[0]))
        return ends[-1][0] is Outcome.APPLIED

    until(is_applied, lambda: str(ends))
    assert {outcome for outcome, _ in ends[:-1]} == {Outcome.WAITING}
    assert (Outcome.WAITING, "hold") in ends
    trial.assert_promoted(NEW)


def test_a_newer_commit_supersedes_the_canary_and_takes_it_over_or_deletes_it(open_shop: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(interrupts, "HEAD_EVERY", 0.3)
    trial = Trial.of(open_shop)
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

    unknown = {"apiVersion": "shop.example.com/v1", "kind": "Nothing", "metadata": {"name": "a", "namespace": shop.name}}
    shop.push(*trial.documents(NEWER), unknown)
    assert running.result().outcome is Outcome.SUPERSEDED
    refused = shop.run()
    assert (refused.outcome, refused.code) == (Outcome.FAILED, "plan-refused"), told(refused)
    until(lambda: trial.canary is None, lambda: "nobody watches it, so it goes")

    trial.push(OLD, [{"weight": 25, "for": "1h"}])
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


def test_a_canary_held_by_a_finalizer_leaves_the_phase_pruning(open_shop: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wait_deleted, "TIMEOUT", 0.5)
    trial = Trial.of(open_shop)
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
    monkeypatch.setattr(wait_deleted, "TIMEOUT", 60.0)
    shop.kubectl.run("patch", "deployment", "api-canary", "-n", shop.name, "-p", '{"metadata":{"finalizers":null}}')
    shop.applied()
    trial.assert_promoted(NEW)


def test_a_canary_goes_with_its_deployment(open_shop: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    """By label and identity it is a member like any other."""
    monkeypatch.setattr(interrupts, "HEAD_EVERY", 0.3)
    trial = Trial.of(open_shop)
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
