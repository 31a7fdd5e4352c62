"""The door's rows: signed webhooks against the real server: idle, while the worker reconciles on the same cores, beside slow sockets."""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from infra.bench.bed import Bed, Shop
from infra.bench.objects import mixed
from infra.bench.rows import Row

SECRET = "a secret for one bench run"  # noqa: S105 - made for this run and gone with it
_RATE, _SENDERS = 200, 8
_QUICK, _FULL = 10, 60
"""Seconds of load."""
_SLOW, _PEERS, _PINGS = 500, 10, 20
_HEAD = b"POST /webhooks/github HTTP/1.1\r\nHost: bench\r\n"
_BEGUN = (b"", _HEAD + b"X-Slow: ", _HEAD + b"Content-Length: 1000\r\n\r\n{")
"""What a slow socket begins with: nothing, a head, a body."""

Body = Callable[[], bytes]
"""What the next delivery says: the newest head, as a git host would."""


@dataclass(slots=True)
class Load:
    """What the senders saw."""

    taken: list[float] = field(default_factory=list)
    lost: int = 0

    def p99(self) -> float:
        """Return the 99th percentile, in milliseconds."""
        ordered = sorted(self.taken)
        return 1000 * ordered[int(len(ordered) * 0.99)]


def door(bed: Bed, *, quick: bool) -> Iterator[Row]:
    """Measure the door of `anneal serve`. `quick`: for 10 s instead of 60."""
    shop, seconds = bed.shop(mixed(200, bed.namespace())), _QUICK if quick else _FULL
    shop.run()
    with Server(bed.directory, _configuration(bed, shop)) as server:
        body = push(shop, shop.work.head())
        idle = steady(server.port, lambda: body, seconds)
        busy = _busy_load(server.port, shop, seconds)
        slow = [_slow(server.port, body, begun) for begun in _BEGUN]
    for name, load, budget in (("idle", idle, 15), ("while reconciles run", busy, 60)):
        row = f"webhooks at {_RATE}/s acknowledged, {name}, p99"
        yield Row(row, load.p99(), budget, "ms", details={"sent": len(load.taken) + load.lost, "lost": load.lost})
    lost = sum(load.lost for load in slow)
    yield Row(f"signed ping beside {_SLOW} slow sockets", max(max(load.taken) for load in slow), 1, "s", details={"lost": lost})


def _slow(port: int, body: bytes, begun: bytes) -> Load:
    """Send signed pings while slow sockets, of as many peers as may have them, are open and send a byte now and then."""
    load = Load()
    with contextlib.ExitStack() as stack:
        sockets = [
            stack.enter_context(socket.create_connection(("127.0.0.1", port), 10, (f"127.0.0.{2 + number % _PEERS}", 0)))
            for number in range(_SLOW)
        ]
        for turn in range(_PINGS):
            for each in sockets:
                with contextlib.suppress(OSError):
                    each.sendall((begun if turn == 0 else b"a")[: len(begun)])
            _deliver(port, body, f"slow-{turn}", load)
    return load


def _deliver(port: int, body: bytes, delivery: str, load: Load) -> None:
    """Send one ping on a connection of its own."""
    connection, since = http.client.HTTPConnection("127.0.0.1", port, timeout=10), time.perf_counter()
    try:
        connection.request("POST", "/webhooks/github", body, {**signed(body, delivery), "X-GitHub-Event": "ping"})
        load.lost += connection.getresponse().status != 200
    except (OSError, http.client.HTTPException):
        load.lost += 1
    finally:
        connection.close()
    load.taken.append(time.perf_counter() - since)


def _busy_load(port: int, shop: Shop, seconds: int) -> Load:
    """Keep the worker reconciling real changes while the webhooks come."""
    ended = threading.Event()
    newest = [push(shop, shop.work.head())]

    def change() -> None:
        number = 0
        while not ended.is_set():
            number += 1
            bodies = mixed(200, str(shop.target.name))
            for item in bodies:
                item["metadata"]["namespace"] = f"bench-{shop.bed.count}"
                item["metadata"]["labels"]["round"] = str(number)
            newest[0] = push(shop, shop.write(bodies))
            ended.wait(1)

    pusher = threading.Thread(target=change)
    pusher.start()
    try:
        return steady(port, lambda: newest[0], seconds)
    finally:
        ended.set()
        pusher.join()


