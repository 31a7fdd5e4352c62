"""What a watch reports of health that it can't write down: a cluster that doesn't answer is no healthy one."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from handler.config.settings import Settings
from handler.engine.health.custom_health import no_expressions
from handler.model.errors import ClusterUnavailable, StateInvalid
from handler.model.health import HealthState
from handler.model.names import Identity
from handler.model.run_event import HealthFound, RunEvent, unheard
from handler.worker.health_watch.cluster_watch import ClusterWatch
from tests.unit.worker.health_watch.watched_objects import API, declaring, target
from tests.unit.worker.health_watch.watched_scopes import adjusted

SILENT = ClusterUnavailable.of("list deployments", "no answer")


class Silent:
    """Ways to a cluster that doesn't answer."""

    def custom_health(self, _: Any) -> Any:
        return no_expressions()

    def _none(self, *_: Any, **__: Any) -> Any:
        raise SILENT

    api = discovery = records = brief_store = _none


@pytest.fixture
def watch() -> ClusterWatch:
    ways: Any = Silent()
    settings = Settings((target(),), health_interval=0.01)
    return ClusterWatch(settings, ways, [target()], lambda _: None, unheard, threading.Event())


def test_what_cannot_be_judged_is_told_as_unknown_though_that_cannot_be_recorded(watch: ClusterWatch) -> None:
    (known,) = watch.watched.values()
    known.read(declaring(API), "1")
    adjusted(watch.scopes, known)
    (each,) = watch.scopes.followed.values()
    watch.scopes.stands(each.scope)
    watch.scopes.ended(each.scope, SILENT)
    watch._judge(known, each.failed + 60.0, passes=True)
    assert watch.found == {"shop": HealthState.UNKNOWN}


def test_a_watch_without_a_turn_for_three_intervals_tells_that_nothing_is_known(watch: ClusterWatch) -> None:
    heard: list[RunEvent] = []
    watch.announce = lambda event: (heard.append(event), watch.stop.set())  # type: ignore[func-returns-value,assignment] # ends after one
    watch.run()
    assert heard == [HealthFound({"shop": HealthState.UNKNOWN})]
    assert watch.found == {}


def test_a_record_that_cannot_be_read_is_no_healthy_target(watch: ClusterWatch) -> None:
    (known,) = watch.watched.values()
    known.read(None, "1", StateInvalid.of("ConfigMap", "its format is 99"))
    watch._judge(known, 60.0, passes=True)
    assert watch.found == {"shop": HealthState.UNKNOWN}


def test_a_record_that_could_not_be_read_now_is_read_again_and_its_target_judged_by_nothing(watch: ClusterWatch) -> None:
    (known,) = watch.watched.values()
    known.read(declaring(API), "1")
    known.seen = "2"
    watch._read(known, 100.0)
    watch._judge(known, 100.0, passes=True)
    assert (known.is_stale, known.kinds, watch.found) == (True, frozenset({API.group_kind}), {})
    watch._judge(known, 200.0, passes=True)
    assert watch.found == {"shop": HealthState.UNKNOWN}


def test_a_record_that_is_gone_says_nothing_of_its_target(watch: ClusterWatch) -> None:
    watch._record_moved(Identity("", "ConfigMap", "anneal-system", "anneal-shop"), None)
    assert watch.found == {"shop": HealthState.UNKNOWN}
