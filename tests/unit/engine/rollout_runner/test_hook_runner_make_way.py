"""What lives under a hook's name: what goes for it, what is brought to what it says, and what is never touched."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from handler.model.event import Job
from handler.model.result import Outcome
from handler.rollout.hook_annotations import ROLLOUT
from tests.fakes.apiserver import Call
from tests.fakes.apiserver.connection import Reply, Way
from tests.fakes.apiserver.kinds import WORKLOADS
from tests.fakes.apiserver.server import Asked
from tests.fakes.engine import ONE, cluster
from tests.unit.engine.in_memory_cluster import MAPS, InMemoryCluster, config_map
from tests.unit.engine.rollback_commits import HOOK, push

pytestmark = pytest.mark.slow

AFTER = {"argocd.argoproj.io/hook": "PostSync", "argocd.argoproj.io/hook-delete-policy": "HookSucceeded"}
HELM = {"labels": {"app.kubernetes.io/managed-by": "Helm"}, "annotations": {"meta.helm.sh/release-name": "theirs"}}


def run(fake: InMemoryCluster) -> Outcome:
    return fake.handler(ONE).run(Job("shop", "push")).outcome


def plant(fake: InMemoryCluster, **metadata: dict[str, str]) -> None:
    body = config_map("after", "theirs")
    body["metadata"] |= metadata
    status, _ = fake.server.answer(Asked("POST", MAPS, {}, body, "", ""))
    assert status == 201


def test_a_member_that_becomes_a_hook_goes_for_it_and_is_reported_and_a_hooks_own_goes_each_time() -> None:
    fake = InMemoryCluster()
    push(fake, "1", migrate={})
    assert run(fake) is Outcome.APPLIED
    before = fake.uid("migrate")
    push(fake, "2", migrate=HOOK)
    result = fake.handler(ONE).run(Job("shop", "push"))
    assert result.counts == {"configured": 1, "recreated": 1}
    assert (fake.data("migrate"), fake.uid("migrate") != before) == (["2"], True)
    again = fake.uid("migrate")
    push(fake, "3", migrate=HOOK)
    result = fake.handler(ONE).run(Job("shop", "push"))
    assert result.counts == {"configured": 1}
    assert (fake.data("migrate"), fake.uid("migrate") != again) == (["3"], True)


def marked_by_another(fake: InMemoryCluster, name: str) -> None:
    """Let another manager write the mark of a rollout, with the value that it has."""
    live = fake.live(name)
    assert live
    value = live["metadata"]["annotations"][ROLLOUT]
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "shop", "annotations": {ROLLOUT: value}}}
    fake.server.must(Asked("PATCH", f"{MAPS}/{name}", {"fieldManager": "jo", "force": "true"}, body, "application/apply-patch+yaml", ""))


def test_a_hook_deletes_nothing_that_the_plan_didnt_show_and_the_next_run_shows_it() -> None:
    """What a rollout made is another's, too, from the moment between plan and hook on."""
    fake = InMemoryCluster()
    push(fake, "1", migrate=HOOK)
    assert run(fake) is Outcome.APPLIED
    before = fake.uid("migrate")

    def way(call: Call, do: Callable[[], Reply]) -> Reply:
        reply = do()
        if call.asked.method == "PUT" and call.asked.path.endswith("/configmaps/anneal-shop") and fake.uid("migrate") == before:
            marked_by_another(fake, "migrate")
        return reply

    push(fake, "2", migrate=HOOK)
    fake.meet = way
    result = fake.handler(ONE).run(Job("shop", "push"))
    assert (result.outcome, result.code, fake.uid("migrate")) == (Outcome.FAILED, "plan-stale", before)
    again = fake.handler(ONE).run(Job("shop", "tick"))
    assert (again.outcome, again.counts["recreated"]) == (Outcome.APPLIED, 1)
    assert fake.uid("migrate") != before


def test_a_protected_member_that_becomes_a_hook_is_never_taken_for_what_a_rollout_made() -> None:
    fake = InMemoryCluster()
    push(fake, "1", migrate={})
    assert run(fake) is Outcome.APPLIED
    before = fake.uid("migrate")
    change(fake, f"{MAPS}/migrate", KEPT)
    push(fake, "2", migrate=HOOK)
    assert run(fake) is Outcome.APPLIED
    assert (fake.data("migrate"), fake.uid("migrate")) == (["2"], before)
    change(fake, f"{MAPS}/migrate", {"metadata": {"annotations": {"anneal.dev/prune": None}}})
    push(fake, "3", migrate=HOOK)
    plan = fake.handler(ONE).run(Job("shop", "oneoff", dry_run=True)).plan
    assert plan
    assert [gone.counted for gone in plan.gone] == [True]


