"""The clock of a worker: surveys the ticks of all targets, hands out what needs a run, and arms what is due later.

A tick that a survey proves quiet is no run: it is counted, it shows how its target stands, and a whole survey is one line of the log.
"""

from __future__ import annotations

import logging
import socket
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace

from handler.app.tick_survey import Report, SurveyTally
from handler.config.settings import Settings
from handler.model.event import Job
from handler.model.instance import is_instance
from handler.model.result import Result
from handler.triggers.schedule import Schedule

_LOG = logging.getLogger("anneal.run")
Look = Callable[[Sequence[Job], Report], SurveyTally]  # surveys the targets of these ticks (`TickSurvey.look`)


class Ticks:
    """When the targets of one configuration are looked at. Safe to share between threads.

    `look`: the survey; None: each tick gets its run. `run`: takes a job that needs a run now, from any thread; `count`: takes the end of a
    tick that needed none; `mute`: takes a target and what of it didn't answer, `cluster` or `git host`.
    """

    def __init__(
        self,
        settings: Settings,
        look: Look | None,
        run: Callable[[Job], None],
        count: Callable[[Job, Result], None],
        mute: Callable[[str, str], None],
    ) -> None:
        looked_at = [target for target in settings.targets if not target.suspend]
        drifting = [target.name for target in looked_at if target.drift != "ignore"]
        intervals, clocks = (settings.interval, settings.drift_interval), (time.monotonic(), time.time())
        self._schedule = Schedule(sorted(target.name for target in looked_at), sorted(drifting), intervals, *clocks, socket.gethostname())
        self._look = look
        self._run = run
        self._count = count
        self._mute = mute
        self._ended: dict[str, float] = {}
        self._lock = threading.Lock()

    def next(self) -> float:
        """Return when something is due, in monotonic seconds."""
        with self._lock:
            return self._schedule.next()

    def due(self, now: float) -> tuple[Job, ...]:
        """Return what is to be run now, and begin a survey if ticks are due. `now`: monotonic seconds."""
        with self._lock:
            jobs, ticks = self._schedule.due(now), self._schedule.ticks(now)
        if ticks:
            asked = [replace(job, asked=now) for job in ticks]
            threading.Thread(target=self._survey, args=(asked,), name="survey", daemon=True).start()
        return jobs

    def ended(self, target: str, next_try: float) -> None:
        """Note that a run ended. `next_try`: when its target is to be looked at again, in seconds since the epoch; 0: at its next tick."""
        now = time.monotonic()
        with self._lock:
            if not is_instance(target):  # no survey looks at those
                self._ended[target] = now
            self._schedule.retry(target, now + max(next_try - time.time(), 0.0) if next_try else None)

    def forget(self, target: str) -> None:
        """Look at an instance no more."""
        with self._lock:
            self._schedule.forget(target)

    def _survey(self, jobs: Sequence[Job]) -> None:
        started = time.monotonic()
        if self._look is None:
            for job in jobs:
                self._reported(job, None, "")
            return
        tally = self._look(jobs, self._reported)
        fields = {**asdict(tally), "runs": tally.targets - tally.quiet, "seconds": round(time.monotonic() - started, 3)}
        _LOG.info("survey", extra={"fields": fields})

    def _reported(self, job: Job, result: Result | None, mute: str) -> None:
        if mute:
            self._mute(job.target, mute)
        if result is None:
            with self._lock:
                at_once = self._schedule.need(job.target, time.monotonic())
            if at_once:
                self._run(job)
        elif self._is_news(job, result):
            self._count(job, result)

    def _is_news(self, job: Job, result: Result) -> bool:
        """Arm what a quiet target has due later; False when a run of it ended since it was asked about, for that knows better."""
        with self._lock:
            if self._ended.get(job.target, 0.0) >= job.asked:
                return False
            if result.next_try:
                self._schedule.retry(job.target, time.monotonic() + max(result.next_try - time.time(), 0.0))
            return True
