"""How the targets under way look now: the phase of a run, its waits, what it has written; for pages that show it live.

    what runs and watches announce  ->  hear  ->  a picture a target  ->  changes (waits for the next)

Law: each change has a number, and all that changed after a number is known or asked for whole; so a reader that missed something, or
asks another life of the worker, is healed by its next question. What is kept is bounded, however long a run and whatever it waits for.
"""

from __future__ import annotations

import json
import threading
import time
import uuid
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from handler.model.plan import LOST, Change
from handler.model.result import Outcome
from handler.model.run_event import HealthChanged, InstanceGone, ObjectsWritten, OpenWait, PlanHeld, RunEnded, RunPhase, RunPlanned

Json = dict[str, Any]
Heard = RunPlanned | RunPhase | ObjectsWritten | RunEnded | HealthChanged | InstanceGone | PlanHeld
WRITTEN = 50  # objects of a run that are named, the last ones
WAITS, MISSING, LONGEST = 20, 10, 300
"""Waits of a run, lines of a wait and characters of a line."""
STAGES, OBJECTS = 20, 100  # of a plan, and of each of its stages
PAGE, BYTES = 50, 2_000_000  # targets in one answer, and characters after which it takes no more
TARGETS = 10_000  # whose changes are known, the newest
ENDED = 200  # pictures of ended runs that are kept
LONGEST_WAIT = 20.0  # seconds that a question waits for a change
_GOES_ON = frozenset({Outcome.LAGGING, Outcome.WAITING, Outcome.BUSY})
"""Ends after which another run goes on with the attempt, or does already."""


@dataclass(slots=True)
class _Stage:
    """Objects that are written together. `left`: those that aren't yet; `started`, `finished`: of its writes, 0: not yet."""

    count: int
    shown: tuple[tuple[str, str], ...]
    left: set[str]
    started: float = 0.0
    finished: float = 0.0

    @classmethod
    def of(cls, stage: Sequence[tuple[str, str]]) -> _Stage:
        return cls(len(stage), tuple(stage[:OBJECTS]), {name for name, _ in stage})

    def wrote(self, names: set[str], now: float) -> None:
        if self.left & names:
            self.started = self.started or now
            self.left -= names
            self.finished = 0.0 if self.left else now

    def plain(self) -> Json:
        shown = [{"object": _cut(name), "action": action, "done": name not in self.left} for name, action in self.shown]
        times = {"started": self.started, "finished": self.finished}
        return {"count": self.count, "done": self.count - len(self.left), "objects": shown, **times}


@dataclass(slots=True)
class _Picture:
    """What a run does. `beside`: how often the record has changed by something that it doesn't show."""

    run: str
    started: float
    commit: str = ""
    phase: str = ""
    since: float = 0.0
    waits: tuple[OpenWait, ...] = ()
    written: deque[tuple[str, str]] = field(default_factory=lambda: deque(maxlen=WRITTEN))
    total: int = 0
    stages: tuple[_Stage, ...] = ()
    held: bool = False
    ended: str = ""
    beside: int = 0

    def plain(self) -> Json:
        return {
            "run": self.run,
            "commit": self.commit,
            "phase": self.phase,
            "since": self.since,
            "started": self.started,
            "waits": [{"what": _cut(each.what), "missing": [_cut(line) for line in each.missing[:MISSING]]} for each in self.waits],
            "written": [{"object": name, "action": action} for name, action in self.written],
            "total": self.total,
            "stages": [stage.plain() for stage in self.stages],
            "held": self.held,
            "ended": self.ended,
            "beside": self.beside,
        }


