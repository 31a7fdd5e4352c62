"""Bulkheads: a cluster or a git host that doesn't answer holds up its own targets, and not the others.

Only so many runs may be at one cluster, or at one git host, at once; with one of each all threads are theirs. Those that are known not to
answer share a quarter of the threads until they answer a run. Before that is known, of up to eight all but one may hang, of more any seven:
where more begin to hang at once, their runs fill all threads until one of them ends by its own time-outs. Plans of pull requests, which
others cause, are made one at a time, beside all runs.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Collection, Hashable
from urllib.parse import urlsplit

from handler.config.settings import Settings, Target
from handler.model.errors import (
    AccessDenied,
    ClusterUnavailable,
    ConfigInvalid,
    GitUnavailable,
    KubeconfigInvalid,
    SecretUnavailable,
    ServerPinned,
)
from handler.model.instance import template_of
from handler.model.pull_request import is_pull_request

THREADS, MOST_THREADS = 4, 16
"""Runs at once of one cluster; of all together."""
_LEAST = 2
_MUTE_SHARE = 4
_SILENCE = {ClusterUnavailable.code: "cluster", GitUnavailable.code: "git host"}
"""What doesn't answer, by the code of a run's failure."""
_UNHEARD = frozenset(error.code for error in (KubeconfigInvalid, SecretUnavailable, AccessDenied, ServerPinned, ConfigInvalid))
"""Failures that may come before any host has answered."""

Compartment = tuple[str, Hashable]
"""A cluster or a git host."""
_PULL_REQUESTS: Compartment = ("pull requests", "")


class Bulkheads:
    """Which targets may run beside which; an instance is where its template is. `threads`: how many runs there may be at once."""

    def __init__(self, settings: Settings) -> None:
        self._places = {target.name: _compartments(target) for target in settings.targets}
        kinds = Counter(kind for kind, _ in {compartment for compartments in self._places.values() for compartment in compartments})
        self.threads = min(MOST_THREADS, THREADS * max(kinds.values(), default=1))
        self._room = {kind: max(_LEAST, self.threads // count) for kind, count in kinds.items()}
        self._room[_PULL_REQUESTS[0]] = 1
        self._alone = {kind for kind, count in kinds.items() if count == 1}
        self._mute: frozenset[Compartment] = frozenset()
        self._noting = threading.Lock()

    def _of(self, target: str) -> tuple[Compartment, ...]:
        if is_pull_request(target):
            return (_PULL_REQUESTS,)
        return self._places[template_of(target)]

    def mute(self, target: str, kind: str) -> None:
        """Note that a target's `cluster` or `git host` doesn't answer; the only one of its kind holds up no other."""
        with self._noting:
            self._mute |= {compartment for compartment in self._of(target) if compartment[0] == kind and kind not in self._alone}

    def ended(self, target: str, code: str) -> None:
        """Note by the code that a run ended with (empty: all is well) whether its cluster and git host answer."""
        if code in _SILENCE:
            self.mute(target, _SILENCE[code])
        elif code not in _UNHEARD:
            with self._noting:
                self._mute -= set(self._of(target))

    def beside(self, busy: Collection[str]) -> Callable[[str], bool]:
        """Return the condition under which a target may run beside these."""
        taken = Counter(compartment for target in busy for compartment in self._of(target))
        full = {compartment for compartment, count in taken.items() if count >= self._room[compartment[0]]}
        mute = self._mute
        if sum(not mute.isdisjoint(self._of(target)) for target in busy) >= self.threads // _MUTE_SHARE:
            full |= mute
        return lambda target: full.isdisjoint(self._of(target))


def _compartments(target: Target) -> tuple[Compartment, ...]:
    return ("cluster", target.cluster), ("git host", git_host(target))


def git_host(target: Target) -> str:
    """Return the host that a target's commits come from."""
    url = target.repository.url
    return urlsplit(url).netloc.rpartition("@")[2].lower() or url
