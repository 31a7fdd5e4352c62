"""Hooks outlive the worker that began them: each runs once, whichever worker goes on."""

from __future__ import annotations

import signal
from concurrent.futures import ThreadPoolExecutor

import pytest

from handler.cluster.connect import ClusterConnection
from handler.config.settings import Wait
from handler.model.result import Outcome
from tests.e2e.conftest import Open
from tests.e2e.documents import Document, config_map, deployment
from tests.e2e.hook_jobs import held, hook, steps
from tests.e2e.killed_runs import AT_ONCE, Wire, is_recorded, kill_after, outlive
from tests.e2e.object_history import Watching, is_complete
from tests.e2e.one_target import DONE, Shop, outwaited, told
from tests.patience import until


def test_a_hook_job_that_runs_when_the_worker_is_killed_runs_once(shop: Shop, connection: ClusterConnection) -> None:
    migrate, web = held(hook(shop, "migrate", "PreSync", policy="HookSucceeded")), deployment(shop.name, "web")
    shop.push(migrate, web)
    with Watching.of(connection, shop.name) as seen:
        child = shop.child().begin(shop.job())
        until(lambda: seen.first(migrate) and any(step.mark for step in (shop.state().rollout or pytest.fail("no rollout")).steps))
        child.signal(signal.SIGKILL)
        assert child.result() is None
        outlive(shop)
        assert not shop.live(web)
        shop.kubectl.run("patch", "job", "migrate", "-n", shop.name, "--type=merge", "-p", '{"spec":{"suspend":false}}')
        assert shop.run("tick").outcome in DONE
        until(lambda: seen.first(migrate, kind="DELETED"))
    assert len(seen.uids(migrate)) == 1
    assert seen.first(migrate, is_complete) < seen.first(web)
    assert steps(shop) == {("PreSync", "migrate"): "done"}


def test_a_hook_job_created_just_before_the_worker_is_killed_runs_once(shop: Shop, wired: Wire, connection: ClusterConnection) -> None:
    migrate, web = hook(shop, "migrate", "PreSync"), deployment(shop.name, "web")
    shop.push(migrate, web)
    with Watching.of(connection, shop.name) as seen:
        assert kill_after(shop, wired, 1, lambda method, path: method == "PATCH" and "/jobs/" in path and "dryRun" not in path)
        assert shop.run("tick").outcome in DONE
    assert len(seen.uids(migrate)) == 1
    assert seen.first(migrate, is_complete) < seen.first(web)


def test_a_function_comes_back_to_a_running_hook(shop: Shop, connection: ClusterConnection) -> None:
    migrate, web = held(hook(shop, "migrate", "PreSync")), deployment(shop.name, "web")
    shop.push(migrate, web)
    shop.handler = shop.handler_at(shop.kubectl.kubeconfig, patience=0.0)
    with Watching.of(connection, shop.name) as seen:
        for trigger in ("push", "tick"):
            result = shop.run(trigger)
            assert result.outcome is Outcome.WAITING, told(result)
        assert steps(shop) == {("PreSync", "migrate"): ""}
        assert not shop.live(web)
        shop.kubectl.run("patch", "job", "migrate", "-n", shop.name, "--type=merge", "-p", '{"spec":{"suspend":false}}')
        until(lambda: seen.first(migrate, is_complete))
        assert shop.run("tick").outcome in DONE
    assert len(seen.uids(migrate)) == 1


def test_hooks_of_which_nothing_changes_for_too_long_fail_though_no_run_waits(shop: Shop) -> None:
    shop.handler = shop.handler_at(shop.kubectl.kubeconfig, patience=0.0)
    both = [held(hook(shop, name, "PreSync")) for name in ("back-up", "migrate")]
    shop.push(*both, deployment(shop.name, "web"))
    assert shop.run().outcome is Outcome.WAITING
    shop.configure(wait=Wait(120.0, 1.0))
    shop.handler = shop.handler_at(shop.kubectl.kubeconfig, patience=0.0)
    result = outwaited(shop)
    assert (result.outcome, result.code) == (Outcome.FAILED, "rollout-failed"), told(result)
    assert "PreSync hook: isn't healthy, and nothing has changed for 1s" in result.message
    assert steps(shop) == {("PreSync", "back-up"): "failed", ("PreSync", "migrate"): "failed"}


def test_a_rollout_with_hooks_killed_after_any_write_is_finished_and_runs_each_once(
    open_shop: Open, wired: Wire, connection: ClusterConnection
) -> None:
    def opened() -> Shop:
        shop = open_shop()
        shop.create_namespace()
        shop.push(config_map(shop.name, "one"), config_map(shop.name, "gone"))
        shop.applied()
        shop.push(config_map(shop.name, "one", {"key": "2"}), *hooks(shop))
        return shop

    def hooks(shop: Shop) -> list[Document]:
        policies = {"before": "PreSync", "during": "Sync", "after": "PostSync"}
        return [hook(shop, name, phase, policy="HookSucceeded" if name == "after" else "") for name, phase in policies.items()]

    undisturbed, wire = opened(), wired()
    ended = undisturbed.child(wire.kubeconfig).begin(undisturbed.job()).result()
    assert ended
    assert ended.outcome is Outcome.APPLIED, told(ended)
    total = sum(is_recorded(*request) for request in wire.seen)
    assert total > 16

    def crash(step: int) -> bool:
        shop = opened()
        with Watching.of(connection, shop.name) as seen:
            killed = kill_after(shop, wired, step, is_recorded)
            result = shop.run("tick")
            assert result.outcome in DONE, told(result)
            until(lambda: seen.first(hooks(shop)[2], kind="DELETED"))
        assert [len(seen.uids(made)) for made in hooks(shop)] == [1, 1, 1], step
        assert set(steps(shop).values()) == {"done"}
        assert shop.labelled().keys() == {f"ConfigMap/{shop.name}/one", f"Job/{shop.name}/before", f"Job/{shop.name}/during"}
        return killed

    with ThreadPoolExecutor(AT_ONCE) as pool:
        numbers = range(3, total + 1, 4)  # each fourth: begins, marks, ends and a deletion; after a creation: see above
        assert sum(pool.map(crash, numbers)) > len(numbers) // 2  # how many records share a write is up to the threads
