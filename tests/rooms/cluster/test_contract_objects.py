"""What the handler relies on, kept by the API server in memory (`tests/fakes/apiserver`) and by the real one alike: swaps, reads, deletes.

The model test stands on the one in memory: where the two differ, a row here fails.
"""

from __future__ import annotations

import pytest

from handler.cluster.live import Listing, members, metadata, pages, probe
from handler.cluster.wait_until import until_gone
from handler.model.errors import ApiRefused, Moved
from handler.model.names import Identity
from handler.plan.managed_fields import our_entry
from tests.fakes.apiserver import FakeConnection
from tests.rooms.cluster.both_api_servers import Side, config_map, marked


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


def test_a_create_that_is_tried_knows_what_may_be_declared(side: Side) -> None:
    body = marked(side)
    side.runner.create(side.kind(body), body)
    with pytest.raises(ApiRefused) as caught:
        side.runner.create(side.kind(body), {**body, "dota": {}})
    assert (caught.value.status, 'strict decoding error: unknown field "dota"' in str(caught.value)) == (400, True)
    side.objects.create(body)
    with pytest.raises(Moved):
        side.runner.create(side.kind(body), body)


def test_a_replace_with_another_uid_or_resource_version_meets_409(side: Side) -> None:
    first = side.objects.create(marked(side))
    second = side.objects.replace({**first, "data": {"a": "2"}})
    for stale in (first["metadata"], {**second["metadata"], "uid": "00000000-0000-4000-8000-00000000dead"}):
        with pytest.raises(Moved):
            side.objects.replace({**first, "metadata": stale, "data": {"a": "3"}})
    side.delete(second)
    with pytest.raises(ApiRefused) as caught:
        side.objects.replace({**second, "data": {"a": "3"}})
    assert caught.value.status == 404


def test_an_equal_replace_leaves_the_resource_version(side: Side) -> None:
    first = side.objects.create(marked(side))
    second = side.objects.replace(first)
    assert second["metadata"]["resourceVersion"] == first["metadata"]["resourceVersion"]


def test_empty_fields_are_left_out_of_objects(side: Side) -> None:
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
    lacking = {item["metadata"]["name"] for item in metadata(side.api, resource, side.namespace, "!part")}
    assert ("other" in lacking, lacking & {"a", "b", "c"}) == (True, set())
    everywhere = [item["metadata"] for item in members(side.api, [resource], "part=x", None)]  # other tests' objects are among them
    assert {item["name"] for item in everywhere if item["namespace"] == side.namespace} == {"a", "b", "c"}


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


def test_a_404_is_read_as_none(side: Side) -> None:
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


def test_an_object_with_a_finalizer_is_terminating_until_it_is_cleared(side: Side) -> None:
    body = config_map(side.namespace, "held", finalizers=["anneal.dev/test"])
    live = side.apply(body)
    assert side.delete(live)
    going = side.live(body)
    assert going["metadata"]["deletionTimestamp"]
    assert going["metadata"]["uid"] == live["metadata"]["uid"]
    side.merge(body, {"metadata": {"finalizers": None}})
    assert side.api.get(side.path(body)) is None


def test_deleting_a_namespace_deletes_its_objects(side: Side) -> None:
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
        assert until_gone(side.api, [(resource, identity, space["metadata"]["uid"])], 180) == []
    assert side.api.get(side.path(live)) is None
