"""A pause: until when, as people write it; and none replaces or ends one that the person wasn't shown."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from handler.app.pause import moment, pause_of, resume, suspend
from handler.model.errors import ShownOtherwise
from handler.state.record import Suspend
from handler.state.record_format import seconds_of
from tests.fakes.apiserver import Call
from tests.fakes.apiserver.connection import Reply, straight
from tests.fakes.engine import state_of
from tests.unit.engine.in_memory_cluster import InMemoryCluster

NOW = 1_800_000_000.0


def test_moment_takes_a_duration_or_a_time_with_its_zone() -> None:
    assert moment("2h", NOW) == NOW + 7200
    assert moment("2030-01-31T12:00:00+02:00", NOW) == seconds_of("2030-01-31T10:00:00Z")


@pytest.mark.parametrize("text", ["soon", "2030-01-31T12:00:00", "0s", "-1h"])
def test_moment_refuses_anything_else(text: str) -> None:
    with pytest.raises(ValueError, match=r".+"):
        moment(text, NOW)


def test_a_pause_without_an_end_lasts() -> None:
    assert pause_of("ada", "a migration", "").until == ""
    assert pause_of("ada", "", "2h").holds(seconds_of(pause_of("ada", "", "").at) + 7000)


EARLIER, NOW_ON = "2026-03-01T12:00:00Z", "2026-03-01T12:05:00Z"
BOBS, CAROLS = Suspend("bob", "an incident", "", EARLIER), Suspend("carol", "another incident", "", NOW_ON)


@pytest.fixture
def fake() -> InMemoryCluster:
    made = InMemoryCluster()
    made.push({"web": "1"})
    made.run()
    return made


def paused(fake: InMemoryCluster, pause: Suspend | None) -> None:
    handler = fake.handler()
    handler.store(handler.target("shop")).update(lambda state: replace(state, suspend=pause))


@pytest.mark.parametrize("now", [CAROLS, None], ids=["another", "none"])
def test_only_the_pause_that_was_shown_ends(fake: InMemoryCluster, now: Suspend | None) -> None:
    handler = fake.handler()
    target = handler.target("shop")
    paused(fake, now)
    with pytest.raises(ShownOtherwise, match="another pause holds now, or none"):
        resume(handler, target, EARLIER)
    assert state_of(handler).suspend == now
    paused(fake, BOBS)
    assert resume(handler, target, EARLIER) == "resumed"
    assert state_of(handler).suspend is None


def test_a_pause_takes_the_place_of_none_but_one_that_is_over(fake: InMemoryCluster) -> None:
    handler = fake.handler()
    target = handler.target("shop")
    paused(fake, BOBS)
    with pytest.raises(ShownOtherwise):
        suspend(handler, target, CAROLS, "")
    assert state_of(handler).suspend == BOBS
    paused(fake, replace(BOBS, until=NOW_ON))
    assert suspend(handler, target, CAROLS, "") == "suspended"
    assert state_of(handler).suspend == CAROLS


@pytest.mark.parametrize("ends", [False, True], ids=["suspend", "resume"])
def test_a_pause_that_comes_while_another_is_written_stays(*, fake: InMemoryCluster, ends: bool) -> None:
    handler = fake.handler()
    target = handler.target("shop")
    paused(fake, BOBS if ends else None)

    def first(call: Call, do: Callable[[], Reply]) -> Reply:
        if call.writes:
            fake.meet = straight
            paused(fake, CAROLS)
        return do()

    fake.meet = first
    with pytest.raises(ShownOtherwise):
        resume(handler, target, EARLIER) if ends else suspend(handler, target, BOBS, "")
    assert state_of(handler).suspend == CAROLS
