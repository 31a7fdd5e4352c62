"""Health of objects by the operator's expressions (`healthCheckExprs`), in Flux' order: inProgress, failed, current.

None true, or one that can't be evaluated: in progress; one that takes too long: unknown.
Law: expressions are evaluated in a sandbox (`handler.render.cel_expressions`), many objects in one child; an object has a budget of steps
and of processor time, and all together one of killed children. Only what the expressions name is sent. A verdict is kept with the object's
uid and resourceVersion, also that it took too much.
"""

from __future__ import annotations

import itertools
import json
import threading
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from handler.config.cel import STEPS
from handler.config.settings import HealthCheckExpr
from handler.health.kinds.reading import HEALTHY, as_said, condition, fails, number, waits
from handler.health.kstatus import premature
from handler.model.errors import RenderFailed
from handler.model.health import CURRENT, FAILED, Answer, Health, Status
from handler.model.manifest import at, items_at
from handler.model.names import GroupKind, Identity, identity_of
from handler.model.quotation import quoted
from handler.render.sandbox import Sandbox, SandboxLimits

FUNCTIONS = "handler.render.cel_expressions:FUNCTIONS"
LIMITS = SandboxLimits(memory=1 << 30, cpu=1, seconds=60.0, output=1 << 20)
"""Of one child. `cpu`: seconds, which one object may take whole, for it is tried once more alone."""
KILLED = 5  # children that one call may lose before it leaves the rest `unknown`
PAUSE = 60.0
"""Seconds between calls for one target, where children were killed: what changes each second may not take the processor for itself."""
_USED_UP = "healthCheckExprs: other objects of this target have used up the time for all"
_OBJECTS, _BYTES = 200, 4 << 20  # what one child is given: it takes a small part of its time for that many honest ones
_KEPT = 10_000  # verdicts that are kept
_MESSAGE = 500
_SECRET = GroupKind("", "Secret")

Object = dict[str, Any]


@dataclass(frozen=True, slots=True)
class _Asked:
    identity: Identity
    live: Object
    entry: HealthCheckExpr
    body: bytes


class CustomHealth:
    """The expressions of one target, and what they said. Several threads may ask at once; it outlives runs."""

    def __init__(self, entries: Iterable[HealthCheckExpr], sandbox: Sandbox) -> None:
        """`entries`: the later ones stand above earlier ones of the same kind; `sandbox`: whose server another is started beside."""
        self._entries = {GroupKind(entry.group, entry.kind): entry for entry in entries}
        self._sandbox = sandbox
        self._kept: dict[str, tuple[str, HealthCheckExpr, Health]] = {}
        self._lock = threading.Lock()

    def covers(self, kind: GroupKind) -> bool:
        """Whether expressions judge this kind, whatever else knows of it."""
        return self._entry(kind) is not None

    def verdicts(self, objects: Iterable[Object], generations: Mapping[Identity, int] | None = None) -> dict[Identity, Health]:
        """Judge live objects; those of kinds without expressions are left out. `generations`: the least that each must be of.

        Raises OperatorError: no child can be started here; Stopping: there was less time than a child may take.
        """
        found: dict[Identity, Health] = {}
        asked: list[_Asked] = []
        for live in objects:
            identity = identity_of(live)
            entry = self._entry(identity.group_kind)
            if entry is None:
                continue
            known = _premature(live, (generations or {}).get(identity, 0)) or self._known(live, entry)
            if known is None:
                asked.append(_Asked(identity, live, entry, _seen_by(entry, live)))
            else:
                found[identity] = known
        return found | dict(self._ask(asked))

    def verdict(self, live: Object, generation: int = 0) -> Health | None:
        """Judge one object, of at least this generation; None: it is of a kind without expressions. Raises: see `verdicts`."""
        identity = identity_of(live)
        return self.verdicts([live], {identity: generation}).get(identity)

    def _entry(self, kind: GroupKind) -> HealthCheckExpr | None:
        return self._entries.get(kind) or self._entries.get(GroupKind(kind.group, ""))

    # --- in children
    def _ask(self, asked: Sequence[_Asked]) -> Iterator[tuple[Identity, Health]]:
        """Judge batch by batch. What a child said before it was killed counts; what it died of begins the next batch, with all its time."""
        left, killed = deque(asked), 0
        while left and killed < KILLED:
            batch = _batch(left)
            answers, why = self._run(batch)
            killed += bool(why)
            for each, answer in zip(batch, answers, strict=False):
                yield each.identity, self._keep(each, _health(each, answer))
            rest = batch[len(answers) :]
            if rest and not answers:
                spent = Health(Status.UNKNOWN, f"healthCheckExprs of {rest[0].entry}: {why}", again=PAUSE)
                yield rest[0].identity, self._keep(rest[0], spent) if why in _ITS_OWN else spent
                rest = rest[1:]
            left.extendleft(reversed(rest))
        for each in left:
            yield each.identity, Health(Status.UNKNOWN, _USED_UP, again=PAUSE)

    def _run(self, batch: Sequence[_Asked]) -> tuple[list[Answer], str]:
        entries = list(dict.fromkeys(each.entry for each in batch))
        options = {
            "entries": [(entry.in_progress, entry.failed, entry.current) for entry in entries],
            "of": [entries.index(each.entry) for each in batch],
        }
        answers: list[Answer] = []
        bodies, sandbox = [each.body for each in batch], self._sandbox.beside(FUNCTIONS, LIMITS)
        try:
            sandbox.run("health", options, bodies, lambda data: answers.append(Answer.decode(data)), "healthCheckExprs")
        except RenderFailed as failed:
            return answers[: len(batch)], _WHY.get(failed.reason, "the evaluation failed")
        return answers[: len(batch)], "" if len(answers) >= len(batch) else "the evaluation failed"

    # --- what is known
    def _known(self, live: Object, entry: HealthCheckExpr) -> Health | None:
        uid, version = _version(live)
        with self._lock:
            kept = self._kept.get(uid)
        return kept[2] if kept and kept[:2] == (version, entry) else None

    def _keep(self, each: _Asked, health: Health) -> Health:
        uid, version = _version(each.live)
        if uid and version:
            with self._lock:
                self._kept.pop(uid, None)
                self._kept[uid] = (version, each.entry, health)
                for old in list(itertools.islice(self._kept, max(len(self._kept) - _KEPT, 0))):
                    del self._kept[old]
        return health


