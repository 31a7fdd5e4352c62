"""The row of very many targets that follow others: one tick of all of them, while a newer commit soaks.

As in `many_rows` they are recorded without having been run: the first of each repository has recorded a commit a moment ago, which all
others of that repository wait for; these have the one before, which it had kept healthy for long enough.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

from handler.app.build import Handler
from handler.config.secrets import Secrets
from handler.config.settings import Settings, Target
from handler.model.health import HealthState
from handler.state.record import State, TargetHealth
from handler.state.record_format import stamp
from handler.state.soak import REPLACED, Soak
from infra.bench.bed import Bed
from infra.bench.many_rows import configuration, loaded, repositories, tick, write_records
from infra.bench.rows import Row

_TARGETS = 1000
_BEFORE = "b" * 40  # the commit that followers have
_HOUR = 3600.0


def promoted(bed: Bed) -> Iterator[Row]:
    """One tick of 1,000 targets, all but ten of which follow another."""
    found = repositories(bed)
    urls = [url for url, _ in found]
    document = configuration(bed, bed.namespace(), urls, _TARGETS)
    for number, target in enumerate(document["targets"][len(urls) :]):
        target["revision"] = {"promoted": {"from": f"many-{number % len(urls)}", "soak": "1h"}}
    settings = loaded(bed, document)
    write_records(bed, settings, dict(found))
    _soak(bed, settings)
    yield tick("1,000 targets, 990 of them promoted, one tick", bed, document, {"followers": _TARGETS - len(urls)})


def _soak(bed: Bed, settings: Settings) -> None:
    """Let the first target of each repository have a commit that soaks, and the others the one before."""
    handler, now = Handler(settings, Secrets(), bed.sandbox, {}), time.time()

    def change(target: Target) -> None:
        followed = target.revision.promoted is None
        handler.store(target).update(lambda state: _followed(state, now) if followed else replace(state, commit=_BEFORE))

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(change, settings.targets))


def _followed(state: State, now: float) -> State:
    old, recently, moment = stamp(now - 9 * _HOUR), stamp(now - _HOUR / 6), stamp(now)
    current = Soak((state.commit,), state.reads, state.settings, recently, healthy_since=recently)
    before = Soak((_BEFORE,), "e" * 64, state.settings, old, recently, old, REPLACED)
    health = TargetHealth(str(HealthState.HEALTHY), old, moment, apart=())
    return replace(state, health=health, soaks=(current, before))
