"""Each object of a trigger's main resource is an instance: applied as it changes, pruned once it is gone for certain, never on doubt."""

from __future__ import annotations

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

    def start(**settings: Any) -> WidgetOperator:
        made.append(WidgetOperator(host, kubectl, tmp_path, **settings))
        return made[-1]

    yield start
    for each in made:
        each.close()


def test_an_instance_follows_its_object_from_its_creation_to_its_end(opened: Open) -> None:
    widgets = opened()
    widgets.serve()
    widgets.create("a", count=3, size=1)
    until(lambda: widgets.made() == {"a-1": "1", "a-2": "1", "a-3": "1"}, widgets.told)
    until(lambda: widgets.ready("a") == "True Applied", widgets.told)
    widgets.change("a", size=2)
    until(lambda: widgets.made() == {"a-1": "2", "a-2": "2", "a-3": "2"}, widgets.told)
    widgets.change("a", count=1)
    until(lambda: widgets.made() == {"a-1": "2"}, widgets.told)  # what it renders no more is pruned
    widgets.change("a", size=-1)
    until(lambda: widgets.ready("a") == "False Refused", widgets.told)
    assert widgets.made() == {"a-1": "2"}
    widgets.change("a", size=3, owns=True)
    until(lambda: widgets.made() == {"a-1": "3"} and widgets.ready("a") == "True Applied", widgets.told)
    widgets.change("a", count=2)
    until(lambda: widgets.made() == {"a-1": "3", "a-2": "3"}, widgets.told)
    widgets.change("a", count=1)
    until(lambda: widgets.made() == {"a-1": "3"}, widgets.told)  # though its own object owns it
    widgets.push(widgets.program.replace("c.spec.size)", "c.spec.size) + '0'"))
    until(lambda: widgets.made() == {"a-1": "30"}, widgets.told)
    widgets.change("a", owns=False)
    until(lambda: widgets.ready("a") == "True Applied", widgets.told)
    widgets.delete("a")
    until(lambda: not widgets.made() and not widgets.records(), widgets.told)


def test_what_hides_objects_prunes_nothing(opened: Open) -> None:
    widgets = opened(settings={"prune": {"holdAbove": {"count": 1, "fraction": 0.1}}})
    for name in "abc":
        widgets.create(name)
    server = widgets.serve()
    until(lambda: widgets.made().keys() == {"a-1", "b-1", "c-1"}, widgets.told)
    # no longer selected: its object lives
    server.stop()
    widgets.configure(main={"labelSelector": {"matchLabels": {"selected": "yes"}}})
    server.start().ready()
    until(lambda: any("doesn't select it any more" in str(run.get("note")) for run in server.runs(target=widgets.name)), widgets.told)
    assert widgets.made().keys() == {"a-1", "b-1", "c-1"}
    # dropped by a transformation
    server.stop()
    widgets.configure(main={"keyTransformations": [{"action": "drop", "regex": ".*/b"}]})
    server.start().ready()
    until(lambda: any("stays: Widget" in str(run.get("note")) for run in server.runs(target=widgets.name)), widgets.told)
    assert widgets.made().keys() == {"a-1", "b-1", "c-1"}
    # several that vanish together are held, until a person approves
    server.stop()
    widgets.configure()
    for name in "ab":
        widgets.delete(name)
    server.start().ready()
    until(lambda: server.runs(target=widgets.name, outcome="held"), widgets.told)
    assert widgets.made().keys() == {"a-1", "b-1", "c-1"}
    shown = widgets.cli("status", widgets.name)
    assert [f"prune Widget/{widgets.name}/{name}" in shown for name in "abc"] == [True, True, False]
    # with their definition all objects go: no wish about any of them
    widgets.undefine()
    until(lambda: server.runs(target=widgets.name, code="kind-not-served"), widgets.told)
    assert widgets.made().keys() == {"a-1", "b-1", "c-1"}
    widgets.define()
    made_anew = "was deleted and made anew"
    until(lambda: any(made_anew in str(run.get("note")) for run in server.runs(target=widgets.name)), widgets.told)
    assert widgets.made().keys() == {"a-1", "b-1", "c-1"}


def test_what_is_paused_or_not_to_be_pruned_stays_and_the_plan_shows_what_will_go(opened: Open) -> None:
    widgets = opened()
    widgets.create("a")
    instance = f"{widgets.name}.{widgets.name}.a"
    widgets.cli("apply", widgets.name)
    assert widgets.made() == {"a-1": "1"}
    widgets.delete("a")
    assert f"ConfigMap/{widgets.name}/a-1" in widgets.cli("plan", widgets.name)
    assert "and this run prunes nothing" in widgets.cli("apply", widgets.name, "--no-prune")
    widgets.cli("suspend", instance)
    assert f"anneal resume {instance}" in widgets.cli("apply", widgets.name)
    assert widgets.made() == {"a-1": "1"}
    widgets.cli("resume", instance)
    widgets.cli("apply", widgets.name)
    assert (widgets.made(), widgets.records()) == ({}, set())
    assert f"{instance} ended" in widgets.cli("-v", "history", widgets.name)
    assert "is no instance" in widgets.cli("history", instance, code=1)


def test_what_lives_already_is_taken_over_only_where_the_trigger_says_so(opened: Open, kubectl: Kubectl) -> None:
    widgets = opened()
    kubectl.run("create", "configmap", "a-1", "-n", widgets.name, "--from-literal=size=9")
    widgets.create("a")
    assert "adoptUnowned: true" in widgets.cli("apply", widgets.name, code=1)
    assert widgets.made() == {"a-1": "9"}
    instance = f"{widgets.name}.{widgets.name}.a"
    assert "adoptUnowned: true" in widgets.cli("adopt", instance, code=64)
    for command in ("adopt", "prune"):
        assert "is a template" in widgets.cli(command, widgets.name, *(("-y",) if command == "prune" else ()), code=1)
    rows = [line.split()[:2] for line in widgets.cli("status", widgets.name).splitlines()]
    assert [widgets.name, "template"] in rows  # no record says that it failed
    assert "which lives" in widgets.cli("retire", instance, "--prune", "-y", code=1)
    widgets.configure(adoptUnowned=True)
    widgets.cli("apply", widgets.name)
    assert widgets.made() == {"a-1": "1"}


def test_an_instance_may_declare_nothing_but_not_lose_all_it_has(opened: Open) -> None:
    widgets = opened()
    assert "there is no instance to plan yet" in widgets.cli("check", widgets.name)
    widgets.create("a", count=0)
    server, instance = widgets.serve(), f"{widgets.name}.{widgets.name}.a"
    until(lambda: widgets.ready("a") == "True Applied", widgets.told)
    widgets.change("a", count=1)
    until(lambda: widgets.made() == {"a-1": "1"}, widgets.told)
    widgets.change("a", count=0)
    until(lambda: server.runs(target=instance, code="plan-refused"), widgets.told)
    assert widgets.made() == {"a-1": "1"}
    assert "no running server" not in widgets.cli("status", instance)
    widgets.settings["prune"] = {"allowEmpty": True}
    widgets.configure()
    assert "the only live object would be deleted" in widgets.cli("apply", instance, code=3)
    assert widgets.made() == {"a-1": "1"}
