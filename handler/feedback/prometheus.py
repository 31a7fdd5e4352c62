"""What Prometheus scrapes. Each process counts for itself; the web process shows both parts.

prometheus_client takes a tenth of a second to load, so that happens when a process begins to count, not when a module is imported.
Counters begin at nothing with each life of their process, as `rate()` expects; the gauges of a target come from its record.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

from handler.model.errors import (
    AccessDenied,
    AnnealError,
    ClusterUnavailable,
    ConfigInvalid,
    GitUnavailable,
    KubeconfigInvalid,
    SecretUnavailable,
    ServerPinned,
)
from handler.model.event import Job
from handler.model.health import HealthState
from handler.model.instance import is_instance, template_of
from handler.model.plan import DONE
from handler.model.result import FAILURES, IN_SYNC, INTERNAL, Outcome, Result
from handler.model.run_event import DeliveryDecided, HealthChanged, HealthFound, PlanHeld, RunEnded, RunPhase

_DOOR_BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
_RUN_BUCKETS = (0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 600.0)
GAUGES = {
    "failures": ("anneal_target_failures", "Runs that failed in a row."),
    "next_try": ("anneal_target_next_try_timestamp_seconds", "When a failed run is tried again by itself, 0: not."),
    "succeeded": ("anneal_target_last_success_timestamp_seconds", "When a run last found or made the target equal to git, 0: never."),
    "refused": ("anneal_target_refused", "1 while a commit is refused, and waits until what that follows from changes."),
    "held": ("anneal_target_held", "1 while deletions wait for approval."),
    "suspended": ("anneal_target_suspended", "1 while a person has paused the target."),
    "pinned": ("anneal_target_pinned", "1 while the target stays at a commit that isn't the head."),
    "rolled_back": ("anneal_target_rolled_back", "1 while the target stays at the commit before one whose rollout failed."),
    "waiting": ("anneal_target_waiting_since_timestamp_seconds", "Since when an open run waits until what it applied is healthy, 0: none."),
    "orphans": ("anneal_target_orphans", "Live objects of the target that git doesn't declare and that were kept."),
    "drifted": ("anneal_target_drifted_objects", "Objects that differ from git and were only reported (drift: report)."),
}
_BEFORE_ANY = frozenset(error.code for error in (KubeconfigInvalid, SecretUnavailable, AccessDenied, ServerPinned, ConfigInvalid))
"""Codes of failures that say nothing of whether a host or a cluster answers."""
_BAD = (HealthState.HEALTHY, HealthState.PROGRESSING, HealthState.UNKNOWN, HealthState.DEGRADED)  # the worst last
_OTHER = "other"  # the label of a code that no error of ours, or of an added part, has


@dataclass(frozen=True, slots=True)
class TargetLabels:
    """Where a target's commits come from and where they go, as labels: `host`, `cluster`."""

    host: str
    cluster: str


def _settled() -> None:
    """Wait for nothing: the caller counts by itself."""


class _Exposed:
    """A registry of one process. `settle`: waits, for a moment at most, until what was announced is counted."""

    def __init__(self, process: str, version: str, settle: Callable[[], object]) -> None:
        import prometheus_client as prometheus  # noqa: PLC0415 - see above

        prometheus.disable_created_metrics()  # type: ignore[no-untyped-call]  # it has no annotations
        self._prometheus = prometheus
        self._settle = settle
        self._registry = prometheus.CollectorRegistry()
        started = self._gauge(f"anneal_{process}_start_time_seconds", f"When the {process} process began.")
        started.set(time.time())
        if version:
            self._gauge("anneal_build_info", "1; its version is a label.", "version").labels(version).set(1)

    def text(self) -> str:
        """Return what is exposed, in Prometheus' text format."""
        self._settle()
        found: bytes = self._prometheus.generate_latest(self._registry)
        return found.decode()

    def _counter(self, name: str, about: str, *labels: str) -> Any:
        return self._prometheus.Counter(name, about, labels, registry=self._registry)

    def _gauge(self, name: str, about: str, *labels: str) -> Any:
        return self._prometheus.Gauge(name, about, labels, registry=self._registry)

    def _histogram(self, name: str, about: str, label: str, buckets: tuple[float, ...]) -> Any:
        return self._prometheus.Histogram(name, about, (label,), registry=self._registry, buckets=buckets)

    def _watched(self, name: str, about: str, value: Callable[[], float]) -> None:
        self._gauge(name, about).set_function(value)

    def _summed(self, name: str, about: str, value: Callable[[], float]) -> None:
        self._registry.register(_Sum(self._prometheus, name, about, value))


