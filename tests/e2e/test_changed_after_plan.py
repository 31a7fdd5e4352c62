"""What moves between the plan and its write is judged again, by every rule of the plan; the record says what came of it."""

from __future__ import annotations

import copy
import json
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from handler.config.settings import Prune
from handler.engine.apply import wait_deleted
from handler.model.event import Delivery
from handler.model.names import state_name
from handler.model.plan import Action
from handler.model.result import Outcome
from tests.e2e.documents import Document, config_map, definition, deployment, namespace, offer
from tests.e2e.killed_runs import Wire
from tests.e2e.meeting_writes import run_meeting, write_of
from tests.e2e.one_target import DONE, STATES, Shop, told
from tests.rooms.cluster.faulty_proxy import Handler

Asked = dict[str, Any]
"""Fields of a Job."""
DELIVERY = Delivery("7", "github", "refs/heads/main", "a" * 40, "ann", "2026-03-01T12:00:00Z")


def scaler(shop: Shop) -> Document:
    reference = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
    spec = {"scaleTargetRef": reference, "minReplicas": 1, "maxReplicas": 9}
    return {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "web", "namespace": shop.name},
        "spec": spec,
    }


def test_an_object_changed_after_the_plan_keeps_its_ignored_fields(shop: Shop, wired: Wire) -> None:
    shop.push(deployment(shop.name, "web", replicas=2), scaler(shop))
    shop.applied()
    shop.kubectl.run("scale", "deployment", "web", "-n", shop.name, "--replicas=7")
    pushed = deployment(shop.name, "web", "shop:2", replicas=2)
    shop.push(pushed, scaler(shop))
    touch = partial(shop.kubectl.run, "annotate", "deployment", "web", "-n", shop.name, "touched=yes")
    result = run_meeting(shop, wired, write_of("PATCH", "/deployments/web"), touch)
    assert result.outcome is Outcome.APPLIED, told(result)
    live = shop.live(pushed)
    assert live
    assert live["spec"]["replicas"] == 7, "the autoscaler's"
    assert live["spec"]["template"]["spec"]["containers"][0]["image"] == "shop:2"
    assert live["metadata"]["annotations"]["touched"] == "yes", "it goes once a plan has shown it"


def test_a_plan_doesnt_show_what_a_controller_writes_while_it_is_made(shop: Shop, wired: Wire) -> None:
    """Between the LIST and the dry-run, as it writes a revision or a status."""
    shop.push(config_map(shop.name, "a"))
    shop.applied()
    shop.push(config_map(shop.name, "a", {"key": "2"}))
    touch = partial(shop.kubectl.run, "annotate", "configmap", "a", "-n", shop.name, "seen=1", "--field-manager=a-controller")
    wire = wired()

    def meet(_: Handler) -> bool:
        touch()
        return True

    def is_dry(method: str, path: str) -> bool:
        return method == "PATCH" and "/configmaps/a?" in path and "dryRun=All" in path

    wire.meet(1, meet, is_dry)
    plan = shop.handler_at(wire.kubeconfig).run(shop.job(dry_run=True)).plan
    assert sum(is_dry(*asked) for asked in wire.seen) == 2, "asked again, once"
    assert plan
    (change,) = plan.writes
    assert [(field.path, field.live, field.declared) for field in change.fields] == [("data.key", "1", "2")]
    live = shop.live(config_map(shop.name, "a"))
    assert live
    assert change.resource_version == live["metadata"]["resourceVersion"]


def create(shop: Shop, document: Document) -> None:
    shop.kubectl.run("create", "-f", "-", given=json.dumps(document))


