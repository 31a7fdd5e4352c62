"""What it costs to watch the health of very many targets: 1,000 of twenty workloads each, all of them well, nothing changes.

The workloads are ReplicaSets of no pods: their controller writes the status of each once, and is silent from then on. Measured is the whole
worker process over two passes, and the API server over the same time less what it takes without a WATCH.
"""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from handler.app.build import Handler
from handler.app.record_summaries import listed, of_target
from handler.cluster.write import Writer
from handler.config.secrets import Secrets
from handler.model.names import IDENTITY, PART_OF, Identity, Resource, applyset_id, state_name
from infra.bench import many_rows
from infra.bench.bed import Bed
from infra.bench.door_rows import Server
from infra.bench.rows import Row

_TARGETS, _WORKLOADS, _INTERVAL = 1000, 20, 60.0
_LONGEST = 600.0
_REPLICA_SET = Resource("apps", "v1", "ReplicaSet", "replicasets", namespaced=True)


def health(bed: Bed) -> Iterator[Row]:
    """CPU of the worker, and of the API server, while 1,000 targets of twenty workloads are well."""
    namespace = bed.namespace()
    repositories = many_rows.repositories(bed)
    document = many_rows.configuration(bed, namespace, [url for url, _ in repositories], _TARGETS)
    document |= {"healthInterval": f"{_INTERVAL:.0f}s", "interval": "240h"}
    settings = many_rows.loaded(bed, document)
    declared = {target.name: _identities(namespace, target.name) for target in settings.targets}
    handler = Handler(settings, Secrets(), bed.sandbox, {})
    _create(handler, namespace, declared)
    many_rows.write_records(bed, settings, dict(repositories), declared)
    idle = _api_server(bed, 20.0)
    since = time.perf_counter()
    with Server(bed.directory, json.dumps(document)) as server:
        worker = many_rows.processes(server.pid)["worker"]
        _wait_until_judged(handler)
        judged, spent = time.perf_counter() - since, cpu(worker)
        before, began = cpu(worker), time.perf_counter()
        busy = _api_server(bed, 2 * _INTERVAL)
        share = (cpu(worker) - before) / (time.perf_counter() - began)
        resident = many_rows.resident(worker)
    figures = {"API server %": 100 * (busy - idle), "all judged after s": judged, "CPU s until then": spent, "RSS MB": resident}
    yield Row("health of 1,000 targets of 20 workloads at one minute, worker's share of a core", 100 * share, 5, "%", details=figures)


def _identities(namespace: str, target: str) -> tuple[Identity, ...]:
    return tuple(Identity("apps", "ReplicaSet", namespace, f"{target}-{number}") for number in range(_WORKLOADS))


def _create(handler: Handler, namespace: str, declared: dict[str, tuple[Identity, ...]]) -> None:
    """Create the workloads, and wait until their controller has looked at the last one."""
    target = handler.settings.targets[0]
    writer = Writer(handler.api(target), lambda: None)

    def create(pair: tuple[str, Identity]) -> None:
        writer.apply(_REPLICA_SET, _body(pair[1], pair[0], applyset_id(state_name(pair[0]), namespace)))

    pairs = [(name, identity) for name, identities in declared.items() for identity in identities]
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(create, pairs))
    _until(lambda: all(_observed(handler, identity) for _, identity in (*pairs[:: len(pairs) // 50], pairs[-1])))


def _observed(handler: Handler, identity: Identity) -> bool:
    live = handler.api(handler.settings.targets[0]).get(_REPLICA_SET.path(identity.namespace, identity.name))
    return bool(live and "observedGeneration" in live.get("status", {}))


def _body(identity: Identity, target: str, applyset: str) -> dict[str, Any]:
    labels = {"app": identity.name}
    probe = {"httpGet": {"path": "/ready", "port": 8080}, "periodSeconds": 5}
    variables = [{"name": f"VARIABLE_{number}", "value": f"a value of some length, number {number}"} for number in range(12)]
    container = {"name": "main", "image": "registry.example.com/acme/app:1.2.3", "env": variables, "readinessProbe": probe}
    metadata = {"name": identity.name, "namespace": identity.namespace, "labels": {**labels, PART_OF: applyset}}
    metadata["annotations"] = {IDENTITY: identity.mark(target)}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [container]}}
    spec = {"replicas": 0, "selector": {"matchLabels": labels}, "template": template}
    return {"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": metadata, "spec": spec}


def _wait_until_judged(handler: Handler) -> None:
    settings, records = handler.settings, handler.records(handler.settings.targets[0])

    def done() -> bool:
        found = listed(records, settings)
        summaries = [of_target(found, settings, target.name) for target in settings.targets]
        return all(summary and summary.health == "healthy" for summary in summaries)

    _until(done)


def _until(holds: Any) -> None:
    end = time.monotonic() + _LONGEST
    while not holds():
        if time.monotonic() > end:
            raise RuntimeError("the health of 1,000 targets wasn't judged in time")
        time.sleep(2.0)


def cpu(pid: int) -> float:
    """Return a process's CPU seconds so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _api_server(bed: Bed, seconds: float) -> float:
    """Return the API server's share of a core over some seconds."""
    before, since = _api_cpu(bed), time.perf_counter()
    time.sleep(seconds)
    return (_api_cpu(bed) - before) / (time.perf_counter() - since)


def _api_cpu(bed: Bed) -> float:
    found = re.search(r"^process_cpu_seconds_total ([0-9.e+]+)$", bed.kubectl("get", "--raw", "/metrics"), re.MULTILINE)
    return float(found[1]) if found else 0.0