JOBS = "/apis/batch/v1/namespaces/shop/jobs"
KEPT = {"metadata": {"annotations": {"anneal.dev/prune": "disabled"}}}


def migration(value: str, **annotations: str) -> dict[str, Any]:
    metadata = {"name": "migrate", "namespace": "shop", "annotations": HOOK | annotations}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": {"value": value}}


def pushed(fake: InMemoryCluster, value: str, **annotations: str) -> None:
    bodies = {"web": config_map("web", value), "migrate": migration(value, **annotations)}
    fake.host.push(fake.host.commit({f"shop/{name}.yaml": json.dumps(body) for name, body in bodies.items()}))


def job(fake: InMemoryCluster) -> dict[str, Any]:
    return fake.server.must(Asked("GET", f"{JOBS}/migrate", {}, None, "", ""))


def completes(fake: InMemoryCluster) -> Way:
    """Each Job is done as soon as it is there."""

    def way(call: Call, do: Callable[[], Reply]) -> Reply:
        reply = do()
        if call.asked.method == "PATCH" and call.writes and call.asked.path == f"{JOBS}/migrate":
            done = {"status": {"conditions": [{"type": "Complete", "status": "True"}]}}
            fake.server.must(Asked("PATCH", f"{JOBS}/migrate", {}, done, "application/merge-patch+json", ""))
        return reply

    return way


def change(fake: InMemoryCluster, path: str, patch: dict[str, Any]) -> None:
    fake.server.must(Asked("PATCH", path, {"fieldManager": "jo"}, patch, "application/merge-patch+json", ""))


@pytest.mark.parametrize("late", [False, True])
def test_a_protected_hook_job_isnt_deleted_for_the_next_rollout(*, late: bool) -> None:
    """Before anything is written, if it is known then; it can't be changed, so there is nothing else to be done."""
    fake = InMemoryCluster(cluster(served=WORKLOADS))
    fake.meet = completes(fake)
    pushed(fake, "1")
    assert run(fake) is Outcome.APPLIED
    before = job(fake)["metadata"]["uid"]

    def protected(call: Call, do: Callable[[], Reply]) -> Reply:
        reply = do()
        if call.asked.method == "PUT" and call.asked.path.endswith("/configmaps/anneal-shop"):
            change(fake, f"{JOBS}/migrate", KEPT)
        return reply

    pushed(fake, "2")
    if late:
        fake.meet = protected
    else:
        change(fake, f"{JOBS}/migrate", KEPT)
    result = fake.handler(ONE).run(Job("shop", "push"))
    assert (result.outcome, fake.data("web"), job(fake)["metadata"]["uid"]) == (Outcome.FAILED, ["1"], before), result
    said = "lives already, and this hook would have to delete it, but: protected by anneal.dev/prune: disabled"
    assert f"shop/migrate.yaml:1: Job/shop/migrate: {'PreSync hook: ' * late}{said}; lift what keeps it" in result.message


def test_prune_disabled_declared_by_the_hook_doesnt_stop_its_own_delete_policy() -> None:
    """As where such annotations come from: it says that the hook outlives its file, not that it runs once."""
    fake = InMemoryCluster(cluster(served=WORKLOADS))
    fake.meet = completes(fake)
    pushed(fake, "1", **{"helm.sh/resource-policy": "keep"})
    assert run(fake) is Outcome.APPLIED
    before = job(fake)["metadata"]["uid"]
    pushed(fake, "2", **{"helm.sh/resource-policy": "keep"})
    assert run(fake) is Outcome.APPLIED
    assert job(fake)["metadata"]["uid"] != before


@pytest.mark.parametrize("newer", [{}, {"argocd.argoproj.io/sync-options": "Prune=false,Replace=true"}])
def test_prune_disabled_of_an_earlier_commit_of_the_hook_doesnt_stop_its_delete_policy(newer: dict[str, str]) -> None:
    """Else a commit that takes it back, and a rollback to one from before it, would wait for a person's hand."""
    fake = InMemoryCluster(cluster(served=WORKLOADS))
    fake.meet = completes(fake)
    pushed(fake, "1", **{"argocd.argoproj.io/sync-options": "Prune=false"})
    assert run(fake) is Outcome.APPLIED
    before = job(fake)["metadata"]["uid"]
    pushed(fake, "2", **newer)
    assert run(fake) is Outcome.APPLIED
    assert job(fake)["metadata"]["uid"] != before


