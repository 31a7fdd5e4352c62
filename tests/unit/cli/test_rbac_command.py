"""`anneal rbac` as it is typed: for namespaces that are used, and of a checkout."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from tests.unit.cli.in_memory_cli import CliShop


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> CliShop:
    return CliShop.of(tmp_path, monkeypatch)


def test_a_target_that_may_use_every_namespace_can_be_granted_those_it_uses(shop: CliShop) -> None:
    shop.config.write_text(shop.config.read_text().replace("[shop]", '"*"'))

    def scopes(*flags: str) -> set[str]:
        found = shop.json("rbac", *flags)["items"]
        rules = [(one["metadata"].get("namespace", "*"), rule) for one in found for rule in one.get("rules", ())]
        return {scope for scope, rule in rules if "secrets" in rule["resources"]}

    assert scopes() == {"*"}
    assert scopes("--namespaced") == {"shop"}


def test_rbac_of_a_checkout_prints_the_same_without_git_secrets(shop: CliShop, tmp_path: Path) -> None:
    checkout = tmp_path / "checkout"
    (checkout / "deploy").mkdir(parents=True)
    for name, text in shop.files.items():
        (checkout / name).write_text(text)
    printed = shop.cli("rbac").stdout
    config = yaml.safe_load(shop.config.read_text())
    config["targets"][0]["repository"]["auth"] = {"basic": {"username": "a", "password": {"env": "NOT_ON_THIS_MACHINE"}}}
    shop.config.write_text(yaml.safe_dump(config))
    assert "NOT_ON_THIS_MACHINE" in shop.cli("rbac", code=1).stderr
    assert shop.cli("rbac", "-f", str(checkout)).stdout == printed
