"""What a target that follows others does of its own: rolled back, promoted by hand, in waves, killed at each write."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from handler.config.settings import Settings
from handler.model.event import Job
from handler.model.result import Outcome
from tests.fakes.engine import engine
from tests.unit.engine.promoting_targets import MINUTE, PROD, SOAK, STAGING, Line, following, promoted_once

pytestmark = pytest.mark.slow


@pytest.fixture
def line() -> Line:
    return promoted_once()


# --- the follower's own word
def test_a_follower_that_was_rolled_back_stays_there_until_something_else_is_proven(line: Line) -> None:
    first, second = line.state("staging").commit, line.proven("2")
    assert line.on() == second
    assert line.run("prod", "oneoff", rollback=True, actor="ada").outcome is Outcome.APPLIED
    assert line.on() == first
    line.fell_ill("staging")  # now staging proves nothing that prod could go to
    assert line.on() == first
    assert line.state("prod").pin
    line.fell_ill("staging", "healthy")
    line.later(SOAK)
    assert line.on() == first, "it is proven again, and was rolled back from here"
    third = line.proven("3")
    assert line.on() == third
    assert line.state("prod").pin is None


def test_pinned_before_anything_is_proven_it_stays_until_what_is_proven_changes() -> None:
    line = Line()
    first, second = line.commit("1"), line.commit("2")
    line.done("staging")
    line.done("prod", "oneoff", commit=first, force=True, actor="ada")
    line.later(SOAK)
    assert line.on() == first, "the second is proven, and it was pinned away from that"
    assert line.state("prod").pin
    third = line.proven("3")
    assert (line.on(), line.state("prod").pin) == (third, None)
    assert second != third


def test_pinned_before_anything_is_recorded_elsewhere_it_stays_until_the_branch_has_changed() -> None:
    line = Line()
    first, second = line.commit("1"), line.commit("2")
    line.done("prod", "oneoff", commit=first, force=True, actor="ada")
    line.done("staging")
    line.later(SOAK)
    assert (line.on(), line.state("staging").commit) == (first, second)


def test_unpin_follows_again_at_once(line: Line) -> None:
    second = line.proven("2")
    assert line.on() == second
    line.run("prod", "oneoff", rollback=True)
    line.done("prod", "oneoff", unpin=True)
    assert line.state("prod").commit == second


def test_where_what_it_follows_is_not_configured_it_follows_nothing_else() -> None:
    """A glob matches nothing: the branch isn't what it follows."""
    line = Line((STAGING, following("late", "stag*")))
    line.proven("1")
    line.targets = line.targets[1:]
    line.restart()
    waits = line.run("late")
    assert (waits.outcome, waits.code, line.value("late")) == (Outcome.WAITING, "not-promoted", "")
    assert waits.problems[0].message == "no target that it follows is configured here"
    assert line.run("late", "oneoff", promote=True, actor="ada").outcome is Outcome.REFUSED


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


@pytest.mark.parametrize("force", [False, True])
@pytest.mark.parametrize("typed", ["main", "deadbeef"])
def test_what_is_no_commit_is_refused_by_hand_with_where_commits_stand(line: Line, typed: str, force: bool) -> None:
    refused = line.run("prod", "oneoff", promote=True, commit=typed, force=force)
    seen = f"commit {typed}: is no full commit id of 40 hex digits, and begins none on record: staging"
    assert (refused.outcome, refused.message.startswith(seen), refused.problems[0].fix) == (Outcome.REFUSED, True, "anneal history staging")


def test_the_beginning_of_a_recorded_commit_will_do_by_hand(line: Line) -> None:
    second = line.commit("2")
    line.done("staging")
    line.done("prod", "oneoff", promote=True, commit=second[:9])
    assert line.state("prod").commit == second


def test_where_a_record_cannot_be_read_only_force_brings_a_commit_that_is_named(line: Line) -> None:
    second = line.commit("2")
    line.handler.store(STAGING).update(lambda known: replace(known, installation="other"))
    for fields, way in (({}, "SHA"), ({"commit": second}, second), ({"force": True}, "SHA")):
        refused = line.run("prod", "oneoff", promote=True, **fields)
        assert (refused.outcome, "staging: its record can't be read" in refused.message) == (Outcome.REFUSED, True)
        assert refused.problems[0].fix == f"without it: anneal promote prod --commit {way} --force"
    line.done("prod", "oneoff", promote=True, commit=second, force=True)
    assert (line.state("prod").commit, line.value("prod"), line.state("prod").pin) == (second, "2", None)


