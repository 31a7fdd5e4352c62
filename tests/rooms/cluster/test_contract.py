"""What the handler relies on, kept by the API server in memory (`tests/fakes/apiserver`) and by the real one alike: applies.

The model test stands on the one in memory: where the two differ, a row here fails.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from handler.cluster.api import Api
from handler.cluster.discovery import Discovery
from handler.cluster.write import APPLY
from handler.model.errors import ApiRefused, Moved
from handler.model.names import Resource, identity_of
from handler.plan.managed_fields import our_entry
from handler.plan.takeover import takeover
from tests.fakes.apiserver import ApiServer, FakeConnection
from tests.rooms.cluster.both_api_servers import KINDS, Body, Side, config_map, marked


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
    before = time.time()
    side.api.get(f"/api/v1/namespaces/{side.namespace}")
    assert before - 1.1 <= side.api.server_time() <= time.time() + 0.1, "whole seconds of the answer's moment, and what has passed since"


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


def test_apply_removes_fields_no_longer_declared_but_for_those_of_other_managers(side: Side) -> None:
    body = config_map(side.namespace, "a", {"a": "1", "b": "2"}, labels={"x": "1"})
    side.apply(body)
    side.merge(body, {"data": {"theirs": "3"}})
    live = side.apply(config_map(side.namespace, "a", {"a": "1"}))
    assert live["data"] == {"a": "1", "theirs": "3"}
    assert "labels" not in live["metadata"]


def test_a_field_with_two_owners_goes_when_neither_declares_it(side: Side) -> None:
    body = config_map(side.namespace, "a", {"a": "1", "b": "2"})
    side.apply(body)
    side.api.patch(side.path(body), body, APPLY, {"fieldManager": "second"})
    assert side.apply(config_map(side.namespace, "a", {"a": "1"}))["data"] == {"a": "1", "b": "2"}
    side.api.patch(side.path(body), config_map(side.namespace, "a", {"a": "1"}), APPLY, {"fieldManager": "second"})
    assert side.live(body)["data"] == {"a": "1"}


def test_apply_by_force_takes_fields_of_others_and_without_force_meets_409(side: Side) -> None:
    body = marked(side)
    side.apply(body)
    side.merge(body, {"data": {"a": "theirs"}})
    with pytest.raises(Moved):
        side.api.patch(side.path(body), body, APPLY, {"fieldManager": "anneal"})
    assert side.apply(body)["data"] == {"a": "1"}
    assert [entry["manager"] for entry in side.live(body)["metadata"]["managedFields"]] == ["anneal"]


def test_our_managed_fields_entry_loses_what_another_manager_changes(side: Side) -> None:
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


def test_an_immutable_field_is_refused_with_422(side: Side) -> None:
    body = marked(side) | {"immutable": True}
    side.apply(body)
    with pytest.raises(ApiRefused, match="field is immutable") as caught:
        side.runner.apply(side.kind(body), marked(side, data={"a": "2"}) | {"immutable": True})
    assert caught.value.status == 422
    side.apply({**body, "metadata": body["metadata"] | {"labels": {"other": "yes"}}})


def test_on_adoption_managed_fields_entries_of_others_become_ours(side: Side) -> None:
    body = marked(side)
    made = side.api.post(
        side.kind(body).path(side.namespace), config_map(side.namespace, "a", {"a": "0", "old": "1"}), {"fieldManager": "kubectl-create"}
    )
    taken = takeover(made, body, adopted=True)
    assert taken
    entries = list(taken.entries)
    becomes = side.runner.become(side.kind(body), made, taken.after(side.runner.apply(side.kind(body), body)))
    assert (becomes["data"], becomes["metadata"]["uid"]) == ({"a": "1"}, made["metadata"]["uid"])
    still = side.api.get(side.kind(body).path(side.namespace, "a"))
    assert still
    assert still["metadata"]["resourceVersion"] == made["metadata"]["resourceVersion"]
    merged = side.writer.replace_managed_fields(side.kind(body), identity_of(made), made["metadata"]["resourceVersion"], entries)
    assert [entry["manager"] for entry in merged["metadata"]["managedFields"]] == ["anneal"]
    with pytest.raises(Moved):
        side.writer.replace_managed_fields(side.kind(body), identity_of(made), made["metadata"]["resourceVersion"], entries)
    after = side.apply(body, made["metadata"]["uid"], merged["metadata"]["resourceVersion"])
    assert after["data"] == {"a": "1"}
