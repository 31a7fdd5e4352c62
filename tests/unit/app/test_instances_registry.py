"""The registry of instances: what their renders may import of the cluster."""

from __future__ import annotations

from typing import Any

import pytest

from handler.app.instances.registry import Instances
from handler.config.git_settings import Repository
from handler.config.instance_target import instance_target
from handler.config.settings import Target
from handler.config.trigger_settings import ResourceTrigger, TriggerSettings, WatchedResource
from handler.model.errors import OperatorError
from handler.model.instance import Instance

WIDGETS = ResourceTrigger("widget", (WatchedResource("widget", "example.com/v1", "Widget"), WatchedResource("pod", "v1", "Pod")))
TEMPLATE = Target("shop", Repository("https://git.example.com/shop.git"), ("*",), trigger=TriggerSettings(WIDGETS))


class Everything:
    """Lists one object of each kind."""

    def objects(self, target: Target, watched: WatchedResource, namespace: str) -> list[dict[str, Any]]:
        return [{"kind": watched.kind, "of": target.name, "in": namespace}]


def test_a_resource_that_isnt_watched_is_refused_with_those_that_are_and_the_block_to_add() -> None:
    live = {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "a", "namespace": "ns", "uid": "u"}}
    registry = Instances(None, Everything())  # type: ignore[arg-type]  # no cluster is asked
    lists = registry.lists(instance_target(TEMPLATE, Instance.of(live)))
    assert lists("pod") == [{"kind": "Pod", "of": "shop.ns.a", "in": ""}]
    with pytest.raises(OperatorError) as caught:
        lists("other")
    (problem,) = caught.value.problems
    assert (problem.subject, problem.message) == ("target shop", "its trigger watches no resource other")
    assert problem.fix == (
        "it watches widget, pod; for another add - {name: other, apiVersion: GROUP/VERSION, kind: KIND} under trigger.resource.resources"
    )
