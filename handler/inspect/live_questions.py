"""The questions that a look at a target's cluster answers, or two renders: inventory, events, logs, and what changed between commits."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from functools import partial

from handler.app.build import Handler
from handler.cluster.api import Api
from handler.config.settings import Target
from handler.inspect import cluster_events, commit_diff, inventory_look, pod_logs
from handler.inspect.cluster_events import Events
from handler.inspect.commit_diff import CommitDiff
from handler.inspect.inventory_tree import Inventory, InventoryTree
from handler.inspect.pod_logs import PodLog
from handler.inspect.shared_looks import SharedLooks
from handler.model.advice import advice
from handler.model.errors import StateInvalid
from handler.state.record import State

PATIENCE, DIFF_PATIENCE = 18.0, 38.0
"""Seconds that a look may take, and two renders: a little less than the web process waits."""
FRESH, DIFF_FRESH = 5.0, 600.0
"""Seconds for which an answer serves others: of a cluster, and of two commits."""


@dataclass(frozen=True, slots=True)
class LiveQuestions:
    """A method each. `handler`: the way to clusters and git hosts; `looks`: shared by all viewers."""

    handler: Handler
    looks: SharedLooks = field(default_factory=SharedLooks)

    def tree(self, name: str) -> InventoryTree:
        """Return what a target is made of, with how each object does. Raises AnnealError: its record or cluster can't be read."""
        return self._inventory(name).tree()

    def events(self, name: str) -> Events:
        """Return the newest events about a target's objects and what they own. Raises AnnealError: see `tree`."""
        end, inventory = time.monotonic() + PATIENCE, self._inventory(name)
        look = partial(cluster_events.events_of, self._api(name), inventory)
        return self.looks.ask(("events", name), look, seconds=max(end - time.monotonic(), 1.0), fresh=FRESH)

    def logs(self, name: str, subject: str, container: str = "", *, previous: bool = False) -> PodLog:
        """Return the end of a pod's log: of an object of a target's tree that is one or has some below it; never kept.

        `container`, `previous`: see `pod_logs.read_named`.

        Raises RequestRefused: it isn't the target's, or has no such log; AnnealError: see `tree`.
        """
        end, inventory = time.monotonic() + PATIENCE, self._inventory(name)
        top = pod_logs.asked(inventory, subject)
        look = partial(pod_logs.read_named, self._api(name), inventory, top, container, previous=previous)
        return self.looks.ask(("logs", name, top.identity, container, previous), look, seconds=max(end - time.monotonic(), 1.0))

    def diff(self, name: str, before: str, after: str) -> CommitDiff:
        """Return what changed between two commits of a target's record; `before` empty: all of `after`.

        Raises RequestRefused: the record doesn't name one of them; AnnealError: it can't be read.
        """
        target = self.handler.target(name)
        commit_diff.asked(self._state(target), before, after)
        key = ("diff", name, self.handler.digest(target), before, after)
        compare = partial(commit_diff.commit_diff, self.handler, target, before, after)
        found = self.looks.ask(key, compare, seconds=DIFF_PATIENCE, fresh=DIFF_FRESH)
        if found.problems:
            self.looks.forget(key)  # a host that doesn't answer now may in a moment
        return found

    def _api(self, name: str) -> Api:
        return self.handler.brief_api(self.handler.target(name), impersonated=True)

    def _inventory(self, name: str) -> Inventory:
        target = self.handler.target(name)
        look = partial(self._looked, target)
        return self.looks.ask(("inventory", name), look, seconds=PATIENCE, fresh=FRESH)

    def _looked(self, target: Target) -> Inventory:
        return inventory_look.look(self.handler, target, self._state(target))

    def _state(self, target: Target) -> State:
        state = self.handler.brief_store(target).read().state
        if state is None:
            raise StateInvalid.of(f"target {target.name}", "has no record here: it never ran", fix=advice("anneal apply {}", target.name))
        return state
