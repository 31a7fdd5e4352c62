"""How a target's health is known to those that wait for it, while a server watches, once its watch is dead, and once it is back."""

from __future__ import annotations

import pytest

from handler.model.errors import ClusterUnavailable
from handler.state.record_format import seconds_of
from tests.unit.engine.promoting_targets import MINUTE, SOAK, STAGING, Line

pytestmark = pytest.mark.slow

WATCHED = 180.0  # seconds for which a watch holds


@pytest.fixture
def line() -> Line:
    """Staging has just recorded another commit than production; a server watches all the time."""
    made = Line()
    made.commit("1")
    made.done("staging")
    watch(made, SOAK)
    made.done("prod")
    made.commit("2")
    made.done("staging")
    return made


def watch(line: Line, seconds: float) -> None:
    for _ in range(int(seconds // MINUTE)):
        line.beat()
        line.later(MINUTE)
    line.beat()


def health(line: Line) -> str:
    return line.handler.health(STAGING).of(line.state("staging")).state


def test_a_watch_that_died_vouches_no_longer_although_drift_runs_would(line: Line) -> None:
    first = line.state("prod").commit
    watch(line, MINUTE)
    line.later(WATCHED)
    assert health(line) == "healthy"
    line.later(1)
    assert health(line) == "unknown"
    line.later(SOAK)
    assert line.on() == first


def test_a_watch_that_is_back_after_a_gap_starts_the_clock_again(line: Line) -> None:
    first = line.state("prod").commit
    watch(line, MINUTE)
    line.later(SOAK)
    line.beat()
    assert line.on() == first
    watch(line, SOAK - MINUTE)
    assert line.on() == first
    watch(line, MINUTE)
    assert line.on() == line.state("staging").commit


def test_a_heartbeat_is_read_only_where_a_watch_should_have_judged_again(line: Line) -> None:
    asked = list[str]()
    line.before = lambda call: asked.append(call.asked.path)
    assert (health(line), [path for path in asked if "heartbeat" in path]) == ("healthy", [])
    line.later(3 * line.handler.settings.health_interval + 1)
    assert health(line) == "unknown"
    assert len([path for path in asked if "heartbeat" in path]) == 1


def test_a_heartbeat_that_cannot_be_read_vouches_for_nothing(line: Line) -> None:
    def gone(call: object) -> None:
        if "heartbeat" in str(call.asked.path):  # type: ignore[attr-defined]  # a Call
            raise ClusterUnavailable.of("cluster", "doesn't answer")

    line.before = gone
    assert health(line) == "healthy"
    line.later(3 * line.handler.settings.health_interval + 1)
    found = line.handler.health(STAGING).of(line.state("staging"))
    assert (found.state, "can't be seen" in found.worst[0]) == ("unknown", True)


def test_a_record_that_no_server_looks_after_any_more_is_not_vouched_for_by_the_watch_of_others(line: Line) -> None:
    """The target was taken out of the configuration, and the server restarted."""
    line.beat()
    for _ in range(31):
        line.later(180)
        line.beat(names=("prod",), server="restarted")
    assert line.now - seconds_of(line.state("staging").health.judged) > 3 * line.handler.settings.drift_interval
    assert health(line) == "unknown"
    line.beat(server="restarted")
    assert health(line) == "healthy"


def test_without_a_server_drift_runs_vouch() -> None:
    line = Line()
    line.commit("1")
    line.done("staging")
    line.later(3 * line.handler.settings.drift_interval)
    assert health(line) == "healthy"
    line.later(1)
    assert health(line) == "unknown"