def push(shop: Shop, sha: str) -> bytes:
    """Return what a git host says of a push."""
    repository = {"full_name": "bench/shop", "clone_url": shop.target.repository.url}
    return json.dumps({"ref": "refs/heads/main", "before": sha, "after": sha, "repository": repository, "commits": []}).encode()


def steady(port: int, body: Body, seconds: int) -> Load:
    """Send at a fixed rate from a few connections; a late sender doesn't slow the others."""
    load, start = Load(), time.perf_counter() + 0.2
    senders = [threading.Thread(target=_send, args=(port, body, load, start, number, seconds)) for number in range(_SENDERS)]
    for sender in senders:
        sender.start()
    for sender in senders:
        sender.join()
    return load


def _send(port: int, body: Body, load: Load, start: float, number: int, seconds: int) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    for turn in range(_RATE * seconds // _SENDERS):
        due = start + (turn * _SENDERS + number) / _RATE
        time.sleep(max(due - time.perf_counter(), 0))
        sent = body()
        since = time.perf_counter()
        try:
            connection.request("POST", "/webhooks/github", sent, signed(sent, f"{number}-{turn}"))
            answer = connection.getresponse()
            answer.read()
        except (OSError, http.client.HTTPException):
            connection.close()
            load.lost += 1
            continue
        load.taken.append(time.perf_counter() - since)
        load.lost += answer.status != 202


def signed(body: bytes, delivery: str) -> dict[str, str]:
    """Return the headers of a push of GitHub, signed."""
    signature = "sha256=" + hmac.new(SECRET.encode(), body, hashlib.sha256).hexdigest()
    headers = {"Content-Type": "application/json", "X-GitHub-Event": "push", "X-Hub-Signature-256": signature}
    return headers | {"X-GitHub-Delivery": delivery}


class Server:
    """`anneal serve` as a process of its own, with this configuration. `port`: 0: a free one."""

    def __init__(self, directory: Path, configuration: str, *, port: int = 0) -> None:
        self._bind, self.port = f"127.0.0.1:{port}", 0
        self.log = directory / "serve.log"
        self._config = directory / "anneal.yaml"
        self._config.write_text(configuration)
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Server:
        command = [sys.executable, "-m", "handler", "--config", str(self._config), "serve", "--bind", self._bind]
        with self.log.open("wb") as log:
            environment = {**os.environ, "BENCH_SECRET": SECRET}
            self._process = subprocess.Popen(command, stdout=log, stderr=log, env=environment, cwd=Path(__file__).resolve().parents[2])
        self._wait_ready()
        return self

    def __exit__(self, *_: object) -> None:
        assert self._process is not None  # noqa: S101 - entered
        self._process.send_signal(signal.SIGTERM)
        self._process.wait(30)

    @property
    def pid(self) -> int:
        """Its process id: the supervisor's, whose children are the web process's arbiter and the worker."""
        assert self._process is not None  # noqa: S101 - entered
        return self._process.pid

    def _wait_ready(self) -> None:
        """Find the port in the log, then ask until the server is ready."""
        for _ in range(300):
            time.sleep(0.1)
            with self.log.open() as log:
                self.port = self.port or _port(log)
            if self.port and _status(self.port) == 200:
                return
        raise RuntimeError(f"anneal serve did not start:\n{self.log.read_text()}")


def _port(log: IO[str]) -> int:
    found = [json.loads(line) for line in log if '"listening"' in line]
    return int(found[0]["port"]) if found else 0


def _status(port: int) -> int:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
    try:
        connection.request("GET", "/readyz")
        return connection.getresponse().status
    except OSError:
        return 0
    finally:
        connection.close()


def _configuration(bed: Bed, shop: Shop) -> str:
    target = {
        "name": shop.target.name,
        "repository": {"url": shop.target.repository.url},
        "namespaces": ["*"],
        "path": "deploy",
        "cluster": {"kubeconfig": {"file": str(bed.kubeconfig)}},
    }
    document = {
        "apiVersion": "anneal.dev/v1alpha1",
        "kind": "Config",
        "webhooks": {"github": {"secrets": [{"env": "BENCH_SECRET"}]}},
        "targets": [target],
    }
    return json.dumps(document)
