"""A target that follows what another has proven: soaked, replaced since, broken, rolled back, forged, by hand, in waves."""

from __future__ import annotations

from dataclasses import replace

import pytest

from handler.model.errors import ClusterUnavailable
from handler.model.result import Outcome
from handler.state.soak import Soak
from tests.unit.engine.promoting_targets import MINUTE, SOAK, STAGING, Line, following


@pytest.fixture
def line() -> Line:
    """Production is on the first commit, which staging has kept healthy for long enough."""
    made = Line()
    made.commit("1")
    made.done("staging")
    made.later(SOAK)
    made.done("prod")
    return made


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
    assert result.message.endswith(f"staging: has kept {second[:12]} healthy for 29m59s of 30m")
    assert result.next_try == line.now + 1
    line.later(1)
    assert line.on() == second
    assert line.value("prod") == "2"
    assert line.done("prod").outcome is Outcome.UNCHANGED


def test_a_commit_that_was_replaced_after_it_had_soaked_follows_and_one_replaced_before_does_not(line: Line) -> None:
    second = line.commit("2")
    line.done("staging")
    line.later(SOAK)
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


# --- what a record claims
def forge(line: Line, *commits: str) -> None:
    """Let staging's record claim these commits, each healthy for ever, the newest first."""
    known = line.state("staging")
    soaks = tuple(Soak((each,), str(index) * 64, known.settings, "2020-01-01T00:00:00Z") for index, each in enumerate(commits))
    first, *rest = (replace(each, healthy_since="2020-01-01T00:00:00Z") for each in soaks)
    ended = tuple(replace(each, until="2021-01-01T00:00:00Z", ended="replaced") for each in rest)
    body = replace(known, soaks=(first, *ended), commit=commits[0], reads="0" * 64)
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
    second = line.commit("2")
    line.done("staging")
    line.later(SOAK)
    assert line.on() == second
    forge(line, first)
    assert line.on() == second
    forge(line, "9" * 40, first)
    result = line.done("prod")
    assert line.state("prod").commit == second
    assert "can't be deployed" in result.message
    assert line.run("prod", "oneoff", promote=True, commit=first).message.endswith(f"to go back: anneal rollback prod --to {first}")


def test_a_record_of_another_repository_proves_nothing(line: Line) -> None:
    first, _ = line.state("staging").commit, line.commit("2")
    line.done("staging")
    line.later(SOAK)
    store = line.handler.store(line.handler.target("staging"))
    store.update(lambda known: replace(known, repository="https://git.example.com/other.git"))
    result = line.done("prod")
    assert line.state("prod").commit == first
    assert "its record can't be read" in result.message


def test_what_is_not_on_the_branch_any_more_gives_way_to_what_is(line: Line) -> None:
    first, second = line.state("staging").commit, line.commit("2")
    line.done("staging")
    line.later(SOAK)
    third = line.commit("3")
    line.done("staging")
    line.later(SOAK)
    line.host.push(second)  # by force: the third is gone from the branch
    assert line.on() == second
    assert len({first, second, third}) == 3


def test_a_cluster_that_does_not_answer_keeps_the_target_where_it_is(line: Line) -> None:
    first = line.state("staging").commit
    line.commit("2")
    line.done("staging")
    line.later(SOAK)

    def gone(call: object) -> None:
        if "anneal-staging" in str(call.asked.path):  # type: ignore[attr-defined]  # a Call
            raise ClusterUnavailable.of("cluster", "doesn't answer")

    line.before = gone
    result = line.done("prod", "drift")
    assert line.state("prod").commit == first
    assert "staging: its record can't be read" in str(result.plan.notes if result.plan else result.message)


# --- the follower's own word
def test_a_follower_that_was_rolled_back_stays_there_until_something_else_is_proven(line: Line) -> None:
    first, second = line.state("staging").commit, line.commit("2")
    line.done("staging")
    line.later(SOAK)
    assert line.on() == second
    assert line.run("prod", "oneoff", rollback=True, actor="ada").outcome is Outcome.APPLIED
    assert line.on() == first
    line.fell_ill("staging")  # now staging proves nothing that prod could go to
    assert line.on() == first
    assert line.state("prod").pin
    line.fell_ill("staging", "healthy")
    line.later(SOAK)
    assert line.on() == first, "it is proven again, and was rolled back from here"
    third = line.commit("3")
    line.done("staging")
    line.later(SOAK)
    assert line.on() == third
    assert line.state("prod").pin is None


def test_unpin_follows_again_at_once(line: Line) -> None:
    second = line.commit("2")
    line.done("staging")
    line.later(SOAK)
    assert line.on() == second
    line.run("prod", "oneoff", rollback=True)
    line.done("prod", "oneoff", unpin=True)
    assert line.state("prod").commit == second


# --- by hand
def test_promoted_by_hand_it_is_pinned_to_nothing_and_follows_what_is_newer(line: Line) -> None:
    second = line.commit("2")
    line.done("staging")
    result = line.run("prod", "oneoff", promote=True, actor="ada")
    assert (result.outcome, line.state("prod").commit, line.state("prod").pin) == (Outcome.APPLIED, second, None)
    entry = line.state("prod").history[0]
    assert (entry.trigger, entry.actor, entry.asked_by) == ("promotion", "ada", "promotion by ada")
    assert line.on() == second, "the first is proven, and older"
    third = line.commit("3")
    line.done("staging")
    assert line.on() == second
    line.later(SOAK)
    assert line.on() == third


