"""How long a target has kept healthy what it recorded: every ending, gaps, restarts of the clock; and compared with a naive model."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handler.engine.run.other_records import OtherRecord
from handler.engine.run.promotion_claims import Claims
from handler.model.target_matching import repository_key
from handler.state import soak_update
from handler.state.configmap import decode, encode, read_summary, summary_of
from handler.state.heartbeat import Beat, known
from handler.state.record import Attempt, Pin, RunStatus, State, TargetHealth
from handler.state.record_format import seconds_of, stamp
from handler.state.soak import COMMITS, MOST, glimpsed
from tests.unit.state.samples import NAMESPACE, TOKEN, TOOLING, blank

pytestmark = pytest.mark.slow

START = 1_800_000_000.0
DRIFT = 1800.0
MINUTE = DRIFT / 10
SETTINGS = "c" * 64


def commit_of(number: int) -> str:
    return f"{number:040x}"


def reads_of(number: int) -> str:
    return f"{number:064x}"


@dataclass
class Target:
    """A record as runs and watches write it; `now` is the clock, `beat` the heartbeat of its cluster."""

    now: float = START
    beat: Beat | None = None
    state: State = field(default_factory=blank)

    def write(self, **parts: Any) -> None:
        after = replace(self.state, **parts)
        self.state = soak_update.kept(
            self.state if self.state.soaks or self.state.commit or self.state.attempt else None, after, self.known, self.now
        )

    def known(self, state: State) -> TargetHealth:
        return known(state.health, None if state.attempt else self.beat, self.now, DRIFT)

    def open(self, number: int, reads: int, pin: Pin | None = None) -> None:
        attempt = Attempt(commit_of(number), reads_of(reads), SETTINGS, TOKEN, stamp(self.now))
        health = replace(self.state.health, judged=stamp(self.now)) if self.state.health.state else self.state.health
        self.write(attempt=attempt, pin=pin, health=health)

    def record(self, number: int, reads: int, health: str = "healthy", pin: Pin | None = None) -> None:
        """Deploy a commit: an attempt, and its end."""
        self.open(number, reads, pin)
        found = self.state.health
        begins = found.state != health
        judged = TargetHealth(health, stamp(self.now) if begins else found.since, stamp(self.now))
        self.write(
            attempt=None, commit=commit_of(number), reads=reads_of(reads), settings=SETTINGS, health=judged, status=RunStatus("applied")
        )

    def judge(self, health: str) -> None:
        """Let a look find the target so; the same verdict is written once the old one has grown old."""
        found = self.state.health
        if found.state != health:
            self.write(health=TargetHealth(health, stamp(self.now), stamp(self.now)))
        elif self.now - seconds_of(found.judged) >= 2 * DRIFT:
            self.write(health=replace(found, judged=stamp(self.now)))

    def proven(self, number: int, wanted: float) -> bool:
        claims = Claims(
            [OtherRecord("shop", self.state, self.known(self.state))], frozenset({repository_key(self.state.repository)}), wanted, self.now
        )
        return not claims.awaited(commit_of(number), lambda _: "")


@pytest.fixture
def target() -> Target:
    made = Target()
    made.record(1, 1)
    return made


def test_a_commit_recorded_whole_begins_a_soak_and_an_open_one_none() -> None:
    target = Target()
    target.open(1, 1)
    assert [*target.state.soaks] == []
    target.record(1, 1)
    (found,) = target.state.soaks
    assert (found.commits, found.reads, found.since, found.healthy_since, found.ended) == (
        (commit_of(1),),
        reads_of(1),
        stamp(START),
        stamp(START),
        "",
    )


def test_a_commit_that_reads_the_same_goes_on_with_the_soak(target: Target) -> None:
    for number in range(2, 9):
        target.now += 60
        target.write(commit=commit_of(number))
    (found,) = target.state.soaks
    assert found.commits == tuple(commit_of(number) for number in range(8, 8 - COMMITS, -1))
    assert found.healthy_since == stamp(START)


def test_other_reads_end_it_with_how_long_it_was_healthy(target: Target) -> None:
    target.now += 100
    target.record(2, 2)
    second, first = target.state.soaks
    assert (first.ended, first.until, first.healthy_since) == ("replaced", stamp(START + 100), stamp(START))
    assert (second.commits, second.since) == ((commit_of(2),), stamp(START + 100))
    assert (target.proven(1, 100), target.proven(1, 101), target.proven(2, 1)) == (True, False, False)


def test_other_settings_end_it_too_and_it_ends_when_the_attempt_opens(target: Target) -> None:
    target.now += 50
    attempt = Attempt(commit_of(1), reads_of(1), "d" * 64, TOKEN, stamp(target.now))
    target.write(attempt=attempt)
    (found,) = target.state.soaks
    assert (found.ended, found.until) == ("replaced", stamp(START + 50))
    target.now += 500
    assert not target.proven(1, 51)


def test_while_a_run_is_open_the_time_until_then_counts_and_it_goes_on_when_that_repairs_its_commit(target: Target) -> None:
    target.now += 50
    target.open(1, 1)
    target.now += 100
    assert (target.proven(1, 50), target.proven(1, 51)) == (True, False)
    target.record(1, 1)
    (found,) = target.state.soaks
    assert (found.healthy_since, found.ended) == (stamp(START), "")


def test_a_failure_of_the_recorded_commit_is_a_break(target: Target) -> None:
    target.now += 500
    target.open(1, 1)
    target.write(status=RunStatus("failed", who="author"))
    assert target.state.soaks[0].healthy_since == ""
    target.now += 10
    target.record(2, 2)
    assert not target.proven(1, 1)


@pytest.mark.parametrize("state", ["degraded", "progressing", "unknown"])
def test_another_state_is_a_break_and_the_clock_starts_again(target: Target, state: str) -> None:
    target.now += 500
    target.judge(state)
    assert (target.state.soaks[0].healthy_since, target.proven(1, 1)) == ("", False)
    replaced = replace(target)
    replaced.record(2, 2)
    assert (replaced.state.soaks[1].healthy_since, replaced.proven(1, 1)) == ("", False)
    target.now += 500
    target.judge("healthy")
    assert not target.proven(1, 1)
    target.now += 30
    assert (target.proven(1, 30), target.proven(1, 31)) == (True, False)


@pytest.mark.parametrize(
    ("pin", "ended"),
    [
        (Pin(commit_of(1), reason="rollback, asked for in run x"), "rolled-back"),
        (Pin(commit_of(1), reason="rollback: bad failed", automatic=True), "rolled-back"),
        (Pin(commit_of(1), reason="explicit commit"), "rolled-back"),
        (Pin(commit_of(9), reason="explicit commit"), "replaced"),  # the pin holds something else
        (None, "replaced"),
    ],
)
def test_a_pin_away_from_it_is_a_way_back(target: Target, pin: Pin | None, ended: str) -> None:
    target.record(2, 2)
    target.now += 500
    target.record(1, 1, pin=pin)
    assert target.state.soaks[1].ended == ended
    assert target.proven(2, 500) is (ended == "replaced")
    assert target.state.soaks[0].commits == (commit_of(1),)


def test_a_pin_that_was_asked_for_before_the_attempt_opened_is_a_way_back_and_one_that_stands_already_is_none(target: Target) -> None:
    pin = Pin(commit_of(1), reason="rollback, asked for in run x")
    target.record(2, 2)
    target.now += 500
    target.write(pin=pin)  # another run holds the Lease
    target.record(1, 1, pin=pin)
    again, before = target.state.soaks[:2]
    assert (before.commits, before.ended) == ((commit_of(2),), "rolled-back")
    assert not target.proven(2, 1)
    target.now += 500
    target.write(attempt=Attempt(commit_of(1), reads_of(1), "d" * 64, TOKEN, stamp(target.now)))  # new settings, still pinned
    assert (again.ended, target.state.soaks[0].ended) == ("", "replaced")


def test_from_one_pinned_commit_to_the_next_is_no_way_back_but_a_rollback_is() -> None:
    for reason, ended in (("explicit commit", "replaced"), ("rollback, asked for in run x", "rolled-back")):
        target = Target()
        target.record(1, 1, pin=Pin(commit_of(1), reason="explicit commit"))
        target.now += 10
        target.record(2, 2, pin=Pin(commit_of(2), reason=reason))
        assert target.state.soaks[1].ended == ended


def test_the_way_back_from_another_commit_proves_that_one_never_and_this_one_from_now_on(target: Target) -> None:
    target.now += 500
    target.open(2, 2)
    target.write(status=RunStatus("failed"))
    target.now += 10
    target.record(1, 1, pin=Pin(commit_of(1), reason="rollback: 2 failed", automatic=True))
    again, before = target.state.soaks
    assert (again.commits, before.commits, before.ended) == ((commit_of(1),), (commit_of(1),), "replaced")
    assert (target.proven(2, 1), target.proven(1, 500)) == (False, False)
    target.now += 500
    assert target.proven(1, 500)


# --- gaps
def test_judged_by_none_for_three_intervals_it_starts_again_with_the_next_look(target: Target) -> None:
    target.now += 3 * DRIFT
    assert target.proven(1, 3 * DRIFT)
    target.now += 1
    assert not target.proven(1, 1)
    replaced = replace(target)
    replaced.record(2, 2)
    assert not replaced.proven(1, 1)
    target.judge("healthy")
    assert target.state.soaks[0].healthy_since == stamp(target.now)


def test_a_watch_vouches_for_it_and_a_gap_of_the_watch_starts_the_clock_again(target: Target) -> None:
    target.now += 10 * DRIFT
    target.beat = Beat(target.now - 5, 180.0, START + 60)
    assert target.proven(1, 10 * DRIFT)
    target.beat = Beat(target.now - 5, 180.0, target.now - 100)
    assert (target.proven(1, 100), target.proven(1, 101)) == (True, False)
    target.record(2, 2)
    assert target.state.soaks[1].healthy_since == stamp(target.now - 100)


def test_a_watch_that_begins_in_time_leaves_no_gap_and_a_later_one_does_although_the_record_vouched(target: Target) -> None:
    target.now += 10 * DRIFT
    target.beat = Beat(target.now, 180.0, START + 180)
    assert target.proven(1, 10 * DRIFT)
    target.beat = Beat(target.now, 180.0, START + 181)
    assert (target.proven(1, 10 * DRIFT - 181), target.proven(1, 10 * DRIFT - 180)) == (True, False)


# --- as it is kept
def test_a_record_keeps_so_many_and_they_and_their_glimpses_read_back(target: Target) -> None:
    for number in range(2, MOST + 5):
        target.now += 10
        target.record(number, number)
    assert len(target.state.soaks) == MOST
    assert decode(encode(target.state, NAMESPACE, TOOLING), NAMESPACE, "shop", TOOLING).soaks == target.state.soaks
    summary = read_summary(summary_of(target.state))
    assert summary
    assert [glimpsed(text) for text in summary.soaks] == [replace(each, reads="", settings="") for each in target.state.soaks[:3]]


@pytest.mark.parametrize(
    "text", ["", "x", "a b c d e", f"{'a' * 40} 1 2 3 gone", f"{'a' * 40} x - - -", f"{'a' * 39} 1 - - -", "1 2 3 4 5 6"]
)
def test_what_no_summary_shows_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r".*"):
        glimpsed(text)


# --- against a naive model
@dataclass
class Naive:
    """What truly happened: the target's life, second by second, as (reads, healthy, known, rolled back from)."""

    seconds: list[tuple[int, bool]] = field(default_factory=list)
    back: set[int] = field(default_factory=set)

    def proves(self, reads: int, wanted: int) -> bool:
        """Whether these reads were healthy without a break for so long at the end of some stretch of theirs, and never left backwards."""
        if reads in self.back:
            return False
        run = best = 0
        for place, (on, healthy) in enumerate(self.seconds):
            run = run + 1 if on == reads and healthy else 0
            last = place + 1 == len(self.seconds) or self.seconds[place + 1][0] != reads
            best = max(best, run) if last else best
        return best >= wanted


