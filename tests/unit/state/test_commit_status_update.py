"""What a record owes its git host after each kind of write: pending, every end, superseded ones, and what says nothing new."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handler.model.commit_status import TEXT, StatusState
from handler.model.event import Delivery
from handler.model.result import Outcome
from handler.state import run_history
from handler.state.commit_status_update import kept, only_shown, posted, without
from handler.state.configmap import decode, encode, read_summary, summary_of
from handler.state.record import Attempt, HeldPlan, Run, State
from handler.state.record_values import MOST_CHANGES, MOST_COMMITS
from tests.unit.state.samples import NAMESPACE, NOON, TOKEN, TOOLING, blank

pytestmark = pytest.mark.slow

A, B, C = (digit * 40 for digit in "abc")
READS = {A: "1" * 64, B: "2" * 64, C: "3" * 64}


@dataclass
class Record:
    """A record as runs write it."""

    state: State = field(default_factory=blank)
    every: bool = False
    number: int = 0

    def write(self, after: State) -> None:
        self.state = kept(self.state, after, every=self.every)

    def run(self, commit: str, outcome: str, *, trigger: str = "push", message: str = "", **parts: object) -> Run:
        self.number += 1
        facts = {"counts": {}, "duration": 2.14, "message": message} | parts
        return Run(f"shop.{self.number}", trigger, str(outcome), NOON, commit, **facts)  # type: ignore[arg-type]  # by name

    def opens(self, commit: str) -> None:
        self.write(replace(self.state, attempt=Attempt(commit, READS[commit], "4" * 64, TOKEN, NOON), held=None))

    def ends(self, run: Run, **parts: object) -> None:
        history = run_history.append(self.state.history, run)
        self.write(replace(self.state, history=history, **parts))  # type: ignore[arg-type]  # by name

    def applies(self, commit: str, *, trigger: str = "push", deliveries: tuple[Delivery, ...] = (), **counts: int) -> None:
        self.opens(commit)
        run = self.run(commit, Outcome.APPLIED, trigger=trigger, counts=counts or {"created": 3})
        self.ends(run, attempt=None, commit=commit, reads=READS[commit], deliveries=deliveries)

    def fails(self, commit: str, message: str, *, trigger: str = "push", **counts: int) -> None:
        self.ends(self.run(commit, Outcome.FAILED, trigger=trigger, message=message, counts=counts))

    def holds(self, commit: str) -> None:
        held = HeldPlan("h1", ("12 of 40 objects would go",), (), commit, READS[commit], "4" * 64, NOON)
        self.ends(self.run(commit, Outcome.HELD, message="held as h1: 12 of 40 objects would go"), held=held)

    @property
    def says(self) -> dict[str, tuple[str, str]]:
        return {each.commit: (each.state, each.text) for each in self.state.commit_statuses}


def test_a_push_is_pending_and_then_a_success_with_its_counts() -> None:
    record = Record()
    record.opens(A)
    assert record.says == {A: ("pending", "being applied")}
    record.applies(A, created=3, configured=1, unchanged=9)
    assert record.says == {A: ("success", "3 created, 1 configured in 2.1 s")}


def test_a_failure_carries_what_was_written_the_first_reason_and_how_many_more() -> None:
    record = Record()
    record.opens(A)
    record.fails(A, "Deployment/shop/api: a.yaml:3: no such field\nService/shop/b: gone\nService/shop/c: gone", created=2)
    assert record.says == {A: ("failure", "2 created, then: Deployment/shop/api: a.yaml:3: no such field (and 2 more)")}
    record.fails(A, "x" * 4000 + "\nmore")
    assert len(record.says[A][1]) == TEXT
    assert record.says[A][1].endswith("… (and 1 more)")


def test_what_was_begun_or_held_is_superseded_by_what_comes_after_it() -> None:
    record = Record()
    record.opens(A)
    record.opens(B)
    assert record.says[A] == ("superseded", f"superseded by {B[:12]}")
    record.holds(B)
    assert record.says[B] == ("held", "held as h1: 12 of 40 objects would go")
    record.applies(B, pruned=12)
    record.holds(C)
    record.applies(A)
    assert record.says == {
        A: ("success", "3 created in 2.1 s"),
        B: ("success", "12 pruned in 2.1 s"),
        C: ("superseded", f"superseded by {A[:12]}"),
    }
    record.fails(C, "broken")
    record.applies(B)
    assert record.says[C] == ("failure", "broken"), "it stays one though the next commit mends it"


def test_a_commit_that_waits_for_another_target_is_pending_with_the_reason() -> None:
    record = Record()
    record.ends(record.run(A, Outcome.WAITING, message="waiting for infra: it is at 1111\nmore"))
    assert record.says == {A: ("pending", "waiting for infra: it is at 1111")}
    record.applies(A)
    assert record.says[A][0] == "success"


@pytest.mark.parametrize("trigger", ["tick", "drift", "resource"])
def test_drift_and_new_settings_are_not_the_commits_doing(trigger: str) -> None:
    record = Record()
    record.applies(A)
    before = record.says
    record.opens(A)
    record.fails(A, "quota", trigger=trigger)
    record.applies(A, trigger=trigger, configured=1)
    assert record.says == before


def test_a_commit_from_before_there_were_statuses_gets_none_of_the_clock() -> None:
    record = Record(blank(commit=A, reads=READS[A]))
    record.opens(A)
    record.fails(A, "quota", trigger="drift")
    assert record.says == {}


def test_a_commit_that_is_read_and_changes_no_object_is_a_success() -> None:
    record = Record()
    record.applies(A)
    record.ends(record.run(B, Outcome.UNCHANGED), commit=B, reads=READS[B])
    assert record.says[B] == ("success", "live equals git: nothing to change")


@pytest.mark.parametrize("every", [False, True])
def test_a_commit_that_changes_nothing_for_the_target_has_none_or_a_part_in_one(every: bool) -> None:
    record = Record(every=every)
    record.applies(A)
    record.ends(record.run(B, Outcome.UNCHANGED), commit=B)
    assert record.says.get(B) == (("untouched", "nothing that it reads changed") if every else None)


def test_the_way_back_says_nothing_new_of_the_commit_that_it_leads_to() -> None:
    record = Record()
    record.applies(A)
    record.opens(B)
    record.fails(B, "Deployment/shop/api: never ready")
    record.opens(A)
    record.ends(record.run(A, Outcome.ROLLED_BACK, trigger="rollback", message="rolled back"), attempt=None)
    assert record.says == {A: ("success", "3 created in 2.1 s"), B: ("failure", "Deployment/shop/api: never ready")}


@pytest.mark.parametrize("ended", [Outcome.UNCHANGED, Outcome.FAILED])
def test_the_way_back_to_a_commit_that_has_no_success_ends_as_what_it_is(ended: Outcome) -> None:
    record = Record(every=True)
    record.applies(C)
    if ended is Outcome.FAILED:
        record.applies(A)
        record.fails(A, "gone", trigger="replay")
    else:
        record.ends(record.run(A, ended), commit=A)
    before = record.says[A]
    record.opens(B)
    record.fails(B, "Deployment/shop/api: never ready")
    record.opens(A)
    record.ends(record.run(A, Outcome.ROLLED_BACK, trigger="rollback", counts={"configured": 1}), attempt=None)
    assert record.says[A] == (before if ended is Outcome.UNCHANGED else ("success", "1 configured in 2.1 s"))
    assert record.says[B][0] == "failure"


def test_the_clocks_runs_repeat_no_failure_in_other_words_until_it_is_another() -> None:
    record = Record()
    record.applies(A)
    record.opens(B)
    for trigger, message, code in (
        ("push", "1 of 9 ready", "rollout-failed"),
        ("tick", "2 of 9 ready", "rollout-failed"),
        ("drift", "3 of 9 ready", "rollout-failed"),
    ):
        record.ends(record.run(B, Outcome.FAILED, trigger=trigger, message=message, code=code))
        assert record.says[B] == ("failure", "1 of 9 ready")
    record.ends(record.run(B, Outcome.FAILED, trigger="replay", message="4 of 9 ready", code="rollout-failed"))
    assert record.says[B] == ("failure", "4 of 9 ready")
    record.ends(record.run(B, Outcome.FAILED, trigger="tick", message="no such kind", code="unserved"))
    assert record.says[B] == ("failure", "no such kind")
    record.applies(B, trigger="tick")
    assert record.says[B][0] == "success"


@pytest.mark.parametrize("odd", ["unavailable", "held"])
def test_however_long_the_clock_meets_one_thing_and_another_a_commit_has_few_statuses_and_its_end(odd: str) -> None:
    record, changes = Record(), 0
    record.applies(A)
    record.opens(B)
    for number in range(400):
        before = record.says[B]
        if number % 2 and odd == "held":
            record.holds(B)
        else:
            outcome, code = Outcome.FAILED, "refused" if number % 2 else odd
            record.ends(record.run(B, outcome, trigger="tick", message=f"try {number}", code=code), held=None)
        changes += record.says[B] != before
    assert changes <= MOST_CHANGES
    record.applies(B, trigger="tick")
    assert record.says[B][0] == "success"


def delivery(commit: str, number: int = 1) -> Delivery:
    return Delivery(str(number), "github", "refs/heads/main", commit, "ada", NOON)


def test_of_many_statuses_what_goes_on_is_dropped_last() -> None:
    record = Record()
    record.applies(A)
    record.fails(B, "broken")
    pushed = tuple(delivery(f"{number:040x}", number) for number in range(MOST_COMMITS + 5))
    attempt = Attempt(C, READS[C], "4" * 64, TOKEN, NOON)
    record.write(replace(record.state, attempt=attempt, deliveries=pushed))
    assert len(record.says) == MOST_COMMITS
    assert record.says[C] == ("pending", "being applied")


def test_a_pushed_commit_that_no_run_aimed_at_is_superseded_if_the_host_confirms_it() -> None:
    record = Record()
    record.applies(A)
    record.applies(C, deliveries=(delivery(B), delivery(C, 2)))
    hinted = next(each for each in record.state.commit_statuses if each.commit == B)
    assert (hinted.state, hinted.text, hinted.hinted, hinted.unless) == ("superseded", f"superseded by {C[:12]}", True, READS[A])
    record.applies(B, deliveries=(delivery(B), delivery(C, 2)))
    assert record.says[B][0] == "success"


def test_of_pushes_that_change_nothing_for_the_target_none_is_superseded() -> None:
    record = Record()
    record.applies(A)
    record.ends(record.run(C, Outcome.UNCHANGED), commit=C, deliveries=(delivery(B), delivery(C, 2)))
    assert record.says.keys() == {A}


def test_the_same_end_again_is_not_owed_again() -> None:
    record = Record()
    record.fails(A, "broken")
    record.state = posted(record.state, record.state.commit_statuses)
    record.fails(A, "broken")
    assert [each.posted for each in record.state.commit_statuses] == [True]
    record.fails(A, "otherwise broken")
    assert [each.posted for each in record.state.commit_statuses] == [False]


def test_what_was_posted_is_marked_only_as_long_as_it_is_what_the_record_says() -> None:
    record = Record()
    record.fails(A, "broken")
    sent = record.state.commit_statuses
    record.applies(A)
    assert posted(record.state, sent) == record.state
    marked = posted(record.state, record.state.commit_statuses)
    assert only_shown(record.state, marked)
    assert not only_shown(record.state, replace(marked, commit=B))
    assert without(marked, marked.commit_statuses).commit_statuses == ()


def test_the_record_keeps_a_few_and_lets_go_first_of_what_the_host_has() -> None:
    record = Record()
    record.fails("0" * 40, "owed")
    for number in range(1, 3 * MOST_COMMITS):
        record.fails(f"{number:040x}", "posted")
        record.state = posted(record.state, [each for each in record.state.commit_statuses if each.text == "posted"])
    assert len(record.state.commit_statuses) == MOST_COMMITS
    assert record.state.commit_statuses[0].commit == f"{3 * MOST_COMMITS - 1:040x}"
    assert "0" * 40 in record.says


def test_a_record_says_in_its_summary_that_it_owes_an_end() -> None:
    record = Record()
    record.opens(A)
    for owes in (False, True, False):
        body = encode(record.state, NAMESPACE, TOOLING)
        assert decode(body, NAMESPACE, "shop", TOOLING) == record.state
        summary = read_summary(summary_of(record.state))
        assert summary is not None
        assert summary.owes is owes
        record.fails(A, "broken")
        record.state = posted(record.state, record.state.commit_statuses) if owes else record.state


STEPS = st.lists(st.tuples(st.sampled_from(["open", "apply", "fail", "hold", "tick", "drift"]), st.sampled_from([A, B, C])), max_size=25)


@given(STEPS)
def test_at_most_one_commit_is_pending_and_what_the_target_left_has_an_end(steps: list[tuple[str, str]]) -> None:
    record = Record()
    for act, commit in steps:
        match act:
            case "open":
                record.opens(commit)
            case "apply":
                record.applies(commit)
            case "fail":
                record.fails(commit, "broken")
            case "hold" if record.state.attempt is None:
                record.holds(commit)
            case "tick" | "drift":
                record.applies(commit, trigger=act)
        going = [each for each in record.state.commit_statuses if each.state in (StatusState.PENDING, StatusState.HELD)]
        aims = {each.commit for each in (record.state.attempt, record.state.held) if each}
        assert {each.commit for each in going} <= aims
        assert len(record.says) == len(record.state.commit_statuses)
