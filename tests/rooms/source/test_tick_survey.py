"""What a tick of very many targets costs, and whom it gives a run: a real git host, clusters in memory, the real worker."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import urllib3

from handler.app.target_status import TargetStatusReader
from handler.app.tick_survey import DEADLINE, Report, SurveyTally, TickSurvey
from handler.model.event import Job
from handler.model.result import Result
from handler.queues.pending import Work
from handler.state.record import Attempt, HeldPlan, NamedRequest, Pin, RunStatus
from handler.worker.ticks import Ticks
from handler.worker.worker import Parts, Worker
from infra.githost import Host
from tests.patience import PATIENCE, until
from tests.rooms.source.recorded_targets import MANIFEST, PATH, Place, Recorded, Told, recorded, soon

COUNT, REPOSITORIES = 200, 5
TOKEN = "7d0a1c9e-0b1f-4a53-9a0e-3c3c2b1a0f9d.4"


def test_a_tick_of_many_targets_is_one_list_a_cluster_and_one_look_a_revision(host: Host) -> None:
    fleet = recorded(host, COUNT, REPOSITORIES, ("east", "west"))
    told = Told()
    tally = TickSurvey(fleet.settings, fleet.handler()).look(fleet.ticks(), told)
    assert len(told.quiet) == tally.quiet == COUNT
    assert [place.asked() for place in fleet.places.values()] == [{"list": 1}, {"list": 1}]
    assert {len(place.calls) for place in fleet.places.values()} == {2}, "the LIST, and which cluster it is"
    assert fleet.looks() == REPOSITORIES


def test_the_next_tick_is_one_more_list_and_look(host: Host) -> None:
    """What one survey has seen proves nothing for the next, but whose cluster it is."""
    fleet = recorded(host, COUNT, REPOSITORIES, ("east",), interval=0.001)
    survey = TickSurvey(fleet.settings, fleet.handler())
    survey.look(fleet.ticks(), Told())
    fleet.forget()
    survey.look(fleet.ticks(), told := Told())
    assert len(told.quiet) == COUNT
    assert (len(fleet.places["east"].calls), fleet.looks()) == (1, REPOSITORIES)


@contextmanager
def working(fleet: Recorded, path: Path, deadline: float = DEADLINE) -> Iterator[tuple[Worker, list[Job], threading.Condition]]:
    """A worker of these targets as `anneal serve` composes it, and the jobs it runs."""
    handler = fleet.handler()
    ran: list[Job] = []
    changed = threading.Condition()

    def run(job: Job, stop: threading.Event, _meanwhile: object = None) -> Result:
        result = handler.run(job, stop)
        with changed:
            ran.append(job)
            changed.notify_all()
        return result

    survey = TickSurvey(fleet.settings, handler, deadline)
    worker = Worker(fleet.settings, Parts(run, TargetStatusReader(fleet.settings, handler.records), handler.requests, look=survey.look))
    thread = threading.Thread(target=worker.serve, args=(path,))
    thread.start()
    try:
        yield worker, ran, changed
    finally:
        worker.stop()
        thread.join(PATIENCE)
        assert not thread.is_alive()


def _odd(fleet: Recorded) -> set[str]:
    """Make some targets need a run, each for another reason; return their names."""
    commit, digest = next(iter(fleet.commits.values())), "e" * 64
    parts: dict[str, dict[str, Any]] = {
        "t1": {"attempt": Attempt(commit, digest, digest, TOKEN, soon(-60))},
        "t2": {"status": RunStatus("failed", soon(-60), next_try=soon(-1), failures=1)},
        "t3": {"status": RunStatus("failed", soon(-60), next_try=soon(900), failures=1)},
        "t4": {"pin": Pin("b" * 40, digest, "ada"), "commit": "b" * 40},
        "t5": {"settings": digest},
        "t6": {"requested": NamedRequest("ada", soon(-60))},
        "t7": {"drift_due": soon(-1)},
        "t8": {"status": RunStatus("held", soon(-60)), "held": HeldPlan("h1", (), (), commit, digest, digest, soon(-60))},
        "t9": {"status": RunStatus("pruning", soon(-60))},
    }
    for name, changed in parts.items():
        fleet.change(name, **changed)
    store = fleet.handler().store(fleet.target("t10"))
    found = store.read()
    fleet.handler().objects(fleet.target("t10")).delete("ConfigMap", "anneal-system", "anneal-t10", uid=found.uid)
    return {*parts, "t10"}


def test_only_targets_not_certainly_at_the_head_get_a_run_of_a_tick(host: Host, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    fleet = recorded(host, COUNT, REPOSITORIES, ("east",), interval=100.0)
    odd = _odd(fleet)
    moved = min(fleet.works)
    fleet.works[moved].write(f"{PATH}/made.json", MANIFEST.replace("value", "another")).commit("Second")
    fleet.works[moved].push()
    followers = {target.name for target in fleet.settings.targets if target.repository.url == moved}
    fleet.forget()
    with working(fleet, tmp_path / "s", deadline=2 * PATIENCE) as (worker, ran, changed):
        with changed:
            assert changed.wait_for(lambda: len({job.target for job in ran}) >= len(odd | followers), PATIENCE), len(ran)
        until(lambda: any(record.getMessage() == "survey" for record in caplog.records))  # it may have counted the quiet ones last
        text = worker.answers.answer({"ask": "metrics"})["text"]
    assert {job.target for job in ran} == odd | followers
    assert {job.trigger for job in ran} == {"tick"}
    counted = [line for line in text.splitlines() if line.startswith("anneal_runs_total") and 'outcome="unchanged"' in line]
    quiet = {f"t{number}" for number in range(COUNT)} - odd - followers
    assert quiet <= {line.split('target="')[1].split('"')[0] for line in counted}
    assert all(f'anneal_target_last_success_timestamp_seconds{{target="{name}"}}' in text for name in quiet)
    surveys = [record.fields for record in caplog.records if record.message == "survey"]  # type: ignore[attr-defined]  # `extra` sets it
    assert [(each["targets"], each["quiet"], each["runs"]) for each in surveys] == [(COUNT, len(quiet), len(odd | followers))]
    assert not [record for record in caplog.records if record.message == "run" and record.fields["target"] in quiet]  # type: ignore[attr-defined]  # likewise


def test_a_drift_run_due_after_a_lease_takeover_is_scheduled_by_the_survey(host: Host, tmp_path: Path) -> None:
    """The drift run that must follow a takeover one Lease later is in the record: a worker that starts meanwhile finds it there."""
    fleet = recorded(host, 3, 1, ("east",), interval=3600.0)
    fleet.change("t1", drift_due=soon(2))
    with working(fleet, tmp_path / "s") as (_, ran, changed), changed:
        assert changed.wait_for(lambda: ran, PATIENCE)
        assert {job.target for job in ran} == {"t1"}


def test_a_run_that_ends_during_a_survey_is_scheduled_by_its_own_result(host: Host) -> None:
    fleet = recorded(host, 2, 1, ("east",))
    counted: list[str] = []

    survey, ended = TickSurvey(fleet.settings, fleet.handler()), threading.Event()

    def look(jobs: Sequence[Job], report: Report) -> SurveyTally:
        ticks.ended("t0", 0.0)
        tally = survey.look(jobs, report)
        ended.set()
        return tally

    ticks = Ticks(fleet.settings, look, unasked, lambda job, _: counted.append(job.target), unasked)
    ticks.due(time.monotonic())
    assert ended.wait(PATIENCE)
    assert counted == ["t1"]


def unasked(*_: object) -> None:
    raise AssertionError("nothing is to be done")


@pytest.mark.usefixtures("impatient")
def test_clusters_that_hang_delay_their_own_targets_alone(host: Host) -> None:
    names = [f"c{number}" for number in range(50)]
    fleet = recorded(host, 100, 2, names)
    released = threading.Event()

    def hangs() -> None:
        assert released.wait(PATIENCE)
        raise urllib3.exceptions.ProtocolError("gone")

    hung = set(names[:10])
    for name in hung:
        fleet.places[name].hold = hangs
    theirs = {target.name for target in fleet.settings.targets if target.cluster.kubeconfig and target.cluster.kubeconfig.file in hung}
    told = Told()
    survey = threading.Thread(target=TickSurvey(fleet.settings, fleet.handler(), deadline=2 * PATIENCE).look, args=(fleet.ticks(), told))
    survey.start()
    told.wait(80)
    assert (len(told.quiet), told.runs) == (80, set())
    released.set()
    told.wait(100)
    survey.join(PATIENCE)
    assert told.runs == theirs
    assert {told.mute[name] for name in theirs} == {"cluster"}


def test_a_push_finds_its_way_although_most_clusters_hang(host: Host, tmp_path: Path) -> None:
    """Twenty of twenty-five swallow what they are sent: their targets' runs, two a cluster, would fill all threads twice."""
    names = [f"c{number}" for number in range(25)]
    fleet = recorded(host, 50, 1, names, interval=20.0)
    released = threading.Event()
    for name in names[:20]:
        fleet.places[name].hold = lambda: assert_released(released)
    with working(fleet, tmp_path / "s", deadline=1.0) as (worker, ran, changed):
        until(lambda: worker._queue.running and worker._queue.waiting + worker._queue.running >= 40)
        worker._accept(Work.of(Job("t24", "push", asked=time.monotonic())))
        with changed:
            found = changed.wait_for(lambda: "t24" in {job.target for job in ran}, PATIENCE)
        released.set()
        assert found, "it waits behind runs of clusters that hang"


