"""Hooks and waves on a real cluster: what runs before what, what a failure leaves alone, what a killed run has done already."""

from __future__ import annotations

import signal
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from handler.cluster.connect import Connection
from handler.config.settings import Wait
from handler.model.result import Outcome
from handler.model.rollout import ARGO_HOOK, HELM_HOOK
from handler.rollout.hooks import ARGO_POLICY, ARGO_WAVE
from tests.e2e.conftest import Open
from tests.e2e.documents import Document, config_map, deployment, job, namespace
from tests.e2e.killing import Wire, kill_after
from tests.e2e.serving import until
from tests.e2e.shop import DONE, MORTAL, Shop, told
from tests.e2e.test_crash import AT_ONCE, is_step
from tests.e2e.test_crash import steps as steps_of
from tests.e2e.watching import Watching, is_available, is_complete

DOOMED = {"activeDeadlineSeconds": 1}


def hook(shop: Shop, name: str, phases: str, wave: int = 0, policy: str = "", image: str = "act:1", **spec: Any) -> Document:
    """A Job that is an act, in the main namespace."""
    marks = {ARGO_HOOK: phases, ARGO_WAVE: str(wave)} | ({ARGO_POLICY: policy} if policy else {})
    made = job(shop.name, name, image, annotations=marks)
    made["spec"] |= spec
    return made


def doomed(made: Document) -> Document:
    """The same Job, whose pod finds no Node, so that it fails when its time is over."""
    made["spec"] |= DOOMED
    made["spec"]["template"]["spec"]["nodeSelector"] = {"there": "is-none"}
    return made


def held(made: Document) -> Document:
    """The same Job, which runs when the test lets it go."""
    made["spec"]["suspend"] = True
    return made


def waved(document: Document, wave: int) -> Document:
    document["metadata"]["annotations"] = {ARGO_WAVE: str(wave)}
    return document


def uid(shop: Shop, document: Document) -> str:
    live = shop.live(document)
    return str(live["metadata"]["uid"]) if live else ""


def steps(shop: Shop) -> dict[tuple[str, str], str]:
    """Return how the record says that each hook of the newest rollout ended."""
    progress = shop.state().rollout
    assert progress
    return {(step.group, step.object.rpartition("/")[2]): step.outcome for step in progress.steps}


def test_everything_comes_in_its_phase_and_wave(open_shop: Open, connection: Connection) -> None:
    shop = open_shop(wait=Wait())
    shop.create_namespace()
    gone, kept = config_map(shop.name, "gone"), config_map(shop.name, "kept")
    database = waved(deployment(shop.name, "database", replicas=1), -1)
    pre, early = hook(shop, "migrate", "PreSync"), hook(shop, "back-up", "PreSync", -1)
    during, post = hook(shop, "warm", "Sync", 1), hook(shop, "announce", "PostSync")
    late = waved(config_map(shop.name, "late"), 2)
    shop.push(gone, kept, deployment(shop.name, "web", "shop:1", 1), database)
    shop.applied()
    shop.push(kept, deployment(shop.name, "web", "shop:2", 1), database, pre, early, during, post, late)
    plan = shop.run("oneoff", dry_run=True).plan
    assert plan
    assert [(due.group, due.identity.name) for due in plan.due] == [
        ("PreSync", "back-up"),
        ("PreSync", "migrate"),
        ("Sync", "warm"),
        ("PostSync", "announce"),
    ]
    with Watching.of(connection, shop.name) as seen:
        shop.applied()
        until(lambda: seen.first(post, is_complete))
    web = deployment(shop.name, "web")
    order = [
        seen.first(early, is_complete),
        seen.first(pre, kind="ADDED"),
        seen.first(pre, is_complete),
        seen.first(web, lambda live: live["metadata"]["generation"] == 2),
        seen.first(web, lambda live: live["metadata"]["generation"] == 2 and is_available(live)),
        seen.first(during, kind="ADDED"),
        seen.first(during, is_complete),
        seen.first(late, kind="ADDED"),
        seen.first(gone, kind="DELETED"),
        seen.first(post, kind="ADDED"),
    ]
    assert 0 not in order
    assert order == sorted(order)
    assert set(steps(shop).values()) == {"done"}
    before = shop.versions([pre, early, during, post])
    assert shop.run("drift").outcome is Outcome.UNCHANGED
    assert shop.versions([pre, early, during, post]) == before


