"""Bulkheads: a cluster or a git host that doesn't answer holds up its own targets, and not the others.

Each cluster and each git host has a lane, which only so many runs may be in at once. There are enough threads that a lane which is
full of waiting leaves room for the others; with one cluster and one host all threads are theirs.

Those that are known not to answer share a quarter of the threads, until one of their runs hears from them: however many hang, the rest
goes on. Before that is known: of up to eight clusters (or hosts) all but one may hang, of more any seven; where more begin to hang in the
same moment, their runs fill all threads until one of them gives up by its own time-outs.
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

THREADS, MOST_THREADS = 4, 16
"""Runs at once of one cluster; of all together."""
_LEAST = 2
_MUTE_SHARE = 4
_SILENCE = {ClusterUnavailable.code: "cluster", GitUnavailable.code: "git host"}
"""Which lane a run's failure, by its code, tells of."""
_UNHEARD = frozenset(error.code for error in (KubeconfigInvalid, SecretUnavailable, AccessDenied, ServerPinned, ConfigInvalid))
"""Failures that come before any host has answered, or may: they tell of no lane."""

Lane = tuple[str, Hashable]


class Bulkheads:
    """Which targets may run beside which. `threads`: how many runs there may be at once."""

    def __init__(self, settings: Settings) -> None:
        self._of = {target.name: _lanes(target) for target in settings.targets}
        kinds = Counter(kind for kind, _ in {lane for lanes in self._of.values() for lane in lanes})
        self.threads = min(MOST_THREADS, THREADS * max(kinds.values(), default=1))
        self._room = {kind: max(_LEAST, self.threads // count) for kind, count in kinds.items()}
        self._alone = {kind for kind, count in kinds.items() if count == 1}
        self._mute: frozenset[Lane] = frozenset()
        self._noting = threading.Lock()

    def mute(self, target: str, kind: str) -> None:
        """Note that a target's `cluster` or `git host` doesn't answer. Where there is but one of it, nothing is to be kept free of it."""
        with self._noting:
            self._mute |= {lane for lane in self._of[target] if lane[0] == kind and kind not in self._alone}

    def ended(self, target: str, code: str) -> None:
        """Note what a run tells of its lanes by the code it ended with; empty: all is well."""
        if code in _SILENCE:
            self.mute(target, _SILENCE[code])
        elif code not in _UNHEARD:
            with self._noting:
                self._mute -= set(self._of[target])

    def beside(self, busy: Collection[str]) -> Callable[[str], bool]:
        """Return what tells whether a target may run beside these."""
        taken = Counter(lane for target in busy for lane in self._of[target])
        full = {lane for lane, count in taken.items() if count >= self._room[lane[0]]}
        mute = self._mute
        if sum(not mute.isdisjoint(self._of[target]) for target in busy) >= self.threads // _MUTE_SHARE:
            full |= mute
        return lambda target: full.isdisjoint(self._of[target])


def _lanes(target: Target) -> tuple[Lane, ...]:
    return ("cluster", target.cluster), ("git host", git_host(target))


def git_host(target: Target) -> str:
    """Return the host that a target's commits come from."""
    url = target.repository.url
    return urlsplit(url).netloc.rpartition("@")[2].lower() or url
