"""The entries of one run are read as one."""

from __future__ import annotations

from dataclasses import replace

import pytest

from handler.state.record import Run
from handler.state.rules import seconds_of, stamp
from handler.state.whole_run import whole
from tests.unit.state.samples import NOON, sha

START = seconds_of(NOON)


def run(number: int, outcome: str = "applied", commit: str = "") -> Run:
    return Run(f"r{number}", "push", outcome, stamp(START + number), commit or sha())


def part(number: int, commit: str, *changed: str, outcome: str = "applied", **counts: int) -> Run:
    return replace(run(number, outcome, commit=commit), id="mine", changed=changed, counts=counts, duration=1.5)


def test_a_run_of_two_commits_is_found_whole_each_object_counted_once() -> None:
    older = part(1, sha("a"), "ConfigMap/shop/a create", "ConfigMap/shop/b update", created=1, configured=1, unchanged=3)
    newer = part(2, sha("b"), "ConfigMap/shop/a update", "ConfigMap/shop/c prune", configured=1, pruned=1, unchanged=3)
    found = whole((newer, run(9), older), "mine")
    assert found is not None
    assert (found.commit, found.outcome, found.started, found.duration) == (sha("b"), "applied", older.started, 3.0)
    assert found.counts == {"created": 1, "configured": 1, "pruned": 1, "unchanged": 2}
    assert found.changed == ("ConfigMap/shop/a create", "ConfigMap/shop/b update", "ConfigMap/shop/c prune")


@pytest.mark.parametrize(
    ("newest", "outcome", "counts"),
    [
        (part(2, sha("b"), outcome="unchanged", unchanged=4), "applied", {"created": 1, "unchanged": 3}),
        (part(2, sha("b"), outcome="failed"), "failed", {"created": 1}),
        (part(2, sha("b"), "Secret/shop/x to prune", outcome="held", **{"to prune": 1}), "held", {"created": 1, "to prune": 1}),
        (part(2, sha("b"), outcome="of some other version"), "of some other version", {"created": 1}),
    ],
)
def test_a_run_ends_as_its_newest_commit_did_with_what_the_others_wrote(newest: Run, outcome: str, counts: dict[str, int]) -> None:
    found = whole((newest, part(1, sha("a"), "ConfigMap/shop/a create", created=1)), "mine")
    assert found is not None
    assert (found.outcome, found.counts) == (outcome, counts)


def test_where_entries_do_not_name_all_that_was_written_their_counts_are_added_up() -> None:
    found = whole((part(2, sha("b"), "and 60 more", created=60), part(1, sha("a"), "ConfigMap/shop/a create", created=1)), "mine")
    assert found is not None
    assert found.counts == {"created": 61}


def test_a_run_of_one_entry_is_that_and_an_unknown_one_is_none() -> None:
    assert whole((run(1), run(2)), "r2") == run(2)
    assert whole((run(1),), "elsewhere") is None
