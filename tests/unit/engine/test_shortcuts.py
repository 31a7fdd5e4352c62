"""A run ends early only where nothing can be new to it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from handler.model.event import Job
from handler.model.result import Outcome
from tests.fakes.apiserver.server import Asked
from tests.fakes.engine import ONE
from tests.unit.engine.in_memory_cluster import DONE, MAPS, InMemoryCluster


@pytest.mark.parametrize(("trigger", "looks"), [("resource", True), ("drift", False), ("tick", False)])
def test_what_configures_a_target_counts_though_drift_is_ignored(trigger: str, looks: bool) -> None:
    settings = replace(ONE, targets=(replace(ONE.targets[0], drift="ignore"),))
    fake = InMemoryCluster()
    fake.push({"web": "1"})
    assert fake.handler(settings).run(Job("shop", "push")).outcome in DONE
    fake.server.must(Asked("PATCH", f"{MAPS}/web", {"fieldManager": "x"}, {"data": {"key": "2"}}, "application/merge-patch+json", ""))
    fake.written.clear()
    assert fake.handler(settings).run(Job("shop", trigger)).outcome is (Outcome.APPLIED if looks else Outcome.UNCHANGED)
    assert fake.data("web") == ["1" if looks else "2"]
