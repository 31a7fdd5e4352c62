"""Orphans that live objects need: whatever names one or is owned by one, labelled or not, owned or not, unless it goes itself."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from handler.config.settings import Impersonate
from handler.engine.planner import exclusive_look
from handler.engine.planner.exclusive_content import ExclusiveContent
from handler.engine.planner.exclusive_look import ExclusiveLook
from handler.engine.planner.exclusive_needs import Needs
from handler.model.names import PART_OF, GroupKind, Identity, Resource
from handler.model.plan import Action
from handler.state.record_format import stamp
from tests.fakes.apiserver import ApiServer, Call
from tests.fakes.apiserver.connection import Reply
from tests.fakes.apiserver.kinds import VERBS, WORKLOADS, Served
from tests.unit.engine.apply.planned_target import MAPS, PlannedTarget, config_map, ours
from tests.unit.engine.planner.watched_namespace import EXCLUSIVE, HOUR, NOON, Watched, fates, stray

pytestmark = pytest.mark.slow

Body = dict[str, Any]
ROOT = "/apis/{}/namespaces/shop/{}"
APPS = ROOT.format("apps/v1", "deployments")
JOBS = ROOT.format("batch/v1", "jobs")
RBAC = "rbac.authorization.k8s.io/v1"
OTHER = {PART_OF: "applyset-other-v1"}
DECLARED = {"apiVersion": "v1", "kind": "Any", "name": "any", "uid": "of-what-git-declares"}


def body(version: str, kind: str, name: str, /, metadata: Body | None = None, **fields: Any) -> Body:
    return {"apiVersion": version, "kind": kind, "metadata": {"name": name, "namespace": "shop", **(metadata or {})}, **fields}


def user(name: str = "user", /, **metadata: Any) -> Body:
    """A Deployment without pods that reads the ConfigMap `settings`."""
    spec = {"containers": [{"envFrom": [{"configMapRef": {"name": "settings"}}]}]}
    return body("apps/v1", "Deployment", name, metadata, spec={"template": {"spec": spec}})


def owner(live: Body) -> list[Body]:
    return [{"apiVersion": live["apiVersion"], "kind": live["kind"], "name": "any", "uid": live["metadata"]["uid"]}]


@pytest.mark.parametrize(
    "metadata",
    [{"labels": OTHER}, {"annotations": {"anneal.dev/prune": "disabled"}}, {"ownerReferences": [DECLARED]}],
    ids=["of another set", "an orphan that is kept", "owned"],
)
def test_what_an_object_that_stays_names_stays_and_a_plain_stray_goes(watched: Watched, metadata: Body) -> None:
    stray(watched, "settings")
    stray(watched, "plain")
    watched.shop.post(APPS, user(**metadata))
    found = fates(watched)
    assert (found["settings"][0], found["settings"][1].endswith("kept: Deployment/shop/user names it; declare it, too")) == (
        Action.SKIP,
        True,
    )
    assert found["plain"][0] is Action.PRUNE


@pytest.mark.parametrize("space", ["declared", "of another set"])
def test_what_owns_what_an_object_that_stays_names_stays(watched: Watched, space: str) -> None:
    top = stray(watched, "sealed")
    stray(watched, "settings", ownerReferences=owner(stray(watched, "between", ownerReferences=owner(top))))
    declared = [config_map("web"), *([user()] if space == "declared" else [])]
    if space != "declared":
        watched.shop.post(APPS, user(labels=OTHER))
    for _ in range(2):
        (found,) = watched.run(*declared)
        watched.now += HOUR
    gone = "ConfigMap/shop/settings, which Deployment/shop/user names, would go with it; if that may go: kubectl delete"
    said = gone if space == "declared" else "Deployment/shop/user names what it owns; declare it, too"
    assert (found[:2], said in found[2]) == ((Action.SKIP, "sealed"), True)


def test_what_owns_what_goes_with_it_and_names_it_goes(watched: Watched) -> None:
    top = stray(watched, "sealed")
    stray(watched, "settings", ownerReferences=owner(top))
    watched.shop.post(APPS, user(ownerReferences=owner(top)))
    assert {name: action for name, (action, _) in fates(watched).items()} == {"sealed": Action.PRUNE}


def test_what_a_member_that_git_dropped_and_that_stays_names_stays(watched: Watched) -> None:
    stray(watched, "settings")
    kept = ours(user())
    kept["metadata"]["annotations"]["anneal.dev/prune"] = "disabled"
    watched.shop.post(APPS, kept)
    for _ in range(2):
        ask = replace(watched.ask, known=watched.orphans, now=watched.now)
        planned = watched.shop.plan(config_map("web"), recorded=[GroupKind("apps", "Deployment")], exclusive=ask)
        watched.orphans = planned.exclusive.orphans
        watched.now += HOUR
    reasons = {change.identity.name: (change.action, change.reason) for change in planned.plan.prunes}
    assert reasons["settings"][0] is Action.SKIP
    assert "Deployment/shop/user names it" in reasons["settings"][1]


def test_what_an_account_of_another_set_pulls_with_stays(watched: Watched) -> None:
    account = body("v1", "ServiceAccount", "theirs", {"labels": OTHER}, imagePullSecrets=[{"name": "registry"}])
    watched.shop.post(ROOT.format("v1", "serviceaccounts").replace("/apis", "/api"), account)
    watched.shop.post(ROOT.format("v1", "secrets").replace("/apis", "/api"), body("v1", "Secret", "registry"))
    assert fates(watched)["registry"][0] is Action.SKIP


def test_what_is_named_by_what_something_names_stays_too(watched: Watched) -> None:
    stray(watched, "settings")
    watched.shop.post(APPS, user())
    watched.shop.post(JOBS, body("batch/v1", "Job", "theirs", {"labels": OTHER}, spec={"of": {"kind": "Deployment", "name": "user"}}))
    found = fates(watched)
    assert {name: action for name, (action, _) in found.items()} == dict.fromkeys(("settings", "user"), Action.SKIP)


def test_what_is_due_waits_for_an_undeclared_object_that_names_it_and_is_within_its_grace(watched: Watched) -> None:
    stray(watched, "settings")
    watched.run(config_map("web"))
    watched.now += HOUR - 60
    watched.shop.post(APPS, user())
    watched.run(config_map("web"))
    watched.now += 60
    found = {name: (action, reason) for action, name, reason in watched.run(config_map("web"))}
    end = stamp(NOON + 2 * HOUR - 60)
    said = f"isn't declared in exclusive namespace shop; deleted after {end}, as Deployment/shop/user does"
    assert found["settings"] == (Action.SKIP, said)
    assert {each.identity.name: each.until for each in watched.orphans} == {"settings": end, "user": end}
    watched.now += HOUR - 60
    assert {(action, name) for action, name, _ in watched.run(config_map("web"))} == {(Action.PRUNE, "settings"), (Action.PRUNE, "user")}


def claimed(watched: Watched, *, denied: bool = False, **metadata: Any) -> Body:
    """Have a Deployment own a Job, with this metadata, and that a claim."""
    top = watched.shop.post(APPS, body("apps/v1", "Deployment", "database"))
    middle = watched.shop.post(JOBS, body("batch/v1", "Job", "middle", {"ownerReferences": owner(top), **metadata}))
    claim = body("v1", "PersistentVolumeClaim", "data", {"ownerReferences": owner(middle)})
    watched.shop.post(ROOT.format("v1", "persistentvolumeclaims").replace("/apis", "/api"), claim)

    def refused(call: Call, do: Callable[[], Reply]) -> Reply:
        if denied and call.asked.path == JOBS:
            return 403, {"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 403, "message": "no"}, {}
        return do()

    watched.shop.meet = refused
    return top


def test_what_owns_data_through_something_that_can_not_be_listed_stays(watched: Watched) -> None:
    claimed(watched, denied=True)
    action, reason = fates(watched)["database"]
    assert (action, "not all that lives there can be listed" in reason) == (Action.SKIP, True)


def test_what_owns_data_through_a_member_of_a_set_stays(watched: Watched) -> None:
    claimed(watched, labels=OTHER)
    assert fates(watched)["database"][0] is Action.SKIP


def test_what_owns_a_member_of_another_set_stays(watched: Watched) -> None:
    top = watched.shop.post(APPS, body("apps/v1", "Deployment", "database"))
    theirs = config_map("theirs")
    theirs["metadata"] |= {"ownerReferences": owner(top), "labels": OTHER}
    watched.shop.post(MAPS, theirs)
    action, reason = fates(watched)["database"]
    assert action is Action.SKIP
    assert "ConfigMap/shop/theirs, which is a member of an ApplySet, would go with it" in reason


@pytest.mark.parametrize(("owners", "action"), [(1, Action.PRUNE), (2, Action.SKIP)])
def test_what_only_orphans_own_goes_with_them_and_keeps_nothing(watched: Watched, owners: int, action: Action) -> None:
    stray(watched, "settings")
    top = watched.shop.post(APPS, body("apps/v1", "Deployment", "by-hand"))
    pod = user("pod", ownerReferences=[*owner(top), DECLARED][:owners]) | {"kind": "Pod", "apiVersion": "v1"}
    watched.shop.post(ROOT.format("v1", "pods").replace("/apis", "/api"), pod)
    found = fates(watched)
    assert (found["settings"][0], found["by-hand"][0]) == (action, Action.PRUNE)


def test_each_kind_is_listed_at_most_twice_and_once_where_nothing_goes(watched: Watched) -> None:
    asked: list[str] = []

    def noted(call: Call, do: Callable[[], Reply]) -> Reply:
        asked.append(call.asked.path)
        return do()

    watched.shop.meet = noted
    watched.run(config_map("web"))
    assert {asked.count(path) for path in (APPS, JOBS)} == {1}
    stray(watched)
    asked.clear()
    watched.run(config_map("web"))
    assert {asked.count(path) for path in (APPS, JOBS)} == {2}


def test_a_silent_group_keeps_what_may_be_named_and_what_may_own_data_but_metrics_do_not() -> None:
    found = Needs(unread=frozenset({""}), unasked={"shop": "the objects of API group acme.io there"})
    assert found.why(Identity("", "Secret", "shop", "a"), "1").startswith("the objects of API group acme.io there can't be listed")
    assert "whether it owns what holds data isn't known" in found.why(Identity("apps", "Deployment", "shop", "a"), "2")
    assert found.why(Identity("networking.k8s.io", "Ingress", "shop", "a"), "3") == ""
    seen = [ExclusiveContent(frozenset({group})).unread() for group in ("acme.io", "metrics.k8s.io")]
    assert seen == [frozenset({""}), frozenset()]


ISSUERS = "/apis/acme.io/v1/issuers"


@pytest.fixture
def with_issuers() -> Watched:
    """One whose cluster has an issuer, which no namespace has, and two Secrets that the operator has put there by hand."""
    kind = Served(Resource("acme.io", "v1", "Issuer", "issuers", namespaced=False, verbs=VERBS), frozenset({"spec"}))
    made = Watched(PlannedTarget(EXCLUSIVE, server=ApiServer(time.time, (*WORKLOADS, kind))))
    made.shop.apply(made.shop.plan(config_map("web")))
    issuer = {"apiVersion": "acme.io/v1", "kind": "Issuer", "metadata": {"name": "dns"}}
    named = [
        {"secretRef": {"name": "any"}},
        {"secretRef": {"name": "here", "namespace": "shop"}},
        {"secretRef": {"name": "a", "namespace": "b"}},
    ]
    made.shop.post(ISSUERS, issuer | {"spec": {"solvers": named}})
    for name in ("any", "here", "a"):
        made.shop.post("/api/v1/namespaces/shop/secrets", body("v1", "Secret", name))
    return made


def test_what_an_object_that_no_namespace_has_names_stays(with_issuers: Watched) -> None:
    found = fates(with_issuers)
    kept = "isn't declared in exclusive namespace shop; kept: Issuer/dns names it; declare it, too"
    assert (found["any"], found["here"]) == ((Action.SKIP, kept), (Action.SKIP, kept))
    assert found["a"][0] is Action.PRUNE


def test_where_what_no_namespace_has_can_not_be_listed_what_may_be_named_stays_and_workloads_go(with_issuers: Watched) -> None:
    def refused(call: Call, do: Callable[[], Reply]) -> Reply:
        if call.asked.path == ISSUERS:
            return 403, {"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 403, "message": "no"}, {}
        return do()

    with_issuers.shop.meet = refused
    with_issuers.shop.post(APPS, body("apps/v1", "Deployment", "by-hand"))
    found = fates(with_issuers)
    said = "isn't declared in exclusive namespace shop; kept: issuers, which no namespace has, can't be listed, so whether one names it"
    assert found["a"] == (Action.SKIP, f"{said} isn't known")
    assert found["by-hand"][0] is Action.PRUNE


def test_the_handlers_right_to_impersonate_the_account_is_left_alone(watched: Watched) -> None:
    role = body(RBAC, "Role", "impersonate", rules=[])
    bound: Body = {
        "roleRef": {"kind": "Role", "name": "impersonate"},
        "subjects": [{"kind": "ServiceAccount", "name": "own", "namespace": "ops"}],
    }
    watched.shop.post(ROOT.format(RBAC, "roles"), role)
    watched.shop.post(ROOT.format(RBAC, "rolebindings"), body(RBAC, "RoleBinding", "impersonate", **bound))
    users = iter(("system:serviceaccount:shop:deployer", "system:serviceaccount:ops:own") * 99)

    def who(call: Call, do: Callable[[], Reply]) -> Reply:
        if call.asked.path.endswith("/selfsubjectreviews"):
            return 201, {"status": {"userInfo": {"username": next(users)}}}, {}
        return do()

    watched.shop.meet = who
    planner = watched.shop.planner
    own, theirs = planner.api.connection, planner.discovery
    target = replace(EXCLUSIVE, impersonate=Impersonate("shop/deployer"))
    planner.exclusive = ExclusiveLook(target, type(planner.api)(own, impersonate="shop/deployer"), theirs)
    planned = watched.plan(config_map("web"))
    assert planned.plan.prunes == ()
    assert any("its own account and rights (2)" in note for note in planned.plan.notes), planned.plan.notes


def test_what_is_kept_leaves_the_room_of_a_record_to_what_may_go(watched: Watched, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exclusive_look, "MOST", 2)
    for name in "ab":
        stray(watched, name, annotations={"anneal.dev/prune": "disabled"})
    watched.run(config_map("web"))
    stray(watched, "z")
    assert fates(watched)["z"][0] is Action.PRUNE
