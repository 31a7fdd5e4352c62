"""Lets workers go on request by request, in any order, and kills them between two: one cluster, one git host, one time for all of them.

`model` and `ownership` say what runs there, and what must hold.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from tests.fakes.apiserver import ApiServer, Call
from tests.fakes.apiserver.server import Asked
from tests.fakes.apiserver.store import Body
from tests.fakes.git_host import GitHost
from tests.model import simulated_time
from tests.model.taking_turns import Task, World, new_world, world
from tests.model.worker_process import OK, Ended, Order, Process

MOST = 4000
"""Requests after which a run that hasn't ended never will."""


@dataclass
class Conductor:
    """`server`: a cluster of its own. `results`: of workers that are gone; `failed`: a law was broken."""

    server: ApiServer = field(default_factory=lambda: ApiServer(lambda: world().now))
    results: list[Ended] = field(default_factory=list)
    failed: bool = False
    names: int = 0
    workers: list[Process] = field(default_factory=list)
    world: World = field(default_factory=new_world)
    host: GitHost = field(default_factory=GitHost)

    def seed_order(self, seed: int) -> None:
        """Say in which order parallel work is done."""
        simulated_time.order.seed(seed)

    def started(self) -> Process:
        """Start a worker with an empty memory."""
        raise NotImplementedError

    def check(self) -> None:
        """Ask the laws."""
        raise NotImplementedError

    def make(self, body: Body, manager: str = "kubectl-create") -> None:
        """Create an object by hand, if there is none."""
        kind, namespace = body["kind"], body["metadata"].get("namespace", "")
        self.server.answer(Asked("POST", path_of(kind, namespace), {"fieldManager": manager}, body, "", ""))

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


def path_of(kind: str, namespace: str) -> str:
    plural = {"Namespace": "namespaces", "ConfigMap": "configmaps", "Secret": "secrets", "Role": "roles"}[kind]
    root = "/apis/rbac.authorization.k8s.io/v1" if kind == "Role" else "/api/v1"
    return f"{root}/namespaces/{namespace}/{plural}" if namespace else f"{root}/{plural}"
