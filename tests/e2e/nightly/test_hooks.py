"""Hooks and waves on a real cluster: what runs before what, what a failure leaves alone, what becomes of a hook."""

from __future__ import annotations

from pathlib import Path

from handler.cluster.connect import ClusterConnection
from handler.config.settings import Wait
from handler.model.result import Outcome
from handler.model.rollout import HELM_HOOK
from tests.e2e.conftest import Open
from tests.e2e.documents import config_map, deployment, job
from tests.e2e.hook_jobs import doomed, hook, steps, uid, waved
from tests.e2e.object_history import Watching, is_available, is_complete
from tests.e2e.one_target import PATH, Shop, told
from tests.patience import PATIENCE, until

HOOKS = Path(__file__).parents[2] / "unit" / "rollout" / "hooks"


def test_hooks_and_objects_come_in_their_sync_phase_and_wave(open_shop: Open, connection: ClusterConnection) -> None:
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
    until(lambda: not uid(shop, failing), lambda: "its policy is HookFailed")
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


def test_hook_delete_policies_are_carried_out(shop: Shop) -> None:
    stays, goes = hook(shop, "stays", "PreSync"), hook(shop, "goes", "PostSync", policy="HookSucceeded")
    made = hook(shop, "", "PreSync")
    made["metadata"] |= {"generateName": "made-"}
    account = config_map(shop.name, "settings", annotations={HELM_HOOK: "pre-install,pre-upgrade"})
    shop.push(config_map(shop.name, "one"), stays, goes, made, account)
    shop.applied()
    until(lambda: not uid(shop, goes))
    jobs = {item["metadata"]["name"]: item["metadata"]["uid"] for item in shop.kubectl("get", "jobs", "-n", shop.name)["items"]}
    assert sorted(name.partition("-")[0] for name in jobs) == ["made", "stays"]
    first = uid(shop, account)
    assert shop.run("drift").outcome is Outcome.UNCHANGED
    shop.push(config_map(shop.name, "one", {"key": "2"}), stays, goes, made, account)
    shop.applied()
    until(lambda: not uid(shop, goes))
    again = {item["metadata"]["name"]: item["metadata"]["uid"] for item in shop.kubectl("get", "jobs", "-n", shop.name)["items"]}
    assert again.keys() == jobs.keys()
    assert all(again[name] != jobs[name] for name in jobs)
    assert uid(shop, account) != first
    shop.push(config_map(shop.name, "one", {"key": "2"}), goes)
    shop.applied()
    until(lambda: not uid(shop, goes))
    assert shop.labelled().keys() == {f"ConfigMap/{shop.name}/one"}


def test_hooks_of_public_argo_cd_repositories_run_unchanged(open_shop: Open) -> None:
    shop = open_shop()
    shop.create_namespace()
    shop.configure(namespace=shop.name)
    for name in ("argo.yaml", "helm.yaml"):
        documents = (HOOKS / name).read_text().split("---\n")
        ours = [text for text in documents if "kind: CustomResourceDefinition" not in text and "kind: Namespace" not in text]
        shop.work.write(f"{PATH}/{name}", "---\n".join(ours))
    shop.work.commit("hooks")
    shop.work.push()
    plan = shop.run("oneoff", dry_run=True).plan
    assert plan
    assert [note.partition(": ")[2] for note in plan.notes] == [
        "hook PostDelete is never run by a rollout",
        "hook test is never run by a rollout",
        "hook pre-rollback, post-delete is never run by a rollout; it runs as PreSync",
    ]
    shop.applied()
    made = next(name for _, name in steps(shop) if name.startswith("schema-migrate-"))
    pre = ("release-migrate", made, "release-cleanup", "release-both")
    after = [("Sync", "warm-caches"), ("PostSync", "warm-caches"), ("PostSync", "release-admission-patch")]
    assert steps(shop) == dict.fromkeys([*(("PreSync", name) for name in pre), *after], "done")
    wanted = [f"job.batch/{name}" for name in (made, "release-admission-patch", "release-both", "release-cleanup")]
    until(lambda: sorted(shop.kubectl.run("get", "jobs", "-n", shop.name, "-o", "name").split()) == sorted(wanted))
    assert shop.kubectl.run("get", "serviceaccount", "release-migrate", "-n", shop.name)


def test_a_wave_isnt_written_before_the_lower_one_is_healthy(open_shop: Open) -> None:
    shop = open_shop(wait=Wait(timeout=PATIENCE))
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