def test_a_create_does_not_take_over_what_another_tool_made_meanwhile(shop: Shop, wired: Wire) -> None:
    shop.push(config_map(shop.name, "a"), config_map(shop.name, "b"))
    theirs = config_map(shop.name, "b", {"key": "theirs"}, labels={"kustomize.toolkit.fluxcd.io/name": "apps"})
    result = run_meeting(shop, wired, write_of("PATCH", "/configmaps/b"), partial(create, shop, theirs))
    assert (result.outcome, result.code, result.counts) == (Outcome.FAILED, "apply-failed", {"created": 1}), told(result)
    assert [change.identity.name for change in result.written] == ["a"]
    (problem,) = result.problems
    assert problem.message == "belongs to Flux Kustomization apps"
    assert problem.place == f"deploy/ConfigMap-{shop.name}-b.yaml:1"
    live = shop.live(theirs)
    assert live
    assert (live["data"], live["metadata"]["labels"]) == (theirs["data"], theirs["metadata"]["labels"])


def test_a_create_adopts_an_unowned_object_made_after_the_plan_and_is_recorded_as_update(shop: Shop, wired: Wire) -> None:
    shop.push(config_map(shop.name, "a"), config_map(shop.name, "b"))
    by_hand = config_map(shop.name, "b", {"key": "by hand", "more": "of it"})
    act = partial(shop.kubectl.apply, by_hand)
    result = run_meeting(shop, wired, write_of("PATCH", "/configmaps/b"), act)
    assert result.outcome is Outcome.APPLIED, told(result)
    assert result.counts == {"created": 1, "configured": 1}
    assert result.plan
    assert [change.adopted for change in result.plan.changes] == [False, True]
    live = shop.live(by_hand)
    assert live
    assert live["data"] == {"key": "1", "more": "of it"}, "it goes once a plan has shown it"
    shop.applied("drift")
    shop.assert_converged()


_FULL = 'configmaps "a" is forbidden: exceeded quota: full, requested: configmaps=1, used: configmaps=1, limited: configmaps=1'
_REFUSAL = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Forbidden", "code": 403, "message": _FULL}


@pytest.mark.parametrize(("fields", "outcome"), [({}, Outcome.UNCHANGED), ({"dry_run": True}, Outcome.PLANNED)], ids=["run", "plan"])
def test_a_dry_run_that_is_refused_while_another_run_writes_says_nothing(shop: Shop, wired: Wire, fields: Asked, outcome: Outcome) -> None:
    """The API server has counted an object that it doesn't show yet: the real moment is too short to be met, so its answer is ours."""
    pushed = config_map(shop.name, "a")
    shop.push(pushed)
    wire = wired()

    def meet(handler: Handler) -> bool:
        shop.applied()
        handler.answer(403, {"Content-Type": "application/json"}, json.dumps(_REFUSAL).encode())
        return False

    wire.meet(1, meet, lambda method, path: method == "PATCH" and "/configmaps/a" in path and "dryRun" in path)
    result = shop.handler_at(wire.kubeconfig).run(shop.job(**fields))
    assert wire.count, "no dry-run was sent"
    assert (result.outcome, result.problems) == (outcome, ()), told(result)
    assert shop.live(pushed)
    status = shop.recorded().status
    assert (status.phase, status.failures) == ("applied", 0)


def test_an_apply_that_is_refused_names_the_line_in_git(shop: Shop) -> None:
    shop.configure(validate="none")
    shop.push(config_map(shop.name, "bad", {"NO KEY/": "x"}))
    result = shop.run()
    assert (result.outcome, result.who) == (Outcome.FAILED, "author")
    assert result.problems[0].place == f"deploy/ConfigMap-{shop.name}-bad.yaml:1"


def test_a_namespace_that_gets_foreign_objects_after_the_plan_is_skipped_by_prune(shop: Shop, wired: Wire) -> None:
    jobs = f"{shop.name}-jobs"
    shop.configure(prune=Prune(kinds=("Namespace",)))
    shop.push(namespace(jobs), config_map(jobs, "ours"), config_map(shop.name, "keep"))
    shop.applied()
    shop.push(config_map(shop.name, "keep"))
    theirs = config_map(jobs, "theirs")
    result = run_meeting(shop, wired, write_of("DELETE", "/configmaps/ours"), partial(shop.kubectl.apply, theirs))
    assert result.outcome is Outcome.APPLIED, told(result)
    assert result.counts == {"unchanged": 1, "pruned": 1, "skipped": 1}
    assert shop.live(theirs)
    state = shop.state()
    assert state.history[0].changed == (f"ConfigMap/{jobs}/ours prune",)
    assert state.history[0].counts == result.counts
    assert [str(orphan.identity) for orphan in state.orphans] == [f"Namespace/{jobs}"]


