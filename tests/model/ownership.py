"""Owning and letting go, watched at the server: what git declares is never deleted, what left git goes, what was never ours stays as it is.

The fleet's configuration changes while workers with older ones still run, and any of them dies between two requests. So does the command
by which a person retires a target.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from handler import __version__
from handler.app.retiring import places_of, retire_of
from handler.engine.retire import Retire
from handler.model.errors import AnnealError
from handler.model.event import Job
from handler.model.names import IDENTITY, PART_OF, Identity, applyset_id, state_name
from handler.plan.inventory import Membership, TargetMarks, is_member
from handler.state.configmap import decode
from handler.state.record import State
from tests.fakes.apiserver.store import Body, Write
from tests.model.conductor import MOST, Conductor
from tests.model.fleet import HOMES, OUTSIDE, PATHS, SPACES, STRANGERS, THINGS, Fleet, Thing, anchor
from tests.model.taking_turns import Task, here
from tests.model.targets import fits
from tests.model.worker_process import Order, Process

TOOLING = f"anneal/v{__version__}"


@dataclass
class Ownership(Conductor):
    """`fleet`: as it is configured and declared now. `uids`: of each thing, the first that lived; `broken`: what happened that must not.

    `person`: runs the commands of people; `asked`: those that wait for it.
    """

    fleet: Fleet = field(default_factory=Fleet)
    broken: list[str] = field(default_factory=list)
    uids: dict[Identity, str] = field(default_factory=dict)
    strangers: dict[Identity, Body] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.seed_order(0)
        for name in SPACES:
            self.make({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
        for thing, marks in zip(STRANGERS, ({}, {"labels": {PART_OF: applyset_id(state_name(PATHS[0]), HOMES[0])}}), strict=True):
            body = thing.body(1)
            body["metadata"] |= marks
            self.make(body)
        self.strangers = {identity: stored.body for identity, stored in self.server.store.all() if identity.name == "stranger"}
        self.server.store.wrote = self.wrote
        self.push()
        self.workers = [self.started(), self.started()]

    def started(self) -> Process:
        """Start a worker with an empty memory and the configuration of now. It ticks every target first, as the real one does."""
        self.names += 1
        process = Process(f"w{self.names}", server=self.server, host=self.host, settings=self.fleet.settings())
        for target in process.settings.targets:
            process.accept(Job(target.name, "tick"))
        return process

    def push(self) -> None:
        """Push what is declared now."""
        self.host.push(self.host.commit(self.fleet.files()))

    # --- the laws
    def wrote(self, write: Write) -> None:
        """Judge one write of one of our processes."""
        task = here()
        ours = task is not None and isinstance(task.machine, Process)
        if write.after is not None and write.identity not in self.strangers:
            self.uids.setdefault(write.identity, write.after["metadata"]["uid"])
        if ours and write.identity in self.strangers:
            self.broken.append(f"{write.identity} was never ours, and is written: {write.after}")
        if ours and write.identity in self._things and _goes(write) and self._stays(write.identity):
            self.broken.append(f"{write.identity} is deleted, and git declares it: {self._declares(write.identity)}")

    @property
    def _things(self) -> set[Identity]:
        return {thing.identity for thing in (*self.fleet.places, *self.fleet.gone, *(thing for thing, _, _ in self.fleet.declared()))}

    def _declares(self, identity: Identity) -> str:
        return next((path for thing, path, _ in self.fleet.declared() if thing.identity == identity), "")

    def _stays(self, identity: Identity) -> bool:
        """Whether git declares a thing now: what left it never comes back, so it has declared that all the time."""
        return bool(self._declares(identity))

    # --- people
    def let_go(self, name: str, requests: int = MOST, how: Order | None = None) -> None:
        """Retire a target by a command that dies after so many requests; without `how` it goes on to its end."""
        home = next((each for each in HOMES if self.server.store.get(Identity("", "ConfigMap", each, state_name(name)))), self.fleet.home)

        listed = {identity for each in self._records() for identity in each.declared}  # by the commits that targets are on: let go
        self.fleet.freed |= {each for each in self._of(name) if not self.fleet.letting[name] or each.identity in listed}

        def retires(person: Process) -> Iterator[Retire]:
            for target in places_of(person.handler, name, given=False)[0]:
                yield retire_of(person.handler, target, prune=self.fleet.letting[name])

        self._command(retires, home, requests, how)  # as its record's place is said by what meets its objects

    def part(self, path: str, requests: int = MOST, how: Order | None = None) -> None:
        """End what a target has outside its whitelist: let go of it where another may declare it, which the command line asks for."""
        if not self.is_outside(path):
            return
        keep = self.fleet.shares(path)
        if keep:
            self.fleet.freed |= {thing for thing in self._of(self.fleet.names[path]) if thing.namespace == OUTSIDE}

        def retires(person: Process) -> Iterator[Retire]:
            target = person.settings.target(self.fleet.names[path])
            assert target
            yield retire_of(person.handler, target, prune=not keep, namespace=OUTSIDE)

        self._command(retires, self.fleet.home, requests, how)

    def _of(self, name: str) -> set[Thing]:
        """Return what carries a target's name."""
        things = (*THINGS, *map(anchor, PATHS))
        lives = {thing: self.server.store.get(thing.identity) for thing in things}
        marked = {thing: (live.body["metadata"].get("annotations") or {}).get(IDENTITY) for thing, live in lives.items() if live}
        return {thing for thing, mark in marked.items() if mark == thing.identity.mark(name)}

    def is_outside(self, path: str) -> bool:
        """Whether a settled target may not use the second namespace any more."""
        return path in self.fleet.names and OUTSIDE not in self.fleet.spaces[path] and self.has_settled(path)

    def _command(self, retires: Callable[[Process], Iterator[Retire]], home: str, requests: int, how: Order | None) -> None:
        """Let a person carry out what a command returns."""
        self.names += 1
        settings = replace(self.fleet.settings(), state_namespace=home)
        person = Process(f"p{self.names}", server=self.server, host=self.host, settings=settings)

        def typed() -> None:
            with contextlib.suppress(AnnealError):  # a run of it lives: the person tries again
                for asked in retires(person):
                    asked.carry_out(asked.look(), person.stop)

        person.main = task = Task(person, typed)
        self.workers.append(person)
        for _ in range(requests):
            if task.ended or not self.step(person):
                break
        assert how or task.ended, "a command doesn't come to its end"
        if not task.ended and task.meets is not None:
            task.resume(how)
        person.kill()
        if person in self.workers:
            self.workers.remove(person)
        self.check()

    def check(self) -> None:
        """Ask the laws."""
        self.failed = bool(self.broken)
        assert not self.broken, "\n".join([*self.broken, *(line for process in self.workers for line in process.trace)])

    # --- records
    def state(self, name: str, home: str = "") -> State | None:
        """Return the record of a target, where records live now."""
        home = home or self.fleet.home
        found = self.server.store.get(Identity("", "ConfigMap", home, state_name(name)))
        return decode(found.body, home, name, TOOLING) if found else None

    def _records(self) -> Iterator[State]:
        """Yield what records of configured targets say, where they may be."""
        names = {*self.fleet.names.values(), *self.fleet.last.values()} - self.fleet.letting.keys()
        yield from filter(None, (self.state(name, home) for name in names for home in HOMES))

    def has_settled(self, path: str) -> bool:
        """Whether a target has recorded something under its present name, and takes nothing over any more."""
        name = self.fleet.names.get(path, "")
        state = self.state(name) if name else None
        return state is not None and bool(state.commit) and state.former is None

    # --- the end
    def settle(self) -> None:
        """Nothing goes wrong any more: all workers start with the configuration of now, and each target runs by tick and by drift."""
        for path, old in self.fleet.last.items():
            if path in self.fleet.names and not self.has_settled(path):
                self.fleet.former[path] = old  # where the line was taken away too early, the refusal names it
        for _ in range(2):
            for process in list(self.workers):
                self.replace(process)
            self.advance(61.0)
            for name in self.fleet.letting:
                self.let_go(name)
            for trigger in ("tick", "drift"):
                self.run_all(trigger)
                self.advance(20.0)
            for path in self.fleet.names:
                self.part(path)

    def run_all(self, trigger: str) -> None:
        """Let the first worker run every target, and the other one what it has to do."""
        for target in self.workers[0].settings.targets:
            self.workers[0].accept(Job(target.name, trigger))
        for process in list(self.workers):
            self.finish(process)

    def ended(self) -> None:
        """Ask what has come of everything."""
        lives = {identity: stored.body for identity, stored in self.server.store.all()}
        told = [
            f"{each.work.job.target} {each.work.job.trigger} {each.result.outcome} {each.result.message}" for each in self.workers[0].ended
        ]
        for thing, path, variant in self.fleet.declared():
            body = lives.get(thing.identity)
            assert body, (f"{thing} isn't there", told)
            assert body["metadata"]["uid"] == self.uids[thing.identity], (f"{thing} was made anew", told)
            assert fits(thing.body(variant), body), (f"{thing} isn't as {path} declares it", body, told)
            name = self.fleet.names[path]
            applyset = applyset_id(state_name(name), self.fleet.home)
            assert is_member(body, thing.identity, Membership(TargetMarks(name, applyset))), (
                f"{thing} isn't {name}'s",
                body["metadata"],
                told,
            )
        left = [str(thing) for thing in self.fleet.gone if self._is_left(thing, lives)]
        assert not left, (f"{left} left git, and live", told)
        for identity, body in self.strangers.items():
            assert lives.get(identity) == body, f"{identity} was never ours"
        records = {(i.namespace, i.name) for i in lives if i.kind == "ConfigMap" and i.namespace in HOMES}
        wanted = {(self.fleet.home, state_name(name)) for name in self.fleet.names.values()}
        assert records == wanted, (records, wanted, told)

    def _is_left(self, thing: Thing, lives: Mapping[Identity, Body]) -> bool:
        """Whether what left git lives, and isn't what a person let go of."""
        body = lives.get(thing.identity)
        return body is not None and (thing not in self.fleet.freed or PART_OF in (body["metadata"].get("labels") or {}))

    def close(self) -> None:
        """End every thread."""
        for process in self.workers:
            process.kill()


def _goes(write: Write) -> bool:
    return write.after is None or bool(write.after["metadata"].get("deletionTimestamp"))
