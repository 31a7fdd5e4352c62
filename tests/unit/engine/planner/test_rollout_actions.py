"""What the steps of a Rollout make of live objects in a plan, on an API server in memory."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from handler.cluster.api import Api
from handler.cluster.discovery import Discovery
from handler.config.git_settings import Repository
from handler.config.settings import HoldAbove, Prune, RecreateSettings, Target
from handler.engine.planner.planner import Planner, PlanRequest
from handler.engine.rollout_runner.actions import ACTIONS
from handler.model.errors import PlanRefused
from handler.model.manifest import Manifest
from handler.model.names import IDENTITY, PART_OF, GroupKind, Identity, applyset_id, identity_of
from handler.model.plan import Action, Cause, Change, Plan
from handler.model.render import Rendered
from handler.model.tree import ReadSet
from handler.plan.admission import Admission
from handler.plan.order import order
from handler.plan.rollout import roll
from handler.rollout.checks import CHECKS
from tests.fakes.apiserver import ApiServer, FakeConnection

pytestmark = pytest.mark.slow

Body = dict[str, Any]
APPLYSET = applyset_id("anneal-shop", "anneal-system")
RECORDED = frozenset({GroupKind("", "ConfigMap")})


def target(**settings: Any) -> Target:
    scoped = {"namespaces": ("shop",), "namespace": "shop", "cluster_scoped": ("Namespace",), **settings}
    return Target("shop", Repository("https://git.example.com/acme/shop.git"), **scoped)


def config(name: str, value: str = "1", **metadata: Any) -> Body:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, **metadata}, "data": {"key": value}}


class Cluster:
    """An API server in memory, a target and its Rollout of one group."""

    def __init__(self) -> None:
        self.server = ApiServer(time.time)
        self.api = Api(FakeConnection(self.server))
        self.api.post("/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}})

    def has(self, body: Body, *, ours: bool = True) -> str:
        """Put an object there, by our hand or another's; return its uid."""
        place = "" if body["kind"] == "Namespace" else "namespaces/shop/"
        made = {**body, "metadata": {**({"namespace": "shop"} if place else {}), **body["metadata"]}}
        if ours:
            made["metadata"]["labels"] = {PART_OF: APPLYSET, **made["metadata"].get("labels", {})}
            mark = identity_of(made).mark("shop")
            made["metadata"]["annotations"] = {IDENTITY: mark, **made["metadata"].get("annotations", {})}
        created = self.api.post(f"/api/v1/{place}{body['kind'].lower()}s", made)
        return str(created["metadata"]["uid"])

    def plan(self, steps: Mapping[str, str | Body], *bodies: Body, due: bool = True, done: tuple[str, ...] = (), **settings: Any) -> Plan:
        """Plan what a commit of these objects, whose Rollout has these steps (name -> action), would do."""
        discovery, chosen = Discovery(self.api), target(**settings)
        manifests = tuple(Manifest.of(body, f"{body['metadata']['name']}.yaml:1") for body in bodies)
        written = [{"object": name, **({"action": step} if isinstance(step, str) else step)} for name, step in steps.items()]
        spec = {"groups": [{"name": "all", "steps": written}]}
        head = {"apiVersion": "workflow.kubernetes.io/v1alpha1", "kind": "Rollout", "metadata": {"name": "all"}}
        keys = {manifest.identity.name: (manifest.identity,) for manifest in manifests}
        rendered = Rendered(manifests, ReadSet(()), rollout=Manifest.of({**head, "spec": spec}, "r.yaml:1"), keys=keys)
        admitted = Admission(chosen, APPLYSET, "anneal-system", discovery.find).admit(manifests)
        automatic, planned_rollout = roll(rendered, admitted, ACTIONS, CHECKS)
        stages = (*order(automatic).stages, *planned_rollout.stages)
        ask = PlanRequest("a" * 40, "b" * 64, "c" * 64, stages, RECORDED, planned_rollout=planned_rollout)
        ask = replace(ask, due=planned_rollout.due({("all", name) for name in done}) if due else ())
        return Planner(chosen, APPLYSET, self.api, discovery).plan(ask).plan


@pytest.fixture
def cluster() -> Cluster:
    return Cluster()


