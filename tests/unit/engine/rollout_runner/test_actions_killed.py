"""Actions that are killed at any request of a rollout: nothing is done twice, and nothing is lost."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.fakes.apiserver import Call
from tests.fakes.apiserver.connection import Reply, Way, straight
from tests.unit.engine.in_memory_cluster import DONE, GROUPS, NAMES, InMemoryCluster, assert_carried_out, planted, wanted
from tests.unit.engine.killed_runs import Killed, killed

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("done", [False, True], ids=["before", "after"])
def test_a_kill_at_any_request_leaves_nothing_done_twice_and_nothing_lost(done: bool) -> None:
    kills = 0
    for number in range(1, 200):
        fake = planted()
        before = {name: fake.uid(name) for name in NAMES}
        fake.push(wanted(), *GROUPS)
        if not killed(fake, number, done=done):
            break
        kills += 1
        result = fake.run("tick")
        assert result.outcome in DONE, (number, result)
        assert_carried_out(fake, before)
    assert kills > len(fake.written) > 5  # each object's write and the records between, of which some share a write


def test_a_rollout_that_is_killed_twice_at_the_same_request_ends_all_the_same() -> None:
    for number in range(1, 60, 3):
        fake = planted()
        before = {name: fake.uid(name) for name in NAMES}
        fake.push(wanted(), *GROUPS)
        if not killed(fake, number, done=True):
            break
        killed(fake, number, done=True)
        assert fake.run("tick").outcome in DONE, number
        assert_carried_out(fake, before)


def test_the_plan_of_a_resumed_rollout_counts_no_deletion_that_was_done() -> None:
    """What a person has approved by its uid would otherwise be held again, with the uid of what was made anew."""
    fake = planted()
    fake.push(wanted(), *GROUPS)
    fake.meet = after_write(fake, "PATCH anew")
    with pytest.raises(Killed):
        fake.run()
    fake.meet = straight
    fake.free_lease()
    planned = fake.run("tick", dry_run=True)
    assert planned.plan
    assert [str(change.action) for change in planned.plan.changes if change.removes] == []
    assert ("prepare", "anew") in [(due.group, due.step) for due in planned.plan.due]


def after_write(fake: InMemoryCluster, write: str) -> Way:
    """Die as soon as this is written."""

    def meet(_: Call, do: Callable[[], Reply]) -> Reply:
        if write in fake.written:
            raise Killed
        return do()

    return meet
