"""What the history says of a run beside its outcome: whether its commit is bad, or was gone back to, and what was deployed before. Pure.

Law: of a rollback by itself the entry `rolled-back` has the commit that was gone back to; the one gone back from failed before that.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from handler.model.result import FAILURES, Outcome

Run = Mapping[str, Any]


def run_marks(runs: Sequence[Run]) -> dict[str, str]:
    """Return the mark of each run that has one, by the run's id. `runs`: the newest first."""
    marks = dict[str, str]()
    for place, run in enumerate(runs):
        if run["outcome"] == Outcome.ROLLED_BACK:
            marks[run["id"]] = "gone back to"
            failed = (each for each in runs[place + 1 :] if each["outcome"] in FAILURES and each["commit"] != run["commit"])
            marks |= {each["id"]: "bad commit, gone back from" for each in [*failed][:1] if each["id"] not in marks}
    return marks


def commit_before(runs: Sequence[Run], run: Run) -> str:
    """Return the commit that was deployed before a run's; empty: the history doesn't say."""
    older = runs[runs.index(run) + 1 :]
    return next((each["commit"] for each in older if each["digest"] and each["commit"] != run["commit"]), "")
