"""What a follower waits for says the way out: a complete command that leads to the reason, or past it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from handler.app.promotions import promoters_of
from handler.engine.run.promotion_claims import Awaited, Claims
from handler.state.record import Attempt, State
from handler.state.record_format import stamp
from tests.fakes.engine import SHOP
from tests.unit.engine.promoting_targets import MINUTE, PROD, SOAK, Line, promoted_once

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


def test_what_was_never_recorded_or_never_ran_is_to_be_looked_at_there() -> None:
    line = Line()
    commit = line.commit("1")
    never_ran, elsewhere = awaited(line, commit), awaited(line, commit, elsewhere=True)
    assert never_ran == Awaited("staging", "has no record: it never ran", LOOK)
    assert elsewhere == replace(never_ran, fix=f"in its installation: {LOOK}")
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