def test_a_failed_hook_leaves_everything_alone_and_those_of_a_failure_run(shop: Shop) -> None:
    web, extra = deployment(shop.name, "web", "shop:1"), config_map(shop.name, "extra")
    shop.push(web, extra)
    shop.applied()
    before = shop.versions([web, extra])
    failing = doomed(hook(shop, "migrate", "PreSync", policy="HookFailed"))
    tell = hook(shop, "tell", "SyncFail")
    shop.push(deployment(shop.name, "web", "shop:2"), failing, tell)
    result = shop.run()
    assert (result.outcome, result.code) == (Outcome.FAILED, "rollout-failed"), told(result)
    assert f"Job/{shop.name}/migrate: PreSync hook: " in result.message
    assert "deadline" in result.message.lower()
    assert shop.versions([web, extra]) == before
    assert steps(shop) == {("PreSync", "migrate"): "failed", ("SyncFail", "tell"): "done"}
    assert f"Job/{shop.name}/migrate" in shop.state().status.message
    assert not uid(shop, failing), "its policy is HookFailed"
    told_by = uid(shop, tell)
    again = shop.run("tick")
    assert (again.outcome, again.code) == (Outcome.FAILED, "rollout-failed"), told(again)
    assert "PreSync, " in again.message
    assert uid(shop, tell) == told_by, "a rollout that failed isn't tried again by itself"
    shop.push(deployment(shop.name, "web", "shop:2"), hook(shop, "migrate", "PreSync"), tell)
    shop.applied()
    assert steps(shop) == {("PreSync", "migrate"): "done"}
    assert not shop.live(extra)
    assert uid(shop, tell) == told_by


def test_a_hook_that_fails_among_the_stages_ends_them(shop: Shop) -> None:
    failing, late = doomed(hook(shop, "warm", "Sync", -1, "HookFailed")), config_map(shop.name, "late")
    early = waved(config_map(shop.name, "early"), -1)
    shop.push(failing, early, late)
    result = shop.run()
    assert (result.outcome, result.code) == (Outcome.FAILED, "rollout-failed"), told(result)
    assert f"Job/{shop.name}/warm: Sync hook: " in result.message
    assert shop.live(early)
    assert not shop.live(late)
    assert not uid(shop, failing), "its policy is HookFailed"
    assert steps(shop) == {("Sync", "warm"): "failed"}


def test_policies_say_what_becomes_of_a_hook(shop: Shop) -> None:
    stays, goes = hook(shop, "stays", "PreSync"), hook(shop, "goes", "PostSync", policy="HookSucceeded")
    made = hook(shop, "", "PreSync")
    made["metadata"] |= {"generateName": "made-"}
    account = config_map(shop.name, "settings", annotations={HELM_HOOK: "pre-install,pre-upgrade"})
    shop.push(config_map(shop.name, "one"), stays, goes, made, account)
    shop.applied()
    jobs = {item["metadata"]["name"]: item["metadata"]["uid"] for item in shop.kubectl("get", "jobs", "-n", shop.name)["items"]}
    assert sorted(name.partition("-")[0] for name in jobs) == ["made", "stays"]
    first = uid(shop, account)
    assert shop.run("drift").outcome is Outcome.UNCHANGED
    shop.push(config_map(shop.name, "one", {"key": "2"}), stays, goes, made, account)
    shop.applied()
    again = {item["metadata"]["name"]: item["metadata"]["uid"] for item in shop.kubectl("get", "jobs", "-n", shop.name)["items"]}
    assert again.keys() == jobs.keys()
    assert all(again[name] != jobs[name] for name in jobs)
    assert uid(shop, account) != first
    shop.push(config_map(shop.name, "one", {"key": "2"}), goes)
    shop.applied()
    assert shop.labelled().keys() == {f"ConfigMap/{shop.name}/one"}


def test_a_job_that_runs_when_the_worker_is_killed_runs_once(mortal: Shop, connection: Connection) -> None:
    shop = mortal
    migrate, web = held(hook(shop, "migrate", "PreSync", policy="HookSucceeded")), deployment(shop.name, "web")
    shop.push(migrate, web)
    with Watching.of(connection, shop.name) as seen:
        child = shop.child().begin(shop.job())
        until(lambda: seen.first(migrate) and any(step.mark for step in (shop.state().rollout or pytest.fail("no rollout")).steps))
        child.signal(signal.SIGKILL)
        assert child.result() is None
        assert not shop.live(web)
        shop.kubectl.run("patch", "job", "migrate", "-n", shop.name, "--type=merge", "-p", '{"spec":{"suspend":false}}')
        assert shop.run("tick").outcome in DONE
        until(lambda: seen.first(migrate, kind="DELETED"))
    assert len(seen.uids(migrate)) == 1
    assert seen.first(migrate, is_complete) < seen.first(web)
    assert steps(shop) == {("PreSync", "migrate"): "done"}


def test_a_job_created_just_before_the_worker_is_killed_runs_once(mortal: Shop, wired: Wire, connection: Connection) -> None:
    shop = mortal
    migrate, web = hook(shop, "migrate", "PreSync"), deployment(shop.name, "web")
    shop.push(migrate, web)
    with Watching.of(connection, shop.name) as seen:
        assert kill_after(shop, wired, 1, lambda method, path: method == "PATCH" and "/jobs/" in path and "dryRun" not in path)
        assert shop.run("tick").outcome in DONE
    assert len(seen.uids(migrate)) == 1
    assert seen.first(migrate, is_complete) < seen.first(web)


