"""What claims and volumes a plan's changes take along, by what lives; what can't be read keeps, or is taken to go."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from handler.config.settings import Prune
from handler.engine.apply import wait_deleted
from handler.model.errors import PlanRefused, PlanStale, StillDeleting
from handler.model.names import GroupKind
from handler.model.plan import Action, Change
from tests.fakes.apiserver import Call
from tests.fakes.apiserver.connection import Reply
from tests.fakes.apiserver.server import Asked
from tests.unit.engine.apply.planned_target import MAPS, TARGET, Body, PlannedTarget, answering, before, config_map, ours

pytestmark = pytest.mark.slow

SETS, CLAIMS = "/apis/apps/v1/namespaces/shop/statefulsets", "/api/v1/namespaces/shop/persistentvolumeclaims"
KINDS = [GroupKind("apps", "StatefulSet"), GroupKind("", "PersistentVolumeClaim")]
DENIED = (
    'persistentvolumeclaims is forbidden: User "jo" cannot list resource "persistentvolumeclaims" in API group "" in the namespace "shop"'
)


def stateful(replicas: int = 2, **policy: str) -> Body:
    spec = {"replicas": replicas, "persistentVolumeClaimRetentionPolicy": policy, "volumeClaimTemplates": [{"metadata": {"name": "data"}}]}
    return {"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": "db", "namespace": "shop"}, "spec": spec}


class Database(PlannedTarget):
    """A target with a StatefulSet that has two claims, the first of which refers to it."""

    made: Body

    def __init__(self, *, prunes: str = "", **policy: str) -> None:
        kinds = ("Namespace", *filter(None, [prunes]))
        super().__init__(replace(TARGET, prune=Prune(kinds=kinds, allow_empty=True), cluster_scoped=("Namespace", "PersistentVolume")))
        self.made = self.post(SETS, ours(stateful(2, **policy)))
        self.claim(0, {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "db", "uid": self.made["metadata"]["uid"]})
        self.claim(1)

    def claim(self, number: int, *owners: Body, **metadata: Any) -> Body:
        meta = {"name": f"data-db-{number}", "namespace": "shop", "ownerReferences": list(owners), **metadata}
        spec = {"volumeName": f"v-{number}"}
        return self.post(CLAIMS, {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": meta, "spec": spec})

    def volume(self, number: int, policy: str) -> None:
        spec = {"persistentVolumeReclaimPolicy": policy}
        self.post(
            "/api/v1/persistentvolumes", {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": f"v-{number}"}, "spec": spec}
        )

    def change(self, *declared: Body) -> Change:
        (found,) = [each for each in self.plan(*declared, recorded=KINDS).plan.changes if each.identity.kind == "StatefulSet"]
        return found

    def takes(self, *declared: Body) -> list[str]:
        return [gone.identity.name for gone in self.change(*declared).takes]

    def owners(self, number: int) -> list[str]:
        body = self.server.must(Asked("GET", f"{CLAIMS}/data-db-{number}", {}, None, "", ""))
        return [each["name"] for each in body["metadata"].get("ownerReferences", [])]

    def policy(self) -> Any:
        body = self.server.must(Asked("GET", f"{SETS}/db", {}, None, "", ""))
        return body["spec"]["persistentVolumeClaimRetentionPolicy"]


def lists_of_claims(database: Database) -> list[str]:
    """Note each request for claims from now on."""
    seen: list[str] = []

    def way(call: Call, do: Callable[[], Reply]) -> Reply:
        if "persistentvolume" in call.asked.path and "labelSelector" not in call.asked.query:
            seen.append(call.asked.path)
        return do()

    database.meet = way
    return seen


def test_claims_that_refer_to_a_pruned_statefulset_go_where_prune_names_claims_whatever_its_policy_is_by_now() -> None:
    assert Database(prunes="PersistentVolumeClaim").takes() == ["data-db-0"]
    assert Database(prunes="PersistentVolumeClaim", whenDeleted="Delete").takes() == ["data-db-0", "data-db-1"]
    assert Database(whenDeleted="Delete").takes() == []


def test_an_annotation_on_a_claim_opens_no_deletion_of_claims() -> None:
    database = Database(whenDeleted="Delete")
    for number in range(2):
        path, more = f"{CLAIMS}/data-db-{number}", {"metadata": {"annotations": {"anneal.dev/prune": "allow"}}}
        database.server.must(Asked("PATCH", path, {}, more, "application/merge-patch+json", ""))
    assert database.takes() == []


def test_a_claim_that_another_owner_would_take_along_keeps_that_or_is_named() -> None:
    for prunes, action, taken in (("", Action.SKIP, []), ("PersistentVolumeClaim", Action.PRUNE, ["data-db-7"])):
        database = Database(prunes=prunes)
        above = database.post(MAPS, ours(config_map("operators")))
        database.claim(7, {"apiVersion": "v1", "kind": "ConfigMap", "name": "operators", "uid": above["metadata"]["uid"]})
        plan = database.plan(recorded=KINDS).plan
        (change,) = [each for each in plan.prunes if each.identity.name == "operators"]
        assert (change.action, [gone.identity.name for gone in change.takes]) == (action, taken)


@pytest.mark.parametrize(("pods", "gone"), [((0, 1), ["data-db-1"]), ((0,), []), ((), [])])
def test_a_statefulset_that_is_made_takes_the_claims_of_the_pods_that_another_has_left(pods: tuple[int, ...], gone: list[str]) -> None:
    database = Database(prunes="PersistentVolumeClaim")
    database.server.must(Asked("DELETE", f"{SETS}/db", {}, {"propagationPolicy": "Orphan"}, "", ""))
    for number in pods:
        metadata = {"name": f"db-{number}", "namespace": "shop"}
        database.post("/api/v1/namespaces/shop/pods", {"apiVersion": "v1", "kind": "Pod", "metadata": metadata})
    assert database.takes(stateful(1, whenScaled="Delete")) == gone


def test_a_plan_that_deletes_and_scales_no_statefulset_asks_for_no_claim() -> None:
    database = Database()
    seen = lists_of_claims(database)
    assert database.change(stateful(3)).action is Action.UPDATE
    assert seen == []
    database.change()
    assert seen == [CLAIMS]


def test_a_statefulset_whose_claims_may_not_be_listed_stays() -> None:
    database = Database()
    database.meet = answering("GET", "persistentvolumeclaims", 403, DENIED)
    found = next(each for each in database.plan(recorded=KINDS[:1]).plan.prunes if each.identity.kind == "StatefulSet")
    assert (found.action, found.unread, found.reason) == (
        Action.SKIP,
        True,
        f"its claims can't be listed, and may go with it: 403: “{DENIED}”; the right: anneal rbac shop",
    )


def test_a_scale_down_whose_claims_may_not_be_listed_names_them_and_waits() -> None:
    database = Database(whenScaled="Delete")
    database.apply(database.plan(stateful(2, whenScaled="Delete"), recorded=KINDS))
    database.meet = answering("GET", "persistentvolumeclaims", 403, DENIED)
    plan = database.plan(stateful(1, whenScaled="Delete"), recorded=KINDS[:1]).plan
    assert [gone.identity.name for gone in plan.gone] == ["data-db-1"]
    assert plan.hold


def test_a_claim_that_is_not_there_is_not_named() -> None:
    assert Database(whenScaled="Delete").takes(stateful(0, whenScaled="Delete")) == ["data-db-0", "data-db-1"]
    assert Database(whenScaled="Retain").claim(5)
    assert Database(whenScaled="Retain").takes(stateful(1, whenScaled="Delete")) == ["data-db-1"]


def test_a_scale_down_that_would_take_a_protected_claim_is_refused() -> None:
    database = Database(prunes="PersistentVolumeClaim", whenScaled="Delete")
    database.claim(2, annotations={"anneal.dev/prune": "disabled"})
    database.server.must(Asked("PATCH", f"{SETS}/db", {}, {"spec": {"replicas": 3}}, "application/merge-patch+json", ""))
    with pytest.raises(PlanRefused, match="PersistentVolumeClaim/shop/data-db-2 would go once it is written, but it is protected by"):
        database.plan(stateful(2, whenScaled="Delete"), recorded=KINDS)


@pytest.mark.parametrize(("policy", "named"), [("Delete", ["data-db-0", "v-0"]), ("Retain", ["data-db-0"])])
def test_the_volume_of_a_claim_that_goes_is_named_by_its_policy(policy: str, named: list[str]) -> None:
    database = Database(prunes="PersistentVolumeClaim")
    database.volume(0, policy)
    assert database.takes() == named


def test_the_volume_of_a_claim_goes_by_the_policy_that_git_gives_it_in_the_same_push() -> None:
    database = Database(prunes="PersistentVolumeClaim")
    database.volume(0, "Retain")
    declared: Body = {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": "v-0"}}
    declared["spec"] = {"persistentVolumeReclaimPolicy": "Delete"}
    assert database.takes(declared) == ["data-db-0", "v-0"]


def test_a_claim_that_git_declares_stays() -> None:
    database = Database(prunes="PersistentVolumeClaim")
    claim: Body = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "data-db-0", "namespace": "shop"}}
    assert database.takes(claim) == []


def test_a_volume_that_may_not_be_read_is_taken_to_go_with_its_claim() -> None:
    database = Database(prunes="PersistentVolumeClaim")
    database.meet = answering("GET", "v-0", 403, DENIED.replace("list", "get"))
    assert database.takes() == ["data-db-0", "v-0"]


def test_a_namespace_whose_claims_are_let_go_stays() -> None:
    database = Database(whenDeleted="Delete")
    space = database.server.must(Asked("GET", "/api/v1/namespaces/shop", {}, None, "", ""))
    marks = ours({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}})["metadata"]
    database.server.must(Asked("PATCH", "/api/v1/namespaces/shop", {}, {"metadata": marks}, "application/merge-patch+json", ""))
    database.server.must(Asked("DELETE", f"{CLAIMS}/data-db-1", {}, {}, "", ""))
    found = {each.identity.kind: each for each in database.plan(recorded=KINDS).plan.prunes}
    assert (found["StatefulSet"].action, found["Namespace"].action) == (Action.PRUNE, Action.SKIP), space
    assert found["Namespace"].reason == "still holds PersistentVolumeClaim/shop/data-db-0"


# --- as it is carried out
def test_a_statefulset_goes_once_none_of_its_claims_refers_to_it() -> None:
    database = Database(whenDeleted="Delete")
    database.prune(database.plan(recorded=KINDS))
    assert (database.written, database.owners(0)) == (["PATCH db", "PATCH data-db-0", "DELETE db"], [])


def test_claims_that_the_plan_names_go_with_it() -> None:
    database = Database(prunes="PersistentVolumeClaim", whenDeleted="Delete")
    database.prune(database.plan(recorded=KINDS))
    assert database.written == ["DELETE db"]


def test_a_claim_that_came_since_the_plan_lets_all_of_them_go() -> None:
    database = Database(prunes="PersistentVolumeClaim")
    planned = database.plan(recorded=KINDS)
    database.claim(7, {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "db", "uid": database.made["metadata"]["uid"]})
    database.prune(planned)
    assert database.written == ["PATCH data-db-0", "PATCH data-db-7", "DELETE db"]


def test_a_statefulset_whose_controller_does_not_follow_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wait_deleted, "TIMEOUT", 0.0)
    database = Database(whenDeleted="Delete")

    def unobserved(call: Call, do: Callable[[], Reply]) -> Reply:
        status, body, more = do()
        if call.asked.method == "PATCH":
            body["metadata"]["generation"] = 2
        return status, body, more

    planned = database.plan(recorded=KINDS)
    database.meet = unobserved
    with pytest.raises(StillDeleting, match="its controller hasn't seen whenDeleted: Retain"):
        database.prune(planned)
    assert (database.written, database.policy()) == (["PATCH db"], {"whenDeleted": "Retain"})


def test_a_write_that_would_take_more_claims_than_the_plan_showed_is_not_made() -> None:
    database = Database(whenScaled="Delete")
    database.apply(database.plan(stateful(2, whenScaled="Delete"), recorded=KINDS))
    planned = database.plan(stateful(1, whenScaled="Delete"), recorded=KINDS)
    scaled = Asked("PATCH", f"{SETS}/db", {}, {"spec": {"replicas": 4}}, "application/merge-patch+json", "")
    for number in (2, 3):
        database.claim(number)
    database.written.clear()
    database.meet = before("PATCH", "db", lambda: database.server.must(scaled))
    with pytest.raises(PlanStale, match=r"data-db-2, .*data-db-3 would go, which the plan didn't show"):
        database.apply(planned)
    assert database.written == []
