"""What a target waits for whose dependency follows the same branch at another pace: by the commits that other targets have proven."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from handler.config.settings import Target
from handler.model.result import Outcome
from tests.fakes.engine import SHOP
from tests.unit.engine.promoting_targets import MINUTE, SOAK, Line, following

pytestmark = pytest.mark.slow


def target(name: str, **more: Any) -> Target:
    return Target(name, SHOP, (name,), path=name, **more)


STAGED = (target("infra-staging"), target("apps-staging", depends_on=("infra-staging",)))
INFRA = following("infra-prod", "infra-staging")
APPS = following("apps-prod", "apps-staging", depends_on=("infra-prod",))


def deployed(*targets: Target) -> Line:
    """Let all of these be on the first commit."""
    line = Line((*STAGED, *targets))
    line.commit("1")
    staged(line)
    line.later(SOAK)
    for each in targets:
        line.done(each.name)
    return line


def staged(line: Line) -> None:
    for each in STAGED:
        line.done(each.name)


def ill_for_a_moment(line: Line, name: str) -> None:
    line.later(10 * MINUTE)
    line.fell_ill(name)
    line.later(MINUTE)
    line.fell_ill(name, "healthy")
    line.later(19 * MINUTE)


def test_one_that_is_proven_later_comes_first_all_the_same() -> None:
    line = deployed(INFRA, APPS)
    first, second = line.state("apps-prod").commit, line.commit("2")
    staged(line)
    ill_for_a_moment(line, "infra-staging")
    line.done("infra-prod")
    assert line.state("infra-prod").commit == first
    waits = line.run("apps-prod")
    assert (waits.outcome, line.state("apps-prod").commit, line.value("apps-prod")) == (Outcome.WAITING, first, "1")
    (problem,) = waits.problems
    assert problem.message == f"it has {first[:12]}, and {second[:12]} comes first, or something newer"
    assert problem.fix == "anneal promote infra-prod"
    line.later(11 * MINUTE)
    line.done("infra-prod")
    line.done("apps-prod")
    assert (line.state("infra-prod").commit, line.state("apps-prod").commit, line.value("apps-prod")) == (second, second, "2")


def test_one_that_has_something_newer_is_ready_and_is_not_waited_for_longer() -> None:
    line = deployed(INFRA, APPS)
    second = line.commit("2")
    staged(line)
    line.later(SOAK)
    third = line.commit("3")
    staged(line)
    line.later(MINUTE)
    line.done("infra-prod", "oneoff", promote=True)
    assert line.state("infra-prod").commit == third
    line.done("apps-prod")
    assert line.state("apps-prod").commit == second


def test_one_that_follows_the_branch_is_ready_with_what_is_newer_than_what_was_promoted() -> None:
    line = deployed(target("infra-prod"), APPS)
    second = line.commit("2")
    staged(line)
    line.later(SOAK)
    third = line.commit("3")
    line.done("infra-prod")
    line.done("apps-prod")
    assert (line.state("infra-prod").commit, line.state("apps-prod").commit) == (third, second)


def test_while_one_waits_a_commit_that_changes_nothing_for_it_is_recorded() -> None:
    line = deployed(target("infra-prod"), replace(target("apps-prod"), depends_on=("infra-prod",)))
    second = line.commit("2")
    assert (line.run("apps-prod").outcome, line.state("apps-prod").status.phase) == (Outcome.WAITING, "waiting")
    line.done("infra-prod")
    line.fell_ill("infra-prod")
    assert line.run("apps-prod").outcome is Outcome.WAITING
    back = line.commit("1")  # what it had, and has still
    line.done("apps-prod")
    state = line.state("apps-prod")
    assert (state.commit, state.awaits, state.status.phase, line.value("apps-prod")) == (back, None, "applied", "1")
    assert second != back


def test_one_that_is_promoted_is_waited_for_by_one_that_follows_the_branch() -> None:
    line = deployed(INFRA, replace(target("apps-prod"), depends_on=("infra-prod",)))
    first, second = line.state("apps-prod").commit, line.commit("2")
    staged(line)
    assert line.run("apps-prod").outcome is Outcome.WAITING
    assert line.state("apps-prod").commit == first
    line.later(SOAK)
    line.done("infra-prod")
    line.done("apps-prod")
    assert line.state("apps-prod").commit == second