@dataclass
class Life:
    """What happens to a target, in its record and in the model, minute by minute."""

    target: Target = field(default_factory=Target)
    naive: Naive = field(default_factory=Naive)
    on: int = 0
    healthy: bool = True

    def wait(self, count: int, *, known: bool = True) -> None:
        for _ in range(count):
            self.target.now += MINUTE
            self.naive.seconds.append((self.on, self.healthy and known))

    def deploy(self, reads: int) -> None:
        if reads != self.on:
            self._go(reads, None)

    def back(self, reads: int) -> None:
        if self.on and reads != self.on:
            self.naive.back.add(self.on)
            self._go(reads, Pin(commit_of(reads), reason="rollback, asked for"))

    def _go(self, reads: int, pin: Pin | None) -> None:
        self.naive.back.discard(reads)
        self.target.record(reads, reads, pin=pin)
        self.on, self.healthy = reads, True

    def ill(self, _: int) -> None:
        self._judge(healthy=False)

    def well(self, _: int) -> None:
        self._judge(healthy=True)

    def _judge(self, *, healthy: bool) -> None:
        if self.on:
            self.healthy = healthy
            self.target.judge("healthy" if healthy else "degraded")

    def fail(self, _: int) -> None:
        """Another commit's attempt fails, and none is open after it."""
        if self.on:
            self.target.open(9, 9)
            self.target.write(status=RunStatus("failed"), attempt=None)
            self.naive.seconds.append((self.on, False))

    def gap(self, _: int) -> None:
        if self.on:
            self.wait(31, known=False)
            self._judge(healthy=self.healthy)


_STEPS = st.tuples(st.sampled_from(["deploy", "deploy", "ill", "well", "back", "gap", "fail"]), st.integers(1, 5), st.integers(0, 12))


@given(st.lists(_STEPS, max_size=14), st.integers(1, 12))
def test_nothing_is_proven_that_was_not_healthy_for_so_long_without_a_break(steps: list[tuple[str, int, int]], wanted: int) -> None:
    life = Life()
    for what, reads, count in steps:
        getattr(life, what)(reads)
        life.wait(count)
    proven = {reads for reads in range(1, 6) if life.target.proven(reads, wanted * MINUTE)}
    assert proven <= {reads for reads in range(1, 6) if life.naive.proves(reads, wanted)}


@given(st.lists(st.integers(1, 12), min_size=1, max_size=MOST), st.integers(1, 12))
def test_all_that_was_healthy_for_so_long_and_then_replaced_is_proven(lasts: list[int], wanted: int) -> None:
    life = Life()
    for number, count in enumerate(lasts, 1):
        life.deploy(number)
        life.wait(count)
    assert [life.target.proven(number, wanted * MINUTE) for number in range(1, len(lasts) + 1)] == [count >= wanted for count in lasts]
