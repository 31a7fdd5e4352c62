"""Other targets' records, read for the runs of targets that wait for them: by their own clusters' ways, briefly, and never written.

Law: a record counts only if it is that target's: of its repository, installation and cluster. Of one that another installation writes
only its installation is known here, and whether it was renamed.
"""

from __future__ import annotations

from collections.abc import Callable

from handler.app.connections import Connections
from handler.config.settings import Target
from handler.engine.run.other_records import OtherRecord
from handler.model.advice import advice
from handler.model.errors import StateInvalid
from handler.state.record import State


class ConfiguredRecords:
    """Records of configured targets. `ways`: to their clusters; `find`: returns a target by name, raises ConfigInvalid."""

    def __init__(self, ways: Connections, find: Callable[[str], Target]) -> None:
        self._ways = ways
        self._find = find

    def read(self, target: str) -> OtherRecord:
        """Return a target's record, with its health as it is known now. Raises AnnealError: it can't be read, or is another's."""
        configured = self._find(target)
        stored = self._ways.brief_store(configured).read().state
        if stored is None:
            return OtherRecord(target)
        state = self._own(configured, stored)
        return OtherRecord(target, state, self._ways.health(configured).of(state))

    def _own(self, target: Target, state: State) -> State:
        return self._ways.brief_store(target).at_home(state, target.repository.url, self._ways.cluster_uid(target))


class ForeignRecords(ConfiguredRecords):
    """Records of another installation: nothing of it but their namespace may be readable, and its spelling of the repository is its own."""

    def _own(self, target: Target, state: State) -> State:
        installation = self._ways.settings.installation
        if state.installation != installation:
            seen = f"its record is of the installation {state.installation}, not {installation}"
            raise StateInvalid.of(f"target {target.name}", seen, fix="write `revision.promoted.installation`")
        if new := state.renamed_to:
            where = f", whose record is {new}" if new.namespace != self._ways.settings.state_namespace else ""
            seen = f"it was renamed: target {new.name}{where} has taken over what it had"
            raise StateInvalid.of(f"target {target.name}", seen, fix=advice("write `from: {yaml}` in `revision.promoted`", new.name))
        return state