def test_a_prune_candidate_protected_in_the_last_moment_is_kept(shop: Shop, wired: Wire) -> None:
    keep, candidate = config_map(shop.name, "keep"), config_map(shop.name, "candidate")
    shop.push(keep, candidate)
    shop.applied()
    shop.push(keep)
    protect = partial(shop.kubectl.run, "annotate", "cm", "candidate", "-n", shop.name, "anneal.dev/prune=disabled")
    result = run_meeting(shop, wired, write_of("DELETE", "/configmaps/candidate"), protect)
    assert result.counts == {"unchanged": 1, "skipped": 1}
    assert shop.live(candidate)


def test_prune_stops_before_the_stage_after_a_finalizer_that_holds(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    """The operator must live to clear the finalizer of its custom resource."""
    monkeypatch.setattr(wait_deleted, "TIMEOUT", 1.0)
    operator, lingering = deployment(shop.name, "operator"), offer(shop.group, shop.name, "o", finalizers=["shop.example.com/operator"])
    kept = (definition(shop.group), config_map(shop.name, "keep"))
    shop.push(*kept, lingering, operator)
    shop.applied()
    shop.push(*kept)
    result = shop.run()
    assert (result.outcome, result.code) == (Outcome.PRUNING, "still-deleting"), told(result)
    assert "shop.example.com/operator" in result.message
    assert result.next_try
    assert shop.live(operator)
    patch = ["--type=merge", "-p", '{"metadata":{"finalizers":null}}']
    shop.kubectl.run("patch", f"offers.{shop.group}", "o", "-n", shop.name, *patch)
    monkeypatch.setattr(wait_deleted, "TIMEOUT", 60.0)
    assert shop.run("tick").outcome in DONE
    shop.assert_converged()


def is_opening(method: str, path: str) -> bool:
    return method == "PUT" and "/configmaps/anneal-s-" in path


def test_a_record_that_changes_just_before_the_attempt_opens_is_planned_from_once_more(shop: Shop, wired: Wire) -> None:
    shop.push(config_map(shop.name, "a"))
    shop.applied()
    shop.push(config_map(shop.name, "a"), config_map(shop.name, "b"))
    store = shop.handler.store(shop.target)
    write = partial(store.update, lambda state: replace(state, deliveries=(DELIVERY,)))
    result = run_meeting(shop, wired, is_opening, write)
    assert result.outcome is Outcome.APPLIED, told(result)
    shop.assert_converged()
    assert shop.state().deliveries == (DELIVERY,)


def test_a_record_deleted_during_a_run_stops_it_before_prune(shop: Shop, wired: Wire) -> None:
    shop.push(config_map(shop.name, "a"), config_map(shop.name, "b"))
    shop.applied()
    shop.push(config_map(shop.name, "a", {"key": "2"}))
    delete = partial(shop.kubectl.run, "delete", "cm", state_name(shop.name), "-n", STATES)
    result = run_meeting(shop, wired, write_of("PATCH", "/configmaps/a"), delete)
    assert (result.outcome, result.code) == (Outcome.BUSY, "lease-lost"), told(result)
    assert shop.live(config_map(shop.name, "b"))
    for _ in range(2):  # what lives is found again, then planned fully
        assert shop.run("tick").outcome in DONE
    shop.assert_converged()


def test_another_cluster_uid_behind_the_address_is_seen_under_the_lease(shop: Shop, wired: Wire) -> None:
    """Its uid is remembered between runs, but asked again before anything is written."""
    shop.push(config_map(shop.name, "a"))
    shop.applied()
    wire = wired()
    worker = shop.handler_at(wire.kubeconfig)
    assert worker.run(shop.job()).outcome is Outcome.UNCHANGED
    shop.push(config_map(shop.name, "a", {"key": "2"}))
    before = shop.versions()
    other = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "kube-system", "uid": "of-another-cluster"}}

    def answer(handler: Handler) -> bool:
        handler.answer(200, {"Content-Type": "application/json"}, json.dumps(other).encode())
        return False

    wire.meet(1, answer, lambda method, path: path.endswith("/namespaces/kube-system"))
    result = worker.run(shop.job())
    assert (result.outcome, result.code) == (Outcome.FAILED, "target-moved"), told(result)
    assert shop.versions() == before