def test_a_cluster_silent_until_the_surveys_deadline_leaves_its_targets_to_their_runs(host: Host) -> None:
    fleet = recorded(host, 6, 1, ("east", "west"))
    released = threading.Event()
    fleet.places["west"].hold = lambda: assert_released(released)
    try:
        survey = TickSurvey(fleet.settings, fleet.handler(), deadline=1.0)
        surveys = [(survey.look(fleet.ticks(), told := Told()).late, told) for _ in range(2)]
    finally:
        released.set()
    for late, told in surveys:
        assert told.runs >= {"t1", "t3", "t5"}, "where the machine is busy, those of the other place are late, too"
        assert late >= len(told.runs)
        assert told.mute["t1"] == "cluster"


def broken() -> None:
    raise RecursionError("a mistake of ours")


def test_an_unexpected_exception_of_a_survey_leaves_its_targets_to_their_runs(host: Host, caplog: pytest.LogCaptureFixture) -> None:
    fleet = recorded(host, 6, 1, ("east", "west"))
    fleet.places["west"].hold = broken
    tally = TickSurvey(fleet.settings, fleet.handler(), deadline=PATIENCE).look(fleet.ticks(), told := Told())
    assert (tally.late, told.runs, len(told.quiet)) == (0, {"t1", "t3", "t5"}, 3)
    assert set(told.mute.values()) <= {""}
    assert "a part of a survey failed" in caplog.text


