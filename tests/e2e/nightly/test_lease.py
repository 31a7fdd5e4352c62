"""Two workers on one target: one runs, the other leaves what is asked; a worker that was away too long stops."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from handler.app.build import Handler as Worker
from handler.model.names import state_name
from handler.model.result import Outcome
from handler.state.lease import HeldLease
from handler.state.lease_record import REQUESTED
from handler.state.record_format import stamp
from tests.e2e.api_proxy import is_object_write
from tests.e2e.documents import Document, config_map
from tests.e2e.killed_runs import Wire
from tests.e2e.one_target import DONE, STATES, Shop, told
from tests.e2e.run_process import Child
from tests.patience import PATIENCE, until
from tests.rooms.cluster.faulty_proxy import Handler

PAUSED = 5.0
"""Seconds of a Lease that is lost while its holder stands still; the others have the default, whatever the machine is busy with."""


@dataclass
class Pause:
    """Stops the child at a request, which is let through when the test says so. `status`: what the API server then said."""

    child: Child
    reached: threading.Event = field(default_factory=threading.Event)
    released: threading.Event = field(default_factory=threading.Event)
    over: threading.Event = field(default_factory=threading.Event)
    status: int = 0

    def __call__(self, handler: Handler) -> bool:
        self.child.signal(signal.SIGSTOP)
        self.reached.set()
        assert self.released.wait(PATIENCE)
        start = handler.start

        def note(status: int, headers: dict[str, str]) -> None:
            self.status = self.status or status
            self.over.set()
            start(status, headers)

        handler.start = note  # type: ignore[method-assign]  # only to see the status
        return True


def paused(shop: Shop, wired: Wire, chosen: Callable[[str, str], bool]) -> tuple[Child, Pause]:
    """Start a run that is stopped at the first chosen request."""
    wire = wired()
    child = Child.start(replace(shop.settings, lease_duration=PAUSED), str(wire.kubeconfig))
    pause = Pause(child)
    wire.meet(1, pause, chosen)
    child.begin(shop.job())
    assert pause.reached.wait(PATIENCE)
    return child, pause


def base(shop: Shop) -> list[Document]:
    return [config_map(shop.name, "kept"), config_map(shop.name, "updated", {"key": "1"}), config_map(shop.name, "deleted")]


STALE = {
    "an update": ("PATCH", "updated", lambda name: config_map(name, "updated", {"key": "stale"})),
    "a delete": ("DELETE", "deleted", None),
    "a create": ("PATCH", "created", lambda name: config_map(name, "created", {"key": "stale"})),
}
"""What is on the wire when its sender is stopped: method, name, what it writes."""


def stale_head(shop: Shop, what: str) -> list[Document]:
    """The commit that the paused worker deploys: exactly one write."""
    _, name, made = STALE[what]
    others = [document for document in base(shop) if document["metadata"]["name"] != name]
    return [*others, made(shop.name)] if made else others


def newer_head(shop: Shop) -> list[Document]:
    """The commit that the other worker deploys: it touches all three."""
    names = ("updated", "deleted", "created")
    return [config_map(shop.name, "kept"), *(config_map(shop.name, name, {"key": "newer"}) for name in names)]


def run_when_due(shop: Shop) -> None:
    """Run what a takeover scheduled: a drift run one Lease duration later, as if that were over."""
    assert shop.state().drift_due, "a takeover schedules a drift run"
    shop.handler.store(shop.target).update(lambda state: replace(state, drift_due=stamp(time.time() - 1)))
    result = shop.run("tick")
    assert result.outcome in DONE, told(result)
    assert shop.state().drift_due == ""


@pytest.mark.parametrize("what", STALE)
def test_a_paused_workers_write_on_the_wire_meets_409_and_the_worker_stops(shop: Shop, wired: Wire, what: str) -> None:
    method, name, _ = STALE[what]
    shop.push(*base(shop))
    shop.applied()
    shop.push(*stale_head(shop, what))
    child, pause = paused(shop, wired, lambda m, p: is_object_write(m, p) and m == method and f"/configmaps/{name}" in p)
    shop.push(*newer_head(shop))
    shop.applied()
    shop.assert_converged()
    pause.released.set()
    assert pause.over.wait(PATIENCE)
    child.signal(signal.SIGCONT)
    result = child.result()
    assert result
    assert (result.outcome, result.code) == (Outcome.BUSY, "lease-lost"), told(result)
    assert pause.status == 409
    run_when_due(shop)
    shop.assert_converged()


def test_a_worker_paused_before_a_write_never_sends_it(shop: Shop, wired: Wire) -> None:
    shop.push(*base(shop))
    shop.applied()
    shop.push(*stale_head(shop, "a delete"))
    looks = iter(range(100))
    child, pause = paused(shop, wired, lambda m, p: m == "GET" and "/configmaps/anneal-" in p and next(looks) == 2)
    shop.push(*newer_head(shop))
    shop.applied()
    before = shop.versions()
    pause.released.set()
    child.signal(signal.SIGCONT)
    result = child.result()
    assert result
    assert (result.outcome, result.code) == (Outcome.BUSY, "lease-lost"), told(result)
    assert shop.versions() == before
    shop.assert_converged()


class Asking:
    """Another worker that asks for a newer head while the holder's request is on the wire, and gives up at once."""

    def __init__(self, shop: Shop, chosen: Callable[[Handler], bool]) -> None:
        self.shop = shop
        self.chosen = chosen
        self.results: list[Outcome] = []

    def __call__(self, handler: Handler) -> bool:
        if not self.results and self.chosen(handler):
            self.results.append(Outcome.BUSY)
            self.shop.push(config_map(self.shop.name, "a", {"key": "newer"}))
            stop, worker = threading.Event(), self.shop.handler
            with ThreadPoolExecutor(1) as pool:
                asked = pool.submit(worker.run, self.shop.job(), stop)
                until(lambda: _is_requested(self.shop))
                stop.set()
                self.results[0] = asked.result().outcome
        return True


