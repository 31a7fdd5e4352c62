"""Locutus' metrics under its own names, beside Anneal's: for dashboards and alerts that know it.

    rollout_executions_total              counter    rollouts that were executed
    rollout_executions_failed_total       counter    those of them that failed
    rollout_execution_duration_seconds    summary    how long they took; without quantiles, as upstream's

They have no labels, as upstream's haven't. Also upstream's are the `process_*` of the process that runs them.
"""

from __future__ import annotations

from typing import Any

from handler.feedback.prometheus import RunMetrics
from handler.model.event import Job
from handler.model.result import FAILURES, Outcome, Result

_UNCOUNTED = frozenset({Outcome.BUSY, Outcome.SUSPENDED, Outcome.LAGGING, Outcome.REFUSED, Outcome.WAITING})
"""Ends of what never began (another holds the Lease, a pause), or goes on in another run."""


class LocutusMetrics(RunMetrics):
    """Counts by both tools' names."""

    def __init__(self, *args: Any, **named: Any) -> None:
        super().__init__(*args, **named)
        prometheus, registry = self._prometheus, self._registry
        prometheus.ProcessCollector(registry=registry)
        self._executions = self._counter("rollout_executions", "Total number of times rollouts have been executed.")
        self._failures = self._counter("rollout_executions_failed", "Total number of times rollouts failed.")
        self._durations = prometheus.Summary("rollout_execution_duration_seconds", "Time executions are taking.", registry=registry)

    def run(self, job: Job, result: Result, seconds: float) -> None:
        """Count the end of a run; one that never began, or isn't over, is none of Locutus' executions."""
        super().run(job, result, seconds)
        if result.outcome in _UNCOUNTED:
            return
        self._executions.inc()
        self._durations.observe(seconds)
        if result.outcome in FAILURES:
            self._failures.inc()
