"""`anneal retire` of a template that has left the configuration, or has another name: all of its instances end, once that was agreed to."""

from __future__ import annotations

import json
import subprocess
import sys

from tests.e2e.serve_process import ROOT
from tests.e2e.test_retire_template import Open, opened, own_record, removed, written  # noqa: F401 - fixtures, too
from tests.e2e.widget_operator import WidgetOperator
from tests.patience import until


def held(widgets: WidgetOperator, path: str, finalizers: list[str] | None) -> None:
    """Set an object's finalizers."""
    widgets.kubectl.ask("PATCH", path, {"metadata": {"finalizers": finalizers}}, "application/merge-patch+json")


def uids(widgets: WidgetOperator) -> dict[str, str]:
    """Return the uid of each ConfigMap that instances have made, by its name."""
    listed = widgets.kubectl.ask("GET", f"/api/v1/namespaces/{widgets.name}/configmaps") or {}
    return {each["metadata"]["name"]: each["metadata"]["uid"] for each in listed["items"] if "size" in (each.get("data") or {})}


def test_what_a_template_of_another_name_declares_stays_and_is_taken_over(opened: Open) -> None:
    widgets, new = opened("a", "b"), "renamed"
    widgets.cli("apply", widgets.name)
    before = uids(widgets)
    assert before.keys() == {"a-1", "b-1"}
    written(widgets, lambda target: target.update(name=new))
    widgets.delete("b")
    refused = widgets.cli("plan", new, code=1)
    assert f"retire {widgets.name} --prune" in refused
    assert "adoptUnowned: true" in refused
    done = json.loads(widgets.cli("retire", widgets.name, "--prune", "-y", "-o", "json"))
    one, other = (f"ConfigMap/{widgets.name}/{name}" for name in ("a-1", "b-1"))
    assert (done["letGo"], done["deleted"], done["ended"]) == ([one], [other], True)
    assert (uids(widgets), widgets.records()) == ({"a-1": before["a-1"]}, set())
    written(widgets, lambda target: target["trigger"]["resource"].update(adoptUnowned=True))
    widgets.cli("apply", new)
    assert uids(widgets) == {"a-1": before["a-1"]}
    written(widgets, lambda target: target["trigger"]["resource"].pop("adoptUnowned"))
    widgets.change("a", size=2)
    widgets.cli("apply", new)
    assert widgets.made() == {"a-1": "2"}


def test_keep_lets_go_of_all_that_instances_have(opened: Open) -> None:
    widgets = opened("a", "b")
    widgets.cli("apply", widgets.name)
    before, config = uids(widgets), widgets.config.read_text()
    widgets.config.write_text(json.dumps(json.loads(config) | {"stateNamespace": "elsewhere"}))  # still a template, and its objects live
    assert "which lives" in widgets.cli("retire", widgets.name, "--prune", "-y", "--state-namespace", widgets.name, code=1)
    assert (uids(widgets), widgets.records()) == (before, {"a", "b"})
    widgets.config.write_text(config)
    removed(widgets)
    assert "name an instance" in widgets.cli("retire", widgets.name, "--keep", "-y", "--namespace", widgets.name, code=64)
    widgets.cli("retire", widgets.name, "--keep", "-y")
    assert (uids(widgets), widgets.records()) == (before, set())
    listed = widgets.kubectl.ask("GET", f"/api/v1/namespaces/{widgets.name}/configmaps?labelSelector=applyset.kubernetes.io/part-of") or {}
    assert listed["items"] == []


def test_an_instance_that_cant_end_is_named_and_the_others_end(opened: Open) -> None:
    widgets = opened("a", "b", "c")
    widgets.cli("apply", widgets.name)
    widgets.cli("suspend", widgets.name)
    removed(widgets)
    record = f"/api/v1/namespaces/{widgets.name}/configmaps/anneal-{widgets.name}.{widgets.name}.b"
    known = (widgets.kubectl.ask("GET", record) or {})["data"]["target.json"]
    patch = ("PATCH", record)
    widgets.kubectl.ask(*patch, {"data": {"target.json": "nothing"}}, "application/merge-patch+json")
    said = widgets.cli("retire", widgets.name, "--prune", "-y", code=1)
    assert f"anneal-{widgets.name}.{widgets.name}.b" in said
    assert f"retire {widgets.name} --prune" in said
    assert (widgets.made(), widgets.records()) == ({"b-1": "1"}, {"b"})
    assert own_record(widgets)
    widgets.kubectl.ask(*patch, {"data": {"target.json": known}}, "application/merge-patch+json")
    widgets.cli("retire", widgets.name, "--prune", "-y")
    assert (widgets.made(), widgets.records(), own_record(widgets)) == ({}, set(), None)


def test_the_same_command_goes_on_after_a_kill(opened: Open) -> None:
    names = "abcdef"
    widgets = opened(*names)
    widgets.cli("apply", widgets.name)
    removed(widgets)
    last = f"/api/v1/namespaces/{widgets.name}/configmaps/f-1"
    held(widgets, last, ["tests.example.com/kept"])  # so that the command can't be through before it is killed
    command = [sys.executable, "-m", "handler", "--kubeconfig", str(widgets.kubectl.kubeconfig), "-c", str(widgets.config)]
    begun = subprocess.Popen([*command, "retire", widgets.name, "--prune", "-y"], cwd=ROOT, stdout=subprocess.DEVNULL)
    until(lambda: len(widgets.records()) < len(names), widgets.told)
    begun.kill()
    begun.wait()
    assert widgets.records()
    held(widgets, last, None)
    widgets.cli("retire", widgets.name, "--prune", "-y")
    assert (widgets.made(), widgets.records()) == ({}, set())
    assert all(map(widgets.widget, names))
