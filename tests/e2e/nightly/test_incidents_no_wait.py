"""The table of incidents without `wait`: the commit is recorded at once, and what the record says of the target's health from then on.

All incidents happen at once, each in a namespace of its own, and one watch follows them all, as a worker's does.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from types import SimpleNamespace
from typing import Any

import pytest

from handler.app.build import Handler, Options
from handler.app.target_row import TargetRow
from handler.cli.follow_up_commands import NOTHING_GIVEN
from handler.cli.target_page import show
from handler.config.secrets import resolve_all
from handler.config.settings import Settings
from handler.model.health import HealthState
from handler.render.sandbox import Sandbox
from handler.worker.health_watch.cluster_watch import HealthWatch
from infra.githost import Host
from tests.e2e.incidents import INCIDENTS, Incident, said, shop_of
from tests.e2e.one_target import STATES, Shop
from tests.kubectl import Kubectl
from tests.patience import until

Ends = dict[str, Future[None]]


@pytest.fixture(scope="module")
def ends(request: pytest.FixtureRequest, host: Host, sandbox: Sandbox, kubectl: Kubectl) -> Iterator[Ends]:
    """Let every incident that is asked for happen, watched."""
    mine = [getattr(item, "callspec", None) for item in request.session.items if item.path == request.path]
    asked = [spec.params["incident"] for spec in mine if spec]
    shops = {incident.name: shop_of(host, sandbox, kubectl) for incident in asked}
    settings = Settings(targets=tuple(shop.target for shop in shops.values()), state_namespace=STATES, health_interval=2.0)
    handler = Handler(
        settings, resolve_all(settings, os.environ, needs={"git"}), sandbox, os.environ, Options(kubeconfig=str(kubectl.kubeconfig))
    )
    watch = HealthWatch(settings, handler, lambda _: None)
    watch.start()
    with ThreadPoolExecutor(len(asked)) as pool:
        yield {incident.name: pool.submit(happens, shops[incident.name], incident) for incident in asked}
    watch.stop()
    for shop in shops.values():
        shop.close()


def happens(shop: Shop, incident: Incident) -> None:
    """Let an incident come over a target that doesn't wait, and cure it."""
    if incident.first:
        shop.push(*incident.first(shop))
        shop.applied()
        _shows(shop, lambda: _state(shop) == HealthState.HEALTHY)
    incident.prepare(shop)
    shop.push(*incident.documents(shop))
    shop.applied()
    recorded = shop.state()
    assert (recorded.commit, recorded.status.phase) == (shop.head, "applied")
    try:
        _shows(shop, lambda: said(_told(shop, incident), incident) and said(_status(shop), incident))
        if not incident.noted and incident.name not in ("probe", "scheduling"):  # so a pod starts, too, and a Node may be on its way
            _shows(shop, lambda: _state(shop) == HealthState.DEGRADED)
    finally:
        incident.cure(shop)
    _shows(shop, lambda: _state(shop) == HealthState.HEALTHY and not said(_told(shop, incident), incident))
    after = shop.state()
    assert (after.history, after.commit, after.status, after.declared) == (
        recorded.history,
        recorded.commit,
        recorded.status,
        recorded.declared,
    ), "it only looks"


def _state(shop: Shop) -> str:
    return shop.state().health.state


def _told(shop: Shop, incident: Incident) -> tuple[str, ...]:
    health = shop.state().health
    return health.notes if incident.noted else health.worst


def _status(shop: Shop) -> list[str]:
    """Return the lines of `anneal status`."""
    lines: list[str] = []
    output: Any = SimpleNamespace(line=lambda text, *_, **__: lines.append(text))
    show(output, TargetRow(shop.target, time.time(), state=shop.state()), NOTHING_GIVEN)
    return lines


def _shows(shop: Shop, holds: Callable[[], bool]) -> None:
    until(holds, lambda: str(shop.state().health))


@pytest.mark.parametrize("incident", INCIDENTS, ids=lambda incident: incident.name)
def test_health_and_its_causes_of_each_incident_without_a_wait(ends: Ends, incident: Incident) -> None:
    ends[incident.name].result()
