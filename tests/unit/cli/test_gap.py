"""`anneal gap` and `anneal orphans`: what goes is said before it goes, and what keeps a plan from being made with the way out."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.cli.in_memory_cli import CliShop, config_map, document

pytestmark = pytest.mark.slow


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> CliShop:
    return CliShop.of(tmp_path, monkeypatch)


def test_orphans_are_told_before_they_go_and_what_a_guard_holds_by_its_approval(shop: CliShop) -> None:
    shop.configure("prune: {holdAbove: {count: 1, fraction: 0.1}}")
    shop.cli("apply")
    shop.hands.annotate(config_map("one"), **{"helm.sh/resource-policy": "keep"})
    shop.declare("three")
    shop.push()
    found = shop.json("orphans", "shop")
    told = {each["object"]: (each["fate"], each["held"], each["reason"]) for each in found["orphans"]}
    assert told == {
        "ConfigMap/shop/two": ("deleted", False, "no longer declared"),
        "ConfigMap/shop/one": ("kept", False, "protected by helm.sh/resource-policy: keep"),
    }
    assert found["counts"] == {"deleted": 1, "recreated": 0, "expires": 0, "kept": 1, "left": 0, "undeclared": 0, "held": 0}
    shop.hands.patch(config_map("one"), {"metadata": {"annotations": {"helm.sh/resource-policy": None}}})
    lines = shop.cli("orphans", "shop", "--exit-code", code=2).stdout.splitlines()
    assert "\N{MINUS SIGN} deleted    ConfigMap/shop/one  (held; no longer declared)" in lines
    before = shop.json("gap", "shop")["hold"]
    assert lines[-1] == f"next: anneal apply shop, then anneal approve shop {before['id']}"
    assert f"anneal approve shop {before['id']}" in shop.cli("apply", "-y", code=3).stdout
    assert (before["recorded"], shop.json("gap", "shop")["hold"]) == (False, before | {"recorded": True})
    command = shop.cli("orphans", "shop").stdout.splitlines()[-1].removeprefix("allow exactly that: anneal ").split()
    shop.cli(*command)
    assert (shop.has("one"), shop.has("two")) == (False, False)
    assert shop.cli("orphans", "shop", "--exit-code").stdout.splitlines() == [f"shop at {shop.host.head[:12]}: no orphans"]


def test_what_keeps_a_plan_from_being_made_is_told_with_its_place_and_the_way_out(shop: CliShop) -> None:
    shop.declare("one", broken=document("ConfigMap", "broken", "v9"))
    shop.push()
    seen = shop.cli("gap", "shop", code=1)
    assert "deploy/broken.yaml:1: ConfigMap/broken: the API server doesn't serve v9 ConfigMap" in seen.stderr
    assert seen.stdout.splitlines() == ["shop: failed"]
    found = shop.json("orphans", "shop", code=1)
    assert (found["outcome"], found["orphans"], found["problems"][0]["place"]) == ("failed", [], "deploy/broken.yaml:1")
    assert "which target?" not in shop.cli("gap", code=1).stderr