def test_a_new_field_and_a_new_version_come_with_the_objects_that_use_them(shop: Shop) -> None:
    shop.push(definition(shop.group), offer(shop.group, shop.name, "o"))
    shop.applied()
    wider, painted = definition(shop.group), offer(shop.group, shop.name, "o")
    wider["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]["color"] = {"type": "string"}
    painted["spec"]["color"] = "red"
    shop.push(wider, painted)
    assert shop.applied().counts == {"configured": 2}
    shop.assert_converged()
    newer = copy.deepcopy(wider)
    newer["spec"]["versions"].append({**wider["spec"]["versions"][0], "name": "v2", "storage": False})
    shop.push(newer, painted | {"apiVersion": f"{shop.group}/v2"})
    result = shop.applied()
    assert result.counts == {"configured": 2}
    assert result.plan
    assert [change.action for change in result.plan.writes] == [Action.UPDATE, Action.UPDATE]
    shop.assert_converged()


def test_an_object_made_immutable_after_the_plan_isnt_recreated_by_that_run(shop: Shop, wired: Wire) -> None:
    allowed = {"anneal.dev/recreate": "allow"}
    shop.push(config_map(shop.name, "a", annotations=allowed))
    shop.applied()
    wanted = config_map(shop.name, "a", {"key": "2"}, annotations=allowed)
    shop.push(wanted)
    freeze = partial(shop.kubectl.run, "patch", "cm", "a", "-n", shop.name, "-p", '{"immutable": true}')
    before = shop.versions([wanted])
    result = run_meeting(shop, wired, write_of("PATCH", "/configmaps/a"), freeze)
    assert (result.outcome, result.code, result.who) == (Outcome.FAILED, "moved", "nobody"), told(result)
    assert {name: uid for name, (uid, _) in shop.versions([wanted]).items()} == {name: uid for name, (uid, _) in before.items()}
    again = shop.applied("tick")
    assert again.counts == {"recreated": 1}, "the next plan shows it, and the guards count it"


def noted(shop: Shop) -> Callable[[str, str], bool]:
    """Deploy, push what changes no object, and return which request then writes the record."""
    shop.push(config_map(shop.name, "a"))
    shop.applied()
    shop.work.write("deploy/note.yaml", "# no object, but something that the render reads\n")
    shop.work.commit("A note")
    shop.work.push()
    return lambda method, path: method == "PUT" and f"/configmaps/{state_name(shop.target.name)}" in path


def test_a_record_write_that_meets_a_409_is_repeated_soon(shop: Shop, wired: Wire) -> None:
    due, record_write = "2031-01-01T00:00:00Z", noted(shop)
    store, began = shop.handler.store(shop.target), time.time()
    result = run_meeting(shop, wired, record_write, lambda: store.update(lambda state: replace(state, drift_due=due)))
    assert result.outcome is Outcome.UNCHANGED, told(result)
    assert began < result.next_try < time.time() + 5
    assert shop.run("tick").outcome is Outcome.UNCHANGED
    assert shop.state().commit == shop.work.head()


def test_a_record_write_that_meets_an_annotation_is_made_at_once(shop: Shop, wired: Wire) -> None:
    record_write = noted(shop)
    touch = partial(shop.kubectl.run, "annotate", "cm", state_name(shop.target.name), "-n", STATES, "touched=yes")
    result = run_meeting(shop, wired, record_write, touch)
    assert (result.outcome, result.next_try) == (Outcome.UNCHANGED, 0.0), told(result)
    assert shop.state().commit == shop.work.head()
