"""Steps and groups: in order or at once, recorded before what follows, ended together, gone on with where a killed run was."""

from __future__ import annotations

import math
import threading
from dataclasses import replace

import pytest

from handler.engine.rollout_runner import journal
from handler.engine.rollout_runner.actions.stage import StepStage
from handler.engine.rollout_runner.journal import DONE, FAILED, SKIPPED
from handler.engine.rollout_runner.step_runner import passed_over, repaired
from handler.model.errors import AccessDenied, AnnealError, LeaseLost, NewerHead, Problem, RolloutFailed, StillWaiting
from handler.model.plan import Action, Change
from handler.model.rollout import Rollout
from handler.state.record_format import seconds_of, stamp
from tests.patience import PATIENCE
from tests.unit.engine.in_memory_journal import Acts, begun, go, group, held_up, identity, once_all_began, raising, record, refused, step
from tests.unit.state.samples import NOON

pytestmark = pytest.mark.slow


# --- order
def test_steps_and_groups_go_one_after_the_other_and_each_begins_and_ends_in_the_record_first() -> None:
    fake = begun()
    before: list[dict[str, str]] = []

    def noted(stage: StepStage) -> None:
        assert stage.journal.find(stage.group, stage.step.name)
        assert fake.step(stage.step.name).started
        before.append({name: outcome for name, outcome in fake.outcomes().items() if outcome})

    acts = Acts(dict.fromkeys("abc", noted))
    go(fake, acts, group("one", "a", "b"), group("two", "c"))
    assert acts.order == ["a", "b", "c"]
    assert before == [{}, {"a": DONE}, {"a": DONE, "b": DONE}]
    assert fake.outcomes() == dict.fromkeys("abc", DONE)


def test_everything_that_is_to_be_done_stands_in_the_record_before_the_first_step_begins() -> None:
    fake = begun()
    go(fake, Acts(), group("one", "a", "b"), group("two", "c"))
    first = fake.written[0].rollout
    assert first
    assert [(each.group, each.step, each.object, each.action, each.started) for each in first.steps] == [
        ("one", "a", "ConfigMap/shop/a", "Act", ""),
        ("one", "b", "ConfigMap/shop/b", "Act", ""),
        ("two", "c", "ConfigMap/shop/c", "Act", ""),
    ]


@pytest.mark.parametrize("level", ["steps", "groups"])
def test_parallel_steps_and_groups_run_at_once(level: str) -> None:
    fake, together = begun(), threading.Barrier(12)

    def meet(_: StepStage) -> None:
        together.wait(PATIENCE)

    names = [f"s{number}" for number in range(12)]
    acts = Acts(dict.fromkeys(names, meet))
    groups = [group("one", *names, parallel=True)] if level == "steps" else [group(f"g{name}", name) for name in names]
    go(fake, acts, *groups, parallel=level == "groups")
    assert fake.outcomes() == dict.fromkeys(names, DONE)


# --- failures
def test_a_failed_step_ends_the_rollout_and_says_where_and_why_masked_in_the_record() -> None:
    fake, acts = begun(), Acts({"b": refused})
    with pytest.raises(RolloutFailed, match=r"ConfigMap/shop/b: its login is .* \(step b of group one\)"):
        go(fake, acts, group("one", "a", "b", "c"), group("two", "d"))
    assert acts.order == ["a", "b"]
    assert fake.outcomes() == {"a": DONE, "b": FAILED, "c": "", "d": ""}
    assert fake.step("b").message == "ConfigMap/shop/b: its login is http://ann:***@db, and that is wrong"


def test_a_failed_continue_on_error_step_is_recorded_and_the_rollout_goes_on() -> None:
    fake, acts = begun(), Acts({"b": refused})
    go(fake, acts, group("one", "a", step("b", continue_on_error=True), "c"), group("two", "d"))
    assert fake.outcomes() == {"a": DONE, "b": FAILED, "c": DONE, "d": DONE}


def test_what_a_continue_on_error_step_hasnt_written_isnt_reported_nor_waited_for() -> None:
    groups = (group("one", "a", step("b", continue_on_error=True)),)
    changes = [Change(Action.CREATE, identity(name)) for name in "ab"]
    made = go(begun(), Acts({"b": refused}), *groups, changes=changes)
    assert [(each.identity, each.action) for each in made.applier.outcomes] == [(identity("b"), Action.SKIP)]
    assert passed_over(Rollout("all", groups), made.journal) == {identity("b")}


