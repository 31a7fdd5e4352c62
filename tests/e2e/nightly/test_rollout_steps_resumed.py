"""Rollouts that are cut in the middle: killed, taken over, paused; the next run goes on at the step."""

from __future__ import annotations

import signal
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from handler.model.result import Outcome
from handler.state.record import Suspend
from tests.e2e import rollouts
from tests.e2e.conftest import Open
from tests.e2e.killed_runs import AT_ONCE, Wire, is_recorded, kill_after
from tests.e2e.one_target import DONE, MORTAL, Shop, told
from tests.e2e.rollouts import assert_carried_out, everything, opened, outcomes, planted, written
from tests.e2e.run_process import Child
from tests.patience import PATIENCE
from tests.rooms.cluster.faulty_proxy import Handler


@pytest.fixture
def shop(open_shop: Open) -> Shop:
    """Here every shop has a Rollout."""
    return opened(open_shop, 15.0)


def deletions(seen: list[tuple[str, str]]) -> dict[str, int]:
    """Count what was deleted, by name."""
    names = [name for method, name in written(seen) if method == "DELETE"]
    return {name: names.count(name) for name in names}


def crashed(shop: Shop, wired: Wire, number: int, version: str) -> bool:
    """Kill a rollout of every action after its write with this number, let the next run go on, and look at what came of both."""
    uids = planted(shop)
    documents, groups = everything(shop, version)
    rollouts.push(shop, documents, *groups)
    wire = wired()
    killed = kill_after(shop, lambda: wire, number, is_recorded)
    result = shop.handler_at(wire.kubeconfig).run(shop.job("tick"))
    assert result.outcome in DONE, told(result)
    assert_carried_out(shop, uids, version)
    assert deletions(wire.seen) == {"old": 1, "migration": 1}, f"killed after write {number}"
    return killed


def test_a_rollout_killed_in_any_step_is_gone_on_with_at_that_step(open_shop: Open, wired: Wire) -> None:
    """After every third write: every group, object and record of a step. (In memory it's killed at every request.)

    What goes together in one write differs from run to run, and so does how many there are.
    """
    model = opened(open_shop)
    planted(model)
    documents, groups = everything(model, "2")
    rollouts.push(model, documents, *groups)
    wire = wired()
    result = model.handler_at(wire.kubeconfig).run(model.job())
    assert result.outcome is Outcome.APPLIED, told(result)
    total = sum(is_recorded(*request) for request in wire.seen)
    assert total > 14

    numbers = range(3, total + 1, 3)

    def crash(number: int) -> bool:
        return crashed(opened(open_shop), wired, number, str(number + 2))

    with ThreadPoolExecutor(AT_ONCE) as pool:
        assert sum(pool.map(crash, numbers)) > len(numbers) // 2, "who had fewer writes had ended before the last ones"


# --- others
def test_a_worker_that_was_away_too_long_stops_in_the_middle_and_its_successor_goes_on_with_the_step(open_shop: Open, wired: Wire) -> None:
    shop = opened(open_shop)
    uids = planted(shop)
    documents, groups = everything(shop, "2")
    rollouts.push(shop, documents, *groups)
    wire = wired()
    child = Child.start(replace(shop.settings, lease_duration=MORTAL), str(wire.kubeconfig))  # the successor's own is the usual one
    reached, go_on = threading.Event(), threading.Event()

    def hold(_: Handler) -> bool:
        child.signal(signal.SIGSTOP)
        reached.set()
        assert go_on.wait(PATIENCE)
        return True

    wire.meet(1, hold, lambda method, path: method == "DELETE" and "/configmaps/migration" in path)
    child.begin(shop.job())
    assert reached.wait(PATIENCE)
    result = shop.run("tick")
    assert result.outcome in DONE, told(result)
    assert_carried_out(shop, uids, "2")
    before = shop.versions()
    go_on.set()
    child.signal(signal.SIGCONT)
    ended = child.result()
    assert ended
    assert ended.outcome is Outcome.BUSY, told(ended)
    assert shop.versions() == before


def test_a_pause_in_the_middle_ends_the_run_and_the_rollout_goes_on_after_it(shop: Shop, wired: Wire) -> None:
    uids = planted(shop)
    documents, groups = everything(shop, "2")
    rollouts.push(shop, documents, *groups)
    wire = wired()

    def suspend(suspended: Suspend | None) -> None:
        shop.handler.store(shop.target).update(lambda state: replace(state, suspend=suspended))

    def pause(_: Handler) -> bool:
        suspend(Suspend(by="ann", reason="release freeze"))
        return True

    wire.meet(1, pause, lambda method, path: method == "DELETE" and "/configmaps/old" in path)
    result = shop.handler_at(wire.kubeconfig).run(shop.job())
    assert (result.outcome, result.code) == (Outcome.SUSPENDED, "suspended"), told(result)
    left = outcomes(shop)
    assert left["old"] in ("done", "")  # on a slow machine the pause is heard while the deletion is waited for
    assert left["last"] == ""
    suspend(None)
    result = shop.handler_at(wire.kubeconfig).run(shop.job("tick"))
    assert result.outcome in DONE, told(result)
    assert_carried_out(shop, uids, "2")
    assert deletions(wire.seen) == {"old": 1, "migration": 1}
