"""The rows of feedback: what commit statuses add to a run, with a host that answers, and with one that doesn't."""

from __future__ import annotations

import contextlib
import json
import statistics
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from handler.app.build import Handler, Options
from handler.app.run_events import RunEvents
from handler.app.run_guard import announced, guarded
from handler.config.feedback_settings import FeedbackSettings
from handler.config.git_settings import SecretRef
from handler.config.secrets import RUNS, resolve_all
from handler.config.settings import Settings
from handler.model.event import Job
from handler.model.queue_view import ALONE
from infra import ports
from infra.bench.bed import Bed, Shop
from infra.bench.objects import Body
from infra.bench.rows import Row

OBJECTS, RUNS_EACH = 100, 25
ENVIRONMENT = {"GIT_STATUS_TOKEN": "a-token-of-the-bench-0123456789"}


class _Posted(BaseHTTPRequestHandler):
    """Takes each status, and shows none."""

    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        """Take a status."""
        self.rfile.read(int(self.headers["Content-Length"]))
        self._answer(201, {})

    def do_GET(self) -> None:
        """Show no status."""
        self._answer(200, [])

    def log_message(self, *_: object) -> None:
        """Say nothing."""

    def _answer(self, status: int, document: object) -> None:
        body = json.dumps(document).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


@dataclass(slots=True)
class _Line:
    """One shop whose runs are announced; `change` pushes another value of one object."""

    shop: Shop
    handler: Handler
    events: RunEvents

    def seconds(self, number: int, bodies: Callable[[int], list[Body]]) -> float:
        """Return how long a run takes from its job to its announced end."""
        self.shop.write(bodies(number))
        run = announced(guarded(self.handler.run), self.events.announce)
        since = time.perf_counter()
        result = run(Job(self.shop.target.name, "push"), threading.Event(), ALONE)
        took = time.perf_counter() - since
        if result.problems:
            raise RuntimeError(str(result.problems))
        return took


def feedback(bed: Bed) -> Iterator[Row]:
    """Runs that change one object of a hundred, in turn without feedback and with it."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Posted)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    closed = ports.keep()
    try:
        for name, url in (
            ("", f"http://127.0.0.1:{server.server_port}"),
            (", its host down", f"http://127.0.0.1:{closed.getsockname()[1]}"),
        ):
            yield _row(bed, f"feedback adds to a run{name}", url)
    finally:
        server.shutdown()
        server.server_close()
        with contextlib.suppress(OSError):
            closed.close()


def _row(bed: Bed, name: str, url: str) -> Row:
    spaces = [bed.namespace() for _ in range(2)]
    lines = [_line(bed, spaces[0], ""), _line(bed, spaces[1], url)]
    made = [_bodies(space) for space in spaces]
    took: list[list[float]] = [[], []]
    for number in range(RUNS_EACH + 3):
        for place in (0, 1) if number % 2 else (1, 0):
            seconds = lines[place].seconds(number, made[place])
            if number >= 3:  # the first runs create, connect and load
                took[place].append(seconds)
    without, beside = (1000 * statistics.median(each) for each in took)
    added = 1000 * statistics.median(other - one for one, other in zip(*took, strict=True))
    return Row(name, added, 5, "ms", details={"without": without, "with": beside})


def _line(bed: Bed, space: str, url: str) -> _Line:
    shop = bed.shop(_bodies(space)(0), namespaces=(space,), cluster_scoped=())
    events = RunEvents()
    target = shop.target
    if url:
        posting = FeedbackSettings(host="gitea", token=SecretRef(env="GIT_STATUS_TOKEN"), api_url=f"{url}/api/v1")
        target = replace(target, repository=replace(target.repository, feedback=posting))
    settings = Settings(targets=(target,))
    secrets = resolve_all(settings, ENVIRONMENT, needs=RUNS)
    handler = Handler(settings, secrets, bed.sandbox, {"KUBECONFIG": str(bed.kubeconfig)}, Options(announce=events.announce))
    if settings.has_commit_statuses:
        events.add("statuses", settings, handler)
    return _Line(Shop(bed, shop.work, target), handler, events)


def _bodies(space: str) -> Callable[[int], list[Body]]:
    def bodies(number: int) -> list[Body]:
        return [
            {
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "metadata": {"name": f"c-{each}", "namespace": space},
                "data": {"key": str(number if each == 0 else 0)},
            }
            for each in range(OBJECTS)
        ]

    return bodies
