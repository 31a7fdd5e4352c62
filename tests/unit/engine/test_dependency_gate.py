"""Which runs `dependsOn` holds up, over made-up records of both targets; and that a survey spares only what would wait once more."""

from __future__ import annotations

import threading
from dataclasses import dataclass, replace
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from handler.config.git_settings import Repository
from handler.config.settings import Target
from handler.engine import dependency_gate, reconcile, summary_shortcuts
from handler.engine.planner.desired import Preparer
from handler.engine.run import readiness, revision
from handler.engine.run.context import Round, RunContext
from handler.engine.run.dependencies import AwaitedTarget, Dependencies
from handler.engine.run.errors import DependencyNotReady
from handler.engine.run.other_records import OtherRecord
from handler.engine.run.recovery_scan import FoundMembers
from handler.model.errors import AnnealError, ClusterUnavailable
from handler.model.event import Job
from handler.model.health import HealthState
from handler.model.result import Outcome, Result
from handler.state.record import Attempt, Pin, RunStatus, State, TargetHealth
from handler.state.record_format import stamp
from handler.state.record_values import DependencyWait, Obstacle
from handler.state.store import StateStore
from handler.state.summary import Summary, home_of
from tests.fakes.source_tree import FakeTree
from tests.unit.engine.tick_walk import GOOD, HEAD, NOW, OTHER, SETTINGS, TARGET, URL, Host, Worked, stored, works
from tests.unit.state import samples

pytestmark = pytest.mark.slow

INFRA = Target("infra", Repository("https://git.example.com/acme/infra.git"), ("infra",))
INFRA_HEAD, INFRA_SETTINGS = samples.sha("e"), "f" * 64
READY = samples.blank(
    target="infra",
    commit=INFRA_HEAD,
    settings=INFRA_SETTINGS,
    status=RunStatus("applied"),
    health=TargetHealth(HealthState.HEALTHY, samples.NOON, samples.NOON),
)
SICK = replace(READY, health=TargetHealth(HealthState.DEGRADED, samples.NOON, samples.NOON, ("Deployment/infra/db: 0 of 1",)))
OBSTACLE = Obstacle("infra", "it is degraded: “Deployment/infra/db: 0 of 1”", "anneal status infra")
BEHIND = replace(GOOD, commit=OTHER, reads="")  # what it read is unknown, so that no commit reads the same
WAITING = replace(
    BEHIND,
    awaits=DependencyWait(HEAD, SETTINGS, samples.NOON, (OBSTACLE,)),
    status=RunStatus(
        "waiting", samples.NOON, message="waiting for infra: it is degraded: “Deployment/infra/db: 0 of 1”; anneal status infra"
    ),
)


@dataclass
class Records:
    """What is read of the other target: its record, an error, or one after the other."""

    answers: list[State | AnnealError | None]
    reads: int = 0

    def read(self, target: str) -> OtherRecord:
        self.reads += 1
        found = self.answers[min(self.reads, len(self.answers)) - 1]
        if isinstance(found, AnnealError):
            raise found
        return OtherRecord(target, found, found.health if found else TargetHealth())


def run_of(store: StateStore, others: Records, job: Job, head: str = HEAD) -> RunContext:
    preparer = Preparer(TARGET, "set", samples.NAMESPACE, Host(head), works, None)  # type: ignore[arg-type]  # nothing is admitted
    awaited = AwaitedTarget(INFRA, INFRA_SETTINGS, lambda _known, _since: INFRA_HEAD, lambda pin, _head: pin.commit == OTHER)
    deps = Dependencies(TARGET, SETTINGS, preparer, None, store, None, lambda _: "u-1", 15.0, clock=lambda: NOW)  # type: ignore[arg-type]  # it plans nothing and takes no Lease
    deps = replace(deps, awaited=(awaited,), others=others)
    return RunContext(deps, job, threading.Event(), "r1", Round(NOW), found=FoundMembers(frozenset(), frozenset()))


