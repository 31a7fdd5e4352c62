"""What a step deletes is judged again right before it goes: a rollout may have taken hours since its plan was made."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from handler.config.settings import Prune
from handler.model.event import Job
from handler.model.names import PART_OF
from handler.model.result import Outcome
from tests.fakes.apiserver import Call
from tests.fakes.apiserver.connection import Reply
from tests.fakes.apiserver.server import Asked
from tests.fakes.engine import ONE, cluster
from tests.unit.run.test_actions import refusing
from tests.unit.run.town import DONE, MAPS, ROLLED, Town, config_map, group, planted, step

OTHER = "/api/v1/namespaces/other"
KEEP = {"metadata": {"annotations": {"anneal.dev/prune": "disabled"}}}
OWN = {"metadata": {"ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": "x", "uid": "u"}]}}
LEAVE = {"metadata": {"labels": {PART_OF: None}}}


def meanwhile(town: Town, name: str, change: dict[str, Any]) -> None:
    """Somebody changes an object as soon as the first group has written."""

    def way(call: Call, do: Callable[[], Reply]) -> Reply:
        reply = do()
        if call.writes and call.asked.path == f"{MAPS}/changed":
            patch = "application/merge-patch+json"
            status, _ = town.server.answer(Asked("PATCH", f"{MAPS}/{name}", {"fieldManager": "jo"}, change, patch, ""))
            assert status == 200
        return reply

    town.meet = way


@pytest.mark.parametrize(
    ("action", "change", "seen"),
    [
        ("DeleteIfExist", KEEP, "protected by anneal.dev/prune: disabled"),
        ("DeleteIfExist", OWN, "owned by Pod x"),
        ("DeleteIfExist", LEAVE, "is no longer ours"),
        ("Recreate", KEEP, "protected by anneal.dev/prune: disabled"),
        ("Recreate", OWN, "owned by Pod x"),
        ("Recreate", LEAVE, "is no longer ours"),
    ],
)
def test_what_somebody_keeps_or_takes_after_the_plan_stays(action: str, change: dict[str, Any], seen: str) -> None:
    town = planted()
    before = town.uid("old")
    maps = {"changed": "2", "old": "1"}
    town.push(
        {**dict.fromkeys(("free", "anew", "kept", "same", "last"), "1"), **maps},
        group("first", step("CreateOrUpdate", "changed")),
        group("then", step(action, "old")),
    )
    meanwhile(town, "old", change)
    result = town.run()
    assert result.outcome is Outcome.FAILED, result
    assert seen in "\n".join(map(str, result.problems))
    assert town.uid("old") == before
    assert not town.deleted


@pytest.mark.parametrize(("enabled", "asked", "fails", "goes"), [(1, 1, 0, True), (1, 0, 0, False), (0, 1, 0, False), (1, 1, 1, False)])
def test_a_namespace_isnt_deleted_with_what_a_run_keeps(*, enabled: int, asked: int, fails: int, goes: bool) -> None:
    """What git no longer declares leaves with its Namespace only where it is pruned: not after a step that has written nothing."""
    town = Town(cluster("shop", "other"))
    about = {"name": "other", "annotations": {"anneal.dev/prune": "allow"}}
    files = {"n": {"apiVersion": "v1", "kind": "Namespace", "metadata": about}, "w": config_map("w", "1")}
    orphan = {"x": config_map("x", "1") | {"metadata": {"name": "x", "namespace": "other"}}}
    more: dict[str, Any] = {"namespaces": ("shop", "other"), "cluster_scoped": ("Namespace",), "prune": Prune(enabled=bool(enabled))}
    steps = {"groups": [group("first", step("CreateOrUpdate", "new", continueOnError=True), step("DeleteIfExist", "n"))]}
    document = {"apiVersion": "workflow.kubernetes.io/v1alpha1", "kind": "Rollout", "metadata": {"name": "r"}, "spec": steps}
    town.meet = refusing(lambda asked: bool(fails) and asked.path == f"{MAPS}/new" and not asked.dry)
    second = files | {"new": config_map("new", "1")}
    for settings, bodies, rollout in ((ONE, files | orphan, {}), (ROLLED, second, {"rollout.yaml": json.dumps(document)})):
        commit = {f"shop/{name}.yaml": json.dumps(body) for name, body in bodies.items()}
        town.host.push(town.host.commit({**commit, **rollout}))
        handler = town.handler(replace(settings, targets=(replace(settings.targets[0], **more),)))
        result = handler.run(Job("shop", "push", prune=bool(asked)))
    found = [town.server.answer(Asked("GET", path, {}, None, "", ""))[0] for path in (OTHER, f"{OTHER}/configmaps/x")]
    assert found == ([404, 404] if goes else [200, 200]), result
    assert (result.outcome in DONE) == goes
    assert goes or "still holds ConfigMap/other/x" in result.message
