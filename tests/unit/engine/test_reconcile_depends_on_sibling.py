"""`dependsOn` inside of one repository: one push is for both, and the dependant waits until the other has recorded that very commit."""

from __future__ import annotations

from typing import Any

import pytest

from handler.config.settings import Settings
from handler.engine.run.errors import DependencyNotReady
from handler.model.result import Outcome
from handler.state.record import State
from tests.fakes.engine import engine, state_of
from tests.unit.engine.two_targets import Bench, document

pytestmark = pytest.mark.slow


class Ordered(Bench):
    """`b` depends on `a`; each declares its own object in versions."""

    def configure(self, **changes: dict[str, Any]) -> None:
        super().configure(**changes)
        self.handler = engine(self.server, self.host, Settings(targets=self.targets), way=self._way, fetched=True)

    def pushes(self, a: str = "1", b: str = "1") -> str:
        return self.push(a={"version": document("a-version", a)}, b={"version": document("b-version", b)})

    def waits(self, *words: str) -> None:
        result = self.run("b", "tick")
        assert (result.outcome, result.code) == (Outcome.WAITING, DependencyNotReady.code), result
        assert all(word in result.message for word in words), result.message

    def state(self, name: str) -> State:
        return state_of(self.handler, name)


@pytest.fixture
def pair() -> Ordered:
    made = Ordered()
    made.configure(b={"depends_on": ("a",)})
    made.pushes()
    made.applied("a", "b")
    return made


def test_the_dependant_waits_for_the_very_commit_also_where_the_other_is_healthy_with_the_one_before(pair: Ordered) -> None:
    sha = pair.pushes("2", "2")
    pair.waits(f"git is at {sha[:12]}")
    pair.applied("a")
    assert pair.run("b", "tick").outcome is Outcome.APPLIED
    assert (pair.state("a").commit, pair.state("b").commit) == (sha, sha)


def test_a_commit_that_changes_only_the_dependant_waits_for_the_record_of_the_other(pair: Ordered) -> None:
    sha = pair.pushes("1", "2")
    pair.waits("waiting for a")
    assert pair.run("a").outcome is Outcome.UNCHANGED, "nothing that it reads changed"
    assert pair.state("a").commit == sha
    assert pair.run("b", "tick").outcome is Outcome.APPLIED


def test_a_commit_that_reads_the_same_is_recorded_and_waits_for_nothing(pair: Ordered) -> None:
    sha = pair.pushes("2")
    assert pair.run("b").outcome is Outcome.UNCHANGED
    assert (pair.state("b").commit, pair.state("b").awaits) == (sha, None)


def test_a_paused_dependency_does_not_take_the_commit_that_was_meant_for_both(pair: Ordered) -> None:
    pair.configure(a={"suspend": True})
    pair.pushes("2", "2")
    pair.waits("suspended in the configuration", "set `suspend: false` for a in anneal.yaml")


def test_a_persons_pin_on_the_other_holds_nothing_up_until_its_path_moves_on(pair: Ordered) -> None:
    first = pair.state("a").commit
    pair.pushes("2")
    pair.applied("a")
    assert pair.run("a", "oneoff", commit=first).outcome is Outcome.APPLIED
    pair.pushes("2", "2")
    assert pair.run("b").outcome is Outcome.APPLIED, "pinned, as a person wanted it"
    pair.pushes("3", "3")
    pair.waits("waiting for a")
    pair.applied("a")
    assert pair.run("b", "tick").outcome is Outcome.APPLIED


def test_a_head_that_went_back_to_what_is_recorded_ends_the_wait(pair: Ordered) -> None:
    recorded = pair.state("b").commit
    pair.pushes("2", "2")
    pair.waits()
    pair.host.push(recorded)
    assert pair.run("b", "tick").outcome is Outcome.UNCHANGED
    assert (pair.state("b").awaits, pair.state("b").status.phase) == (None, "applied")
