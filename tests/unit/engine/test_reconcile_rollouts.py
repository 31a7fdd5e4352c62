"""Rollouts as authors write them and change them: where they stand, what their steps name, and what of others they leave alone."""

from __future__ import annotations

import json
from typing import Any

import pytest

from handler.engine.rollout_runner.actions import ACTIONS
from handler.model.result import Outcome
from tests.unit.engine.in_memory_shop import Body, InMemoryShop, config_map

pytestmark = pytest.mark.slow

OTHERS = {"argocd.argoproj.io/instance": "other"}


@pytest.fixture
def shop() -> InMemoryShop:
    made = InMemoryShop()
    made.configure(rollout="rollout.yaml")
    return made


def rollout(*steps: dict[str, Any]) -> Body:
    head = {"apiVersion": "workflow.kubernetes.io/v1alpha1", "kind": "Rollout", "metadata": {"name": "r"}}
    return {**head, "spec": {"groups": [{"steps": [*steps]}]}}


def push(shop: InMemoryShop, files: dict[str, Body], **beside: str) -> str:
    """Push exactly these files of the path, and texts beside it."""
    sha = shop.host.commit({**{f"shop/{name}": json.dumps(each, indent=1) for name, each in files.items()}, **beside})
    shop.host.push(sha)
    return sha


def roll(shop: InMemoryShop, files: dict[str, Body], *steps: dict[str, Any]) -> str:
    return push(shop, files, **{"rollout.yaml": json.dumps(rollout(*steps), indent=1)})


def outcomes(shop: InMemoryShop) -> dict[str, str]:
    found = shop.state().rollout
    assert found
    return {each.step: each.outcome for each in found.steps}


def test_a_rollout_outside_of_the_path_is_a_reason_to_run(shop: InMemoryShop) -> None:
    files = {"a.json": config_map("a"), "b.json": config_map("b")}
    roll(shop, files, {"object": "a.json", "action": "CreateOrUpdate"})
    shop.applied()
    assert outcomes(shop) == {"a.json": "done"}
    sha = roll(shop, files, {"object": "b.json", "action": "CreateOrUpdate"})
    shop.applied()
    assert (outcomes(shop), shop.state().commit) == ({"b.json": "done"}, sha)
    roll(shop, files, {"object": "nowhere.json", "action": "Create"})
    refused = shop.run()
    assert (refused.outcome, refused.code) == (Outcome.FAILED, "manifest-invalid")
    lines = refused.message.splitlines()
    assert [line.partition(";")[0] for line in lines] == [
        "rollout.yaml:12: spec.groups[0].steps[0].object: unknown object 'nowhere.json'",
        f"rollout.yaml:13: spec.groups[0].steps[0].action: unknown action 'Create': available actions are {', '.join(ACTIONS)}",
    ]
    assert lines[0].endswith("; known are: a.json, b.json")
    push(shop, files)
    refused = shop.run()
    assert (refused.outcome, refused.code) == (Outcome.FAILED, "source-refused")
    assert "rollout.yaml: isn't in commit" in refused.message
    assert "correct `rollout` of the target, or add the file" in refused.message


def test_a_rollout_that_no_target_names_is_refused_with_the_line_that_names_it(shop: InMemoryShop) -> None:
    shop.configure(rollout="")
    push(shop, {"a.json": config_map("a"), "rollout.json": rollout()})
    refused = shop.run()
    assert refused.code == "manifest-invalid"
    assert "add to target shop: rollout: shop/rollout.json" in refused.message


def test_create_if_not_exist_leaves_an_unowned_object_and_isnt_asked_for_its_health(shop: InMemoryShop) -> None:
    """It doesn't carry our label, so that no watch of ours would ever show it."""
    before = shop.create(config_map("theirs"))
    files = {"theirs.json": config_map("theirs", "2"), "ours.json": config_map("ours")}
    steps: list[dict[str, Any]] = [{"object": name, "action": "CreateIfNotExist"} for name in files]
    roll(shop, files, *steps)
    assert shop.applied().counts == {"created": 1, "skipped": 1}
    assert shop.live(before) == before
    roll(shop, files, {**steps[0], "success": [{"healthy": {}}]}, steps[1])
    refused = shop.run()
    assert refused.code == "plan-refused"
    assert "ConfigMap/shop/theirs: isn't ours, so that its checks can't follow it (step theirs.json in group 1)" in refused.message


def test_a_step_over_a_list_has_all_its_items_and_delete_if_exist_deletes_members_alone(shop: InMemoryShop) -> None:
    listed = {"apiVersion": "v1", "kind": "List", "items": [config_map("one"), config_map("two")]}
    old, kept = config_map("old"), config_map("kept", labels=OTHERS)
    for theirs in (old, kept):
        shop.create(theirs)
    files = {"list.json": listed, "old.json": old}
    steps = [{"object": "list.json", "action": "CreateOrUpdate"}, {"object": "old.json", "action": "DeleteIfExist"}]
    roll(shop, {**files, "kept.json": config_map("kept")}, *steps, {"object": "kept.json", "action": "DeleteIfExist"})
    refused = shop.run()
    assert refused.code == "plan-refused"
    for name in ("kept", "old"):
        assert f"{name}: isn't a member of target shop, and step {name}.json in group 1 would delete it" in refused.message
    assert shop.live(old), "nothing is written before everything is allowed"
    roll(shop, files, {"object": "old.json", "action": "CreateOrUpdate"})
    assert shop.applied().counts == {"created": 2, "configured": 1}, "an apply takes it over"
    roll(shop, files, *steps)
    assert shop.applied().counts == {"unchanged": 2, "pruned": 1}
    assert outcomes(shop) == {"list.json[0]": "done", "list.json[1]": "done", "old.json": "done"}
    assert (shop.live(old), shop.live(kept) is None) == (None, False)
