"""How often a rollout's record is written: what begins and ends together goes together, and nothing before what it follows."""

from __future__ import annotations

import contextlib
import math
import threading
from collections.abc import Callable

import pytest

from handler.engine.rollout_runner import journal
from handler.engine.rollout_runner.actions.stage import StepStage
from handler.engine.rollout_runner.journal import DONE
from handler.model.errors import ClusterUnavailable
from handler.state.record import State
from tests.patience import PATIENCE, until
from tests.unit.engine.in_memory_journal import Acts, InMemoryJournal, begun, go, group


def test_steps_that_begin_and_end_together_share_their_writes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journal, "_WRITE_EVERY", math.inf)
    count = 32

    class Slow(InMemoryJournal):
        """The write of the first begin waits until the other steps want theirs written, too."""

        def write(self, change: Callable[[State], State]) -> None:
            if len(self.written) == 1:
                until(lambda: len(self.batcher._coming.changes) == count - 1)
            super().write(change)

    fake, together, names = Slow(begun().state), threading.Barrier(count), [f"s{number}" for number in range(count)]

    def meet(_: StepStage) -> None:
        together.wait(PATIENCE)

    go(fake, Acts(dict.fromkeys(names, meet)), group("one", *names, parallel=True))
    assert fake.outcomes() == dict.fromkeys(names, DONE)
    assert len(fake.written) <= 3 + 2, "what there is to do, one begin, the others; their ends, told in one or two"


def test_the_end_of_a_step_is_written_with_the_begin_of_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journal, "_WRITE_EVERY", math.inf)
    fake, names = begun(), [f"s{number}" for number in range(20)]
    go(fake, Acts(), group("one", *names))
    assert fake.outcomes() == dict.fromkeys(names, DONE)
    assert len(fake.written) == 1 + 20 + 1, "what there is to do, each begin, the last end"


def test_no_step_stands_in_the_record_as_begun_before_the_end_of_what_it_follows() -> None:
    fake, chains = begun(), [[f"{chain}{number}" for number in range(8)] for chain in "abcdef"]
    go(fake, Acts(), *(group(f"g{names[0]}", *names) for names in chains), parallel=True)
    for state in fake.written:
        assert state.rollout
        begun_after_end = [(step.started, step.outcome) for step in state.rollout.steps]
        for at, (started, _) in enumerate(begun_after_end):
            assert not started or at % 8 == 0 or begun_after_end[at - 1][1] == DONE


def test_what_has_ended_is_written_though_nothing_follows_it_yet() -> None:
    fake = begun()

    def wait(_: StepStage) -> None:
        until(lambda: fake.outcomes()["a"] == DONE)

    go(fake, Acts({"b": wait}), group("one", "a", "b", parallel=True))
    assert fake.outcomes() == {"a": DONE, "b": DONE}


def test_a_steps_end_that_could_not_be_written_goes_with_the_next_write() -> None:
    class Broken(InMemoryJournal):
        """The write after that of the first begin fails, once."""

        def write(self, change: Callable[[State], State]) -> None:
            if len(self.written) == 2 and not broken:
                broken.append(change(self.state))
                raise ClusterUnavailable.of("ConfigMap/anneal/anneal-shop", "no answer")
            super().write(change)

    broken: list[State] = []
    fake = Broken(begun().state)
    with contextlib.suppress(ClusterUnavailable):  # unless nothing but the end was in that write
        go(fake, Acts(), group("one", "a", "b"))
    assert broken
    assert fake.outcomes()["a"] == DONE
