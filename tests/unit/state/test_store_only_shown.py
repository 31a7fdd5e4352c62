"""A run's record beside what a git host shows: writes of that alone drop no run's record, and are lost by none."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from handler.model.errors import Busy, LeaseLost, Moved
from handler.state.commit_status_update import kept, posted
from handler.state.record import Attempt, Pin, Run, RunStatus, State, Suspend, TargetHealth
from handler.state.record_values import RecordedCommitStatus, RecordedPullRequest
from handler.state.store import StateStore
from tests.fakes.objects import FakeObjects
from tests.unit.state.samples import NAMESPACE, NOON, TOKEN, TOOLING, blank, sha

OWED = RecordedCommitStatus(sha(), "success", "3 created", "shop.1")
OTHER = "7d0a1c9e-0b1f-4a53-9a0e-3c3c2b1a0f9d.9"
COMMENT = RecordedPullRequest(12, "345", "robot", "2" * 64)


def marked(state: State) -> State:
    """The host has what was owed."""
    return posted(state, state.commit_statuses)


def commented(state: State) -> State:
    return replace(state, pull_requests=(COMMENT, *state.pull_requests))


def attempt(token: str = TOKEN) -> Attempt:
    return Attempt(sha("b"), "b" * 64, "c" * 64, token, NOON)


@pytest.fixture
def others(objects: FakeObjects) -> StateStore:
    """What another thread or process writes by."""
    return StateStore(objects, NAMESPACE, "shop", "default", TOOLING)


@pytest.mark.parametrize(
    ("shown", "statuses", "comments"),
    [
        (marked, (replace(OWED, posted=True),), ()),
        (lambda state: replace(state, commit_statuses=()), (), ()),
        (commented, (OWED,), (COMMENT,)),
        (lambda state: commented(marked(state)), (replace(OWED, posted=True),), (COMMENT,)),
    ],
    ids=["posted", "dropped", "commented", "both"],
)
def test_what_a_host_shows_meanwhile_is_kept_in_the_record_of_a_run(
    store: StateStore, others: StateStore, shown: Callable[[State], State], statuses: tuple[Any, ...], comments: tuple[Any, ...]
) -> None:
    stored = store.create(blank(commit=sha(), commit_statuses=(OWED,)))
    assert stored.state
    others.update(shown)
    written = store.swap(stored, replace(stored.state, commit=sha("b"), status=RunStatus("applied", NOON)))
    assert written == store.read()
    assert written.state == blank(commit=sha("b"), status=RunStatus("applied", NOON), commit_statuses=statuses, pull_requests=comments)


def other_run(state: State) -> State:
    return replace(state, commit=sha("d"))


@pytest.mark.parametrize(
    "change",
    [
        other_run,
        lambda state: replace(state, suspend=Suspend("ada")),
        lambda state: replace(state, pin=Pin(sha("f"))),
        lambda state: replace(marked(state), health=TargetHealth("degraded", NOON)),
        lambda state: commented(other_run(state)),
    ],
    ids=["a run", "a pause", "a pin", "health and a status", "a run and a comment"],
)
def test_anything_else_that_moved_drops_the_record(store: StateStore, others: StateStore, change: Callable[[State], State]) -> None:
    stored = store.create(blank(commit=sha(), commit_statuses=(OWED,)))
    assert stored.state
    moved = others.update(change)
    with pytest.raises(Moved):
        store.swap(stored, replace(stored.state, commit=sha("b")))
    assert store.read() == moved


def test_a_record_that_was_deleted_or_made_anew_is_no_shown_change(store: StateStore, others: StateStore) -> None:
    stored = store.create(blank(commit=sha(), commit_statuses=(OWED,)))
    assert stored.state
    assert others.remove(stored)
    with pytest.raises(Moved):
        store.swap(stored, replace(stored.state, commit=sha("b")))
    anew = others.create(marked(stored.state))
    with pytest.raises(Moved):
        store.swap(stored, replace(stored.state, commit=sha("b")))
    assert store.read() == anew


def test_no_attempt_of_another_is_written_over_for_what_is_shown(store: StateStore, others: StateStore) -> None:
    stored = store.create(blank(commit=sha(), commit_statuses=(OWED,)))
    assert stored.state
    others.swap(others.read(), replace(stored.state, attempt=attempt(OTHER)), OTHER)
    others.update(marked)
    with pytest.raises(Moved):
        store.swap(stored, replace(stored.state, commit=sha("b")))
    with pytest.raises(Busy):
        store.swap(store.read(), replace(stored.state, commit=sha("b")))
    with pytest.raises(LeaseLost):
        store.swap(store.read(), replace(stored.state, attempt=attempt()), "another")


def test_a_status_that_the_host_has_meanwhile_is_judged_with_the_end_of_the_run(objects: FakeObjects, others: StateStore) -> None:
    """The end is derived anew from the newer record: no status is owed twice, none goes back to what it was."""
    calls: list[tuple[State | None, State]] = []

    def keep(before: State | None, after: State) -> State:
        calls.append((before, after))
        return kept(before, after)

    store = StateStore(objects, NAMESPACE, "shop", "default", TOOLING, keep)
    pending = RecordedCommitStatus(sha("b"), "pending", "being applied", "shop.2")
    stored = store.create(blank(commit=sha(), reads="1" * 64, commit_statuses=(pending, OWED)))
    assert stored.state
    newer = others.update(lambda state: posted(state, [OWED, pending]))
    ended = replace(
        stored.state, commit=sha("b"), reads="2" * 64, history=(Run("shop.2", "push", "applied", NOON, sha("b"), counts={"created": 1}),)
    )
    written = store.swap(stored, ended).state
    assert written
    assert {each.commit: (each.state, each.text, each.posted) for each in written.commit_statuses} == {
        sha("b"): ("success", "1 created", False),
        sha(): ("success", "3 created", True),
    }
    assert calls[-1][0] == newer.state


def test_what_is_shown_again_and_again_while_one_record_is_written_drops_nothing(store: StateStore, objects: FakeObjects) -> None:
    others = StateStore(objects, NAMESPACE, "shop", "default", TOOLING)
    stored = store.create(blank(commit=sha(), commit_statuses=(OWED,)))
    assert stored.state
    opened = replace(stored.state, attempt=attempt(), health=TargetHealth("healthy", NOON))
    left = [marked, commented]

    def interfere(verb: str, body: dict[str, Any]) -> None:
        if verb == "replace" and left and body["metadata"]["resourceVersion"] == others.read().resource_version:
            change, objects.before = left.pop(0), None
            others.update(change)
            objects.before = interfere

    objects.before = interfere
    store.swap(stored, opened, TOKEN)
    assert (left, store.read().state) == ([], replace(commented(marked(stored.state)), attempt=opened.attempt, health=opened.health))
