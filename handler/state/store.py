"""Reads and writes the record of one target by compare-and-swap. The commit moves last; without the Lease only where no object is written.

On a 409 `swap` (a run's records) drops them, `write` (inside the run's own open attempt) merges them with a person's write, `update`
(a person's suspend, approval or pin) tries again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from handler.model.advice import advice
from handler.model.errors import Busy, LeaseLost, Moved, Problem, StateInvalid, TargetMoved
from handler.model.names import state_name
from handler.state.cluster_port import Body, StateObjects, create_in_namespace, replace_same
from handler.state.commit_status_update import only_shown
from handler.state.configmap import SUMMARY, decode, encode, summary_of, text_length
from handler.state.record import Progress, State
from handler.state.record_format import INFLATED

Keep = Callable[[State | None, State], State]
"""Completes a state that is about to be written over another one, None: over none."""
Change = Callable[[State], State]
"""Makes the next state from the one it is given: it may be called again on a newer one."""


@dataclass(frozen=True, slots=True)
class StoredState:
    """A state as it was read: `uid` and `resource_version` fence the next write. `state` is None where there is none yet."""

    state: State | None
    uid: str = ""
    resource_version: str = ""
    body: Body = field(default_factory=dict, repr=False, compare=False)


class StateStore:
    """The record of one target.

    `tooling`: `anneal/v<semver>`, as KEP-3659 wants it on the ApplySet's parent. `keep`: see `soak_update.kept`. `before`: the installation
    and the repository of a record that is taken over, as the configuration says (`installationFrom`): it is read as this installation's,
    and the next write makes it that.
    """

    def __init__(
        self,
        objects: StateObjects,
        namespace: str,
        target: str,
        installation: str,
        tooling: str,
        keep: Keep = lambda _, state: state,
        before: tuple[str, str] = ("", ""),
    ) -> None:
        self._objects = objects
        self._namespace = namespace
        self._target = target
        self._installation = installation
        self._tooling = tooling
        self._keep = keep
        self._before = before
        self._name = state_name(target)
        self._subject = f"ConfigMap/{namespace}/{self._name}"

    @property
    def namespace(self) -> str:
        """Where the record is."""
        return self._namespace

    def read(self) -> StoredState:
        """Read the state. Raises StateInvalid when it isn't ours or can't be read."""
        body = self._objects.get("ConfigMap", self._namespace, self._name)
        return StoredState(None) if body is None else self._stored(body)

    def blank(self, cluster_uid: str) -> State:
        """Return the first state of this target: nothing applied, nothing known, of no repository yet."""
        return State(self._target, self._installation, cluster_uid)

    def writes(self, state: State) -> bool:
        """Whether a record is this installation's."""
        return state.installation == self._installation

    def at_home(self, state: State, repository: str, cluster_uid: str) -> State:
        """Return a state that belongs here; one that is fresh, which applied nothing, goes wherever its target does.

        Raises TargetMoved: it belongs to another repository, installation or cluster; every difference is named.
        """
        if state.fresh:
            return replace(state, repository="", installation=self._installation, cluster_uid=cluster_uid)
        pairs = {
            "repository": (state.repository, repository),
            "installation": (state.installation, self._installation),
            "cluster (uid of kube-system)": (state.cluster_uid, cluster_uid),
        }
        fix = advice("`anneal retarget {}` accepts that", self._target)
        if not self.writes(state):
            other = "where both are to live on, give this one another `stateNamespace`, or the target another name"
            line = "`installationFrom: {yaml}` beside `installation: {yaml}`, for all targets"
            ours, theirs = self._installation, state.installation
            way = advice(line, theirs, ours)
            fix = advice("{text}; only where {text} replaces {text}: write {text}, or {text}", other, ours, theirs, way, fix)
        moved = [
            Problem(f"Target/{self._target}", f"{what} was {was}, is now {now}", place=self._subject, fix=fix)
            for what, (was, now) in pairs.items()
            if was != now
        ]
        if moved:
            raise TargetMoved(*moved)
        return state

    def is_summed(self, stored: StoredState) -> bool:
        """Whether the summary annotation says of the state what this version's says."""
        annotations = stored.body["metadata"].get("annotations") or {}
        return stored.state is not None and annotations.get(SUMMARY) == summary_of(stored.state)

    def create(self, state: State) -> StoredState:
        """Write the first state, and its namespace where missing. Raises Moved if there is one already, AccessDenied with the command."""
        written, body = self._fitted(None, state)
        return _of(written, create_in_namespace(self._objects, body))

    def swap(self, stored: StoredState, state: State, token: str | None = None) -> StoredState:
        """Write `state` if nothing moved since `stored` was read; equal content isn't written.

        Without a `token` (no Lease) neither may hold an open attempt; with one, `state` may only open its own. Raises Busy: another run is
        open; Moved: a 409; LeaseLost: the state was deleted.
        """
        self._fence(stored, state, token)
        before = stored
        while True:
            try:
                return self._put(before, *self._fitted(before.state, state))
            except Moved:
                newer = self.read()
                if newer.uid != stored.uid or stored.state is None or newer.state is None or not only_shown(stored.state, newer.state):
                    raise
                state = replace(state, commit_statuses=newer.state.commit_statuses, pull_requests=newer.state.pull_requests)
                before = newer

    def write(self, stored: StoredState, change: Change, token: str) -> StoredState:
        """Write `change(state)` inside our own attempt; after a person's write in between `change` is made on the newer state.

        `change` must build on the state it is given (`dataclasses.replace`), so that suspend, approval and pin survive. Raises LeaseLost:
        the state was deleted or replaced, or another run has opened its attempt; Moved: none is open any more.
        """
        while True:
            state = change(self._present(stored))
            self._fence(stored, state, token)
            written, body = self._fitted(stored.state, state)
            try:
                return self._put(stored, written, body)
            except Moved:
                newer = self._same(stored)
                if newer.state == written:  # our own write, whose answer was lost
                    return newer
                self._own(stored, newer, token)
                stored = newer

    def update(self, change: Change, initial: State | None = None, tries: int = 5) -> StoredState:
        """Change the newest state, or create `initial` changed. Raises StateInvalid: there is neither; Moved: others were quicker."""
        for left in reversed(range(tries)):
            stored = self.read()
            try:
                if stored.state is None and initial is not None:
                    return self.create(change(initial))
                return self._put(stored, *self._fitted(stored.state, change(self._present(stored))))
            except Moved:
                if not left:
                    raise
        raise ValueError("tries must be one or more")

    def remove(self, stored: StoredState) -> bool:
        """Delete the record as it was read; False: it is gone already. Raises Moved: it changed since."""
        return self._objects.delete("ConfigMap", self._namespace, self._name, uid=stored.uid, resource_version=stored.resource_version)

    def _fitted(self, before: State | None, after: State) -> tuple[State, Body]:
        return fitted(self._keep(before, after), self._namespace, self._tooling)

    def _present(self, stored: StoredState) -> State:
        if stored.state is None:
            fix = advice("`anneal apply {}` makes it", self._target)
            raise StateInvalid.of(self._subject, "doesn't exist: the target never ran", fix=fix)
        return stored.state

    def _stored(self, body: Body) -> StoredState:
        state = decode(body, self._namespace, self._target, self._tooling)
        taken = bool(self._before[0]) and (state.installation, state.repository) == self._before
        return _of(replace(state, installation=self._installation) if taken else state, body)

    def _fence(self, stored: StoredState, state: State, token: str | None) -> None:
        """Refuse a record that the Lease doesn't cover."""
        was = stored.state.attempt if stored.state else None
        if token is None and was is not None:
            raise Busy.of(self._subject, f"a run is open since {was.since} (token {was.token})")
        if state.attempt is not None and state.attempt.token != token:
            raise LeaseLost.of(self._subject, f"the open attempt has token {state.attempt.token}, ours is {token}")

    def _put(self, stored: StoredState, written: State, body: Body) -> StoredState:
        """PUT with the uid and resourceVersion of `stored`; labels and annotations of others are kept."""
        metadata = stored.body["metadata"]
        for part in ("labels", "annotations"):
            body["metadata"][part] = {**(metadata.get(part) or {}), **body["metadata"][part]}
        if stored.state == written and _texts(body["metadata"]) == _texts(metadata):
            return stored
        body["metadata"] |= {"uid": stored.uid, "resourceVersion": stored.resource_version}
        return _of(written, replace_same(self._objects, body))

    def _same(self, stored: StoredState) -> StoredState:
        newer = self.read()
        if newer.uid != stored.uid:
            raise LeaseLost.of(self._subject, "was deleted during the run", fix="run again: the objects are found by their label")
        return newer

    def _own(self, older: StoredState, newer: StoredState, token: str) -> None:
        attempt = self._present(newer).attempt
        if attempt is None or (attempt.token != token and attempt == self._present(older).attempt):
            raise Moved.of(self._subject, "changed since it was read, and our run isn't open in it")
        if attempt.token != token:
            raise LeaseLost.of(self._subject, f"another run opened its attempt (token {attempt.token}, ours is {token})")


