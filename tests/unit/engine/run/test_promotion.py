"""A target that follows what another has proven: soaked, replaced since, broken, rolled back from, forged."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from handler.app.promotions import promoters_of
from handler.config.settings import Target
from handler.model.errors import ClusterUnavailable
from handler.model.result import Outcome
from handler.model.tree import Tree
from handler.state.record import Pin
from handler.state.soak import Soak
from tests.fakes.apiserver.server import Asked
from tests.unit.engine.promoting_targets import MINUTE, PROD, SOAK, STAGING, Line, following, promoted_once

pytestmark = pytest.mark.slow


@pytest.fixture
def line() -> Line:
    return promoted_once()


def test_nothing_is_deployed_and_nothing_written_before_anything_is_proven() -> None:
    line, written = Line(), list[str]()
    first = line.commit("1")
    assert line.run("prod").outcome is Outcome.WAITING
    line.done("staging")
    line.before = lambda call: written.append(call.asked.method)
    line.later(SOAK - 1)
    result = line.run("prod")
    assert (result.outcome, result.code, result.next_try) == (Outcome.WAITING, "not-promoted", line.now + 1)
    assert "staging: has kept" in result.problems[0].message
    assert set(written) == {"GET"}
    line.later(1)
    assert line.on() == first
    assert line.value("prod") == "1"


def test_a_commit_follows_once_it_is_healthy_for_the_soak(line: Line) -> None:
    first, second = line.state("staging").commit, line.commit("2")
    line.done("staging")
    assert line.on() == first
    line.later(SOAK - 1)
    result = line.done("prod")
    by_hand = f"without waiting for that: anneal promote prod --commit {second}"
    assert result.message.endswith(f"staging: has kept {second[:12]} healthy for 29m59s of 30m; {by_hand}")
    assert result.next_try == line.now + 1
    line.later(1)
    assert line.on() == second
    assert line.value("prod") == "2"
    assert line.done("prod").outcome is Outcome.UNCHANGED


def test_a_commit_that_was_replaced_after_it_had_soaked_follows_and_one_replaced_before_does_not(line: Line) -> None:
    second = line.proven("2")
    line.commit("3")
    line.done("staging")
    line.later(MINUTE)
    line.commit("4")
    line.done("staging")
    assert line.on() == second
    line.later(SOAK - 1)
    assert line.on() == second


def test_a_busy_monorepo_starves_no_target(line: Line) -> None:
    second = line.commit("2")
    line.done("staging")
    for number in range(12):
        line.later(SOAK / 10)
        last = line.commit(f"other {number}", paths=("nothing",))  # changes nothing that staging or production reads
        line.done("staging")
    assert line.state("staging").soaks[0].commits[0] == last
    assert line.on() == last
    assert line.value("prod") == "2"
    assert second != last


@pytest.mark.parametrize("state", ["degraded", "progressing", "unknown"])
def test_a_break_starts_the_clock_again(line: Line, state: str) -> None:
    first, second = line.state("staging").commit, line.commit("2")
    line.done("staging")
    line.later(SOAK - 1)
    line.fell_ill("staging", state)
    line.later(2)
    result = line.done("prod")
    assert (line.state("prod").commit, result.next_try) == (first, 0.0)
    assert f"staging: {state} since" in result.message
    line.fell_ill("staging", "healthy")
    line.later(SOAK - 1)
    assert line.on() == first
    line.later(1)
    assert line.on() == second


def test_a_commit_that_was_ill_when_it_was_replaced_is_not_proven(line: Line) -> None:
    first = line.state("staging").commit
    line.commit("2")
    line.done("staging")
    line.later(3 * SOAK)
    line.beat()
    line.fell_ill("staging")
    line.commit("3")
    line.done("staging")
    assert line.on() == first


def test_without_a_judgement_for_three_intervals_the_clock_starts_again(line: Line) -> None:
    first = line.state("staging").commit
    second = line.commit("2")
    line.done("staging")
    line.later(3 * 1800.0 + 1)
    result = line.done("prod")
    assert (line.state("prod").commit, "staging: unknown since" in result.message) == (first, True)
    line.done("staging", "drift")  # it is judged again from now on
    assert line.on() == first
    line.later(SOAK)
    assert line.on() == second


def test_a_server_that_watches_vouches_for_as_long_as_it_does_so_without_a_gap(line: Line) -> None:
    first, second = line.state("staging").commit, line.commit("2")
    line.done("staging")
    line.beat()
    for _ in range(70):
        line.later(170)
        line.beat()
    line.handler.records(line.targets[0])
    assert line.on() == second
    third = line.commit("3")
    line.done("staging")
    line.later(6 * 3600.0)  # none watches
    line.beat()
    assert line.on() == second, "it is watched again, since just now"
    line.later(100)
    line.beat()
    assert line.on() == second
    for _ in range(12):
        line.later(170)
        line.beat()
    assert line.on() == third
    assert first != third


def test_what_was_rolled_back_from_is_never_promoted(line: Line) -> None:
    first, second = line.state("staging").commit, line.commit("2")
    line.done("staging")
    line.later(2 * SOAK)
    line.done("staging", "drift")
    assert line.run("staging", "oneoff", rollback=True, actor="ada").outcome is Outcome.APPLIED
    assert line.state("staging").commit == first
    line.later(SOAK)
    assert line.on() == first
    refused = line.run("prod", "oneoff", promote=True, commit=second)
    assert (refused.outcome, "was rolled back from" in refused.message) == (Outcome.REFUSED, True)
    assert f"anneal promote prod --commit {second} --force" in refused.message


def test_what_a_rollback_is_asked_for_is_not_promoted_before_that_ran_and_never_after(line: Line) -> None:
    """The rollback is written while another run holds the Lease, or its plan is held."""
    first, second = line.state("staging").commit, line.proven("2")
    away = line.handler.dependencies("staging").preparer.reads_at(second, ())
    pin = Pin(first, away, reason="rollback, asked for in run x")
    line.handler.store(line.handler.target("staging")).update(lambda known: replace(known, pin=pin))
    result = line.done("prod")
    assert (line.state("prod").commit, result.next_try) == (first, 0.0)
    assert f"staging: is asked to go to {first[:12]}" in result.message
    line.done("staging", "drift")
    assert (line.state("staging").commit, [soak.ended for soak in line.state("staging").soaks[:2]]) == (first, ["", "rolled-back"])
    line.later(SOAK)
    assert line.on() == first


def test_a_commit_that_a_person_pinned_counts_once_it_has_soaked(line: Line) -> None:
    second = line.commit("2")
    line.commit("3")
    line.done("staging", "oneoff", commit=second, force=True)
    line.later(SOAK)
    assert line.on() == second


def test_unpinned_it_is_followed_again_and_the_pinned_one_is_not_rolled_back_from(line: Line) -> None:
    second, third = line.commit("2"), line.commit("3")
    line.done("staging", "oneoff", commit=second, force=True)
    line.later(SOAK)
    line.done("staging", "oneoff", unpin=True)
    assert line.state("staging").commit == third
    assert line.on() == second


def test_what_was_promoted_before_it_was_rolled_back_from_is_said_to_be_so_until_something_newer_follows(line: Line) -> None:
    first, second = line.state("staging").commit, line.proven("2")
    assert line.on() == second
    line.done("staging", "oneoff", rollback=True, actor="ada")
    for seconds in (MINUTE, SOAK):
        line.later(seconds)
        assert line.done("prod").message == (
            f"{second[:12]} is applied; staging: was rolled back from {second[:12]}; to go back, too: anneal rollback prod"
        )
    third = line.commit("3")
    line.done("staging")
    assert "was rolled back from" in (waits := line.done("prod").message)
    assert f"has kept {third[:12]} healthy for 0s of 30m" in waits
    line.later(SOAK)
    assert (line.on(), line.value("prod"), line.state("prod").pin) == (third, "3", None)
    assert line.done("prod").message == f"{third[:12]} is applied"
    assert first != second


def test_a_branch_that_was_put_back_by_force_takes_no_promoted_target_with_it_and_that_is_said(line: Line) -> None:
    first, second = line.state("staging").commit, line.proven("2")
    assert line.on() == second
    line.host.push(first)
    line.done("staging")
    line.later(SOAK)
    said = f"{first[:12]} is older than what it has recorded, {second[:12]}; to go back: anneal rollback prod --to {first}"
    assert line.done("prod").message == f"{second[:12]} is applied; {said}"
    line.done("prod", "oneoff", rollback=True, commit=first, actor="ada")
    assert line.value("prod") == "1"


def test_a_record_that_was_deleted_by_hand_holds_the_target_and_that_is_said(line: Line) -> None:
    first, second = line.state("prod").commit, line.proven("2")
    line.server.must(Asked("DELETE", "/api/v1/namespaces/anneal-system/configmaps/anneal-staging", {}, {}, "", ""))
    assert line.done("prod").message == f"{first[:12]} is applied; staging: has no record: it never ran; anneal status staging"
    line.done("staging")
    line.done("staging")
    line.later(SOAK - 1)
    assert line.on() == first
    line.later(1)
    assert line.on() == second


# --- what a record claims
def forge(line: Line, *commits: str, ended: str = "replaced") -> None:
    """Let staging's record claim these commits, each healthy for ever, the newest first. `ended`: how, of the last one."""
    known = line.state("staging")
    soaks = tuple(Soak((each,), str(index) * 64, known.settings, "2020-01-01T00:00:00Z") for index, each in enumerate(commits))
    first, *rest = (replace(each, healthy_since="2020-01-01T00:00:00Z") for each in soaks)
    over = [replace(each, until="2021-01-01T00:00:00Z", ended="replaced") for each in rest]
    over[-1:] = [replace(each, ended=ended) for each in over[-1:]]
    body = replace(known, soaks=(first, *over), commit=commits[0], reads="0" * 64)
    store = line.handler.store(line.handler.target("staging"))
    store._keep = lambda _, state: state  # a record that another program has written
    store.update(lambda _: body)


