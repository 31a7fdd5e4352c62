"""What happens to the objects of triggers asks for runs: of an instance, and of a template where objects vanish.

    hear        a change of an object        -> which instance it is about         on the lister's threads, never waiting
    due         that instance's next run     -> coalesced, at most one a second    one thread, which asks the queue

Law: what servers and our own status write into an object asks for nothing. What is there when a process starts is the tick's.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import Counter
from collections.abc import Callable
from typing import Any

from handler.app.instance_statuses import InstanceStatuses
from handler.app.instances.followed_objects import FollowedObjects
from handler.app.instances.listed_objects import is_own
from handler.app.instances.registry import Instances, trigger_of
from handler.app.instances.template_run import Ask, TemplateRuns
from handler.cluster.lister import LiveChange
from handler.config.instance_target import InstanceTarget
from handler.config.settings import Target
from handler.config.trigger_settings import WatchedResource
from handler.model.backoff import Backoff
from handler.model.errors import AnnealError
from handler.model.event import RESOURCE, Job
from handler.model.instance import instance_name, key_of
from handler.triggers.relabelling import instance_key

_LOG = logging.getLogger("anneal.instances")
SETTLE = 1.0  # seconds in which what vanishes together is gathered
_TRIES = Backoff(2.0, 60.0)  # until a kind that isn't served is asked for again


class InstanceWatch:
    """Follows the objects of all templates of a process, from `start` to `stop`.

    `ask`: takes the jobs of instances and templates; `status`: writes how instances do into their objects.
    """

    ask: Ask
    status: InstanceStatuses

    def __init__(self, templates: TemplateRuns) -> None:
        self._runs, self._instances, ways = templates, templates.instances, templates.handler
        self._templates = {each.name: each for each in ways.settings.targets if each.is_template}
        self._objects = FollowedObjects(ways, self._changed)
        self._due = DueJobs()
        self._stop = threading.Event()
        self._spaces: dict[str, tuple[str, str]] = {}
        self._counts: Counter[tuple[str, str]] = Counter()
        self._lock = threading.Lock()
        self._instances.source = self._objects
        self._instances.heard.append(self._came)
        self._instances.left.append(self._went)

    def start(self) -> None:
        """Follow from now on."""
        self._runs.ask, self._runs.note = self.ask, self.status.look
        self._instances.left.append(self.status.forget)
        threading.Thread(target=self._run, name="instances", daemon=True).start()

    @property
    def instances(self) -> Instances:
        """The instances of this process."""
        return self._instances

    def tell(self, came: Callable[[Target], None], went: Callable[[str], None]) -> None:
        """Have others know which instances come and go."""
        self._instances.heard.append(came)
        self._instances.left.append(went)

    def stop(self) -> None:
        """End it; nothing is waited for."""
        self._stop.set()
        self._objects.close()

    # --- what happens
    def _changed(self, template: str, watched: WatchedResource, change: LiveChange) -> None:
        target = self._templates[template]
        if watched.name == trigger_of(target).main_resource:
            self._main_changed(target, change)
        elif not _is_own(change) and _told(change.before) != _told(change.after):
            self._listed_changed(target, watched, change)

    def _main_changed(self, template: Target, change: LiveChange) -> None:
        instances, started = self._instances, template.name in self._runs.started
        name = instance_name(template.name, change.identity.namespace, change.identity.name)
        before = instances.known(name)
        if change.after is None:
            instances.going(name)
            self._due.put(template.name, SETTLE)
            return
        try:
            now = instances.put(template, change.after)
        except AnnealError:  # what its kind is can't be asked; the template's look does so, and fails aloud if it can't either
            self._due.put(template.name, SETTLE)
            return
        moved = now is not None and (before is None or _shape(before) != _shape(now))
        if now is not None and moved and started and not now.instance.terminating:
            self._due.put(name)

    def _listed_changed(self, template: Target, watched: WatchedResource, change: LiveChange) -> None:
        key = instance_key(key_of(change.identity), watched.key_transformations)
        if key is None or template.name not in self._runs.started:
            return
        namespace, _, own = key.rpartition("/")
        name = instance_name(template.name, namespace, own)
        if self._instances.known(name) is not None:
            self._due.put(name)

    def _came(self, target: InstanceTarget) -> None:
        space = target.template, target.instance.identity.namespace
        with self._lock:
            self._spaces[target.name] = space
            self._counts[space] += 1

    def _went(self, name: str) -> None:
        self._due.forget(name)
        with self._lock:
            space = self._spaces.pop(name, None)
            if space is None:
                return
            self._counts[space] -= 1
            last = not self._counts[space]
            if last:
                del self._counts[space]
        if last:
            self._leave(*space)

    def _leave(self, name: str, namespace: str) -> None:
        """Follow no longer what only the last instance of a namespace saw, by the rights of its account there."""
        template = self._templates[name]
        account = trigger_of(template).service_account
        if account and namespace:
            self._objects.leave(name, namespace)
            self._instances.ways.forget_account(template.cluster, f"{namespace}/{account}")

    # --- what runs
    def _run(self) -> None:
        missing, tries, again = dict(self._templates), 0, 0.0
        while not self._stop.is_set():
            try:
                if missing and time.monotonic() >= again:
                    tries, again = tries + 1, time.monotonic() + _TRIES.after(tries + 1)
                    missing = self._follow(missing, first=tries == 1)
                for name in self._due.take(1.0):
                    self.ask(Job(name, RESOURCE, asked=time.monotonic()))
            except Exception:  # noqa: BLE001 - without this thread nothing that changes would run any more
                _LOG.exception("what has changed can't be run", extra={"fields": {"templates": len(self._templates)}})
                self._stop.wait(1.0)

    def _follow(self, missing: dict[str, Target], *, first: bool) -> dict[str, Target]:
        """Follow the main resources, and what is listed by a template's own rights; return the templates that can't be yet."""
        left: dict[str, Target] = {}
        for name, template in missing.items():
            trigger = trigger_of(template)
            kinds = (trigger.main, *(() if trigger.service_account else trigger.listed))
            try:
                for each in kinds:
                    self._objects.follow(template, each, "")
            except AnnealError as error:
                left[name] = template
                fields = {"target": name, "why": str(error), "code": error.code}
                _LOG.warning("a trigger's objects can't be followed yet", extra={"fields": fields})
            else:
                if not first:  # what there is at the start is the tick's
                    self._due.put(name)
        return left


def _shape(target: InstanceTarget) -> tuple[str, str, bool]:
    return target.instance.uid, target.instance.digest, target.instance.terminating


def _is_own(change: LiveChange) -> bool:
    live = change.after or change.before
    return live is not None and is_own(live)


def _told(live: dict[str, Any] | None) -> dict[str, Any] | None:
    """Return what of a listed object counts: all but the version, which moves with each write of anything."""
    if live is None:
        return None
    return {**live, "metadata": {key: value for key, value in live["metadata"].items() if key not in ("resourceVersion", "managedFields")}}


SPACING = 1.0  # seconds between two times that one of them is due


class DueJobs:
    """Which targets have a run due when, each once. Safe to share between threads. Times are monotonic seconds."""

    def __init__(self) -> None:
        self._due: dict[str, float] = {}
        self._asked: dict[str, float] = {}
        self._changed = threading.Condition()

    def put(self, name: str, after: float = 0.0) -> None:
        """Let a target run after so many seconds, and not sooner than a moment after its last one; what is due already stays so."""
        now = time.monotonic()
        with self._changed:
            self._due.setdefault(name, max(now + after, self._asked.get(name, now - SPACING) + SPACING))
            self._changed.notify_all()

    def forget(self, name: str) -> None:
        """Let a target have no run."""
        with self._changed:
            self._due.pop(name, None)
            self._asked.pop(name, None)

    def take(self, longest: float) -> list[str]:
        """Return what is due, waiting so many seconds for it at most."""
        end = time.monotonic() + longest
        with self._changed:
            while not (ready := self._ready()) and (left := end - time.monotonic()) > 0:
                soonest = min(self._due.values(), default=end) - time.monotonic()
                self._changed.wait(max(min(left, soonest), 0.001))
            now = time.monotonic()
            self._asked = {name: at for name, at in self._asked.items() if now - at < SPACING}
            for name in ready:
                del self._due[name]
                self._asked[name] = now
            return ready

    def _ready(self) -> list[str]:
        now = time.monotonic()
        return [name for name, at in self._due.items() if at <= now]