def _is_requested(shop: Shop) -> bool:
    lease = shop.kubectl("get", "lease", state_name(shop.name), "-n", STATES)
    return REQUESTED in (lease["metadata"].get("annotations") or {})


def is_release(handler: Handler) -> bool:
    return b'"holderIdentity"' not in handler.body


def is_renewal(handler: Handler) -> bool:
    return b'"holderIdentity"' in handler.body


@pytest.mark.parametrize("chosen", [is_release, is_renewal])
def test_a_request_that_meets_a_lease_release_or_renewal_isnt_lost(
    shop: Shop, wired: Wire, chosen: Callable[[Handler], bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The request lands between the holder's last look and its swap: the swap fails, the holder sees it and runs again."""
    shop.push(config_map(shop.name, "a", {"key": "older"}))
    wire = wired()
    asking = Asking(shop, chosen)
    wire.wire.only = lambda method, path: method == "PUT" and "/leases/" in path
    wire.wire.tricks[:] = [asking] * 50
    worker: Worker = shop.handler_at(wire.kubeconfig)
    if chosen is is_renewal:
        _renew_at_a_look(worker, shop, asking, monkeypatch)
    result = worker.run(shop.job())
    assert result.outcome in DONE, told(result)
    assert asking.results == [Outcome.BUSY]
    shop.assert_converged()
    assert not _is_requested(shop)


def _renew_at_a_look(worker: Worker, shop: Shop, asking: Asking, monkeypatch: pytest.MonkeyPatch) -> None:
    """Renew the Lease at the worker's first look under it, so that the test doesn't wait for a third of its duration."""
    rooms, held, start = worker.dependencies(shop.name), list[HeldLease](), HeldLease.start
    read = rooms.store.read

    def noted(lease: HeldLease) -> HeldLease:
        held.append(lease)
        return start(lease)

    def renewed() -> Any:
        if held and not asking.results:
            held[0].renew()
        return read()

    monkeypatch.setattr(HeldLease, "start", noted)
    rooms.store.read = renewed  # type: ignore[method-assign]  # the run's renewal comes now, nothing else
