"""A run that carries out its plan announces it, stage by stage, before its first write; one that writes nothing announces none."""

from __future__ import annotations

import json
from dataclasses import replace

from handler.app.build import Handler
from handler.model.event import Job
from handler.model.result import Outcome
from handler.model.run_event import ObjectsWritten, RunEvent, RunPlanned
from tests.fakes.engine import ONE, cluster, engine
from tests.fakes.git_host import GitHost
from tests.unit.engine.in_memory_cluster import config_map


def maps(*names: str, wave: str = "") -> dict[str, str]:
    found = {name: config_map(name, "1") for name in names}
    for body in found.values() if wave else ():
        body["metadata"]["annotations"] = {"argocd.argoproj.io/sync-wave": wave}
    return {f"shop/{name}.yaml": json.dumps(body) for name, body in found.items()}


def listening(handler: Handler) -> list[RunEvent]:
    heard: list[RunEvent] = []
    handler._options = replace(handler._options, announce=heard.append)
    return heard


def test_a_plan_is_announced_before_its_first_write_with_deletions_last() -> None:
    host = GitHost()
    handler = engine(cluster(), host, ONE)
    heard = listening(handler)
    host.push(host.commit({**maps("a", "b"), **maps("c", wave="1")}))
    assert handler.run(Job("shop", "push", run="shop.1")).outcome is Outcome.APPLIED
    planned, *_ = (event for event in heard if isinstance(event, RunPlanned | ObjectsWritten))
    assert planned == RunPlanned(
        "shop", "shop.1", host.head, ((("ConfigMap/shop/a", "create"), ("ConfigMap/shop/b", "create")), (("ConfigMap/shop/c", "create"),))
    )
    heard.clear()
    host.push(host.commit(maps("a", "b")))
    assert handler.run(Job("shop", "push", run="shop.2")).outcome is Outcome.APPLIED
    (planned,) = (event for event in heard if isinstance(event, RunPlanned))
    assert planned.stages == ((("ConfigMap/shop/c", "prune"),),)


def test_a_look_announces_no_plan() -> None:
    host = GitHost()
    handler = engine(cluster(), host, ONE)
    heard = listening(handler)
    host.push(host.commit(maps("a")))
    assert handler.run(Job("shop", "oneoff", dry_run=True)).outcome is Outcome.PLANNED
    assert handler.run(Job("shop", "push")).outcome is Outcome.APPLIED
    heard.clear()
    assert handler.run(Job("shop", "tick")).outcome is Outcome.UNCHANGED
    assert not [event for event in heard if isinstance(event, RunPlanned)]
