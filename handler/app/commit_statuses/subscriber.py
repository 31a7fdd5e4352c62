"""A subscriber of events that lets records be looked at whose git hosts are to show something, with a lane for each host.

    an event of a target  ->  it is due  ->  its host's lane: read the record, post what is owed, mark it

Law: what a host doesn't take waits in the record, with growing pauses here.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Hashable
from typing import Any, ClassVar

from handler.app.commit_statuses.host_lane import DueLook, StatusLane
from handler.app.commit_statuses.posting import RecordsAndHosts, StatusPosting
from handler.config.settings import Settings, Target
from handler.model.run_event import PlanHeld, RunEnded, RunPhase

SOON = 0.3
"""Seconds after which a run that goes on is shown as pending: most have ended by then."""


class CommitStatuses:
    """A subscriber of events."""

    hears: ClassVar[tuple[type, ...]] = (RunPhase, RunEnded, PlanHeld)

    def __init__(self, settings: Settings, ways: RecordsAndHosts) -> None:
        self._settings, self._ways = settings, ways
        self._targets = {target.name: target for target in settings.targets if target.has_commit_statuses}
        self._lanes: dict[Hashable, tuple[StatusLane, StatusPosting]] = {}
        self._lock = threading.Lock()

    def hear(self, event: Any) -> None:
        """Let a target's record be looked at: at once where its run has ended, soon where it goes on."""
        match event:
            case RunPhase():
                self._add(event.target, event.commit, SOON)
            case PlanHeld():
                self._add(event.target, f"{event.run}/{event.commit}")
            case RunEnded() if not event.job.dry_run:
                self._add(event.result.target, f"{event.result.run}/{event.result.commit}")

    def look(self, name: str) -> None:
        """Let a record be looked at whose ends an earlier process may have left: its host is asked what it shows first."""
        self._add(name)

    def settle(self, seconds: float) -> bool:
        """Wait until nothing is due that can be posted now; return whether all of it is posted, after `seconds` at most."""
        end = time.monotonic() + seconds
        with self._lock:
            lanes = [lane for lane, _ in self._lanes.values()]
        settled = [lane.settle(end) for lane in lanes]
        return all(settled)

    def _add(self, name: str, heard: str = "", after: float = 0.0) -> None:
        target = self._targets.get(name)
        if target is None:
            return
        lane, posting = self._lane(target)
        if not (heard and posting.is_pending(name, heard)):
            lane.add(DueLook(name, time.monotonic() + after, frozenset((heard,) if heard else ())))

    def _lane(self, target: Target) -> tuple[StatusLane, StatusPosting]:
        repository, feedback = target.repository, target.repository.feedback
        assert feedback is not None  # noqa: S101 - `has_commit_statuses` says so
        key = feedback.host_of(repository.url), feedback.api_url or repository.url.partition("://")[2].partition("/")[0]
        with self._lock:
            if key not in self._lanes:
                posting = StatusPosting(self._settings, self._ways)
                self._lanes[key] = StatusLane(posting.look), posting
            return self._lanes[key]
