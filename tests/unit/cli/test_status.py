"""What `anneal status` of one target shows beside its table."""

from __future__ import annotations

from dataclasses import replace

from handler.app.target_row import TargetRow
from handler.cli.status import _held
from handler.config.trigger_settings import ResourceTrigger, TriggerSettings, WatchedResource
from handler.state.record import HeldPlan, State
from tests.unit.plan.samples import instance, target

TRIGGER = TriggerSettings(ResourceTrigger("shop", (WatchedResource("shop", "acme.io/v1", "Shop"),)))


def test_what_a_template_holds_is_shown_though_an_instance_in_trouble_stands_above_it() -> None:
    held = HeldPlan("h1", ("3 of 4 instances vanished together",), (("prune", "Shop/shop/main", "u"),), "", "", "", "")
    template = TargetRow(replace(target(), trigger=TRIGGER), 0.0, state=replace(State("shop", "default", "c"), held=held))
    ill = TargetRow(instance(), 0.0)
    assert any("prune Shop/shop/main" in text for text, _ in _held([ill, template], whole=True))
    assert _held([ill, template], whole=False) == []
