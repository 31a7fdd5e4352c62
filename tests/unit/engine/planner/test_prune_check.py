"""What a deletion would take with it: nothing goes unseen, and what can't be known keeps."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest

from handler.cluster.api import Api
from handler.cluster.discovery import Discovery
from handler.config.git_settings import Repository
from handler.config.settings import Prune, Target
from handler.engine.planner.prune_check import PruneCheck, _roots
from handler.model.errors import ApiRefused
from handler.model.names import IDENTITY, PART_OF, applyset_id, identity_of
from handler.model.plan import Action
from handler.plan.inventory import Membership, TargetMarks
from handler.plan.prune import judge, leaving
from tests.fakes.apiserver import ApiServer, Call, FakeConnection
from tests.fakes.apiserver.connection import Reply
from tests.fakes.apiserver.kinds import WORKLOADS
from tests.fakes.apiserver.server import Asked

Body = dict[str, Any]
APPLYSET = applyset_id("anneal-shop", "anneal-system")
PRUNED = Prune(kinds=("Namespace",))
TARGET = Target("shop", Repository("https://git.example.com/acme/shop.git"), ("data",), cluster_scoped=("Namespace",), prune=PRUNED)
ROLES = "/apis/rbac.authorization.k8s.io/v1/namespaces/data/roles"
SPACE: Body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "data"}}
OURS: Body = {"labels": {PART_OF: APPLYSET}, "annotations": {IDENTITY: identity_of(SPACE).mark("shop")}}
FORBIDDEN = 'roles.rbac.authorization.k8s.io is forbidden: User "jo" cannot list resource "roles" in API group "rbac.authorization.k8s.io"'
KEPT = "what it holds could not be read"
API_SERVICES, CRDS = "/apis/apiregistration.k8s.io/v1/apiservices", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
GROUP = "backups.example.com"
SILENT = f"{KEPT}: the API group {GROUP} doesn't answer; repair its APIService"


def group(name: str, *, kind: str = "", plural: str = "", freshness: str = "Current") -> Body:
    """Return a group as discovery has it, with one kind of no namespace, or none."""
    verbs = ["list", "delete"]
    resources = [{"resource": plural, "responseKind": {"kind": kind}, "scope": "Cluster", "verbs": verbs}] if kind else []
    return {"metadata": {"name": name}, "versions": [{"version": "v1", "resources": resources, "freshness": freshness}]}


DEAD = group(GROUP, freshness="Stale")
REGISTRY = {
    -1: group("apiregistration.k8s.io", kind="APIService", plural="apiservices"),
    -2: group("apiextensions.k8s.io", kind="CustomResourceDefinition", plural="customresourcedefinitions"),
}


class InMemoryCluster:
    """A cluster with a Namespace of ours. `refused`: what LISTs of Roles answer, one after the other.

    `silent`: number of a look -> a group that doesn't answer since; `registered`: paths of APIServices and CRDs, whose uid is their name.
    """

    def __init__(self) -> None:
        self.refused: list[int] = []
        self.looks = 0
        self.silent: dict[int, Body] = {}
        self.registered: list[str] = []
        self.server = ApiServer(time.time, WORKLOADS)
        self.api = Api(FakeConnection(self.server, self._way))
        self.judge = PruneCheck(TARGET, Membership(TargetMarks(TARGET.name, APPLYSET)), self.api, Discovery(self.api))
        self.space = self.api.post("/api/v1/namespaces", {**SPACE, "metadata": {"name": "data", **OURS}})

    def _way(self, call: Call, do: Callable[[], Reply]) -> Reply:
        self.looks += call.asked.path == "/apis"
        if call.asked.path == ROLES and self.refused:
            status = self.refused.pop(0)
            return status, {"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": status, "message": FORBIDDEN}, {}
        if call.asked.path in (API_SERVICES, CRDS):
            names = [path.rpartition("/")[2] for path in self.registered if path.startswith(f"{call.asked.path}/")]
            items = [{"metadata": {"name": name, "uid": name}} for name in names]
            return 200, {"kind": "PartialObjectMetadataList", "apiVersion": "meta.k8s.io/v1", "metadata": {}, "items": items}, {}
        status, body, headers = do()
        if call.asked.path == "/apis" and self.silent:
            body["items"] += [group for look, group in self.silent.items() if self.looks >= look]
        return status, body, headers

    def holds(self, name: str, **metadata: Any) -> Body:
        """Put a ConfigMap into the Namespace."""
        made = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "data", **metadata}}
        return dict(self.api.post("/api/v1/namespaces/data/configmaps", made))

    def owned(self, name: str, *uids: str) -> None:
        """Let a ConfigMap be owned by these, as its controller does later."""
        path, more = f"/api/v1/namespaces/data/configmaps/{name}", {"metadata": owned_by(*uids)}
        self.server.must(Asked("PATCH", path, {"fieldManager": "operator"}, more, "application/merge-patch+json", ""))

    def reason(self, gone: Sequence[Body] = ()) -> str:
        """Judge the Namespace; empty: it goes."""
        change = self.judge.judged(self.space, (), leaving(gone, TARGET))
        return change.reason if change.action is Action.SKIP else ""

    def kept(self, gone: frozenset[str], before: frozenset[str] | None = None) -> str:
        """Judge the Namespace by what goes before it; empty: it goes."""
        change = judge(self.space, TARGET, (), self.judge.facts([self.space], gone, before))
        return change.reason if change.action is Action.SKIP else ""


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> InMemoryCluster:
    monkeypatch.setattr("handler.engine.planner.prune_check.time.sleep", lambda _: None)
    return InMemoryCluster()


def owned_by(*uids: str) -> dict[str, Any]:
    return {"ownerReferences": [{"apiVersion": "v1", "kind": "Secret", "name": "s", "uid": uid} for uid in uids]}


def test_system_content_and_what_goes_with_what_goes_before_keeps_no_namespace(fake: InMemoryCluster) -> None:
    for name in ("kube-root-ca.crt", "openshift-service-ca.crt", "istio-ca-root-cert", "istio-ca-crl"):
        fake.holds(name)
    top = fake.holds("top", labels={PART_OF: APPLYSET})
    fake.holds("owned", **owned_by(top["metadata"]["uid"]))
    assert fake.reason(gone=[top]) == ""


def test_what_goes_with_the_system_or_with_what_is_not_in_it_keeps_a_namespace(fake: InMemoryCluster) -> None:
    """As an operator's workloads, which belong to its configuration: that lives on; or what a person has tied to the Namespace itself."""
    root, top = fake.holds("kube-root-ca.crt"), fake.holds("top", labels={PART_OF: APPLYSET})
    for name, uids in {"of-root": [root["metadata"]["uid"]], "of-none": ["u"], "of-both": [top["metadata"]["uid"], "u"]}.items():
        fake.holds(name, **owned_by(*uids))
    assert fake.reason(gone=[top]) == "still holds ConfigMap/data/of-both, ConfigMap/data/of-none, ConfigMap/data/of-root"


