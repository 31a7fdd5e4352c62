"""What puts an object below another: the uid of an owner in its own namespace, and nothing else."""

from __future__ import annotations

from typing import Any

import pytest

from handler.inspect.inventory_look import _owner
from handler.inspect.inventory_tree import Role, SeenObject
from handler.model.health import Health, Status
from handler.model.names import Identity

WEB = SeenObject(Identity("apps", "ReplicaSet", "shop", "web"), "u1", Health(Status.CURRENT), Role.DECLARED)


@pytest.mark.parametrize(
    ("namespace", "references", "owner"),
    [
        ("shop", [{"kind": "ReplicaSet", "name": "web", "uid": "u1"}], "u1"),
        ("shop", [{"kind": "Other", "uid": "x"}, {"kind": "ReplicaSet", "uid": "u1"}], "u1"),
        ("shop", [{"kind": "ReplicaSet", "name": "web", "uid": "u2"}], ""),
        ("shop", [{"kind": "ReplicaSet", "name": "web"}], ""),
        ("shop", [{"kind": "Deployment", "name": "web", "uid": "u1"}], ""),
        ("other", [{"kind": "ReplicaSet", "name": "web", "uid": "u1"}], ""),
        ("shop", [], ""),
        ("shop", "nonsense", ""),
        ("shop", ["nonsense"], ""),
    ],
)
def test_only_the_uid_of_an_owner_in_its_namespace_attaches(namespace: str, references: Any, owner: str) -> None:
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "namespace": namespace, "ownerReferences": references}}
    assert _owner(pod, namespace, {"u1": WEB}) == owner
