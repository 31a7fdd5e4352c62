"""What a run of an instance announces names the generation of the object that it was made of; of other targets none."""

from __future__ import annotations

from dataclasses import replace

import pytest

from handler.config.instance_target import instance_target
from handler.config.trigger_settings import ResourceTrigger, TriggerSettings, WatchedResource
from handler.model.event import Job
from handler.model.instance import Instance
from handler.model.result import Outcome
from handler.model.run_event import RunEvent, RunPhase
from tests.unit.engine.in_memory_cluster import group, planted, step

TRIGGER = TriggerSettings(ResourceTrigger("widget", (WatchedResource("widget", "example.com/v1", "Widget"),)))
OBJECT = {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "a", "namespace": "shop", "uid": "u-1", "generation": 7}}


def test_phases_and_the_end_of_an_instances_run_name_its_generation(monkeypatch: pytest.MonkeyPatch) -> None:
    fake = planted()
    handler = fake.handler()
    heard: list[RunEvent] = []
    template = handler.target("shop")
    target = instance_target(replace(template, trigger=TRIGGER), Instance.of(OBJECT))
    sources = {target.name: handler._options.sources["shop"]}
    handler._options = replace(handler._options, announce=heard.append, sources=sources)
    monkeypatch.setattr(handler, "target", lambda name: target if name == target.name else template)
    fake.push({"fresh": "1"}, group("only", step("CreateOrUpdate", "fresh")))
    result = handler.run(Job(target.name, "tick"))
    assert (result.outcome, result.generation) == (Outcome.APPLIED, 7)
    assert {each.generation for each in heard if isinstance(each, RunPhase)} == {7}


def test_the_run_of_a_configured_target_names_none() -> None:
    fake = planted()
    fake.push({"fresh": "1"})
    assert fake.run().generation == 0