def actions(plan: Plan) -> dict[str, Action]:
    return {change.identity.name: change.action for change in plan.changes}


def change(plan: Plan, name: str) -> Change:
    return next(each for each in plan.changes if each.identity.name == name)


# --- CreateIfNotExist
def test_create_if_not_exist_creates_a_missing_object_and_leaves_it_alone_then(cluster: Cluster) -> None:
    step = {"seed": "CreateIfNotExist"}
    assert actions(cluster.plan(step, config("seed"))) == {"seed": Action.CREATE}
    cluster.has(config("seed", "changed since"))
    for due in (True, False):
        found = cluster.plan(step, config("seed"), due=due)
        assert (actions(found), found.live_members) == ({"seed": Action.UNCHANGED}, 1)


def test_create_if_not_exist_leaves_the_ownership_of_an_existing_object(cluster: Cluster) -> None:
    foreign = {"labels": {"argocd.argoproj.io/instance": "other"}}
    uid = cluster.has(config("seed", "theirs", **foreign), ours=False)
    for adopt in ("unowned", "never"):
        found = change(cluster.plan({"seed": "CreateIfNotExist"}, config("seed"), adopt=adopt), "seed")
        assert (found.action, found.uid, found.adopted) == (Action.SKIP, uid, False)
        assert found.reason == "lives already and isn't ours; its step would only create it"


def test_checks_of_an_object_that_isnt_ours_are_refused(cluster: Cluster) -> None:
    cluster.has(config("seed", "theirs"), ours=False)
    steps = {"seed": {"action": "CreateIfNotExist", "success": [{"healthy": {}}]}}
    with pytest.raises(PlanRefused) as refused:
        cluster.plan(steps, config("seed"))
    said = "seed.yaml:1: ConfigMap/shop/seed: isn't ours, so that its checks can't follow it (step seed in all)"
    assert str(refused.value) == f"{said}; let CreateOrUpdate adopt it, or remove those checks"
    steps["seed"]["success"] = [{"prometheus": {"url": "https://metrics.example.com", "query": "up", "is": "> 0"}}]
    assert actions(cluster.plan(steps, config("seed"))) == {"seed": Action.SKIP}
    adopted = cluster.plan({"seed": {"action": "CreateOrUpdate", "success": [{"healthy": {}}]}}, config("seed"))
    assert actions(adopted) == {"seed": Action.UPDATE}


def test_a_step_that_updates_sees_what_one_that_only_created_left(cluster: Cluster) -> None:
    cluster.has(config("seed", "changed since"))
    assert actions(cluster.plan({"seed": "CreateIfNotExist"}, config("seed")))["seed"] is Action.UNCHANGED
    assert actions(cluster.plan({"seed": "CreateOrUpdate"}, config("seed")))["seed"] is Action.UPDATE


# --- Recreate
def test_a_due_recreate_step_counts_for_the_hold(cluster: Cluster) -> None:
    step = {"job": "Recreate"}
    assert actions(cluster.plan(step, config("job"))) == {"job": Action.CREATE}
    uid = cluster.has(config("job"))
    found = change(cluster.plan(step, config("job")), "job")
    assert (found.action, found.uid, found.reason) == (Action.RECREATE, uid, "step job in all makes it anew")
    for name in "abc":
        cluster.has(config(name))
    members = [config(name) for name in ("job", "a", "b", "c")]
    few = Prune(hold_above=HoldAbove(0, 0.1))
    held = cluster.plan(step, *members, prune=few)
    assert held.hold is not None
    assert [key[0] for key in held.hold.changes] == ["recreate"]


