"""What holds a run up is recorded beside what its waits say, for as long as it lasts."""

from __future__ import annotations

from dataclasses import replace

import pytest

from handler.model.errors import ClusterUnavailable
from handler.model.event import Job
from tests.fakes.engine import cluster, engine, pushed
from tests.fakes.git_host import GitHost
from tests.unit.engine.waiting_run import Scene

WEB, TEA = "Deployment/shop/web: 0 of 1 replica available", "Offer/shop/tea: PATCH answered 500: “conversion webhook failed”"


@pytest.mark.parametrize("opened", [True, False], ids=["attempt", "plan"])
def test_what_holds_a_run_up_stands_beside_what_its_waits_say_while_it_lasts(opened: bool) -> None:
    server, host = cluster(), GitHost()
    first = pushed(host)
    handler = engine(server, host)
    handler.run(Job("shop", "tick"))
    run = Scene(server, host, handler, commit=first).wait()
    run.round.opened = opened
    run.record(lambda state: replace(state, status=replace(state.status, unhealthy=(WEB,))))
    subject, _, why = TEA.partition(": ")
    failure = ClusterUnavailable.of(subject, why)
    for over, lines in ((False, (WEB, TEA)), (True, (WEB,))):
        run.stalls(failure, over)
        stored = run.deps.store.read().state
        assert stored
        assert stored.status.unhealthy == lines
