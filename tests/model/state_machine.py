"""The rules: what the author, the host, the network, the cluster, the clocks and other people may do between any two requests."""

from __future__ import annotations

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from handler.model.event import Job
from tests.model.convergence import answered, converged, quiet, settle
from tests.model.model import Model
from tests.model.targets import ANNEX, MOVING, NAMESPACES, SLOTS, TARGETS, Slot
from tests.model.worker_process import KILL_AFTER, KILL_BEFORE, Order

workers = st.integers(0, 1)
targets = st.sampled_from(TARGETS)
slots = st.sampled_from(SLOTS)
changes = st.dictionaries(slots, st.integers(0, 3), min_size=1, max_size=4)
some = st.dictionaries(slots, st.integers(0, 3), max_size=4)
requests = st.integers(1, 30)
whats = st.sampled_from(["409", "429", "500", "503", "silence", "reset"])
troubles = st.builds(Order, whats, st.booleans())
meddling = st.sampled_from(["edit", "remove", "make", "disown", "again"])
kills = st.sampled_from([KILL_BEFORE, KILL_AFTER])
spans = st.sampled_from([1.0, 6.0, 14.0, 16.0, 31.0, 301.0])


class Deployments(RuleBasedStateMachine):
    """Two workers on three targets."""

    def __init__(self) -> None:
        super().__init__()
        self.model = self.begun()
        self.commits = [self.model.host.head]

    def begun(self) -> Model:
        """Return a model of which nothing is known yet."""
        return Model()

    @initialize(begins=st.booleans(), seed=st.integers(0, 7), chosen=st.dictionaries(slots, st.integers(1, 3), min_size=4, max_size=10))
    def begins(self, begins: bool, seed: int, chosen: dict[Slot, int]) -> None:
        self.model.seed_order(seed)
        self.push(chosen, "")
        if begins:
            self.model.finish(self.model.workers[0])

    # --- the author and the host
    @rule(changed=changes, broken=st.sampled_from(["", "", "", "", "front", "-back"]))
    def push(self, changed: dict[Slot, int], broken: str) -> None:
        self.model.push(changed, broken)
        self.commits.append(self.model.host.head)

    @rule(name=targets, variant=st.integers(0, 3), but=slots)
    def push_much(self, name: str, variant: int, but: Slot) -> None:
        """Change all of one target, or remove it but for a rest."""
        self.push({slot: variant for slot in SLOTS if slot.target == name and slot is not but}, "")

    @rule(name=st.sampled_from(MOVING), to=st.sampled_from(["front", "back"]), variant=st.integers(1, 3))
    def move(self, name: str, to: str, variant: int) -> None:
        """Move an object to a target, whichever has it; `to` no target: out of git."""
        self.push({slot: variant if slot.target == to else 0 for slot in SLOTS if slot.name == name}, "")

    @rule(back=st.integers(0, 3))
    def force_push(self, back: int) -> None:
        self.model.force_push(self.commits[max(len(self.commits) - 1 - back, 0)])

    @rule(lags=st.booleans())
    def the_host_lags(self, lags: bool) -> None:
        self.model.host.lags = lags
        if not lags:
            self.model.host.show()

    @rule(down=st.booleans())
    def the_host_is_down(self, down: bool) -> None:
        self.model.host.down = down

    # --- deliveries: late, twice, in any order, or never
    @precondition(lambda self: self.model.deliveries)
    @rule(worker=workers, which=st.integers(0, 3), keep=st.booleans())
    def deliver(self, worker: int, which: int, keep: bool, lost: str = "") -> None:
        """Hand a delivery to a worker. `lost`: the target for which it never arrives."""
        deliveries = self.model.deliveries
        delivery = deliveries[which % len(deliveries)]
        if not keep:
            deliveries.remove(delivery)
        for target in (name for name in TARGETS if name != lost):
            self.model.workers[worker].accept(Job(target, "push", hint=delivery.hint, actor="ann", deliveries=(delivery,)))

    @precondition(lambda self: self.model.deliveries)
    @rule(which=st.integers(0, 3))
    def drop(self, which: int) -> None:
        del self.model.deliveries[which % len(self.model.deliveries)]

    # --- runs
    @rule(worker=workers, name=targets, trigger=st.sampled_from(["tick", "drift"]))
    def schedule(self, worker: int, name: str, trigger: str) -> None:
        self.model.workers[worker].accept(Job(name, trigger))

    @rule(worker=workers, changed=some, requests=requests)
    def go(self, worker: int, changed: dict[Slot, int], requests: int) -> None:
        """A worker goes on, or begins with something new, and is left in the middle."""
        if changed:
            self.push(changed, "")
            self.deliver(worker, -1, keep=False)
        for _ in range(requests):
            self.model.step(self.model.workers[worker])

    @rule(worker=workers, changed=some, requests=requests, trouble=troubles)
    def meet_trouble(self, worker: int, changed: dict[Slot, int], requests: int, trouble: Order) -> None:
        self.go(worker, changed, requests)
        self.model.step(self.model.workers[worker], trouble)

    @rule(worker=workers, changed=some, requests=requests, how=kills)
    def die(self, worker: int, changed: dict[Slot, int], requests: int, how: Order) -> None:
        self.go(worker, changed, requests)
        self.model.kill(self.model.workers[worker], how)

    @rule(worker=workers, changed=changes, writes=st.integers(1, 6), newer=some, seconds=spans, rest=requests)
    def overtake(self, worker: int, changed: dict[Slot, int], writes: int, newer: dict[Slot, int], seconds: float, rest: int) -> None:
        """A worker stands still with a write on the wire, another goes on with a newer commit, and then the first one moves again."""
        self.push(changed, "")
        self.deliver(worker, -1, keep=False)
        self.model.go_to_write(self.model.workers[worker], writes)
        self.a_worker_is_stopped(worker, seconds, sleeps=False)
        self.go(1 - worker, newer, rest)
        self.model.finish(self.model.workers[1 - worker])
        self.go(worker, {}, rest)

    @rule(worker=workers, name=st.sampled_from(MOVING), to=st.sampled_from(["front", "back"]))
    def leave_one_behind(self, worker: int, name: str, to: str) -> None:
        """An object moves to a target, and then out of git, before the one that gives it up hears of either."""
        for now in (to, ""):
            self.move(name, now, 1)
            self.deliver(worker, -1, keep=False, lost="back" if to == "front" else "front")
            self.finish(worker)

    @rule(worker=workers, gone=slots, what=meddling)
    def meddle_in_the_middle(self, worker: int, gone: Slot, what: str) -> None:
        """A person is quicker than a worker that is about to delete."""
        for variant, method in ((1, ""), (0, "DELETE")):
            self.push({gone: variant}, "")
            self.deliver(worker, -1, keep=False)
            self.model.go_until(self.model.workers[worker], method)
        self.somebody_meddles(gone, what)

    @rule(changed=some, turns=st.lists(st.tuples(workers, st.integers(1, 9)), max_size=12))
    def take_turns(self, changed: dict[Slot, int], turns: list[tuple[int, int]]) -> None:
        """Both work on the same."""
        for worker in (0, 1):
            self.go(worker, changed if worker else {}, 1)
            self.schedule(worker, TARGETS[0], "tick")
        for worker, requests in turns:
            self.go(worker, {}, requests)

    @rule(worker=workers)
    def finish(self, worker: int) -> None:
        self.model.finish(self.model.workers[worker])

    @rule(worker=workers)
    def shut_down(self, worker: int) -> None:
        self.model.shut_down(self.model.workers[worker])

    # --- time
    @rule(seconds=spans)
    def time_passes(self, seconds: float) -> None:
        self.model.advance(seconds)

    @rule(worker=workers, seconds=spans, sleeps=st.booleans())
    def a_worker_is_stopped(self, worker: int, seconds: float, sleeps: bool) -> None:
        """By a signal, or with its whole machine: then its monotonic clock stands still, too."""
        process = self.model.workers[worker]
        self.model.advance(seconds, without=process)
        if sleeps:
            process.slept += seconds

    @rule(worker=workers, seconds=st.sampled_from([-3600.0, -10.0, 5.0, 20.0, 3600.0]))
    def a_wall_clock_is_set(self, worker: int, seconds: float) -> None:
        self.model.workers[worker].jumped += seconds

    @rule(worker=workers, trouble=troubles)
    def a_renewal_meets_trouble(self, worker: int, trouble: Order) -> None:
        self.model.workers[worker].unlucky.append(trouble)

    # --- people
    @rule(slot=slots, what=meddling)
    def somebody_meddles(self, slot: Slot, what: str) -> None:
        if slot is ANNEX or (what in ("make", "disown") and slot.kind == "Fixed"):
            return  # a stranger's immutable object is refused for ever, and rightly
        if what == "disown":
            self.model.edit(slot, {"metadata": {"labels": None, "annotations": None}})
        elif what == "edit":
            self.model.edit(slot, {"metadata": {"labels": {"variant": "by-hand"}}, "data": {"key": "YnkgaGFuZA==", "theirs": "eWVz"}})
        elif what in ("remove", "again"):
            self.model.remove(slot)
        if what in ("make", "again") and slot.kind != "Fixed":
            self.model.make(slot.body(2))

    @rule(name=targets, namespace=st.sampled_from(NAMESPACES), with_identity=st.booleans())
    def labels_are_copied(self, name: str, namespace: str, with_identity: bool) -> None:
        self.model.copy(name, namespace, with_identity=with_identity)

    @rule(name=targets, suspends=st.booleans())
    def suspend(self, name: str, suspends: bool) -> None:
        (self.model.suspend if suspends else self.model.resume)(name)

    @rule(worker=workers, name=targets, which=st.integers(0, 9), ends=st.booleans())
    def replay(self, worker: int, name: str, which: int, ends: bool) -> None:
        self.model.replay(self.model.workers[worker], name, "" if ends else self.commits[which % len(self.commits)])

    @rule(worker=workers, name=targets)
    def approve(self, worker: int, name: str) -> None:
        self.model.approve(self.model.workers[worker], name)

    # --- the end
    def teardown(self) -> None:
        try:
            if not self.model.failed:
                for question in (settle, converged, quiet, answered):
                    question(self.model)
        finally:
            self.model.close()
