"""Encrypted files on the command line: rendered, planned and checked, with keys and without any."""

from __future__ import annotations

import os
import re
import shlex
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from tests.e2e.cli.conftest import SECRET, Shop, document
from tests.e2e.cli.incident_shell import Night
from tests.kubectl import Kubectl
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


def test_a_file_that_was_edited_without_sops_is_mended_by_the_commands_that_are_printed(
    closed: Shop, kubectl: Kubectl, renderers: Path, tmp_path: Path
) -> None:
    path = f"{tmp_path / 'bin'}:{renderers}:{os.environ['PATH']}"
    environ = {"AGE_KEYS": ALICE.secret, "SOPS_AGE_KEY": ALICE.secret, "PATH": path}
    shop = replace(closed, cli=replace(closed.cli, environ=environ))
    file = shop.work.directory / "deploy" / "login.yaml"
    shop.work.write("deploy/login.yaml", file.read_text().replace("name: login", "name: other"))
    shop.push("Edited by hand")
    said = shop.cli("render", code=1).stderr
    look, mend = re.findall(r": (sops [^;]+deploy/login.yaml)", " ".join(said.split()))
    night, place = Night(shop, kubectl, tmp_path), shlex.quote(str(shop.work.directory))
    assert "name: other" in night.types(f"cd {place} && {look}")
    night.types(f"cd {place} && {mend}")
    shop.push("Signed anew")
    shop.cli("render")
