"""The row of very many targets that depend on others: one tick of all of them, half of which wait for what isn't healthy.

As in `many_rows` they are recorded without having been run: the first of each repository is degraded, and all others depend on it.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

from handler.app.build import Handler
from handler.config.secrets import Secrets
from handler.config.settings import Settings, Target
from handler.config.settings_digest import settings_digest
from handler.model.health import HealthState
from handler.state.record import RunStatus, State, TargetHealth
from handler.state.record_format import stamp
from handler.state.record_values import DependencyWait, Obstacle
from infra.bench.bed import Bed
from infra.bench.many_rows import configuration, loaded, repositories, tick, write_records
from infra.bench.rows import Row

_TARGETS = 1000


def ordered(bed: Bed) -> Iterator[Row]:
    """One tick of 1,000 targets with `dependsOn`, of which every second waits."""
    found = repositories(bed)
    urls = [url for url, _ in found]
    document = configuration(bed, bed.namespace(), urls, _TARGETS)
    for number, target in enumerate(document["targets"][len(urls) :]):
        target["dependsOn"] = [f"many-{number % len(urls)}"]
    settings = loaded(bed, document)
    write_records(bed, settings, dict(found))
    waiting = _let_wait(bed, settings, dict(found), len(urls))
    yield tick("1,000 targets with dependsOn, half of them waiting, one tick", bed, document, {"waiting": waiting})


def _let_wait(bed: Bed, settings: Settings, heads: dict[str, str], first: int) -> int:
    """Write into every second record that its head waits; return how many do. The `first` ones are degraded."""
    handler, now = Handler(settings, Secrets(), bed.sandbox, {}), stamp(time.time())
    sick = TargetHealth(str(HealthState.DEGRADED), now, now, ("Deployment/infra/db: 0 of 1 replicas available",))

    def change(number: int, target: Target) -> None:
        if number < first:
            handler.store(target).update(lambda state: replace(state, health=sick))
        elif number % 2:
            handler.store(target).update(lambda state: _waits(state, target, heads[target.repository.url], now))

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(change, range(len(settings.targets)), settings.targets))
    return sum(number >= first and number % 2 for number in range(len(settings.targets)))


def _waits(state: State, target: Target, head: str, now: str) -> State:
    obstacle = Obstacle(target.depends_on[0], "it is degraded", f"anneal status {target.depends_on[0]}")
    waits = DependencyWait(head, settings_digest(target), now, (obstacle,))
    return replace(state, commit="b" * 40, awaits=waits, status=RunStatus("waiting", now))
