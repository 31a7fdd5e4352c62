"""What one look at a step's object may cost, however many comparisons its checks make."""

from __future__ import annotations

from typing import Any

import pytest

from handler.model.rollout import Check
from handler.rollout.checks import CHECKS
from tests.unit.engine.rollout_runner.test_check_runner import PENDING, Waiting, failure_of, one


def compares(name: str, path: str, count: int = 100) -> Check:
    options = CHECKS["fieldComparisons"].read([{"path": path, "value": {"static": 1}}] * count, name)
    return Check("fieldComparisons", name, options)


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("{.status.items[?(@.absent)]}", {"items": [{}] * 1_000}),
        ("{.status.items[?(@.x==2)]}", {"items": [{"x": 1}] * 500}),
        ("{.status.items[0:5000]}", {"items": [0] * 1_000}),
        ("{.status..absent}", {"items": [0] * 1_000}),
        ("{.status}", {"items": [0] * 1_000}),
        ("{.status}", {"text": "x" * 100_000}),
    ],
    ids=["passed over", "filtered", "found", "below", "large", "long"],
)
@pytest.mark.parametrize("failing", [False, True], ids=["success", "failure"])
def test_all_comparisons_of_a_step_share_what_one_look_at_its_object_may_cost(path: str, status: Any, *, failing: bool) -> None:
    """Alone each is cheap; fifty checks of a hundred would take minutes each time that the object changes."""
    waits = Waiting({"metadata": {"name": "web"}, "status": status})
    waits.rows = {**waits.rows, "fieldComparisons": CHECKS["fieldComparisons"]}  # type: ignore[dict-item]  # rows of another type
    waits.run.deps.preparer.checks = waits.rows
    checks = [compares("few", "{.status.ready}"), *(compares(f"many {number}", path) for number in range(3))]
    said = failure_of(waits, one("fine", PENDING), failure=checks) if failing else failure_of(waits, *checks)
    assert said.startswith("a.yaml:1: Thing/shop/web: many 0: the step's checks look at more than 200,000 values of its object at once")


def test_each_look_at_the_object_has_the_same_effort_anew() -> None:
    live = {"metadata": {"name": "web"}, "status": {"items": [{"x": 1}] * 500}}
    waits = Waiting(*[live] * 20, 3601)
    waits.run.deps.preparer.checks = CHECKS
    assert "not so after 1h" in failure_of(waits, compares("some", "{.status.items[?(@.x==2)]}", 50))
