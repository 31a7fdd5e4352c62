"""The rows of the page: its overview of 500 targets, from a browser's request to the whole answer, and the memory that a page takes.

Whole processes on the real API server. What of an answer is the LIST, JSON and the templates is measured apart, in this process.
"""

from __future__ import annotations

import http.client
import json
import statistics
import time
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlencode

from handler.app.build import Handler
from handler.app.target_status import TargetStatusReader
from handler.config.secrets import Secrets
from handler.config.settings import Settings
from handler.state.record import Run
from handler.state.record_format import stamp
from handler.web.page.overview import Choice, link, overview
from handler.web.page.rendering import render
from infra import ports
from infra.bench.bed import Bed
from infra.bench.door_rows import Server
from infra.bench.health_rows import cpu
from infra.bench.many_rows import configuration, loaded, processes, repositories, survey, write_records
from infra.bench.memory_rows import pss
from infra.bench.rows import Row, median

_TARGETS, _WARM, _TIMES = 500, 5, 100
_SETTLED = 5.0
_RUNS = ("applied", "applied", "failed", "applied", "unchanged", "held", "applied", "applied", "applied", "applied", "drifted")
_TOKEN = "a token of the bench's visitor {}"  # noqa: S105 - of no one


def page(bed: Bed) -> Iterator[Row]:
    """Measure the overview of 500 recorded targets, and the web process with a page beside one without."""
    found = repositories(bed)
    document = configuration(bed, bed.namespace(), [url for url, _ in found], _TARGETS)
    settings = loaded(bed, document)
    write_records(bed, settings, dict(found), runs=history())
    without = _idle(bed, document)
    with ports.keep() as kept:
        document |= {"page": page_settings(bed, kept.getsockname()[1])}
        with Server(bed.directory, json.dumps(document), port=kept.getsockname()[1]) as server:
            survey(server.log)
            time.sleep(_SETTLED)
            found_processes = processes(server.pid)
            web = found_processes["web"]
            memory = {"without a page": without, "idle": pss(web)}
            cookie = signed_in(server.port)
            for _ in range(_WARM):
                _asked(server.port, cookie)
            before = {name: cpu(pid) for name, pid in found_processes.items()}
            times = sorted(_asked(server.port, cookie) for _ in range(_TIMES))
            spent = {f"ms CPU of {name}": 1000 * (cpu(pid) - before[name]) / _TIMES for name, pid in found_processes.items()}
            memory["MB after these answers"] = pss(web)
    figures = {"p50": statistics.median(times), **spent, **_parts(bed, settings)}
    yield Row(f"the page's overview, {_TARGETS} targets, over HTTP, p99", times[int(_TIMES * 0.99)], 300, "ms", details=figures)
    yield Row("the web process with a page, idle, PSS, over one without", memory["idle"] - without, 8, "MB", details=memory)


def history() -> list[Run]:
    """Return the runs of a target that lives, the newest first."""
    now, counts = time.time(), {"configured": 2, "unchanged": 23}
    facts: dict[str, Any] = {"subject": "Serve the winter catalogue from the new cache", "author": "Ada Lovelace <ada@example.com>"}
    return [
        Run(
            f"{number:012x}",
            "push",
            outcome,
            stamp(now - 3600 * number),
            **facts,
            counts=counts,
            duration=1.5 + 7 * number,
            digest="d" * 12,
        )
        for number, outcome in enumerate(_RUNS)
    ]


def page_settings(bed: Bed, port: int, visitors: int = 1) -> dict[str, Any]:
    """Return the configuration's `page`, with so many visitors, each of whom sees everything."""
    secrets = {"key": "a key of the bench, of at least 32 characters"}
    secrets |= {f"visitor-{number}": _TOKEN.format(number) for number in range(visitors)}
    for name, text in secrets.items():
        (bed.directory / name).write_text(text)
    people = [name for name in secrets if name != "key"]
    return {
        "url": f"http://127.0.0.1:{port}",
        "key": {"file": str(bed.directory / "key")},
        "tokens": [{"name": name, "secret": {"file": str(bed.directory / name)}} for name in people],
        "roles": [{"role": "operator", "users": people}],
    }


def signed_in(port: int, visitor: int = 0) -> str:
    """Sign in as a browser does; return the cookie to send."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    sent = {"Content-Type": "application/x-www-form-urlencoded", "Origin": f"http://127.0.0.1:{port}"}
    connection.request("POST", "/ui/login", urlencode({"token": _TOKEN.format(visitor)}), sent)
    answer = connection.getresponse()
    cookies = [value.partition(";")[0] for name, value in answer.getheaders() if name.lower() == "set-cookie"]
    connection.close()
    if answer.status not in (302, 303) or not cookies:
        raise RuntimeError(f"the bench is not signed in: {answer.status}")
    return "; ".join(cookies)


def _asked(port: int, cookie: str) -> float:
    """Return the milliseconds from a request for the overview to its last byte."""
    since = time.perf_counter()
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    connection.request("GET", "/", headers={"Cookie": cookie})
    answer = connection.getresponse()
    body = answer.read()
    spent = (time.perf_counter() - since) * 1000
    connection.close()
    if answer.status != 200 or body.count(b"data-state=") != _TARGETS:
        raise RuntimeError(f"no overview: {answer.status}\n{body[:2000]!r}")
    return spent


def _parts(bed: Bed, settings: Settings) -> dict[str, float]:
    """Return the milliseconds of the parts of an answer, each alone."""
    handler = Handler(settings, Secrets(), bed.sandbox, {})
    reader = TargetStatusReader(settings, handler.records)
    names = [target.name for target in settings.targets]
    rows = reader.targets(names)
    asked = Choice()

    def shown() -> str:
        values = {"visitor": None, "csrf": "", "topic": "/", "streams": "0", "troubled": (), "retired": ()}
        return render(
            "overview.html", **values, asked=asked, overview=overview(rows, asked), orders=(), link=lambda **other: link(asked, **other)
        )

    text = json.dumps(rows)
    return {
        "ms LIST and rows": 1000 * median(lambda: reader.targets(names), 10),
        "ms JSON": 1000 * median(lambda: json.loads(json.dumps(rows)), 10),
        "ms templates": 1000 * median(shown, 10),
        "KB of rows": len(text) / 1000,
        "KB of HTML": len(shown()) / 1000,
    }


def _idle(bed: Bed, document: dict[str, Any]) -> float:
    """Return the memory of the web process of a server without a page."""
    with Server(bed.directory, json.dumps(document)) as server:
        survey(server.log)
        time.sleep(_SETTLED)
        return pss(processes(server.pid)["web"])