def test_steps_beside_a_failed_one_are_ended_and_said_to_be_skipped() -> None:
    fake, acts = begun(), Acts(dict(zip("abc", once_all_began(3, held_up, refused, held_up), strict=True)))
    with pytest.raises(RolloutFailed, match="its login"):
        go(fake, acts, group("one", "a", "b", "c", parallel=True))
    assert fake.outcomes() == {"a": SKIPPED, "b": FAILED, "c": SKIPPED}
    assert "ConfigMap/shop/b" in fake.step("a").message


def test_a_group_beside_a_failed_one_begins_no_further_step() -> None:
    fake, acts = begun(), Acts(dict(zip("ab", once_all_began(2, refused, held_up), strict=True)))
    with pytest.raises(RolloutFailed):
        go(fake, acts, group("one", "a"), group("two", "b", "c"), parallel=True)
    assert "c" not in acts.order
    assert fake.outcomes() == {"a": FAILED, "b": SKIPPED, "c": ""}


# --- what ends a run ends no rollout
@pytest.mark.parametrize(
    "error",
    [LeaseLost.of("Lease", "taken"), NewerHead.of("target shop", "moved"), AccessDenied.of("ConfigMap/shop/b", "may not be written")],
)
def test_an_interrupt_ends_all_steps_at_once_and_leaves_them_under_way(error: AnnealError) -> None:
    fake, acts = begun(), Acts({"a": held_up, "b": raising(error), "c": held_up})
    with pytest.raises(type(error)):
        go(fake, acts, group("one", "a", "b", "c", parallel=True))
    assert fake.outcomes() == {"a": "", "b": "", "c": ""}
    assert all(fake.step(name).started for name in acts.order)


def test_a_lost_lease_is_raised_before_other_errors_of_parallel_steps() -> None:
    ends = once_all_began(2, raising(RolloutFailed.of("x", "failed")), raising(LeaseLost.of("Lease", "taken")))
    acts = Acts(dict(zip("ab", ends, strict=True)))
    with pytest.raises(LeaseLost):
        go(begun(), acts, group("one", "a", "b", parallel=True))


def test_a_step_that_leaves_its_wait_to_the_next_run_lets_parallel_steps_go_on() -> None:
    fake, first = begun(), threading.Event()

    def waiting(_: StepStage) -> None:
        first.set()
        raise StillWaiting.of("target shop", "isn't healthy yet")

    def late(stage: StepStage) -> None:
        assert first.wait(PATIENCE)
        stage.beat()

    acts = Acts({"a": waiting, "b": late})
    with pytest.raises(StillWaiting):
        go(fake, acts, group("one", "a", "b", parallel=True), group("two", "c"))
    assert fake.outcomes() == {"a": "", "b": DONE, "c": ""}


def test_a_waiting_step_is_interrupted_by_a_newer_head() -> None:
    def look() -> None:
        raise NewerHead.of("target shop", "moved")

    with pytest.raises(NewerHead):
        go(begun(), Acts({"a": held_up}), group("one", "a"), look=look)


def test_a_bug_in_one_step_ends_its_parallel_steps() -> None:
    def mistaken(_: StepStage) -> None:
        raise ZeroDivisionError

    fake, acts = begun(), Acts(dict(zip("ab", once_all_began(2, held_up, mistaken), strict=True)))
    with pytest.raises(ZeroDivisionError):
        go(fake, acts, group("one", "a", "b", parallel=True))
    assert fake.outcomes() == {"a": "", "b": ""}


# --- after a kill
def test_a_resumed_rollout_skips_done_steps_and_continues_the_open_one() -> None:
    fake = begun(record("a", DONE), record("b", mark="uid-1"), replace(record("c"), started=""))
    met: list[tuple[float, str]] = []

    def noted(stage: StepStage) -> None:
        met.append((stage.since, stage.mark))

    acts = Acts({"b": noted})
    go(fake, acts, group("one", "a", "b", "c"))
    assert acts.order == ["b", "c"]
    assert met == [(seconds_of(NOON), "uid-1")]
    assert seconds_of(fake.step("c").started) == fake.now
    assert fake.outcomes() == dict.fromkeys("abc", DONE)


