"""The row of `anneal status`, as a whole process: a hundred targets on one cluster, and as many beside a cluster that hangs."""

from __future__ import annotations

import json
import os
import socket
import statistics
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from infra.bench.bed import Bed
from infra.bench.many_rows import configuration, loaded, repositories, write_records
from infra.bench.rows import Row, timed

_TARGETS, _TIMES = 100, 5


def status(bed: Bed) -> Iterator[Row]:
    """Measure the table of a hundred targets in ten repositories; a first call has warmed the files."""
    found = repositories(bed)
    document = configuration(bed, bed.namespace(), [url for url, _ in found], _TARGETS)
    write_records(bed, loaded(bed, document), dict(found))
    yield Row(f"anneal status, {_TARGETS} targets", _seconds(bed, document, _TIMES), 1, "s")
    with socket.create_server(("127.0.0.1", 0), backlog=64) as silent:
        document["targets"][_TARGETS // 2 :] = [_away(bed, target, silent) for target in document["targets"][_TARGETS // 2 :]]
        yield Row(f"anneal status, {_TARGETS} targets, half on a cluster that hangs", _seconds(bed, document, 1), 5, "s")


def _away(bed: Bed, target: dict[str, Any], silent: socket.socket) -> dict[str, Any]:
    """Return a target on a cluster that takes connections and never answers."""
    file = bed.directory / "silent"
    cluster = {"name": "c", "cluster": {"server": f"http://127.0.0.1:{silent.getsockname()[1]}"}}
    context = {"name": "c", "context": {"cluster": "c", "user": "u"}}
    users = [{"name": "u", "user": {"token": "t"}}]
    facts = {"apiVersion": "v1", "kind": "Config", "clusters": [cluster], "contexts": [context], "users": users, "current-context": "c"}
    file.write_text(json.dumps(facts))
    return {**target, "cluster": {"kubeconfig": {"file": str(file)}}}


def _seconds(bed: Bed, document: dict[str, Any], times: int) -> float:
    """Return the median time of the whole command, as its user waits for it."""
    place = bed.directory / "status.yaml"
    place.write_text(json.dumps(document))
    command = [sys.executable, "-m", "handler", "status", "-c", str(place)]
    environ = {**os.environ, "BENCH_SECRET": "x" * 40}

    def call() -> None:
        done = subprocess.run(command, capture_output=True, text=True, env=environ, cwd=Path(__file__).resolve().parents[2], check=False)
        if f"many-{_TARGETS // 4}  applied" not in done.stdout:
            raise RuntimeError(f"status: {done.returncode}\n{done.stdout[-2000:]}\n{done.stderr[-2000:]}")

    call()
    return statistics.median(timed(call)[0] for _ in range(times))
