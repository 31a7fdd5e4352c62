"""The rows of resource triggers: a changed object, 1,000 idle instances, and what 10,000 that came and went leave in memory.

Each object renders one ConfigMap by a small program; the server is one process tree, as `anneal serve` starts it.
"""

from __future__ import annotations

import json
import statistics
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from handler.cluster.api import Api
from handler.cluster.connect import connect
from handler.config.settings import Cluster
from infra.bench.bed import Bed
from infra.bench.door_rows import Server
from infra.bench.health_rows import cpu
from infra.bench.many_rows import configuration, processes
from infra.bench.memory_rows import all_of, pss
from infra.bench.rows import Row
from infra.githost import Work

_GROUP = "bench.example.com"
_PATH = f"/apis/{_GROUP}/v1"
_IDLE, _CHANGES, _BATCH, _WARM = 1000, 20, 500, 2
_SETTLED, _WATCHED = 30.0, 300.0
"""Seconds until a server has come to rest, and for which it is left alone then: one tick is among them."""
_PROGRAM = """\
local c = import 'generic-operator/config';
{ objects: { made: { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'of-' + c.metadata.name }, data: { size: c.spec.size } } } }
"""


@dataclass(slots=True)
class _Widgets:
    """The objects of one namespace. `api`: the way to them."""

    api: Api
    namespace: str

    @property
    def path(self) -> str:
        return f"{_PATH}/namespaces/{self.namespace}/widgets"

    def create(self, numbers: range) -> None:
        with ThreadPoolExecutor(8) as pool:
            list(pool.map(self._create, numbers))

    def _create(self, number: int) -> None:
        body = {"apiVersion": f"{_GROUP}/v1", "kind": "Widget", "metadata": {"name": f"w{number}"}, "spec": {"size": "0"}}
        self.api.post(self.path, body)

    def change(self, number: int, size: str) -> None:
        self.api.patch(f"{self.path}/w{number}", {"spec": {"size": size}}, "application/merge-patch+json")

    def remove(self) -> None:
        self.api.delete(self.path)

    def size(self, number: int) -> str:
        live = self.api.get(f"/api/v1/namespaces/{self.namespace}/configmaps/of-w{number}")
        return str(live["data"]["size"]) if live else ""

    def made(self) -> int:
        """Count what instances have made, and their records."""
        return self._count(lambda name: name.startswith("of-w"))

    def records(self) -> int:
        return self._count(lambda name: name.startswith("anneal-widgets."))

    def _count(self, counts: Callable[[str], bool]) -> int:
        found: dict[str, Any] = self.api.get(f"/api/v1/namespaces/{self.namespace}/configmaps") or {"items": []}
        return sum(counts(each["metadata"]["name"]) for each in found["items"])


def instances(bed: Bed, *, quick: bool) -> Iterator[Row]:
    """Measure all three on servers of their own."""
    _define(bed)
    work = Work.of(bed.host, "widgets")
    work.write("deploy/main.jsonnet", _PROGRAM).commit("Bench")
    work.push()
    api = Api(connect(Cluster(), kubeconfig=str(bed.kubeconfig), environ={}))
    yield from _idle(bed, _Widgets(api, bed.namespace()))
    yield _gone(bed, _Widgets(api, bed.namespace()), 1_000 if quick else 10_000)


def _idle(bed: Bed, widgets: _Widgets) -> Iterator[Row]:
    """1,000 instances at rest, then changes of one after the other."""
    widgets.create(range(_IDLE))
    with Server(bed.directory, json.dumps(_configured(bed, widgets))) as server:
        _until(lambda: widgets.made() == _IDLE, server)
        time.sleep(_SETTLED)
        pids = {f"{name} {pid}": pid for name, pid in all_of(server.pid)}
        memory = {name: pss(pid) for name, pid in pids.items()}
        before = {name: cpu(pid) for name, pid in pids.items()}
        time.sleep(_WATCHED)
        shares = {f"{name} %": 100 * (cpu(pid) - before[name]) / _WATCHED for name, pid in pids.items()}
        yield Row(f"{_IDLE:,} idle instances, PSS of all processes", sum(memory.values()), 200, "MB", details=memory)
        yield Row(f"{_IDLE:,} idle instances, share of a core", sum(shares.values()), 1, "%", details={**shares, "seconds": _WATCHED})
        times = [_changed(widgets, number) for number in range(_CHANGES)]
    details = {"longest": max(times), "changes": _CHANGES}
    yield Row(f"custom resource changed -> applied, of {_IDLE:,} instances", statistics.median(times), 0.5, "s", details=details)


def _changed(widgets: _Widgets, number: int) -> float:
    """Return how many seconds pass from the answer to a change of an object until what it renders is live."""
    widgets.change(number, "1")
    since = time.monotonic()
    while widgets.size(number) != "1":
        time.sleep(0.005)
    return time.monotonic() - since


def _gone(bed: Bed, widgets: _Widgets, count: int) -> Row:
    """What the worker keeps of instances that came and went, beyond the first batches of them, which warm its caches and threads."""
    figures = {}
    with Server(bed.directory, json.dumps(_configured(bed, widgets))) as server:
        for turn in range(-_WARM, count // _BATCH):
            first = (turn + _WARM) * _BATCH
            widgets.create(range(first, first + _BATCH))
            _until(lambda: widgets.made() == _BATCH, server)
            widgets.remove()
            _until(lambda: not widgets.made() and not widgets.records(), server)
            if turn in (-1, count // _BATCH - 1):
                time.sleep(_SETTLED)
                figures[f"MB after {(turn + 1) * _BATCH:,}"] = pss(processes(server.pid)["worker"])
    before, after = figures.values()
    return Row(f"{count:,} created and removed instances leave in the worker, PSS", max(after - before, 0.0), 5, "MB", details=figures)


def _until(holds: Callable[[], bool], server: Server) -> None:
    """Wait until something holds. Raises RuntimeError: it doesn't come."""
    end = time.monotonic() + 600.0
    while not holds():
        if time.monotonic() > end:
            raise RuntimeError(f"it doesn't come:\n{server.log.read_text()[-2000:]}")
        time.sleep(0.5)


def _define(bed: Bed) -> None:
    """Install the kind."""
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    version = {"name": "v1", "served": True, "storage": True, "subresources": {"status": {}}, "schema": schema}
    spec = {"group": _GROUP, "names": {"kind": "Widget", "plural": "widgets"}, "scope": "Namespaced", "versions": [version]}
    crd = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "spec": spec}
    place = bed.directory / "widgets.json"
    place.write_text(json.dumps(crd | {"metadata": {"name": f"widgets.{_GROUP}"}}))
    bed.kubectl("apply", "-f", str(place))
    bed.kubectl("wait", "--for=condition=Established", f"crd/widgets.{_GROUP}")


def _configured(bed: Bed, widgets: _Widgets) -> dict[str, Any]:
    """Return a configuration of one template, in whose namespace its records are; many of its instances go at once here."""
    document = configuration(bed, widgets.namespace, [bed.host.url_of("widgets")], 1)
    resource = {"name": "widget", "apiVersion": f"{_GROUP}/v1", "kind": "Widget", "namespace": widgets.namespace}
    template = {
        "name": "widgets",
        "path": "deploy",
        "renderer": {"type": "jsonnet"},
        "namespaces": [widgets.namespace],
        "trigger": {"resource": {"mainResource": "widget", "resources": [resource]}},
        "prune": {"holdAbove": {"count": 1_000_000}},
    }
    targets = [document["targets"][0] | template]
    return document | {"targets": targets, "stateNamespace": widgets.namespace}
