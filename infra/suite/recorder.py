"""pytest's plugin for one run of everything: what each file of tests costs, and which switches its tests reach.

CPU is what the process and its children have used, and the file's share of the servers that all use: the control plane's seconds while the
test ran, divided by the workers. Importing a file is part of its cost. One JSON file a process, `cost-<pid>.json`.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
import time
from collections import defaultdict
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from infra.controlplane import processes
from infra.controlplane.servers import Layout
from tests.packing import SESSION

RESULTS = Path(os.environ["ANNEAL_COST"])
WORKERS = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
_TICKS = os.sysconf("SC_CLK_TCK")
costs: dict[str, dict[str, Any]] = defaultdict(lambda: {"cpu": 0.0, "importing": 0.0, "wall": 0.0, "tests": 0, "failed": [], "seconds": {}})


def used() -> float:
    """Return the CPU seconds of this process and its children, running or waited for, without the servers."""
    spent, shared = os.times(), _servers()
    living = sum(_of_tree(child) for child in _children(os.getpid()) if child not in shared)
    return spent.user + spent.system + spent.children_user + spent.children_system + living


def _children(pid: int) -> list[int]:
    found: list[int] = []
    with contextlib.suppress(OSError):  # the process ends
        for thread in Path(f"/proc/{pid}/task").iterdir():
            with contextlib.suppress(OSError):  # this thread ends: the children of the others count
                found += map(int, (thread / "children").read_text().split())
    return found


def _of_tree(pid: int) -> float:
    return _spent(pid, 4) + sum(map(_of_tree, _children(pid)))


def _spent(pid: int, fields: int) -> float:
    """Return a process's own seconds, of user and system, and with 4 `fields` those of the children it has waited for; 0: it has ended."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return sum(map(int, stat[11 : 11 + fields])) / _TICKS


def _servers() -> set[int]:
    """Return the processes of the control plane that all tests use."""
    record = Layout(Path(os.environ.get(SESSION, "/nowhere")) / "run").processes
    return {server.pid for server in processes.load(record)} if record.exists() else set()


def _of_servers() -> float:
    return sum(_spent(server, 2) for server in _servers())


def _file(nodeid: str) -> dict[str, Any]:
    return costs[nodeid.partition("::")[0]]


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(collector: pytest.Collector) -> Generator[None, Any, Any]:
    """Add what importing a file costs."""
    before = used()
    report = yield
    if isinstance(collector, pytest.Module):
        _file(collector.nodeid)["importing"] = used() - before
    return report


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Say which test runs, and add what it has used."""
    probe = sys.modules.get("handler.mutant_probe")
    if probe is not None:
        probe.test = item.nodeid  # type: ignore[attr-defined]  # the copy's module of the probe
        probe.reached.clear()
    now = RESULTS / "now" / str(os.getpid())
    now.write_text(item.nodeid)
    shared = "control_plane" in getattr(item, "fixturenames", ())
    before, began, servers = used(), time.monotonic(), _of_servers() if shared else 0.0
    try:
        return (yield)
    finally:
        cost, seconds = _file(item.nodeid), time.monotonic() - began
        spent = max(0.0, used() - before)  # a browser leaves its processes to no parent: theirs are lost
        cost["cpu"] += spent + ((_of_servers() - servers) / WORKERS if shared else 0.0)
        cost["wall"] += seconds
        cost["tests"] += 1
        cost["seconds"][item.nodeid] = round(seconds, 3)


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Note what fails without any mutant: it proves nothing of one."""
    if report.failed and report.nodeid not in _file(report.nodeid)["failed"]:
        _file(report.nodeid)["failed"].append(report.nodeid)


def pytest_sessionfinish() -> None:
    """Write what this process has seen."""
    (RESULTS / f"cost-{os.getpid()}.json").write_text(json.dumps(costs))
