"""What `anneal retire` refuses of an instance."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from handler.app.instances.registry import Instances
from handler.cli import retire_guards
from handler.cli.retire_guards import RetireRequest, refuse_configured, refuse_living
from handler.cli.session import Session
from handler.config.git_settings import Repository
from handler.config.instance_target import instance_target
from handler.config.settings import Settings, Target
from handler.config.trigger_settings import ResourceTrigger, TriggerSettings, WatchedResource
from handler.engine.run.errors import RequestRefused
from handler.model.instance import Instance
from handler.model.names import Identity
from tests.unit.rows import each_row

TRIGGER = TriggerSettings(ResourceTrigger("widget", (WatchedResource("widget", "example.com/v1", "Widget"),)))
TEMPLATE = Target("grafana", Repository("https://git.example.com/grafana.git"), ("shop",), trigger=TRIGGER)
OBJECT = Instance(Identity("example.com", "Widget", "shop", "main"), "u", {})
NAME = "grafana.shop.main"


class Alone(Session):
    """A session of which only the configuration and the named cluster are asked."""

    def __init__(self, *targets: Target, context: str = "") -> None:
        self.settings, self.kubeconfig, self.context = Settings(targets), "", context

    def ways(self, **_: Any) -> Any:
        return None


@pytest.fixture(autouse=True)
def lives(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Instances, "find", lambda _, name: instance_target(TEMPLATE, OBJECT))
    monkeypatch.setattr(retire_guards, "is_here", lambda _ways, target, _other: target.cluster.context != "next")


def test_an_instance_whose_object_lives_ends_with_that_unless_its_template_is_gone() -> None:
    with pytest.raises(RequestRefused, match="Widget/shop/main, which lives"):
        refuse_living(Alone(TEMPLATE), NAME)
    refuse_living(Alone(), NAME)
    refuse_living(Alone(replace(TEMPLATE, trigger=None)), NAME)  # another target has the name


def test_the_object_of_an_instance_on_a_cluster_that_its_template_has_left_keeps_nothing() -> None:
    there = replace(TEMPLATE, cluster=replace(TEMPLATE.cluster, context="next"))
    refuse_living(Alone(there, context="prod"), NAME)
    with pytest.raises(RequestRefused, match="which lives"):
        refuse_living(Alone(TEMPLATE, context="prod"), NAME)


@each_row(("namespace", "seen"), [("", "would bring all that its instances have back"), ("old", "is a template")])
def test_a_template_that_is_configured_is_refused(namespace: str, seen: str) -> None:
    with pytest.raises(RequestRefused, match=seen):
        refuse_configured(Settings((TEMPLATE,)), TEMPLATE, RetireRequest("grafana", prune=True, namespace=namespace))
