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
from handler.plan.judge import RECREATE
from tests.fakes.apiserver import Call
from tests.fakes.apiserver.connection import Reply
from tests.fakes.apiserver.server import Asked
from tests.fakes.engine import ONE, cluster
from tests.unit.engine.in_memory_cluster import DONE, MAPS, NAMES, ROLLED, InMemoryCluster, config_map, group, planted, refusing, step
from tests.unit.engine.killed_runs import Killed

pytestmark = pytest.mark.slow

OTHER = "/api/v1/namespaces/other"
KEEP = {"metadata": {"annotations": {"anneal.dev/prune": "disabled"}}}
OWN = {"metadata": {"ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": "x", "uid": "u"}]}}
LEAVE = {"metadata": {"labels": {PART_OF: None}}}


def keep(fake: InMemoryCluster, name: str, change: dict[str, Any]) -> None:
    """A person changes an object."""
    patch = "application/merge-patch+json"
    fake.server.must(Asked("PATCH", f"{MAPS}/{name}", {"fieldManager": "jo"}, change, patch, ""))


def meanwhile(fake: InMemoryCluster, name: str, change: dict[str, Any]) -> None:
    """A person changes an object as soon as the first group has written."""

    def way(call: Call, do: Callable[[], Reply]) -> Reply:
        reply = do()
        if call.writes and call.asked.path == f"{MAPS}/changed":
            keep(fake, name, change)
        return reply

    fake.meet = way


def push_and_meet(fake: InMemoryCluster, action: str, change: dict[str, Any]) -> None:
    """Push a step that takes away `old`, which a person changes after the plan."""
    maps = {"changed": "2", "old": "1"}
    fake.push(
        {**dict.fromkeys(("free", "anew", "kept", "same", "last"), "1"), **maps},
        group("first", step("CreateOrUpdate", "changed")),
        group("then", step(action, "old")),
    )
    meanwhile(fake, "old", change)


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
def test_an_object_protected_or_adopted_after_the_plan_isnt_deleted(action: str, change: dict[str, Any], seen: str) -> None:
    fake = planted()
    before = fake.uid("old")
    push_and_meet(fake, action, change)
    result = fake.run()
    assert result.outcome is Outcome.FAILED, result
    assert seen in "\n".join(map(str, result.problems))
    assert fake.uid("old") == before
    assert not fake.deleted


@pytest.mark.parametrize(
    ("change", "seen"), [(KEEP, "protected by anneal.dev/prune: disabled"), (OWN, "owned by Pod x"), (LEAVE, "it isn't ours to delete")]
)
@pytest.mark.parametrize("late", [False, True])
def test_an_object_protected_or_adopted_after_the_plan_isnt_recreated(*, late: bool, change: dict[str, Any], seen: str) -> None:
    """The plan refuses it; where it is changed after the plan, its deletion meets a moved object, which is judged again."""
    fake, fixed = (
        InMemoryCluster(),
        {"immutable": True, "metadata": {"name": "old", "namespace": "shop", "annotations": {RECREATE: "allow"}}},
    )
    for value in "12":
        files = {"changed": config_map("changed", value), "old": config_map("old", value) | fixed}
        fake.host.push(fake.host.commit({f"shop/{name}.yaml": json.dumps(body) for name, body in files.items()}))
        if value == "1":
            assert fake.handler(ONE).run(Job("shop", "push")).outcome in DONE
    before = fake.uid("old")

    def way(call: Call, do: Callable[[], Reply]) -> Reply:
        if call.asked.method == "DELETE":
            keep(fake, "old", change)
        return do()

    if late:
        fake.meet = way
    else:
        keep(fake, "old", change)
    result = fake.handler(ONE).run(Job("shop", "push"))
    assert (result.outcome, fake.uid("old")) == (Outcome.FAILED, before), result
    assert seen in "\n".join(map(str, result.problems))
    assert result.problems[0].place == "shop/old.yaml:1"
    assert not fake.deleted


def test_a_recreate_is_judged_again_by_the_resuming_run() -> None:
    """A kill lies between the word and the deed, and so do hours, maybe: also what is protected after that run's plan stays."""
    fake = planted()
    fake.push({**dict.fromkeys(NAMES, "1")}, group("one", step("Recreate", "anew")))
    before = fake.uid("anew")

    def dies(call: Call, do: Callable[[], Reply]) -> Reply:
        if call.asked.method == "DELETE" and call.asked.path == f"{MAPS}/anew":
            raise Killed
        return do()

    fake.meet = dies
    with pytest.raises(Killed):
        fake.run()
    fake.free_lease()

    def protected(call: Call, do: Callable[[], Reply]) -> Reply:
        reply = do()
        if call.asked.method == "PUT" and call.asked.path.endswith("/configmaps/anneal-shop"):
            keep(fake, "anew", KEEP)
        return reply

    fake.meet = protected
    result = fake.run("tick")
    assert (result.outcome, fake.uid("anew")) == (Outcome.FAILED, before), result
    assert "was to be made anew, but by now: protected by anneal.dev/prune: disabled" in result.message


@pytest.mark.parametrize(("enabled", "asked", "fails", "goes"), [(1, 1, 0, True), (1, 0, 0, False), (0, 1, 0, False), (1, 1, 1, False)])
def test_a_namespace_isnt_deleted_with_what_a_run_keeps(*, enabled: int, asked: int, fails: int, goes: bool) -> None:
    """What git no longer declares leaves with its Namespace only where it is pruned: not after a step that has written nothing."""
    fake = InMemoryCluster(cluster("shop", "other"))
    about = {"name": "other", "annotations": {"anneal.dev/prune": "allow"}}
    files = {"n": {"apiVersion": "v1", "kind": "Namespace", "metadata": about}, "w": config_map("w", "1")}
    orphan = {"x": config_map("x", "1") | {"metadata": {"name": "x", "namespace": "other"}}}
    more: dict[str, Any] = {"namespaces": ("shop", "other"), "cluster_scoped": ("Namespace",), "prune": Prune(enabled=bool(enabled))}
    steps = {"groups": [group("first", step("CreateOrUpdate", "new", continueOnError=True), step("DeleteIfExist", "n"))]}
    document = {"apiVersion": "workflow.kubernetes.io/v1alpha1", "kind": "Rollout", "metadata": {"name": "r"}, "spec": steps}
    fake.meet = refusing(lambda asked: bool(fails) and asked.path == f"{MAPS}/new" and not asked.dry)
    second = files | {"new": config_map("new", "1")}
    for settings, bodies, rollout in ((ONE, files | orphan, {}), (ROLLED, second, {"rollout.yaml": json.dumps(document)})):
        commit = {f"shop/{name}.yaml": json.dumps(body) for name, body in bodies.items()}
        fake.host.push(fake.host.commit({**commit, **rollout}))
        handler = fake.handler(replace(settings, targets=(replace(settings.targets[0], **more),)))
        result = handler.run(Job("shop", "push", prune=bool(asked)))
    found = [fake.server.answer(Asked("GET", path, {}, None, "", ""))[0] for path in (OTHER, f"{OTHER}/configmaps/x")]
    assert found == ([404, 404] if goes else [200, 200]), result
    assert (result.outcome in DONE) == goes
    assert goes or "still holds ConfigMap/other/x" in result.message