def test_a_wave_isnt_written_before_the_lower_one_is_healthy(open_shop: Open) -> None:
    shop = open_shop(wait=Wait(timeout=30.0))
    shop.create_namespace()
    old = config_map(shop.name, "old")
    shop.push(old)
    shop.applied()
    failing, late = waved(doomed(job(shop.name, "load")), -1), config_map(shop.name, "late")
    shop.push(failing, late)
    result = shop.run()
    assert (result.outcome, result.code) == (Outcome.FAILED, "rollout-failed"), told(result)
    assert f"Job/{shop.name}/load: " in result.message
    assert shop.live(failing)
    assert not shop.live(late)
    assert shop.live(old), "nothing is pruned after a failure"
    assert shop.run("tick").code == "rollout-failed", "what is written already is waited for all the same"
    assert not shop.live(late)
    shop.push(late, old)
    shop.applied()
    shop.assert_converged()


def test_a_namespace_comes_before_the_early_hook_that_lives_in_it(open_shop: Open, connection: Connection) -> None:
    shop = open_shop()
    migrate, web = hook(shop, "migrate", "PreSync"), config_map(shop.name, "web")
    shop.push(web, migrate, namespace(shop.name))
    with Watching.of(connection, shop.name) as seen:
        shop.applied()
        until(lambda: seen.first(web))
    assert 0 < seen.first(migrate, is_complete) < seen.first(web)


def test_what_would_be_refused_is_refused_before_the_first_write(shop: Shop) -> None:
    one, migrate = config_map(shop.name, "one"), hook(shop, "migrate", "PreSync")
    shop.push(one, migrate)
    shop.applied()
    before = shop.versions([one, migrate])
    changed = config_map(shop.name, "one", {"key": "2"})
    shop.push(changed, hook(shop, "migrate", "PreSync", backoffLimit=-1))
    refused = shop.run()
    assert (refused.outcome, refused.code) == (Outcome.FAILED, "plan-refused"), told(refused)
    assert f"Job/{shop.name}/migrate" in refused.message
    assert "backoffLimit" in refused.message
    foreign = job(shop.name, "theirs")
    shop.kubectl.apply(foreign)
    shop.push(changed, migrate, hook(shop, "theirs", "PostSync"))
    refused = shop.run()
    assert refused.code == "plan-refused", told(refused)
    assert "lives already, isn't ours, and this hook would have to delete it" in refused.message
    assert f"kubectl delete jobs -n {shop.name} theirs" in refused.message
    assert shop.versions([one, migrate]) == before
    shop.push(changed, hook(shop, "migrate", "PreSync", image="act:2"))
    shop.applied()
    live = shop.live(migrate)
    assert live
    assert live["spec"]["template"]["spec"]["containers"][0]["image"] == "act:2", "a finished Job can't be changed, and was made anew"


def test_who_may_not_wait_comes_back_to_a_hook_that_runs(shop: Shop, connection: Connection) -> None:
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


@pytest.mark.slow
def test_a_rollout_with_hooks_killed_after_any_write_is_finished_and_runs_each_once(
    open_shop: Open, wired: Wire, connection: Connection
) -> None:
    def opened() -> Shop:
        shop = open_shop(lease=MORTAL)
        shop.create_namespace()
        shop.push(config_map(shop.name, "one"), config_map(shop.name, "gone"))
        shop.applied()
        shop.push(config_map(shop.name, "one", {"key": "2"}), *hooks(shop))
        return shop

    def hooks(shop: Shop) -> list[Document]:
        policies = {"before": "PreSync", "during": "Sync", "after": "PostSync"}
        return [hook(shop, name, phase, policy="HookSucceeded" if name == "after" else "") for name, phase in policies.items()]

    undisturbed = opened()
    total = steps_of(undisturbed, wired)

    def crash(step: int) -> bool:
        shop = opened()
        with Watching.of(connection, shop.name) as seen:
            killed = kill_after(shop, wired, step, is_step)
            result = shop.run("tick")
            assert result.outcome in DONE, told(result)
            until(lambda: seen.first(hooks(shop)[2], kind="DELETED"))
        assert [len(seen.uids(made)) for made in hooks(shop)] == [1, 1, 1], step
        assert set(steps(shop).values()) == {"done"}
        assert shop.labelled().keys() == {f"ConfigMap/{shop.name}/one", f"Job/{shop.name}/before", f"Job/{shop.name}/during"}
        return killed

    with ThreadPoolExecutor(AT_ONCE) as pool:
        numbers = range(1, total + 1, 3)  # each third, for the time it takes
        assert sum(pool.map(crash, numbers)) >= len(numbers) - 1
