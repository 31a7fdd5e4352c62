"""Everything is a library: the package and the programs of docs/library.md, from outside, with a row of their own in every table."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from infra.githost import Host, Work
from tests.e2e.serve_process import ROOT, Serving
from tests.kubectl import Kubectl
from tests.patience import PATIENCE, until

PAGE = ROOT / "docs" / "library.md"
FILE = re.compile(r"^`([\w./]+)`[^\n]*:\n\n```\w+\n(.*?)^```$", re.MULTILINE | re.DOTALL)
TOKEN = "acme's own token, which is long enough"
KEY = "acme.example.com/blessed"


@dataclass(frozen=True)
class Acme:
    """The files of the page in a directory, and a repository that they deploy. `files`: what the page shows, by name."""

    files: dict[str, str]
    directory: Path
    namespace: str
    url: str
    work: Work

    @property
    def board(self) -> list[str]:
        return (self.directory / "board").read_text().splitlines()

    def push(self, value: str, blessed: str = "ada") -> str:
        """Declare a ConfigMap with a gap, beside the page's Rollout."""
        metadata = {"name": "settings", "annotations": {KEY: blessed}}
        body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"region": "${REGION}", "value": value}}
        self.work.write("deploy/settings.yaml", json.dumps(body))
        self.work.write("rollout.yaml", self.files["rollout.yaml"])
        sha = self.work.commit(value)
        self.work.push()
        return sha


@pytest.fixture
def acme(host: Host, namespace: str, kubectl: Kubectl, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Acme:
    files = dict(FILE.findall(PAGE.read_text()))
    for name, text in files.items():
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    (tmp_path / "spool").mkdir()
    work = Work.of(host, f"acme-{namespace}")
    url = host.url_of(f"acme-{namespace}")
    config = yaml.safe_load(files["anneal.yaml"])
    config["targets"][0] |= {"repository": {"url": url}, "namespaces": [namespace], "namespace": namespace}
    (tmp_path / "anneal.yaml").write_text(json.dumps({**config, "stateNamespace": namespace}))
    environ = {
        "REGION": "north",
        "BOARD": str(tmp_path / "board"),
        "SPOOL": str(tmp_path / "spool"),
        "ACME_TOKEN": TOKEN,
        "KUBECONFIG": str(kubectl.kubeconfig),
    }
    for name, value in (environ | {"SPOOL": str(tmp_path / "spool"), "PYTHONPATH": os.pathsep.join((str(tmp_path), str(ROOT)))}).items():
        monkeypatch.setenv(name, value)
    return Acme(files, tmp_path, namespace, url, work)


@pytest.fixture
def served(acme: Acme) -> Iterator[Serving]:
    """`python main.py serve`, on the first commit."""
    acme.push("one")
    serving = Serving(acme.directory / "anneal.yaml", acme.directory / "log", module="main").start()
    try:
        yield serving.ready()
    finally:
        serving.stop()


def deliver(serving: Serving, url: str, token: str = TOKEN) -> tuple[int, Any]:
    """Send a delivery of acme's git host; return status and answer."""
    headers = {"Content-Type": "application/json", "X-Acme-Token": token, "X-Acme-Delivery": "d-1"}
    return serving.send("POST", "/webhooks/acme", json.dumps({"repo": url, "branch": "main"}).encode(), headers)


def commits(serving: Serving) -> list[str]:
    return [line["commit"] for line in serving.runs(outcome="applied")]


def test_the_page_shows_a_package_and_programs(acme: Acme) -> None:
    assert {"acme/__init__.py", "main.py", "once.py", "anneal.yaml", "rollout.yaml"} < set(acme.files)
    assert len(acme.files["main.py"].splitlines()) <= 20


def test_triggers_renderers_and_feedback_of_an_outside_package_are_used(acme: Acme, served: Serving, kubectl: Kubectl) -> None:
    until(lambda: commits(served), served.log.read_text)
    second = acme.push("two")
    assert deliver(served, acme.url, "another's token, which is long enough")[0] == 401
    status, answer = deliver(served, acme.url)
    assert (status, [row["target"] for row in answer["matched"]]) == (202, ["shop"])
    until(lambda: second in commits(served), served.log.read_text)
    found = kubectl("get", "cm", "settings", "-n", acme.namespace)
    assert found["data"] == {"region": "north", "value": "two"}
    assert acme.board == [f"ConfigMap/{acme.namespace}/settings: the settings are new"] * 2
    served.stop()
    third = acme.push("three", blessed="refused")
    done = subprocess.run([sys.executable, "once.py"], cwd=acme.directory, capture_output=True, text=True, check=True, timeout=PATIENCE)
    assert done.stdout.startswith(f"failed {third} ")
    assert "ada refuses it" in done.stdout
    record = kubectl("get", "cm", "anneal-shop", "-n", acme.namespace)
    assert "ada refuses it" in json.dumps(record["data"])


def test_a_trigger_of_an_outside_package_asks_for_runs(acme: Acme, kubectl: Kubectl) -> None:
    acme.push("one")
    log, asked = acme.directory / "log", acme.directory / "spool" / "shop"

    def triggers(trigger: str) -> list[str]:
        lines = [json.loads(line) for line in log.read_text().splitlines(keepends=True) if line.endswith("\n")]
        return [line["commit"] for line in lines if (line.get("outcome"), line.get("trigger")) == ("applied", trigger)]

    command = [sys.executable, "main.py", "-c", "anneal.yaml", "run", "--trigger", "spool"]
    with log.open("wb") as said, subprocess.Popen(command, cwd=acme.directory, stderr=said) as process:
        try:
            until(lambda: triggers("tick"), log.read_text)
            second = acme.push("two")
            asked.touch()
            until(lambda: triggers("spool") == [second], log.read_text)
        finally:
            process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE) == 0, log.read_text()
    assert not asked.exists()
    assert kubectl("get", "cm", "settings", "-n", acme.namespace)["data"]["value"] == "two"
