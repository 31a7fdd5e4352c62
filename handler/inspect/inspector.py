"""Answers questions about targets, each computed once however many ask at the same time, and kept for a moment.

plan_questions    gap, orphans                     by a plan of its own
live_questions    tree, events, logs, diff         by looks at a cluster, or two renders
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from handler.app.build import Handler
from handler.inspect.cluster_events import Events
from handler.inspect.commit_diff import CommitDiff
from handler.inspect.gap import Gap
from handler.inspect.inventory_tree import InventoryTree
from handler.inspect.live_questions import LiveQuestions
from handler.inspect.look import Ask
from handler.inspect.orphans import Orphans
from handler.inspect.plan_questions import Json, PlanQuestions, cut, facts
from handler.inspect.pod_logs import PodLog


@dataclass(slots=True)
class Inspector:
    """The questions, a method each. Safe to share between threads. `handler`: the way to clusters and git hosts."""

    handler: Handler
    plans: PlanQuestions = field(init=False)
    live: LiveQuestions = field(init=False)

    def __post_init__(self) -> None:
        self.plans, self.live = PlanQuestions(self.handler), LiveQuestions(self.handler)

    def gap(self, ask: Ask, *, anew: bool = False) -> Gap:
        """Return the gap of a target: see `PlanQuestions`."""
        return self.plans.gap(ask, anew=anew)

    def gap_facts(self, about: Mapping[str, Any]) -> Json:
        """Return the gap that another process asks for, as JSON, cut. `about`: what `Ask` takes, and `anew`. Raises as `gap`."""
        name, commit, of = (str(about.get(key) or "") for key in ("name", "commit", "object"))
        rollback, unpin, force, anew = (about.get(key) is True for key in ("rollback", "unpin", "force", "anew"))
        return cut(facts(self.gap(Ask(name, commit, rollback=rollback, unpin=unpin, object=of, force=force), anew=anew)))

    def orphans(self, name: str) -> Orphans:
        """Return what the next run deletes of a target, and what it keeps: see `PlanQuestions`."""
        return self.plans.orphans(name)

    def orphans_facts(self, about: Mapping[str, Any]) -> Json:
        """Return the orphans that another process asks for, as JSON and cut. `about`: name. Raises as `orphans`."""
        return cut(facts(self.orphans(str(about["name"]))))

    def tree(self, name: str) -> InventoryTree:
        """Return what a target is made of, with how each object does: see `LiveQuestions`."""
        return self.live.tree(name)

    def events(self, name: str) -> Events:
        """Return the newest events about a target's objects and what they own: see `LiveQuestions`."""
        return self.live.events(name)

    def logs(self, name: str, subject: str, container: str = "", *, previous: bool = False) -> PodLog:
        """Return the end of a pod's log, of an object of a target's tree: see `LiveQuestions`."""
        return self.live.logs(name, subject, container, previous=previous)

    def diff(self, name: str, before: str, after: str) -> CommitDiff:
        """Return what changed between two commits of a target's record: see `LiveQuestions`."""
        return self.live.diff(name, before, after)
