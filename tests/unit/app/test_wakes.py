"""Who is woken by what: targets that wait for what they depend on, by one LIST a cluster, and those that follow another."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import pytest

from handler.app.record_summaries import TOOLING, Readable
from handler.app.wakes import Wakes
from handler.config.git_settings import Repository, SecretRef
from handler.config.settings import Cluster, Settings, Target
from handler.model.errors import ClusterUnavailable
from handler.model.event import Job
from handler.model.health import HealthState
from handler.model.result import Outcome, Result, TargetStanding
from handler.model.run_event import HealthChanged, RunEnded, RunEvent
from handler.state.configmap import encode
from handler.state.record import RunStatus
from handler.state.record_values import DependencyWait
from tests.fakes.objects import FakeObjects
from tests.unit.engine.promoting_targets import PROD, STAGING, following
from tests.unit.state.samples import NOON, blank, sha

EAST, WEST = Cluster(SecretRef(file="east")), Cluster(SecretRef(file="west"))
WAITS = DependencyWait(sha("b"), "c" * 64, NOON)


def target(name: str, *after: str, cluster: Cluster = EAST) -> Target:
    return Target(name, Repository("https://git.example.com/shop.git"), ("shop",), cluster=cluster, depends_on=after)


SETTINGS = Settings(
    (
        target("infra"),
        *(target(f"apps-{number}", "infra") for number in range(3)),
        target("edge", "infra", "apps-0", cluster=WEST),
        target("alone"),
    )
)


@dataclass
class Clusters:
    """Two of them in memory, on which these targets wait; `mute` ones don't answer."""

    places: dict[Cluster, FakeObjects] = field(default_factory=lambda: {EAST: FakeObjects(), WEST: FakeObjects()})
    asked: Counter[str] = field(default_factory=Counter)
    woken: list[list[str]] = field(default_factory=list)
    mute: set[Cluster] = field(default_factory=set)

    def write(self, name: str, *, waits: bool) -> None:
        mine = SETTINGS.target(name)
        assert mine
        state = blank(target=name, commit=sha("a"), awaits=WAITS if waits else None, status=RunStatus("waiting" if waits else "applied"))
        self.places[mine.cluster].create(encode(state, SETTINGS.state_namespace, TOOLING))

    def records(self, mine: Target) -> FakeObjects:
        self.asked[mine.cluster.name] += 1
        if mine.cluster in self.mute:
            raise ClusterUnavailable.of(mine.cluster.name, "doesn't answer")
        return self.places[mine.cluster]

    def wake(self, jobs: Sequence[Job]) -> None:
        assert {job.trigger for job in jobs} == {"tick"}
        self.woken.append([job.target for job in jobs])


@pytest.fixture
def clusters() -> Clusters:
    """Of those that depend on infra one on each cluster waits, and one has never run."""
    made = Clusters()
    made.write("apps-0", waits=True)
    made.write("apps-1", waits=False)
    made.write("edge", waits=True)
    return made


def heard(clusters: Clusters, event: RunEvent) -> list[list[str]]:
    Wakes(SETTINGS, clusters.records, clusters.wake).hear(event)
    return clusters.woken


WELL = TargetStanding(health=str(HealthState.HEALTHY))
ENDED = Result("infra", Outcome.APPLIED, recorded=True, standing=WELL)


def ran(result: Result, job: Job = Job("infra", "push")) -> RunEnded:  # noqa: B008 - frozen
    return RunEnded.of(job, result, 1.0)


@pytest.mark.parametrize(
    "event", [ran(ENDED), ran(replace(ENDED, outcome=Outcome.UNCHANGED)), HealthChanged("infra", "degraded", "healthy")]
)
def test_what_readies_it_wakes_those_that_wait_by_one_list_a_cluster(clusters: Clusters, event: RunEvent) -> None:
    assert heard(clusters, event) == [["apps-0"], ["edge"]]
    assert clusters.asked == {EAST.name: 1, WEST.name: 1}


@pytest.mark.parametrize(
    "event",
    [
        ran(replace(ENDED, target="alone")),
        ran(replace(ENDED, outcome=Outcome.FAILED)),
        ran(replace(ENDED, outcome=Outcome.WAITING)),
        ran(replace(ENDED, recorded=False)),
        ran(replace(ENDED, standing=TargetStanding(health="degraded"))),
        ran(replace(ENDED, standing=None)),
        ran(ENDED, Job("infra", "oneoff", dry_run=True)),
        HealthChanged("infra", "healthy", "degraded"),
        HealthChanged("infra", "", "healthy", run="infra.1"),
    ],
)
def test_what_readies_nothing_asks_nothing(clusters: Clusters, event: RunEvent) -> None:
    assert heard(clusters, event) == []
    assert not clusters.asked


def test_a_cluster_that_does_not_answer_keeps_no_other_from_being_woken(clusters: Clusters, caplog: pytest.LogCaptureFixture) -> None:
    clusters.mute.add(EAST)
    assert heard(clusters, ran(ENDED)) == [["edge"]]
    assert [record.getMessage() for record in caplog.records] == ["targets that may wait aren't woken; their ticks look again"]


def unread(_target: Target) -> Readable:
    raise AssertionError("no target depends on another")


def woken(event: RunEnded | HealthChanged) -> list[str]:
    found: list[Job] = []
    Wakes(Settings(targets=(STAGING, PROD, following("last", "prod"))), unread, found.extend).hear(event)
    assert all(job.trigger == "tick" for job in found)
    return [job.target for job in found]


def ended(outcome: Outcome, trigger: str = "push", *, target: str = "staging", recorded: bool = True, dry: bool = False) -> RunEnded:
    return RunEnded(Job(target, trigger, dry_run=dry), Result(target, outcome, recorded=recorded), 1.0)


def test_only_those_that_follow_the_target_are_woken() -> None:
    assert woken(ended(Outcome.APPLIED)) == ["prod"]
    assert woken(ended(Outcome.APPLIED, target="prod")) == ["last"]
    assert woken(ended(Outcome.APPLIED, target="last")) == []


def test_what_changed_nothing_wakes_them_only_if_it_was_no_look_of_the_clock() -> None:
    assert woken(ended(Outcome.UNCHANGED)) == ["prod"]


@pytest.mark.parametrize("trigger", ["tick", "drift"])
def test_a_look_of_the_clock_wakes_them_only_if_it_applied_or_recorded_another_commit_which_reads_the_same(trigger: str) -> None:
    looked = ended(Outcome.UNCHANGED, trigger)
    assert woken(looked) == []
    assert woken(ended(Outcome.APPLIED, trigger)) == ["prod"]
    assert woken(replace(looked, result=replace(looked.result, moved=True))) == ["prod"]
    assert woken(replace(looked, result=replace(looked.result, moved=True, recorded=False))) == []


def test_failures_unrecorded_ends_and_plans_wake_none() -> None:
    for outcome in (Outcome.FAILED, Outcome.HELD, Outcome.ROLLED_BACK, Outcome.WAITING):
        assert woken(ended(outcome)) == []
    assert woken(ended(Outcome.APPLIED, recorded=False)) == woken(ended(Outcome.APPLIED, dry=True)) == []


def test_health_that_a_watch_finds_again_wakes_them_and_any_other_does_not() -> None:
    assert woken(HealthChanged("staging", "progressing", "healthy")) == ["prod"]
    assert woken(HealthChanged("staging", "healthy", "degraded")) == []
    assert woken(HealthChanged("staging", "progressing", "healthy", run="staging.1")) == [], "the run's own end says so"
