"""Ticks and overviews of targets that follow others: what is quiet, when it is looked at again, and what is shown of what it waits for."""

from __future__ import annotations

from dataclasses import replace

import pytest

from handler.app.overview import Overview
from handler.app.pause import suspend
from handler.app.target_row import TargetRow
from handler.app.tick_survey import TickSurvey
from handler.cli import next_step, status_table, target_page
from handler.cli.follow_up_commands import GivenFlags
from handler.config.settings import Settings
from handler.model.event import Job
from handler.model.result import Outcome, Result
from handler.state.record import Suspend
from tests.unit.engine.promoting_targets import MINUTE, PROD, SOAK, STAGING, Line, following, promoted_once

pytestmark = pytest.mark.slow


@pytest.fixture
def line() -> Line:
    return promoted_once()


def surveyed(line: Line, *names: str) -> dict[str, Result | None]:
    """Survey ticks; None: the target gets its run."""
    found: dict[str, Result | None] = {}
    survey = TickSurvey(Settings(targets=line.targets), line.handler)
    survey.look([Job(name, "tick") for name in names], lambda job, result, _: found.update({job.target: result}))
    return found


def row_of(line: Line, name: str = "prod") -> TargetRow:
    overview = Overview(Settings(targets=line.targets), line.handler)
    (row,) = overview.look([line.handler.target(name)])
    return row


def test_a_follower_is_quiet_while_nothing_newer_is_proven_and_gets_its_run_then(line: Line) -> None:
    result = surveyed(line, "prod")["prod"]
    assert result
    assert (result.outcome, result.next_try) == (Outcome.UNCHANGED, 0.0)
    line.commit("2")
    line.done("staging")
    line.later(MINUTE)
    result = surveyed(line, "prod")["prod"]
    assert result
    assert result.next_try == line.now - MINUTE + SOAK
    line.later(SOAK - MINUTE)
    assert surveyed(line, "prod")["prod"] is None


def test_what_a_summary_cannot_tell_gets_its_run(line: Line) -> None:
    for number in range(4):  # more soaks than a summary shows
        line.commit(f"x{number}")
        line.done("staging")
        line.later(MINUTE)
    assert surveyed(line, "prod")["prod"] is None
    assert line.done("prod").outcome is Outcome.UNCHANGED


def test_a_survey_says_quiet_only_where_a_run_ends_unchanged(line: Line) -> None:
    for step in ("push", "wait", "ill", "well", "wait", "push", "wait", "rollback", "wait", "unpin", "wait", "wait"):
        if step == "push":
            line.commit(str(line.now))
            line.done("staging")
        elif step in ("ill", "well"):
            line.fell_ill("staging", "degraded" if step == "ill" else "healthy")
        elif step == "rollback":
            line.run("staging", "oneoff", rollback=True)
        elif step == "unpin":
            line.done("staging", "oneoff", unpin=True)
        line.later(SOAK / 2)
        quiet = surveyed(line, "prod")["prod"]
        before = line.state("prod").commit
        line.done("prod")
        moved = line.state("prod").commit != before
        assert not (quiet and moved), step


def test_followers_are_judged_by_one_list_and_no_record_is_read(line: Line) -> None:
    asked: list[str] = []
    line.before = lambda call: asked.append(call.asked.path)
    surveyed(line, "prod")
    assert len([path for path in asked if path.endswith("/configmaps")]) == 1
    assert not [path for path in asked if path.endswith("/anneal-staging")]


def test_a_record_that_holds_a_pause_alone_has_proven_nothing() -> None:
    line = Line()
    suspend(line.handler, STAGING, Suspend("ada", "freeze"))
    row = row_of(line)
    assert row.newest
    assert [str(each) for each in row.newest.awaited] == ["staging: has proven nothing yet; it has recorded nothing"]


def test_status_shows_the_promotable_commit_as_the_newest_and_what_the_next_one_waits_for(line: Line) -> None:
    second = line.commit("2")
    row = row_of(line)
    assert (row.is_behind, row.newest and row.newest.awaited) == (False, ()), "git is ahead, and that isn't what it follows"
    line.done("staging")
    line.later(MINUTE)
    row = row_of(line)
    assert row.newest
    assert (row.is_behind, [each.target for each in row.newest.awaited]) == (False, ["staging"])
    (shown,) = [text for label, text in target_page._head_rows(row, GivenFlags()) if label == "promotion"]
    assert shown.startswith(f"staging: has kept {second[:12]} healthy for 1m of 30m, until ")
    assert status_table.facts(row)["promotion"][0]["target"] == "staging"
    step = next_step.next_step(replace(row, state=line.state("prod")), GivenFlags())
    assert step.command == "anneal apply prod"
    line.later(SOAK)
    row = row_of(line)
    assert row.newest
    assert (row.is_behind, row.newest.commit) == (True, second)
    assert dict(target_page._head_rows(row, GivenFlags()))["proven"].startswith(second[:12])


def test_a_target_that_never_ran_says_what_it_waits_for() -> None:
    line = Line()
    line.commit("1")
    line.done("staging")
    row = row_of(line)
    assert row.newest
    assert "has kept" in str(row.newest.awaited[0])
    assert next_step.next_step(row).command == "anneal promote prod"


def test_a_chain_waits_for_its_own_link_only() -> None:
    line = Line((STAGING, PROD, following("last", "prod")))
    first = line.commit("1")
    line.done("staging")
    line.later(SOAK)
    line.done("prod")
    assert line.run("last").outcome is Outcome.WAITING
    line.later(SOAK)
    assert line.on("last") == first
