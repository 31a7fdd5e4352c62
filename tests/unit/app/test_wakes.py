"""Who is woken by what: targets whose summaries say that they wait, when what they depend on is in sync and healthy; one LIST a cluster."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import pytest

from handler.app.record_summaries import TOOLING
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


def test_a_recorded_run_wakes_those_that_wait_by_one_list_a_cluster(clusters: Clusters) -> None:
    assert heard(clusters, ran(ENDED)) == [["apps-0"], ["edge"]]
    assert clusters.asked == {EAST.name: 1, WEST.name: 1}


def test_a_run_that_found_nothing_to_do_wakes_them_too(clusters: Clusters) -> None:
    assert heard(clusters, ran(replace(ENDED, outcome=Outcome.UNCHANGED))) == [["apps-0"], ["edge"]]


def test_a_watch_that_finds_it_healthy_again_wakes_them(clusters: Clusters) -> None:
    assert heard(clusters, HealthChanged("infra", "degraded", "healthy")) == [["apps-0"], ["edge"]]


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
