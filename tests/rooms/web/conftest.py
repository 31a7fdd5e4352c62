"""A running `anneal serve`: real gunicorn, real worker process, on a free loopback port."""

from __future__ import annotations

import http.client
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.clock import NEVER
from tests.fakes.signed_webhooks import SECRETS, github_headers, github_push
from tests.packing import SESSION
from tests.patience import PATIENCE, until

ROOT = Path(__file__).resolve().parents[3]
CONFIG = """
apiVersion: anneal.dev/v1alpha1
kind: Config
webhooks:
  github: {secrets: [{env: GITHUB}]}
  gitlab: {secrets: [{env: GITLAB}]}
replay:
  tokens:
    - {name: ops, secret: {env: OPS}, targets: ["*"], may: [replay, approve, rollback]}
    - {name: all, secret: {env: ALL}, may: [read]}
    - {name: scraper, secret: {env: SCRAPER}, may: [metrics]}
metrics: {bind: "127.0.0.1:0"}
interval: 1h
driftInterval: NEVER
targets:
  - {name: shop-prod, repository: {url: "https://git.example.com/acme/shop.git"}, namespaces: [shop]}
  - {name: slow, repository: {url: "https://git.example.com/acme/shop.git"}, revision: {branch: slow}, namespaces: [shop]}
""".replace("NEVER", str(NEVER))


@dataclass
class Serving:
    """A running server: `process` is the supervisor."""

    process: subprocess.Popen[bytes]
    port: int
    record: Path
    log: Path

    def request(self, method: str, path: str, body: Any = None, headers: dict[str, str] | None = None) -> tuple[int, Any]:
        """Send one request; return status and JSON."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)
        try:
            connection.request(method, path, body=body, headers=headers or {}, encode_chunked=not isinstance(body, bytes | None))
            response = connection.getresponse()
            return response.status, json.loads(response.read())
        finally:
            connection.close()

    def push(self, branch: str = "main", after: str = "a" * 40) -> int:
        """Send a signed push; return the status."""
        body = github_push(ref=f"refs/heads/{branch}", after=after)
        return self.request("POST", "/webhooks/github", body, github_headers(body))[0]

    def read(self, path: str) -> tuple[int, Any]:
        """Read with the token that may read all; return status and JSON."""
        return self.request("GET", path, headers={"Authorization": f"Bearer {SECRETS['ALL']}"})

    def replay(self, target: str, **asked: object) -> str:
        """Ask for a run; return its id."""
        headers = {"Authorization": f"Bearer {SECRETS['OPS']}", "Content-Type": "application/json"}
        status, answer = self.request("POST", f"/replay/{target}", json.dumps(asked).encode(), headers)
        assert status == 202
        return str(answer["run"])

    def connect(self) -> socket.socket:
        """Open a bare connection."""
        return socket.create_connection(("127.0.0.1", self.port), timeout=PATIENCE)

    def runs(self) -> list[dict[str, Any]]:
        """Return what the engine has recorded."""
        return whole(self.record) if self.record.exists() else []

    def lines(self) -> list[dict[str, Any]]:
        """Return the log."""
        return whole(self.log)

    def wait(self, reached: Callable[[], object]) -> None:
        """Wait until something holds."""
        until(reached, lambda: f"not reached; log:\n{self.log.read_text()}")

    def pid(self) -> int:
        """Return the worker process's id: the last that prepared."""
        return [int(run["prepared"]) for run in self.runs() if "prepared" in run][-1]

    def web(self) -> int:
        """Return the id of gunicorn's serving process: the child of the supervisor's child that isn't the worker."""
        (arbiter,) = [pid for pid in children(self.process.pid) if pid != self.pid()]
        (serving,) = children(arbiter)
        return serving


def whole(file: Path) -> list[dict[str, Any]]:
    """Return the lines that are written to their end: another process may be in the middle of one."""
    return [json.loads(line) for line in file.read_text().split("\n")[:-1]]


def children(pid: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def alive(pid: int) -> bool:
    """Say whether a process runs; one that only waits to be reaped doesn't."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def resident(pid: int) -> int:
    """Return the resident memory of a process in bytes."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


@pytest.fixture
def serving(tmp_path: Path) -> Iterator[Serving]:
    """A server that is ready; stopped by its own process id."""
    with served(tmp_path, CONFIG) as server:
        yield server


@pytest.fixture(scope="module")
def door(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    """A server for all tests of a file that only look at what it answers them."""
    with served(tmp_path_factory.mktemp("door"), CONFIG) as server:
        yield server


@contextmanager
def served(tmp_path: Path, text: str, program: str = "serve_program", **environment: str) -> Iterator[Serving]:
    """Serve a configuration's text by a program beside this file; `environment` is added to the process's."""
    config, record, log = tmp_path / "anneal.yaml", tmp_path / "record", tmp_path / "log"
    config.write_text(text)
    command = [sys.executable, "-m", f"tests.rooms.web.{program}", str(config), "127.0.0.1:0", str(record)]
    with log.open("wb") as stderr:
        place = {"TMPDIR": os.environ[SESSION]}  # what a killed one leaves goes with it
        process = subprocess.Popen(command, cwd=ROOT, env=os.environ | SECRETS | place | environment, stderr=stderr)
    server = Serving(process, 0, record, log)
    try:
        server.wait(lambda: '"listening"' in log.read_text())
        server.port = server.lines()[0]["port"]
        server.wait(lambda: server.request("GET", "/readyz")[0] == 200)
        yield server
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
        process.wait(PATIENCE)