@pytest.mark.parametrize("way", ["ill", "never recorded"])
def test_by_hand_only_force_brings_what_is_not_well(line: Line, way: str) -> None:
    second = line.commit("2")
    if way == "ill":
        line.done("staging")
        line.fell_ill("staging")
    refused = line.run("prod", "oneoff", promote=True, commit=second)
    assert (refused.outcome, refused.code) == (Outcome.REFUSED, "request-refused")
    assert ("degraded" if way == "ill" else "hasn't recorded") in refused.message
    forced = line.run("prod", "oneoff", promote=True, commit=second, force=True)
    assert (forced.outcome, line.state("prod").commit, line.state("prod").pin) == (Outcome.APPLIED, second, None)
    assert line.on() == second


def test_not_even_force_brings_what_is_not_on_the_branch(line: Line) -> None:
    side = line.host.commit({"prod/own.json": "{}"})
    refused = line.run("prod", "oneoff", promote=True, commit=side, force=True)
    assert (refused.outcome, "is not on its branch" in refused.message) == (Outcome.REFUSED, True)


def test_the_beginning_of_a_commit_will_do(line: Line) -> None:
    second = line.commit("2")
    line.done("staging")
    line.run("prod", "oneoff", promote=True, commit=second[:10])
    assert line.state("prod").commit == second


# --- waves
EU, US, AP = (following(name, "staging", soak=MINUTE) for name in ("eu", "us", "ap"))
LATE = following("late", "eu", "us", "ap")


@pytest.fixture
def waves() -> Line:
    made = Line((STAGING, EU, US, AP, LATE))
    made.commit("1")
    made.done("staging")
    made.later(MINUTE)
    for name in ("eu", "us", "ap"):
        made.done(name)
    made.later(SOAK)
    made.done("late")
    return made


def test_a_wave_goes_on_once_each_of_its_targets_has_proven_it(waves: Line) -> None:
    first, second = waves.state("late").commit, waves.commit("2")
    waves.done("staging")
    waves.later(MINUTE)
    for name in ("eu", "us", "ap"):
        assert waves.on(name) == second
        waves.later(MINUTE)
    waves.later(SOAK - 2 * MINUTE)
    result = waves.done("late")
    assert waves.state("late").commit == first
    assert "ap: has kept" in result.message
    assert "eu:" not in result.message
    assert result.next_try == waves.now + MINUTE
    waves.later(MINUTE)
    assert waves.on("late") == second


def test_a_halted_wave_says_which_target_holds_it(waves: Line) -> None:
    first, second = waves.state("late").commit, waves.commit("2")
    waves.done("staging")
    waves.later(MINUTE)
    for name in ("eu", "us", "ap"):
        waves.done(name)
    waves.later(MINUTE)
    waves.fell_ill("us")
    waves.later(SOAK)
    result = waves.done("late")
    assert waves.state("late").commit == first
    assert (result.next_try, "us: degraded since" in result.message, second[:12] in result.message) == (0.0, True, True)
    assert "eu:" not in result.message


def test_targets_of_a_wave_need_not_have_recorded_the_same_commit_if_it_reads_the_same(waves: Line) -> None:
    second = waves.commit("2")
    waves.done("staging")
    waves.later(MINUTE)
    waves.done("eu")
    waves.done("us")
    waves.done("ap")
    other = waves.commit("3", paths=("nothing",))
    waves.done("staging")
    waves.done("eu")  # the others have seen nothing of it
    waves.later(SOAK)
    assert waves.state("us").commit == second
    assert waves.on("late") == other


# --- killed
@pytest.mark.parametrize("by_hand", [False, True])
def test_killed_at_each_write_it_is_finished_by_the_next_run(by_hand: bool) -> None:
    number = 0
    while True:
        line = Line()
        line.commit("1")
        line.done("staging")
        line.later(SOAK)
        line.done("prod")
        second = line.commit("2")
        line.done("staging")
        line.later(0 if by_hand else SOAK)
        writes = 0

        def kill(call: object, line: Line = line, at: int = number) -> None:
            nonlocal writes
            if call.asked.method == "GET" or "dryRun" in str(call.asked.query):  # type: ignore[attr-defined]  # a Call
                return
            writes += 1
            if writes > at:
                raise KeyboardInterrupt

        line.before = kill
        try:
            result = line.run("prod", "oneoff", promote=True) if by_hand else line.run("prod")
        except KeyboardInterrupt:
            result = None
        line.before = lambda call: None
        if result is not None:
            break
        opened = line.state("prod").attempt is not None
        line.restart()
        line.later(MINUTE)
        after = line.run("prod")
        assert after.outcome in (Outcome.APPLIED, Outcome.UNCHANGED), (number, after)
        if opened or not by_hand:
            assert (line.state("prod").commit, line.value("prod"), line.state("prod").attempt) == (second, "2", None), number
        number += 1
    assert number >= 3


def test_an_open_attempt_goes_back_once_staging_has_gone_back(line: Line) -> None:
    first = line.state("staging").commit
    second = line.commit("2")
    line.done("staging")
    line.later(SOAK)

    def kill(call: object) -> None:
        if call.asked.method == "PATCH" and "dryRun" not in str(call.asked.query):  # type: ignore[attr-defined]  # a Call
            raise KeyboardInterrupt

    line.before = kill
    with pytest.raises(KeyboardInterrupt):
        line.run("prod")
    line.before = lambda call: None
    attempt = line.state("prod").attempt
    assert attempt
    assert attempt.commit == second
    line.restart()
    line.later(MINUTE)
    line.fell_ill("staging")
    line.later(MINUTE)
    line.run("staging", "oneoff", rollback=True)
    line.done("prod")
    assert (line.state("prod").commit, line.value("prod")) == (first, "1")