@dataclass(frozen=True, slots=True)
class _Sum:
    prometheus: Any
    name: str
    about: str
    value: Callable[[], float]

    def collect(self) -> Iterator[Any]:
        """Yield it, as `CollectorRegistry` asks."""
        yield self.prometheus.metrics_core.CounterMetricFamily(self.name, self.about, value=self.value())


class DoorCounts(Protocol):
    """What counts the requests of a web process."""

    def request(self, route: str, status: int, seconds: float) -> None:
        """Count a request."""

    def token_failure(self, route: str) -> None:
        """Count a missing or wrong token."""


class DoorMetrics(_Exposed):
    """What the web process counts: requests as they are answered, deliveries as they are announced."""

    hears: ClassVar[tuple[type, ...]] = (DeliveryDecided,)

    def __init__(
        self, version: str, waiting: Callable[[], float], kept: Callable[[], float], settle: Callable[[], object] = _settled
    ) -> None:
        super().__init__("web", version, settle)
        self._deliveries = self._counter("anneal_deliveries", "Deliveries; code: why one was refused.", "provider", "outcome", "code")
        self._seconds = self._histogram("anneal_request_duration_seconds", "Requests, by route.", "route", _DOOR_BUCKETS)
        self._answers = self._counter("anneal_requests", "Requests, by route and status.", "route", "status")
        self._tokens = self._counter("anneal_token_failures", "Requests with a missing or wrong bearer token.", "route")
        self._up = self._gauge("anneal_worker_up", "1 if the worker process answered this scrape.")
        self._watched("anneal_outbox_waiting", "Targets with a job that the worker hasn't acknowledged.", waiting)
        self._watched("anneal_outbox_kept", "Named requests (replay) whose run has no known end.", kept)

    def hear(self, event: DeliveryDecided) -> None:
        """Count a delivery: matched, ignored or refused."""
        self._deliveries.labels(event.provider, event.counted, event.code).inc()

    def request(self, route: str, status: int, seconds: float) -> None:
        """Count a request. `route`: a rule of ours, never a path as sent."""
        self._seconds.labels(route).observe(seconds)
        self._answers.labels(route, str(status)).inc()

    def token_failure(self, route: str) -> None:
        """Count a missing or wrong token."""
        self._tokens.labels(route).inc()

    def merged(self, worker: str | None) -> str:
        """Return both processes' parts; None: the worker didn't answer."""
        self._up.set(0 if worker is None else 1)
        return self.text() + (worker or "")


