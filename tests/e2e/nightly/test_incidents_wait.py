"""The table of incidents, with `wait`: what is said while the run still waits, or noted at its end, and that it goes when it is cured.

All incidents happen at once, each in a namespace of its own: their controllers' own pauses are most of the time.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor

import pytest

from handler.config.settings import Wait
from handler.model.result import Outcome, Result
from handler.render.sandbox import Sandbox
from infra.githost import Host
from tests.e2e.documents import config_map
from tests.e2e.incidents import INCIDENTS, Incident, said, shop_of
from tests.e2e.one_target import Shop, told
from tests.kubectl import Kubectl
from tests.patience import PATIENCE, until

PATIENT = Wait(600.0, 600.0)
Ends = dict[str, Future[None]]


@pytest.fixture(scope="module")
def ends(request: pytest.FixtureRequest, host: Host, sandbox: Sandbox, kubectl: Kubectl) -> Iterator[Ends]:
    """Let every incident that is asked for happen."""
    mine = [getattr(item, "callspec", None) for item in request.session.items if item.path == request.path]
    asked = [spec.params["incident"] for spec in mine if spec]
    shops = {incident.name: shop_of(host, sandbox, kubectl, PATIENT) for incident in asked}
    with ThreadPoolExecutor(len(asked)) as pool:
        yield {incident.name: pool.submit(happens, shops[incident.name], incident) for incident in asked}
    for shop in shops.values():
        shop.close()


def happens(shop: Shop, incident: Incident) -> None:
    """Let an incident come over a target that waits, and cure it."""
    if incident.first:
        shop.push(*incident.first(shop))
        shop.applied()
    incident.prepare(shop)
    shop.push(*incident.documents(shop))
    (_noted if incident.noted else _waited)(shop, incident)


def _waited(shop: Shop, incident: Incident) -> None:
    with ThreadPoolExecutor(1) as pool:
        run = pool.submit(shop.run)
        try:
            until(lambda: run.done() or _unhealthy(shop, incident), lambda: f"{shop.handler.store(shop.target).read().state}")
            assert not run.done(), told(run.result())
            state = shop.state()
            assert (state.waiting is not None, state.commit, len(state.status.unhealthy)) == (True, "", 1), "it goes on waiting"
        finally:
            incident.cure(shop)
        result: Result = run.result(PATIENCE)
    assert result.outcome is Outcome.APPLIED, told(result)
    assert (shop.state().status.unhealthy, shop.state().waiting) == ((), None)
    assert not said(_notes(result), incident)


def _unhealthy(shop: Shop, incident: Incident) -> bool:
    state = shop.handler.store(shop.target).read().state
    return state is not None and said(state.status.unhealthy, incident)


def _noted(shop: Shop, incident: Incident) -> None:
    result = shop.applied()
    if not said(_notes(result), incident):
        until(lambda: incident.visible(shop))
        shop.push(*incident.documents(shop), config_map(shop.name, "a"))
        result = shop.applied()
    assert said(_notes(result), incident), _notes(result)
    incident.cure(shop)
    until(lambda: incident.cured(shop))
    shop.push(*incident.documents(shop), config_map(shop.name, "b"))
    cured = _notes(shop.applied())
    assert not said(cured, incident), cured


def _notes(result: Result) -> tuple[str, ...]:
    return tuple(result.plan.notes) if result.plan else ()


@pytest.mark.parametrize("incident", INCIDENTS, ids=lambda incident: incident.name)
def test_a_wait_reports_the_cause_of_each_incident(ends: Ends, incident: Incident) -> None:
    ends[incident.name].result()
