"""Two servers on one control plane, killed again and again, while 200 objects are created, changed and deleted at random: all converge."""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Collection
from functools import partial
from pathlib import Path

import pytest

from infra.githost import Host
from tests.e2e.killing_thread import KillingThread
from tests.e2e.widget_operator import WidgetOperator
from tests.kubectl import Kubectl
from tests.patience import until

INSTANCES, CHANGES, KILLS = 200, 500, 8


def at_random(widgets: WidgetOperator, chance: random.Random) -> dict[str, tuple[int, int]]:
    """Create, change and delete objects; return the count and size of each that is left."""
    names = [f"i{number}" for number in range(INSTANCES)]
    found: dict[str, tuple[int, int]] = {}
    for name in names:
        found[name] = (chance.randint(1, 3), chance.randint(0, 9))
        widgets.create(name, count=found[name][0], size=found[name][1], owns=chance.random() < 0.3)
    for _ in range(CHANGES):
        name = chance.choice(names)
        if name in found and chance.random() < 0.2:
            widgets.delete(name)
            del found[name]
            continue
        made = (chance.randint(1, 3), chance.randint(0, 9))
        if name in found:
            widgets.change(name, count=made[0], size=made[1])
        else:
            widgets.create(name, count=made[0], size=made[1])
        found[name] = made
    return found


def each_goes(left: Callable[[], Collection[str]], seed: int) -> None:
    """Wait for one after the other of what isn't as it should be, on a busy machine each in its time, until nothing is left."""
    while names := left():
        until(partial(_is_gone, min(names), left), lambda: f"seed {seed}; {left()}")


def _is_gone(name: str, left: Callable[[], Collection[str]]) -> bool:
    return name not in left()


@pytest.mark.timeout(2400)
def test_every_instance_converges_and_every_deleted_one_is_pruned(host: Host, kubectl: Kubectl, tmp_path: Path) -> None:
    seed = int(os.environ.get("ANNEAL_SEED", "0")) or random.randrange(1 << 32)
    chance = random.Random(seed)
    prune = {"holdAbove": {"count": 1000}}  # a third of them go
    widgets = WidgetOperator(host, kubectl, tmp_path, settings={"prune": prune})
    try:
        servers = [widgets.serve() for _ in range(2)]
        killing = KillingThread(servers, random.Random(seed + 1), every=1.0)
        killing.start()
        found = at_random(widgets, chance)
        until(lambda: killing.count >= KILLS)
        killing.stop()
        wanted = {f"{name}-{number}": str(size) for name, (count, size) in found.items() for number in range(1, count + 1)}
        each_goes(lambda: widgets.differs(wanted), seed)
        each_goes(lambda: widgets.records() ^ found.keys(), seed)
        each_goes(widgets.unready, seed)
    finally:
        widgets.close()
