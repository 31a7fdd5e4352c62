"""Orphans that stay as others need them: what a declared object names, and what owns something that holds data."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest

from handler.model.names import PART_OF, Resource
from handler.model.plan import Action
from handler.state.record_format import stamp
from tests.fakes.apiserver import ApiServer, Call
from tests.fakes.apiserver.connection import Reply, Way, straight
from tests.fakes.apiserver.kinds import VERBS, WORKLOADS, Served
from tests.fakes.apiserver.server import Asked
from tests.unit.engine.apply.planned_target import MAPS, PlannedTarget, config_map, ours
from tests.unit.engine.planner.watched_namespace import EXCLUSIVE, HOUR, Watched, due, fates, stray

pytestmark = pytest.mark.slow

SAID = "isn't declared in exclusive namespace shop; kept: "
CLAIMS = "/api/v1/namespaces/shop/persistentvolumeclaims"
PODS = "/api/v1/namespaces/shop/pods"
APPS = "/apis/apps/v1/namespaces/shop/deployments"


def deployment(name: str, **spec: Any) -> dict[str, Any]:
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name, "namespace": "shop"}, "spec": spec}


def owned(body: dict[str, Any], *owners: dict[str, Any]) -> dict[str, Any]:
    references = [{key: each[key] for key in ("apiVersion", "kind")} | {"uid": each["metadata"]["uid"], "name": "any"} for each in owners]
    return {**body, "metadata": {**body["metadata"], "ownerReferences": references}}


def claim(watched: Watched, *owners: dict[str, Any], name: str = "data", **labels: str) -> dict[str, Any]:
    metadata = {"name": name, "namespace": "shop", "labels": labels}
    return watched.shop.post(CLAIMS, owned({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadata}, *owners))


def member(watched: Watched, path: str, top: dict[str, Any]) -> None:
    made = owned(deployment("member") if path == APPS else config_map("member"), top)
    watched.shop.post(path, {**made, "metadata": {**made["metadata"], "labels": {PART_OF: "another"}}})


def test_what_a_declared_object_names_stays_and_its_grace_begins_once_nothing_does(watched: Watched) -> None:
    stray(watched, "settings")
    user = deployment("user", template={"spec": {"containers": [{"envFrom": [{"configMapRef": {"name": "settings"}}]}]}})
    for _ in range(2):
        found = watched.run(config_map("web"), user)
        assert found == [(Action.SKIP, "settings", f"{SAID}Deployment/shop/user names it; declare it, too")]
        assert not any(change.expires for change in watched.plan(config_map("web"), user).plan.prunes)
        watched.now += 2 * HOUR
    ((action, _, reason),) = watched.run(config_map("web"))
    assert (action, reason.endswith(f"deleted after {stamp(watched.now + HOUR)}")) == (Action.SKIP, True)


def test_what_owns_a_claim_stays_also_through_others(watched: Watched) -> None:
    top = stray(watched, "database")
    middle = watched.shop.post(APPS, owned(deployment("database-0"), top))
    claim(watched, middle)
    stray(watched, "other")
    found = fates(watched)
    kept = "PersistentVolumeClaim/shop/data, which holds data, would go with it; if that may go: kubectl delete ConfigMap/database -n shop"
    assert found["database"] == (Action.SKIP, SAID + kept)
    assert found["other"][0] is Action.PRUNE


def test_a_claim_that_another_set_has_counts_too(watched: Watched) -> None:
    claim(watched, stray(watched), **{PART_OF: "applyset-other-v1"})
    claim(watched, name="member", **{PART_OF: "applyset-other-v1"})
    ((action, name, reason),) = watched.run(config_map("web"))
    assert (action, name, "PersistentVolumeClaim/shop/data" in reason) == (Action.SKIP, "stray", True)
    assert not any("PersistentVolumeClaim" in note or "ApplySet" in note for note in watched.plan(config_map("web")).plan.notes)


def test_a_claim_of_another_owner_keeps_nothing(watched: Watched) -> None:
    claim(watched, watched.shop.post("/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "any"}}))
    claim(watched, name="free")
    stray(watched)
    due(watched)
    assert [(action, name) for action, name, _ in watched.run(config_map("web"))] == [(Action.PRUNE, "stray")]


def test_what_owns_a_declared_object_or_a_member_stays(watched: Watched) -> None:
    watched.shop.patch("web", metadata=owned(config_map("web"), stray(watched, "of-web"))["metadata"])
    watched.shop.post(MAPS, owned(ours(config_map("gone")), stray(watched, "of-gone")))
    watched.shop.post(MAPS, owned(config_map("both"), stray(watched, "of-both")))
    watched.run(config_map("web"), config_map("both"))
    watched.now += HOUR
    found = {name: (action, reason) for action, name, reason in watched.run(config_map("web"), config_map("both"))}
    for name, goes in (("of-web", "web"), ("of-gone", "gone"), ("of-both", "both")):
        kept = f"ConfigMap/shop/{goes}, which is the target's own, would go with it"
        assert found[name] == (Action.SKIP, f"{SAID}{kept}; if that may go: kubectl delete ConfigMap/{name} -n shop")


def denied(suffix: str) -> Way:
    def way(call: Call, do: Callable[[], Reply]) -> Reply:
        if call.asked.method == "GET" and call.asked.path.endswith(suffix):
            return 403, {"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 403, "message": "no"}, {}
        return do()

    return way


def test_where_claims_can_not_be_listed_what_may_own_some_stays(watched: Watched) -> None:
    stray(watched)
    watched.shop.post(APPS, deployment("by-hand"))
    watched.shop.meet = denied("/persistentvolumeclaims")
    found = fates(watched)
    assert found["by-hand"] == (
        Action.SKIP,
        f"{SAID}not all that lives there can be listed, so whether it owns what holds data isn't known",
    )
    assert found["stray"] == (Action.SKIP, f"{SAID}persistentvolumeclaims there can't be listed, so whether one names it isn't known")


def test_what_owns_a_claim_right_before_its_deletion_stays(watched: Watched) -> None:
    top = watched.shop.post(APPS, deployment("database"))
    due(watched)
    planned = watched.plan(config_map("web"))
    assert [change.action for change in planned.plan.prunes] == [Action.PRUNE]
    claim(watched, top)
    ((action, _, reason),) = watched.shop.prune(planned)
    assert (action, "is left alone: PersistentVolumeClaim/shop/data, which holds data" in reason) == (Action.SKIP, True)
    assert "DELETE database" not in watched.shop.written


def pod(name: str, *owners: dict[str, Any], named: str) -> dict[str, Any]:
    body = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "shop"}}
    return owned(body | {"spec": {"volumes": [{"name": "v", "configMap": {"name": named}}]}}, *owners)


def test_what_a_living_pod_uses_stays_but_not_what_only_leaving_ones_do(watched: Watched) -> None:
    for name in ("kept", "left", "own"):
        stray(watched, name)
    gone = watched.shop.post(APPS, deployment("by-hand"))
    watched.shop.post(PODS, pod("by-hand-1", gone, named="left"))
    watched.shop.post(PODS, pod("alone", named="own"))
    watched.shop.post(PODS, pod("web-1", {"apiVersion": "v1", "kind": "Any", "metadata": {"uid": "of-what-git-declares"}}, named="kept"))
    found = fates(watched)
    assert found.pop("kept") == (Action.SKIP, f"{SAID}Pod/shop/web-1 names it; declare it, too")
    assert {name: action for name, (action, _) in found.items()} == dict.fromkeys(("left", "own", "by-hand", "alone"), Action.PRUNE)


def test_what_an_orphan_that_stays_uses_stays_with_it(watched: Watched) -> None:
    stray(watched, "settings")
    kept = deployment("by-hand")
    kept["metadata"]["annotations"] = {"anneal.dev/prune": "disabled"}
    watched.shop.post(PODS, pod("by-hand-1", watched.shop.post(APPS, kept), named="settings"))
    assert fates(watched)["settings"] == (Action.SKIP, f"{SAID}Pod/shop/by-hand-1 names it; declare it, too")


def test_what_is_left_alone_keeps_what_it_names_though_no_pod_runs(watched: Watched) -> None:
    for name in ("admin", "mine"):
        stray(watched, name)
    release = deployment("grafana", template={"spec": {"containers": [{"envFrom": [{"configMapRef": {"name": "admin"}}]}]}})
    release["metadata"]["annotations"] = {"meta.helm.sh/release-name": "grafana"}
    watched.shop.post(APPS, release)
    watched.shop.post(APPS, deployment("by-hand", template={"spec": {"containers": [{"envFrom": [{"configMapRef": {"name": "mine"}}]}]}}))
    found = fates(watched)
    assert found.pop("admin") == (Action.SKIP, f"{SAID}Deployment/shop/grafana names it; declare it, too")
    assert {name: action for name, (action, _) in found.items()} == dict.fromkeys(("mine", "by-hand"), Action.PRUNE)


def test_what_the_default_account_pulls_with_stays(watched: Watched) -> None:
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default", "namespace": "shop"}}
    watched.shop.post("/api/v1/namespaces/shop/serviceaccounts", account | {"imagePullSecrets": [{"name": "registry"}]})
    for name in ("registry", "other"):
        body = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name, "namespace": "shop"}}
        watched.shop.post("/api/v1/namespaces/shop/secrets", body)
    found = fates(watched)
    assert found["registry"] == (Action.SKIP, f"{SAID}ServiceAccount/shop/default names it; declare it, too")
    assert found["other"][0] is Action.PRUNE


def test_where_pods_can_not_be_listed_what_one_may_use_stays(watched: Watched) -> None:
    stray(watched)
    watched.shop.meet = denied("/pods")
    found = fates(watched)
    assert found["stray"] == (Action.SKIP, f"{SAID}pods there can't be listed, so whether one names it isn't known")


def test_no_body_is_read_where_nothing_goes(watched: Watched) -> None:
    asked: list[str] = []

    def noted(call: Call, do: Callable[[], Reply]) -> Reply:
        asked.append(call.asked.path)
        return do()

    watched.shop.meet = noted
    stray(watched, annotations={"anneal.dev/prune": "disabled"})
    watched.run(config_map("web"))
    assert asked.count(PODS) == 1
    stray(watched, "goes")
    watched.run(config_map("web"))
    assert asked.count(PODS) == 3


BUCKETS = "/apis/acme.io/v1/namespaces/shop/buckets"


def bucket(**metadata: Any) -> dict[str, Any]:
    return {"apiVersion": "acme.io/v1", "kind": "Bucket", "metadata": {"name": "orders", "namespace": "shop", **metadata}}


@pytest.fixture
def with_buckets() -> Watched:
    kind = Served(Resource("acme.io", "v1", "Bucket", "buckets", True, VERBS), frozenset({"spec"}))
    made = Watched(PlannedTarget(EXCLUSIVE, server=ApiServer(time.time, (*WORKLOADS, kind))))
    made.shop.apply(made.shop.plan(config_map("web")))
    return made


def test_what_an_operator_takes_apart_stays_until_a_person_allows_it(with_buckets: Watched) -> None:
    with_buckets.shop.post(BUCKETS, bucket(finalizers=["acme.io/bucket"]))
    seen = "its operator takes it apart by finalizer acme.io/bucket, and what goes with it can't be seen"
    way_out = "if that may go: kubectl annotate Bucket.acme.io/orders -n shop anneal.dev/prune=allow"
    assert fates(with_buckets) == {"orders": (Action.SKIP, f"{SAID}{seen}; {way_out}")}
    allowed = {"metadata": {"annotations": {"anneal.dev/prune": "allow"}}}
    asked = Asked("PATCH", f"{BUCKETS}/orders", {"fieldManager": "kubectl"}, allowed, "application/merge-patch+json", "")
    with_buckets.shop.server.must(asked)
    due(with_buckets)
    assert [change.action for change in with_buckets.plan(config_map("web")).plan.prunes] == [Action.PRUNE]


def test_what_owns_what_an_operator_takes_apart_stays(with_buckets: Watched) -> None:
    top = stray(with_buckets, "app")
    with_buckets.shop.post(BUCKETS, owned(bucket(finalizers=["acme.io/bucket"]), top))
    action, reason = fates(with_buckets)["app"]
    kept = "Bucket/shop/orders, which its operator takes apart by finalizer acme.io/bucket, would go with it"
    assert (action, reason) == (Action.SKIP, f"{SAID}{kept}; if that may go: kubectl delete ConfigMap/app -n shop")


def test_what_an_operator_takes_apart_right_before_its_deletion_stays(with_buckets: Watched) -> None:
    with_buckets.shop.post(BUCKETS, bucket())
    due(with_buckets)
    planned = with_buckets.plan(config_map("web"))
    finalizers = {"metadata": {"finalizers": ["acme.io/bucket"]}}
    asked = Asked("PATCH", f"{BUCKETS}/orders", {"fieldManager": "operator"}, finalizers, "application/merge-patch+json", "")
    with_buckets.shop.server.must(asked)
    ((action, _, reason),) = with_buckets.shop.prune(planned)
    assert (action, "by finalizer acme.io/bucket" in reason) == (Action.SKIP, True)


@pytest.mark.parametrize(("token", "action"), [(True, Action.SKIP), (False, Action.PRUNE)])
def test_an_account_with_a_token_that_is_left_alone_stays(watched: Watched, token: bool, action: Action) -> None:
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "ci", "namespace": "shop"}}
    uid = watched.shop.post("/api/v1/namespaces/shop/serviceaccounts", account)["metadata"]["uid"]
    annotations = {"kubernetes.io/service-account.name": "ci", "kubernetes.io/service-account.uid": uid}
    body = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "ci-token", "namespace": "shop", "annotations": annotations}}
    if token:
        watched.shop.post("/api/v1/namespaces/shop/secrets", body)
    who: Reply = (201, {"status": {"userInfo": {"username": "ada"}}}, {})
    watched.shop.meet = lambda call, do: who if call.asked.path.endswith("/selfsubjectreviews") else do()
    found = fates(watched)["ci"]
    assert found[0] is action
    assert not token or "Secret/shop/ci-token, which is a token of it, would go with it" in found[1]


@pytest.mark.parametrize("number", [1, 30])
def test_right_before_deletions_each_kind_is_listed_once_for_all_of_them(watched: Watched, number: int) -> None:
    asked: list[str] = []

    def noted(call: Call, do: Callable[[], Reply]) -> Reply:
        if call.asked.method == "GET" and (
            call.asked.path.startswith("/api/v1/namespaces/shop/") or call.asked.path.startswith("/apis/apps/")
        ):
            asked.append(call.asked.path)
        return do()

    for each in range(number):
        watched.shop.post(APPS, deployment(f"by-hand-{each}"))
    due(watched)
    planned = watched.plan(config_map("web"))
    watched.shop.meet = noted
    assert [action for action, *_ in watched.shop.prune(planned)] == [Action.PRUNE] * number
    assert (asked.count(CLAIMS), asked.count(PODS)) == (1, 1)


def test_what_owns_a_claim_through_something_new_right_before_its_deletion_stays(watched: Watched) -> None:
    top = watched.shop.post(APPS, deployment("database"))
    due(watched)
    planned = watched.plan(config_map("web"))
    claim(watched, watched.shop.post(APPS, owned(deployment("database-0"), top)))
    ((action, _, reason),) = watched.shop.prune(planned)
    assert (action, "is left alone: PersistentVolumeClaim/shop/data, which holds data" in reason) == (Action.SKIP, True)


def test_what_something_new_names_right_before_its_deletion_stays(watched: Watched) -> None:
    for name in ("settings", "other"):
        stray(watched, name)
    due(watched)
    planned = watched.plan(config_map("web"))
    watched.shop.post(PODS, pod("new", named="settings"))
    found = {name: (action, reason) for action, name, reason in watched.shop.prune(planned)}
    assert found["settings"] == (Action.SKIP, "is left alone: Pod/shop/new names it; declare it, too")
    assert found["other"][0] is Action.PRUNE


def test_what_is_named_by_what_owns_a_claim_right_before_its_deletion_stays(watched: Watched) -> None:
    stray(watched, "settings")
    pods = {"spec": {"containers": [{"envFrom": [{"configMapRef": {"name": "settings"}}]}]}}
    top = watched.shop.post(APPS, deployment("database", template=pods))
    due(watched)
    planned = watched.plan(config_map("web"))
    claim(watched, top)
    found = {name: (action, reason) for action, name, reason in watched.shop.prune(planned)}
    assert found["settings"] == (Action.SKIP, "is left alone: Deployment/shop/database names it; declare it, too")
    assert found["database"][0] is Action.SKIP


@pytest.mark.parametrize("path", ["", APPS, MAPS], ids=["claim", "deployment", "map"])
def test_what_owns_a_claim_or_a_member_by_the_time_of_its_stage_stays(with_buckets: Watched, path: str) -> None:
    with_buckets.shop.post(BUCKETS, bucket())
    top = with_buckets.shop.post(APPS, deployment("database"))
    due(with_buckets)
    planned = with_buckets.plan(config_map("web"))

    def meanwhile(call: Call, do: Callable[[], Reply]) -> Reply:
        if (call.asked.method, call.asked.path) == ("DELETE", f"{BUCKETS}/orders"):
            member(with_buckets, path, top) if path else claim(with_buckets, top)
        return do()

    with_buckets.shop.meet = meanwhile
    found = {name: action for action, name, _ in with_buckets.shop.prune(planned)}
    assert found == {"orders": Action.PRUNE, "database": Action.SKIP}


def test_what_owns_a_claim_by_the_time_that_it_is_looked_at_again_stays(watched: Watched) -> None:
    top, moved = watched.shop.post(APPS, deployment("database")), list[str]()
    due(watched)
    planned = watched.plan(config_map("web"))

    def meanwhile(call: Call, do: Callable[[], Reply]) -> Reply:
        if (call.asked.method, call.asked.path) == ("DELETE", f"{APPS}/database") and not moved:
            moved.append(str(claim(watched, top)["metadata"]["uid"]))
            labels = {"metadata": {"labels": {"moved": "yes"}}}
            watched.shop.server.must(Asked("PATCH", f"{APPS}/database", {"fieldManager": "x"}, labels, "application/merge-patch+json", ""))
        return do()

    watched.shop.meet = meanwhile
    assert [(action, bool(moved)) for action, *_ in watched.shop.prune(planned)] == [(Action.SKIP, True)]


def test_what_is_named_by_what_goes_before_it_goes_after_it(watched: Watched) -> None:
    stray(watched, "settings")
    gone = watched.shop.post(APPS, deployment("by-hand"))
    watched.shop.post(PODS, pod("by-hand-1", gone, named="settings"))
    due(watched)
    assert {action for action, *_ in watched.shop.prune(watched.plan(config_map("web")))} == {Action.PRUNE}


def test_right_before_its_deletion_doubt_keeps_what_may_own_data(watched: Watched) -> None:
    watched.shop.post(APPS, deployment("by-hand"))
    due(watched)
    planned = watched.plan(config_map("web"))
    watched.shop.meet = denied("/persistentvolumeclaims")
    assert [action for action, *_ in watched.shop.prune(planned)] == [Action.SKIP]
    watched.shop.meet = straight
    assert [action for action, *_ in watched.shop.prune(planned)] == [Action.PRUNE]


def test_of_an_orphan_no_copy_of_the_whole_object_is_kept(watched: Watched) -> None:
    applied = "kubectl.kubernetes.io/last-applied-configuration"
    stray(watched, annotations={applied: "{}", "acme.io/note": "a"})
    (body,) = watched.plan(config_map("web")).exclusive.bodies.values()
    assert body["metadata"]["annotations"] == {"acme.io/note": "a"}
