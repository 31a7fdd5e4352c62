"""What the handler relies on, kept by the API server in memory (`tests/fakes/apiserver`) and by the real one alike.

The model test stands on the one in memory: where the two differ, a row here fails.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from handler.cluster.api import Api
from handler.cluster.discovery import Discovery
from handler.cluster.live import Listing, members, metadata, pages, probe
from handler.cluster.store import Objects
from handler.cluster.wait import until_gone
from handler.cluster.write import APPLY, DryRunner, Writer
from handler.model.errors import ApiRefused, Moved
from handler.model.names import Identity, identity_of
from handler.model.resource import Resource
from handler.plan.adopt import taken_over
from handler.plan.owned import our_entry
from tests.fakes.apiserver import ApiServer, FakeConnection
from tests.rooms.cluster.conftest import config_map

Body = dict[str, Any]
MERGE = "application/merge-patch+json"


@dataclass
class Side:
    """One of the two servers, and a namespace on it."""

    api: Api
    namespace: str

    def __post_init__(self) -> None:
        self.discovery = Discovery(self.api)
        self.writer = Writer(self.api, lambda: None)
        self.runner = DryRunner(self.api)
        self.objects = Objects(self.api)

    def kind(self, body: Body) -> Resource:
        found = self.discovery.find(body["apiVersion"], body["kind"])
        assert found
        return found

    def path(self, body: Body) -> str:
        return self.kind(body).path(self.namespace, body["metadata"]["name"])

    def apply(self, body: Body, uid: str = "", version: str = "") -> Body:
        self.writer.apply(self.kind(body), body, uid, version)
        return self.live(body)

    def live(self, body: Body) -> Body:
        found = self.api.get(self.path(body))
        assert found
        return found

    def merge(self, body: Body, change: Body, manager: str = "someone") -> Body:
        return self.api.patch(self.path(body), change, MERGE, {"fieldManager": manager})

    def delete(self, live: Body, **conditions: str) -> bool:
        uid = conditions.get("uid", live["metadata"]["uid"])
        return self.writer.delete(self.kind(live), identity_of(live), uid, conditions.get("version", ""))


@pytest.fixture(params=["fake", "real"])
def side(request: pytest.FixtureRequest) -> Iterator[Side]:
    if request.param == "real":
        yield Side(request.getfixturevalue("api"), request.getfixturevalue("namespace"))
        return
    api = Api(FakeConnection(ApiServer(time.time)))
    api.post("/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "n"}})
    yield Side(api, "n")


def secret(side: Side, **fields: Any) -> Body:
    return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s", "namespace": side.namespace}, "data": {"a": "MQ=="}, **fields}


def role(side: Side, verb: str = "get") -> Body:
    rules = [{"apiGroups": [""], "resources": ["pods"], "verbs": [verb]}]
    metadata = {"name": "r", "namespace": side.namespace}
    return {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": metadata, "rules": rules}


def marked(side: Side, name: str = "a", data: dict[str, str] | None = None) -> Body:
    return config_map(side.namespace, name, data, labels={"part": "x"}, annotations={"who": name})


KINDS: list[Callable[[Side], Body]] = [marked, secret, role]


# --- discovery
def test_every_kind_of_the_one_in_memory_is_served(side: Side) -> None:
    wanted = Discovery(Api(FakeConnection(ApiServer(time.time)))).listable()
    assert {resource for kind in wanted if (resource := side.discovery.find(kind.api_version, kind.kind)) and _alike(resource, kind)} == {
        side.discovery.find(kind.api_version, kind.kind) for kind in wanted
    }


def _alike(one: Resource, other: Resource) -> bool:
    return (one.plural, one.namespaced) == (other.plural, other.namespaced) and other.verbs <= one.verbs


def test_the_cluster_has_a_name_and_a_clock(side: Side) -> None:
    assert side.objects.cluster_uid() == side.objects.cluster_uid()
    assert -5 < side.api.server_time() - time.time() <= 0.1


# --- apply
@pytest.mark.parametrize("made", KINDS)
def test_an_apply_owns_what_it_says_and_its_repetition_writes_nothing(side: Side, made: Callable[[Side], Body]) -> None:
    first = side.apply(made(side))
    second = side.apply(made(side))
    assert first["metadata"] == second["metadata"]
    entry = our_entry(first)
    assert entry
    assert entry["apiVersion"] == first["apiVersion"]
    fake = Side(Api(FakeConnection(ApiServer(time.time))), side.namespace)
    fake.api.post("/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": side.namespace}})
    model = our_entry(fake.apply(made(fake)))
    assert model
    assert entry["fieldsV1"] == model["fieldsV1"]


@pytest.mark.parametrize("made", KINDS)
def test_a_dry_run_says_what_would_be_and_stores_nothing(side: Side, made: Callable[[Side], Body]) -> None:
    body = made(side)
    checked = side.runner.check(side.kind(body), body)
    assert "resourceVersion" not in checked["metadata"]
    assert side.api.get(side.path(body)) is None
    live = side.apply(body)
    wanted = {**body, "metadata": {**body["metadata"], "labels": {"changed": "yes"}}}
    shown = side.runner.apply(side.kind(body), wanted)
    assert shown["metadata"]["labels"] == {"changed": "yes"}
    assert (shown["metadata"]["uid"], shown["metadata"]["resourceVersion"]) == (
        live["metadata"]["uid"],
        live["metadata"]["resourceVersion"],
    )
    assert side.live(body) == live


def test_what_is_no_longer_declared_goes_and_what_others_own_stays(side: Side) -> None:
    body = config_map(side.namespace, "a", {"a": "1", "b": "2"}, labels={"x": "1"})
    side.apply(body)
    side.merge(body, {"data": {"theirs": "3"}})
    live = side.apply(config_map(side.namespace, "a", {"a": "1"}))
    assert live["data"] == {"a": "1", "theirs": "3"}
    assert "labels" not in live["metadata"]


def test_a_field_that_two_own_goes_when_neither_does(side: Side) -> None:
    body = config_map(side.namespace, "a", {"a": "1", "b": "2"})
    side.apply(body)
    side.api.patch(side.path(body), body, APPLY, {"fieldManager": "second"})
    assert side.apply(config_map(side.namespace, "a", {"a": "1"}))["data"] == {"a": "1", "b": "2"}
    side.api.patch(side.path(body), config_map(side.namespace, "a", {"a": "1"}), APPLY, {"fieldManager": "second"})
    assert side.live(body)["data"] == {"a": "1"}


def test_an_apply_by_force_takes_what_another_changed_and_without_meets_409(side: Side) -> None:
    body = marked(side)
    side.apply(body)
    side.merge(body, {"data": {"a": "theirs"}})
    with pytest.raises(Moved):
        side.api.patch(side.path(body), body, APPLY, {"fieldManager": "anneal"})
    assert side.apply(body)["data"] == {"a": "1"}
    assert [entry["manager"] for entry in side.live(body)["metadata"]["managedFields"]] == ["anneal"]


def test_our_entry_loses_what_another_changes(side: Side) -> None:
    body = marked(side, data={"a": "1", "b": "2"})
    side.apply(body)
    entry = our_entry(side.merge(body, {"data": {"b": None, "a": "theirs"}}))
    assert entry
    assert entry["fieldsV1"] == {"f:metadata": {"f:annotations": {"f:who": {}}, "f:labels": {"f:part": {}}}}


def test_an_update_names_uid_and_version_or_has_moved(side: Side) -> None:
    first = side.apply(marked(side))["metadata"]
    second = side.apply(marked(side, data={"a": "2"}), first["uid"], first["resourceVersion"])["metadata"]
    assert second["resourceVersion"] != first["resourceVersion"]
    for uid, version in ((first["uid"], first["resourceVersion"]), ("00000000-0000-4000-8000-00000000dead", second["resourceVersion"])):
        with pytest.raises(Moved):
            side.writer.apply(side.kind(marked(side)), marked(side, data={"a": "3"}), uid, version)
        body = marked(side, data={"a": "3"})
        body["metadata"] |= {"uid": uid, "resourceVersion": version}
        with pytest.raises(Moved):
            side.api.patch(side.path(body), body, APPLY, {"fieldManager": "anneal", "force": "true", "dryRun": "All"})


def test_an_update_of_what_is_gone_makes_nothing(side: Side) -> None:
    body = marked(side)
    live = side.apply(body)
    assert side.delete(live)
    with pytest.raises(Moved):
        side.writer.apply(side.kind(body), body, live["metadata"]["uid"], live["metadata"]["resourceVersion"])
    assert side.api.get(side.path(body)) is None


def test_a_version_alone_creates_what_is_absent_and_moves_from_what_is_there(side: Side) -> None:
    body = marked(side)
    live = side.apply(body, version="1")
    with pytest.raises(Moved):
        side.writer.apply(side.kind(body), marked(side, data={"a": "2"}), "", "1")
    assert side.live(body) == live


def test_an_apply_without_its_namespace_is_a_404_that_says_so(side: Side) -> None:
    for runs in (side.runner.apply, side.writer.apply):
        with pytest.raises(ApiRefused, match='namespaces "no-such-namespace" not found') as caught:
            runs(side.kind(marked(side)), config_map("no-such-namespace", "a"))
        assert caught.value.status == 404


def test_an_unknown_field_is_the_authors(side: Side) -> None:
    with pytest.raises(ApiRefused, match="dota") as caught:
        side.runner.apply(side.kind(marked(side)), marked(side) | {"dota": {"a": "1"}})
    assert caught.value.status == 422


def test_what_is_immutable_stays_and_says_so(side: Side) -> None:
    body = marked(side) | {"immutable": True}
    side.apply(body)
    with pytest.raises(ApiRefused, match="field is immutable") as caught:
        side.runner.apply(side.kind(body), marked(side, data={"a": "2"}) | {"immutable": True})
    assert caught.value.status == 422
    side.apply({**body, "metadata": body["metadata"] | {"labels": {"other": "yes"}}})


def test_on_adoption_the_entries_of_others_become_ours(side: Side) -> None:
    body = marked(side)
    made = side.api.post(
        side.kind(body).path(side.namespace), config_map(side.namespace, "a", {"a": "0", "old": "1"}), {"fieldManager": "kubectl-create"}
    )
    entries = taken_over(made)
    assert entries
    merged = side.writer.replace_managed_fields(side.kind(body), identity_of(made), made["metadata"]["resourceVersion"], _loaded(entries))
    assert [entry["manager"] for entry in merged["metadata"]["managedFields"]] == ["anneal"]
    with pytest.raises(Moved):
        side.writer.replace_managed_fields(side.kind(body), identity_of(made), made["metadata"]["resourceVersion"], _loaded(entries))
    after = side.apply(body, made["metadata"]["uid"], merged["metadata"]["resourceVersion"])
    assert after["data"] == {"a": "1"}


def _loaded(entries: bytes) -> Any:
    return json.loads(entries)


# --- create and swap
def test_a_create_happens_once(side: Side) -> None:
    body = marked(side)
    made = side.objects.create(body)
    assert side.live(body)["metadata"]["uid"] == made["metadata"]["uid"]
    with pytest.raises(Moved):
        side.objects.create(body)
    with pytest.raises(ApiRefused) as caught:
        side.objects.create(config_map("no-such-namespace", "a"))
    assert caught.value.status == 404


def test_a_swap_meets_uid_and_version(side: Side) -> None:
    first = side.objects.create(marked(side))
    second = side.objects.replace({**first, "data": {"a": "2"}})
    for stale in (first["metadata"], {**second["metadata"], "uid": "00000000-0000-4000-8000-00000000dead"}):
        with pytest.raises(Moved):
            side.objects.replace({**first, "metadata": stale, "data": {"a": "3"}})
    side.delete(second)
    with pytest.raises(ApiRefused) as caught:
        side.objects.replace({**second, "data": {"a": "3"}})
    assert caught.value.status == 404


def test_an_equal_swap_leaves_the_version(side: Side) -> None:
    first = side.objects.create(marked(side))
    second = side.objects.replace(first)
    assert second["metadata"]["resourceVersion"] == first["metadata"]["resourceVersion"]


def test_what_is_empty_is_left_out(side: Side) -> None:
    body = config_map(side.namespace, "e", {"a": "1"}, labels={}, annotations={}) | {"binaryData": {}}
    made = side.objects.create(body)
    assert not {"labels", "annotations"} & made["metadata"].keys()
    assert "binaryData" not in made


def test_a_lease_keeps_what_it_is_given(side: Side) -> None:
    spec = {"holderIdentity": "w", "leaseDurationSeconds": 15, "renewTime": "2026-03-01T12:00:00.123456Z", "leaseTransitions": 1}
    body = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "l", "namespace": side.namespace}, "spec": spec}
    made = side.objects.create(body)
    assert made["spec"] == spec
    freed = side.objects.replace({**made, "spec": {key: value for key, value in spec.items() if key != "holderIdentity"}})
    assert "holderIdentity" not in freed["spec"]


# --- reads
def test_lists_select_by_label_whole_or_metadata_only(side: Side) -> None:
    for name in "abc":
        side.apply(marked(side, name))
    side.apply(config_map(side.namespace, "other"))
    resource = side.kind(marked(side))
    found = list(members(side.api, [resource], "part=x", (side.namespace,)))
    assert sorted(item["metadata"]["name"] for item in found) == ["a", "b", "c"]
    assert all(item["data"] == {"a": "1"} and item["kind"] == "ConfigMap" and our_entry(item) for item in found)
    bare = list(metadata(side.api, resource, side.namespace, "part=x"))
    assert all("data" not in item and item["metadata"]["annotations"] for item in bare)
    assert {item["metadata"]["uid"] for item in bare} == {item["metadata"]["uid"] for item in found}
    assert {item["metadata"]["name"] for item in members(side.api, [resource], "part=x", None)} == {"a", "b", "c"}


def test_a_list_comes_in_pages_of_one_moment(side: Side) -> None:
    for number in range(5):
        side.apply(marked(side, f"c{number}"))
    listing = Listing(side.kind(marked(side)), side.namespace, "part=x", limit=2)
    found = pages(side.api, listing)
    first = next(found)
    side.apply(marked(side, "d", {"a": "later"}))
    names = [item["metadata"]["name"] for page in (first, *found) for item in page]
    assert names == ["c0", "c1", "c2", "c3", "c4"]


def test_a_continue_token_that_nobody_knows_is_refused(side: Side) -> None:
    listing = Listing(side.kind(marked(side)), side.namespace)
    with pytest.raises(ApiRefused) as caught:
        side.api.expect(listing.request("bm9uc2Vuc2U"))
    assert caught.value.status in (400, 410)


def test_what_is_not_there_is_none(side: Side) -> None:
    body = marked(side)
    assert side.api.get(side.path(body)) is None
    assert probe(side.api, [(side.kind(body), side.namespace, "a")]) == {}
    assert side.api.get("/apis/gone.example.com/v1/ghosts") is None


# --- delete
@pytest.mark.parametrize("wrong", ["uid", "version"])
def test_a_delete_meets_both_preconditions(side: Side, wrong: str) -> None:
    first = side.apply(marked(side))
    live = side.apply(marked(side, data={"a": "2"}))
    condition = {"uid": "00000000-0000-4000-8000-00000000dead"} if wrong == "uid" else {"version": first["metadata"]["resourceVersion"]}
    with pytest.raises(Moved):
        side.delete(live, **condition)
    assert side.live(live) == live
    assert side.delete(live, version=live["metadata"]["resourceVersion"])
    assert not side.delete(live)


def test_what_has_a_finalizer_is_going_until_it_is_cleared(side: Side) -> None:
    body = config_map(side.namespace, "held", finalizers=["anneal.dev/test"])
    live = side.apply(body)
    assert side.delete(live)
    going = side.live(body)
    assert going["metadata"]["deletionTimestamp"]
    assert going["metadata"]["uid"] == live["metadata"]["uid"]
    side.merge(body, {"metadata": {"finalizers": None}})
    assert side.api.get(side.path(body)) is None


def test_a_namespace_goes_with_what_is_in_it(side: Side) -> None:
    live = side.apply(marked(side))
    space = side.api.get(f"/api/v1/namespaces/{side.namespace}")
    assert space
    assert space["status"]["phase"] == "Active"
    assert space["metadata"]["labels"]["kubernetes.io/metadata.name"] == side.namespace
    resource = side.kind({"apiVersion": "v1", "kind": "Namespace"})
    identity = Identity("", "Namespace", "", side.namespace)
    side.writer.delete(resource, identity, space["metadata"]["uid"])
    if isinstance(side.api.connection, FakeConnection):
        assert side.api.get(resource.path("", side.namespace)) is None
    else:
        assert until_gone(side.api, [(resource, identity, space["metadata"]["uid"])], 60) == []
    assert side.api.get(side.path(live)) is None
