"""What is refused as it is read is reported without its values: in no result, no record and no log line."""

from __future__ import annotations

import base64
import logging
from typing import Any

import pytest

from handler.model.result import Outcome, Result
from tests.unit.engine.in_memory_shop import Body, InMemoryShop, body, config_map

CANARY = "canary7f3a9ce1"
ENCODED = base64.b64encode(CANARY.encode()).decode()
BROKEN = (
    "value: |\n  {canary}\n bad: indent",
    "value: {canary}\nvalue: {canary}",
    "value: !{canary} x",
    "value: !!{canary} x",
    "value: *{canary}",
    "value: &{canary}",
    "value: '{canary}",
    "value: [{canary}",
    "\tvalue: {canary}",
)


def workload(name: str, variable: Any) -> Body:
    pods = {"containers": [{"name": "main", "image": "a:1", "env": [{"name": "DB_PASSWORD", "value": variable}]}]}
    return body(name, "Deployment", "apps/v1", spec={"selector": {"matchLabels": {"a": "b"}}, "template": {"spec": pods}})


def assert_silent(shop: InMemoryShop, caplog: pytest.LogCaptureFixture, *results: Result) -> None:
    logged = [f"{each.getMessage()} {each.__dict__}" for each in caplog.records]
    said = [*map(repr, results), *logged, repr(shop.state())]
    assert not [text[:200] for text in said if CANARY in text or ENCODED in text]


def test_broken_yaml_beside_a_value_is_reported_without_it(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    for text in BROKEN:
        shop = InMemoryShop()
        value = text.replace("{canary}", CANARY)
        shop.push(config_map("a"), **{"secret.yaml": f"apiVersion: v1\nkind: Secret\nmetadata: {{name: s}}\nstringData:\n  {value}\n"})
        result = shop.run()
        assert (result.outcome, result.who) == (Outcome.FAILED, "author")
        assert "shop/secret.yaml:" in result.message
        assert_silent(shop, caplog, result)


def test_values_of_the_wrong_type_are_all_reported_without_them(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    mistakes = {
        "mapping": body("mapping", "Secret", data={"value": {"deep": CANARY}}),
        "text": body("text", "Secret", data=CANARY),
        "list": body("list", "Secret", stringData={"value": [CANARY]}),
        "map": body("map", data={"password": [CANARY]}),
        "note": config_map("note", annotations={"example.com/token": [CANARY]}),
        "variable": workload("variable", [CANARY]),
    }
    shop = InMemoryShop()
    shop.push(*mistakes.values(), config_map("fine"))
    results = [shop.run(), shop.run("drift"), shop.run("oneoff", dry_run=True)]
    assert {(result.outcome, result.who) for result in results} == {(Outcome.FAILED, "author")}
    assert {name for name in mistakes if f"/shop/{name}: " in results[0].message} == mistakes.keys()
    assert_silent(shop, caplog, *results)
