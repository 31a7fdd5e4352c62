"""Answers questions about targets, each computed once however many ask at the same time."""

from __future__ import annotations

from dataclasses import dataclass, field

from handler.app.build import Handler
from handler.inspect.cluster_events import Events
from handler.inspect.commit_diff import CommitDiff
from handler.inspect.inventory_tree import InventoryTree
from handler.inspect.live_questions import LiveQuestions
from handler.inspect.pod_logs import PodLog
from handler.inspect.shared_looks import SharedLooks


@dataclass(frozen=True, slots=True)
class Inspector:
    """The questions, a method each. Safe to share between threads. `handler`: the way to clusters and git hosts."""

    handler: Handler
    looks: SharedLooks = field(default_factory=SharedLooks)

    def tree(self, name: str) -> InventoryTree:
        """Return what a target is made of, with how each object does: see `LiveQuestions`."""
        return LiveQuestions(self.handler, self.looks).tree(name)

    def events(self, name: str) -> Events:
        """Return the newest events about a target's objects and what they own: see `LiveQuestions`."""
        return LiveQuestions(self.handler, self.looks).events(name)

    def logs(self, name: str, subject: str) -> PodLog:
        """Return the end of a pod's log, of an object of a target's tree: see `LiveQuestions`."""
        return LiveQuestions(self.handler, self.looks).logs(name, subject)

    def diff(self, name: str, before: str, after: str) -> CommitDiff:
        """Return what changed between two commits of a target's record: see `LiveQuestions`."""
        return LiveQuestions(self.handler, self.looks).diff(name, before, after)
