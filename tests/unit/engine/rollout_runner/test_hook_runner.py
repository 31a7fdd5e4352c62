"""A rollout takes no other's hooks for its own, be both of one commit and begun in the same second; but those that it began itself."""

from __future__ import annotations

import json
from dataclasses import replace
from unittest.mock import patch

import pytest

from handler.model.event import Job
from handler.model.result import Outcome
from handler.rollout.hook_annotations import ROLLOUT
from handler.state.record import Progress, State
from tests.fakes.apiserver.server import Asked
from tests.fakes.engine import state_of
from tests.unit.engine.in_memory_cluster import DONE, MAPS, InMemoryCluster, config_map, group, step
from tests.unit.engine.killed_runs import killed

pytestmark = pytest.mark.slow

NOON = 1_800_000_000.0


def planned_hooks() -> InMemoryCluster:
    """A cluster whose only commit has a ConfigMap, and another that is a hook."""
    fake, hook = InMemoryCluster(), config_map("migrate", "1")
    hook["metadata"]["annotations"] = {"argocd.argoproj.io/hook": "PreSync"}
    head = {"apiVersion": "workflow.kubernetes.io/v1alpha1", "kind": "Rollout", "metadata": {"name": "r"}}
    rollout = {**head, "spec": {"groups": [group("all", step("CreateOrUpdate", "web"))]}}
    bodies = {"shop/web.yaml": config_map("web", "1"), "shop/migrate.yaml": hook, "rollout.yaml": rollout}
    fake.host.push(fake.host.commit({path: json.dumps(body) for path, body in bodies.items()}))
    return fake


def forced(fake: InMemoryCluster) -> Progress:
    """Have all applied once more, at the very same time as ever, however long it takes."""
    handler = fake.handler()
    deps = replace(handler.dependencies("shop"), clock=lambda: NOON)
    handler.dependencies = lambda name: {"shop": deps}[name]  # type: ignore[method-assign]  # the seam
    with patch("handler.engine.run.context.steady_clock", lambda wall: wall):
        assert handler.run(Job("shop", "push", force=True)).outcome is Outcome.APPLIED
    known = state_of(handler).rollout
    assert known
    return known


def as_before(fake: InMemoryCluster) -> None:
    """Make the record, and what was created, what the version before leaves: it knew rollouts by their second."""
    handler = fake.handler()
    store = handler.store(handler.target("shop"))
    known = store.read().state
    if known is None or known.rollout is None:
        return

    def older(state: State) -> State:
        assert state.rollout
        return replace(state, rollout=replace(state.rollout, id=""))

    store.update(older)
    if live := fake.live("migrate"):
        kept = {key: live["metadata"][key] for key in ("name", "namespace", "labels")}
        marked = live["metadata"]["annotations"] | {ROLLOUT: f"PreSync {known.rollout.digest[:12]} {known.rollout.started}"}
        body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {**kept, "annotations": marked}, "data": live["data"]}
        query = {"fieldManager": "anneal", "force": "true"}
        fake.server.must(Asked("PATCH", f"{MAPS}/migrate", query, body, "application/apply-patch+yaml", ""))


def test_a_second_rollout_in_the_same_second_runs_its_own_hooks() -> None:
    fake = planned_hooks()
    first, uid = forced(fake), fake.uid("migrate")
    second = forced(fake)
    assert (first.digest, first.started) == (second.digest, second.started)
    assert fake.uid("migrate") not in ("", uid)
    assert fake.deleted == {f"migrate {uid}": 1}


@pytest.mark.parametrize("older", [False, True], ids=["ours", "the version before"])
def test_a_killed_rollout_goes_on_with_its_hooks_whichever_version_began_it(older: bool) -> None:
    kills = 0
    for number in range(1, 50):
        fake = planned_hooks()
        if not killed(fake, number, done=True):
            break
        kills += 1
        if older:
            as_before(fake)
        assert fake.run("tick").outcome in DONE, number
        assert (fake.written.count("PATCH migrate"), fake.deleted) == (1, {}), (number, fake.written)
    assert kills > 5
