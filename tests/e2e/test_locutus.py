"""Locutus' own command lines, as its document has them: `anneal locutus` takes each that renders files, against a real control plane."""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from handler.cli.group import USAGE, anneal
from handler.cli.locutus import NAME, NAMESPACE
from handler.state.configmap import state_name
from tests.e2e.serving import PATIENCE, ROOT, until
from tests.kubectl import Kubectl

SEED = ROOT.parent / "shared" / "seeds" / "locutus.txt"
DEPLOYMENT: dict[str, Any] = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "grafana", "labels": {"app": "grafana"}},
    "spec": {
        "replicas": 1,
        "selector": {"matchLabels": {"app": "grafana"}},
        "template": {
            "metadata": {"labels": {"app": "grafana"}},
            "spec": {"containers": [{"name": "grafana", "image": "grafana/grafana:5.2.0"}]},
        },
    },
}


@dataclass(frozen=True)
class Seed:
    """What the document shows. `commands`: its command lines; `rollout`: its example of a Rollout."""

    commands: tuple[str, ...]
    rollout: str

    @property
    def of_files(self) -> tuple[str, ...]:
        return tuple(line for line in self.commands if "--renderer=file" in line)

    @property
    def key(self) -> str:
        """How its Rollout calls the manifest: the path below the directory of manifests."""
        return str(yaml.safe_load(self.rollout)["spec"]["groups"][0]["steps"][0]["object"])


@dataclass(frozen=True)
class Place:
    """Where the commands are run: beside a tree as the document describes it."""

    directory: Path
    kubeconfig: Path

    def arguments(self, line: str, *more: str) -> list[str]:
        words = [word.replace("$KUBECONFIG", str(self.kubeconfig)) for word in shlex.split(line)]
        assert words[0] == "locutus"
        return [sys.executable, "-m", "handler", *words, *more]

    @property
    def environ(self) -> dict[str, str]:
        return {**os.environ, "PYTHONPATH": str(ROOT), "HOME": str(self.directory)}

    def run(self, line: str, *more: str, code: int = 0) -> str:
        """Run a command to its end; return what it printed."""
        command = self.arguments(line, *more)
        done = subprocess.run(command, cwd=self.directory, env=self.environ, capture_output=True, text=True, check=False, timeout=120)
        assert done.returncode == code, f"{line}: {done.returncode}\n{done.stdout}{done.stderr}"
        return done.stdout


@pytest.fixture(scope="module")
def seed() -> Seed:
    if not SEED.is_file():
        pytest.skip("../shared/seeds/locutus.txt, whose command lines these are, is not beside this checkout")
    text = SEED.read_text()
    rollout = re.search(r"^apiVersion: workflow\.kubernetes\.io/v1alpha1\n(?:.+\n)+", text, re.MULTILINE)
    assert rollout
    return Seed(tuple(re.findall(r"^locutus --.+$", text, re.MULTILINE)), rollout[0])


@pytest.fixture
def place(seed: Seed, tmp_path: Path) -> Place:
    """A tree of files, and a kubeconfig that leads nowhere."""
    flags = dict(word.partition("=")[::2] for line in seed.of_files for word in line.split() if word.startswith("--renderer.file."))
    directory, rollout = flags["--renderer.file.dir"], flags["--renderer.file.rollout"]
    manifest = tmp_path / directory / seed.key
    manifest.parent.mkdir(parents=True)
    manifest.write_text(json.dumps(DEPLOYMENT))
    (tmp_path / rollout).write_text(seed.rollout)
    return Place(tmp_path, tmp_path / "nowhere")


@pytest.fixture
def deployed(kubectl: Kubectl) -> Iterator[None]:
    """Leave nothing behind in the namespace that everybody has."""
    yield
    name = state_name(NAME)
    for what in ("deployment/grafana", f"configmap/{name}", f"lease/{name}"):
        kubectl.tried("delete", what, "-n", NAMESPACE, "--ignore-not-found", "--wait=false")


def test_the_document_has_command_lines_of_all_kinds(seed: Seed) -> None:
    assert len(seed.of_files) == 3
    assert len(seed.commands) > len(seed.of_files), "and some whose renderer comes with a later version"


def test_render_only_prints_keys_manifests_and_the_rollout_and_asks_no_cluster(seed: Seed, place: Place) -> None:
    (line,) = [line for line in seed.of_files if "--render-only" in line]
    printed = place.run(line)
    assert printed.count("\n") == 1
    assert json.loads(printed) == {"objects": {seed.key: DEPLOYMENT}, "rollout": yaml.safe_load(seed.rollout)}
    bare = re.sub(r"(--renderer\.file\.dir=\S+?)/(?=\s|$)", r"\1", line).replace("--trigger=", "-trigger ")
    assert bare != line
    assert place.run(bare, "--render-only=true") == printed, "with and without a slash, one dash or two"


def test_what_another_version_brings_is_refused(seed: Seed) -> None:
    for line in (line for line in seed.commands if line not in seed.of_files):
        assert CliRunner().invoke(anneal, shlex.split(line)).exit_code == USAGE, line


def test_once_applies_and_ends_and_at_an_interval_it_stays_as_declared(
    seed: Seed, place: Place, kubectl: Kubectl, deployed: None, tmp_path: Path
) -> None:
    def uid() -> str:
        return kubectl.tried("get", "deployment", "grafana", "-n", NAMESPACE, "-o", "jsonpath={.metadata.uid}").stdout

    place = Place(place.directory, kubectl.kubeconfig)
    once, staying = [line for line in seed.of_files if "--render-only" not in line]
    assert f"Deployment/{NAMESPACE}/grafana created" in place.run(once)
    found = kubectl("get", "deployment", "grafana", "-n", NAMESPACE)
    kubectl.run("delete", "deployment", "grafana", "-n", NAMESPACE)
    log = tmp_path / "log"
    command = place.arguments(staying, "-trigger.interval.duration=1s")
    with log.open("wb") as said, subprocess.Popen(command, cwd=place.directory, env=place.environ, stderr=said) as process:
        try:
            until(lambda: uid() not in ("", found["metadata"]["uid"]), told=log.read_text)
            kubectl.run("delete", "deployment", "grafana", "-n", NAMESPACE)
            until(uid, told=log.read_text)
        finally:
            process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE) == 0
    lease = kubectl("get", "lease", state_name(NAME), "-n", NAMESPACE)
    assert not lease["spec"].get("holderIdentity"), "given back"
    again = json.loads(place.run(once, "-o", "json"))
    assert again["counts"] == {"unchanged": 1}
