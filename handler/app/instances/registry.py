"""The instances that a process knows, as targets; and what of each is to end. Safe to share between threads.

Law: an instance is what its object says now. One that isn't known yet is looked for by its record, or by the parts of its name.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from handler.app.connections import Connections
from handler.app.instances.listed_objects import ListedObjects, WatchedObjects, is_own, served
from handler.app.instances.vanished import definition_of
from handler.cluster.live import matches
from handler.config.instance_target import InstanceTarget, instance_target
from handler.config.settings import Target
from handler.config.trigger_settings import ResourceTrigger, WatchedResource
from handler.engine.run.instance_conditions import is_open
from handler.model.advice import advice
from handler.model.errors import AccessDenied, NoInstance, OperatorError
from handler.model.instance import Instance, instance_name, template_of
from handler.model.names import Identity
from handler.plan.admission import allows
from handler.state.record import RecordedInstance
from handler.triggers.relabelling import instance_key

Left = Callable[[str], None]
"""Takes the name of an instance that is known no more."""


def trigger_of(template: Target) -> ResourceTrigger:
    """Return the trigger of a template."""
    trigger = template.trigger.resource if template.trigger else None
    assert trigger is not None, template.name  # noqa: S101 - callers have asked `is_template`
    return trigger


@dataclass
class Instances:
    """The registry of one process.

    `source`: where objects are known from. `leaving`: instances whose object is gone for certain, each with what its record says of it.
    `open`: those whose status said, when a template looked last, that something goes on.
    `heard`: called with each instance that is known from now on, `left` with the name of each that isn't any more.
    """

    ways: Connections
    source: WatchedObjects
    leaving: dict[str, RecordedInstance] = field(default_factory=dict)
    heard: list[Callable[[InstanceTarget], None]] = field(default_factory=list)
    left: list[Left] = field(default_factory=list)
    open: set[str] = field(default_factory=set)
    _known: dict[str, InstanceTarget] = field(default_factory=dict)
    _noted: dict[str, int] = field(default_factory=dict)
    _count: int = 0
    _definitions: dict[str, str] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @classmethod
    def of(cls, ways: Connections) -> Instances:
        """Return a registry that LISTs objects at each question."""
        return cls(ways, ListedObjects(ways))

    # --- which there are
    def known(self, name: str) -> InstanceTarget | None:
        """Return an instance that is known, as it is now."""
        with self._lock:
            return self._known.get(name)

    def of_template(self, template: str) -> list[InstanceTarget]:
        """Return the known instances of a template, by their names."""
        with self._lock:
            return [each for _, each in sorted(self._known.items()) if each.template == template]

    def put(self, template: Target, live: Mapping[str, Any], since: float = math.inf) -> InstanceTarget | None:
        """Note an object of a template's main resource as it is now; return its instance, None: trigger or whitelist leave it out.

        `since`: what was noted of it after so many others is newer, and stays.
        """
        target = self._target(template, live)
        if target is None:
            return None
        with self._lock:
            before = self._known.get(target.name)
            if before is not None and self._noted[target.name] > since:
                return before
            self._note(target)
            self.leaving.pop(target.name, None)
        for hear in self.heard if before is None else ():
            hear(target)
        return target

    def _note(self, target: InstanceTarget) -> None:
        self._count += 1
        self._known[target.name], self._noted[target.name] = target, self._count

    def look(self, template: Target) -> dict[str, InstanceTarget]:
        """Return all instances of a template, from their objects; what isn't among them is known no more. Raises AnnealError."""
        before, since = {each.name for each in self.of_template(template.name)}, self._count  # what events say meanwhile is newer
        seen = [(self.put(template, live, since), live) for live in self.source.objects(template, trigger_of(template).main, "")]
        now = {each.name: each for each, _ in seen if each}
        gone = {name for name in self.open if template_of(name) == template.name}
        self.open = (self.open - gone) | {each.name for each, live in seen if each and is_open(live)}
        for name in before - now.keys():
            self.drop(name)
        return now

    def going(self, name: str) -> None:
        """Note that an instance's object seems to be gone: nothing is applied for it until a look has found out."""
        with self._lock:
            known = self._known.get(name)
            if known is not None:
                self._note(replace(known, instance=replace(known.instance, terminating=True)))

    def drop(self, name: str) -> None:
        """Forget an instance."""
        with self._lock:
            self._known.pop(name, None)
            self._noted.pop(name, None)
        for leave in self.left:
            leave(name)

    def ended(self, name: str) -> None:
        """Note that nothing is left of an instance; one for another object of its name, which came meanwhile, stays known."""
        with self._lock:
            ended, now = self.leaving.pop(name, None), self._known.get(name)
        if ended is None or now is None or now.instance.uid == ended.uid:
            self.drop(name)

    def find(self, name: str) -> InstanceTarget:
        """Return an instance, by its object if it isn't known yet. Raises NoInstance: there is none; AnnealError: it can't be known."""
        known = self.known(name)
        if known is not None:
            return known
        template = self.ways.settings.target(template_of(name))
        if template is None or not template.is_template:
            raise self._unknown(name, "no target has such instances", "anneal status")
        resource = served(self.ways, template, trigger_of(template).main)
        for identity in self._places(template, name, resource.group, resource.kind, namespaced=resource.namespaced):
            live = self.ways.api(template).get(resource.path(identity.namespace, identity.name), subject=str(identity))
            target = self.put(template, live | {"apiVersion": resource.api_version, "kind": resource.kind}) if live else None
            if target is not None and target.name == name:
                return target
        raise self._unknown(name, f"there is no {resource.kind} of that name", advice("anneal status {}", template.name))

    def recorded(self, name: str) -> InstanceTarget | None:
        """Return an instance by its record alone, whether its object lives or not. Raises AnnealError: it can't be read."""
        template = self.ways.settings.target(template_of(name))
        state = self.ways.brief_store(replace_name(template, name)).read().state if template else None
        known = state.instance if state else None
        if template is None or known is None:
            return None
        return instance_target(template, Instance(known.identity, known.uid, {}, definition=known.definition))

    @staticmethod
    def _unknown(name: str, seen: str, fix: str) -> NoInstance:
        return NoInstance.of(f"target {name}", f"is no instance: {seen}", fix=fix)

    def _places(self, template: Target, name: str, group: str, kind: str, *, namespaced: bool) -> Iterable[Identity]:
        """Yield which objects an instance of this name may be for: what its record says, then what its name says."""
        state = self.ways.brief_store(replace_name(template, name)).read().state
        if state is not None and state.instance is not None:
            yield state.instance.identity
        rest = name.partition(".")[2]
        namespace, _, own = rest.partition(".") if namespaced else ("", "", rest)
        if own and instance_name(template.name, namespace, own) == name:
            yield Identity(group, kind, namespace, own)

    def _target(self, template: Target, live: Mapping[str, Any]) -> InstanceTarget | None:
        instance, main = Instance.of(dict(live), self._definition(template)), trigger_of(template).main
        space = instance.identity.namespace
        if (
            (space and not allows(template, space))
            or main.namespace not in ("", space)
            or not matches(dict(live), main.label_selector.query)
        ):
            return None
        if instance_key(instance.key, main.key_transformations) is None:
            return None
        return instance_target(template, instance)

    def _definition(self, template: Target) -> str:
        """Return the uid of the definition of a template's main resource, asked once until `refresh`; of one that goes each time."""
        known = self._definitions.get(template.name)
        if known is not None:
            return known
        resource = served(self.ways, template, trigger_of(template).main)
        try:
            uid, going = definition_of(self.ways, template, resource)
        except AccessDenied:
            uid, going = "", False
        if not going:
            self._definitions[template.name] = uid
        return uid

    def refresh(self, template: Target) -> None:
        """Ask for the definition of a template's main resource anew."""
        self._definitions.pop(template.name, None)

    # --- what configures them
    def lists(self, target: Target) -> Callable[[str], list[dict[str, Any]]]:
        """Return what gives an instance's render the objects of a resource that its trigger lists."""
        return partial(self._listed, target)

    def _listed(self, target: Target, name: str) -> list[dict[str, Any]]:
        trigger = trigger_of(target)
        watched = next((each for each in trigger.resources if each.name == name), None)
        if watched is None:
            known = ", ".join(each.name for each in trigger.resources)
            seen = f"its trigger watches no resource {name}"
            block = advice("{name: {yaml}, apiVersion: GROUP/VERSION, kind: KIND}", name)
            fix = advice("it watches {text}; for another add - {text} under trigger.resource.resources", known, block)
            raise OperatorError.of(f"target {template_of(target.name)}", seen, fix=fix)
        return [each for each in self.source.objects(target, watched, scope_of(target, watched)) if not is_own(each)]


def scope_of(target: Target, watched: WatchedResource) -> str:
    """Return the namespace whose objects an instance sees: with a ServiceAccount of its namespace that alone, else all (empty)."""
    instance = target.instance
    return watched.namespace or (instance.identity.namespace if instance and trigger_of(target).service_account else "")


def replace_name(template: Target, name: str) -> Target:
    """Return a template under an instance's name: where its record is."""
    return replace(template, name=name)
