"""The table of checks: what an entry of a step's `success` or `failure` may say. Another one is a file here, a row, and a sample."""

from __future__ import annotations

from collections.abc import Mapping

from handler.rollout.checks.fields import FieldComparisons
from handler.rollout.checks.healthy import Healthy
from handler.rollout.checks.job import JobComplete
from handler.rollout.checks.memory import JobOOMKilled
from handler.rollout.checks.prometheus import PrometheusCheck
from handler.rollout.interfaces import CheckType

CHECKS: Mapping[str, CheckType] = {
    "fieldComparisons": FieldComparisons(),
    "healthy": Healthy(),
    "jobComplete": JobComplete(),
    "prometheus": PrometheusCheck(),
    "JobOOMKilled": JobOOMKilled(),
}
