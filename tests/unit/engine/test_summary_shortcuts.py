"""A summary says "quiet" only where a tick that reads the whole state would end unchanged: the two are compared over made-up states."""

from __future__ import annotations

import copy
import json
import threading
from collections.abc import Callable
from dataclasses import replace
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from handler.engine import reconcile, summary_shortcuts
from handler.engine.planner.desired import Preparer
from handler.engine.run.context import Round, RunContext
from handler.engine.run.dependencies import Dependencies
from handler.engine.run.recovery_scan import FoundMembers
from handler.model.errors import AnnealError
from handler.model.event import Job
from handler.model.result import Outcome
from handler.state.configmap import SUMMARY, summary_of
from handler.state.record import Approval, Attempt, HeldPlan, NamedRequest, Pin, RunStatus, State, Suspend, WaitingFor
from handler.state.record_format import stamp
from handler.state.record_values import RecordName
from handler.state.store import StateStore
from handler.state.summary import home_of
from tests.unit.engine.tick_walk import GOOD, HEAD, NOW, OTHER, SETTINGS, TARGET, URL, Host, Worked, stored, works
from tests.unit.state import samples

pytestmark = pytest.mark.slow

_HELD = HeldPlan("h1", (), (), OTHER, "d" * 64, SETTINGS, samples.NOON)

times = st.sampled_from(["", stamp(NOW - 60), stamp(NOW), stamp(NOW + 60)])


def _rarely(value: st.SearchStrategy[Any], usual: Any) -> st.SearchStrategy[Any]:
    """Mostly what a settled target has: else hardly any state would be quiet."""
    return st.one_of(st.just(usual), st.just(usual), st.just(usual), st.just(usual), value)


def _maybe(form: Any, **parts: Any) -> st.SearchStrategy[Any]:
    return _rarely(st.builds(form, **parts), None)


_COMMON: dict[str, Any] = {"reads": samples.shas, "settings": samples.shas}
states = st.builds(
    replace,
    st.just(GOOD),
    commit=_rarely(st.sampled_from(["", OTHER]), HEAD),
    settings=_rarely(st.sampled_from(["", "e" * 64]), SETTINGS),
    repository=_rarely(st.just("https://git.example.com/acme/other.git"), URL),
    installation=_rarely(st.just("another"), "default"),
    cluster_uid=_rarely(st.just("u-2"), "u-1"),
    drift_due=_rarely(times, ""),
    status=_rarely(
        st.builds(
            RunStatus,
            phase=st.sampled_from(["", "applied", "failed", "held", "pruning", "waiting", "suspended", "drifted"]),
            next_try=times,
        ),
        GOOD.status,
    ),
    attempt=_maybe(Attempt, commit=samples.shas, token=samples.tokens, since=samples.times, **_COMMON),
    held=_maybe(HeldPlan, id=st.just("h1"), reasons=st.just(()), changes=st.just(()), commit=samples.shas, since=samples.times, **_COMMON),
    approval=_maybe(Approval, id=st.just("h1"), changes=st.just(()), by=st.just("ada"), at=samples.times, **_COMMON),
    pin=_maybe(Pin, commit=st.sampled_from([HEAD, OTHER]), away=samples.shas),
    suspend=_maybe(Suspend, by=st.just("ada"), until=times),
    requested=_maybe(NamedRequest, by=st.just("ada"), at=samples.times, force=st.booleans(), drift=st.booleans()),
    kinds=_rarely(st.frozensets(samples.kinds, max_size=2), frozenset()),
)


def tick_ends_unchanged(store: StateStore, head: str) -> bool:
    """Walk as a tick's run does, up to where it would begin to work."""
    preparer = Preparer(TARGET, "set", samples.NAMESPACE, Host(head), works, None)  # type: ignore[arg-type]  # nothing is admitted
    deps = Dependencies(TARGET, SETTINGS, preparer, None, store, None, lambda _: "u-1", 15.0, clock=lambda: NOW)  # type: ignore[arg-type]  # it plans nothing and takes no Lease
    run = RunContext(deps, Job("shop", "tick"), threading.Event(), "r1", Round(NOW), found=FoundMembers(frozenset(), frozenset()))
    with patch.multiple(reconcile, _look=works, _locked=works):
        try:
            return reconcile._unlocked(run).outcome is Outcome.UNCHANGED
        except (AnnealError, Worked):
            return False


def is_quiet(metadata: dict[str, Any], head: str) -> bool:
    """Decide as a survey does."""
    found = summary_shortcuts.own_summary(metadata, samples.NAMESPACE, "shop", samples.TOOLING)
    home = home_of(URL, "default", "u-1")
    return found is not None and summary_shortcuts.is_settled(found, SETTINGS, home, NOW) and summary_shortcuts.is_quiet(found, head)


