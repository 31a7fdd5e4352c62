"""The model as one object: a cluster, a git host, two workers that may be replaced, and people. `state_machine` gives it rules."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from handler.model.event import Delivery, Job
from handler.model.names import IDENTITY, PART_OF, Identity
from handler.state.record import State, Suspend
from handler.state.store import StateStore
from tests.fakes.apiserver import ApiServer, Call
from tests.fakes.apiserver.server import Asked
from tests.fakes.git_host import GitHost
from tests.model import simulated_time
from tests.model.invariants import Laws, read_state, state_id
from tests.model.taking_turns import Task, new_world, world
from tests.model.targets import NAMESPACES, SETTINGS, SLOTS, TARGETS, Body, Choice, Slot, applyset, declared, files
from tests.model.worker_process import OK, Ended, Order, Process

MOST = 4000
"""Requests after which a run that hasn't ended never will."""


@dataclass
class Model:
    """`server`: a cluster of its own; `slots`: what commits may declare there. `deliveries`: on their way from the host.

    `results`: of workers that are gone; `failed`: a law was broken.
    """

    server: ApiServer = field(default_factory=lambda: ApiServer(lambda: world().now))
    slots: tuple[Slot, ...] = SLOTS
    deliveries: list[Delivery] = field(default_factory=list)
    choice: dict[Slot, int] = field(default_factory=dict)
    broken: str = ""
    results: list[Ended] = field(default_factory=list)
    accepted: list[Job] = field(default_factory=list)
    failed: bool = False
    pushes: int = 0

    def __post_init__(self) -> None:
        self.seed_order(0)
        self.world = new_world()
        self.host = GitHost()
        self.laws = Laws(self.server, self.host)
        for name in NAMESPACES:
            self.make({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
        self.names = 0
        self.workers = [self.started(), self.started()]
        self.push({})
        self.deliveries.clear()

    def seed_order(self, seed: int) -> None:
        """Say in which order parallel work is done."""
        simulated_time.order.seed(seed)

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
    def make(self, body: Body, manager: str = "kubectl-create") -> None:
        """Create an object by hand, if there is none."""
        kind, namespace = body["kind"], body["metadata"].get("namespace", "")
        self.server.answer(Asked("POST", path_of(kind, namespace), {"fieldManager": manager}, body, "", ""))

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

    # --- time
    def advance(self, seconds: float, without: Process | None = None) -> None:
        """Let time pass; each worker that isn't stopped renews its Leases."""
        end = self.world.now + seconds
        while due := self._next_renewal(end, without):
            self.world.now = max(self.world.now, due.due or 0.0)
            self._renew(due)
        self.world.now = max(self.world.now, end)

    def _next_renewal(self, end: float, without: Process | None) -> Task | None:
        waiting = [task for process in self.workers if process is not without for task in process.renewals]
        ready = [task for task in waiting if (task.due or 0.0) <= end and not (task.lock and task.lock.taken_from(task))]
        return min(ready, key=lambda task: task.due or 0.0, default=None)

    def _renew(self, task: Task) -> None:
        """Let a renewal go through, or as far as it gets."""
        unlucky = task.machine.unlucky if isinstance(task.machine, Process) else []
        for _ in range(MOST):
            if task.ended or task.waits:
                return
            task.resume(unlucky.pop() if unlucky and task.meets is not None else OK)
        raise AssertionError("a renewal doesn't end")

    # --- work
    def step(self, process: Process, order: Order = OK) -> bool:
        """Let a worker go on to its next request, the present one meeting `order`; False if it has nothing to do."""
        if process.dead:
            return False
        process.wake()
        if not process.begin():
            return False
        task = process.main
        assert task
        if task.lock and task.lock.taken_from(task):
            for renewal in process.renewals:
                self.advance(max((renewal.due or 0.0) - self.world.now, 0.0))
                self._renew(renewal)
        if task.due is not None and task.due > self.world.now:
            self.advance(task.due - self.world.now)
        self.failed = True  # until it is known better
        self.world.now += 0.001
        task.resume(order if task.meets is not None else OK)
        self._bury(process)
        self.check()
        return True

    def _bury(self, process: Process) -> None:
        if process.dead:
            self.replace(process)

    def kill(self, process: Process, order: Order) -> None:
        """Kill a worker wherever it is; what it has on the wire lands or doesn't."""
        if process.main and process.main.meets is not None:
            process.main.resume(order)
        self.replace(process)
        self.check()

    def replace(self, process: Process) -> None:
        """A worker is dead: another comes in its place."""
        process.kill()
        self.results += process.ended
        self.workers[self.workers.index(process)] = self.started()

    def finish(self, process: Process) -> None:
        """Let a worker do all it has to do."""
        for _ in range(MOST):
            if not self.step(process):
                return
        raise AssertionError(f"{process.name} doesn't come to an end:\n" + "\n".join(process.trace))

    def go_to_write(self, process: Process, number: int) -> None:
        """Let a worker go on until it has so many writes behind it and one on the wire."""
        for _ in range(MOST):
            meets = process.main.meets if process.main else None
            number -= isinstance(meets, Call) and meets.writes
            if not number or not self.step(process):
                return

    def go_until(self, process: Process, method: str) -> None:
        """Let a worker go on until such a request is on the wire, or it has nothing to do any more."""
        for _ in range(MOST):
            meets = process.main.meets if process.main else None
            if (isinstance(meets, Call) and meets.asked.method == method) or not self.step(process):
                return

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


def path_of(kind: str, namespace: str) -> str:
    plural = {"Namespace": "namespaces", "ConfigMap": "configmaps", "Secret": "secrets", "Role": "roles"}[kind]
    root = "/apis/rbac.authorization.k8s.io/v1" if kind == "Role" else "/api/v1"
    return f"{root}/namespaces/{namespace}/{plural}" if namespace else f"{root}/{plural}"
