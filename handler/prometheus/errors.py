"""What asking for metrics can fail with, beside what is in the model."""

from __future__ import annotations

from handler.model.errors import TransientError


class MetricsUnavailable(TransientError):
    """A Prometheus doesn't answer a check, answers nonsense, or not to us; the check asks again until its time is over."""

    code = "metrics-unavailable"