def test_a_step_that_failed_before_the_kill_ends_the_rollout_without_acting() -> None:
    fake, acts = begun(record("a", FAILED, "ConfigMap/shop/a: was refused"), record("b")), Acts()
    with pytest.raises(RolloutFailed, match="was refused"):
        go(fake, acts, group("one", "a", "b"))
    assert acts.order == []


def test_a_continue_on_error_step_that_failed_before_the_kill_is_passed_over() -> None:
    fake, acts = begun(record("a", FAILED, "was refused"), record("b")), Acts()
    go(fake, acts, group("one", step("a", continue_on_error=True), "b"))
    assert acts.order == ["b"]


def test_drift_after_a_steps_end_isnt_written_nor_reported_as_written() -> None:
    change = Change(Action.CREATE, identity("a"))
    made = go(begun(record("a", DONE)), Acts(), group("one", "a"), changes=[change])
    assert [(each.identity, each.action) for each in made.applier.outcomes] == [(identity("a"), Action.SKIP)]


def test_the_message_of_an_action_that_judges_itself_is_the_steps() -> None:
    fake = begun()
    go(fake, Acts({"a": lambda _: "3 of 3 samples below 0.01"}), group("one", "a"))
    assert (fake.step("a").outcome, fake.step("a").message) == (DONE, "3 of 3 samples below 0.01")


def test_what_an_action_tells_and_remembers_stands_in_the_record_at_once() -> None:
    fake = begun()

    def act(stage: StepStage) -> None:
        stage.remember("phase-2")
        stage.report("10 % of the replicas")
        assert (fake.step("a").mark, fake.step("a").message) == ("phase-2", "10 % of the replicas")
        writes = len(fake.written)
        stage.remember("phase-2")
        stage.report("10 % of the replicas")
        assert len(fake.written) == writes

    go(fake, Acts({"a": act}), group("one", "a"))


def test_progress_is_written_with_the_next_transition(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journal, "_WRITE_EVERY", math.inf)
    fake = begun()

    def act(stage: StepStage) -> None:
        for percent in range(50):
            stage.report(f"{percent} % of the replicas")
        assert fake.step("a").message == "0 % of the replicas"
        stage.remember("phase-2")
        assert (fake.step("a").mark, fake.step("a").message) == ("phase-2", "49 % of the replicas")

    go(fake, Acts({"a": act}), group("one", "a"))


def test_progress_is_written_within_a_while_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journal, "_WRITE_EVERY", math.inf)
    fake = begun()

    def act(stage: StepStage) -> None:
        stage.report("1 %")
        stage.report("2 %")
        stage.beat()
        assert fake.step("a").message == "1 %"
        monkeypatch.setattr(journal, "_WRITE_EVERY", 0.0)
        stage.beat()
        assert fake.step("a").message == "2 %"

    go(fake, Acts({"a": act}), group("one", "a"))


# --- without a rollout
def test_a_repair_writes_what_differs_and_carries_no_deletion_out() -> None:
    changes = [Change(action, identity(str(action))) for action in (Action.UPDATE, Action.PRUNE, Action.CREATE, Action.UNCHANGED)]
    assert [change.action for change in repaired(changes)] == [Action.UPDATE, Action.CREATE, Action.UNCHANGED]


def test_all_problems_of_one_step_are_recorded() -> None:
    fake = begun()
    acts = Acts({"a": raising(RolloutFailed(Problem("x", "one"), Problem("y", "two")))})
    with pytest.raises(RolloutFailed) as failure:
        go(fake, acts, group("one", "a"))
    assert [problem.subject for problem in failure.value.problems] == ["x", "y"]
    assert fake.step("a").message == "x: one\ny: two"


def test_a_step_that_seems_to_begin_later_begins_now_and_keeps_its_mark() -> None:
    """Its time would last as much longer as the clock was set back, in each run anew."""
    fake = begun(replace(record("a", mark="uid-1"), started="2099-01-01T00:00:00Z"))
    seen: list[tuple[float, str]] = []
    go(fake, Acts({"a": lambda stage: seen.append((stage.since, stage.mark))}), group("one", "a"))
    assert seen == [(fake.now, "uid-1")]
    assert fake.step("a").started == stamp(fake.now)
