"""The record on a real API server."""

from __future__ import annotations

import threading
from dataclasses import replace
from typing import Any

import pytest

from handler.model.errors import LeaseLost, Moved
from handler.model.names import Identity
from handler.state.cluster_port import StateObjects
from handler.state.record import State, Suspend, bounded
from handler.state.store import StateStore
from tests.unit.state.samples import TOKEN, TOOLING, blank, full


def store_of(objects: StateObjects, namespace: str) -> StateStore:
    return StateStore(objects, namespace, "shop", "default", TOOLING)


def test_a_full_state_is_stored_and_read_again(objects: StateObjects, place: str) -> None:
    store = store_of(objects, f"{place}-state")
    stored = store.create(full())
    assert store.read() == stored
    assert stored.state == full()


def test_five_thousand_objects_fit(objects: StateObjects, place: str) -> None:
    store = store_of(objects, place)
    declared = tuple(Identity("apps", "Deployment", f"team-{number % 40}", f"service-{number}") for number in range(5000))
    state = bounded(blank(declared=declared, reads_paths=tuple(f"deploy/{item.namespace}/{item.name}.yaml" for item in declared)))
    assert store.create(state).state == state
    assert store.read().state == state


def test_a_run_goes_on_after_a_person_wrote(objects: StateObjects, place: str) -> None:
    store = store_of(objects, place)
    stored = store.swap(store.create(blank()), replace(full(), suspend=None), TOKEN)
    store_of(objects, place).update(lambda state: replace(state, suspend=Suspend("ada")))
    written = store.write(stored, lambda state: replace(state, attempt=None), TOKEN)
    assert written.state
    assert written.state.suspend == Suspend("ada")
    assert written == store.read()


def test_a_state_deleted_during_a_run_stops_it(objects: Any, place: str) -> None:
    store = store_of(objects, place)
    stored = store.swap(store.create(blank()), full(), TOKEN)
    objects.delete("ConfigMap", place, "anneal-shop", uid=stored.uid)
    with pytest.raises(LeaseLost):
        store.write(stored, lambda state: replace(state, attempt=None), TOKEN)
    assert store.read().state is None


def test_concurrent_record_updates_by_people_lose_nothing(objects: StateObjects, place: str) -> None:
    store_of(objects, place).create(blank())

    def count(state: State) -> State:
        return replace(state, status=replace(state.status, failures=state.status.failures + 1))

    def work() -> None:
        store_of(objects, place).update(count, tries=50)

    threads = [threading.Thread(target=work) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    state = store_of(objects, place).read().state
    assert state
    assert state.status.failures == 6


def test_equal_content_is_not_written(objects: StateObjects, place: str) -> None:
    store = store_of(objects, place)
    stored = store.create(blank())
    assert store.swap(store.read(), blank()).resource_version == stored.resource_version
    store.update(lambda state: replace(state, suspend=Suspend("ada")))
    with pytest.raises(Moved):
        store.swap(stored, blank(commit="a" * 40))
