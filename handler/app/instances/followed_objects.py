"""The objects of watched kinds as a process that lives knows them: one LIST and one WATCH each, by the rights of template or instance.

Law: what isn't known whole is an error; until the first LIST is whole, a question waits for it.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Protocol

from handler.app.instances.listed_objects import LONGEST, Kinds, served, unserved
from handler.cluster.lister import Followed, Lister, LiveChange
from handler.cluster.live import Object
from handler.config.settings import Cluster, Target
from handler.config.trigger_settings import WatchedResource
from handler.model.errors import ClusterUnavailable
from handler.model.instance import template_of

_LOOK = 0.05  # seconds between two looks whether the first LIST has failed


class Hear(Protocol):
    """Takes what happened to an object of a watched kind. `template`: the configured target whose trigger watches it."""

    def __call__(self, template: str, watched: WatchedResource, change: LiveChange) -> None:
        """Hear of it, on a thread of the lister; it must not wait."""


class FollowedObjects:
    """`WatchedObjects` of one process. Safe to share between threads. `hear`: called for each change of each object."""

    def __init__(self, ways: Kinds, hear: Hear) -> None:
        self._ways = ways
        self._hear = hear
        self._listers: dict[tuple[Cluster, str], Lister] = {}
        self._followed: dict[tuple[str, str, str, str, Cluster], Followed] = {}
        self._lock = threading.Lock()

    def objects(self, target: Target, watched: WatchedResource, namespace: str) -> list[Object]:
        """Return all objects of a kind, once it was LISTed whole. Raises KindNotServed, ClusterUnavailable, what ended the WATCH."""
        followed = self.follow(target, watched, namespace)
        end = time.monotonic() + LONGEST
        while not followed.wait(_LOOK) and followed.error is None and time.monotonic() < end:
            pass
        if followed.complete:
            return followed.items()
        if followed.error is not None:
            raise unserved(self._ways, target, watched, followed.error)
        seen = f"its objects aren't known whole after {LONGEST:.0f} s; nothing is pruned"
        raise ClusterUnavailable.of(f"{watched.kind}.{watched.api_version}", seen)

    def follow(self, target: Target, watched: WatchedResource, namespace: str) -> Followed:
        """Follow a kind from now on, if it isn't followed already. Raises KindNotServed, AnnealError."""
        account = target.impersonate.service_account if target.impersonate else ""
        template = template_of(target.name)
        key = (template, watched.name, account, namespace, target.cluster)
        with self._lock:
            known = self._followed.get(key)
        if known is not None:
            return known
        resource, api = served(self._ways, target, watched), self._ways.api(target)
        with self._lock:
            lister = self._listers.get((target.cluster, account)) or self._listers.setdefault((target.cluster, account), Lister(api))
            if key not in self._followed:
                hear: Callable[[LiveChange], None] = lambda change: self._hear(template, watched, change)  # noqa: E731 - it has no other name
                self._followed[key] = lister.follow(resource, watched.namespace or namespace, watched.label_selector.query, hear)
            return self._followed[key]

    def leave(self, template: str, namespace: str) -> None:
        """Follow no longer what the instances of a namespace saw by the rights of their account."""
        with self._lock:
            keys = [key for key in self._followed if key[0] == template and key[2].partition("/")[0] == namespace]
            gone = [self._followed.pop(key) for key in keys]
            ended = [key for key in self._listers if key[1] and not any((each[4], each[2]) == key for each in self._followed)]
            listers = [self._listers.pop(key) for key in ended]
        for each in gone:
            each.close()
        for lister in listers:
            lister.close()

    def close(self) -> None:
        """End all threads."""
        with self._lock:
            listers, self._followed = list(self._listers.values()), {}
            self._listers = {}
        for each in listers:
            each.close()
