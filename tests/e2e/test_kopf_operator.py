"""The example operator, as it stands, by kopf against the real control plane: a Shop comes, changes, loses a part, goes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.serve_process import ROOT
from tests.kubectl import Kubectl
from tests.patience import PATIENCE, until
from tests.uv import uv

EXAMPLES = ROOT / "scripts" / "examples"


@pytest.fixture(scope="module")
def kopf(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The example's own dependencies, as they are locked, in a directory."""
    place = tmp_path_factory.mktemp("kopf")
    command = [uv(), "pip", "install", "--quiet", "--python", sys.executable, "--target", str(place), "--require-hashes"]
    done = subprocess.run([*command, "-r", str(EXAMPLES / "kopf.lock")], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return place


@pytest.fixture
def operator(kopf: Path, control_plane: Path, kubectl: Kubectl, namespace: str, tmp_path: Path) -> Iterator[Path]:
    """The running operator of one namespace; its output is in the file."""
    kubectl.run("apply", "--server-side", "-f", str(EXAMPLES / "crds.yaml"))
    for kind in ("shops", "tills"):
        kubectl.run("wait", "--for=condition=Established", f"crd/{kind}.example.com")
    environ = {**os.environ, "KUBECONFIG": str(control_plane), "PYTHONPATH": os.pathsep.join((str(ROOT), str(kopf)))}
    said = tmp_path / "kopf.log"
    command = [sys.executable, "-m", "kopf", "run", "--standalone", "--namespace", namespace, str(EXAMPLES / "kopf_operator.py")]
    with said.open("w") as out, subprocess.Popen(command, env=environ, stdout=out, stderr=out, cwd=tmp_path) as process:
        yield said
        process.send_signal(signal.SIGINT)
        process.wait(PATIENCE)


def test_the_example_operator_brings_changes_and_removes_what_a_shop_asks_for(operator: Path, kubectl: Kubectl, namespace: str) -> None:
    def names(kind: str) -> list[str]:
        found: dict[str, Any] = json.loads(kubectl.run("get", kind, "-n", namespace, "-l", "shop", "-o", "json"))
        return sorted(item["metadata"]["name"] for item in found["items"])

    def change(**spec: Any) -> None:
        kubectl.run("patch", "shops.example.com", "corner", "-n", namespace, "--type=merge", "-p", json.dumps({"spec": spec}))

    def greeting() -> str:
        return kubectl.run("get", "configmap", "corner", "-n", namespace, "-o", "jsonpath={.data.greeting}")

    metadata = {"name": "corner", "namespace": namespace}
    kubectl.apply({"apiVersion": "example.com/v1", "kind": "Shop", "metadata": metadata, "spec": {"replicas": 0, "tills": ["eur", "usd"]}})
    until(lambda: names("tills.example.com") == ["corner-eur", "corner-usd"], operator.read_text)
    until(lambda: names("deployment") == names("configmap") == ["corner"], operator.read_text)
    change(greeting="Moin", tills=["eur"])
    until(lambda: names("tills.example.com") == ["corner-eur"] and greeting() == "Moin", operator.read_text)
    change(tills=[])
    until(lambda: names("tills.example.com") == [], operator.read_text)
    kubectl.run("delete", "shops.example.com", "corner", "-n", namespace, "--wait=false")
    until(lambda: names("configmap") == names("deployment") == [], operator.read_text)
    until(lambda: not json.loads(kubectl.run("get", "shops.example.com", "-n", namespace, "-o", "json"))["items"], operator.read_text)