class RunMetrics(_Exposed):
    """Metrics of the worker process; a target's gauges appear with its first run. `places`: of targets; `interval`: between two ticks.

    Instances count as runs of their template, which alone has gauges: how many series there are doesn't follow from what users create.
    """

    hears: ClassVar[tuple[type, ...]] = (RunEnded, RunPhase, HealthChanged, HealthFound, PlanHeld)

    def __init__(
        self,
        waiting: Callable[[], float],
        running: Callable[[], float],
        requests: Callable[[], float],
        resting: Callable[[], float] = lambda: 0.0,
        *,
        places: Mapping[str, TargetLabels] | None = None,
        interval: float = 0.0,
        settle: Callable[[], object] = _settled,
    ) -> None:
        super().__init__("worker", "", settle)
        self._places = places or {}
        self._runs = self._counter("anneal_runs", "Runs that ended; code: of what failed.", "target", "trigger", "outcome", "code")
        self._seconds = self._histogram("anneal_run_duration_seconds", "Runs, from their start to their record.", "target", _RUN_BUCKETS)
        self._changes = self._counter("anneal_changes", "Objects written or pruned, by what was done.", "target", "action")
        self._gauges = {field: self._gauge(name, about, "target") for field, (name, about) in GAUGES.items()}
        self._health = self._gauge("anneal_target_health", "1: so do the objects of the target; 0: they don't.", "target", "health")
        about = "When this server last renewed its heartbeat on a cluster, 0: not yet."
        self._beats = self._gauge("anneal_heartbeat_timestamp_seconds", about, "cluster")
        self._failed: dict[str, int] = {}
        self._watched("anneal_queue_waiting", "Targets that wait for a run.", waiting)
        self._watched("anneal_queue_running", "Targets that are worked on.", running)
        self._watched("anneal_queue_resting", "Those of them whose run only waits for something to become healthy.", resting)
        self._summed("anneal_cluster_requests", "Requests to API servers since the worker began.", requests)
        self._gauge("anneal_interval_seconds", "How often the heads of all targets are looked at.").set(interval)
        about = self._gauge("anneal_target_info", "1; where a target's commits come from and go to.", "target", "host", "cluster")
        for target, place in self._places.items():
            about.labels(target, place.host, place.cluster).set(1)
        self._host_up = self._gauge("anneal_git_host_up", "1 if a git host answered when it was asked last.", "host")
        self._cluster_up = self._gauge("anneal_cluster_up", "1 if a cluster answered when it was asked last.", "cluster")
        self._dead_letters = self._gauge("anneal_dead_letters", "Messages of the shared queue that came to no end.", "queue")

    def hear(self, event: RunEnded | RunPhase | HealthChanged | HealthFound | PlanHeld) -> None:
        """Count a run, or show what has changed of a target."""
        match event:
            case RunEnded(result=result) if result.outcome is not Outcome.LAGGING:  # that is no end
                self.run(event.job, result, event.seconds)
            case RunPhase() if not is_instance(event.target):
                self._gauges["waiting"].labels(event.target).set(event.since)
            case HealthChanged() if not is_instance(event.target):
                self.health(event.target, HealthState(event.after))
            case HealthFound():
                for target, state in by_template(event.targets).items():
                    self.health(target, state)
            case PlanHeld() if not is_instance(event.target):
                self._gauges["held"].labels(event.target).set(1)

    def run(self, job: Job, result: Result, seconds: float) -> None:
        """Count the end of a run, and show how its target stands."""
        target = template_of(result.target)
        self._ended(job, result)
        self._seconds.labels(target).observe(seconds)
        for change in result.written:
            self._changes.labels(target, DONE[change.action]).inc()
        if is_instance(result.target):
            return
        if not job.dry_run and result.outcome in IN_SYNC | FAILURES and not (result.standing and result.standing.refused):
            self._failed[target] = self._failed.get(target, 0) + 1 if result.outcome in FAILURES else 0
        self._show(result)

    def quiet(self, job: Job, result: Result) -> None:
        """Count a tick that needed no run, and show how its target stands; it took no time of its own."""
        self._ended(job, result)
        if is_instance(result.target):
            return
        self._failed[result.target] = 0
        self._show(result)

    def dead_letters(self, queue: str, count: int) -> None:
        """Show how many dead letters a queue has."""
        self._dead_letters.labels(queue).set(count)

    def health(self, target: str, state: HealthState) -> None:
        """Show how the objects of a target do."""
        for each in HealthState:
            self._health.labels(target, str(each)).set(each is state)

    def _ended(self, job: Job, result: Result) -> None:
        name = template_of(result.target)
        self._runs.labels(name, job.cause, str(result.outcome), _bounded(result.code)).inc()
        place = self._places.get(name)
        if place is None or result.code in _BEFORE_ANY:
            return
        self._cluster_up.labels(place.cluster).set(result.code != ClusterUnavailable.code)  # a run asks it first
        if result.code != ClusterUnavailable.code:
            self._host_up.labels(place.host).set(result.code != GitUnavailable.code)

    def heartbeat(self, cluster: str, renewed: float) -> None:
        """Show when the heartbeat of a cluster was renewed, in seconds since the epoch."""
        self._beats.labels(cluster).set(renewed)

    def _show(self, result: Result) -> None:
        """Show the record's word; where none could be read, what this process knows of failures."""
        target, standing = result.target, result.standing
        if standing is not None:
            for field, gauge in self._gauges.items():
                gauge.labels(target).set(float(getattr(standing, field)))
            if standing.health:
                self.health(target, HealthState(standing.health))
        stays = standing is not None and (standing.refused or result.outcome not in IN_SYNC)
        failures = max(self._failed.get(target, 0), standing.failures if standing and stays else 0)
        self._gauges["failures"].labels(target).set(failures)
        if result.outcome is not Outcome.REFUSED:  # the target stands as its record says
            self._gauges["next_try"].labels(target).set(result.next_try if result.outcome in FAILURES else 0.0)


def by_template(found: Mapping[str, HealthState]) -> dict[str, HealthState]:
    """Return the health of targets, of instances the worst of each template's."""
    worst: dict[str, HealthState] = {}
    for target, state in found.items():
        name = template_of(target)
        worst[name] = max(worst.get(name, state), state, key=_BAD.index)
    return worst


def _bounded(code: str) -> str:
    """Return a code as a label: one of our errors', or of an added part's that is loaded."""
    return code if code in ("", INTERNAL, *_codes(AnnealError)) else _OTHER


def _codes(error: type[AnnealError]) -> Iterator[str]:
    yield error.code
    for each in error.__subclasses__():
        yield from _codes(each)