def no_expressions() -> CustomHealth:
    """Return what judges nothing."""
    return CustomHealth((), Sandbox())


_WHY = {
    "cpu": f"the evaluation takes more than {LIMITS.cpu} s of processor time on it",
    "timeout": f"the evaluation hasn't ended after {LIMITS.seconds:.0f} s on it",
    "memory": "the evaluation takes more memory on it than it may have",
    "output": "the evaluation says too much of it",
}
_ITS_OWN = frozenset(_WHY[each] for each in ("cpu", "memory", "output"))
"""What an object costs wherever it is judged; a time-out may be the machine's."""


def _version(live: Object) -> tuple[str, str]:
    return str(at(live, "metadata", "uid") or ""), str(at(live, "metadata", "resourceVersion") or "")


def _seen_by(entry: HealthCheckExpr, live: Object) -> bytes:
    """Return the top-level fields that the expressions can see: those whose name stands in one. What isn't named needn't leave."""
    text = f"{entry.in_progress} {entry.failed} {entry.current}"
    seen = {name: value for name, value in live.items() if name in text}
    if "managedFields" not in text and isinstance(seen.get("metadata"), dict):
        seen["metadata"] = {name: value for name, value in seen["metadata"].items() if name != "managedFields"}
    return json.dumps(seen).encode()


def _batch(left: deque[_Asked]) -> list[_Asked]:
    batch, size = [left.popleft()], 0
    while left and len(batch) < _OBJECTS and size + len(left[0].body) <= _BYTES:
        size += len(left[0].body)
        batch.append(left.popleft())
    return batch


# --- verdicts
def _premature(live: Object, generation: int) -> Health | None:
    """Judge what Flux judges before the expressions: an object that was restored may have a status of a later generation than its own."""
    shown, observed = number(at(live, "metadata", "generation")), number(at(live, "status", "observedGeneration"))
    early = premature(live, generation)
    if early is None and shown is not None and observed is not None and observed != shown:
        return waits(f"its status is of another generation (generation {shown}, seen: {observed})")
    return early


def _health(each: _Asked, answer: Answer) -> Health:
    """Return the verdict of an answer; an expression says only yes or no, so that what the object itself says goes with it."""
    if answer.spent:
        return Health(Status.UNKNOWN, f"`{answer.name}` of healthCheckExprs takes more than {STEPS:,} steps on it")
    if answer.wrong:
        why = "" if each.identity.group_kind == _SECRET else f": {quoted(answer.wrong, _MESSAGE)}"  # CEL's words may quote a value
        return waits(f"`{answer.name}` of healthCheckExprs can't be evaluated{why}")
    if answer.name == CURRENT:
        return HEALTHY
    holds = f"`{answer.name}` of healthCheckExprs holds" if answer.name else f"`{CURRENT}` of healthCheckExprs doesn't hold"
    message = ": ".join(filter(None, (holds, _says(each.live))))
    return fails(message) if answer.name == FAILED else waits(message)


def _says(live: Object) -> str:
    types = [str(at(each, "type")) for each in items_at(live, "status", "conditions")]
    for kind in sorted(types, key=lambda kind: kind != "Ready"):
        found = condition(live, kind)
        if not found.true and found.said:
            return f"{as_said(kind)} is {as_said(found.status)}: {found.said}"
    words = (as_said(at(live, "status", name)) for name in ("phase", "state", "reason", "message"))
    return ": ".join(filter(None, words))
