"""What is printed of a run that waits where no moving line is seen."""

from __future__ import annotations

import threading
from dataclasses import replace
from types import SimpleNamespace

import pytest

from handler.cli.output import Output
from handler.cli.run_job import run
from handler.cli.session import Session
from handler.engine.run.transitions import phase
from handler.feedback.cli import AGAIN, EVERY, MOST, RunLines
from handler.model.event import Job
from handler.model.result import Outcome, Result
from handler.model.run_event import RunEvent, RunPhase
from handler.state.record import Attempt, Progress, RunStatus, State, StepRecord
from tests.patience import PATIENCE
from tests.unit.engine.in_memory_cluster import ROLLED, InMemoryCluster, group, step
from tests.unit.feedback.recorded_waits import API, WEB, waiting
from tests.unit.state.samples import NOON, TOKEN, sha

pytestmark = pytest.mark.slow


def stepping(*steps: StepRecord) -> State:
    attempt = Attempt(sha(), "b" * 64, "c" * 64, TOKEN, NOON)
    return replace(waiting(), waiting=None, attempt=attempt, rollout=Progress(sha(), "d" * 64, NOON, steps=steps))


class Teller:
    """A `RunLines` whose clock and lines are the test's."""

    def __init__(self) -> None:
        self.now = 100.0
        self.lines: list[str] = []
        self._telling = RunLines(self.lines.append, clock=lambda: self.now)

    def __call__(self, state: State, after: float = 0.0) -> list[str]:
        """Return what is said of a record that comes `after` seconds."""
        self.now += after
        self.lines.clear()
        self._telling.hear(phase(state, "shop.1"))
        self._telling.look()
        return [*self.lines]


@pytest.fixture
def tell() -> Teller:
    return Teller()


def test_a_wait_has_a_line_when_it_begins_and_when_something_else_is_missing(tell: Teller) -> None:
    assert tell(waiting()) == ["shop waits for everything"]
    assert tell(waiting(API, WEB)) == [f"shop waits for everything: {API}; {WEB}"]
    assert tell(waiting(API, WEB), EVERY) == []
    assert tell(waiting(WEB), EVERY) == [f"shop waits for everything: {WEB}"]


def test_an_unchanged_wait_is_repeated_with_how_long_it_has_lasted(tell: Teller) -> None:
    assert tell(waiting(API)) != []
    assert tell(waiting(API), AGAIN - 1) == []
    assert tell(waiting(API), 1) == [f"shop waits for everything, {AGAIN:.0f} s so far: {API}"]
    assert tell(waiting(API), AGAIN - 1) == []
    assert tell(waiting(API), 1) == [f"shop waits for everything, {2 * AGAIN:.0f} s so far: {API}"]


def test_a_deletion_names_the_finalizers_that_hold_it(tell: Teller) -> None:
    held = "ConfigMap/shop/old: is not gone yet; finalizers: acme.io/hold (the controller of acme.io)"
    pruning = replace(stepping(), status=RunStatus("pruning", message=held), rollout=None)
    assert tell(pruning) == [f"shop waits for deletions: {held}"]
    assert tell(replace(pruning, attempt=None)) == [], "nobody waits any more"


def test_a_wait_that_changes_all_the_time_has_a_line_every_ten_seconds(tell: Teller) -> None:
    assert tell(waiting(API)) != []
    assert tell(waiting(WEB), EVERY / 2) == []
    assert tell(waiting(WEB), EVERY / 2) == [f"shop waits for everything: {WEB}"]


def test_a_line_names_a_few_objects(tell: Teller) -> None:
    (line,) = tell(waiting(*(f"Deployment/shop/w{number}: is not there" for number in range(12))))
    assert line.endswith("Deployment/shop/w2: is not there; and 9 more")


def test_a_wait_that_ended_has_no_line_and_a_new_one_has(tell: Teller) -> None:
    assert tell(waiting(API)) != []
    ended = replace(waiting(API), waiting=None)
    assert tell(ended) == tell(replace(waiting(API), waiting=replace(waiting().waiting, over=True))) == []  # type: ignore[type-var]  # it has one
    assert tell(waiting(API)) == [f"shop waits for everything: {API}"]


def test_a_rollout_tells_of_its_steps_under_way(tell: Teller) -> None:
    api = StepRecord("roll out", "api", "Deployment/shop/api", "CreateOrUpdate", NOON, message="1 of 3 replicas updated\nslowly")
    done, later = replace(api, step="db", finished=NOON, outcome="done"), replace(api, step="web", started="")
    assert tell(stepping(done, api, later)) == ["shop waits for roll out, api: 1 of 3 replicas updated slowly"]
    many = [replace(api, step=f"s{number}") for number in range(1000)]
    assert len(tell(stepping(*many))) == MOST


def test_lines_of_several_targets_name_them(tell: Teller) -> None:
    assert tell(waiting()) == ["shop waits for everything"]
    assert tell(replace(waiting(), target="blog")) == ["blog waits for everything"]


# --- in a command
def test_a_run_announces_each_wait_that_its_record_has() -> None:
    fake, seen = InMemoryCluster(), list[RunEvent]()
    fake.push({"web": "1"}, group("all", step("CreateOrUpdate", "web")))
    handler = fake.handler(ROLLED)
    handler._options = replace(handler._options, announce=seen.append)
    assert handler.run(Job("shop", "push")).outcome is Outcome.APPLIED
    phases = [event for event in seen if isinstance(event, RunPhase)]
    assert ("shop", "all, web") in {(event.target, each.what) for event in phases for each in event.waits}
    assert phases[-1].waits == ()


@pytest.mark.parametrize("as_json", [False, True])
def test_a_command_without_a_terminal_prints_its_waits_on_standard_error(
    as_json: bool, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    session, said = Session(Output(as_json=as_json), {}), threading.Event()
    note = session.output.note

    def heard(text: str) -> None:
        note(text)
        said.set()

    def run_one(_job: Job, _stop: threading.Event) -> Result:
        session.events.announce(phase(waiting(API), "shop.1"))
        assert said.wait(PATIENCE)
        return Result("shop", Outcome.APPLIED)

    monkeypatch.setattr(session.output, "note", heard)
    session.__dict__ |= {"handler": SimpleNamespace(run=run_one), "sandbox": SimpleNamespace(start=lambda: None)}
    assert run(session, Job("shop", "oneoff"), "applying shop").outcome is Outcome.APPLIED
    session._sandbox = None
    printed = capsys.readouterr()
    assert (printed.out, printed.err) == ("", f"shop waits for everything: {API}\n")
    session.events.announce(phase(waiting(WEB), "shop.1"))  # no thread listens any more
    assert "run lines" not in {thread.name for thread in threading.enumerate()}
