"""Owning and letting go, watched at the server: what git declares is never deleted, what left git goes, what was never ours stays as it is.

The fleet's configuration changes while workers with older ones still run, and any of them dies between two requests. So does the command
by which a person retires a target.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from handler.model.event import Job
from handler.model.names import PART_OF, Identity
from tests.fakes.apiserver.store import Body, Write
from tests.model.conductor import Conductor
from tests.model.fleet import SPACES, STRANGERS, Fleet
from tests.model.taking_turns import here
from tests.model.worker_process import Process


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
        for thing, marks in zip(STRANGERS, ({}, {"labels": {PART_OF: "applyset-of-another"}}), strict=True):
            body = thing.body(1)
            body["metadata"] |= marks
            self.make(body)
        self.strangers = {thing.identity: self.server.store.get(thing.identity).body for thing in STRANGERS}
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

    def check(self) -> None:
        """Ask the laws."""
        self.failed = bool(self.broken)
        assert not self.broken, "\n".join([*self.broken, *(line for process in self.workers for line in process.trace)])


def _goes(write: Write) -> bool:
    return write.after is None or bool(write.after["metadata"].get("deletionTimestamp"))
