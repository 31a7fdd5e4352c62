"""Encrypted files on the command line: rendered, planned and checked, with keys and without any."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from tests.e2e.cli.conftest import SECRET, Shop, document
from tests.rooms.render.sops_files import ALICE, VALUES, encrypted

BLOCK = "decryption: {age: [{env: AGE_KEYS}]}"


@pytest.fixture
def closed(shop: Shop, renderers: Path) -> Shop:
    """A target that lists an age key, which isn't here."""
    shop.work.remove("deploy")
    secret = document("Secret", "login", stringData={"password": SECRET})
    shop.work.write("deploy/login.yaml", encrypted("a.yaml", secret, *VALUES).decode())
    shop.work.write("deploy/one.yaml", encrypted("a.yaml", document("ConfigMap", "one", data={"value": f"at {SECRET}"}), *VALUES).decode())
    shop.push("Encrypted")
    shop.configure(BLOCK)
    return shop


def test_render_plan_check_and_apply_with_a_key(closed: Shop) -> None:
    shop = replace(closed, cli=replace(closed.cli, environ={"AGE_KEYS": ALICE.secret}))
    shown = {each["metadata"]["name"]: each["data"] for each in yaml.safe_load_all(shop.cli("render").stdout)}
    assert shown["one"] == {"value": "***"}, "what was encrypted is masked wherever it stands"
    assert SECRET in shop.cli("render", "--show-secrets").stdout
    assert "2 to create" in shop.cli("plan").stdout
    rows = {row["subject"]: row for row in shop.cli.json("check")["checks"]}
    assert (rows["decryption"]["seen"], rows["render"]["verdict"]) == ("1 age secret", "ok")
    shop.cli("apply", "-y")
    shop.cli("plan", "--exit-code")


def test_a_key_that_is_missing_is_named_and_placeholders_go_without(closed: Shop) -> None:
    assert "targets[shop].decryption.age[0]" in closed.cli("render", code=1).stderr
    rows = {row["subject"]: row for row in closed.cli.json("check", code=1)["checks"]}
    assert rows["decryption"]["verdict"] == "failed"
    shown = {each["metadata"]["name"]: each for each in yaml.safe_load_all(closed.cli("render", "--placeholders", "--show-secrets").stdout)}
    assert shown["one"]["data"]["value"].startswith("encryptedplaceholder")
    assert "sops" not in shown["login"]
    rows = {row["subject"]: row for row in closed.cli.json("check", "--placeholders")["checks"]}
    assert (rows["render"]["verdict"], rows["plan"]["verdict"]) == ("ok", "ok")


def test_without_the_block_the_message_holds_it(closed: Shop) -> None:
    closed.configure()
    said = closed.cli("render", code=1).stderr
    assert f"Secret/login: is still encrypted by SOPS, for {ALICE.recipient}" in said
    assert "decryption: {age: [{file: /etc/anneal/age.txt}]}" in said
    assert "encryptedplaceholder" in closed.cli("render", "--placeholders", "--show-secrets").stdout
