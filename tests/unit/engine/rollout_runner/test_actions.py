"""Actions against a cluster in memory: what each does, what it refuses, what it leaves alone."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from handler.engine.rollout_runner.actions import ACTIONS
from handler.engine.rollout_runner.actions.recreate import _scratch
from handler.model.manifest import Manifest
from handler.model.names import Resource
from handler.model.plan import Action
from handler.model.result import Outcome
from handler.plan.admission import Desired
from tests.fakes.apiserver import Call
from tests.fakes.apiserver.connection import Reply, Way, straight
from tests.fakes.apiserver.server import Asked
from tests.fakes.engine import state_of
from tests.unit.engine.in_memory_cluster import (
    CANNOT,
    DONE,
    GROUPS,
    MAPS,
    NAMES,
    InMemoryCluster,
    assert_carried_out,
    config_map,
    group,
    planted,
    refusing,
    step,
    wanted,
)

pytestmark = pytest.mark.slow


# --- each action
def test_each_rollout_action_does_its_own_and_nothing_else() -> None:
    fake = planted()
    before = {name: fake.uid(name) for name in NAMES}
    fake.push(wanted(), *GROUPS)
    result = fake.run()
    assert result.outcome is Outcome.APPLIED, result
    assert_carried_out(fake, before)
    assert fake.written == ["PATCH free", "DELETE old", "DELETE anew", "PATCH anew", "PATCH changed", "PATCH last"]


def test_nothing_is_deleted_where_nothing_lives() -> None:
    fake = InMemoryCluster()
    fake.push(wanted(), *GROUPS)
    assert fake.run().outcome in DONE
    assert fake.data(*NAMES) == ["2", None, "2", "2", "2", "1", "2"]
    assert not fake.deleted


def test_the_next_commit_recreates_again_and_still_leaves_alone_what_was_only_created() -> None:
    fake = planted()
    fake.push(wanted(), *GROUPS)
    fake.run()
    first = fake.uid("anew")
    fake.push({**wanted("3")}, *GROUPS)
    assert fake.run().outcome is Outcome.APPLIED
    assert fake.uid("anew") != first
    assert fake.data("anew", "kept", "changed") == ["3", "1", "3"]


def test_a_run_of_the_same_commit_carries_nothing_out_again() -> None:
    fake = planted()
    fake.push(wanted(), *GROUPS)
    fake.run()
    fake.written.clear()
    assert fake.run("drift").outcome is Outcome.UNCHANGED
    assert fake.run("tick").outcome is Outcome.UNCHANGED
    assert fake.written == []


def test_force_carries_the_steps_out_again() -> None:
    fake = planted()
    fake.push(wanted(), *GROUPS)
    fake.run()
    first = fake.uid("anew")
    assert fake.run("oneoff", force=True).outcome is Outcome.APPLIED
    assert fake.uid("anew") not in ("", first)


# --- what isn't written
def test_nothing_is_pruned_where_a_step_that_may_fail_has_written_nothing() -> None:
    """What is deleted may be what the other should have replaced."""
    fake = planted()
    groups = (group("all", step("CreateOrUpdate", "fresh", continueOnError=True), step("CreateOrUpdate", "last")),)
    fake.push({"fresh": "2", "last": "2"}, *groups)
    fake.meet = refusing(lambda asked: asked.method == "PATCH" and not asked.dry and asked.path.endswith("/fresh"))
    result = fake.run()
    assert (result.outcome, fake.data("fresh", "last", "old")) == (Outcome.APPLIED, [None, "2", "1"]), result
    assert not fake.deleted
    assert result.plan
    assert "ConfigMap/shop/fresh wasn't written by its step, so nothing is pruned" in result.plan.notes
    left = {change.identity.name: change.action for change in result.plan.prunes}
    assert left == dict.fromkeys(set(NAMES) - {"last"}, Action.SKIP)
    state = state_of(fake.handler())
    assert {orphan.identity.name for orphan in state.orphans} == left.keys()
    assert "fresh wasn't written" in state.history[0].message
    fake.meet = straight
    assert fake.run("drift").outcome is Outcome.APPLIED
    assert (fake.data("fresh", "last"), len(fake.deleted)) == (["2", "2"], len(left))


def test_a_step_that_failed_after_its_write_keeps_nothing() -> None:
    fake = planted()
    bad = {"fieldComparisons": {"expectedValues": [{"name": "bad", "path": "{.data.key}", "value": {"static": "2"}}]}}
    fake.push({"last": "2"}, group("all", step("CreateOrUpdate", "last", continueOnError=True, failure=[bad])))
    result = fake.run()
    assert (result.outcome, fake.outcomes(), fake.data("last", "old")) == (Outcome.APPLIED, {"last": "failed"}, ["2", None]), result


def test_a_plan_says_what_depends_on_a_step_and_comes_before_it() -> None:
    """A Rollout's order replaces that of the objects; the plan says where."""
    depends = {"config.kubernetes.io/depends-on": "/namespaces/shop/ConfigMap/last"}
    bodies = {name: config_map(name, "2") for name in ("free", "early", "late", "last")}
    bodies["free"]["metadata"]["annotations"] = depends
    bodies["early"]["metadata"]["annotations"] = depends | {"argocd.argoproj.io/hook": "PreSync"}
    bodies["late"]["metadata"]["annotations"] = depends | {"argocd.argoproj.io/hook": "PostSync"}
    groups = {"groups": [group("all", step("CreateOrUpdate", "last"))]}
    document = {"apiVersion": "workflow.kubernetes.io/v1alpha1", "kind": "Rollout", "metadata": {"name": "r"}, "spec": groups}
    files = {f"shop/{name}.yaml": json.dumps(body) for name, body in bodies.items()}
    fake = InMemoryCluster()
    fake.host.push(fake.host.commit({**files, "rollout.yaml": json.dumps(document)}))
    result = fake.run()
    assert result.outcome is Outcome.APPLIED, result
    assert result.plan
    said = "config.kubernetes.io/depends-on names ConfigMap/shop/last, whose step in the Rollout comes later; it isn't waited for"
    told = {note for note in result.plan.notes if "depends-on" in note}
    assert told == {f"ConfigMap/shop/{name}: {said}" for name in ("free", "early")}


