"""The rules of a fleet: what authors, operators and death may do between any two requests, and what must have come of it at the end."""

from __future__ import annotations

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from handler.model.event import Job
from tests.model.fleet import MOVERS, MOVING, PATHS, SPACES, THINGS, Thing
from tests.model.ownership import Ownership
from tests.model.worker_process import KILL_AFTER, KILL_BEFORE, Order

workers = st.integers(0, 1)
paths = st.sampled_from(PATHS)
things = st.sampled_from(THINGS)
numbers = st.integers(0, 9)
requests = st.integers(1, 40)
kills = st.sampled_from([KILL_BEFORE, KILL_AFTER])
spans = st.sampled_from([1.0, 16.0, 61.0, 301.0])


class Fleets(RuleBasedStateMachine):
    """Two workers on a fleet."""

    def __init__(self) -> None:
        super().__init__()
        self.model = self.begun()

    def begun(self) -> Ownership:
        """Return a model of which nothing is known yet."""
        return Ownership()

    @initialize(seed=st.integers(0, 7), places=st.dictionaries(things, st.tuples(paths, st.integers(1, 3)), min_size=3))
    def begins(self, seed: int, places: dict[Thing, tuple[str, int]]) -> None:
        self.model.seed_order(seed)
        for thing, (path, variant) in places.items():
            self.model.fleet.put(thing, path, variant)
        self.model.push()
        self.model.finish(self.model.workers[0])

    # --- the author
    @rule(thing=things, path=paths, variant=st.integers(1, 3))
    def declare(self, thing: Thing, path: str, variant: int) -> None:
        """Declare a thing, change it, or move it."""
        self.model.fleet.put(thing, path, variant)
        self.model.push()

    @rule(which=numbers, path=st.sampled_from(MOVERS))
    def move(self, which: int, path: str) -> None:
        """Move what is declared to another path."""
        fleet = self.model.fleet
        moving = sorted(thing for thing, (place, _) in fleet.places.items() if place != path and thing in MOVING)
        if moving:
            thing = moving[which % len(moving)]
            fleet.put(thing, path, fleet.places[thing][1])
            self.model.push()

    @rule(thing=st.sampled_from(MOVING))
    def leave(self, thing: Thing) -> None:
        """Take a thing out of git, for good."""
        self.model.fleet.drop(thing)
        self.model.push()

    # --- the operator
    @rule(path=paths)
    def rename(self, path: str) -> None:
        if self.model.has_settled(path):
            self.model.fleet.rename(path)

    @rule(path=paths)
    def forget(self, path: str) -> None:
        """Take the line of a rename out of the configuration, before or after a run has read it."""
        self.model.fleet.former.pop(path, None)

    @rule()
    def move_records(self) -> None:
        if all(self.model.has_settled(path) for path in self.model.fleet.names):
            self.model.fleet.move()

    @rule(which=numbers, heir=st.sampled_from(MOVERS), gives=st.booleans())
    def retire(self, which: int, heir: str, gives: bool) -> None:
        """Take a target out of the configuration; its things go to another, or out of git."""
        fleet = self.model.fleet
        settled = [path for path in fleet.names if self.model.has_settled(path) and path != heir]
        if settled and heir in fleet.names:
            fleet.retire(settled[which % len(settled)], heir if gives else "")
            self.model.push()

    @rule(path=st.sampled_from(MOVERS), heir=st.sampled_from(MOVERS), gives=st.booleans())
    def narrow(self, path: str, heir: str, gives: bool) -> None:
        """Take a namespace out of a target's whitelist."""
        fleet = self.model.fleet
        if path in fleet.names and self.model.has_settled(path):
            fleet.narrow(path, heir if gives and heir in fleet.names and heir != path else "")
            self.model.push()

    @rule(path=st.sampled_from(MOVERS))
    def widen(self, path: str) -> None:
        """Let a target use that namespace again."""
        self.model.fleet.spaces[path] = SPACES

    @rule(path=st.sampled_from(MOVERS), requests=st.integers(0, 40), how=kills)
    def part(self, path: str, requests: int, how: Order) -> None:
        """A person ends what a target has outside its whitelist; the command dies after so many requests."""
        self.model.part(path, requests, how)

    @rule(worker=workers)
    def reload(self, worker: int) -> None:
        """A worker starts again, with the configuration of now."""
        self.model.replace(self.model.workers[worker])

    @precondition(lambda self: self.model.fleet.letting)
    @rule(which=st.integers(0, 2), requests=st.integers(0, 40), how=kills)
    def let_go(self, which: int, requests: int, how: Order) -> None:
        """A person retires what isn't configured any more; the command dies after so many requests."""
        names = sorted(self.model.fleet.letting)
        self.model.let_go(names[which % len(names)], requests, how)

    # --- runs
    @rule(worker=workers, which=st.integers(0, 2), trigger=st.sampled_from(["tick", "push", "drift"]))
    def schedule(self, worker: int, which: int, trigger: str) -> None:
        process = self.model.workers[worker]
        targets = process.settings.targets
        if targets:
            process.accept(Job(targets[which % len(targets)].name, trigger))

    @rule(worker=workers, requests=requests)
    def go(self, worker: int, requests: int) -> None:
        """A worker goes on, and is left in the middle."""
        for _ in range(requests):
            self.model.step(self.model.workers[worker])

    @rule(worker=workers, requests=requests, how=kills)
    def die(self, worker: int, requests: int, how: Order) -> None:
        self.go(worker, requests)
        self.model.kill(self.model.workers[worker], how)

    @rule(worker=workers)
    def finish(self, worker: int) -> None:
        self.model.finish(self.model.workers[worker])

    @rule(seconds=spans)
    def time_passes(self, seconds: float) -> None:
        self.model.advance(seconds)

    # --- the end
    def teardown(self) -> None:
        try:
            if not self.model.failed:
                self.model.settle()
                self.model.ended()
        finally:
            self.model.close()
