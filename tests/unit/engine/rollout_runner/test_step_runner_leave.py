"""Steps beside one that failed: what they have made is taken away before the rollout ends. And how many go at once."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field, replace

import pytest

from handler.engine.rollout_runner.actions.stage import StepStage
from handler.engine.rollout_runner.journal import DONE, FAILED, SKIPPED
from handler.engine.rollout_runner.step_graph import AT_ONCE
from handler.model.errors import ClusterUnavailable, RolloutFailed, StillWaiting
from handler.model.rollout import Step
from tests.patience import PATIENCE
from tests.unit.engine.in_memory_journal import Acts, InMemoryJournal, begun, go, group, held_up, once_all_began, record, refused


@dataclass
class Leaving(Acts):
    """An action that leaves traces; `troubles`: how often they can't be taken away."""

    troubles: int = 0
    left: list[str] = field(default_factory=list)

    def leave(self, stage: StepStage, step: Step) -> None:
        assert stage.step is step
        self.left.append(step.name)
        if self.troubles:
            self.troubles -= 1
            raise ClusterUnavailable.of("kubernetes", "answers 503")


def beside(troubles: int = 0) -> Leaving:
    return Leaving(dict(zip("ab", once_all_began(2, held_up, refused), strict=True)), troubles=troubles)


def test_a_parallel_step_beside_a_failed_one_cleans_up() -> None:
    fake, acts = begun(), beside()
    with pytest.raises(RolloutFailed, match="its login"):
        go(fake, acts, group("one", "a", "b", parallel=True))
    assert (acts.left, fake.outcomes()) == (["a"], {"a": SKIPPED, "b": FAILED})


def test_a_step_that_had_left_its_wait_to_the_next_run_is_left_when_another_fails_after_it() -> None:
    left = threading.Event()

    def waiting(_: StepStage) -> None:
        left.set()
        raise StillWaiting.of("target shop", "isn't healthy yet")

    def late(stage: StepStage) -> None:
        assert left.wait(PATIENCE)
        refused(stage)

    fake, acts = begun(), Leaving({"a": waiting, "b": late})
    with pytest.raises(RolloutFailed, match="its login"):
        go(fake, acts, group("one", "a", "b", parallel=True), group("two", "c"))
    assert (sorted(acts.order), acts.left) == (["a", "b"], ["a"])
    assert fake.outcomes() == {"a": SKIPPED, "b": FAILED, "c": ""}


def test_a_rollout_hasnt_failed_before_its_steps_have_cleaned_up() -> None:
    fake, acts = begun(), beside(troubles=1)
    with pytest.raises(ClusterUnavailable):
        go(fake, acts, group("one", "a", "b", parallel=True))
    assert fake.outcomes() == {"a": "", "b": FAILED}
    with pytest.raises(RolloutFailed, match=r"its login is .* \(step b of group one\)"):
        go(fake, acts, group("one", "a", "b", parallel=True))
    assert (acts.left, fake.outcomes()) == (["a", "a"], {"a": SKIPPED, "b": FAILED})
    assert sorted(acts.order) == ["a", "b"], "the second run only tidies up"


def test_a_run_killed_right_after_a_failed_step_resumes_with_the_cleanup() -> None:
    fresh = replace(record("d", of="two"), started="")
    fake: InMemoryJournal = begun(record("a", DONE, of="two"), record("b", of="two"), record("c", FAILED, "no such table"), fresh)
    acts = Leaving()
    with pytest.raises(RolloutFailed, match="no such table"):
        go(fake, acts, group("two", "a", "b", "d"), group("one", "c"), parallel=True)
    assert (acts.order, acts.left) == ([], ["b"])
    assert fake.outcomes() == {"a": DONE, "b": SKIPPED, "c": FAILED, "d": ""}


def test_the_limit_of_parallel_steps_holds_over_all_groups() -> None:
    lock, full = threading.Lock(), threading.Barrier(AT_ONCE)
    now, most, begun_so_far = 0, 0, 0

    def act(_: StepStage) -> None:
        nonlocal now, most, begun_so_far
        with lock:
            now, begun_so_far = now + 1, begun_so_far + 1
            most, first = max(most, now), begun_so_far <= AT_ONCE
        if first:
            full.wait(PATIENCE)
        with lock:
            now -= 1

    groups = [group(f"g{one}", *(f"s{one}-{two}" for two in range(30)), parallel=True) for one in range(3)]
    names = [step.name for each in groups for step in each.steps]
    fake = begun()
    go(fake, Acts(dict.fromkeys(names, act)), *groups, parallel=True)
    assert (most, set(fake.outcomes().values())) == (AT_ONCE, {DONE})
