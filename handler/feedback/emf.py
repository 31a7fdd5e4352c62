"""What CloudWatch reads, where nothing can be scraped: a JSON line on standard output for each run and each delivery.

Amazon's Embedded Metric Format: CloudWatch makes metrics of what `_aws` names; the rest can be searched for in the log.
https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/CloudWatch_Embedded_Metric_Format_Specification.html. The names are
Prometheus'; what it derives from labels and times (failures, the age of the last success) has a name of its own here.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Mapping
from typing import ClassVar

from handler.feedback.prometheus import GAUGES
from handler.model.event import Job
from handler.model.health import HealthState
from handler.model.result import FAILURES, Outcome, Result, TargetStanding
from handler.model.run_event import DeliveryDecided, RunEnded

NAMESPACE = "Anneal"
_UNITS = dict.fromkeys(
    ("anneal_run_duration_seconds", "anneal_target_last_success_age_seconds", "anneal_target_waiting_seconds"), "Seconds"
)
_TIMES = ("next_try", "succeeded", "waiting")  # gauges that are points in time: CloudWatch can't subtract them from the present one


def _print(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


class EmfLines:
    """Writes what happened, a line each. `write` takes a line, `clock` returns seconds since the epoch."""

    hears: ClassVar[tuple[type, ...]] = (DeliveryDecided, RunEnded)

    def __init__(self, write: Callable[[str], None] = _print, clock: Callable[[], float] = time.time) -> None:
        self._write = write
        self._clock = clock

    def hear(self, event: DeliveryDecided | RunEnded) -> None:
        """Write the line of a delivery (matched, ignored or refused), or of a run's end."""
        match event:
            case DeliveryDecided():
                labels = {"provider": event.provider, "outcome": event.counted}
                self._line(labels, {"anneal_deliveries": 1}, {"code": event.code})
            case RunEnded(result=result) if result.outcome is not Outcome.LAGGING:  # that is no end
                self.run(event.job, result, event.seconds)

    def run(self, job: Job, result: Result, seconds: float) -> None:
        """Write the line of a run's end, with how its target stands."""
        bad = result.outcome in FAILURES and not job.dry_run
        counted: dict[str, float] = {"anneal_runs": 1, "anneal_run_failures": int(bad), "anneal_run_duration_seconds": round(seconds, 3)}
        counted["anneal_changes"] = len(result.written)
        facts = {"trigger": job.cause, "outcome": str(result.outcome), "run": result.run, "commit": result.commit, "code": result.code}
        self._line({"target": result.target}, counted | self._standing(result.standing), facts)

    def _standing(self, standing: TargetStanding | None) -> dict[str, float]:
        if standing is None:
            return {}
        found = {name: float(getattr(standing, field)) for field, (name, _) in GAUGES.items() if field not in _TIMES}
        found["anneal_target_degraded"] = float(standing.health == HealthState.DEGRADED)
        ages = {"anneal_target_last_success_age_seconds": standing.succeeded, "anneal_target_waiting_seconds": standing.waiting}
        return found | {name: round(max(self._clock() - since, 0.0)) for name, since in ages.items() if since}

    # --- requests
    def request(self, route: str, status: int, seconds: float) -> None:
        """Write nothing: the service in front counts requests itself."""

    def token_failure(self, route: str) -> None:
        """Write the line of a missing or wrong token."""
        self._line({"route": route}, {"anneal_token_failures": 1}, {})

    def _line(self, dimensions: Mapping[str, str], counted: Mapping[str, float], facts: Mapping[str, str]) -> None:
        metrics = [{"Name": name, "Unit": _UNITS.get(name, "Count")} for name in counted]
        about = {"Namespace": NAMESPACE, "Dimensions": [list(dimensions)], "Metrics": metrics}
        header = {"_aws": {"Timestamp": int(self._clock() * 1000), "CloudWatchMetrics": [about]}}
        self._write(json.dumps({**header, **dimensions, **{key: value for key, value in facts.items() if value}, **counted}))
