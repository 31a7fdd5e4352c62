"""What the room relies on, kept by the fake and the real API server alike."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from handler.model.errors import Moved
from handler.state.cluster_port import Kind, StateObjects, create_in_namespace, replace_same

KINDS: list[Kind] = ["ConfigMap", "Lease"]


def blank(kind: str, namespace: str, name: str = "x") -> dict[str, Any]:
    version = {"ConfigMap": "v1", "Lease": "coordination.k8s.io/v1"}[kind]
    return {"apiVersion": version, "kind": kind, "metadata": {"name": name, "namespace": namespace}}


def delete(objects: Any, kind: str, body: dict[str, Any]) -> None:
    metadata = body["metadata"]
    objects.delete(kind, metadata["namespace"], metadata["name"], uid=metadata["uid"])


@pytest.mark.parametrize("kind", KINDS)
def test_an_object_is_created_once(objects: StateObjects, place: str, kind: Kind) -> None:
    stored = objects.create(blank(kind, place))
    assert stored["metadata"]["uid"]
    assert stored["metadata"]["resourceVersion"]
    found = objects.get(kind, place, "x")
    assert found
    assert found["metadata"]["uid"] == stored["metadata"]["uid"]
    with pytest.raises(Moved):
        objects.create(blank(kind, place))


@pytest.mark.parametrize("kind", KINDS)
def test_a_replace_with_an_old_resource_version_is_refused(objects: StateObjects, place: str, kind: Kind) -> None:
    first = objects.create(blank(kind, place))
    changed = {**first, "metadata": {**first["metadata"], "annotations": {"a": "1"}}}
    second = objects.replace(changed)
    assert second["metadata"]["resourceVersion"] != first["metadata"]["resourceVersion"]
    with pytest.raises(Moved):
        objects.replace({**first, "metadata": {**first["metadata"], "annotations": {"a": "2"}}})
    found = objects.get(kind, place, "x")
    assert found
    assert found["metadata"]["annotations"] == {"a": "1"}


@pytest.mark.parametrize("kind", KINDS)
def test_a_swap_of_a_deleted_object_never_makes_it_again(objects: StateObjects, place: str, kind: Kind) -> None:
    first = objects.create(blank(kind, place))
    delete(objects, kind, first)
    with pytest.raises(Moved):
        replace_same(objects, first)
    assert objects.get(kind, place, "x") is None


@pytest.mark.parametrize("kind", KINDS)
def test_exactly_the_object_that_was_read_is_deleted_once(objects: StateObjects, place: str, kind: Kind) -> None:
    first = objects.create(blank(kind, place))
    uid, version = first["metadata"]["uid"], first["metadata"]["resourceVersion"]
    second = objects.replace({**first, "metadata": {**first["metadata"], "annotations": {"a": "1"}}})
    with pytest.raises(Moved):
        objects.delete(kind, place, "x", uid=uid, resource_version=version)
    with pytest.raises(Moved):
        objects.delete(kind, place, "x", uid="7d0a1c9e-0b1f-4a53-9a0e-3c3c2b1a0f9d")
    assert objects.delete(kind, place, "x", uid=uid, resource_version=second["metadata"]["resourceVersion"])
    assert not objects.delete(kind, place, "x", uid=uid)


@pytest.mark.parametrize("kind", KINDS)
def test_a_swap_of_an_object_that_was_made_again_is_refused(objects: StateObjects, place: str, kind: Kind) -> None:
    first = objects.create(blank(kind, place))
    delete(objects, kind, first)
    second = objects.create(blank(kind, place))
    aimed = {**first, "metadata": {**first["metadata"], "resourceVersion": second["metadata"]["resourceVersion"]}}
    with pytest.raises(Moved):
        replace_same(objects, aimed)


def test_of_many_replaces_at_once_one_wins(objects: StateObjects, place: str) -> None:
    stored = objects.create(blank("ConfigMap", place))
    outcomes: list[str] = []

    def swap(number: int) -> None:
        try:
            objects.replace({**stored, "data": {"winner": str(number)}})
            outcomes.append("won")
        except Moved:
            outcomes.append("moved")

    threads = [threading.Thread(target=swap, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(outcomes) == ["moved"] * 7 + ["won"]


def test_a_missing_namespace_is_made_for_the_first_object(objects: StateObjects, place: str) -> None:
    assert create_in_namespace(objects, blank("Lease", f"{place}-new"))["metadata"]["uid"]
    assert create_in_namespace(objects, blank("ConfigMap", f"{place}-new"))["metadata"]["uid"]
