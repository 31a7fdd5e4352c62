"""A rollout as people read it: the tree, one line of it, and the lines of `--watch`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest

from handler.cli import rollout
from handler.cli.output import Output
from handler.cli.rollout_lines import now_at, step_line, summed, tree
from handler.state.record import Attempt, Pin, Progress, Stalled, State, StepRecord, Suspend
from handler.state.record_format import seconds_of, stamp
from tests.unit.rows import each_row
from tests.unit.state.samples import NOON, TOKEN, blank, sha

NOW = seconds_of(NOON) + 90
MIGRATE = StepRecord("migrate", "db", "Job/shop/db", "Recreate", NOON, stamp(NOW - 60), "done")
LOST = replace(MIGRATE, step="cache", outcome="failed", message="Job/shop/cache: OOMKilled\nits log: no memory")
API = StepRecord("roll out", "api", "Deployment/shop/api", "CreateOrUpdate", stamp(NOW - 60), message="1 of 3 replicas updated")
WEB = StepRecord("roll out", "web", "Deployment/shop/web", "Canary", "")
UNDER_WAY = Progress(sha(), "d" * 64, NOON, steps=(MIGRATE, API, WEB))
DONE = replace(UNDER_WAY, finished=stamp(NOW), outcome="done", steps=(MIGRATE, LOST, replace(API, finished=stamp(NOW), outcome="done")))


def test_the_tree_has_each_group_and_step_with_its_time_and_what_it_said() -> None:
    assert [line for line, _ in tree(UNDER_WAY, NOW)] == [
        "rollout of aaaaaaaaaaaa: under way for 1 min",
        "  migrate",
        "    + db   Recreate Job/shop/db: done in 30 s, 1 min ago",
        "  roll out",
        "    > api  CreateOrUpdate Deployment/shop/api: under way for 1 min",
        "           | 1 of 3 replicas updated",
        "    . web  Canary Deployment/shop/web: pending",
    ]


def test_a_step_that_is_called_by_its_object_names_it_once() -> None:
    hook = replace(MIGRATE, group="PreSync", step="Job/shop/db", action="run")
    assert [line for line, _ in tree(replace(UNDER_WAY, steps=(hook, API)), NOW)][2] == "    + Job/shop/db  run: done in 30 s, 1 min ago"
    assert step_line(hook) == "PreSync: run Job/shop/db done in 30 s"


def test_a_failed_step_is_seen_without_colours() -> None:
    lines = list(tree(replace(UNDER_WAY, finished=stamp(NOW), outcome="failed", steps=(MIGRATE, LOST, WEB)), NOW))
    assert lines[0] == ("rollout of aaaaaaaaaaaa: failed in 1 min, 0 s ago", "bad")
    assert ("    ! cache  Recreate Job/shop/db: failed in 30 s, 1 min ago", "bad") in lines
    assert [line.strip() for line, style in lines if style == "dim"][:2] == ["| Job/shop/cache: OOMKilled", "| its log: no memory"]


@each_row(
    ("known", "said"),
    [
        (UNDER_WAY, "1 of 3 steps for 1 min; now roll out, api"),
        (replace(UNDER_WAY, steps=(API,)), "0 of 1 step for 1 min; now roll out, api"),
        (replace(DONE, steps=(MIGRATE,)), "done, 1 step in 1 min, 0 s ago"),
        (DONE, "done, 3 steps, 1 of them failed and passed over in 1 min, 0 s ago"),
        (replace(DONE, outcome="failed"), "failed at migrate, cache, 0 s ago"),
    ],
)
def test_a_rollouts_summary_line(known: Progress, said: str) -> None:
    assert summed(known, NOW) == said


def test_the_outcome_of_a_step_is_one_line_whatever_its_message() -> None:
    assert step_line(LOST) == "migrate, cache: Recreate Job/shop/db failed in 30 s: “Job/shop/cache: OOMKilled\\nits log: no memory”"
    assert step_line(WEB) == "roll out, web: Canary Deployment/shop/web pending"


def test_a_canary_that_stands_says_its_share_and_one_that_has_ended_doesnt() -> None:
    stands = replace(WEB, started=stamp(NOW - 60), share=25)
    lines = [line for line, _ in tree(replace(UNDER_WAY, steps=(stands,)), NOW)]
    assert lines[2] == "    > web  Canary Deployment/shop/web: under way at 25 % for 1 min"
    assert step_line(stands) == "roll out, web: Canary Deployment/shop/web under way at 25 %"
    ended = replace(stands, finished=stamp(NOW), outcome="done", share=100)
    assert step_line(ended) == "roll out, web: Canary Deployment/shop/web done in 1 min"
    assert now_at(replace(UNDER_WAY, steps=(MIGRATE, stands))) == "roll out, web: Canary Deployment/shop/web at 25 %"
    assert now_at(replace(UNDER_WAY, steps=(API, stands, API))) == "roll out, api: CreateOrUpdate Deployment/shop/api and 2 more steps"
    assert now_at(DONE) == ""


# --- watching
def test_an_outcome_that_only_another_version_knows_is_shown_as_it_is() -> None:
    strange = Progress(sha(), "d" * 64, NOON, NOON, "odd", (StepRecord("one", "a", "ConfigMap/shop/a", "Act", NOON, NOON, "odder"),))
    lines = [text for text, _ in tree(strange, seconds_of(NOON))]
    assert lines[0].startswith(f"rollout of {sha()[:12]}: odd in 0 s")
    assert lines[2].startswith("    ? a  Act ConfigMap/shop/a: odder in 0 s")


def opened(known: Progress | None, commit: str = sha(), **more: Any) -> State:
    return replace(blank(attempt=Attempt(commit, "b" * 64, "c" * 64, TOKEN, NOON), rollout=known), **more)


def reading(*states: State) -> Callable[[], State | None]:
    left: Iterator[State] = iter(states)
    return lambda: next(left)


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rollout, "_EVERY", 0.0)


@pytest.mark.usefixtures("at_once")
def test_watching_tells_each_transition_once_and_ends_with_the_record(capsys: pytest.CaptureFixture[str]) -> None:
    ended = replace(UNDER_WAY, finished=stamp(NOW), outcome="done", steps=(MIGRATE, replace(API, finished=stamp(NOW), outcome="done")))
    inside = replace(UNDER_WAY, steps=(MIGRATE, replace(API, mark="phase-2", stood=(Stalled("5f" * 6, NOON),))))  # no line
    states = [opened(None), opened(UNDER_WAY), opened(UNDER_WAY), opened(inside), replace(opened(ended), attempt=None)]
    last = rollout._watched(Output(), reading(*states))
    assert last == states[-1]
    lines = capsys.readouterr().out.splitlines()
    assert lines[:3] == [
        "migrate, db: Recreate Job/shop/db done in 30 s",
        "roll out, api: CreateOrUpdate Deployment/shop/api under way: “1 of 3 replicas updated”",
        "roll out, api: CreateOrUpdate Deployment/shop/api done in 1 min: “1 of 3 replicas updated”",
    ]
    assert lines[3].startswith("rollout of aaaaaaaaaaaa: done in 1 min")
    assert len(lines) == 4
    assert "\x1b" not in "".join(lines)


@pytest.mark.usefixtures("at_once")
def test_watching_ends_where_a_pause_holds_everything_up() -> None:
    paused = opened(UNDER_WAY, suspend=Suspend("ada", "maintenance"))
    assert rollout._watched(Output(), reading(opened(UNDER_WAY), paused)) == paused
    assert rollout._code(paused, watch=True) == 4


@each_row(
    ("state", "goes_on"),
    [
        (opened(None), True),
        (opened(UNDER_WAY), True),
        (opened(replace(DONE, commit=sha("b"))), True),
        (opened(replace(DONE, outcome="failed")), False),
        (replace(opened(DONE), attempt=None), False),
        (blank(), False),
    ],
)
def test_only_a_rollout_under_way_is_watched(state: State, goes_on: bool) -> None:
    assert rollout.goes_on(state) is goes_on


def test_a_failed_rollout_is_the_commands_failure() -> None:
    assert rollout._code(opened(replace(DONE, outcome="failed")), watch=False) == 1
    assert rollout._code(opened(UNDER_WAY), watch=False) == 0
    assert rollout._code(blank(), watch=True) == 0


def test_a_rollback_of_a_failed_rollout_is_told_once_it_has_ended() -> None:
    pin = Pin(sha("a"), by="anneal", reason="rollback: bbbbbbbbbbbb failed: why", automatic=True)
    there = replace(blank(), commit=sha("a"), rollout=DONE, pin=pin)
    assert (rollout.gone_back(there), rollout._code(there, watch=True)) == (pin.reason, 1)
    under_way = replace(opened(UNDER_WAY), commit=sha("a"), pin=pin)
    by_hand = replace(there, pin=replace(pin, automatic=False))
    assert [rollout.gone_back(state) for state in (under_way, by_hand, blank())] == ["", "", ""]