def test_objects_that_own_nothing_but_each_other_keep_a_namespace_with_what_they_own(fake: InMemoryCluster) -> None:
    one, other = fake.holds("one"), fake.holds("other")
    fake.holds("below", **owned_by(one["metadata"]["uid"]))
    fake.owned("one", other["metadata"]["uid"])
    assert fake.reason() == "still holds ConfigMap/data/other"
    fake.owned("other", one["metadata"]["uid"])
    assert fake.reason() == "still holds ConfigMap/data/below, ConfigMap/data/one, ConfigMap/data/other"


@pytest.mark.parametrize(("kind", "keeps"), [("ReplicaSet", False), ("Migration", True)])
def test_a_pod_keeps_a_namespace_unless_its_owner_lived_there(fake: InMemoryCluster, kind: str, keeps: bool) -> None:
    owner = {"apiVersion": "apps/v1", "kind": kind, "name": "s", "uid": "gone-by-now", "controller": True}
    metadata = {"name": "web", "namespace": "data", "ownerReferences": [owner]}
    fake.api.post("/api/v1/namespaces/data/pods", {"apiVersion": "v1", "kind": "Pod", "metadata": metadata})
    assert fake.reason() == ("still holds Pod/data/web" if keeps else "")


def test_an_object_that_two_groups_serve_is_content_in_both(fake: InMemoryCluster) -> None:
    held = fake.holds("one")
    twice = [held, {**held, "apiVersion": "mirror.example.com/v1"}]
    assert [identity_of(each).group for each in _roots(twice, ())] == ["", "mirror.example.com"]


def test_any_other_content_keeps_a_namespace_unless_it_is_pruned_before(fake: InMemoryCluster) -> None:
    mark = {"labels": {PART_OF: APPLYSET}}
    ours, kept = fake.holds("ours", **mark), fake.holds("kept", **mark, annotations={"anneal.dev/prune": "disabled"})
    assert fake.reason() == "still holds ConfigMap/data/kept, ConfigMap/data/ours"
    assert fake.reason(gone=[ours, kept]) == "still holds ConfigMap/data/kept"