@pytest.mark.parametrize(
    ("metadata", "kept"),
    [
        ({"annotations": {"anneal.dev/prune": "disabled"}}, "protected by anneal.dev/prune: disabled"),
        ({"annotations": {"helm.sh/resource-policy": "keep"}}, "protected by helm.sh/resource-policy: keep"),
        (
            {"annotations": {"argocd.argoproj.io/sync-options": "Prune=false"}},
            "protected by argocd.argoproj.io/sync-options: Prune=false",
        ),
        ({"ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": "x", "uid": "u"}]}, "owned by Pod x"),
    ],
)
@pytest.mark.parametrize("declared", [config("job", "1"), config("job", "2")], ids=["same", "differs"])
def test_a_protected_or_owned_object_isnt_recreated(cluster: Cluster, metadata: Body, kept: str, declared: Body) -> None:
    """What is owned goes with its owner, as for prune and DeleteIfExist; with one that isn't its controller, too."""
    cluster.has(config("job", **metadata))
    with pytest.raises(PlanRefused) as refused:
        cluster.plan({"job": "Recreate"}, declared)
    said = f"job.yaml:1: ConfigMap/shop/job: step job in all would delete it, but: {kept}"
    assert str(refused.value) == f"{said}; lift what keeps it, or write action: CreateOrUpdate"
    assert actions(cluster.plan({"job": "Recreate"}, declared, due=False))["job"] in (Action.UPDATE, Action.UNCHANGED)


def test_a_recreate_step_that_isnt_due_or_is_done_recreates_nothing(cluster: Cluster) -> None:
    cluster.has(config("job", "1"))
    assert actions(cluster.plan({"job": "Recreate"}, config("job", "2"), due=False)) == {"job": Action.UPDATE}
    assert actions(cluster.plan({"job": "Recreate"}, config("job", "2"), done=("job",))) == {"job": Action.UPDATE}


def test_a_kind_that_holds_data_is_recreated_only_if_recreate_kinds_names_it(cluster: Cluster) -> None:
    space = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "data"}}
    cluster.has(space)
    allowed: Body = {"namespaces": ("shop", "data")}
    with pytest.raises(PlanRefused) as refused:
        cluster.plan({"data": "Recreate"}, space, **allowed)
    said = "data.yaml:1: Namespace/data: step data in all would delete it and all it holds"
    move = "take that change back in git; what it holds can only be moved by hand, to an object of another name"
    assert str(refused.value) == f"{said}; write action: CreateOrUpdate; {move}"
    found = cluster.plan({"data": "Recreate"}, space, recreate=RecreateSettings(kinds=("Namespace",)), **allowed)
    assert actions(found) == {"data": Action.RECREATE}


def test_a_kind_that_holds_data_is_deleted_by_a_step_only_if_prune_kinds_names_it(cluster: Cluster) -> None:
    space, step = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "data"}}, {"data": "DeleteIfExist"}
    cluster.has(space)
    allowed: Body = {"namespaces": ("shop", "data")}
    with pytest.raises(PlanRefused, match=r"Namespace is kept: prune\.kinds of target shop doesn't name it; remove the step"):
        cluster.plan(step, space, config("web"), **allowed)
    let_go: Body = {**allowed, "prune": Prune(kinds=("Namespace",))}
    assert actions(cluster.plan(step, space, config("web"), **let_go))["data"] is Action.PRUNE
    cluster.api.post("/api/v1/namespaces/data/configmaps", config("inside"))
    with pytest.raises(PlanRefused, match="but: still holds ConfigMap/"):
        cluster.plan(step, space, config("web"), **let_go)


# --- DeleteIfExist
def test_an_object_deleted_by_a_due_step_is_a_prune_in_the_stage_of_its_group(cluster: Cluster) -> None:
    step = {"old": "DeleteIfExist", "web": "CreateOrUpdate"}
    bodies = (config("old"), config("web"), config("free"))
    found = cluster.plan(step, *bodies)
    assert actions(found) == {"web": Action.CREATE, "free": Action.CREATE}, "nothing lives, nothing goes"
    uid = cluster.has(config("old"))
    found = cluster.plan(step, *bodies, compat="locutus")
    old = change(found, "old")
    assert (old.action, old.uid, old.reason, old.cause) == (Action.PRUNE, uid, "step old in all deletes it", Cause.STEP)
    assert [[each.identity.name for each in stage] for stage in found.stages] == [["free"], ["web", "old"]]
    assert found.prunes == ()


@pytest.mark.parametrize("action", ["DeleteIfExist", "Recreate"])
def test_where_prune_is_off_no_step_deletes(cluster: Cluster, action: str) -> None:
    cluster.has(config("old"))
    with pytest.raises(PlanRefused, match=r"ConfigMap/shop/old: would be deleted, and prune is off: a step deletes it; set on target shop"):
        cluster.plan({"old": action}, config("old"), config("web"), prune=Prune(enabled=False))