# --- refusals
def test_an_object_protected_after_the_plan_isnt_recreated() -> None:
    fake = planted()
    uid = fake.uid("anew")
    fake.push(wanted(), *GROUPS)

    def protect(call: Call, do: Callable[[], Reply]) -> Reply:
        if call.asked.method == "DELETE" and call.asked.path.endswith("/old"):
            live = fake.live("anew")
            assert live
            live["metadata"]["annotations"]["anneal.dev/prune"] = "disabled"
            fake.server.answer(Asked("PUT", f"{MAPS}/anew", {}, live, "", ""))
        return do()

    fake.meet = protect
    result = fake.run()
    assert (result.outcome, fake.uid("anew"), fake.outcomes()["anew"]) == (Outcome.FAILED, uid, "failed"), result
    assert "was to be made anew, but by now: protected by anneal.dev/prune: disabled" in result.message


def is_scratch(asked: Asked) -> bool:
    return asked.method == "PATCH" and asked.dry and asked.path.endswith("/anew-anew")


def test_a_recreate_that_the_dry_run_refuses_deletes_nothing() -> None:
    fake = planted()
    uid = fake.uid("anew")
    fake.push(wanted(), *GROUPS)
    fake.meet = refusing(is_scratch)
    result = fake.run()
    assert (result.outcome, result.code) == (Outcome.FAILED, "rollout-failed")
    assert "would be refused once it is deleted" in result.message
    assert (fake.uid("anew"), fake.outcomes()["anew"]) == (uid, "failed")


@pytest.mark.parametrize(
    ("status", "message"),
    [(400, "admission webhook does not support dry run"), (403, "exceeded quota: one"), (409, "already exists")],
)
def test_a_refusal_of_the_dry_run_copy_by_its_name_alone_doesnt_refuse_the_recreate(status: int, message: str) -> None:
    fake = planted()
    uid = fake.uid("anew")
    fake.push(wanted(), *GROUPS)
    fake.meet = refusing(is_scratch, status, message)
    assert fake.run().outcome is Outcome.APPLIED
    assert fake.uid("anew") not in ("", uid)


def test_a_recreate_that_is_refused_says_what_is_missing_and_the_next_commit_makes_it() -> None:
    fake = planted()
    fake.push(wanted(), *GROUPS)
    fake.meet = refusing(lambda asked: asked.method == "PATCH" and not asked.dry and asked.path.endswith("/anew"))
    result = fake.run()
    assert (result.outcome, result.code) == (Outcome.FAILED, "rollout-failed")
    assert "IS MISSING NOW" in result.message
    assert fake.data("anew", "last") == [None, "1"]
    fake.meet = straight
    fake.push(wanted("3"), *GROUPS)
    assert fake.run().outcome in DONE
    assert fake.data("anew", "last") == ["3", "3"]


REVIEWS = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"


def reviewed(verbs: set[str], otherwise: Way) -> Way:
    """Return a way on which reviews say that an object called `anew` may be created by these verbs only."""

    def meet(call: Call, do: Callable[[], Reply]) -> Reply:
        if call.asked.path != REVIEWS:
            return otherwise(call, do)
        wanted = call.asked.body["spec"]["resourceAttributes"]
        return 201, {"status": {"allowed": wanted["name"] == "anew" and wanted["verb"] in verbs}}, {}

    return meet


