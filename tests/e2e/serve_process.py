"""`anneal serve` as a process of its own: asked over HTTP, watched through its log, killed by its process ids."""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import http.client
import itertools
import json
import os
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from tests.packing import SESSION
from tests.patience import PATIENCE, until

ROOT = Path(__file__).resolve().parents[2]
SECRET = "a secret of the fleet's webhooks"
TOKEN = "a token that may do all"
_DELIVERIES = itertools.count()

Part = Literal["supervisor", "worker", "web"]


def signed(url: str, ref: str, after: str) -> tuple[bytes, dict[str, str]]:
    """Return body and headers of a GitHub push."""
    body = json.dumps({"ref": ref, "after": after, "repository": {"clone_url": url}, "sender": {"login": "ada"}, "deleted": False}).encode()
    headers = {
        "Content-Type": "application/json",
        "X-GitHub-Event": "push",
        "X-GitHub-Delivery": f"delivery-{next(_DELIVERIES)}",
        "X-Hub-Signature-256": "sha256=" + hmac.new(SECRET.encode(), body, hashlib.sha256).hexdigest(),
    }
    return body, headers


@dataclass
class Serving:
    """A server of one configuration; `start` again after it was killed. `log`: what all its lives have said; `module`: what is started.

    `bind`: where it listens, by default on a free port.
    """

    config: Path
    log: Path
    process: subprocess.Popen[bytes] | None = None
    port: int = 0
    said_before: int = 0
    """Bytes of the log that earlier lives wrote."""
    module: str = "handler"
    bind: str = "127.0.0.1:0"

    @property
    def url(self) -> str:
        """Where it answers, once it listens."""
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> Serving:
        """Start; `ready` says when it listens."""
        command = [sys.executable, "-m", self.module, "--config", str(self.config), "serve", "--bind", self.bind]
        environment = {**os.environ, "HOOK": SECRET, "OPS": TOKEN, "TMPDIR": os.environ[SESSION]}  # what a killed one leaves goes with it
        self.said_before = self.log.stat().st_size if self.log.exists() else 0
        self.port = 0
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(command, cwd=ROOT, env=environment, stdout=log, stderr=log)
        return self

    def ready(self) -> Serving:
        """Wait until the worker takes jobs."""
        until(lambda: self.listening() and self.status("/readyz") == 200, self.log.read_text)
        return self

    def listening(self) -> bool:
        """Find the port in the log."""
        ports = [line["port"] for line in self.lines("listening", self.said_before)]
        self.port = ports[0] if ports else 0
        return bool(self.port)

    def stop(self) -> None:
        """End it and wait; its children go with it."""
        if self.process and self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            self.process.wait(PATIENCE)

    def pid(self, part: Part) -> int:
        """Return the process id of the supervisor, its worker or gunicorn's serving process; 0 while there is none."""
        assert self.process
        if part == "supervisor":
            return self.process.pid
        arbiters = [pid for pid in _children(self.process.pid) if b"handler.web" in _command(pid)]
        if part == "web":
            return next((pid for arbiter in arbiters for pid in _children(arbiter)), 0)
        return next((pid for pid in _children(self.process.pid) if pid not in arbiters and b"serve" in _command(pid)), 0)

    def kill(self, *parts: Part) -> None:
        """Kill these of its processes, if they are there now; the supervisor is also waited for."""
        for pid in [self.pid(part) for part in parts]:
            if pid:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
        if "supervisor" in parts and self.process:
            self.process.wait(PATIENCE)

    def kill_all(self) -> None:
        """Kill it with all its descendants at once, as a machine that loses power."""
        assert self.process
        for pid in (self.process.pid, *descendants(self.process.pid)):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.process.wait(PATIENCE)

    def resident(self, part: Part) -> int:
        """Return a process's resident memory in bytes."""
        return int(Path(f"/proc/{self.pid(part)}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    # --- over HTTP
    def send(self, method: str, path: str, body: bytes = b"", headers: dict[str, str] | None = None) -> tuple[int, Any]:
        """Send one request; return status and JSON. Raises OSError, HTTPException."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)
        try:
            connection.request(method, path, body, headers or {})
            response = connection.getresponse()
            return response.status, json.loads(response.read())
        finally:
            connection.close()

    def status(self, path: str) -> int:
        """Return the status of a GET, 0 when no server answers."""
        try:
            return self.send("GET", path)[0]
        except (OSError, http.client.HTTPException):
            return 0

    def push(self, url: str, ref: str, after: str) -> int:
        """Send a signed push; return the status, 0 when no server answers."""
        try:
            return self.send("POST", "/webhooks/github", *signed(url, ref, after))[0]
        except (OSError, http.client.HTTPException):
            return 0

    # --- its log
    def lines(self, message: str = "", since: int = 0) -> list[dict[str, Any]]:
        """Return the log's lines, or those with this message; half a line of a killed process is left out."""
        found = []
        for line in self.log.read_bytes()[since:].splitlines() if self.log.exists() else ():
            with contextlib.suppress(ValueError):
                found.append(json.loads(line))
        return [line for line in found if isinstance(line, dict) and message in ("", line.get("message"))]

    def runs(self, **fields: Any) -> list[dict[str, Any]]:
        """Return the lines of runs in which these fields have these values."""
        return [line for line in self.lines("run") if all(line.get(key) == value for key, value in fields.items())]


def _children(pid: int) -> list[int]:
    try:
        return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except (FileNotFoundError, ProcessLookupError):
        return []


def descendants(pid: int) -> list[int]:
    """Return the process ids of all that a process has started, and what those have started."""
    return [found for child in _children(pid) for found in (child, *descendants(child))]


def _command(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return b""
