"""Instances as the API shows them: counted on their template's row, listed a page at a time, one by its name; by one LIST."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

import pytest

from handler.app.target_status import TargetStatusReader
from handler.config.settings import Target
from handler.config.trigger_settings import ResourceTrigger, TriggerSettings, WatchedResource
from handler.model.errors import NoInstance, StateInvalid
from handler.model.names import Identity
from handler.state.record import RecordedInstance, RunStatus, TargetHealth
from handler.state.record_format import stamp
from tests.fakes.objects import FakeObjects
from tests.fakes.signed_webhooks import SHOP, door_settings
from tests.fakes.worker_parts import remember
from tests.unit.state.samples import blank, sha

TRIGGER = TriggerSettings(ResourceTrigger("widget", (WatchedResource("widget", "example.com/v1", "Widget"),)))


def put(objects: FakeObjects, name: str, phase: str = "applied", **more: Any) -> None:
    identity = Identity("example.com", "Widget", *name.split(".")[1:])
    known: dict[str, Any] = {
        "instance": RecordedInstance(identity, f"uid-{name}"),
        "health": TargetHealth("healthy", stamp(time.time()), stamp(time.time())),
        "status": RunStatus(phase),
    }
    remember(objects, replace(blank(commit=sha("b")), target=name, repository=SHOP, **known | more))


@pytest.fixture
def objects() -> FakeObjects:
    found = FakeObjects()
    for name in ("a", "b", "c"):
        put(found, f"shop-prod.shop.{name}", "failed" if name == "b" else "applied")
    put(found, "shop-prod.dev.x")
    put(found, "shop-dev.shop.y")  # of a target that is no template
    put(found, "shop-prod.shop.copied", instance=None)
    return found


@pytest.fixture
def reader(objects: FakeObjects) -> TargetStatusReader:
    known = door_settings()
    targets = tuple(replace(each, trigger=TRIGGER) if each.name == "shop-prod" else each for each in known.targets)

    def here(_target: Target) -> FakeObjects:
        return objects

    return TargetStatusReader(replace(known, targets=targets, health_interval=0.0), here, 60.0)


def test_a_template_s_row_says_how_many_instances_there_are_and_how_many_are_in_trouble(
    objects: FakeObjects, reader: TargetStatusReader
) -> None:
    asked: list[str] = []
    objects.before = lambda verb, _body: asked.append(verb)
    rows = {row["target"]: row.get("instances") for row in reader.targets(["shop-prod", "shop-dev"])}
    assert rows == {"shop-prod": {"count": 4, "unwell": 1}, "shop-dev": None}
    assert asked == ["list"], "no request an instance"


def test_instances_are_listed_a_page_at_a_time_by_one_look(objects: FakeObjects, reader: TargetStatusReader) -> None:
    asked: list[str] = []
    objects.before = lambda verb, _body: asked.append(verb)
    first = reader.instances("shop-prod", ["*"], "", 3)
    assert [row["target"] for row in first["instances"]] == ["shop-prod.dev.x", "shop-prod.shop.a", "shop-prod.shop.b"]
    assert (first["count"], first["unwell"], first["next"]) == (4, 1, "shop-prod.shop.b")
    assert asked == ["list"]
    last = reader.instances("shop-prod", ["*"], first["next"], 3)
    assert [(row["target"], row["phase"], row["recorded"]) for row in last["instances"]] == [("shop-prod.shop.c", "applied", True)]
    assert last["next"] is None


def test_only_instances_that_globs_cover_are_listed_and_counted(reader: TargetStatusReader) -> None:
    found = reader.instances("shop-prod", ["shop-prod.dev.*", "infra"], "", 3)
    assert [row["target"] for row in found["instances"]] == ["shop-prod.dev.x"]
    assert (found["count"], found["unwell"]) == (1, 0)


def test_an_instance_is_read_by_its_name(reader: TargetStatusReader) -> None:
    found = reader.target("shop-prod.shop.b")
    assert (found["target"], found["state"]["status"]["phase"], found["path"]) == ("shop-prod.shop.b", "failed", "")
    (row,) = reader.targets(["shop-prod.shop.b"])
    assert (row["target"], row["phase"]) == ("shop-prod.shop.b", "failed")
    assert "instances" not in row
    assert reader.row("shop-prod.shop.b")["phase"] == "failed"


@pytest.mark.parametrize("name", ["shop-prod.shop.gone", "shop-prod.shop.copied"])
def test_a_name_without_an_instance_s_record_is_no_instance(reader: TargetStatusReader, name: str) -> None:
    with pytest.raises(NoInstance, match=rf"target {name}: has no record; anneal status shop-prod"):
        reader.target(name)


@pytest.mark.parametrize("name", ["shop-dev.shop.y", "other.shop.a", "shop-prod.", "shop-prod..a", "shop-prod.Shop"])
def test_a_name_that_no_template_stands_for_is_not_configured(reader: TargetStatusReader, name: str) -> None:
    with pytest.raises(StateInvalid, match="is not configured"):
        reader.target(name)
