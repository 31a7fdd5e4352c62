"""The composition root keeps what it made of a target, and nothing of an instance's older object."""

from __future__ import annotations

from dataclasses import replace

from handler.config.settings_digest import settings_digest
from tests.fakes.engine import cluster, engine
from tests.fakes.git_host import GitHost
from tests.unit.plan.samples import instance


def test_a_digest_is_of_the_object_as_it_is_now() -> None:
    handler, before = engine(cluster(), GitHost()), instance()
    after = replace(before, instance=replace(before.instance, body={"spec": {"size": 2}}))
    assert handler.digest(before) == settings_digest(before)
    assert handler.digest(after) == settings_digest(after) != settings_digest(before)
    assert handler.digest(after) == settings_digest(after)
