"""Writes how an instance does into the status of its object, from its record, by the rights of the instance.

    an event of it, or a look that finds its status open     -> due, at most one write a second
    the record, the object                                   -> what the status should be (`engine.instance_status`)
    differs                                                  -> one patch under uid and resourceVersion; moved meanwhile: again

Law: no failure of it harms a run. What is written follows from the newest record alone: no late event overwrites an end.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar

from handler.app.instances.due_jobs import DueJobs
from handler.app.instances.objects import served
from handler.app.instances.registry import Instances, trigger_of
from handler.cluster.api import Api
from handler.config.instance_target import InstanceTarget
from handler.config.settings import Target
from handler.config.settings_digest import settings_digest
from handler.engine.instance_status import differs, status_of
from handler.model.errors import AnnealError, ApiRefused, Moved
from handler.model.instance import is_instance
from handler.model.names import Resource
from handler.model.run_event import HealthChanged, PlanHeld, RunEnded, RunPhase, RunPlanned
from handler.state.record import State
from handler.state.record_format import stamp
from handler.state.suspension import suspension

_LOG = logging.getLogger("anneal.instances")
_TRIES = 4  # where the object moves meanwhile
_MERGE = "application/merge-patch+json"
_SAID = 200  # complaints that are remembered, so that each is logged once


@dataclass
class InstanceStatus:
    """The writer of one process. `mask`: hides secrets in what is logged."""

    hears: ClassVar[tuple[type, ...]] = (RunPlanned, RunPhase, PlanHeld, RunEnded, HealthChanged)

    instances: Instances
    mask: Callable[[str], str] = str
    _due: DueJobs = field(default_factory=DueJobs)
    _whole: set[tuple[Any, ...]] = field(default_factory=set)
    """Kinds without a status subresource, by cluster."""
    _said: set[tuple[str, str]] = field(default_factory=set)
    _stop: threading.Event = field(default_factory=threading.Event)

    def hear(self, event: RunPlanned | RunPhase | PlanHeld | RunEnded | HealthChanged) -> None:
        """Note that an instance's status may differ from its record by now."""
        self.note(event.result.target if isinstance(event, RunEnded) else event.target)

    def note(self, name: str) -> None:
        """Have an instance's status compared with its record."""
        if is_instance(name):
            self._due.put(name)

    def start(self) -> None:
        """Write from now on."""
        self.instances.left.append(self._due.forget)
        threading.Thread(target=self._run, name="instance-status", daemon=True).start()

    def stop(self) -> None:
        """End it; nothing is waited for."""
        self._stop.set()

    def _run(self) -> None:
        while not self._stop.is_set():
            for name in self._due.take(1.0):
                self.write(name)

    def write(self, name: str) -> None:
        """Bring the status of one instance's object up to date; whatever goes wrong is logged, once."""
        target = self.instances.known(name)
        if target is None or not trigger_of(target).write_status:
            return
        try:
            self._write(target)
        except AnnealError as error:
            self._complain(target, error)
        except Exception:  # noqa: BLE001 - the next one is still written
            _LOG.exception("a status wasn't written", extra={"fields": {"target": name}})

    def _write(self, target: InstanceTarget) -> None:
        ways = self.instances.ways
        for _ in range(_TRIES):
            state = ways.brief_store(target).read().state
            if state is None or state.instance is None:
                return
            resource, api = served(ways, target, trigger_of(target).main), ways.api(target)
            identity = target.instance.identity
            live = api.get(resource.path(identity.namespace, identity.name), subject=str(identity))
            if live is None or str(live["metadata"].get("uid")) != state.instance.uid:
                return
            try:
                self._patch(target, api, resource, live, state)
            except Moved:
                continue
            return

    def _patch(self, target: InstanceTarget, api: Api, resource: Resource, live: dict[str, Any], state: State) -> None:
        key = (target.cluster, resource.group_kind)
        if key not in self._whole:
            wanted = status_of(live, state, _generation(target, state), self._suspended(target), stamp(self.instances.ways.now()))
            if not differs(live, wanted):
                return
            try:
                self._send(api, resource, live, wanted, "/status")
            except ApiRefused as refused:
                if refused.status != 404:
                    raise
                self._whole.add(key)  # the object was there a moment ago, so its kind has no such subresource
            else:
                return
        wanted = status_of(live, state, 0, self._suspended(target), stamp(self.instances.ways.now()))
        if differs(live, wanted):
            self._send(api, resource, live, wanted, "")

    @staticmethod
    def _send(api: Api, resource: Resource, live: dict[str, Any], status: dict[str, Any], part: str) -> None:
        metadata = live["metadata"]
        path = resource.path(str(metadata.get("namespace") or ""), metadata["name"]) + part
        fence = {"uid": metadata["uid"], "resourceVersion": metadata["resourceVersion"]}
        gone = {key: None for key in live.get("status") or {} if key not in status}
        api.patch(path, {"metadata": fence, "status": {**gone, **status}}, _MERGE)

    def _suspended(self, target: InstanceTarget) -> str:
        template = self.instances.ways.settings.target(target.template)
        if template is None:
            return ""
        found = suspension(template, self._state_of(template), self.instances.ways.now())
        return f"template {template.name} is suspended: `anneal resume {template.name}`" if found else ""

    def _state_of(self, template: Target) -> State | None:
        return self.instances.ways.brief_store(template).read().state

    def _complain(self, target: InstanceTarget, error: AnnealError) -> None:
        if (target.template, error.code) in self._said or len(self._said) >= _SAID:
            return
        self._said.add((target.template, error.code))
        fields = {"target": target.name, "why": self.mask(str(error)), "code": error.code}
        _LOG.warning("the status of an instance's object can't be written", extra={"fields": fields})


def _generation(target: InstanceTarget, state: State) -> int:
    """Return by which generation of the object the record goes: that of its newest run, or a later one that configures the same."""
    recorded = state.instance.generation if state.instance else 0
    same = not state.attempt and state.settings == settings_digest(target)
    return max(recorded, target.instance.generation) if same else recorded
