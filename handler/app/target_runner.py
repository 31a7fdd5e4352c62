"""What runs the targets of one configuration, as the parts of it see it that `handler.app.build` puts together."""

from __future__ import annotations

import threading
from abc import abstractmethod

from handler.app.connections import Connections
from handler.cluster.discovery import Discovery
from handler.config.settings import Target
from handler.engine.planner.desired import CommitSource, Preparer
from handler.engine.run.dependencies import Dependencies
from handler.model.event import Job
from handler.model.queue_view import ALONE, QueueView
from handler.model.result import Result


class TargetRunner(Connections):
    """Runs jobs, by the ways to clusters and git hosts. Safe to share between threads."""

    @abstractmethod
    def run(self, job: Job, stop: threading.Event | None = None, queue_view: QueueView = ALONE) -> Result:
        """Run one job; whatever goes wrong with its target is its Result."""

    @abstractmethod
    def target(self, name: str) -> Target:
        """Return a target by name. Raises ConfigInvalid, which names those that there are."""

    @abstractmethod
    def digest(self, target: Target) -> str:
        """Return the digest of a target's settings."""

    @abstractmethod
    def preparer(self, target: Target, discovery: Discovery) -> Preparer:
        """Return what prepares a target's commits by what a cluster serves."""

    @abstractmethod
    def preview_preparer(self, target: Target, source: CommitSource, number: int) -> Preparer:
        """Return what prepares another tree than a run's, with placeholders of a set for all values that aren't in git."""

    @abstractmethod
    def dependencies(self, name: str) -> Dependencies:
        """Return what a target's runs are made of."""

    @property
    @abstractmethod
    def slack(self) -> float:
        """By how many seconds a look at a git host may be older than the tick it serves."""
