"""The rows of cloud functions: how long a fresh process takes to its first event, and its memory after a run.

Wall time of fresh processes, the best of several: a function that starts has its machine to itself.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import boto3

from handler.model.event import Delivery, Job
from handler.model.names import run_id
from handler.queues import message
from handler.queues.pending import Work
from infra.bench.bed import Bed
from infra.bench.objects import mixed
from infra.bench.rows import Row
from infra.moto import Moto

_TIMES = 7
_PARTS = {
    "webhook": ("handler.functions, handler.functions.http_entry, handler.functions.gateway, apig_wsgi", 0.5),
    "worker": ("handler.functions, handler.functions.batch, handler.app.build", 1.2),
    "tick": ("handler.functions, handler.functions.scheduled, handler.app.build", 1.2),
    "codecommit": ("handler.functions, handler.functions.codecommit_events", 0.5),
}
"""What each function has loaded at its first event, and in how many seconds it should."""
_OBJECTS = 100
_ROOT = Path(__file__).resolve().parents[2]


def cold(bed: Bed) -> Iterator[Row]:
    """Import of each function's parts, the first answer of the door, and the memory of a worker that has applied a hundred objects."""
    for name, (modules, budget) in _PARTS.items():
        yield Row(f"cold start: import of the {name} function", _import(modules), budget, "s")
    with Moto() as moto:
        yield _first_answer(bed, moto)
        yield _memory(bed, moto)


def _import(modules: str) -> float:
    code = f"import time; since = time.perf_counter(); import {modules}; print(time.perf_counter() - since)"
    return min(float(_printed([sys.executable, "-c", code], dict(os.environ))) for _ in range(_TIMES))


def _first_answer(bed: Bed, moto: Moto) -> Row:
    """Time from the start of the import to the answer of a first event, and on to that of a second one."""
    environ = _environ(bed, moto, "https://git.example.com/acme/shop.git", "door")
    runs = [json.loads(_printed([sys.executable, "-m", "infra.bench.cold", "webhook"], environ)) for _ in range(_TIMES)]
    best = min(runs, key=lambda run: float(run["first"]))
    return Row("cold start: first answer of the webhook function", best["first"], 1.0, "s", details={"second ms": best["second"] * 1000})


def _memory(bed: Bed, moto: Moto) -> Row:
    shop = bed.shop(mixed(_OBJECTS, bed.namespace()))
    head = shop.handler().dependencies(shop.target.name).preparer.head().commit
    delivery = Delivery("bench", "github", "refs/heads/main", head, "bench", "2026-03-01T12:00:00Z")
    job = Job(shop.target.name, "push", hint=head, actor="bench", deliveries=(delivery,))
    body = message.encode(Work(job, (run_id(shop.target.name),)))
    environ = _environ(bed, moto, shop.target.repository.url, shop.target.name)
    found = json.loads(_printed([sys.executable, "-m", "infra.bench.cold", "worker", body], environ))
    figures = {"render child MB": found["child"], "first run s": found["seconds"]}
    return Row(f"worker function after a run of {_OBJECTS} objects, peak RSS", found["peak"], 160, "MB", details=figures)


def _environ(bed: Bed, moto: Moto, url: str, name: str) -> dict[str, str]:
    """Return the environment of a function with one target, its configuration and its queue."""
    queue = boto3.client("sqs", **moto.client).create_queue(QueueName=f"{name}.fifo", Attributes={"FifoQueue": "true"})["QueueUrl"]
    scoped = ["Namespace", "CustomResourceDefinition.apiextensions.k8s.io", "ClusterRole.rbac.authorization.k8s.io"]
    target: dict[str, Any] = {"name": name, "repository": {"url": url}, "path": "deploy", "namespaces": ["*"], "clusterScoped": scoped}
    config = {
        "apiVersion": "anneal.dev/v1alpha1",
        "kind": "Config",
        "webhooks": {"github": {"secrets": [{"env": "ANNEAL_BENCH_SECRET"}]}},
        "targets": [target],
    }
    place = bed.directory / f"{name}.json"
    place.write_text(json.dumps(config))
    added = {"ANNEAL_CONFIG": str(place), "ANNEAL_QUEUE_URL": queue, "ANNEAL_BENCH_SECRET": "a-secret-of-the-bench-alone"}
    return {**moto.environ, **added, "KUBECONFIG": str(bed.kubeconfig)}


def _printed(command: list[str], environ: dict[str, str]) -> str:
    """Return the last line that a process printed."""
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, cwd=_ROOT, env=environ)
    return done.stdout.splitlines()[-1]