def _of(state: State, body: Body) -> StoredState:
    metadata = body["metadata"]
    return StoredState(state, metadata["uid"], metadata["resourceVersion"], body)


def _texts(metadata: dict[str, Any]) -> tuple[dict[str, str], dict[str, str]]:
    return (metadata.get("labels") or {}, metadata.get("annotations") or {})


LIMIT = 700_000  # most bytes of data and binaryData (as base64); the API server's own limit is 1 MiB
_COMMENTS = 20  # of pull requests that stay as long as anything does that isn't needed: without its note a comment is posted anew
_BRIEF = 200  # characters of what a step says where there is no room for more


def fitted(state: State, namespace: str, tooling: str) -> tuple[State, Body]:
    """Return what will really be stored, trimmed to the limit, and its ConfigMap.

    What git hosts have goes first, but for the newest comments, then history, changed subjects, what a rollout's steps say, the drift
    record, the read paths (the next push then renders); `declared` never. Raises StateInvalid: that isn't enough, or a value breaks its
    rule and couldn't be read again.
    """
    for smaller in _trimmed(state):
        body = encode(smaller, namespace, tooling)
        if size(body) <= LIMIT and text_length(body) <= INFLATED:
            return decode(body, namespace, state.target, tooling), body
    raise StateInvalid.of(
        f"ConfigMap/{namespace}/{state_name(state.target)}",
        f"the record of {len(state.declared)} objects needs {size(body)} bytes, {LIMIT} are allowed",
        fix="split the target in two",
    )


def _trimmed(state: State) -> Iterator[State]:
    yield state
    kept = tuple(each for each in state.commit_statuses if each.is_owed or not each.is_end)
    state = replace(state, pull_requests=state.pull_requests[:_COMMENTS], commit_statuses=kept)
    yield state
    for count in (10, 5):
        yield replace(state, history=state.history[:count])
    bare = replace(state, history=tuple(replace(run, changed=()) for run in state.history[:5]))
    yield bare
    for most in (_BRIEF, 0):
        bare = replace(bare, rollout=_shortened(bare.rollout, most))
        yield bare
    yield replace(bare, drift=())
    yield replace(bare, drift=(), reads_paths=())
    yield replace(bare, drift=(), reads_paths=(), pull_requests=())


def _shortened(rollout: Progress | None, most: int) -> Progress | None:
    return rollout and replace(rollout, steps=tuple(replace(step, message=step.message[:most], stood=()) for step in rollout.steps))


def size(body: Body) -> int:
    """Return how many bytes of data a ConfigMap holds."""
    return sum(len(value.encode()) for part in ("data", "binaryData") for value in body[part].values())
