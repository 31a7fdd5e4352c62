"""Dead API servers, dead git hosts, dead processes: webhooks are still taken, and all targets converge when the others return."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from functools import partial
from math import inf
from pathlib import Path
from typing import Any

import pytest

from infra.githost import Host
from tests.e2e.conftest import OpenFleet
from tests.e2e.many_targets import Fleet
from tests.e2e.serve_process import Serving
from tests.e2e.tcp_gate import Gate, kubeconfig_through
from tests.patience import until

SIZE = 6


@pytest.fixture
def cluster(control_plane: Path, tmp_path: Path) -> Iterator[tuple[Gate, Path]]:
    """A gate in front of the cluster, and the kubeconfig that leads through it."""
    made, kubeconfig = kubeconfig_through(control_plane, tmp_path / "kubeconfig")
    yield made, kubeconfig
    made.close()


@pytest.fixture
def git(host: Host) -> Iterator[Gate]:
    """A gate in front of the git host."""
    made = Gate(host.url)
    yield made
    made.close()


def pushed(fleet: Fleet, server: Serving, version: int) -> None:
    """Push to every target; each webhook is acknowledged."""
    for number in range(fleet.size):
        assert server.push(fleet.url, fleet.ref(number), fleet.move(number, version)) == 202
    assert server.status("/healthz") == 200


def all_fail(fleet: Fleet, server: Serving, code: str) -> None:
    """Wait until a run of each target has failed with this code, by the log."""
    for number in range(fleet.size):
        until(partial(server.runs, target=fleet.target(number), outcome="failed", code=code, who="nobody"), server.log.read_text)


def test_a_dead_api_server_delays_no_webhook_and_all_converge_when_it_returns(open_fleet: OpenFleet, cluster: tuple[Gate, Path]) -> None:
    gate, kubeconfig = cluster
    fleet = open_fleet(SIZE, clusters=dict.fromkeys(range(SIZE), kubeconfig))
    server = fleet.serve().ready()
    fleet.converge()
    gate.turn("shut")
    pushed(fleet, server, 3)
    all_fail(fleet, server, "cluster-unavailable")
    server.kill("worker")
    pushed(fleet, server, 4)
    server.kill("web")
    until(lambda: server.status("/readyz") == 200)
    gate.turn("open")
    fleet.converge()


def test_a_dead_git_host_is_recorded_prunes_nothing_and_all_converge_when_it_returns(open_fleet: OpenFleet, git: Gate) -> None:
    fleet = open_fleet(SIZE, git=git.url)
    server = fleet.serve().ready()
    fleet.converge()
    before = fleet.kubectl("get", "configmaps", "-n", fleet.name)["items"]
    git.turn("shut")
    pushed(fleet, server, 3)
    all_fail(fleet, server, "git-unavailable")
    states = [fleet.state(number) for number in range(fleet.size)]
    assert {state.status.code for state in states if state} == {"git-unavailable"}, "whoever looks sees it"
    assert all(state and state.status.next_try for state in states)
    assert fleet.kubectl("get", "configmaps", "-n", fleet.name)["items"] == before
    server.kill("worker")
    git.turn("open")
    fleet.converge()


def _time(line: dict[str, Any]) -> float:
    """Return when a line was written, in seconds since the epoch."""
    return datetime.fromisoformat(line["time"]).timestamp()


def test_a_cluster_that_never_answers_delays_no_target_of_another(open_fleet: OpenFleet, cluster: tuple[Gate, Path]) -> None:
    """Twelve targets of a silent cluster come first, at start-up and by webhook; the others have begun while those still wait."""
    gate, kubeconfig = cluster
    fleet = open_fleet(14, clusters=dict.fromkeys(range(12), kubeconfig))
    gate.turn("silent")
    server = fleet.serve().ready()
    silent = {fleet.target(number) for number in range(12)}
    for number in range(12):
        assert server.push(fleet.url, fleet.ref(number), fleet.move(number, 1)) == 202
    for number in (12, 13):
        assert server.push(fleet.url, fleet.ref(number), fleet.move(number, 2)) == 202
    for number in (12, 13):
        until(partial(server.runs, target=fleet.target(number), commit=fleet.commits[number, 2]), server.log.read_text)
    ends = [_time(line) for line in server.runs() if line["target"] in silent]
    begins = [_time(line) - line["seconds"] for line in server.runs() if line["target"] not in silent]
    assert max(begins) < min(ends, default=inf), "there was no need to wait for the end of one"
    gate.turn("open")
    fleet.converge()