class LiveRuns:
    """The pictures of this life of the worker. `clock`: seconds since the epoch."""

    hears: ClassVar[tuple[type, ...]] = (RunPlanned, RunPhase, ObjectsWritten, RunEnded, HealthChanged, InstanceGone, PlanHeld)

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self._boot = uuid.uuid4().hex
        self._changed = threading.Condition()
        self._version = 0
        self._versions: dict[str, int] = {}  # by target, the oldest change first
        self._pictures: dict[str, _Picture] = {}

    def hear(self, event: Heard) -> None:
        """Draw what has happened into the picture of its target."""
        with self._changed:
            match event:
                case RunPlanned():
                    picture = self._of(event.target, event.run)
                    picture.commit, picture.stages = event.commit, tuple(map(_Stage.of, event.stages[:STAGES]))
                case RunPhase():
                    self._phase(event)
                case ObjectsWritten():
                    self._wrote(self._of(event.target, event.run), event.changes)
                case PlanHeld():
                    picture = self._of(event.target, event.run)
                    picture.commit, picture.held = event.commit, True
                case RunEnded():
                    self._ended(event)
                case HealthChanged():
                    self._beside(event.target)
                case InstanceGone():
                    self._pictures.pop(event.target, None)
            self._count(event.result.target if isinstance(event, RunEnded) else event.target)

    def recorded(self, target: str) -> None:
        """Note that a target's record has changed by no run: it is suspended, or resumed."""
        with self._changed:
            self._beside(target)
            self._count(target)

    def changes(self, boot: str, since: int, wait: float) -> Json:
        """Return what changed after `since` of this life of the worker, of another one everything; waits `wait` seconds for a change.

        `targets`: pictures by name, None: something of its record changed, and no run of it is known here. Where there is more than an
        answer holds, `version` is that of the last change in it: the next question is answered with the rest at once.
        """
        known = since if boot == self._boot else 0
        with self._changed:
            self._changed.wait_for(lambda: self._version > known, min(max(wait, 0.0), LONGEST_WAIT))
            found = [target for target, version in self._versions.items() if version > known]
            page, size = dict[str, Json | None](), 0
            for target in found[:PAGE]:
                page[target] = self._plain(target)
                size += len(json.dumps(page[target]))
                if size > BYTES:
                    break
            version = self._versions[next(reversed(page))] if len(found) > len(page) else self._version
            return {"boot": self._boot, "version": version, "targets": page}

    def picture(self, target: str) -> Json | None:
        """Return the picture of a target; None: no run of it is known here."""
        with self._changed:
            return self._plain(target)

    def _plain(self, target: str) -> Json | None:
        picture = self._pictures.get(target)
        return picture.plain() if picture else None

    def _beside(self, target: str) -> None:
        if picture := self._pictures.get(target):
            picture.beside += 1

    def _count(self, target: str) -> None:
        self._version += 1
        self._versions.pop(target, None)
        self._versions[target] = self._version
        if len(self._versions) > TARGETS:  # instances come and go without end
            oldest = next(iter(self._versions))
            del self._versions[oldest]
            self._pictures.pop(oldest, None)
        self._changed.notify_all()

    def _of(self, target: str, run: str) -> _Picture:
        picture = self._pictures.get(target)
        if picture is None or picture.run != run:
            picture = self._pictures[target] = _Picture(run, self._clock())
        return picture

    def _phase(self, event: RunPhase) -> None:
        picture = self._of(event.target, event.run)
        picture.commit, picture.phase, picture.since, picture.waits = event.commit, event.phase, event.since, event.waits[:WAITS]

    def _wrote(self, picture: _Picture, changes: Sequence[Change]) -> None:
        picture.written.extend((_cut(str(change.identity)), str(change.action)) for change in changes)
        lost = [gone for change in changes for gone in change.takes if gone.counted]
        picture.written.extend((_cut(str(gone.identity)), LOST) for gone in lost)
        picture.total += len(changes) + len(lost)
        names, now = {str(each) for each in (*(change.identity for change in changes), *(gone.identity for gone in lost))}, self._clock()
        for stage in picture.stages:
            stage.wrote(names, now)

    def _ended(self, event: RunEnded) -> None:
        """Note the end of a run that has a picture; one that had nothing to show leaves the last one's."""
        result = event.result
        picture = self._pictures.get(result.target)
        if picture and picture.run in (result.run, event.job.run) and result.outcome not in _GOES_ON:
            picture.ended, picture.waits, picture.stages, picture.since = str(result.outcome), (), (), 0.0
            self._pictures[result.target] = self._pictures.pop(result.target)
            ended = [target for target, each in self._pictures.items() if each.ended]
            for target in ended[:-ENDED]:
                del self._pictures[target]


def _cut(text: str) -> str:
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"
