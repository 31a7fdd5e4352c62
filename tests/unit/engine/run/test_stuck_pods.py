"""What waits delete, on several threads."""

from __future__ import annotations

import threading
from typing import Any, cast

import pytest

from handler.engine.run.context import RunContext
from handler.engine.run.stuck_pods import StuckPods
from handler.model.names import Identity
from handler.model.plan import Cause, Gone
from tests.patience import PATIENCE

DUE = {
    "kind": "StatefulSet",
    "metadata": {"uid": "u-db", "generation": 3},
    "spec": {},
    "status": {"observedGeneration": 3, "updateRevision": "db-new"},
}
SETS = [Identity("apps", "StatefulSet", "shop", name) for name in ("db", "queue")]


class _Run:
    """A run whose planner's API is never asked: the look is the test's."""

    deps = planner = property(lambda self: self)
    api = None


def test_a_watch_isnt_held_up_by_the_look_of_another_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    left = [Gone(Identity("", "Pod", "shop", f"{one.name}-0"), "u", Cause.STUCK, one, counted=False) for one in SETS]
    pods, stalled = StuckPods(cast(RunContext, _Run()), left, []), list[bool]()

    def watched() -> None:
        pods.saw(SETS[1], DUE)
        pods.beat()

    def look(*_: Any) -> dict[Identity, Any]:
        watch = threading.Thread(target=watched, daemon=True)
        watch.start()
        watch.join(PATIENCE)
        stalled.append(watch.is_alive())
        return {}

    monkeypatch.setattr("handler.engine.run.stuck_pods.probe", look)
    pods.saw(SETS[0], DUE)
    pods.beat()
    assert stalled[0] is False