def test_a_403_on_a_list_keeps_a_namespace_from_prune(fake: InMemoryCluster) -> None:
    fake.refused = [403]
    assert fake.reason() == KEPT


def test_a_group_that_doesnt_answer_keeps_a_namespace(fake: InMemoryCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    assert fake.reason() == ""
    monkeypatch.setattr(Discovery, "stale", property(lambda _: frozenset({GROUP})))
    assert fake.reason() == SILENT
    assert fake.judge.judged(fake.holds("ours"), ()).action is Action.PRUNE, "it holds nothing"


def test_a_group_whose_api_service_goes_before_keeps_no_namespace_but_of_a_step_until_it_is_gone(fake: InMemoryCluster) -> None:
    """What git no longer declares goes after all steps, and the Namespace of a step would wait for it."""
    fake.silent, fake.registered = {**REGISTRY, 1: DEAD}, [f"{API_SERVICES}/v1.{GROUP}"]
    gone = frozenset({f"v1.{GROUP}"})
    assert (fake.kept(gone), fake.kept(gone, frozenset())) == ("", SILENT)
    assert fake.judge.judged(fake.space, (), gone).reason == SILENT
    fake.registered = []
    assert fake.judge.judged(fake.space, (), gone).action is Action.PRUNE


def test_a_group_that_a_dead_api_service_hides_from_its_crds_keeps_a_namespace(fake: InMemoryCluster) -> None:
    fake.silent = {**REGISTRY, 1: DEAD}
    assert fake.reason() == ""
    fake.registered = [f"{CRDS}/backups.{GROUP}"]
    assert fake.reason() == SILENT


def test_a_group_that_answers_no_more_while_content_is_asked_keeps_a_namespace(fake: InMemoryCluster) -> None:
    fake.silent, fake.registered, fake.refused = {**REGISTRY, 2: DEAD}, [f"{API_SERVICES}/v1.{GROUP}"], [404]
    assert (fake.reason(), fake.looks) == (KEPT, 2)


def test_a_kind_that_vanishes_meanwhile_is_looked_for_anew_and_keeps_a_namespace_while_it_is_not_found_out(fake: InMemoryCluster) -> None:
    assert (fake.reason(), fake.looks) == ("", 1)
    fake.refused, fake.looks = [404, 404], 0
    assert (fake.reason(), fake.looks) == ("", 3)
    fake.refused = [404] * 4
    assert fake.reason() == KEPT


def test_any_other_refusal_ends_the_run(fake: InMemoryCluster) -> None:
    fake.refused = [400]
    with pytest.raises(ApiRefused):
        fake.reason()


def test_objects_that_hold_nothing_cost_no_prune_check(fake: InMemoryCluster) -> None:
    fake.looks = 0
    assert fake.judge.judged(fake.holds("ours"), ()).action is Action.PRUNE
    assert fake.looks == 0


@pytest.mark.parametrize(
    ("plural", "reason"),
    [("roles.rbac.authorization.k8s.io", ""), ("widgets.acme.io", "its instances could not be counted")],
)
def test_a_crd_goes_once_its_instances_are_counted_and_none_is_left(fake: InMemoryCluster, plural: str, reason: str) -> None:
    """The server doesn't say yet, or any more, how it serves the other one's."""
    crds = ("CustomResourceDefinition.apiextensions.k8s.io",)
    judge = replace(fake.judge, target=replace(TARGET, cluster_scoped=crds, prune=Prune(kinds=crds)))
    body: Body = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": plural}}
    crd = {**body, "metadata": {**body["metadata"], "uid": "u", "resourceVersion": "7"}}
    change = judge.judged(crd, ())
    assert (change.action, change.reason) == ((Action.SKIP, reason) if reason else (Action.PRUNE, "no longer declared"))
    role: Body = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": {"name": "any", "namespace": "data"}}
    fake.api.post(ROLES, role)
    assert judge.judged(crd, ()).reason == (reason or "still has instances (1); deleting it would delete them")


def test_prune_judges_again_that_an_object_is_still_ours(fake: InMemoryCluster) -> None:
    assert fake.judge.judged_again(fake.space, ()).action is Action.PRUNE
    fake.holds("inside")
    assert fake.judge.judged_again(fake.space, ()).reason == "still holds ConfigMap/data/inside"
    copied = {**fake.space, "metadata": {**fake.space["metadata"], "annotations": {}}}
    found = fake.judge.judged_again(copied, ())
    assert (found.action, found.reason) == (Action.SKIP, "is no longer ours")