def walked(state: State, other: State | AnnealError | None, job: Job = Job("shop", "tick"), head: str = HEAD) -> Result | str:  # noqa: B008 - frozen
    """Walk up to where a run would begin to work; return its end, or the commit with which it goes on."""
    store, _ = stored(state)
    run = run_of(store, Records([other]), job, head)
    with patch.multiple(reconcile, _look=works, _locked=works):
        try:
            return reconcile._unlocked(run)
        except Worked:
            return run.revision.commit


def waits(found: Result | str) -> bool:
    return isinstance(found, Result) and (found.outcome, found.code) == (Outcome.WAITING, DependencyNotReady.code)


def test_a_new_head_goes_on_where_the_other_is_ready_and_waits_elsewhere() -> None:
    assert walked(BEHIND, READY) == HEAD
    assert waits(walked(BEHIND, SICK))
    assert waits(walked(BEHIND, None))
    assert waits(walked(BEHIND, ClusterUnavailable.of("cluster", "doesn't answer")))
    assert waits(walked(BEHIND, READY, head=samples.sha("1"))) is False


def test_what_waits_for_nothing_new_is_not_held_up() -> None:
    unchanged = walked(GOOD, SICK)
    assert isinstance(unchanged, Result)
    assert unchanged.outcome is Outcome.UNCHANGED
    assert walked(BEHIND, SICK, Job("shop", "drift")) == OTHER, "drift of the recorded commit is looked for"
    assert walked(BEHIND, SICK, Job("shop", "oneoff", commit=HEAD)) == HEAD
    assert walked(replace(BEHIND, pin=Pin(OTHER)), SICK, Job("shop", "oneoff", force=True)) == OTHER
    assert walked(replace(GOOD, settings=""), SICK) == HEAD, "a recovery has recorded no settings"
    begun = Attempt(HEAD, "d" * 64, SETTINGS, "u-1.1", samples.NOON)
    store, _ = stored(replace(BEHIND, attempt=begun))
    run = run_of(store, Records([SICK]), Job("shop", "tick"))
    run.read()
    revision.choose(run)
    assert dependency_gate.waits(run) is None


def test_settings_that_changed_and_a_forced_run_of_a_new_head_wait() -> None:
    assert waits(walked(replace(GOOD, settings="e" * 64), SICK))
    assert waits(walked(BEHIND, SICK, Job("shop", "oneoff", force=True)))
    assert waits(walked(BEHIND, SICK, Job("shop", "push", hint=HEAD)))


def test_waiting_is_written_once_and_keeps_since_when() -> None:
    store, _ = stored(BEHIND)
    first, runs = "", []
    for number in range(3):
        run = run_of(store, Records([SICK]), Job("shop", "tick"))
        run.read()
        revision.choose(run)
        result = dependency_gate.ended(run)
        assert result
        assert result.recorded
        version = store.read().resource_version
        first = first or version
        assert version == first, number
        runs = [each.outcome for each in run.state.history]
    assert runs == ["waiting"]
    worse = replace(SICK, health=replace(SICK.health, worst=("Deployment/infra/web: gone",)))
    run = run_of(store, Records([worse]), Job("shop", "tick"))
    run.deps = replace(run.deps, clock=lambda: NOW + 60)
    run.read()
    revision.choose(run)
    dependency_gate.ended(run)
    assert run.state.awaits
    assert (run.state.awaits.on[0].why, run.state.awaits.since) == ("it is degraded: “Deployment/infra/web: gone”", stamp(NOW))
    assert [each.outcome for each in run.state.history] == ["waiting"]


def test_a_drift_run_that_finds_a_commit_that_waits_says_so_and_holds_the_recorded_one() -> None:
    store, _ = stored(BEHIND)
    for _number in range(2):
        run = run_of(store, Records([SICK]), Job("shop", "drift"))
        run.read()
        revision.choose(run)
        assert dependency_gate.ended(run) is None
        assert (run.revision.commit, run.revision.behind) == (OTHER, True)
        assert (run.state.status.phase, run.state.awaits and run.state.awaits.commit) == ("waiting", HEAD)


class Keeping(Host):
    """A git host that still has two commits."""

    def fetch(self, sha: str, path: str = "") -> Any:
        return FakeTree({}) if sha in (samples.sha("7"), samples.sha("9")) else super().fetch(sha, path)


