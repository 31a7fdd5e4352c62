"""What `status` shows of health: what is waited for, and what isn't healthy, each once."""

from __future__ import annotations

from dataclasses import replace

from handler.app.target_row import TargetRow
from handler.cli.follow_up_commands import NOTHING_GIVEN
from handler.cli.target_page import _phase, _rows, _status_rows, run_text
from handler.config.git_settings import Repository
from handler.config.settings import Target
from handler.state.record import Progress, Run, RunStatus, State, StepRecord, WaitingFor
from handler.state.record_format import stamp
from tests.unit.rows import each_row

NOW = 1_800_000_000.0
SHA = "a" * 40
TARGET = Target("shop", Repository("https://git.example.com/acme/shop.git"), ("shop",))
API, WEB = "Deployment/shop/api: 0 of 1 replica available", "Deployment/shop/web: 1 of 3 replicas available"


def rows(waiting: WaitingFor | None, status: RunStatus) -> list[tuple[str, str]]:
    """Return the rows of health and failure."""
    state = State("shop", "default", "uid", TARGET.repository.url, waiting=waiting, status=status)
    return [row for row in _rows(TargetRow(TARGET, NOW, state=state), NOTHING_GIVEN) if row[0] in ("", "waiting", "unhealthy", "failing")]


def test_a_wait_says_for_what_since_when_and_what_is_missing() -> None:
    found = rows(WaitingFor(SHA, "everything", stamp(NOW - 90)), RunStatus("waiting", unhealthy=(API, WEB)))
    assert found == [("waiting", "for everything, 1 min so far"), ("unhealthy", f"| {API}"), ("", f"| {WEB}")]


def test_unhealthy_objects_named_by_the_failure_arent_listed_twice() -> None:
    status = RunStatus("failed", message=f"deploy/api.yaml:1: {API}", unhealthy=(API, WEB))
    found = rows(WaitingFor(SHA, "everything", stamp(NOW - 90), over=True), status)
    assert found[0] == ("waiting", "for everything, 1 min so far; its time is over, so each tick looks once more")
    assert found[1:] == [("unhealthy", f"| {WEB}"), ("failing", f"| deploy/api.yaml:1: {API}")]


def test_a_failed_wait_before_its_timeout_is_not_shown_as_waiting() -> None:
    status = RunStatus("failed", message=API, who="author")
    assert rows(WaitingFor(SHA, "everything", stamp(NOW - 90)), status) == [("failing", f"| {API}")]


@each_row(
    ("status", "said"),
    [
        (RunStatus("applied", stamp(NOW - 7200)), "applied"),
        (RunStatus("failed", stamp(NOW - 7200)), "failed for 2 h"),
        (RunStatus(), "new"),
    ],
)
def test_how_long_it_is_applied_is_told_of_no_commit_that_came_later(status: RunStatus, said: str) -> None:
    assert _phase(TargetRow(TARGET, NOW, state=State("shop", "default", "uid", TARGET.repository.url, status=status))) == said


def test_a_rollout_says_where_it_stands() -> None:
    steps = (StepRecord("roll", "api", "Deployment/shop/api", "Canary", stamp(NOW - 90), share=25),)
    known = Progress(SHA, "d" * 64, stamp(NOW - 120), steps=steps)
    rolling = State("shop", "default", "uid", "url", status=RunStatus("rolling-out", stamp(NOW - 60)), rollout=known)
    row = TargetRow(TARGET, NOW, state=rolling)
    assert _phase(row) == "rolling out for 2 min: roll, api: Canary Deployment/shop/api at 25 %"
    begins = replace(known, outcome="done", steps=())
    assert _phase(replace(row, state=replace(rolling, rollout=begins))) == "rolling out for 1 min", "of an older set"


def test_lingering_objects_are_listed_in_the_phase_pruning() -> None:
    status = RunStatus("pruning", stamp(NOW - 60), message="ConfigMap/shop/a: is not gone yet\nConfigMap/shop/b: is not gone yet")
    found = [*_status_rows(TargetRow(TARGET, NOW), status)]
    assert found == [("pruning", "| ConfigMap/shop/a: is not gone yet"), ("", "| ConfigMap/shop/b: is not gone yet")]


def test_one_failure_is_singular() -> None:
    found = dict(_status_rows(TargetRow(TARGET, NOW), RunStatus("failed", failures=1, next_try=stamp(NOW + 15))))
    assert found["next try"] == "in 15 s, after 1 failure"


def test_a_refused_request_says_why_for_nothing_else_of_the_record_does() -> None:
    seen = "target shop: can't approve h1; nothing is held; anneal status shop"
    refused = Run("shop.1", "replay", "refused", stamp(NOW - 60), actor="ann", duration=0.2, message=seen)
    assert run_text(refused, NOW) == f"refused, replay by ann 1 min ago, 0.2 s: “{seen}”"
    assert run_text(replace(refused, trigger="drift", actor=""), NOW) == f"refused, clock 1 min ago, 0.2 s: “{seen}”"


def test_more_than_ten_unhealthy_objects_are_counted() -> None:
    found = rows(None, RunStatus("waiting", unhealthy=tuple(f"Deployment/shop/w{number}: is not there" for number in range(12))))
    assert (len(found), found[-1]) == (11, ("", "and 2 more; -o json has all"))
