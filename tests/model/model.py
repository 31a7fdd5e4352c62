"""The model as one object: a cluster, a git host, two workers that may be replaced, and people. `state_machine` gives it rules."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from handler.model.event import Delivery, Job
from handler.model.names import IDENTITY, PART_OF, Identity
from handler.state.record import State, Suspend
from handler.state.store import StateStore
from tests.fakes.apiserver.server import Asked
from tests.model.conductor import MOST, Conductor, path_of
from tests.model.invariants import Laws, read_state, state_id
from tests.model.targets import NAMESPACES, SETTINGS, SLOTS, TARGETS, Body, Choice, Slot, applyset, declared, files
from tests.model.worker_process import Process


@dataclass
class Model(Conductor):
    """`slots`: what commits may declare in the cluster. `deliveries`: on their way from the host."""

    slots: tuple[Slot, ...] = SLOTS
    deliveries: list[Delivery] = field(default_factory=list)
    choice: dict[Slot, int] = field(default_factory=dict)
    broken: str = ""
    accepted: list[Job] = field(default_factory=list)
    pushes: int = 0

    def __post_init__(self) -> None:
        self.seed_order(0)
        self.laws = Laws(self.server, self.host)
        for name in NAMESPACES:
            self.make({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
        self.workers = [self.started(), self.started()]
        self.push({})
        self.deliveries.clear()

    def started(self) -> Process:
        """Start a worker with an empty memory. It ticks every target first, as the real one does."""
        self.names += 1
        process = Process(f"w{self.names}", server=self.server, host=self.host, settings=SETTINGS, sent=self.laws.sent)
        for target in TARGETS:
            process.accept(Job(target, "tick"))
        return process

    # --- the author
    def push(self, changed: Choice, broken: str = "") -> None:
        """Push a commit on top of the head."""
        self.choice = {slot: variant for slot, variant in {**self.choice, **changed}.items() if variant and slot in self.slots}
        self.broken = broken
        self._announce(self.host.commit(files(self.choice, broken)))

    def force_push(self, sha: str) -> None:
        """Put the branch back to a commit."""
        self._announce(sha)

    def _announce(self, sha: str) -> None:
        self.host.push(sha)
        self.pushes += 1
        self.deliveries.append(Delivery(f"d{self.pushes}", "github", "refs/heads/main", sha, "ann", "2026-03-01T12:00:00Z"))

    # --- people
    def edit(self, slot: Slot, change: Body) -> None:
        """Change an object behind git's back."""
        path = f"{path_of(slot.body(1)['kind'], slot.namespace)}/{slot.name}"
        self.server.answer(Asked("PATCH", path, {"fieldManager": "someone"}, change, "application/merge-patch+json", ""))

    def remove(self, slot: Slot) -> None:
        """Delete an object behind git's back."""
        self.server.answer(Asked("DELETE", f"{path_of(slot.body(1)['kind'], slot.namespace)}/{slot.name}", {}, {}, "", ""))

    def copy(self, target: str, namespace: str, *, with_identity: bool) -> None:
        """Make what an operator makes that copies labels and annotations."""
        original = Identity("", "ConfigMap", namespace, "anchor").mark(target)
        marks = {"labels": {PART_OF: applyset(target)}} | ({"annotations": {IDENTITY: original}} if with_identity else {})
        self.make({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": f"copy-{with_identity}", "namespace": namespace, **marks}})

    def store(self, target: str) -> StateStore:
        """A person's way to a state: nothing happens on it."""
        person = Process("person", server=self.server, host=self.host, settings=SETTINGS)
        return person.handler.store(person.handler.target(target))

    def state(self, target: str) -> State | None:
        found = self.server.store.get(state_id(target))
        return read_state(found.body if found else None, target)

    def check(self) -> None:
        """Ask the laws."""
        self.laws.look()
        self.failed = bool(self.laws.broken)
        assert not self.laws.broken, "\n".join([*self.laws.broken, *(line for process in self.workers for line in process.trace)])

    def run_all(self, worker: Process, trigger: str) -> None:
        for target in TARGETS:
            worker.accept(Job(target, trigger))
        self.finish(worker)

    def shut_down(self, process: Process) -> None:
        """Tell a worker to end, as SIGTERM does, and start another; what it hadn't begun is lost with it."""
        process.stop.set()
        for _ in range(MOST):
            if process.main is None:
                break
            self.step(process)
        if process in self.workers:
            self.replace(process)

    def replay(self, process: Process, target: str, commit: str) -> None:
        """Ask for a commit, or end a pin."""
        if commit and declared(self.host.commits[commit], target) is None:
            return  # a person who asks for what can't be rendered gets a pin on it, and has to end it
        if commit:
            self.laws.explicit[target].add(commit)
        process.accept(Job(target, "replay", commit=commit, unpin=not commit, force=True, actor="ann"))

    def approve(self, process: Process, target: str) -> None:
        """Say yes to what is held."""
        state = self.state(target)
        if state and state.held:
            process.accept(Job(target, "replay", approve=state.held.id, actor="ann"))

    def suspend(self, target: str) -> None:
        if self.state(target):
            self.store(target).update(lambda state: replace(state, suspend=Suspend("ann")))

    def resume(self, target: str) -> None:
        if self.state(target):
            self.store(target).update(lambda state: replace(state, suspend=None))

    def close(self) -> None:
        """End every thread."""
        for process in self.workers:
            process.kill()