@pytest.mark.parametrize("lacking", ["create", "patch"])
def test_a_recreate_without_the_create_right_deletes_nothing(lacking: str) -> None:
    """The plan's dry-run of what lives asks for no right to create it."""
    fake = planted()
    uid = fake.uid("anew")
    fake.push(wanted(), *GROUPS)
    fake.meet = reviewed({"create", "patch"} - {lacking}, refusing(is_scratch, 403, CANNOT))
    result = fake.run()
    assert (result.outcome, result.code, fake.uid("anew")) == (Outcome.FAILED, "access-denied", uid), result
    assert f"isn't deleted, for it couldn't be made anew: no right to {lacking} it" in result.message
    assert f'add to its Role in shop: {{apiGroups: [""], resources: [configmaps], verbs: [{lacking}]}}' in result.message
    fake.meet = straight
    assert fake.run("tick").outcome is Outcome.APPLIED
    assert fake.uid("anew") not in ("", uid)


def test_rbac_rights_for_one_resource_name_are_enough_for_a_recreate() -> None:
    fake = planted()
    uid = fake.uid("anew")
    fake.push(wanted(), *GROUPS)
    fake.meet = reviewed({"create", "patch"}, refusing(is_scratch, 403, CANNOT))
    assert fake.run().outcome is Outcome.APPLIED
    assert fake.uid("anew") not in ("", uid)


def test_a_recreate_without_the_right_to_create_says_what_is_missing_and_is_continued() -> None:
    fake = planted()
    fake.push(wanted(), *GROUPS)
    fake.meet = refusing(lambda asked: asked.method == "PATCH" and not asked.dry and asked.path.endswith("/anew"), 403, CANNOT)
    result = fake.run()
    assert (result.outcome, result.code, fake.data("anew")) == (Outcome.FAILED, "access-denied", [None]), result
    assert "IS MISSING NOW" in result.message
    fake.meet = straight
    assert fake.run("tick").outcome is Outcome.APPLIED
    assert fake.data("anew") == ["2"]


def test_an_object_that_was_replaced_since_the_plan_isnt_deleted() -> None:
    """The plan showed another uid: what is there now is brought to what git declares, as any object is."""
    fake = planted()
    before = {name: fake.uid(name) for name in NAMES}
    fake.push(wanted(), *GROUPS)

    def replaced(call: Call, do: Callable[[], Reply]) -> Reply:
        if "DELETE old" in fake.written and fake.uid("anew") == before["anew"]:
            body = fake.live("anew")
            assert body
            fake.server.must(Asked("DELETE", f"{MAPS}/anew", {}, {}, "", ""))
            fresh = {
                **config_map("anew", "1"),
                "metadata": {key: body["metadata"][key] for key in ("name", "namespace", "labels", "annotations")},
            }
            fake.server.must(Asked("POST", MAPS, {}, fresh, "", ""))
        return do()

    fake.meet = replaced
    result = fake.run()
    assert result.outcome in DONE, result
    assert not [key for key in fake.deleted if key.startswith("anew ")]
    assert fake.data("anew") == ["2"]


# --- parts
def test_every_row_reads_no_keys_of_its_own_but_those_it_names() -> None:
    assert {name for name, row in ACTIONS.items() if not row.keys} >= {"CreateOrUpdate", "CreateIfNotExist", "DeleteIfExist", "Recreate"}
    for name in ("CreateOrUpdate", "CreateIfNotExist", "DeleteIfExist", "Recreate"):
        assert ACTIONS[name].read({}, "spec") == {}


def test_a_scratch_service_takes_no_address_that_only_one_can_have() -> None:
    spec = {"clusterIP": "10.0.0.7", "clusterIPs": ["10.0.0.7"], "type": "NodePort", "ports": [{"port": 80, "nodePort": 30080}]}
    body = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web", "namespace": "shop"}, "spec": spec}
    made = _scratch(Desired(Manifest.of(body, "web.yaml:1"), Resource("", "v1", "Service", "services", namespaced=True)))
    assert made["metadata"]["name"] == "web-anew"
    assert made["spec"] == {"type": "NodePort", "ports": [{"port": 80}]}


def test_a_scratch_name_is_no_longer_than_a_label_may_be() -> None:
    body = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "a" * 51 + "." + "b" * 11, "namespace": "shop"}}
    made = _scratch(Desired(Manifest.of(body, "job.yaml:1"), Resource("batch", "v1", "Job", "jobs", namespaced=True)))
    assert made["metadata"]["name"] == "a" * 51 + "-anew"


def test_a_headless_service_stays_headless_in_its_scratch_copy() -> None:
    body = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "db", "namespace": "shop"}, "spec": {"clusterIP": "None"}}
    made = _scratch(Desired(Manifest.of(body, "db.yaml:1"), Resource("", "v1", "Service", "services", namespaced=True)))
    assert made["spec"] == {"clusterIP": "None"}
