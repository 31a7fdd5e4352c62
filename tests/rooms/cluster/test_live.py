"""LISTs: paged, labelled, all or nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from handler.cluster.api import Api
from handler.cluster.live import members, metadata, probe
from handler.cluster.parallel import together
from handler.model.errors import ApiRefused, ClusterUnavailable
from handler.model.names import PART_OF, Identity, Resource
from tests.rooms.cluster.conftest import Apply, Kind, config_map
from tests.rooms.cluster.faulty_proxy import Wire, refuse

SELECTOR = f"{PART_OF}=applyset-test-v1"
LABELS = {PART_OF: "applyset-test-v1"}


@pytest.fixture
def twelve(apply: Apply, namespace: str) -> list[str]:
    """Ten labelled ConfigMaps and two labelled Secrets beside three unlabelled neighbours."""
    bodies = [config_map(namespace, f"c{i}", labels=LABELS) for i in range(10)]
    bodies += [{**config_map(namespace, f"s{i}", labels=LABELS), "kind": "Secret", "data": {}} for i in range(2)]
    bodies += [config_map(namespace, f"neighbour{i}") for i in range(3)]
    together([lambda body=body: apply(body) for body in bodies])  # type: ignore[misc] # mypy can't type a default
    return sorted(body["metadata"]["name"] for body in bodies if "labels" in body["metadata"])


def names(found: list[dict[str, Any]]) -> list[str]:
    return sorted(item["metadata"]["name"] for item in found)


def test_one_list_a_kind_by_the_inventory_label_finds_only_members(api: Api, kind: Kind, namespace: str, twelve: list[str]) -> None:
    before = api.requests
    found = list(members(api, [kind("v1", "ConfigMap"), kind("v1", "Secret")], SELECTOR, (namespace,)))
    assert names(found) == twelve
    assert {(item["apiVersion"], item["kind"]) for item in found} == {("v1", "ConfigMap"), ("v1", "Secret")}
    assert api.requests - before == 2


def test_without_namespaces_the_whole_cluster_is_listed_at_once(api: Api, kind: Kind, namespace: str, twelve: list[str]) -> None:
    before = api.requests
    found = list(members(api, [kind("v1", "ConfigMap"), kind("v1", "Namespace")], SELECTOR, None))
    assert set(twelve[:10]) <= set(names(found))
    assert api.requests - before == 2


def test_pages_are_followed_to_the_end(api: Api, kind: Kind, namespace: str, twelve: list[str]) -> None:
    before = api.requests
    found = list(members(api, [kind("v1", "ConfigMap")], SELECTOR, (namespace,), limit=3))
    assert names(found) == twelve[:10]
    assert api.requests - before == 4


def test_an_expired_page_token_starts_that_list_anew(
    wire: Wire, through: Callable[..., Api], kind: Kind, namespace: str, twelve: list[str]
) -> None:
    wire.only = lambda method, path: "continue=" in path
    wire.tricks = [refuse(410)]
    found = list(members(through(), [kind("v1", "ConfigMap")], SELECTOR, (namespace,), limit=4))
    assert names(found) == twelve[:10]
    assert len(wire.seen) == 2 + 3


def test_a_token_that_always_expires_is_given_up(
    wire: Wire, through: Callable[..., Api], kind: Kind, namespace: str, twelve: list[str]
) -> None:
    wire.only = lambda method, path: "continue=" in path
    wire.tricks = [refuse(410)] * 20
    with pytest.raises(ClusterUnavailable, match="expired"):
        list(members(through(), [kind("v1", "ConfigMap")], SELECTOR, (namespace,), limit=4))


def test_one_failing_list_fails_all(wire: Wire, through: Callable[..., Api], kind: Kind, namespace: str, twelve: list[str]) -> None:
    wire.only = lambda method, path: "/secrets" in path
    wire.tricks = [refuse(503)] * 50
    with pytest.raises(ClusterUnavailable, match="list Secret"):
        list(members(through(deadline=0.2), [kind("v1", "ConfigMap"), kind("v1", "Secret")], SELECTOR, (namespace,)))


def test_a_kind_that_vanished_is_told_and_the_others_are_read(api: Api, kind: Kind, namespace: str, twelve: list[str]) -> None:
    ghost = Resource("gone.example.com", "v1", "Ghost", "ghosts", namespaced=True)
    vanished: set[Resource] = set()
    found = list(members(api, [ghost, kind("v1", "ConfigMap")], SELECTOR, (namespace,), vanished=vanished))
    assert names(found) == twelve[:10]
    assert vanished == {ghost}
    with pytest.raises(ApiRefused):
        list(members(api, [ghost], SELECTOR, (namespace,)))


def test_a_reader_that_stops_early_leaves_no_thread_waiting(api: Api, kind: Kind, namespace: str, twelve: list[str]) -> None:
    found = members(api, [kind("v1", "ConfigMap")], SELECTOR, (namespace,), limit=1)
    next(found)
    before = api.requests
    found.close()  # type: ignore[attr-defined] # it is a generator
    assert api.requests - before <= 1


def test_metadata_comes_without_content_but_with_its_kind(api: Api, kind: Kind, namespace: str, twelve: list[str]) -> None:
    found = list(metadata(api, kind("v1", "ConfigMap"), namespace, SELECTOR, limit=4))
    assert names(found) == twelve[:10]
    assert {item["kind"] for item in found} == {"ConfigMap"}
    assert not any("data" in item for item in found)


def test_a_few_are_probed_one_by_one(api: Api, kind: Kind, namespace: str, twelve: list[str]) -> None:
    resource, before = kind("v1", "ConfigMap"), api.requests
    found = probe(api, [(resource, namespace, name) for name in ("neighbour0", "absent", "c1")])
    assert sorted(identity.name for identity in found) == ["c1", "neighbour0"]
    assert api.requests - before == 3


def test_many_are_probed_with_one_list_and_only_what_exists_is_read(api: Api, kind: Kind, namespace: str, twelve: list[str]) -> None:
    resource, before = kind("v1", "ConfigMap"), api.requests
    wanted = [(resource, namespace, f"absent{i}") for i in range(40)] + [(resource, namespace, "neighbour0")]
    found = probe(api, wanted)
    assert found[Identity("", "ConfigMap", namespace, "neighbour0")]["data"] == {"a": "1"}
    assert len(found) == 1
    assert api.requests - before == 2


def test_probing_a_kind_that_isnt_served_finds_nothing(api: Api, namespace: str) -> None:
    ghost = Resource("gone.example.com", "v1", "Ghost", "ghosts", namespaced=True)
    assert probe(api, [(ghost, namespace, f"g{i}") for i in range(5)]) == {}
