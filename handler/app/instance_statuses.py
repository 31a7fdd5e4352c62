"""Writes into the status of instances' objects how their runs go: a subscriber of events, with threads of its own.

    an event of an instance  ->  it is due  ->  a thread: GET the object, read the record, PATCH what differs

Law: an event only says that there is something to look at; what is written is what the record says then, and only over the object as it
was read before the record: no late picture overwrites a newer one, whatever process wrote that. No status harms a run: what can't be
written is logged, and compared again at the next end of a run, or when `look` is called.
"""

from __future__ import annotations

import logging
import math
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

from handler.cluster.api import Api, ApiRequest, encode
from handler.cluster.discovery import Discovery
from handler.cluster.write import refuse_to_forget
from handler.config.instance_target import InstanceTarget
from handler.config.settings import Target
from handler.config.settings_digest import settings_digest
from handler.engine.run import instance_conditions
from handler.model.api_groups import is_certainly_custom
from handler.model.errors import AccessDenied, AnnealError, ApiRefused, Moved
from handler.model.instance import is_instance
from handler.model.manifest import canonical
from handler.model.names import Resource
from handler.model.result import Outcome, Result
from handler.model.run_event import HealthChanged, RunEnded, RunPhase
from handler.state.store import StateStore

_LOG = logging.getLogger("anneal.status")
THREADS = 4
PAUSE = 1.0
"""Seconds between two writes of one instance while its run goes on."""
MOST = 10_000
"""Instances that may be due at once; what there is no room for is found at the end of its next run."""
_TRIES = 5
_MERGE = "application/merge-patch+json"
_SCHEMA = (
    "put into the schema of its CRD, under openAPIV3Schema.properties: status: {type: object, properties: {observedGeneration: "
    "{type: integer, format: int64}, conditions: {type: array, items: {type: object, x-kubernetes-preserve-unknown-fields: true}}}}"
)

_OFF = "write `writeStatus: false` beside mainResource"


class StatusWays(Protocol):
    """What leads to an instance's object and record; `Connections` is it."""

    def brief_api(self, target: Target, *, impersonated: bool = False) -> Api:
        """Return the way to a target's cluster with short time-outs, as the target's identity."""

    def discovery(self, target: Target) -> Discovery:
        """Return what a target's cluster serves."""

    def brief_store(self, target: Target) -> StateStore:
        """Return a target's record, read with short time-outs."""


@dataclass(frozen=True, slots=True)
class _Due:
    """An instance that is to be looked at: not before `at`, in monotonic seconds. `quiet`: its run says nothing new."""

    at: float
    generation: int = 0
    unrecorded: Result | None = None
    quiet: bool = False

    def after(self, older: _Due | None) -> _Due:
        """Return both as one: what was said last, at the sooner of their times."""
        if older is None:
            return self
        said = older.unrecorded if self.quiet else self.unrecorded
        return _Due(min(self.at, older.at), self.generation or older.generation, said, self.quiet and older.quiet)


