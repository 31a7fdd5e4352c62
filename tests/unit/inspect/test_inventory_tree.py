"""The inventory as a tree: what stands below what, what comes first, and what is cut."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from handler.inspect import inventory_tree
from handler.inspect.inventory_tree import OWNED, UNTOLD, Inventory, InventoryNode, PodFacts, Role, SeenObject, owned_below
from handler.model.health import Health, Status
from handler.model.names import GroupKind, Identity
from handler.model.to_json import ANSWER, plain


def seen(kind: str, name: str, status: Status = Status.CURRENT, owner: str = "", **more: Any) -> SeenObject:
    role = Role.OWNED if owner else Role.DECLARED
    return SeenObject(Identity("", kind, "shop", name), name, Health(status, more.pop("message", "")), role, owner, **more)


def tree_of(*objects: SeenObject, **more: Any) -> inventory_tree.InventoryTree:
    return Inventory("shop", "c0ffee", "2026-01-01T00:00:00Z", objects, **more).tree()


def names(nodes: tuple[InventoryNode, ...]) -> list[Any]:
    return [(node.name, names(node.children)) if node.children else node.name for node in nodes]


def test_what_is_owned_stands_below_and_the_worst_come_first() -> None:
    objects = [
        seen("Deployment", "web"),
        seen("ReplicaSet", "web-1", owner="web"),
        *(seen("Pod", f"web-1-{number}", status, "web-1") for number, status in enumerate((Status.CURRENT, Status.FAILED))),
        seen("ConfigMap", "a"),
        SeenObject(Identity("", "ConfigMap", "shop", "lost"), "", Health(Status.NOT_FOUND, "is not there"), Role.DECLARED),
        seen("Job", "b", Status.IN_PROGRESS),
    ]
    tree = tree_of(*objects)
    assert names(tree.roots) == ["lost", "b", "a", ("web", [("web-1", ["web-1-1", "web-1-0"])])]
    assert (tree.count, tree.shown, tree.states) == (7, 7, {"current": 4, "failed": 1, "in progress": 1, "missing": 1})


def test_beyond_the_bound_the_worst_stay_and_the_rest_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inventory_tree, "MOST", 4)
    pods = [seen("Pod", f"p{number}", Status.FAILED if number == 7 else Status.CURRENT, "web") for number in range(9)]
    tree = tree_of(seen("StatefulSet", "web"), seen("ConfigMap", "a"), *pods)
    assert names(tree.roots) == ["a", ("web", ["p7", "p0"])]
    assert (tree.count, tree.shown, tree.roots[1].more, tree.states["failed"]) == (11, 4, 7, 1)


def test_a_tree_of_long_texts_stays_below_its_bytes() -> None:
    pods = [seen("Pod", f"p{number}", Status.FAILED, message="\u2603" * 9000) for number in range(2500)]
    tree = tree_of(*pods)
    assert tree.count == 2500
    assert 100 < tree.shown < inventory_tree.MOST
    assert ANSWER * 0.9 < len(json.dumps(plain(tree))) < ANSWER * 1.1
    assert len(tree.roots) == tree.shown


def test_texts_are_masked_then_cut_and_not_shown_of_what_holds_a_secret() -> None:
    failed = seen("Pod", "p", Status.FAILED, message=f"{'x' * 280}http://ann:hunter2-hunter2@db")
    assert tree_of(failed).roots[0].message == f"{'x' * 280}http://ann:***@db"
    assert tree_of(replace(failed, closed=True)).roots[0].message == UNTOLD
    lost = SeenObject(failed.identity, "", Health(Status.NOT_FOUND, "is not there"), Role.DECLARED, closed=True)
    assert tree_of(lost).roots[0].message == "is not there"


def test_the_pod_that_does_worst_comes_first_else_the_newest() -> None:
    facts = PodFacts("Running", "", 1, 1, 0, "node")
    pods = [seen("Pod", name, owner="web", created=at, pod=facts) for name, at in (("a", "2026-01-02"), ("b", "2026-01-03"))]
    web = seen("StatefulSet", "web")
    assert [each.uid for each in Inventory("shop", "", "", (web, *pods)).pods(web)] == ["b", "a"]
    ill = seen("Pod", "c", Status.FAILED, "web", created="2026-01-01", pod=facts)
    inventory = Inventory("shop", "", "", (web, *pods, ill))
    assert [each.uid for each in inventory.pods(web)] == ["c", "b", "a"]
    assert [each.uid for each in inventory.pods(pods[0])] == ["a"]


@pytest.mark.parametrize(
    ("statuses", "facts"),
    [
        ([{"ready": True, "restartCount": 2, "state": {"running": {}}}], PodFacts("Running", "", 1, 2, 2, "n")),
        (
            [{"state": {"waiting": {"reason": "CrashLoopBackOff"}}, "restartCount": 5}],
            PodFacts("Running", "CrashLoopBackOff", 0, 2, 5, "n"),
        ),
        (
            [{"state": {"waiting": {"reason": "ContainerCreating"}}}, {"state": {"waiting": {"reason": "ErrImagePull"}}}],
            PodFacts("Running", "ErrImagePull", 0, 2, 0, "n"),
        ),
        ([{"state": {"terminated": {"reason": "Completed"}}}], PodFacts("Running", "", 0, 2, 0, "n")),
        ("nonsense", PodFacts("Running", "", 0, 2, 0, "n")),
    ],
)
def test_what_of_a_pod_people_look_for(statuses: Any, facts: PodFacts) -> None:
    live = {"spec": {"nodeName": "n", "containers": [{}, {}]}, "status": {"phase": "Running", "containerStatuses": statuses}}
    assert PodFacts.of(live) == facts


def test_what_is_looked_for_follows_from_the_kinds_that_there_are() -> None:
    def plurals(*kinds: tuple[str, str]) -> list[str]:
        return [each.plural for each in owned_below(GroupKind(*kind) for kind in kinds)]

    assert plurals(("apps", "Deployment")) == ["replicasets", "pods"]
    assert plurals(("batch", "CronJob")) == ["jobs", "pods"]
    assert plurals(("", "Service"), ("apps", "DaemonSet")) == ["pods", "endpointslices"]
    assert plurals(("", "ConfigMap"), ("example.com", "Deployment")) == []


def test_an_owner_is_known_before_what_it_owns() -> None:
    order = [each.group_kind for each in OWNED]
    for number, (resource, owners) in enumerate(OWNED.items()):
        assert not owners & set(order[number:]), resource.kind