@given(states, st.sampled_from([HEAD, HEAD, HEAD, OTHER]))
@example(GOOD, HEAD)
@example(replace(GOOD, pin=Pin(OTHER, ""), commit=OTHER), HEAD)
@example(replace(GOOD, drift_due=stamp(NOW)), HEAD)
@example(replace(GOOD, drift_due=stamp(NOW + 1)), HEAD)
@example(replace(GOOD, suspend=Suspend("ada")), HEAD)
@example(replace(GOOD, suspend=Suspend("ada", until=stamp(NOW + 1))), HEAD)
@example(replace(GOOD, suspend=Suspend("ada", until=stamp(NOW))), HEAD)
@example(replace(GOOD, pin=Pin(HEAD)), HEAD)
@example(replace(GOOD, attempt=Attempt(HEAD, "d" * 64, SETTINGS, samples.TOKEN, samples.NOON)), HEAD)
@example(replace(GOOD, requested=NamedRequest("ada", samples.NOON)), HEAD)
@example(replace(GOOD, held=_HELD, approval=Approval("h1", "d" * 64, SETTINGS, (), "ada", samples.NOON)), HEAD)
@example(replace(GOOD, status=RunStatus("failed")), HEAD)
@example(replace(GOOD, status=RunStatus("held")), HEAD)
@example(replace(GOOD, status=RunStatus("pruning")), HEAD)
@example(replace(GOOD, status=RunStatus("waiting")), HEAD)
@example(replace(GOOD, attempt=Attempt(HEAD, "d" * 64, SETTINGS, "t.1", samples.NOON), waiting=WaitingFor(HEAD, "all", samples.NOON)), HEAD)
@example(replace(GOOD, pin=Pin(HEAD, automatic=True)), "e" * 40)
def test_a_summary_says_quiet_only_where_the_state_would_end_a_tick(state: State, head: str) -> None:
    store, metadata = stored(state)
    known, whole = is_quiet(metadata, head), tick_ends_unchanged(store, head)
    assert whole or not known
    if not (state.pin or state.held):  # of these the summary only knows that they are there
        assert known or not whole


def test_a_settled_target_at_its_head_is_quiet() -> None:
    store, metadata = stored(GOOD)
    assert is_quiet(metadata, HEAD)
    assert tick_ends_unchanged(store, HEAD)
    assert not is_quiet(metadata, "")


@pytest.mark.parametrize("other", [{"former": RecordName("old", samples.NAMESPACE)}, {"renamed_to": RecordName("new", samples.NAMESPACE)}])
def test_a_target_amid_a_takeover_is_not_quiet(other: dict[str, RecordName]) -> None:
    _, metadata = stored(replace(GOOD, former=other.get("former"), renamed_to=other.get("renamed_to")))
    assert not is_quiet(metadata, HEAD)


def _labelled(key: str, value: str) -> Callable[[dict[str, Any]], None]:
    return lambda metadata: metadata["labels"].update({key: value})


def _summed(text: str) -> Callable[[dict[str, Any]], None]:
    return lambda metadata: metadata["annotations"].update({SUMMARY: text})


def _edited(part: str) -> Callable[[dict[str, Any]], None]:
    return lambda metadata: metadata.update(managedFields=[{"manager": "kubectl-edit", "fieldsV1": {part: {"f:applied.json": {}}}}])


@pytest.mark.parametrize(
    "spoil",
    [
        _labelled("anneal.dev/target", "other"),
        _labelled("applyset.kubernetes.io/id", "applyset-another"),
        _summed(""),
        _summed("{"),
        _summed("[]"),
        _summed('{"commit": 7}'),
        _summed(json.dumps({"commit": HEAD, "later": True})),
        _summed(" " * 1025),
        _edited("f:data"),
        _edited("f:binaryData"),
        lambda metadata: metadata.pop("annotations"),
        lambda metadata: metadata.pop("labels"),
    ],
)
def test_a_summary_that_is_not_certainly_ours_proves_nothing(spoil: Callable[[dict[str, Any]], None]) -> None:
    metadata = copy.deepcopy(stored(GOOD)[1])
    spoil(metadata)
    assert not is_quiet(metadata, HEAD)


def test_labels_of_others_on_the_record_keep_a_summary_quiet() -> None:
    metadata = copy.deepcopy(stored(GOOD)[1])
    metadata["managedFields"] = [
        {"manager": "anneal", "fieldsV1": {"f:data": {}}},
        {"manager": "kubectl-label", "fieldsV1": {"f:metadata": {"f:labels": {"f:team": {}}}}},
    ]
    assert is_quiet(metadata, HEAD)


def test_a_summary_of_an_earlier_version_is_not_quiet() -> None:
    """It doesn't say where the state belongs."""
    metadata = copy.deepcopy(stored(GOOD)[1])
    old = json.loads(metadata["annotations"][SUMMARY])
    del old["home"]
    metadata["annotations"][SUMMARY] = json.dumps(old)
    assert summary_shortcuts.own_summary(metadata, samples.NAMESPACE, "shop", samples.TOOLING) is not None
    assert not is_quiet(metadata, HEAD)


@given(samples.states)
def test_a_summary_stays_below_a_kilobyte(state: State) -> None:
    assert len(summary_of(state)) <= 1024
