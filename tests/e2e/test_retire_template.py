"""`anneal retire` of a template that has left the configuration, or has another name: all of its instances end, once that was agreed to."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from infra.githost import Host
from tests.e2e.widget_operator import WidgetOperator
from tests.kubectl import Kubectl
from tests.patience import until

Open = Callable[..., WidgetOperator]


@pytest.fixture
def opened(host: Host, kubectl: Kubectl, tmp_path: Path) -> Iterator[Open]:
    made: list[WidgetOperator] = []

    def start(*names: str, **settings: Any) -> WidgetOperator:
        widgets = WidgetOperator(host, kubectl, tmp_path, **settings)
        made.append(widgets)
        for name in names:
            widgets.create(name)
        return widgets

    yield start
    for each in made:
        each.close()


def written(widgets: WidgetOperator, change: Callable[[dict[str, Any]], None]) -> None:
    """Change the only target of the configuration."""
    body = json.loads(widgets.config.read_text())
    change(body["targets"][0])
    widgets.config.write_text(json.dumps(body))


def removed(widgets: WidgetOperator) -> None:
    """Take the template out of the configuration, which has a target of manifests instead."""
    manifest = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "beside"}, "data": {"key": "1"}}
    widgets.work.write("beside/beside.json", json.dumps(manifest)).commit("beside")
    widgets.work.push()

    def change(target: dict[str, Any]) -> None:
        del target["trigger"]
        target |= {"name": "beside", "path": "beside", "namespace": widgets.name, "renderer": {"type": "file"}}

    written(widgets, change)


def own_record(widgets: WidgetOperator) -> dict[str, Any] | None:
    return widgets.kubectl.ask("GET", f"/api/v1/namespaces/{widgets.name}/configmaps/anneal-{widgets.name}")


def test_a_template_that_is_removed_ends_with_all_its_instances_and_its_record(opened: Open) -> None:
    widgets = opened("a", "b")
    server = widgets.serve()
    until(lambda: widgets.made() == {"a-1": "1", "b-1": "1"}, widgets.told)
    widgets.cli("suspend", widgets.name)
    assert own_record(widgets)
    retire = ("retire", widgets.name, "--prune")
    assert "take it out of anneal.yaml first" in widgets.cli(*retire, "-y", code=1)
    removed(widgets)
    instance = f"{widgets.name}.{widgets.name}.a"
    for name in (widgets.name, instance):
        assert "looks after it: a configuration has it still" in widgets.cli("retire", name, "--prune", "-y", code=1)
    assert "retired" not in widgets.cli("status")
    server.stop()
    shown = " ".join(widgets.cli("status").split())
    assert f"retired: the instances of {widgets.name} ({instance}, " in shown
    assert f"retire {widgets.name} --prune" in shown
    assert "-y" in widgets.cli(*retire, code=64)
    shown = widgets.cli(*retire, "--dry-run")
    assert f"of 2 live objects of {widgets.name} in all, 2 would be deleted, and 0 would stay" in shown
    assert f"{instance} (Widget/{widgets.name}/a)" in shown
    assert widgets.made() == {"a-1": "1", "b-1": "1"}
    widgets.cli(*retire, "-y")
    assert (widgets.made(), widgets.records(), own_record(widgets)) == ({}, set(), None)
    assert widgets.widget("a")
    assert widgets.widget("b")
