"""Renews the heartbeat of each cluster: which server runs, what it looks after, when it looked; and that health is watched.

One thread and one small write a minute a cluster; with a `healthInterval` below a minute as often as that, for so long health holds.
A first look at a target is written sooner, and so is the end of the server.

Law: a cluster that doesn't answer delays nothing but its own heartbeat, and no failure of it stops the server. Where two ways of the
configuration lead to one cluster, each says what the server looks after by both: it is one server on one Lease.
"""

from __future__ import annotations

import logging
import math
import os
import socket
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Collection, Hashable
from functools import partial

from handler import __version__
from handler.config.settings import Settings, Target
from handler.model.errors import AnnealError
from handler.model.instance import template_of
from handler.state.cluster_port import StateObjects
from handler.state.heartbeat import EVERY, INTERVALS, Heartbeat, Signs
from handler.worker.metric_labels import places

_LOG = logging.getLogger("anneal.heartbeat")
Renewed = Callable[[str, float], None]
"""Takes the name of a cluster and when its heartbeat was renewed, in seconds since the epoch; 0: not yet."""
_PAUSE = 2.0
"""Seconds between two renewals, however much is new: at a start a thousand targets are looked at for the first time."""
_LAST = 2.0  # seconds that all clusters have for the last renewal of a server that ends


class HeartbeatRenewal:
    """The heartbeats of one server, for threads. `records`: the way to a target's cluster, raises AnnealError."""

    def __init__(self, settings: Settings, records: Callable[[Target], StateObjects], renewed: Renewed) -> None:
        grouped: dict[Hashable, list[Target]] = defaultdict(list)
        for target in settings.targets:
            grouped[target.cluster].append(target)
        called = places(settings)
        self._pulses: dict[Hashable, _Pulse] = {}
        for cluster, targets in grouped.items():
            place = partial(renewed, called[targets[0].name].cluster)
            self._pulses[cluster] = _Pulse(settings, records, place, targets, self._pulses.values())
        self._of = {target.name: self._pulses[target.cluster] for target in settings.targets}
        self._threads: list[threading.Thread] = []

    def start(self) -> None:
        """Renew from now on."""
        self._threads = [threading.Thread(target=pulse.run, name="heartbeat", daemon=True) for pulse in self._pulses.values()]
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """Say on each cluster that this server ends; nothing is waited for."""
        for pulse in self._pulses.values():
            pulse.stop()

    def join(self) -> None:
        """Wait until that is said; for a cluster that doesn't answer a moment only."""
        end = time.monotonic() + _LAST
        for thread in self._threads:
            thread.join(max(end - time.monotonic(), 0.0))

    def looked(self, target: str) -> None:
        """Note that a target was looked at now; of an instance its template is."""
        name = template_of(target)
        self._of[name].look(name)

    def watched(self, target: Target) -> None:
        """Note that the health of all targets on this one's cluster is watched now."""
        self._of[template_of(target.name)].watch()


class _Pulse:
    """The heartbeat of one cluster."""

    def __init__(
        self,
        settings: Settings,
        records: Callable[[Target], StateObjects],
        renewed: Callable[[float], None],
        targets: list[Target],
        all_of_them: Collection[_Pulse],
    ) -> None:
        self.looks = dict.fromkeys((target.name for target in targets), -math.inf)
        self._settings, self._records, self._renewed = settings, records, renewed
        self._target, self._all, self.lease = targets[0], all_of_them, ""
        self.last_watch = -math.inf
        self._wake, self._ended = threading.Event(), threading.Event()
        self._said = ""

    def run(self) -> None:
        self._renewed(0.0)
        interval = min(EVERY, self._settings.health_interval or EVERY)
        while not self._ended.is_set():
            self._wake.clear()
            self._renew()
            pause = min(_PAUSE, interval)
            if not self._ended.wait(pause):
                self._wake.wait(interval - pause)
        self._renew()

    def stop(self) -> None:
        self._ended.set()
        self._wake.set()

    def look(self, target: str) -> None:
        first, self.looks[target] = math.isinf(self.looks[target]), time.monotonic()
        if first:
            self._wake.set()

    def watch(self) -> None:
        first, self.last_watch = math.isinf(self.last_watch), time.monotonic()
        if first:
            self._wake.set()

    def _renew(self) -> None:
        settings = self._settings
        try:
            objects = self._records(self._target)
            self.lease = Heartbeat(objects, settings.state_namespace, settings.installation).renew(self._signs())
        except AnnealError as error:
            self._warn(error)
        except Exception:  # noqa: BLE001 - a mistake of ours may not end the heartbeat
            _LOG.exception("a heartbeat failed")
        else:
            self._said = ""
            self._renewed(time.time())

    def _signs(self) -> Signs:
        now, interval = time.monotonic(), self._settings.health_interval
        one = [each for each in self._all if each is self or each.lease == self.lease != ""]
        looks = {name: now - at for each in one for name, at in each.looks.copy().items()}
        oldest = min(each.last_watch for each in one)
        watched = None if math.isinf(oldest) else (now - oldest, float(max(int(INTERVALS * interval), 1)))
        return Signs(server_name(), __version__, looks, watched, self._ended.is_set())

    def _warn(self, error: AnnealError) -> None:
        if error.code != self._said:
            fields = {"cluster": self._target.cluster.name, "why": str(error), "code": error.code}
            _LOG.warning("the heartbeat can't be renewed", extra={"fields": fields})
        self._said = error.code


def server_name() -> str:
    """Return how this process calls itself on its heartbeats."""
    return f"{socket.gethostname()}_{os.getpid()}"
