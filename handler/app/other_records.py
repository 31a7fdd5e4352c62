"""Other targets' records, read for the runs of targets that depend on them: by their own clusters' ways, briefly, and never written.

Law: a record counts only if it is that target's: of its repository, this installation and its cluster.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from handler.app.connections import Connections
from handler.app.record_summaries import health_now
from handler.config.settings import Target
from handler.engine.run.other_records import OtherRecord
from handler.state.heartbeat import Beat, Heartbeat


class ConfiguredRecords:
    """Records of configured targets. `ways`: to their clusters; `find`: returns a target by name, raises ConfigInvalid."""

    def __init__(self, ways: Connections, find: Callable[[str], Target]) -> None:
        self._ways = ways
        self._find = find

    def read(self, target: str) -> OtherRecord:
        """Return a target's record, with its health as it is known now. Raises AnnealError: it can't be read, or is another's."""
        configured = self._find(target)
        store = self._ways.brief_store(configured)
        stored = store.read().state
        if stored is None:
            return OtherRecord(target)
        state = store.at_home(stored, configured.repository.url, self._ways.cluster_uid(configured))
        beat = None if state.attempt else self._beat(configured)
        return OtherRecord(target, state, health_now(state.health, state.attempt, beat, time.time(), self._ways.settings))

    def _beat(self, target: Target) -> Beat | None:
        """Return when the health on a target's cluster was watched last; None: it isn't watched, or that can't be read."""
        settings = self._ways.settings
        if not settings.health_interval:
            return None
        return Heartbeat(self._ways.records(target), settings.state_namespace, settings.installation).read().watched
