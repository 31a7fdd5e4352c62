"""What open pages cost: fifty viewers with live updates while a target changes every second, and what deliveries notice of them.

Each is measured twice on one server, without viewers and with them; what they cost is the difference.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any, cast

from infra import ports
from infra.bench import door_rows
from infra.bench.bed import Bed, Shop
from infra.bench.door_rows import Load, Server
from infra.bench.health_rows import cpu
from infra.bench.live_viewers import OF_VISITOR, VIEWERS
from infra.bench.many_rows import configuration, loaded, processes, repositories, survey, write_records
from infra.bench.objects import mixed
from infra.bench.page_rows import history, page_settings, signed_in
from infra.bench.rows import Row

_TARGETS = 500
_QUICK, _FULL = 15, 60
"""Seconds of each measurement."""
_SETTLED = 5.0
_BUDGET = 5.0


def live(bed: Bed, *, quick: bool) -> Iterator[Row]:
    """Measure the share of a core that viewers cost, and the door's p99 beside them."""
    seconds, namespace = _QUICK if quick else _FULL, bed.namespace()
    shop = bed.shop(mixed(5, namespace))
    found = repositories(bed)
    document = configuration(bed, bed.namespace(), [url for url, _ in found], _TARGETS)
    write_records(bed, loaded(bed, document), dict(found), runs=history())
    document["targets"].append(_target(bed, shop))
    with ports.keep() as kept, _server(bed, document, kept.getsockname()[1]) as server:
        survey(server.log)
        time.sleep(2 * _SETTLED)
        quiet = _shares(server, shop, namespace, seconds)
        alone = _beside(server, shop, namespace, seconds)
        with viewers(server.port, shop.target.name) as seen:
            time.sleep(_SETTLED)
            before = seen()
            busy = _shares(server, shop, namespace, seconds)
            figures = {name: (count - before[name]) / (seconds + _SETTLED) for name, count in seen().items()}
            beside = _beside(server, shop, namespace, seconds)
    more = {f"{name} %": 100 * (busy[name] - quiet[name]) for name in busy}
    arrived = {f"{name} a second": value for name, value in figures.items()}
    figures = {**more, "without viewers %": 100 * sum(quiet.values()), **arrived}
    yield Row(
        f"{VIEWERS} viewers, {_TARGETS} targets, a change a second, share of a core", sum(more.values()), _BUDGET, "%", details=figures
    )
    details = {"without viewers": alone.p99(), "lost": beside.lost}
    yield Row(f"webhooks at 200/s beside {VIEWERS} viewers and changes, p99", beside.p99(), 60, "ms", details=details)


def _server(bed: Bed, document: dict[str, Any], port: int) -> Server:
    """Return a server with a page of its own, to which each visitor of the viewers may sign in."""
    page = page_settings(bed, port, VIEWERS // OF_VISITOR)
    return Server(bed.directory, json.dumps(document | {"page": page}), port=port)


@contextlib.contextmanager
def viewers(port: int, target: str) -> Iterator[Callable[[], dict[str, int]]]:
    """Keep pages open; yields what says how much has arrived."""
    cookies = [signed_in(port, number) for number in range(VIEWERS // OF_VISITOR)]
    command = [sys.executable, "-m", "infra.bench.live_viewers", str(port), target, *cookies]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=Path(__file__).resolve().parents[2]
    ) as process:
        stdin, stdout = cast("IO[str]", process.stdin), cast("IO[str]", process.stdout)

        def seen() -> dict[str, int]:
            stdin.write("\n")
            stdin.flush()
            found: dict[str, int] = json.loads(stdout.readline())
            return found

        yield seen
        stdin.close()


def _shares(server: Server, shop: Shop, namespace: str, seconds: int) -> dict[str, float]:
    """Return the share of a core of each process while the target changes every second."""
    found = processes(server.pid)
    with _changes(shop, namespace, lambda body: _deliver(server.port, body)):
        time.sleep(_SETTLED)
        before, since = {name: cpu(pid) for name, pid in found.items()}, time.perf_counter()
        time.sleep(seconds)
        spent = time.perf_counter() - since
        return {name: (cpu(pid) - before[name]) / spent for name, pid in found.items()}


def _beside(server: Server, shop: Shop, namespace: str, seconds: int) -> Load:
    """Send webhooks at the door's rate while the target changes every second."""
    newest = [door_rows.push(shop, shop.work.head())]
    with _changes(shop, namespace, lambda body: newest.__setitem__(0, body)):
        return door_rows.steady(server.port, lambda: newest[0], seconds)


@contextlib.contextmanager
def _changes(shop: Shop, namespace: str, pushed: Callable[[bytes], None]) -> Iterator[None]:
    ended = threading.Event()

    def change() -> None:
        number = time.monotonic_ns()
        while not ended.is_set():
            number += 1
            bodies = mixed(5, namespace)
            for item in bodies:
                item["metadata"]["labels"]["round"] = str(number)
            pushed(door_rows.push(shop, shop.write(bodies)))
            ended.wait(1)

    pusher = threading.Thread(target=change)
    pusher.start()
    try:
        yield
    finally:
        ended.set()
        pusher.join()


def _deliver(port: int, body: bytes) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    connection.request("POST", "/webhooks/github", body, door_rows.signed(body, f"live-{time.monotonic_ns()}"))
    if connection.getresponse().status != 202:
        raise RuntimeError("a push wasn't taken")
    connection.close()


def _target(bed: Bed, shop: Shop) -> dict[str, Any]:
    cluster = {"kubeconfig": {"file": str(bed.kubeconfig)}}
    repository = {"url": shop.target.repository.url}
    return {"name": shop.target.name, "repository": repository, "namespaces": ["*"], "path": "deploy", "cluster": cluster}