def assert_released(released: threading.Event) -> None:
    assert released.wait(PATIENCE)


def test_a_git_host_that_fails_leaves_its_targets_to_their_runs(host: Host, tmp_path: Path) -> None:
    fleet = recorded(host, 4, 2, ("east",))
    with Host(tmp_path / "dead") as dead:
        gone = replace(fleet.settings.targets[0].repository, url=dead.url_of("gone"))
    targets = tuple(replace(target, repository=gone) if target.name == "t1" else target for target in fleet.settings.targets)
    fleet.settings = replace(fleet.settings, targets=targets)
    fleet.commits[gone.url] = "a" * 40
    state = fleet.state(fleet.target("t1"))
    fleet.change("t1", repository=state.repository, settings=state.settings, commit=state.commit)
    TickSurvey(fleet.settings, fleet.handler()).look(fleet.ticks(), told := Told())
    assert (told.runs, told.mute["t1"]) == ({"t1"}, "git host")


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who only reads asks a cluster that breaks off once more, and no longer."""
    monkeypatch.setattr("handler.app.connections.PATIENCE", 0.2)


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("broken", ["list", "uid"])
def test_a_cluster_that_breaks_off_leaves_its_targets_to_their_runs(host: Host, broken: str) -> None:
    fleet = recorded(host, 2, 1, ("east",))
    place: Place = fleet.places["east"]

    def refuses() -> None:
        path = place.calls[-1].asked.path
        if path.endswith("/configmaps" if broken == "list" else "/kube-system"):
            raise urllib3.exceptions.ProtocolError("gone")

    place.hold = refuses
    TickSurvey(fleet.settings, fleet.handler()).look(fleet.ticks(), told := Told())
    assert told.runs == {"t0", "t1"}
