"""The coverage step itself: what it lets pass and what it names."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

import pytest

SCRIPT = Path(__file__).resolve().parents[2] / "scripts" / "_coverage.py"
failures = runpy.run_path(str(SCRIPT))["failures"]


def report(covered: int, **files: dict[str, Any]) -> dict[str, Any]:
    return {
        "totals": {"covered_lines": covered, "num_statements": 100},
        "files": {name.replace("__", "/") + ".py": {"missing_lines": [], "missing_branches": []} | data for name, data in files.items()},
    }


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (report(90), []),
        (report(89), ["coverage: 89.0 % of lines, at least 90 % are promised"]),
        (report(95, handler__cluster__api={"missing_lines": [3], "missing_branches": [[1, 2]]}), []),
        (report(95, handler__plan__order={"missing_lines": [3]}), ["handler/plan/order.py:3: no test runs this line"]),
        (report(95, handler__plan__order={"missing_branches": [[4, 9]]}), ["handler/plan/order.py:4: no test goes from here to line 9"]),
        (
            report(95, handler__triggers__github={"missing_branches": [[4, -1]]}),
            ["handler/triggers/github.py:4: no test goes from here to the end"],
        ),
    ],
)
def test_what_falls_short_is_named(given: dict[str, Any], said: list[str]) -> None:
    assert failures(given) == said
