"""What a follower waits for says the way out: a complete command that leads to the reason, or past it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from handler.app.promotions import promoters_of
from handler.engine.run.promotion_claims import Awaited, Claims
from handler.model.result import Outcome
from handler.state.record import Attempt, State
from handler.state.record_format import stamp
from tests.fakes.engine import SHOP
from tests.unit.engine.promoting_targets import MINUTE, PROD, SOAK, STAGING, Line, following, promoted_once

pytestmark = pytest.mark.slow

PROMOTE = "anneal promote prod --commit COMMIT"
LOOK = "anneal status staging"


def awaited(line: Line, commit: str, **about: object) -> Awaited | None:
    """Return what a commit waits for at staging."""
    claims = Claims([promoters_of(line.handler, PROD).records.read("staging")], SHOP.keys, SOAK, line.now, "prod")
    return next(iter(replace(claims, **about).awaited(commit, lambda _: "")), None)  # type: ignore[arg-type]  # fields of claims


def changed(line: Line, change: Callable[[State], State]) -> None:
    line.handler.store(line.handler.target("staging")).update(change)


def soaks_for_a_minute(line: Line) -> None:
    line.later(MINUTE)


def is_degraded(line: Line) -> None:
    line.fell_ill("staging")


def is_replaced(line: Line) -> None:
    line.later(MINUTE)
    line.commit("3")
    line.done("staging")


def is_replaced_degraded(line: Line) -> None:
    is_degraded(line)
    is_replaced(line)


def is_under_way(line: Line) -> None:
    changed(line, lambda known: replace(known, attempt=Attempt(known.commit, known.reads, known.settings, "x.1", stamp(line.now))))


def is_rolled_back(line: Line) -> None:
    line.done("staging", "oneoff", rollback=True, actor="ada")


@pytest.mark.parametrize(
    ("meets", "why", "fix"),
    [
        (soaks_for_a_minute, "has kept", f"without waiting for that: {PROMOTE}"),
        (is_degraded, "degraded since", LOOK),
        (is_replaced, "has left", f"without waiting for that: {PROMOTE}"),
        (is_replaced_degraded, "has left", f"without waiting for that: {PROMOTE} --force"),
        (is_under_way, "has a run for", LOOK),
        (is_rolled_back, "was rolled back from", f"push what mends it; all the same: {PROMOTE} --force"),
    ],
)
def test_each_reason_says_the_way_out(meets: Callable[[Line], None], why: str, fix: str) -> None:
    line = promoted_once()
    second = line.commit("2")
    line.done("staging")
    meets(line)
    found = awaited(line, second)
    assert found
    assert (found.why.startswith(why), found.fix.replace(second, "COMMIT")) == (True, fix)
    if PROMOTE in fix:  # what is advised is done
        line.done("prod", "oneoff", promote=True, commit=second, force="--force" in fix)
        assert line.state("prod").commit == second


OTHER, LATE = replace(STAGING, name="other", namespaces=("other",), path="other"), following("late", "staging", "other")


@pytest.mark.parametrize("other", ["never ran", "never recorded", "degraded", "soaks", "reads the same"])
def test_by_hand_is_advised_only_where_no_target_of_the_wave_has_it_refused(other: str) -> None:
    line = Line((STAGING, OTHER, LATE))
    first = line.commit("1")
    line.done("staging")
    if other != "never ran":
        line.done("other")
    commit = line.commit("2", paths=("staging", "late") if other == "reads the same" else ()) if other != "never ran" else first
    line.done("staging")
    if other in ("degraded", "soaks"):
        line.done("other")
    if other == "degraded":
        line.fell_ill("other")
    line.later(MINUTE)
    advice = f"anneal promote late --commit {commit}"
    is_advised = advice in (message := str(line.run("late").problems))
    refused = line.run("late", "oneoff", promote=True, commit=commit, dry_run=True).outcome is Outcome.REFUSED
    assert (is_advised, refused) == ((True, False) if other in ("soaks", "reads the same") else (False, True)), message
    assert is_advised or "anneal status staging" in message


def test_by_hand_is_not_advised_for_what_is_older_or_not_on_the_branch() -> None:
    line = promoted_once()
    first, second = line.state("staging").commit, line.proven("2")
    line.done("prod")
    line.host.push(first)
    line.done("staging")
    line.later(MINUTE)
    said = line.done("prod").message
    assert f"{first[:12]} is older than what it has recorded, {second[:12]}; to go back: anneal rollback prod --to {first}" in said
    assert "anneal promote" not in said
    side = line.commit("3")
    line.done("staging")
    line.host.push(second)
    said = line.done("prod").message
    assert f"{side[:12]} is not on the branch of prod; merge it into that branch" in said
    line.host.push(side)
    assert f"without waiting for that: anneal promote prod --commit {side}" in line.done("prod").message


def test_a_git_host_that_does_not_answer_holds_up_no_wait_of_what_soaks() -> None:
    line = promoted_once()
    second = line.commit("2")
    line.done("staging")
    line.host.down = True
    found = promoters_of(line.handler, PROD).choose(line.state("prod"), line.now)
    assert (found.commit, found.next) == (line.state("prod").commit, second)


def test_what_was_never_recorded_or_never_ran_is_to_be_looked_at_there() -> None:
    line = Line()
    commit = line.commit("1")
    never_ran, elsewhere = awaited(line, commit), awaited(line, commit, elsewhere=True)
    assert never_ran == Awaited("staging", "has no record: it never ran", LOOK)
    assert elsewhere == replace(never_ran, fix="in its installation: anneal -c THEIR_FILE status staging")
    line.done("staging")
    unrecorded = awaited(line, "f" * 40)
    assert unrecorded
    assert (unrecorded.fix, unrecorded.unsure) == (LOOK, True)


def test_a_record_of_another_repository_may_be_of_the_same_by_another_address() -> None:
    line = promoted_once()
    found = awaited(line, line.state("staging").commit, repositories=frozenset({"other"}))
    assert found
    assert found.fix == f"if that is the same one, add {SHOP.url} to `repository.aliases` of prod"


def test_runs_and_plans_say_it_too() -> None:
    line = promoted_once()
    line.commit("2")
    line.done("staging")
    is_degraded(line)
    assert line.done("prod").message.endswith(f"; {LOOK}")
    assert line.done("prod", "oneoff", actor="ada").message.endswith(f"; {LOOK}")
    planned = line.run("prod", "drift").plan
    assert planned
    assert planned.notes[-1].endswith(f"; {LOOK}")
    line.later(SOAK)
    line.fell_ill("staging", "healthy")
    line.later(SOAK)
    line.host.push(line.state("prod").commit)
    assert line.done("prod").message.endswith("is not on the branch of prod; merge it into that branch")