@pytest.mark.parametrize("theirs", ["Prune=false,Delete=false", "Prune=false"])
def test_a_protection_counts_where_another_manager_owns_it_too(theirs: str) -> None:
    fake = InMemoryCluster(cluster(served=WORKLOADS))
    fake.meet = completes(fake)
    pushed(fake, "1", **{"argocd.argoproj.io/sync-options": "Prune=false"})
    assert run(fake) is Outcome.APPLIED
    before = job(fake)["metadata"]["uid"]
    metadata = {"name": "migrate", "namespace": "shop", "annotations": {"argocd.argoproj.io/sync-options": theirs}}
    body = {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata}
    fake.server.must(Asked("PATCH", f"{JOBS}/migrate", {"fieldManager": "jo", "force": "true"}, body, "application/apply-patch+yaml", ""))
    pushed(fake, "2")
    assert (run(fake), job(fake)["metadata"]["uid"]) == (Outcome.FAILED, before)


def test_an_object_protected_before_it_became_a_hook_stays_protected() -> None:
    fake = InMemoryCluster(cluster(served=WORKLOADS))
    plain = migration("1")
    plain["metadata"]["annotations"] = {"argocd.argoproj.io/sync-options": "Prune=false"}
    fake.host.push(fake.host.commit({"shop/web.yaml": json.dumps(config_map("web", "1")), "shop/migrate.yaml": json.dumps(plain)}))
    assert run(fake) is Outcome.APPLIED
    before = job(fake)["metadata"]["uid"]
    pushed(fake, "2")
    assert (run(fake), job(fake)["metadata"]["uid"]) == (Outcome.FAILED, before)


def test_a_protected_object_that_can_be_changed_is_applied_as_the_hook_says() -> None:
    fake = InMemoryCluster()
    push(fake, "1", migrate=HOOK)
    assert run(fake) is Outcome.APPLIED
    before = fake.uid("migrate")
    change(fake, f"{MAPS}/migrate", KEPT)
    push(fake, "2", migrate=HOOK)
    assert run(fake) is Outcome.APPLIED
    assert (fake.data("migrate"), fake.uid("migrate")) == (["2"], before)


def test_no_hook_delete_policy_deletes_a_protected_object() -> None:
    fake = InMemoryCluster()
    push(fake, "1", after=AFTER)

    def way(call: Call, do: Callable[[], Reply]) -> Reply:
        reply = do()
        if call.writes and call.asked.path == f"{MAPS}/after" and call.asked.method == "PATCH":
            change(fake, f"{MAPS}/after", KEPT)
        return reply

    fake.meet = way
    assert run(fake) is Outcome.APPLIED
    assert fake.data("after") == ["1"]


@pytest.mark.parametrize("metadata", [{}, HELM])
def test_an_unowned_object_that_a_hook_delete_policy_would_delete_is_refused(metadata: dict[str, dict[str, str]]) -> None:
    fake = InMemoryCluster()
    plant(fake, **metadata)
    push(fake, "1", after=AFTER)
    assert run(fake) is Outcome.FAILED
    assert fake.data("web", "after") == [None, "theirs"]


def test_a_hook_takes_nothing_over_from_another_tool_though_the_target_adopts_from_it() -> None:
    fake = InMemoryCluster()
    plant(fake, **HELM)
    push(fake, "1", after=AFTER)
    result = fake.handler(replace(ONE, targets=(replace(ONE.targets[0], adopt=("helm",)),))).run(Job("shop", "push"))
    assert (result.outcome, result.problems[0].message) == (Outcome.FAILED, "belongs to Helm release theirs")
    assert result.problems[0].fix.startswith("a hook takes nothing over from another tool or target")
    assert fake.data("web", "after") == [None, "theirs"]


@pytest.mark.parametrize("metadata", [{}, HELM])
def test_a_hook_neither_overwrites_nor_deletes_an_object_made_after_the_plan(metadata: dict[str, dict[str, str]]) -> None:
    fake = InMemoryCluster()
    push(fake, "1", after=AFTER)

    def way(call: Call, do: Callable[[], Reply]) -> Reply:
        reply = do()
        if call.writes and call.asked.path == f"{MAPS}/web":
            plant(fake, **metadata)
        return reply

    fake.meet = way
    assert run(fake) is Outcome.FAILED
    assert fake.data("web", "after") == ["1", "theirs"]
