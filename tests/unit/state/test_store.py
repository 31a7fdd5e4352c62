from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from handler.model.errors import AccessDenied, LeaseLost, Moved, StateInvalid, TargetMoved
from handler.model.names import GroupKind
from handler.state.record import Attempt, Pin, RunStatus, State, Suspend
from handler.state.store import StateStore
from tests.fakes.objects import FakeObjects
from tests.unit.state.samples import NAMESPACE, NOON, TOKEN, TOOLING, blank, full, sha

OTHER = "11111111-0b1f-4a53-9a0e-3c3c2b1a0f9d.9"


def attempt(token: str = TOKEN) -> Attempt:
    return Attempt(sha(), "b" * 64, "c" * 64, token, NOON)


def suspended(state: State) -> State:
    return replace(state, suspend=Suspend("ada"))


def opened(state: State) -> State:
    return replace(state, attempt=attempt())


def closed(state: State) -> State:
    return replace(state, attempt=None, commit=sha("b"))


def test_there_is_no_state_before_the_first_run(store: StateStore) -> None:
    assert store.read().state is None


def test_a_created_record_is_read_again_and_not_created_twice(store: StateStore) -> None:
    assert store.create(full()) == store.read()
    assert store.read().state == full()
    with pytest.raises(Moved):
        store.create(blank())


def test_a_missing_namespace_is_created(objects: FakeObjects) -> None:
    StateStore(objects, "elsewhere", "shop", "default", TOOLING).create(blank())
    assert objects.get("Namespace", "", "elsewhere")


def test_a_namespace_that_may_not_be_created_is_told_with_the_command(objects: FakeObjects) -> None:
    def deny(verb: str, body: dict[str, Any]) -> None:
        if (verb, body["kind"]) == ("create", "Namespace"):
            raise AccessDenied.of("Namespace/elsewhere", "403")

    objects.before = deny
    with pytest.raises(AccessDenied, match="kubectl create namespace elsewhere"):
        StateStore(objects, "elsewhere", "shop", "default", TOOLING).create(blank())


def test_a_swap_writes_once_and_equal_content_never(store: StateStore, objects: FakeObjects) -> None:
    stored = store.create(blank())
    stored = store.swap(stored, blank(commit=sha()))
    writes = objects.writes
    assert store.swap(stored, blank(commit=sha())) is stored
    assert store.swap(store.read(), blank(commit=sha())).state == stored.state
    assert objects.writes == writes


@pytest.mark.parametrize("token", [None, OTHER])
def test_an_attempt_is_opened_only_under_its_own_token(store: StateStore, token: str | None) -> None:
    stored = store.create(blank())
    with pytest.raises(LeaseLost):
        store.swap(stored, opened(blank()), token)


def test_the_labels_and_annotations_of_others_are_kept_and_a_tampered_summary_is_healed(store: StateStore, objects: FakeObjects) -> None:
    store.create(blank())
    body = objects.get("ConfigMap", NAMESPACE, "anneal-shop")
    assert body
    body["metadata"]["labels"]["team"] = "a"
    body["metadata"]["annotations"] |= {"note": "b", "anneal.dev/summary": "x"}
    objects.replace(body)
    metadata = store.swap(store.read(), blank()).body["metadata"]
    assert objects.get("ConfigMap", NAMESPACE, "anneal-shop") == {**body, "metadata": {**body["metadata"], **metadata}}
    assert (metadata["labels"]["team"], metadata["annotations"]["note"]) == ("a", "b")
    assert metadata["annotations"]["anneal.dev/summary"] != "x"


def test_a_person_who_suspends_during_a_run_is_merged(store: StateStore) -> None:
    stored = store.swap(store.create(blank()), opened(blank()), TOKEN)
    store.update(suspended)
    stored = store.write(stored, closed, TOKEN)
    assert stored.state
    assert (stored.state.commit, stored.state.suspend, stored.state.attempt) == (sha("b"), Suspend("ada"), None)
    assert store.read() == stored


def test_a_record_is_removed_as_it_was_read_alone(store: StateStore, objects: FakeObjects) -> None:
    first = store.create(blank())
    second = store.update(suspended)
    with pytest.raises(Moved):
        store.remove(first)
    assert store.remove(second)
    assert (store.read().state, store.remove(second)) == (None, False)


@pytest.mark.parametrize("anew", [False, True])
def test_a_state_deleted_during_a_run_stops_it(store: StateStore, objects: FakeObjects, anew: bool) -> None:
    stored = store.swap(store.create(blank()), opened(blank()), TOKEN)
    objects.delete("ConfigMap", NAMESPACE, "anneal-shop", uid=stored.uid)
    if anew:
        store.create(opened(blank()))
    with pytest.raises(LeaseLost, match="deleted during the run"):
        store.write(stored, closed, TOKEN)
    assert store.read().state == (opened(blank()) if anew else None)


def test_another_runs_attempt_stops_the_run(store: StateStore) -> None:
    stored = store.swap(store.create(blank()), opened(blank()), TOKEN)
    store.swap(store.read(), replace(blank(), attempt=attempt(OTHER)), OTHER)
    with pytest.raises(LeaseLost, match="another run"):
        store.write(stored, closed, TOKEN)


