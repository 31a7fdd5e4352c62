"""Both API servers behind one face: the one in memory and the real one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from handler.cluster.api import Api
from handler.cluster.discovery import Discovery
from handler.cluster.own_objects import OwnObjects
from handler.cluster.write import DryRunner, Writer
from handler.model.names import Resource, identity_of

Body = dict[str, Any]
MERGE = "application/merge-patch+json"


@dataclass
class Side:
    """One of the two servers, and a namespace on it."""

    api: Api
    namespace: str

    def __post_init__(self) -> None:
        self.discovery = Discovery(self.api)
        self.writer = Writer(self.api, lambda: None)
        self.runner = DryRunner(self.api)
        self.objects = OwnObjects(self.api)

    def kind(self, body: Body) -> Resource:
        found = self.discovery.find(body["apiVersion"], body["kind"])
        assert found
        return found

    def path(self, body: Body) -> str:
        return self.kind(body).path(self.namespace, body["metadata"]["name"])

    def apply(self, body: Body, uid: str = "", version: str = "") -> Body:
        self.writer.apply(self.kind(body), body, uid, version)
        return self.live(body)

    def live(self, body: Body) -> Body:
        found = self.api.get(self.path(body))
        assert found
        return found

    def merge(self, body: Body, change: Body, manager: str = "someone") -> Body:
        return self.api.patch(self.path(body), change, MERGE, {"fieldManager": manager})

    def delete(self, live: Body, **conditions: str) -> bool:
        uid = conditions.get("uid", live["metadata"]["uid"])
        return self.writer.delete(self.kind(live), identity_of(live), uid, conditions.get("version", ""))


def config_map(namespace: str, name: str, data: dict[str, str] | None = None, **metadata: Any) -> Body:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": namespace, **metadata},
        "data": data or {"a": "1"},
    }


def secret(side: Side, **fields: Any) -> Body:
    return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s", "namespace": side.namespace}, "data": {"a": "MQ=="}, **fields}


def role(side: Side, verb: str = "get") -> Body:
    rules = [{"apiGroups": [""], "resources": ["pods"], "verbs": [verb]}]
    metadata = {"name": "r", "namespace": side.namespace}
    return {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": metadata, "rules": rules}


def marked(side: Side, name: str = "a", data: dict[str, str] | None = None) -> Body:
    return config_map(side.namespace, name, data, labels={"part": "x"}, annotations={"who": name})


KINDS: list[Callable[[Side], Body]] = [marked, secret, role]
