"""What must be true when nothing goes wrong any more: convergence (1), idempotence (7), and that no delivery is forgotten (9)."""

from __future__ import annotations

from collections import Counter

from handler.model.event import Job
from handler.model.names import PART_OF, Identity
from handler.model.result import Outcome
from handler.model.tree import ReadSet
from tests.model.invariants import CANARIES, is_copy, state_id
from tests.model.model import Model
from tests.model.targets import MOVING, TARGETS, Body, applyset, declared, fits

VISIBLE = {
    Outcome.APPLIED,
    Outcome.UNCHANGED,
    Outcome.SUPERSEDED,
    Outcome.FAILED,
    Outcome.HELD,
    Outcome.PRUNING,
    Outcome.SUSPENDED,
    Outcome.REFUSED,
}


def settle(model: Model) -> None:
    """Nothing goes wrong any more: one tick and one drift run of each target, and a person approves what is held."""
    model.host.down = False
    model.host.show()
    for process in model.workers:
        process.unlucky.clear()
        process.jumped = 0.0
    if any(declared(model.host.commits[model.host.head], target) is None for target in TARGETS):
        model.push({})
    undisputed(model)
    for target in TARGETS:
        model.resume(target)
    for _ in range(2):
        for process in list(model.workers):
            model.finish(process)
        model.advance(301.0)
    for _ in range(6):  # what the host doesn't show is looked for a few times
        for process in list(model.workers):
            model.finish(process)
        model.advance(10.0)
    worker = model.workers[0]
    model.run_all(worker, "tick")
    for target in TARGETS:
        state = model.state(target)
        if state and state.held:
            worker.accept(Job(target, "replay", approve=state.held.id, actor="ann"))
    model.finish(worker)
    model.advance(20.0)
    model.run_all(worker, "drift")


def undisputed(model: Model) -> None:
    """Nothing that moves is declared by two targets any more, nor kept from one of them by a pin: people see to that."""
    there = [name.partition("/")[2] for name in moving_at(model, model.host.head)]
    if len(there) > len(set(there)):
        front = {slot.name for slot in model.choice if slot.target == "front"}
        model.push({slot: 0 for slot in model.choice if slot.target == "back" and slot.name in front.intersection(MOVING)})
    for process in list(model.workers):
        model.finish(process)
    for target in TARGETS:
        state = model.state(target)
        if state and state.pin and moving_at(model, state.pin.commit) != moving_at(model, model.host.head):
            model.replay(model.workers[0], target, "")


def moving_at(model: Model, commit: str) -> list[str]:
    """Return the files of a commit that declare what moves."""
    return sorted(name for name in model.host.commits[commit] if any(f"-{moving}.json" in name for moving in MOVING))


def wanted_commit(model: Model, target: str) -> str:
    """Return the commit that a target should be on: its pin while that holds, else the head."""
    state = model.state(target)
    pin = state.pin if state else None
    if pin is None:
        return model.host.head
    assert pin.commit in model.laws.explicit[target], f"{target} is pinned to what nobody asked for"
    at_head = ReadSet(((target, ""),)).on(model.host.tree(model.host.head)).digest()
    return pin.commit if at_head == pin.away or model.host.head == pin.commit else model.host.head


def converged(model: Model) -> None:
    """Live is what git declares, no more and no less, and the record says so (I1)."""
    for target in TARGETS:
        aim, state = wanted_commit(model, target), model.state(target)
        wanted = declared(model.host.commits[aim], target)
        told = [f"{ended.work.job.trigger} {ended.result.outcome} {ended.result.message}" for ended in model.workers[0].ended[-9:]]
        assert state, target
        assert (state.commit, state.attempt) == (aim, None), (target, state.status, told)
        assert wanted
        lives = {identity: stored.body for identity, stored in model.server.store.all() if _is_ours(stored.body, target)}
        for kept in [identity for identity in lives.keys() - wanted.keys() if _holds_others(model, identity)]:
            del lives[kept]
        assert lives.keys() == wanted.keys(), (target, sorted(map(str, lives.keys() ^ wanted.keys())), told)
        wrong = [str(identity) for identity, body in wanted.items() if not fits(body, lives[identity])]
        assert not wrong, (target, wrong, told)


def _holds_others(model: Model, identity: Identity) -> bool:
    """Whether it is a Namespace in which something is: that stays."""
    return identity.kind == "Namespace" and any(found.namespace == identity.name for found, _ in model.server.store.all())


def quiet(model: Model) -> None:
    """A second run writes no object, and once a drift run has narrowed the record, nothing at all (I7)."""
    worker = model.workers[0]
    for triggers, allowed in ((("drift",), {state_id(target) for target in TARGETS}), (("tick", "drift", "push"), set[Identity]())):
        before = model.server.store.revision
        for trigger in triggers:
            model.run_all(worker, trigger)
        after = [write for write in model.server.store.log if write.revision > before and write.identity not in allowed]
        assert not after, "\n".join(f"I7: {write.identity} was {write.before}, is {write.after}" for write in after)


def answered(model: Model) -> None:
    """Every delivery, accepted or left to a later run, ended once, in a way that people see (I9); no Result shows a secret (I8).

    One that came twice while it waited may have ended as one request.
    """
    for process in model.workers:
        accepted = Counter(delivery.id for job in process.accepted for delivery in job.deliveries)
        told = Counter(delivery.id for ended in process.ended for delivery in ended.work.job.deliveries)
        assert accepted.keys() == told.keys(), process.name
        assert told <= accepted, process.name
        assert {ended.result.outcome for ended in process.ended} <= VISIBLE | {Outcome.BUSY}
    for ended in (*model.results, *(ended for process in model.workers for ended in process.ended)):
        text = f"{ended.result} {ended.result!r}"
        assert not any(canary in text for canary in CANARIES)


def _is_ours(body: Body, target: str) -> bool:
    return (body["metadata"].get("labels") or {}).get(PART_OF) == applyset(target) and not is_copy(body)