def test_a_dead_runs_attempt_with_a_person_in_between_is_planned_again(store: StateStore) -> None:
    stored = store.swap(store.create(blank()), replace(blank(), attempt=attempt(OTHER)), OTHER)
    store.update(suspended)
    with pytest.raises(Moved):
        store.write(stored, opened, TOKEN)


def test_opening_an_attempt_on_a_moved_state_is_planned_again(store: StateStore) -> None:
    stored = store.create(blank())
    store.update(suspended)
    with pytest.raises(Moved):
        store.write(stored, opened, TOKEN)


def test_a_write_whose_answer_was_lost_is_recognised(store: StateStore, objects: FakeObjects, monkeypatch: pytest.MonkeyPatch) -> None:
    stored = store.swap(store.create(blank()), opened(blank()), TOKEN)
    real = objects.replace

    def lossy(body: dict[str, Any]) -> dict[str, Any]:
        real(body)
        return real(body)

    monkeypatch.setattr(objects, "replace", lossy)  # the cluster room repeats a PUT whose answer was lost
    assert store.write(stored, closed, TOKEN).state == closed(blank())


def test_update_tries_again_until_it_wins(store: StateStore, objects: FakeObjects) -> None:
    store.create(blank())
    others = StateStore(objects, NAMESPACE, "shop", "default", TOOLING)
    left = [3]

    def interfere(verb: str, body: dict[str, Any]) -> None:
        if verb == "replace" and left[0] and "pin.json" in body["data"]:
            left[0] -= 1
            others.update(lambda state: replace(state, commit=sha(str(left[0]))))

    objects.before = interfere
    stored = store.update(lambda state: replace(state, pin=Pin(sha("f"))))
    assert stored.state
    assert (stored.state.commit, stored.state.pin) == (sha("0"), Pin(sha("f")))


def test_update_gives_up_after_repeated_409_conflicts(store: StateStore, objects: FakeObjects) -> None:
    store.create(blank())
    tries = []

    def refuse(verb: str, body: dict[str, Any]) -> None:
        if verb == "replace":
            tries.append(verb)
            raise Moved.of("ConfigMap/anneal-system/anneal-shop", "changed")

    objects.before = refuse
    with pytest.raises(Moved):
        store.update(suspended, tries=3)
    assert len(tries) == 3


def test_update_makes_the_first_state_only_when_asked(store: StateStore) -> None:
    with pytest.raises(StateInvalid, match="never ran"):
        store.update(suspended)
    stored = store.update(suspended, initial=store.blank("u-1"))
    assert stored.state == suspended(blank(repository=""))
    assert stored.state.fresh


def test_a_record_of_another_home_is_refused_with_every_difference(objects: FakeObjects) -> None:
    store = StateStore(objects, NAMESPACE, "shop", "other", TOOLING)
    with pytest.raises(TargetMoved) as caught:
        store.at_home(blank(commit=sha()), "https://elsewhere.example.com/x.git", "u-2")
    assert len(caught.value.problems) == 3
    assert "`anneal retarget shop`" in str(caught.value)


@pytest.mark.parametrize(
    ("before", "installation"),
    [
        (("default", "https://git.example.com/acme/shop.git"), "blue"),
        (("default", "https://git.example.com/x.git"), "default"),
        (("", ""), "default"),
    ],
)
def test_a_record_of_the_installation_before_is_taken_over_for_its_repository_alone(
    objects: FakeObjects, store: StateStore, before: tuple[str, str], installation: str
) -> None:
    store.create(blank(commit=sha()))
    now = StateStore(objects, NAMESPACE, "shop", "blue", TOOLING, before=before)
    state = now.read().state
    assert state
    assert (state.installation, now.writes(state)) == (installation, installation == "blue")
    stored = now.update(lambda newest: newest)
    assert stored.body["metadata"]["labels"]["anneal.dev/installation"] == installation


def test_a_record_at_home_is_accepted_and_one_without_an_applied_commit_needs_no_retarget(store: StateStore) -> None:
    url = "https://git.example.com/acme/shop.git"
    assert store.at_home(blank(commit=sha()), url, "u-1") == blank(commit=sha())
    typo = blank(repository="https://git.example.com/acme/shpo.git", installation="odd", cluster_uid="u-0", status=RunStatus("failed"))
    assert store.at_home(typo, url, "u-1") == blank(repository="", status=RunStatus("failed"))


@pytest.mark.parametrize("begun", [{"attempt": attempt()}, {"kinds": frozenset({GroupKind("", "ConfigMap")})}])
def test_a_record_with_an_open_attempt_needs_retarget(store: StateStore, begun: dict[str, Any]) -> None:
    with pytest.raises(TargetMoved):
        store.at_home(blank(**begun), "https://elsewhere.example.com/x.git", "u-1")


def test_a_foreign_configmap_of_the_same_name_is_refused(store: StateStore, objects: FakeObjects) -> None:
    objects.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "anneal-shop", "namespace": NAMESPACE}, "data": {}})
    with pytest.raises(StateInvalid, match="isn't Anneal's"):
        store.read()