def test_a_claim_that_is_not_on_the_branch_deploys_nothing(line: Line) -> None:
    first = line.state("staging").commit
    side = line.host.commit({"prod/own.json": "{}"})
    forge(line, side)
    result = line.done("prod")
    assert line.state("prod").commit == first
    assert f"{side[:12]} is not on the branch of prod" in result.message


def test_an_older_claim_deploys_nothing_and_an_unknown_commit_neither(line: Line) -> None:
    first = line.state("staging").commit
    second = line.proven("2")
    assert line.on() == second
    forge(line, first)
    assert line.on() == second
    forge(line, "9" * 40, first)
    result = line.done("prod")
    assert line.state("prod").commit == second
    assert "can't be deployed" in result.message
    assert line.run("prod", "oneoff", promote=True, commit=first).message.endswith(f"to go back: anneal rollback prod --to {first}")


@pytest.mark.parametrize("ended", ["replaced", "rolled-back"])
def test_a_forged_record_costs_a_few_questions(ended: str) -> None:
    line = Line()
    line.proven("1")
    line.done("prod")
    first = line.state("prod").commit
    forged = [line.host.commit({"forged": str(number)}) for number in range(9)]
    forge(line, *forged, first if ended == "rolled-back" else line.commit("2"), ended=ended)
    asked = list[tuple[str, str]]()
    promoters = promoters_of(line.handler, PROD)

    def reaches(head: str, commit: str) -> bool:
        asked.append((head, commit))
        return promoters.reaches(head, commit)

    found = replace(promoters, reaches=reaches).choose(line.state("prod"), line.now)
    assert (found.commit, len({commit for _, commit in asked})) == (first, 5)


