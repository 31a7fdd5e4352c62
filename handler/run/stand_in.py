"""Where objects are dry-run whose own Namespace this run only creates: in another one of the target's that is there."""

from __future__ import annotations

import threading
from collections.abc import Collection
from dataclasses import dataclass, field

from handler.cluster.api import Api
from handler.cluster.live import probe
from handler.config.settings import Target
from handler.model.errors import AccessDenied
from handler.model.names import Identity
from handler.model.resource import Resource
from handler.plan.admit import NAMESPACE

_NAMESPACES = Resource("", "v1", "Namespace", "namespaces", namespaced=False)


@dataclass
class StandIn:
    """One plan's stand-in, looked for once. `absent`: what the plan creates, Namespaces among it.

    The lock is this plan's own: that of a `cached_property` is everybody's (Python 3.11), and a slow cluster would hold up the others.
    """

    target: Target
    api: Api
    absent: Collection[Identity] = frozenset()
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _known: str | None = None

    @property
    def name(self) -> str:
        """An existing whitelisted namespace, or nothing."""
        with self._lock:
            if self._known is None:
                self._known = self._look()
            return self._known

    def _look(self) -> str:
        if "*" in self.target.namespaces:
            return "default"
        names = [name for name in self.target.namespaces if Identity("", NAMESPACE.kind, "", name) not in self.absent]
        try:
            found = probe(self.api, [(_NAMESPACES, "", name) for name in names])
        except AccessDenied:
            return ""
        return next((identity.name for identity in sorted(found)), "")
