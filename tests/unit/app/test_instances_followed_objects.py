"""What is followed by the rights of a namespace's ServiceAccount goes with the namespace's last instance."""

from __future__ import annotations

from typing import Any, ClassVar

import pytest

from handler.app.instances import followed_objects
from handler.app.instances.followed_objects import FollowedObjects
from handler.config.git_settings import Repository
from handler.config.instance_target import instance_target
from handler.config.settings import Target
from handler.config.trigger_settings import ResourceTrigger, TriggerSettings, WatchedResource
from handler.model.instance import Instance
from handler.model.names import Identity, Resource

SHARED = WatchedResource("shared", "v1", "ConfigMap", namespace="platform")
OWN = WatchedResource("own", "v1", "Service")
TRIGGER = ResourceTrigger("widget", (WatchedResource("widget", "example.com/v1", "Widget"), SHARED, OWN), service_account="maker")
TEMPLATE = Target("shop", Repository("https://git.example.com/shop.git"), ("*",), trigger=TriggerSettings(TRIGGER))


class Ways:
    """A cluster that serves everything."""

    def api(self, target: Target, *, impersonated: bool = True) -> Ways:
        return self

    def discovery(self, target: Target) -> Ways:
        return self

    def find(self, api_version: str, kind: str) -> Resource:
        return Resource("", "v1", kind, f"{kind.lower()}s", True)


class Open:
    """A lister, or what follows by one; `left`: those that are open."""

    left: ClassVar[list[Open]] = []

    def __init__(self, *_: Any) -> None:
        self.left.append(self)

    def follow(self, *_: Any) -> Open:
        return Open()

    def close(self) -> None:
        self.left.remove(self)


def test_a_namespace_that_goes_leaves_no_watch_of_another_by_its_account(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(followed_objects, "Lister", Open)
    objects = FollowedObjects(Ways(), lambda *_: None)  # type: ignore[arg-type]  # as much of it as is used
    targets = {name: instance_target(TEMPLATE, Instance(Identity("example.com", "Widget", name, "a"), "u", {})) for name in ("a", "b")}
    for namespace, target in targets.items():
        objects.follow(target, SHARED, "platform")
        objects.follow(target, OWN, namespace)
    assert len(Open.left) == 6
    objects.leave("shop", "a")
    assert {key[2] for key in objects._followed} == {"b/maker"}
    assert len(Open.left) == 3
