"""`requirements.txt` alone is enough: what a cloud platform installs serves the door."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
CONFIG = """
apiVersion: anneal.dev/v1alpha1
kind: Config
webhooks: {github: {secrets: [{env: HOOK}]}}
targets:
  - name: shop
    repository: {url: "http://127.0.0.1:9/shop.git"}
    namespaces: [shop]
    cluster: {kubeconfig: {file: missing}}
"""


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The interpreter of a new environment with nothing but requirements.txt."""
    uv = shutil.which("uv") or str(Path.home() / ".cache" / "anneal" / "uv" / "bin" / "uv")
    place = tmp_path_factory.mktemp("clean") / "venv"
    subprocess.run([uv, "venv", "--quiet", "--python", sys.executable, str(place)], check=True)
    subprocess.run(
        [uv, "pip", "install", "--quiet", "--python", str(place / "bin" / "python"), "-r", str(ROOT / "requirements.txt")], check=True
    )
    return place / "bin" / "python"


@pytest.mark.slow
def test_a_clean_environment_serves_healthz(python: Path, tmp_path: Path) -> None:
    config, log = tmp_path / "anneal.yaml", tmp_path / "log"
    config.write_text(CONFIG)
    environment = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "HOOK": "a secret long enough to start"}
    with log.open("wb") as out:
        command = [str(python), "-m", "handler", "--config", str(config), "serve", "--bind", "127.0.0.1:0"]
        served = subprocess.Popen(command, cwd=ROOT, env=environment, stdout=out, stderr=out)
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{_port(log)}/healthz", timeout=120) as answer:
            assert answer.status == 200
    finally:
        served.send_signal(signal.SIGTERM)
        assert served.wait(60) == 0, log.read_text()


def _port(log: Path) -> int:
    """Wait for the line that says where it listens."""
    end = time.monotonic() + 120  # nothing of it is compiled yet
    while time.monotonic() < end:
        found = [json.loads(line) for line in log.read_text().split("\n")[:-1] if '"listening"' in line]
        if found:
            return int(found[0]["port"])
        time.sleep(0.1)
    raise AssertionError(log.read_text())
