"""What is asked for while a run waits or works is coalesced, and nothing of it is lost."""

from __future__ import annotations

import pytest

from handler.model.event import Delivery, Job


def delivery(number: int) -> Delivery:
    return Delivery(str(number), "github", "refs/heads/main", "a" * 40, "ada", "2026-03-01T12:00:00Z")


@pytest.mark.parametrize(
    ("older", "newer", "merged"),
    [
        (Job("shop", "push", hint="a"), Job("shop", "tick"), Job("shop", "push", hint="a")),
        (Job("shop", "push", hint="a"), Job("shop", "push", hint="b"), Job("shop", "push", hint="b")),
        (Job("shop", "drift"), Job("shop", "push", hint="b"), Job("shop", "drift", hint="b")),
        (Job("shop", "tick"), Job("shop", "drift"), Job("shop", "drift")),
        (
            Job("shop", "replay", commit="c", force=True, actor="ada"),
            Job("shop", "tick"),
            Job("shop", "replay", commit="c", force=True, actor="ada"),
        ),
        (Job("shop", "oneoff", approve="h", unpin=True), Job("shop", "push"), Job("shop", "oneoff", approve="h", unpin=True)),
        (
            Job("shop", "replay", approve="h", actor="ops"),
            Job("shop", "push", hint="b", actor="ada"),
            Job("shop", "replay", hint="b", approve="h", actor="ops"),
        ),
        (Job("shop", "push", hint="a", actor="ada"), Job("shop", "replay", actor="ops"), Job("shop", "replay", hint="a", actor="ops")),
        (Job("shop", "replay", actor="ops"), Job("shop", "replay", actor="ci"), Job("shop", "replay", actor="ci")),
        (Job("shop", "drift", force=True, actor="ops"), Job("shop", "push", actor="ada"), Job("shop", "drift", force=True, actor="ops")),
        (Job("shop", "oneoff", dry_run=True), Job("shop", "oneoff", dry_run=True), Job("shop", "oneoff", dry_run=True)),
        (Job("shop", "oneoff", dry_run=True), Job("shop", "push"), Job("shop", "push")),
        (Job("shop", "oneoff", prune=False), Job("shop", "push"), Job("shop", "oneoff", prune=False)),
        (Job("shop", "oneoff", prune=False), Job("shop", "oneoff", prune=False), Job("shop", "oneoff", prune=False)),
    ],
)
def test_two_requests_become_one_that_asks_for_both(older: Job, newer: Job, merged: Job) -> None:
    assert older.merged(newer) == merged
    assert merged.drift is (merged.trigger == "drift")


def test_the_last_twenty_deliveries_are_kept() -> None:
    older = Job("shop", "push", deliveries=tuple(delivery(number) for number in range(15)))
    newer = Job("shop", "push", deliveries=tuple(delivery(number) for number in range(15, 30)))
    assert [int(each.id) for each in older.merged(newer).deliveries] == list(range(10, 30))