def test_what_a_forged_record_claims_is_looked_for_a_few_times_for_the_others_of_a_wave() -> None:
    late = following("late", "staging", "other")
    line = Line((STAGING, replace(STAGING, name="other", namespaces=("other",), path="other"), late))
    line.commit("1")
    line.done("staging")
    line.done("other")
    line.later(SOAK)
    line.done("late")
    forge(line, *(f"{number}" * 40 for number in range(9)))
    asked = list[str]()
    promoters = promoters_of(line.handler, late)

    def tree(sha: str) -> Tree:
        asked.append(sha)
        return promoters.tree(sha)

    found = replace(promoters, tree=tree).choose(line.state("late"), line.now)
    assert (found.commit, len(asked)) == (line.state("other").commit, 5)


def test_a_record_of_another_repository_proves_nothing(line: Line) -> None:
    first, _ = line.state("staging").commit, line.proven("2")
    store = line.handler.store(line.handler.target("staging"))
    store.update(lambda known: replace(known, repository="https://git.example.com/other.git"))
    result = line.done("prod")
    assert line.state("prod").commit == first
    assert "its record can't be read" in result.message


def test_what_is_not_on_the_branch_any_more_gives_way_to_what_is(line: Line) -> None:
    first, second = line.state("staging").commit, line.proven("2")
    third = line.proven("3")
    line.host.push(second)  # by force: the third is gone from the branch
    assert line.on() == second
    assert len({first, second, third}) == 3


def test_a_cluster_that_does_not_answer_keeps_the_target_where_it_is(line: Line) -> None:
    first = line.state("staging").commit
    line.proven("2")

    def gone(call: object) -> None:
        if "anneal-staging" in str(call.asked.path):  # type: ignore[attr-defined]  # a Call
            raise ClusterUnavailable.of("cluster", "doesn't answer")

    line.before = gone
    result = line.done("prod", "drift")
    assert line.state("prod").commit == first
    assert "staging: its record can't be read" in str(result.plan.notes if result.plan else result.message)


def test_the_head_of_a_target_that_follows_others_is_what_they_have_proven(line: Line) -> None:
    first, second = line.state("prod").commit, line.commit("2")
    assert line.handler.head(PROD, math.inf).commit == first
    line.done("staging")
    line.later(SOAK)
    assert line.handler.head(PROD, math.inf).commit == second
    assert Line().handler.head(PROD, math.inf).commit == ""


@pytest.mark.parametrize("names", [("staging", "late"), ("late", "staging")])
def test_what_several_have_proven_is_found_in_whichever_order_they_are_named(names: tuple[str, str]) -> None:
    line = Line((STAGING, Target("late", STAGING.repository, ("late",), path="late"), following("prod", *names)))
    line.commit("1")
    for name in names:
        line.done(name)
    line.later(SOAK)
    line.on()
    second = line.commit("2")
    line.done("late")
    line.commit("3", paths=("late",))  # reads the same for staging, which takes it in one step
    line.done("staging")
    line.later(SOAK)
    assert line.on() == second
