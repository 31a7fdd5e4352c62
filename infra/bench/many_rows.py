"""The rows of very many targets: what a start costs when nothing changed, and what a target costs without pushes.

The targets are recorded without having been run: the state room writes for each what a run leaves. The server that starts then is a whole
`anneal serve`, which knows nothing. Its drift runs are put off, for they are no part of the tick.
"""

from __future__ import annotations

import json
import re
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

from handler.app.build import Handler
from handler.config.load import load
from handler.config.secrets import Secrets
from handler.config.settings import Settings, Target
from handler.config.settings_digest import settings_digest
from handler.model.names import Identity
from handler.state.record import Run, RunStatus, State, TargetHealth
from handler.state.record_format import stamp
from infra.bench.bed import Bed
from infra.bench.door_rows import Server
from infra.bench.rows import Row
from infra.githost import Work

_REPOSITORIES, _SIZES = 10, (100, 500, 1000)
_LONGEST = 120.0
"""Seconds after which a start that isn't through has failed."""
_MIB = 1024.0


def thousand(bed: Bed) -> Iterator[Row]:
    """Start-up tick of 1,000 unchanged targets in ten repositories on one cluster, and the memory of 100, 500 and 1,000."""
    namespace = bed.namespace()
    found = repositories(bed)
    document = configuration(bed, namespace, [url for url, _ in found], _SIZES[-1])
    settings = loaded(bed, document)
    write_records(bed, settings, dict(found))
    memory: dict[int, dict[str, float]] = {}
    for size in _SIZES:
        seconds, figures, memory[size] = _start(bed, document | {"targets": document["targets"][:size]})
    yield Row("1,000 targets, nothing changed, start until all are known to be", seconds, 60, "s", details=figures)
    for process in ("worker", "web"):
        grown = (memory[_SIZES[-1]][process] - memory[_SIZES[0]][process]) * _MIB / (_SIZES[-1] - _SIZES[0])
        peaks = {f"MB at {size:,}": memory[size][process] for size in _SIZES}
        yield Row(f"a quiet target more, RSS of the {process} process", grown, 30, "kB", details=peaks)


def repositories(bed: Bed) -> list[tuple[str, str]]:
    """Make the repositories; return the URL and head of each."""
    found = []
    for number in range(_REPOSITORIES):
        bed.count += 1
        name = f"many-{bed.count}"
        work = Work.of(bed.host, name)
        work.write("deploy/made.yaml", f"apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: made-{number}}}\n")
        sha = work.commit("Bench")
        work.push()
        found.append((bed.host.url_of(name), sha))
    return found


def configuration(bed: Bed, namespace: str, urls: list[str], count: int) -> dict[str, Any]:
    """Return the configuration of so many targets."""
    targets = [
        {
            "name": f"many-{number}",
            "repository": {"url": urls[number % len(urls)]},
            "namespaces": [namespace],
            "path": "deploy",
            "cluster": {"kubeconfig": {"file": str(bed.kubeconfig)}},
        }
        for number in range(count)
    ]
    webhooks = {"github": {"secrets": [{"env": "BENCH_SECRET"}]}}
    facts = {"apiVersion": "anneal.dev/v1alpha1", "kind": "Config", "stateNamespace": namespace, "driftInterval": "240h"}
    return {**facts, "webhooks": webhooks, "targets": targets}


def loaded(bed: Bed, document: dict[str, Any]) -> Settings:
    """Read the configuration as the server will."""
    place = bed.directory / "many.yaml"
    place.write_text(json.dumps(document))
    return load(place)


def write_records(
    bed: Bed,
    settings: Settings,
    heads: dict[str, str],
    declared: Mapping[str, tuple[Identity, ...]] | None = None,
    runs: Sequence[Run] = (),
) -> None:
    """Write each target's state as a run leaves it that has applied the head. `declared`: by target, what that declares.

    `runs`: the history of each, but for the commit.
    """
    handler = Handler(settings, Secrets(), bed.sandbox, {})
    uid = handler.cluster_uid(settings.targets[0])

    def record(target: Target) -> None:
        store = handler.store(target)
        head = heads[target.repository.url]
        known = replace(_recorded(store.blank(uid), target, head), history=tuple(replace(run, commit=head) for run in runs))
        store.create(replace(known, declared=(declared or {}).get(target.name, ()), health=TargetHealth(apart=())))

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(record, settings.targets))