def test_one_that_finds_a_run_under_way_says_that_nothing_was_promoted_and_what_is_at_once(line: Line) -> None:
    second = line.commit("2")
    line.done("staging")
    settings = Settings(targets=line.targets, lease_duration=1.0)  # another worker waits so long
    other = engine(line.server, line.host, settings, clock=lambda: line.now)
    other._holder = "other"
    held = line.handler.lock(PROD).acquire()
    try:
        busy = other.run(Job("prod", "oneoff", promote=True))
        left = other.run(Job("prod", "oneoff", commit=second, force=True))
    finally:
        held.hand_over()
    assert (busy.outcome, busy.message.count("nothing was promoted")) == (Outcome.BUSY, 1)
    assert busy.problems[0].fix == (
        f"once that is done: anneal promote prod --commit {second}; at once, pinned to it: anneal apply prod --commit {second} --force"
    )
    assert (left.outcome, "it runs again when it is done" in left.message) == (Outcome.BUSY, True)


def test_not_even_force_brings_what_is_not_on_the_branch(line: Line) -> None:
    side = line.host.commit({"prod/own.json": "{}"})
    refused = line.run("prod", "oneoff", promote=True, commit=side, force=True)
    assert (refused.outcome, "is not on the branch" in refused.message) == (Outcome.REFUSED, True)


def test_what_is_no_commit_of_the_host_is_refused_and_leaves_no_word_in_the_record(line: Line) -> None:
    before = line.state("prod")
    refused = line.run("prod", "oneoff", promote=True, commit="9" * 40, force=True)
    assert (refused.outcome, "can't be deployed" in refused.message) == (Outcome.REFUSED, True)
    assert line.state("prod") == before


def test_where_what_is_recorded_is_gone_from_the_host_only_force_says_what_is_newer(line: Line) -> None:
    first, second = line.state("prod").commit, line.proven("2")
    line.host.lost.add(first)
    held = line.done("prod")
    assert line.state("prod").commit == first
    assert f"anneal promote prod --commit {second} --force" in held.message
    refused = line.run("prod", "oneoff", promote=True)
    assert (refused.outcome, "isn't known" in refused.message) == (Outcome.REFUSED, True)
    line.done("prod", "oneoff", promote=True, force=True)
    assert line.state("prod").commit == second


def test_a_target_that_follows_its_branch_promotes_nothing(line: Line) -> None:
    refused = line.run("staging", "oneoff", promote=True)
    assert (refused.outcome, "and no other target" in refused.message) == (Outcome.REFUSED, True)


def test_a_push_that_was_queued_before_it_followed_others_is_not_waited_for(line: Line) -> None:
    second = line.commit("2")
    assert line.done("prod", "push", hint=second).outcome is Outcome.UNCHANGED


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


def test_a_tick_that_records_another_commit_which_reads_the_same_says_so_and_its_follower_takes_that_by_its_own(line: Line) -> None:
    assert not line.done("staging").moved
    second = line.commit("2", paths=("prod",))
    looked = line.done("staging")
    assert (looked.outcome, looked.moved, looked.recorded) == (Outcome.UNCHANGED, True, True)
    assert (line.on(), line.value("prod")) == (second, "2"), "it has soaked already"
    assert not line.done("staging").moved


# --- killed
@pytest.mark.usefixtures("lease_clock")
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


def killed(line: Line, **job: Any) -> None:
    """Let a run of production die at its first write of an object."""

    def kill(call: object) -> None:
        if call.asked.method == "PATCH" and "dryRun" not in str(call.asked.query):  # type: ignore[attr-defined]  # a Call
            raise KeyboardInterrupt

    line.before = kill
    with pytest.raises(KeyboardInterrupt):
        line.run("prod", **job)
    line.before = lambda call: None
    line.restart()
    line.later(MINUTE)


def test_what_was_promoted_by_hand_and_killed_goes_on_although_an_older_one_is_proven_meanwhile(line: Line) -> None:
    line.proven("2")
    third = line.commit("3")
    line.done("staging")
    killed(line, promote=True)
    line.done("prod")
    assert (line.state("prod").commit, line.value("prod"), line.state("prod").attempt) == (third, "3", None)


def test_a_killed_attempt_at_what_a_forced_push_has_dropped_gives_way_to_what_is_proven_on_the_branch(line: Line) -> None:
    second = line.commit("2")
    line.done("staging")
    killed(line, promote=True)
    line.host.head = line.state("prod").commit
    other = line.commit("other")  # on top of the first one: the second is gone from the branch
    line.done("staging")
    line.later(SOAK)
    line.done("prod")
    assert (line.state("prod").commit, line.value("prod")) == (other, "other")
    assert other != second


def test_an_open_attempt_goes_back_once_staging_has_gone_back(line: Line) -> None:
    first = line.state("staging").commit
    second = line.proven("2")

    killed(line)
    attempt = line.state("prod").attempt
    assert attempt
    assert attempt.commit == second
    line.fell_ill("staging")
    line.later(MINUTE)
    line.run("staging", "oneoff", rollback=True)
    line.done("prod")
    assert (line.state("prod").commit, line.value("prod")) == (first, "1")
