"""A record is of one object: made anew under its name it is the same instance, another object with a name that was cut alike isn't."""

from __future__ import annotations

from dataclasses import replace

import pytest

from handler.config.git_settings import Repository
from handler.config.instance_target import instance_target
from handler.config.settings import Target
from handler.config.trigger_settings import ResourceTrigger, TriggerSettings, WatchedResource
from handler.engine.run.context import recorded_instance
from handler.model.errors import StateInvalid
from handler.model.instance import Instance
from handler.model.names import Identity
from handler.state.record import RecordedInstance, State

IDENTITY = Identity("example.com", "Widget", "ns", "a")
TEMPLATE = Target("shop", Repository("https://git.example.com/shop.git"), ("*",))
TRIGGER = TriggerSettings(ResourceTrigger("widget", (WatchedResource("widget", "example.com/v1", "Widget"),)))
TARGET = instance_target(replace(TEMPLATE, trigger=TRIGGER), Instance(IDENTITY, "u-2", {}, 7, definition="crd-2"))
BLANK = State("shop.ns.a", "default", "cluster")


def test_a_run_records_the_object_that_it_is_for() -> None:
    found = RecordedInstance(IDENTITY, "u-2", "crd-2", 7)
    assert recorded_instance(TARGET, BLANK) == found
    assert recorded_instance(TARGET, replace(BLANK, instance=RecordedInstance(IDENTITY, "u-1", "crd-1", 3))) == found


def test_an_object_keeps_the_definition_that_it_was_recorded_with() -> None:
    """A look may pair an object that went with its definition with the one that came after that."""
    known = RecordedInstance(IDENTITY, "u-2", "crd-1", 3)
    assert recorded_instance(TARGET, replace(BLANK, instance=known)) == replace(known, generation=7)


def test_a_definition_that_may_not_be_read_any_more_stays_as_it_was_known() -> None:
    unread = replace(TARGET, instance=replace(TARGET.instance, definition=""))
    found = recorded_instance(unread, replace(BLANK, instance=RecordedInstance(IDENTITY, "u-1", "crd-1")))
    assert found
    assert found.definition == "crd-1"


def test_a_configured_target_is_for_no_object() -> None:
    assert recorded_instance(TEMPLATE, BLANK) is None


def test_the_record_of_another_object_is_refused() -> None:
    other = RecordedInstance(replace(IDENTITY, name="b"), "u-9")
    with pytest.raises(StateInvalid) as caught:
        recorded_instance(TARGET, replace(BLANK, instance=other))
    (problem,) = caught.value.problems
    assert problem.message == "its record is of Widget/ns/b, and Widget/ns/a has the same name as a target"
    assert problem.fix == "give Widget/ns/a another name"