def _recorded(blank: State, target: Target, head: str) -> State:
    status = RunStatus("applied", stamp(time.time()))
    home = replace(blank, repository=target.repository.url)
    return replace(home, commit=head, reads="d" * 64, settings=settings_digest(target), status=status)


def _start(bed: Bed, document: dict[str, Any]) -> tuple[float, dict[str, Any], dict[str, float]]:
    """Start a server and wait for its first survey; return the seconds from its start, what it asked for, and memory in MB."""
    bed.host.requests.clear()
    before, since = _served(bed), time.perf_counter()
    with Server(bed.directory, json.dumps(document)) as server:
        found = survey(server.log)
        seconds = time.perf_counter() - since
        asked = _served(bed) - before
        memory = {name: resident(pid) for name, pid in processes(server.pid).items()}
    if found["quiet"] != len(document["targets"]):
        raise RuntimeError(f"not all targets were found unchanged: {found}")
    looks = sum(b"command=ls-refs" in request.body for request in bed.host.requests if request.method == "POST")
    figures = {"survey s": found["seconds"], "ls-refs": looks, "git requests": len(bed.host.requests)}
    return seconds, figures | {f"{verb} states": asked[verb] for verb in ("LIST", "GET", "PUT")}, memory


def tick(name: str, bed: Bed, document: dict[str, Any], figures: dict[str, Any]) -> Row:
    """Return the row of the first tick of a server, by whose records no target has anything to do. `figures`: what else it says."""
    since = time.perf_counter()
    with Server(bed.directory, json.dumps(document)) as server:
        looked = survey(server.log)
        started = time.perf_counter() - since
    if looked["quiet"] != len(document["targets"]):
        raise RuntimeError(f"not all targets were found to have nothing to do: {looked}")
    found = {"start s": started, "lists": looked["lists"], "looks": looked["looks"]}
    return Row(name, looked["seconds"], 5, "s", details=figures | found)


def survey(log: Path) -> dict[str, Any]:
    """Wait for the line of the first survey."""
    for _ in range(int(_LONGEST / 0.02)):
        found = [line for line in log.read_text().splitlines() if '"survey"' in line]
        if found:
            ended: dict[str, Any] = json.loads(found[0])
            return ended
        time.sleep(0.02)
    raise RuntimeError(f"no survey ended:\n{log.read_text()[-2000:]}")


_COUNTED = re.compile(
    r'^apiserver_request_total\{.*resource="configmaps",scope="(?:namespace|resource)".*verb="([A-Z]+)".*\} ([0-9.e+]+)$', re.MULTILINE
)


def _served(bed: Bed) -> Counter[str]:
    """Return how many requests for ConfigMaps of a namespace the API server has answered, by verb; a page of a LIST is one."""
    found: Counter[str] = Counter()
    for verb, count in _COUNTED.findall(bed.kubectl("get", "--raw", "/metrics")):
        found[verb] += int(float(count))
    return found


def processes(supervisor: int) -> dict[str, int]:
    """Return the process ids of the worker and of the process that answers webhooks."""
    arbiter = next(pid for pid in _children(supervisor) if b"handler.web" in Path(f"/proc/{pid}/cmdline").read_bytes())
    worker = max((pid for pid in _children(supervisor) if pid != arbiter), key=resident)
    return {"worker": worker, "web": _children(arbiter)[0]}


def _children(pid: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def resident(pid: int) -> float:
    """Return a process's resident memory in MB."""
    line = next(line for line in Path(f"/proc/{pid}/status").read_text().splitlines() if line.startswith("VmRSS:"))
    return int(line.split()[1]) / _MIB
