"""Three servers of one configuration on one control plane, webhooks lost and doubled, processes killed: every target ends at its head."""

from __future__ import annotations

import itertools
import os
import random
import signal
import threading
from collections.abc import Iterator

import pytest

from handler.cluster.connect import ClusterConnection
from tests.e2e.conftest import OpenFleet
from tests.e2e.documents import config_map
from tests.e2e.killing_thread import KillingThread
from tests.e2e.many_targets import Fleet
from tests.e2e.serve_process import Serving
from tests.e2e.write_audit import Audit
from tests.patience import until

TARGETS, PUSHES, REPLICAS = 30, 240, 3
VERSIONS = 11
PACE = 0.05
"""Seconds between two pushes."""


def deliveries(chance: random.Random) -> int:
    """How often the webhook of a push is sent: one of seven is lost, one of five is doubled or more."""
    return chance.choices((0, 1, 2, 3), (14, 66, 15, 5))[0]


def pushes(fleet: Fleet, chance: random.Random, answers: list[int]) -> Iterator[tuple[int, str]]:
    """Move random targets to random versions, also back, and yield the deliveries: some much later than others.

    It ends when enough of them were taken: on a busy machine a server is long in coming back.
    """
    late: list[tuple[int, str]] = []
    for made in itertools.count():
        if made >= PUSHES and answers.count(202) > PUSHES / 4:
            return
        number = chance.randrange(fleet.size)
        version = chance.choice([version for version in range(VERSIONS) if version != fleet.heads[number]])
        sent = [(number, fleet.move(number, version))] * deliveries(chance)
        if chance.random() < 0.2:
            late += sent
        else:
            yield from sent
        if chance.random() < 0.1:
            chance.shuffle(late)
            yield from late
            late.clear()


def somebody(servers: list[Serving], chance: random.Random) -> Serving:
    """Return a server that has said where it listens, which the killing may end at any moment; when there is one."""
    found: list[Serving] = []

    def are_there() -> list[Serving]:
        found[:] = [server for server in servers if server.port or server.listening()]
        return found

    until(are_there)
    return chance.choice(found)


def assert_no_lease_is_stuck(fleet: Fleet, server: Serving) -> None:
    """A Lease may still name a dead holder where nothing was left to write; the next push takes it over, and frees it."""
    for number in fleet.held():
        sha = fleet.move(number, (fleet.heads[number] + 1) % VERSIONS)
        assert server.push(fleet.url, fleet.ref(number), sha) == 202
    fleet.converge()
    until(lambda: not fleet.held(), lambda: str(fleet.held()))


def test_three_replicas_of_which_one_is_killed_every_few_seconds_end_at_every_head(
    open_fleet: OpenFleet, connection: ClusterConnection
) -> None:
    chance = random.Random(4)
    fleet = open_fleet(TARGETS, VERSIONS, settings={"interval": "20s"})
    foreign = [config_map(fleet.name, "foreign"), config_map(fleet.name, "another", labels={"app": "x"})]
    fleet.kubectl.apply(*foreign)
    before = fleet.kubectl("get", "configmaps", "foreign", "another", "-n", fleet.name)["items"]
    audit = Audit.start(fleet, connection)
    servers = [fleet.serve() for _ in range(REPLICAS)]
    for server in servers:
        server.ready()
    killing = KillingThread(servers, chance, every=3.0)
    killing.start()
    answers: list[int] = []
    pause = threading.Event()
    for number, sha in pushes(fleet, chance, answers):
        pause.wait(PACE)
        answers.append(somebody(servers, chance).push(fleet.url, fleet.ref(number), sha))
    until(lambda: killing.count > 5)
    killing.stop()
    assert set(answers) <= {202, 0}, "taken, or nobody was there"
    fleet.converge()
    assert_no_lease_is_stuck(fleet, servers[0].ready())
    audit.stop()
    assert audit.writes() > TARGETS
    assert audit.unguarded() == [], "a write without a Lease"
    assert fleet.kubectl("get", "configmaps", "foreign", "another", "-n", fleet.name)["items"] == before
    assert not [line for server in servers for line in server.runs(code="internal")]


@pytest.mark.parametrize("begun", [False, True], ids=["before a run", "at any moment"])
def test_a_push_lost_with_its_replica_is_found_by_the_tick_of_another(open_fleet: OpenFleet, begun: bool) -> None:
    """A machine loses power right after its 202; it never comes back, and the git host doesn't send the webhook again."""
    fleet = open_fleet(4, 3)
    dying, living = fleet.serve(), fleet.serve()
    for server in (dying, living):
        server.ready()
    fleet.converge()
    if not begun:
        os.kill(dying.pid("worker"), signal.SIGSTOP)
    pushed = {number: fleet.move(number, 1) for number in range(fleet.size)}
    assert [dying.push(fleet.url, fleet.ref(number), sha) for number, sha in pushed.items()] == [202] * fleet.size
    dying.kill_all()
    fleet.converge()
    assert dying.status("/healthz") == 0, "it is gone for good"
    if not begun:
        theirs = {fleet.target(number): sha for number, sha in pushed.items()}
        until(lambda: theirs.items() <= {run["target"]: run["commit"] for run in living.runs(trigger="tick", outcome="applied")}.items())
        assert not [run for run in dying.runs(outcome="applied") if run["commit"] in pushed.values()]