def test_an_object_of_a_delete_step_that_isnt_due_counts_as_undeclared(cluster: Cluster) -> None:
    cluster.has(config("old"))
    cluster.has(config("web"))
    settings: tuple[Body, ...] = ({"due": False}, {"done": ("old",)})
    for asked in settings:
        found = cluster.plan({"old": "DeleteIfExist"}, config("old"), config("web"), **asked)
        assert [str(each.identity) for each in found.prunes] == ["ConfigMap/shop/old"]
        assert found.prunes[0].reason == "no longer declared"


@pytest.mark.parametrize("adopt", ["unowned", "never", ("kubernixos",)])
@pytest.mark.parametrize("metadata", [{}, {"labels": {"kubernixos": "c"}}])
def test_no_step_deletes_what_isnt_a_member_whatever_adopt_says(cluster: Cluster, metadata: Body, adopt: Any) -> None:
    cluster.has(config("old", **metadata), ours=False)
    with pytest.raises(PlanRefused) as refused:
        cluster.plan({"old": "DeleteIfExist"}, config("old"), config("web"), adopt=adopt)
    said = "ConfigMap/shop/old: isn't a member of target shop, and step old in all would delete it; write action: CreateOrUpdate first"
    assert said in str(refused.value)
    assert "old" not in actions(cluster.plan({"old": "DeleteIfExist"}, config("old"), config("web"), adopt=adopt, due=False))


@pytest.mark.parametrize(("metadata", "adopt"), [({}, "unowned"), ({"labels": {"kubernixos": "c"}}, ("kubernixos",))])
def test_recreate_takes_what_isnt_a_member_over_in_its_place(cluster: Cluster, metadata: Body, adopt: Any) -> None:
    uid = cluster.has(config("old", **metadata), ours=False)
    found = change(cluster.plan({"old": "Recreate"}, config("old"), adopt=adopt), "old")
    assert (found.action, found.uid, found.adopted) == (Action.UPDATE, uid, True)


@pytest.mark.parametrize(
    ("metadata", "ours", "said"),
    [
        ({"labels": {"argocd.argoproj.io/instance": "other"}}, False, "isn't a member of target shop, and step old in all would"),
        ({"annotations": {"anneal.dev/prune": "disabled"}}, True, "step old in all would delete it, but: protected by anneal.dev/prune"),
        ({"ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": "x", "uid": "u"}]}, True, "would delete it, but: owned by Pod x"),
    ],
)
def test_a_protected_object_of_a_delete_step_is_refused(cluster: Cluster, metadata: Body, ours: bool, said: str) -> None:
    cluster.has(config("old", **metadata), ours=ours)
    with pytest.raises(PlanRefused) as refused:
        cluster.plan({"old": "DeleteIfExist"}, config("old"), config("web"))
    assert said in str(refused.value)


def test_deletions_by_steps_are_held_above_hold_above(cluster: Cluster) -> None:
    names = [f"old-{number}" for number in range(3)]
    for name in (*names, "web"):
        cluster.has(config(name))
    steps = dict.fromkeys(names, "DeleteIfExist")
    found = cluster.plan(steps, *map(config, names), config("web"), prune=Prune(hold_above=HoldAbove(2, 0.5)))
    assert found.hold is not None
    assert "3 of 4 live objects would be deleted" in found.hold.reasons[0]


def test_a_rollout_that_only_deletes_is_no_empty_render(cluster: Cluster) -> None:
    cluster.has(config("old"))
    found = cluster.plan({"old": "DeleteIfExist"}, config("old"))
    assert actions(found) == {"old": Action.PRUNE}
    assert found.hold is not None, "the last one of ours would go"


# --- what is due
def test_a_due_rollout_works_though_no_object_differs(cluster: Cluster) -> None:
    plan = cluster.plan({"web": "CreateOrUpdate"}, config("web"))
    assert [(due.group, due.step, due.action) for due in plan.due] == [("all", "web", "CreateOrUpdate")]
    assert Identity("", "ConfigMap", "shop", "web") == plan.due[0].identity
    cluster.has(config("web"))
    assert cluster.plan({"web": "CreateIfNotExist"}, config("web")).works
    assert not cluster.plan({"web": "CreateIfNotExist"}, config("web"), due=False).works