def test_what_an_open_attempt_has_begun_is_finished_first_although_a_newer_head_waits() -> None:
    begun = Attempt(samples.sha("9"), "d" * 64, SETTINGS, "u-1.1", samples.NOON)
    for attempt, aims in (
        (begun, begun.commit),
        (replace(begun, settings="e" * 64), ""),  # by other settings than now
        (replace(begun, commit=samples.sha("8")), ""),  # gone from the git host
        (replace(begun, commit=samples.sha("7")), ""),  # not on the branch
    ):
        store, _ = stored(replace(WAITING, attempt=attempt))
        run = run_of(store, Records([SICK]), Job("shop", "tick"))
        run.deps.preparer.source = Keeping(HEAD)
        run.deps.preparer.proves = lambda commit, head: (commit, head) == (begun.commit, HEAD)
        run.read()
        revision.choose(run)
        result = dependency_gate.ended(run)
        assert (result is None, run.revision.commit) == (bool(aims), aims or HEAD)
        assert result is None or waits(result)


def test_a_dependency_that_records_between_the_look_and_the_write_is_looked_at_again() -> None:
    store, _ = stored(BEHIND)
    others = Records([SICK, READY])
    run = run_of(store, others, Job("shop", "tick"))
    run.read()
    revision.choose(run)
    assert dependency_gate.ended(run) is None, "it goes on"
    assert others.reads == 2


_OURS = st.builds(
    replace,
    st.just(WAITING),
    commit=st.sampled_from(["", OTHER, OTHER, HEAD]),
    settings=st.sampled_from([SETTINGS, SETTINGS, "", "e" * 64]),
    attempt=st.sampled_from([None, None, None, Attempt(OTHER, "d" * 64, SETTINGS, "u-1.1", samples.NOON)]),
    pin=st.sampled_from([None, None, None, Pin(OTHER)]),
    drift_due=st.sampled_from(["", "", stamp(NOW - 60), stamp(NOW + 60)]),
    awaits=st.sampled_from([WAITING.awaits, WAITING.awaits, None, replace(WAITING.awaits, commit=OTHER)]),  # type: ignore[type-var]  # it waits
    status=st.sampled_from([WAITING.status, WAITING.status, RunStatus("applied"), RunStatus("failed")]),
)
_THEIRS = st.builds(
    replace,
    st.just(READY),
    commit=st.sampled_from(["", OTHER, INFRA_HEAD, INFRA_HEAD]),
    health=st.sampled_from([READY.health, SICK.health]),
    attempt=st.sampled_from([None, Attempt(OTHER, "d" * 64, SETTINGS, "u-1.1", samples.NOON)]),
    pin=st.sampled_from([None, Pin(OTHER)]),
    status=st.sampled_from([RunStatus("applied"), RunStatus("failed", message="no"), RunStatus("pruning", message="no")]),
)


@given(_OURS, _THEIRS, st.sampled_from([HEAD, HEAD, OTHER]))
@example(WAITING, SICK, HEAD)
def test_a_survey_spares_a_run_only_where_it_would_wait_once_more(ours: State, theirs: State, head: str) -> None:
    _, metadata = stored(ours)
    summary = summary_shortcuts.own_summary(metadata, samples.NAMESPACE, "shop", samples.TOOLING)
    homes = [home_of(url, "default", "u-1") for url in (URL, "")]
    assert summary
    spared = summary_shortcuts.is_waiting(summary, SETTINGS, homes, NOW) and summary.awaits == head
    if spared and readiness.is_certainly_unready(Summary.of(theirs), INFRA_HEAD, together=False):
        assert waits(walked(ours, theirs, head=head))


def test_the_survey_spares_what_waits_at_all() -> None:
    _, metadata = stored(WAITING)
    summary = summary_shortcuts.own_summary(metadata, samples.NAMESPACE, "shop", samples.TOOLING)
    assert summary
    assert summary_shortcuts.is_waiting(summary, SETTINGS, [home_of(URL, "default", "u-1")], NOW)
