"""Which changes of which objects ask for a run: of an instance its own object's and those that lead to it, never a status alone."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from handler.app.instances.registry import Instances
from handler.app.instances.template_run import TemplateRuns
from handler.app.instances.watch import InstanceWatch
from handler.cluster.lister import LiveChange
from handler.config.git_settings import Repository
from handler.config.secrets import Secrets
from handler.config.settings import Settings, Target
from handler.config.trigger_settings import KeyTransformation, ResourceTrigger, TriggerSettings, WatchedResource
from handler.model.event import Job
from handler.model.names import Resource, identity_of
from tests.patience import PATIENCE, until

pytestmark = pytest.mark.slow

POD = WatchedResource("pod", "v1", "Pod", key_transformations=(KeyTransformation(regex="(.*)/w-(.*)", replacement="$1/$2"),))
RESOURCES = (WatchedResource("widget", "example.com/v1", "Widget"), POD)
TRIGGER = TriggerSettings(ResourceTrigger("widget", RESOURCES))
TEMPLATE = Target("shop", Repository("https://git.example.com/shop.git"), ("*",), trigger=TRIGGER)
Live = dict[str, Any]


class Ways:
    """A composition root whose cluster serves everything, by no definition."""

    settings, secrets = Settings((TEMPLATE,)), Secrets()

    def api(self, target: Target, *, impersonated: bool = True) -> Ways:
        return self

    def discovery(self, target: Target) -> Ways:
        return self

    def find(self, api_version: str, kind: str) -> Resource:
        return Resource("example.com", "v1", kind, f"{kind.lower()}s", True)

    def get(self, path: str) -> None:
        return None


def widget(name: str = "a", size: int = 1, version: str = "1", **more: Any) -> Live:
    metadata = {"name": name, "namespace": "ns", "uid": f"u-{name}", "resourceVersion": version, **more.pop("metadata", {})}
    return {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": metadata, "spec": {"size": size}, **more}


def pod(name: str, version: str = "1", **more: Any) -> Live:
    metadata = {"name": name, "namespace": "ns", "resourceVersion": version}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, **more}


@pytest.fixture
def watch() -> InstanceWatch:
    ways = Ways()
    instances = Instances.of(ways)  # type: ignore[arg-type]  # as much of it as is used
    runs = TemplateRuns(ways, instances)  # type: ignore[arg-type]  # the same
    runs.started.add("shop")
    return InstanceWatch(runs)


def heard(watch: InstanceWatch, before: Live | None, after: Live | None, resource: int = 0) -> set[str]:
    """Let a change be heard; return whose runs are due by then, at once or later."""
    known = after or before
    assert known
    watch._changed("shop", RESOURCES[resource], LiveChange(identity_of(known), before, after, True))
    due = set(watch._due._due)
    watch._due._due.clear()
    watch._due._asked.clear()
    return due


def test_a_new_and_a_changed_object_run_and_a_status_or_a_version_alone_doesnt(watch: InstanceWatch) -> None:
    assert heard(watch, None, widget()) == {"shop.ns.a"}
    assert heard(watch, widget(), widget(version="2")) == set()
    assert heard(watch, widget(), widget(version="3", status={"conditions": [{"type": "Ready"}]})) == set()
    assert heard(watch, widget(), widget(version="4", size=2)) == {"shop.ns.a"}
    assert heard(watch, widget(), widget(version="5", size=2, metadata={"labels": {"a": "b"}})) == {"shop.ns.a"}


def test_an_object_that_goes_has_its_template_look_and_runs_no_more(watch: InstanceWatch) -> None:
    heard(watch, None, widget())
    going = widget(version="2", metadata={"deletionTimestamp": "2026-01-01T00:00:00Z"})
    assert heard(watch, widget(), going) == set()
    assert heard(watch, going, None) == {"shop"}
    known = watch.instances.known("shop.ns.a")
    assert known
    assert known.instance.terminating
    assert heard(watch, None, widget(version="9", metadata={"uid": "u-new"})) == {"shop.ns.a"}


def test_a_listed_object_runs_the_instance_that_it_leads_to_where_there_is_one(watch: InstanceWatch) -> None:
    heard(watch, None, widget())
    assert heard(watch, None, pod("w-a"), 1) == {"shop.ns.a"}
    assert heard(watch, pod("w-a"), pod("w-a", "2"), 1) == set()
    assert heard(watch, pod("w-a"), pod("w-a", "3", status={"phase": "Running"}), 1) == {"shop.ns.a"}
    assert heard(watch, pod("w-a"), None, 1) == {"shop.ns.a"}
    assert heard(watch, None, pod("w-b"), 1) == set()
    assert heard(watch, None, pod("other"), 1) == set()


def test_what_is_there_when_a_process_starts_is_left_to_the_templates_first_run(watch: InstanceWatch) -> None:
    watch._runs.started.clear()
    assert heard(watch, None, widget()) == set()
    assert heard(watch, None, pod("w-a"), 1) == set()
    assert watch.instances.known("shop.ns.a")


def test_no_mistake_ends_the_thread_that_runs_what_changes(watch: InstanceWatch, monkeypatch: pytest.MonkeyPatch) -> None:
    mistakes, asked = [RuntimeError("can't start new thread")], threading.Event()

    def ask(job: Job) -> None:
        if mistakes:
            raise mistakes.pop()
        asked.set()

    watch.ask = ask
    monkeypatch.setattr(watch, "_follow", lambda *_, **__: {})
    watch._due.put("shop.ns.a")
    thread = threading.Thread(target=watch._run, daemon=True)
    thread.start()
    until(lambda: not mistakes)
    watch._due.put("shop.ns.b")
    assert asked.wait(PATIENCE)
    watch._stop.set()
    thread.join(PATIENCE)


def test_instances_that_come_and_go_leave_nothing(watch: InstanceWatch) -> None:
    for number in range(200):
        heard(watch, None, widget(f"w{number}"))
    assert watch._counts == {("shop", "ns"): 200}
    for number in range(200):
        watch.instances.ended(f"shop.ns.w{number}")
    assert (watch._counts, watch._spaces, watch.instances._known) == ({}, {}, {})
    assert not watch.instances.of_template("shop")
