"""What must never happen, watched at the server: every write is judged by who sent it, and by what was true when it was sent.

The numbers are those of the design's list of invariants: no rollback (2), record after apply (3), prune safety (4), the superset before
the first write (5), one writer a target (6), no secret leaves (8), what a sibling declares is neither deleted nor taken (10). Convergence
(1), idempotence (7) and that no delivery is forgotten (9) are asked at the end (`state_machine`).

What a holder had on the wire when its Lease was taken may still land, one request a thread: so a write is judged by the moment it was sent.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from handler import __version__
from handler.model.names import IDENTITY, PART_OF, Identity, identity_of, state_name
from handler.model.tree import ReadSet
from handler.plan.inventory import is_member
from handler.state.configmap import KINDS, NAMESPACES, decode
from handler.state.record import Pin, State
from tests.fakes.apiserver import ApiServer, Call
from tests.fakes.apiserver.store import Body, Write
from tests.fakes.git_host import GitHost
from tests.model.taking_turns import Task, here
from tests.model.targets import ANCHORS, SECRET, SLOTS, STATES, TARGETS, applyset, declared, fits, membership
from tests.model.worker_process import Process

_OURS: dict[Identity, frozenset[str]] = {
    identity: frozenset(slot.target for slot in (*SLOTS, *ANCHORS) if identity_of(slot.body(1)) == identity)
    for identity in (identity_of(slot.body(1)) for slot in (*SLOTS, *ANCHORS))
}
"""Every object that some target may declare, by those that may; nothing else may be touched."""
CANARIES = (SECRET, base64.b64encode(SECRET.encode()).decode()[:16])
_APPLYSETS = {f"{PART_OF}={applyset(target)}": target for target in TARGETS}


def state_id(target: str) -> Identity:
    return Identity("", "ConfigMap", STATES, state_name(target))


def lease_id(target: str) -> Identity:
    return Identity("coordination.k8s.io", "Lease", STATES, state_name(target))


def read_state(body: Body | None, target: str) -> State | None:
    return decode(body, STATES, target, f"anneal/v{__version__}") if body else None


@dataclass
class Moment:
    """What was true when a request was sent. `bodies`: of every state and Lease."""

    revision: int
    bodies: Mapping[Identity, Body]
    call: Call


@dataclass
class Laws:
    """`broken`: what happened that must not. `explicit`: commits that a person asked for, by target."""

    server: ApiServer
    host: GitHost
    broken: list[str] = field(default_factory=list)
    explicit: dict[str, set[str]] = field(default_factory=lambda: {target: set() for target in TARGETS})
    deleted: set[str] = field(default_factory=set)
    _position: dict[str, int] = field(default_factory=dict)
    _sent: dict[Task, Moment] = field(default_factory=dict)
    _planned: dict[tuple[str, str], int] = field(default_factory=dict)
    _listing: dict[str, str] = field(default_factory=dict)
    _looked: dict[str, int] = field(default_factory=dict)
    _siblings: dict[str, Mapping[Identity, Body]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.server.store.wrote = self.wrote

    # --- what is sent
    def sent(self, process: Process, call: Call) -> None:
        """Note what is true now, for when it lands."""
        task, store = here(), self.server.store
        assert task
        watched = [identity for target in TARGETS for identity in (state_id(target), lease_id(target))]
        bodies = {identity: stored.body for identity in watched if (stored := store.get(identity))}
        self._sent[task] = Moment(store.revision, bodies, call)
        if (call.asked.method, call.asked.path) == ("GET", "/api/v1/namespaces/annex"):
            self._looked[process.name] = store.revision
        query = call.asked.query
        if call.asked.path.endswith(f"/{STATES}/configmaps") and call.asked.method == "GET":
            self._siblings[process.name] = bodies
        target = _APPLYSETS.get(query.get("labelSelector", ""), "") if "fieldSelector" not in query else ""
        if target and self._listing.get(process.name) != target:
            self._planned[process.name, target] = store.revision
        self._listing[process.name] = target

    # --- what lands
    def wrote(self, write: Write) -> None:
        """Judge one write."""
        task = here()
        if task is None or not isinstance(task.machine, Process):
            return
        text = json.dumps(write.after) if write.identity.kind != "Secret" else ""
        self._holds(not any(canary in text for canary in CANARIES), "8", write, "shows a secret")
        target = next((name for name in TARGETS if write.identity == state_id(name)), "")
        if target:
            self._judge_record(task.machine, target, write)
        elif write.identity.namespace != STATES and write.identity.name != STATES:
            self._judge_object(task.machine, self._sent[task], write)

    def _holds(self, true: bool, number: str, write: Write, seen: str) -> None:
        if not true:
            self.broken.append(f"I{number}: {write.identity} {seen}")

    def _judge_object(self, process: Process, moment: Moment, write: Write) -> None:
        """Judge a write of a target's object."""
        if self._came_too_late(process, moment, write):
            return
        running = process.work.job.target if process.work else ""
        target = running if running in _OURS.get(write.identity, ()) else ""
        self._holds(bool(target), "4", write, f"isn't {running}'s to write")
        if not target:
            return
        lease, state = moment.bodies.get(lease_id(target)), read_state(moment.bodies.get(state_id(target)), target)
        holder = ((lease or {}).get("spec") or {}).get("holderIdentity", "")
        self._holds(holder.startswith(f"{process.name}_"), "6", write, f"is written by {process.name}, the Lease is held by {holder!r}")
        if state is None or state.attempt is None:
            self._holds(False, "3", write, "is written without an open attempt")
            return
        kinds = {str(kind) for kind in state.kinds}
        self._holds(str(write.identity.group_kind) in kinds, "5", write, "is of a kind that isn't recorded")
        self._holds(write.identity.namespace in state.namespaces | {""}, "5", write, "is in a namespace that isn't recorded")
        if write.after and write.before:
            self._judge_taking(process, target, state.attempt.commit, write)
        if write.after is None or write.after["metadata"].get("deletionTimestamp"):
            self._judge_delete(process, target, state.attempt.commit, write)

    def _came_too_late(self, process: Process, moment: Moment, write: Write) -> bool:
        """Whether an object goes with its Namespace that wasn't there when that was looked at: Kubernetes has no precondition for it."""
        if moment.call.asked.method != "DELETE" or not moment.call.asked.path.endswith(f"/namespaces/{write.identity.namespace}"):
            return False
        return write.before is not None and int(write.before["metadata"]["resourceVersion"]) > self._looked.get(process.name, 0)

    def _judge_delete(self, process: Process, target: str, commit: str, write: Write) -> None:
        """Judge a deletion by the commit that its run deploys."""
        assert write.before
        wanted = declared(self.host.commits[commit], target)
        self._holds(is_member(write.before, write.identity, membership(target)), "4", write, "wasn't ours, and is deleted")
        if wanted is None:
            self._holds(False, "4", write, f"is deleted for {commit[:8]}, which doesn't render")
        elif write.identity in wanted:
            made_anew = write.before.get("immutable") and write.before.get("data") != wanted[write.identity].get("data")
            self._holds(bool(made_anew), "4", write, f"is deleted, and {commit[:8]} declares it")
        else:
            sibling = self._comes_to(process, target, write.identity) or self._wanted_elsewhere(process, target, commit, write.identity)
            self._holds(not sibling, "10", write, f"is deleted by {target}, and {sibling} declares it, or may")
            missing = self._unaccepted(process, target, commit, wanted)
            self._holds(not missing, "4", write, f"is deleted before {missing} is applied")

    def _judge_taking(self, process: Process, target: str, commit: str, write: Write) -> None:
        """Judge a write that takes an object over from a sibling."""
        assert write.before
        assert write.after
        givers = [each for each in _OURS[write.identity] - {target} if is_member(write.before, write.identity, membership(each))]
        if givers and is_member(write.after, write.identity, membership(target)):
            wanted = self._wanted_elsewhere(process, target, commit, write.identity)
            self._holds(not wanted, "10", write, f"is taken by {target} from {givers[0]}, which declares it, or may")

    def _wanted_elsewhere(self, process: Process, target: str, commit: str, identity: Identity) -> str:
        """Return the sibling that declares an object, or can't be rendered, at the commit where its record puts it; any, if none was read.

        It counts what the record was when this process asked for it: what is written a moment later comes too late.
        """
        seen = self._siblings.pop(process.name, None)
        for sibling in _OURS[identity] - {target}:
            if seen is None or all(self._wants(seen, sibling, head, identity) for head in self._heads(seen, target, commit)):
                return sibling
        return ""

    def _comes_to(self, process: Process, target: str, identity: Identity) -> str:
        """Return the sibling whose record names a commit that declares an object: applied, being applied, pinned."""
        for sibling in _OURS[identity] - {target}:
            state = read_state(self._siblings.get(process.name, {}).get(state_id(sibling)), sibling)
            named = {each.commit for each in (state, state.attempt, state.pin) if each and each.commit} if state else set()
            if any(identity in (declared(self.host.commits[commit], sibling) or {}) for commit in named):
                return sibling
        return ""

    def _heads(self, seen: Mapping[Identity, Body], target: str, commit: str) -> list[str]:
        """Return what may have been the head for a run: the commit that it deploys, or, where that is pinned, one of the last heads."""
        state = read_state(seen.get(state_id(target)), target)
        pinned = state is not None and state.pin is not None and state.pin.commit == commit
        return self.host.heads[-4:] if pinned else [commit]

    def _wants(self, seen: Mapping[Identity, Body], sibling: str, head: str, identity: Identity) -> bool:
        state = read_state(seen.get(state_id(sibling)), sibling)
        at = state.pin.commit if state and state.pin and self._holds_pin(sibling, state.pin, head) else head
        wanted = declared(self.host.commits[at], sibling)
        return wanted is None or identity in wanted

    def _holds_pin(self, target: str, pin: Pin, head: str) -> bool:
        """Whether a pin lasts: the target's path reads at the head as it did when it was pinned."""
        return pin.commit == head or ReadSet(((target, ""),)).on(self.host.tree(head)).digest() == pin.away

    def _unaccepted(self, process: Process, target: str, commit: str, wanted: Mapping[Identity, Body]) -> list[str]:
        """Return what of a commit's set was at no time as declared since the run looked at the cluster."""
        since = self._planned.get((process.name, target), 0)
        found = []
        for identity, body in wanted.items():
            live = self.server.store.get(identity)
            log = [write for write in self.server.store.log if write.identity == identity and write.revision > since]
            versions = [live.body if live else None, *(write.before for write in log), *(write.after for write in log)]
            if not any(fits(body, version) for version in versions) and not self._handed_over(target, commit, identity):
                found.append(str(identity))
        return found

    def _handed_over(self, target: str, commit: str, identity: Identity) -> bool:
        """Whether an older commit declares what a sibling has by now, and declares at a head since: a rollback leaves it there."""
        live = self.server.store.get(identity)
        owners = [each for each in _OURS[identity] - {target} if live and is_member(live.body, identity, membership(each))]
        heads = [head for head in self.host.heads[-4:] if head != commit]
        return any(identity in (declared(self.host.commits[head], owner) or {}) for owner in owners for head in heads)

    def _judge_record(self, process: Process, target: str, write: Write) -> None:
        """Judge a commit that is recorded."""
        before, after = read_state(write.before, target), read_state(write.after, target)
        if after is None or not after.commit or (before and before.commit == after.commit and before.attempt == after.attempt):
            return
        if before and before.commit == after.commit and after.attempt:
            return
        wanted, same = declared(self.host.commits[after.commit], target), before and not before.attempt and bool(before.commit)
        if wanted is None:
            self._holds(False, "3", write, f"records {after.commit[:8]}, which doesn't render")
            return
        if not (same and before and declared(self.host.commits[before.commit], target) == wanted):
            missing = self._unaccepted(process, target, after.commit, wanted)
            self._holds(not missing, "3", write, f"records {after.commit[:8]} before {missing} is applied")
        if not before or before.commit != after.commit:
            self._advance(target, after.commit, write)

    def _advance(self, target: str, commit: str, write: Write) -> None:
        """The recorded commits follow what the branch was, one after the other."""
        if commit in self.explicit[target]:
            return
        at = self._position.get(target, 0)
        later = next((number for number in range(at, len(self.host.heads)) if self.host.heads[number] == commit), None)
        self._holds(later is not None, "2", write, f"goes back to {commit[:8]}")
        self._position[target] = at if later is None else later

    # --- at any time
    def look(self) -> None:
        """Whatever carries our marks is where the record says that members can be."""
        for identity, stored in self.server.store.all():
            for target in _OURS.get(identity, frozenset()) - self.deleted:
                if is_member(stored.body, identity, membership(target)):
                    self._look_at(target, identity)

    def _look_at(self, target: str, identity: Identity) -> None:
        state = self.server.store.get(state_id(target))
        annotations: dict[str, Any] = state.body["metadata"]["annotations"] if state else {}
        known = str(identity.group_kind) in annotations.get(KINDS, "").split(",")
        if not known or (identity.namespace and identity.namespace not in annotations.get(NAMESPACES, "").split(",")):
            self.broken.append(f"I5: {identity} lives where {target}'s record doesn't look")


def is_copy(body: Body) -> bool:
    """Whether an object carries a label of ours without being what its identity names."""
    metadata = body["metadata"]
    mark = (metadata.get("annotations") or {}).get(IDENTITY, "")
    return PART_OF in (metadata.get("labels") or {}) and mark.partition(":")[2] != identity_of(body).mark("")[1:]
