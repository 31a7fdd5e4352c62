"""What `reconcile` writes, deletes and leaves, against a server in memory; every write and read is counted."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from kubernetes import client as vendor

from handler.cluster.live import Object
from handler.library import Reconciled, ReconcileFailed, reconcile
from handler.library.delete_selector import SelectorRefused
from handler.model.errors import AccessDenied, AnnealError, ApiRefused, ClusterUnavailable, Problem
from handler.model.names import Identity, Resource, identity_of
from tests.fakes.apiserver.connection import Call
from tests.unit.library.cluster_in_memory import LABELS, Cluster, config, named

pytestmark = pytest.mark.slow


class Cache:
    """A lister that knows what the test has it know. `broken`: why it knows nothing for certain."""

    broken: AnnealError | None = None

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.objects: dict[Identity, Object] = {}
        self.dropped_uids: list[str] = []

    def learn(self) -> None:
        self.objects = {identity: copy.deepcopy(stored.body) for identity, stored in self.cluster.server.store.all()}

    def get(self, resource: Resource, namespace: str, name: str) -> Object | None:
        if self.broken:
            raise self.broken
        return self.objects.get(Identity(resource.group, resource.kind, namespace, name))

    def items(self, resource: Resource, namespace: str) -> list[Object]:
        return [each for key, each in self.objects.items() if key.kind == resource.kind and key.namespace == namespace]

    def saw(self, _resource: Resource, obj: Object) -> None:
        self.objects[identity_of(obj)] = obj

    def dropped(self, _resource: Resource, identity: Identity, uid: str) -> None:
        self.objects.pop(identity, None)
        self.dropped_uids.append(uid)


@pytest.fixture
def cluster() -> Cluster:
    return Cluster()


def test_missing_is_created_different_updated_unexpected_deleted_the_rest_left(cluster: Cluster) -> None:
    reconcile(cluster.client, [config("same"), config("drifts"), config("goes")])
    cluster.put(config("drifts", {"a": "2"}))
    cluster.put(config("stranger", labels={"app": "other"}))
    cluster.methods()
    done = reconcile(cluster.client, [config("same"), config("drifts"), config("new")], "n", LABELS)
    assert done.created == (named("new"),)
    assert [(each.identity, [(one.path, one.live, one.declared) for one in each.fields]) for each in done.updated] == [
        (named("drifts"), [("data.a", "2", "1")])
    ]
    assert done.deleted == (named("goes"),)
    assert done.unchanged == (named("same"),)
    assert done.changed
    assert cluster.methods() == ["GET", "PATCH", "PATCH", "DELETE"], "one LIST"
    assert cluster.live("stranger")
    assert reconcile(cluster.client, [config("same"), config("drifts"), config("new")], "n", LABELS).changed is False


def test_a_field_that_is_declared_no_more_goes_and_what_others_own_stays(cluster: Cluster) -> None:
    reconcile(cluster.client, config("web", {"a": "1", "b": "2"}))
    cluster.put({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "web", "namespace": "n"}, "data": {"theirs": "3"}})
    done = reconcile(cluster.client, config("web", {"a": "1"}))
    assert [one.path for one in done.updated[0].fields] == ["data.b"]
    live = cluster.live("web")
    assert live
    assert live["data"] == {"a": "1", "theirs": "3"}


@pytest.mark.parametrize(("namespace", "selector"), [(None, LABELS), ("", LABELS), ("n", None), (None, None), ("other", LABELS)])
def test_without_both_namespace_and_selector_nothing_is_deleted(cluster: Cluster, namespace: str | None, selector: Any) -> None:
    reconcile(cluster.client, config("goes"))
    assert not reconcile(cluster.client, config("new"), namespace, selector).deleted
    assert cluster.live("goes")


def test_a_match_all_selector_is_refused_before_anything_is_asked(cluster: Cluster) -> None:
    with pytest.raises(SelectorRefused):
        reconcile(cluster.client, config("new"), "n", {})
    assert cluster.methods() == []


def test_owned_protected_and_terminating_objects_are_never_deleted(cluster: Cluster) -> None:
    owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": "x", "uid": "u"}
    cluster.put(config("owned", ownerReferences=[owner]))
    cluster.put(config("kept", annotations={"helm.sh/resource-policy": "keep"}))
    cluster.put(config("goes"))
    assert reconcile(cluster.client, config("new"), "n", LABELS).deleted == (named("goes"),)


def test_kinds_are_deleted_that_are_expected_or_named_and_volumes_only_when_named(cluster: Cluster) -> None:
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s", "namespace": "n", "labels": LABELS}, "data": {}}
    claims = [
        {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": name, "namespace": "n", "labels": LABELS}, "spec": {}}
        for name in ("kept", "old")
    ]
    for each in (secret, *claims):
        cluster.put(each)
    assert not reconcile(cluster.client, [config("a"), claims[0]], "n", LABELS).deleted
    done = reconcile(cluster.client, [config("a"), claims[0]], "n", LABELS, kinds=("v1/Secret", "PersistentVolumeClaim"))
    assert done.deleted == (named("old", "PersistentVolumeClaim"), named("s", "Secret"))


@pytest.mark.parametrize(("kind", "seen"), [("Namespace", "lies in no namespace"), ("Nothing.example.com", "isn't served")])
def test_a_kind_that_cannot_be_deleted_is_refused(cluster: Cluster, kind: str, seen: str) -> None:
    with pytest.raises(ReconcileFailed, match=f"kinds: {kind}: {seen}"):
        reconcile(cluster.client, config("a"), "n", LABELS, kinds=(kind,))
    assert not cluster.live("a")


def test_a_failed_list_or_write_deletes_nothing_and_all_errors_come_at_once(cluster: Cluster) -> None:
    reconcile(cluster.client, config("goes"))

    def deny(call: Call) -> None:
        if call.asked.path.endswith("/secrets") or call.asked.path.endswith("/bad"):
            raise AccessDenied.of(call.asked.path, "is forbidden", fix="grant it")

    cluster.meet = deny
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s", "namespace": "n"}}
    with pytest.raises(ReconcileFailed) as raised:
        reconcile(cluster.client, [config("good"), config("bad"), secret], "n", LABELS)
    assert raised.value.done == Reconciled(created=(named("good"),))
    assert [problem.subject for problem in raised.value.problems] == ["Secret in n", "ConfigMap/n/bad"]
    assert all(problem.fix == "grant it" for problem in raised.value.problems)
    with pytest.raises(ReconcileFailed, match="Secret in n"):
        reconcile(cluster.client, config("good"), "n", LABELS, kinds=("Secret",))
    assert cluster.live("goes")


def test_input_mistakes_come_at_once_and_nothing_is_written(cluster: Cluster) -> None:
    wrong = [
        config("good"),
        17,
        {"kind": "ConfigMap", "metadata": {"name": "x"}},
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"namespace": "n"}},
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "nowhere"}},
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "ns", "namespace": "n"}},
        {"apiVersion": "example.com/v1", "kind": "Nothing", "metadata": {"name": "x", "namespace": "n"}},
        config("good"),
        config("odd", {"a": object()}),  # type: ignore[dict-item]  # as a program may
        vendor.CoreV1Event(involved_object=vendor.V1ObjectReference(), metadata=vendor.V1ObjectMeta(name="e", namespace="n")),
    ]
    with pytest.raises(ReconcileFailed) as raised:
        reconcile(cluster.client, wrong)
    found = [f"{each.subject}: {each.message}" for each in raised.value.problems]
    assert found[:3] == [
        "object 2: is a int, neither a dict nor a model of the kubernetes package",
        "object 3: has no apiVersion or kind",
        "object 4: is a ConfigMap without metadata.name",
    ]
    assert "object 9: is no JSON" in found[3]
    assert "its class CoreV1Event doesn't say them for certain" in found[4]
    assert found[5:] == [
        "ConfigMap/nowhere: has no metadata.namespace",
        "Namespace/n/ns: is of a kind that lies in no namespace",
        "Nothing/n/x: example.com/v1 Nothing isn't served",
        "ConfigMap/n/good: is expected twice",
    ]
    assert "PATCH" not in cluster.methods()
    assert not cluster.live("good")


def test_models_and_nested_lists_are_read_and_left_as_they_are(cluster: Cluster) -> None:
    meta = vendor.V1ObjectMeta(name="web", namespace="n", labels=LABELS)
    model = vendor.V1ConfigMap(metadata=meta, data={"a": "1"})
    mixed = config("mixed")
    mixed["metadata"] = vendor.V1ObjectMeta(name="mixed", namespace="n", labels=LABELS)
    account = vendor.V1ServiceAccount(api_version="v1", kind="ServiceAccount", metadata=meta)
    listed = {"apiVersion": "v1", "kind": "List", "items": [config("l1")]}
    models = vendor.V1ConfigMapList(items=[vendor.V1ConfigMap(metadata=vendor.V1ObjectMeta(name="l2", namespace="n"))])
    before = copy.deepcopy([model, mixed, account, listed])
    done = reconcile(cluster.client, [model, (mixed, [account]), listed, models])
    assert {each.name for each in done.created} == {"web", "mixed", "l1", "l2"}
    assert len(done.created) == 5
    assert [model, mixed, account, listed] == before
    assert not reconcile(cluster.client, [model, (mixed, [account]), listed, models]).changed


def test_an_object_that_was_read_may_be_expected_again(cluster: Cluster) -> None:
    reconcile(cluster.client, config("web"))
    live = cluster.live("web")
    assert live
    assert not reconcile(cluster.client, {**live, "status": {"ready": True}}).changed


def test_what_the_walk_cannot_decide_is_asked_once_and_remembered(cluster: Cluster) -> None:
    body = config("web", {})
    body["data"] = {}  # the server drops an empty map
    assert reconcile(cluster.client, body).created
    cluster.methods()
    assert not reconcile(cluster.client, body).changed
    assert cluster.methods() == ["GET"]
    cluster.put({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "web", "namespace": "n", "annotations": {"theirs": "1"}}})
    for methods in (["GET", "PATCH"], ["GET"]):
        assert not reconcile(cluster.client, body).changed
        assert cluster.methods() == methods
    assert reconcile(cluster.client, [], "n", LABELS, kinds=("ConfigMap",)).deleted
    assert cluster.client.verdicts == {}


def test_with_a_lister_unchanged_objects_cost_no_request(cluster: Cluster) -> None:
    cache = Cache(cluster)
    assert reconcile(cluster.client, [config("a"), config("b")], lister=cache).created
    cluster.methods()
    for _ in range(1000):
        assert not reconcile(cluster.client, [config("a"), config("b")], "n", LABELS, lister=cache).changed
    assert cluster.methods() == []


def test_while_a_lister_knows_nothing_for_certain_nothing_is_written_and_it_is_said_once(cluster: Cluster) -> None:
    cache = Cache(cluster)
    cache.broken = ClusterUnavailable.of("list ConfigMap", "the API server doesn't answer")
    with pytest.raises(ReconcileFailed) as raised:
        reconcile(cluster.client, config("web"), "n", LABELS, lister=cache)
    assert [str(each) for each in raised.value.problems] == ["ConfigMap/n/web: list ConfigMap: the API server doesn't answer"]
    assert cluster.methods() == []


def test_a_stale_cache_is_judged_again_from_the_server(cluster: Cluster) -> None:
    cache = Cache(cluster)
    reconcile(cluster.client, config("web"), lister=cache)
    cache.learn()
    cluster.put(config("web", {"a": "2", "theirs": "3"}))
    done = reconcile(cluster.client, config("web", {"a": "4"}), lister=cache)
    assert [(one.path, one.live, one.declared) for one in done.updated[0].fields] == [("data.a", "2", "4")]
    cluster.server.store.remove(named("web"))
    done = reconcile(cluster.client, config("web", {"a": "5"}), lister=cache)
    assert done.created == (named("web"),)


def test_an_object_unknown_to_the_cache_is_no_creation_when_it_is_there(cluster: Cluster) -> None:
    reconcile(cluster.client, config("web"))
    cache = Cache(cluster)
    assert reconcile(cluster.client, config("web"), lister=cache).unchanged == (named("web"),)
    done = reconcile(cluster.client, config("web", {"a": "2"}), lister=cache)
    assert [each.identity for each in done.updated] == [named("web")]


def test_three_tries_are_made_of_a_write_that_meets_changes(cluster: Cluster) -> None:
    reconcile(cluster.client, config("web"))
    count = [0]

    def change(call: Call) -> None:
        if call.asked.method == "PATCH":
            count[0] += 1
            cluster.put(config("web", {"a": f"c{count[0]}"}))

    cluster.meet = change
    with pytest.raises(ReconcileFailed, match="ConfigMap/n/web"):
        reconcile(cluster.client, config("web", {"a": "2"}))
    assert count == [3]


def test_a_deletion_is_confirmed_where_a_cache_may_be_old(cluster: Cluster) -> None:
    cache = Cache(cluster)
    reconcile(cluster.client, [config("kept"), config("gone"), config("relabelled"), config("goes")], lister=cache)
    cache.learn()
    cluster.server.store.remove(named("gone"))
    cluster.put(config("relabelled", labels={"app": "other"}))
    done = reconcile(cluster.client, config("kept"), "n", LABELS, lister=cache)
    assert done.deleted == (named("goes"),)
    assert cluster.live("relabelled")
    assert len(cache.dropped_uids) == 1


def test_what_loses_the_selected_labels_before_its_deletion_stays(cluster: Cluster) -> None:
    reconcile(cluster.client, [config("kept"), config("relabelled")])

    def relabel(call: Call) -> None:
        if call.asked.method == "DELETE":
            cluster.put(config("relabelled", labels={"app": "other"}))

    cluster.meet = relabel
    assert not reconcile(cluster.client, config("kept"), "n", LABELS).deleted
    assert cluster.live("relabelled")


def test_what_is_being_deleted_is_waited_for(cluster: Cluster) -> None:
    cluster.put(config("web", finalizers=["example.com/x"]))
    cluster.server.store.remove(named("web"))
    with pytest.raises(ReconcileFailed, match=r"is being deleted since .*; reconcile again once it is gone"):
        reconcile(cluster.client, config("web"))


@pytest.mark.parametrize("manager", ["anneal", ""])
def test_the_manager_of_targets_is_no_operators(cluster: Cluster, manager: str) -> None:
    with pytest.raises(ReconcileFailed, match="field_manager"):
        reconcile(cluster.client, config("web"), field_manager=manager)


def test_two_operators_keep_what_each_declares(cluster: Cluster) -> None:
    theirs = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "web", "namespace": "n"}, "data": {"b": "2"}}
    reconcile(cluster.client, config("web"), field_manager="one")
    reconcile(cluster.client, theirs, field_manager="two")
    assert not reconcile(cluster.client, config("web"), field_manager="one").changed
    assert not reconcile(cluster.client, theirs, field_manager="two").changed


def test_values_of_secrets_are_not_in_the_report(cluster: Cluster) -> None:
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s", "namespace": "n"}, "data": {"password": "aHVudGVyMg=="}}
    reconcile(cluster.client, secret)
    done = reconcile(cluster.client, {**secret, "data": {"password": "b3RoZXI="}})
    assert [one.path for one in done.updated[0].fields] == ["data.password"]
    assert not {"aHVudGVyMg==", "b3RoZXI="} & set(repr(done).split("'"))


def test_a_kind_that_is_gone_is_looked_for_anew_by_the_next_call(cluster: Cluster) -> None:
    refreshed = list[int]()

    def gone(call: Call) -> None:
        if call.asked.path.endswith("/configmaps"):
            raise ApiRefused(Problem("ConfigMap", "the server knows no such kind"), status=404)
        refreshed.extend([1] * call.asked.path.endswith("/apis"))

    cluster.meet = gone
    for _ in range(2):
        with pytest.raises(ReconcileFailed, match="knows no such kind"):
            reconcile(cluster.client, config("a"))
    assert refreshed


class Forgetful(dict[Identity, bytes]):
    """A memory from which another thread takes what was there a moment ago."""

    def __contains__(self, key: object) -> bool:
        found = super().__contains__(key)
        self.clear()
        return found


def test_a_verdict_that_another_thread_drops_meanwhile_is_no_error(cluster: Cluster) -> None:
    body = config("web")
    body["data"] = {}
    reconcile(cluster.client, body)
    cluster.client.verdicts = Forgetful(cluster.client.verdicts)
    assert not reconcile(cluster.client, body).changed