class InstanceStatuses:
    """A subscriber of events. `target`: an instance by name, None: it is gone.

    `clock`: seconds since the epoch, of conditions; `pause`: see PAUSE.
    """

    hears: ClassVar[tuple[type, ...]] = (RunPhase, RunEnded, HealthChanged)

    def __init__(
        self,
        ways: StatusWays,
        target: Callable[[str], InstanceTarget | None],
        clock: Callable[[], float] = time.time,
        pause: float = PAUSE,
    ) -> None:
        self._ways, self._target, self._clock, self._pause = ways, target, clock, pause
        self._changed = threading.Condition()
        self._due: dict[str, _Due] = {}
        self._busy: set[str] = set()
        self._written: dict[str, float] = {}
        self._cut: dict[str, int] = {}
        self._logged: set[tuple[str, str]] = set()
        self._threads = 0

    def hear(self, event: Any) -> None:
        """Let an instance be looked at: at once where its run has ended, else when its last write is a second ago."""
        match event:
            case RunPhase():
                self._add(event.target, _Due(self._written.get(event.target, -math.inf) + self._pause, event.generation))
            case HealthChanged():
                self._add(event.target, _Due(self._written.get(event.target, -math.inf) + self._pause, quiet=True))
            case RunEnded() if not event.job.dry_run:
                result = event.result
                unrecorded = result if result.outcome is Outcome.FAILED and not result.recorded else None
                self._add(result.target, _Due(0.0, result.generation if result.recorded or unrecorded else 0, unrecorded))

    def look(self, name: str) -> None:
        """Let an instance's status be compared with its record: what an event that was lost would have written is written."""
        self._add(name, _Due(0.0, quiet=True))

    def forget(self, name: str) -> None:
        """Drop all that is kept of an instance."""
        with self._changed:
            self._due.pop(name, None)
            self._written.pop(name, None)
            self._cut.pop(name, None)

    def settle(self, seconds: float) -> bool:
        """Wait until nothing is due any more; return whether that is so, after `seconds` at most."""
        with self._changed:
            return self._changed.wait_for(lambda: not (self._due or self._busy), seconds)

    def _add(self, name: str, due: _Due) -> None:
        if not is_instance(name):
            return
        with self._changed:
            older = self._due.get(name)
            if older is None and len(self._due) >= MOST:
                return
            self._due[name] = due.after(older)
            if self._threads < THREADS and self._threads < len(self._due) + len(self._busy):
                self._threads += 1
                threading.Thread(target=self._work, name="instance status", daemon=True).start()
            self._changed.notify_all()

    def _work(self) -> None:
        while True:
            name, due = self._next()
            try:
                self._written_of(name, due)
            except Exception:  # noqa: BLE001 - the next ones are still written
                _LOG.exception("the status of an instance isn't written", extra={"fields": {"target": name}})
            with self._changed:
                self._busy.discard(name)
                self._written = {each: at for each, at in self._written.items() if at + self._pause > time.monotonic()}
                self._changed.notify_all()

    def _next(self) -> tuple[str, _Due]:
        """Wait for the instance that is due first, and that no thread works on."""
        with self._changed:
            while True:
                at, name = min(((due.at, name) for name, due in self._due.items() if name not in self._busy), default=(None, ""))
                wait = None if at is None else at - time.monotonic()
                if wait is not None and wait <= 0:
                    self._busy.add(name)
                    return name, self._due.pop(name)
                self._changed.wait(wait)

    def _written_of(self, name: str, due: _Due) -> None:
        target = self._target(name)
        resource = target.trigger.resource if target and target.trigger else None
        if target is None or resource is None or not (resource.write_status and is_certainly_custom(target.instance.identity.group)):
            self.forget(name)  # the status of Kubernetes' own kinds is its controllers'
            return
        try:
            for _ in range(_TRIES):
                if self._is_written(target, due):
                    return
            self._log(target, "moved", "it was changed by others between each of several reads and writes", "")
        except AnnealError as error:
            self._refused(target, error)

    def _is_written(self, target: InstanceTarget, due: _Due) -> bool:
        """Write once; return whether that is over: False where the object has changed since it was read."""
        assert target.instance is not None  # noqa: S101 - an InstanceTarget has one
        api, resource = self._ways.brief_api(target, impersonated=True), self._served(target)
        identity = target.instance.identity
        path = resource.path(identity.namespace, identity.name) if resource else ""
        live = api.get(path, subject=str(identity)) if path else None
        if resource is None or live is None or live["metadata"].get("uid") != target.instance.uid:
            return True  # gone, or another of the same name, which is an instance of its own
        if instance_conditions.is_of_another_form(live):
            self._log(target, "form", "status.conditions of its object holds no list of conditions: it is another's", _OFF)
            return True
        status = self._made(target, live, due, resource)
        if status is None or status == live.get("status") or self._cut.get(target.name) == _timeless(status):
            return True
        metadata = {key: live["metadata"][key] for key in ("uid", "resourceVersion")}
        ours = {key: value for key, value in status.items() if key in ("conditions", "observedGeneration")}
        place, body = path + ("/status" if resource.status else ""), encode({"metadata": metadata, "status": ours})
        request = ApiRequest("PATCH", place, None, body, _MERGE, repeatable=False)
        try:
            if any(each.get("apiVersion") != resource.api_version for each in live["metadata"].get("managedFields") or ()):
                refuse_to_forget(api, request)
            answer = api.expect(request)
        except Moved:
            return False
        except ApiRefused as error:
            if error.status != 404:
                raise
            self._ways.discovery(target).refresh()
            return api.get(path, subject=str(identity)) is None  # else the kind has lost its subresource
        self._note(target, status, answer)
        return True

    def _made(self, target: InstanceTarget, live: dict[str, Any], due: _Due, resource: Resource) -> Any:
        """Return the whole status as it should be; None: nothing is known that isn't said yet."""
        state = self._ways.brief_store(target).read().state
        if state and state.instance and state.instance.uid != live["metadata"]["uid"]:
            state = None  # of an older object of the same name
        if state is None and due.unrecorded is None and instance_conditions.is_told(live):
            return None
        now = self._clock()
        wanted = instance_conditions.conditions(target, state, now, due.unrecorded)
        generation = due.generation or instance_conditions.generation_of(target, settings_digest(target), state)
        generation = min(generation, live["metadata"].get("generation") or 0) if resource.status else 0  # one made anew begins again
        return instance_conditions.merged(live, wanted, generation, now)

    def _note(self, target: InstanceTarget, status: Any, answer: dict[str, Any]) -> None:
        """Keep when it was written, and what a schema has cut, so that it isn't written again and again."""
        kept = answer.get("status") == status
        with self._changed:
            self._written[target.name] = time.monotonic()
            if kept:
                self._cut.pop(target.name, None)
            else:
                self._cut[target.name] = _timeless(status)
        if not kept:
            self._log(target, "cut", "the schema of the kind drops parts of what is written into its status", _SCHEMA)

    def _served(self, target: InstanceTarget) -> Resource | None:
        assert target.trigger is not None  # noqa: S101 - an instance's template has one
        assert target.trigger.resource is not None  # noqa: S101 - of the same
        main = target.trigger.resource.main
        return self._ways.discovery(target).find(main.api_version, main.kind)

    def _refused(self, target: InstanceTarget, error: AnnealError) -> None:
        fix = next((each.fix for each in error.problems if each.fix), "")
        if isinstance(error, ApiRefused):
            self._log(target, str(error.status), str(error), fix or _SCHEMA)
        else:
            self._log(target, error.code, str(error), fix if isinstance(error, AccessDenied) else "")

    def _log(self, target: InstanceTarget, reason: str, seen: str, fix: str) -> None:
        """Log once for each template and reason."""
        key = (target.template, reason)
        with self._changed:
            if key in self._logged:
                return
            self._logged.add(key)
        fields = {"target": target.name, "template": target.template, "why": seen, "fix": fix}
        _LOG.warning("the status of an instance isn't written", extra={"fields": fields})


def _timeless(status: Any) -> int:
    """Return a hash of a status without its times, which are made anew where a schema cuts conditions."""
    rows = [{**each, "lastTransitionTime": ""} for each in status["conditions"] if isinstance(each, dict)]
    return hash(canonical([status.get("observedGeneration"), rows]))
