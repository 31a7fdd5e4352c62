"""Which commit was bad, and which one was gone back to."""

from __future__ import annotations

from typing import Any

from handler.web.page.target_pages import commit_before, run_marks


def run(name: str, outcome: str, commit: str, digest: str = "d") -> dict[str, Any]:
    return {"id": name, "outcome": outcome, "commit": commit, "digest": digest}


def test_the_bad_commit_is_the_one_that_failed_and_the_other_was_gone_back_to() -> None:
    runs = [
        run("r5", "unchanged", "old"),
        run("r4", "rolled-back", "old"),
        run("r4-1", "failed", "old", ""),  # the way back needed two tries
        run("r3", "failed", "new", ""),
        run("r2", "failed", "other", ""),
        run("r1", "applied", "old"),
    ]
    assert run_marks(runs) == {"r4": "gone back to", "r3": "bad commit, gone back from"}
    assert run_marks(runs[:2]) == {"r4": "gone back to"}, "the history has forgotten what failed"
    assert run_marks([run("r", "failed", "new")]) == {}


def test_each_rollback_has_a_bad_commit_of_its_own() -> None:
    runs = [run("r4", "rolled-back", "a"), run("r3", "failed", "c"), run("r2", "rolled-back", "a"), run("r1", "failed", "b")]
    assert run_marks(runs) == {
        "r4": "gone back to",
        "r3": "bad commit, gone back from",
        "r2": "gone back to",
        "r1": "bad commit, gone back from",
    }


def test_the_commit_before_is_the_last_other_one_that_was_deployed() -> None:
    runs = [run("r4", "unchanged", "c"), run("r3", "applied", "c"), run("r2", "failed", "b", ""), run("r1", "applied", "a")]
    assert [commit_before(runs, each) for each in runs] == ["a", "a", "a", ""]
