"""What exec plugins and libraries print: no command and no server repeats it raw; a person at a terminal sees what his plugin says."""

from __future__ import annotations

import base64
import json
import os
import shlex
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.e2e.cli.conftest import Shop
from tests.e2e.cli.incident_shell import Night
from tests.e2e.cli.prompts import typed
from tests.kubectl import Kubectl
from tests.patience import PATIENCE, until

CANARY = "CANARY-only-the-plugin-knows"
UNCHECKED = "the API server's certificate isn't checked (insecure-skip-tls-verify)"


def changed(shop: Shop, place: Path, user: dict[str, Any] | None = None, *, checked: bool = True) -> Path:
    """Return the shop's kubeconfig with another user, or without trust in its cluster's certificate."""
    config = yaml.safe_load(shop.cli.kubeconfig.read_text())
    config["users"] = [{"name": row["name"], "user": user or row["user"]} for row in config["users"]]
    for row in config["clusters"]:
        if not checked:
            row["cluster"] = {"server": row["cluster"]["server"], "insecure-skip-tls-verify": True}
    place.write_text(yaml.safe_dump(config))
    return place


def noisy(shop: Shop, place: Path, then: str = "") -> Path:
    """Return a kubeconfig whose plugin says something to people and then gives the real token."""
    token = yaml.safe_load(shop.cli.kubeconfig.read_text())["users"][0]["user"]["token"]
    version = "client.authentication.k8s.io/v1"
    answer = json.dumps({"apiVersion": version, "kind": "ExecCredential", "status": {"token": token}})
    plugin = place / "plugin"
    plugin.write_text(f"#!/bin/sh\necho 'sign in at {CANARY}' >&2\n{then}\necho '{answer}'\n")
    plugin.chmod(0o700)
    return changed(shop, place / "kubeconfig", {"exec": {"apiVersion": version, "command": str(plugin), "interactiveMode": "IfAvailable"}})


def run(shop: Shop, kubeconfig: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a command in a process of its own, without a terminal."""
    env = {**os.environ, "ANNEAL_CONFIG": str(shop.cli.config), "KUBECONFIG": str(kubeconfig)}
    command = [sys.executable, "-m", "handler", *arguments]
    return subprocess.run(command, env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)


def served(shop: Shop, kubeconfig: Path, log: Path) -> list[str]:
    """Serve until the target is applied; return what the server wrote, each line of which must be ours."""
    command = [
        sys.executable,
        "-m",
        "handler",
        "serve",
        "-c",
        str(shop.cli.config),
        "--bind",
        "127.0.0.1:0",
        "--kubeconfig",
        str(kubeconfig),
    ]
    with log.open("wb") as said, subprocess.Popen(command, stdout=said, stderr=said) as server:
        try:
            until(lambda: "applied" in shop.cli("status", "shop").stdout.splitlines()[0], log.read_text)
        finally:
            server.send_signal(signal.SIGTERM)
        assert server.wait(PATIENCE) == 0, log.read_text()
    lines = log.read_text().splitlines()
    assert all(json.loads(line)["logger"].startswith("anneal.") for line in lines), lines
    return lines


def test_stderr_of_an_exec_plugin_is_shown_on_a_terminal_alone(shop: Shop, tmp_path: Path) -> None:
    good = noisy(shop, tmp_path)
    done = run(shop, good, "plan")
    assert (done.returncode, done.stderr) == (0, ""), done
    assert CANARY not in done.stdout
    code, shown = typed(shop, "", "plan", environ={"KUBECONFIG": str(good)})
    assert (code, f"sign in at {CANARY}" in shown) == (0, True), shown
    (tmp_path / "bad").mkdir()
    bad = noisy(shop, tmp_path / "bad", "exit 7")
    failed = run(shop, bad, "plan")
    assert failed.returncode == 1
    assert f"plugin ended with exit code 7\n    it says why at a terminal: KUBECONFIG={bad} kubectl version" in failed.stderr
    assert CANARY not in failed.stdout + failed.stderr
    code, shown = typed(shop, "", "plan", environ={"KUBECONFIG": str(bad)})
    assert (code, f"sign in at {CANARY}" in shown, "exit code 7" in shown) == (1, True, True), shown


@pytest.mark.parametrize("command", ["plan", "doctor"])
def test_insecure_skip_tls_verify_is_one_warning_with_its_command(shop: Shop, kubectl: Kubectl, tmp_path: Path, command: str) -> None:
    insecure = changed(shop, tmp_path / "kubeconfig", checked=False)
    done = run(shop, insecure, command)
    (line,) = done.stderr.splitlines()
    assert f"warning {UNCHECKED} cluster=" in line
    config = yaml.safe_load(shop.cli.kubeconfig.read_text())["clusters"][0]["cluster"]
    authority = tmp_path / "authority.pem"
    authority.write_bytes(base64.b64decode(config["certificate-authority-data"]))
    (pasted,) = (part for part in shlex.split(line) if part.startswith("fix="))
    Night(shop, kubectl, tmp_path).types(pasted.removeprefix("fix=").replace("FILE", str(authority)))
    assert run(shop, insecure, command).stderr == "", "checked from now on"
    assert "InsecureRequestWarning" not in done.stdout


def test_a_servers_log_warns_of_insecure_skip_tls_verify_once(shop: Shop, tmp_path: Path) -> None:
    insecure = changed(shop, tmp_path / "kubeconfig", checked=False)
    lines = [json.loads(line) for line in served(shop, insecure, tmp_path / "log")]
    (line,) = (each for each in lines if each["level"] == "warning")
    assert line["message"] == UNCHECKED
    assert str(insecure) in line["cluster"]
