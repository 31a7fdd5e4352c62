"""A metric that keeps failing fails its step, on the real control plane with a real Prometheus. Samples are counted, never seconds."""

from __future__ import annotations

import re
import signal
from typing import Any

import pytest

from handler.config.settings import Rollback
from handler.model.event import Job
from handler.model.result import Outcome
from infra.prometheushost import Exporter, PrometheusHost
from tests.e2e.canary_target import NEW, OLD, Trial
from tests.e2e.conftest import Open
from tests.e2e.killed_runs import outlive
from tests.e2e.metric_checks import asks, measured, messages, named, says
from tests.e2e.one_target import told
from tests.patience import until

BAD = 0.5
QUARTER: dict[str, Any] = {"steps": [{"weight": 25, "for": "0s"}]}
ROW = r"failed \d+ samples in a row, and its failureLimit is 3: .*0\.5 at \S+, 0\.5 at \S+, 0\.5 at "


@pytest.fixture
def trial(open_shop: Open, prometheus: PrometheusHost) -> Trial:
    """A Deployment that goes by canary; a metric decides."""
    found = Trial.of(open_shop, rollback=Rollback(on_failure=True))
    measured(found.shop, prometheus)
    return found


def is_bad(trial: Trial, exporter: Exporter, prometheus: PrometheusHost) -> str:
    """Let the shop's metric be bad before anything asks for it; return its name."""
    metric = named(trial.shop)
    exporter.set(metric, BAD)
    prometheus.wait(metric, BAD)
    return metric


def assert_gone(trial: Trial) -> None:
    """The canary has left nothing, and its Deployment never had the new pods."""
    assert trial.canary is None
    assert trial.image(trial.stable) == OLD


def test_metric_samples_go_on_between_runs_of_a_function(trial: Trial, exporter: Exporter, prometheus: PrometheusHost) -> None:
    """As in functions: each run is another process that looks once, and remembers nothing."""
    metric = is_bad(trial, exporter, prometheus)
    trial.push(NEW, **QUARTER, success=[asks(metric, "< 0.01")])
    ends: list[Outcome] = []

    def failed() -> bool:
        measured(trial.shop, prometheus, patience=0.0)
        ends.append(trial.shop.run("tick" if ends else "push").outcome)
        return ends[-1] is not Outcome.WAITING

    until(failed, lambda: f"{ends}, {messages(trial.shop)}")
    assert ends[-1] is Outcome.ROLLED_BACK, ends
    assert any(re.search(ROW, run.message) for run in trial.shop.state().history), trial.shop.state().history
    assert_gone(trial)


def test_metric_samples_between_runs_count_for_the_failure_limit(trial: Trial, exporter: Exporter, prometheus: PrometheusHost) -> None:
    """A worker is killed while its canary is held; what was bad until the next one came is known to Prometheus."""
    shop, metric = trial.shop, named(trial.shop)
    trial.push(NEW, **QUARTER, success=[asks(metric, "< 0.01")])
    child = shop.child().begin(Job(shop.name, "push"))
    says(shop, "api", f"{metric} finds no series")
    child.signal(signal.SIGKILL)
    child.result()
    held = trial.mark()
    assert held.startswith("hold 0"), held
    exporter.set(metric, BAD)
    until(lambda: [sample["value"][1] >= "5" for sample in prometheus.ask(f"count_over_time({metric}[9s])")] == [True])
    outlive(shop)
    assert (trial.canary is None, trial.mark()) == (False, held)
    result = shop.run("tick")
    assert result.outcome is Outcome.ROLLED_BACK, told(result)
    assert re.search(ROW, shop.state().history[1].message), shop.state().history[1]
    assert_gone(trial)
