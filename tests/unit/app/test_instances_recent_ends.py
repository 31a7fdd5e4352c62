"""What vanishes together is counted by the template's history, whichever process lets it go."""

from __future__ import annotations

from handler.app.instances.vanished import TOGETHER, ended_lately, with_ends
from handler.model.event import Job
from handler.state.record import Run
from handler.state.run_history import CHANGED

JOB, NOW = Job("shop", "tick"), 1_772_366_400.0


def test_what_ends_within_a_minute_is_one_entry() -> None:
    history = with_ends((), JOB, ["shop.ns.a", "shop.ns.b"], NOW)
    history = with_ends(history, JOB, ["shop.ns.c"], NOW + TOGETHER - 1)
    assert [(each.counts, each.changed) for each in history] == [
        ({"ended": 3}, ("shop.ns.a ended", "shop.ns.b ended", "shop.ns.c ended")),
    ]
    history = with_ends(history, JOB, ["shop.ns.d"], NOW + TOGETHER)
    assert [each.counts for each in history] == [{"ended": 1}, {"ended": 3}]


def test_they_count_until_nothing_has_ended_for_a_minute() -> None:
    history = with_ends((), JOB, ["shop.ns.a"], NOW)
    history = with_ends(history, JOB, ["shop.ns.b"], NOW + 30)
    found = [ended_lately(history, NOW + each) for each in (31, 30 + TOGETHER - 1, 30 + TOGETHER)]
    assert found == [2, 2, 0]
    assert ended_lately((Run("r", "tick", "applied", history[0].started, counts={"pruned": 3}),), NOW) == 0


def test_of_many_the_first_are_named_and_the_rest_counted() -> None:
    history = with_ends((), JOB, [f"shop.ns.w{number}" for number in range(CHANGED + 5)], NOW)
    for more in range(3):
        history = with_ends(history, JOB, [f"shop.ns.x{more}"], NOW + 1)
    (entry,) = history
    assert (len(entry.changed), entry.changed[0], entry.changed[-1]) == (CHANGED, "shop.ns.w0 ended", "and 9 more")
    assert entry.counts == {"ended": CHANGED + 8}
