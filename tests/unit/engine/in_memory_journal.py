"""A stepper over a record in memory, with an action of the test's own."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

from handler.engine.apply.apply import AppliedObjects
from handler.engine.rollout_runner.actions.stage import StepStage
from handler.engine.rollout_runner.journal import Journal
from handler.engine.rollout_runner.step_runner import StepRunner
from handler.model.errors import AnnealError, RolloutFailed
from handler.model.event import Job
from handler.model.names import Identity
from handler.model.plan import Change, Plan
from handler.model.rollout import Group, Mode, Rollout, Step
from handler.state.record import Progress, State, StepRecord
from handler.state.record_format import seconds_of
from handler.state.write_batcher import WriteBatcher
from tests.patience import PATIENCE, until
from tests.unit.state.samples import NOON, blank, sha

DIGEST = "d" * 64
Act = Callable[[StepStage], str | None]


@dataclass
class InMemoryJournal:
    """The record of a run, in memory; `written` has each state in turn."""

    state: State
    force: bool = False
    now: float = seconds_of(NOON) + 60
    written: list[State] = field(default_factory=list)
    batcher: WriteBatcher[State] = field(init=False)

    def __post_init__(self) -> None:
        self.batcher = WriteBatcher(self.write)

    def clock(self) -> float:
        return self.now

    @property
    def job(self) -> Job:
        return Job("shop", "push", force=self.force)

    def record(self, change: Callable[[State], State]) -> None:
        self.batcher.put(change)

    def write(self, change: Callable[[State], State]) -> None:
        self.state = change(self.state)
        self.written.append(self.state)

    def outcomes(self) -> dict[str, str]:
        assert self.state.rollout
        return {step.step: step.outcome for step in self.state.rollout.steps}

    def step(self, name: str) -> StepRecord:
        assert self.state.rollout
        return next(step for step in self.state.rollout.steps if step.step == name)


@dataclass
class Kept:
    """How a wait is kept, in memory: what one run keeps the next one finds."""

    what: str
    since: float
    over: bool = False
    seen: Mapping[str, float] = field(default_factory=dict)

    def note(self) -> None:
        raise NotImplementedError

    def end(self) -> None:
        raise NotImplementedError

    def report(self, unhealthy: tuple[str, ...]) -> None:
        raise NotImplementedError

    def moved(self, seen: str) -> float | None:
        return self.seen.get(seen)

    def keep(self, seen: Mapping[str, float]) -> None:
        self.seen = seen


@dataclass
class Acts:
    """An action of the test's own: what each step does stands in `does`; `order` has who began."""

    does: Mapping[str, Act] = field(default_factory=dict)
    mode: Mode = Mode.APPLY
    keys: Sequence[str] = ()
    order: list[str] = field(default_factory=list)

    def read(self, raw: Mapping[str, Any], field: str) -> Mapping[str, Any]:
        raise NotImplementedError

    def act(self, stage: StepStage, step: Step) -> str | None:
        self.order.append(step.name)
        act = self.does.get(step.name)
        return act(stage) if act else None


def step(name: str, **more: Any) -> Step:
    return Step(name, f"{name}.yaml", identity(name), "Act", **more)


def identity(name: str) -> Identity:
    return Identity("", "ConfigMap", "shop", name)


def group(name: str, *steps: str | Step, parallel: bool = False) -> Group:
    return Group(name, tuple(each if isinstance(each, Step) else step(each) for each in steps), parallel)


def begun(*steps: StepRecord, **more: Any) -> InMemoryJournal:
    return InMemoryJournal(blank(rollout=Progress(sha(), DIGEST, NOON, steps=steps)), **more)


def record(name: str, outcome: str = "", message: str = "", mark: str = "", of: str = "one") -> StepRecord:
    return StepRecord(of, name, str(identity(name)), "Act", NOON, NOON if outcome else "", outcome, message, mark)


def stepper(fake: InMemoryJournal, acts: Acts, changes: Sequence[Change] = (), look: Callable[[], None] = lambda: None) -> StepRunner:
    planned = SimpleNamespace(plan=Plan("shop", sha(), (tuple(changes),)), desired={})
    planner = SimpleNamespace(target=SimpleNamespace(wait=None))
    applier: Any = SimpleNamespace(planned=planned, planner=planner, outcomes=[], written=set(), stored=AppliedObjects())
    waits: Any = SimpleNamespace(look=look)
    inputs: Any = SimpleNamespace(commit=SimpleNamespace(sha=sha()), prepared=SimpleNamespace(digest=DIGEST))
    run: Any = fake
    return StepRunner(applier, waits, Journal(run, inputs), {"Act": acts})


def refused(_: StepStage) -> None:
    raise RolloutFailed.of("ConfigMap/shop/b", "its login is http://ann:hunter2@db, and that is wrong")


def raising(error: AnnealError) -> Act:
    def act(_: StepStage) -> None:
        raise error

    return act


def held_up(stage: StepStage) -> None:
    """Wait as every action waits: until a beat ends it."""
    until(stage.beat, "nobody ended it")


def once_all_began(count: int, *acts: Act) -> list[Act]:
    """Make acts that begin together: what one does finds the others under way."""
    together = threading.Barrier(count)

    def after(act: Act) -> Act:
        def begun_together(stage: StepStage) -> str | None:
            together.wait(PATIENCE)
            return act(stage)

        return begun_together

    return [after(act) for act in acts]


def go(fake: InMemoryJournal, acts: Acts, *groups: Group, parallel: bool = False, **more: Any) -> StepRunner:
    made = stepper(fake, acts, **more)
    made.go(Rollout("all", groups, parallel))
    return made
