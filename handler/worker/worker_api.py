"""What the worker answers to the web process's questions: its own memory first, then the records. One literal table.

A question that fails is answered with its trouble; the conversation goes on.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from handler.app import pause
from handler.app.target_status import Json, TargetStatusReader
from handler.model import deadline
from handler.model.errors import AnnealError, WorkerUnavailable
from handler.model.to_json import plain
from handler.queues import message as codec
from handler.queues.inbox import Closed
from handler.queues.pending import Work
from handler.queues.run_index import RunEntry, RunIndex
from handler.state.record_format import stamp

if TYPE_CHECKING:
    from handler.feedback.live_runs import LiveRuns
    from handler.inspect.inspector import Inspector

_LOG = logging.getLogger("anneal.read")
_WRITE = 7.0  # seconds that a change of a record may take: the web process waits for eight


@dataclass(frozen=True, slots=True)
class WorkerApi:
    """Answers frames. `accept`: puts a job into the queue, or raises Closed; `exposed`: the worker's metrics as text.

    `inspector`: returns what answers that a record doesn't say; None: nothing does here. `live`: what changes; None: it isn't kept.
    """

    runs: RunIndex
    reader: TargetStatusReader
    accept: Callable[[Work], Json]
    exposed: Callable[[], str]
    inspector: Callable[[], Inspector] | None = None
    live: LiveRuns | None = None

    def answer(self, message: Json) -> Json:
        """Answer one frame; `{"ping": true}` and what is unknown with nothing more than that we are here."""
        question = str(message.get("ask", ""))
        if question not in QUESTIONS:
            return {}
        try:
            return QUESTIONS[question](self, message)
        except Closed:
            raise
        except AnnealError as error:
            return {"trouble": {"code": error.code, "message": str(error)}}
        except Exception:  # noqa: BLE001 - one question's mistake may not end the conversation
            _LOG.exception("a question wasn't answered", extra={"fields": {"question": question}})
            return {"trouble": {"code": "internal", "message": "internal error"}}

    def targets(self, message: Json) -> Json:
        """Rows of the named targets; `each`: by reads of their own, where they are few of many; `retired`: and those of retired ones."""
        names = message["names"]
        rows = [self.reader.row(name) for name in names] if message.get("each") else self.reader.targets(names)
        return {"targets": rows} | ({"retired": self.reader.retired()} if message.get("retired") else {})

    def target(self, message: Json) -> Json:
        """One target, whole; `patient`: see `TargetStatusReader.target`."""
        return {"target": self.reader.target(message["name"], patient=message.get("patient") is True)}

    def instances(self, message: Json) -> Json:
        """A page of a template's instances, of those that `globs` cover; `worst`: see `TargetStatusReader.instances`."""
        asked = (message["name"], message["globs"], message["after"], message["limit"])
        return self.reader.instances(*asked, worst=message.get("worst") is True)

    def deliveries(self, message: Json) -> Json:
        """What the named targets have recorded of deliveries."""
        return self.reader.deliveries(message["names"])

    def run(self, message: Json) -> Json:
        """One run: waiting, under way, ended; None when neither memory nor the record has it."""
        asked = str(message["run"])
        entry = self.runs.find(asked)
        if entry is None:
            return {"run": self.reader.run(asked)}
        return {"run": self._remembered(entry)}

    def _remembered(self, entry: RunEntry) -> Json:
        known: Json = {"target": entry.target, "trigger": entry.trigger, "actor": entry.actor, **entry.end, "run": entry.run}
        known |= {"status": entry.status, "since": stamp(entry.since), "requests": list(entry.requests), "source": "memory"}
        return known

    def ends(self, message: Json) -> Json:
        """Which of these requests this life of the worker knows, in which run, and whether that has ended."""
        found = {request: self.runs.find(request) for request in message["requests"]}
        known = {request: (entry.run, entry.status == "ended") for request, entry in found.items() if entry}
        return {"boot": self.runs.boot, "known": known}

    def again(self, message: Json) -> Json:
        """Take a request that a dead worker had, unless the record shows its end. Raises AnnealError: the record can't be read now."""
        work = codec.read(message["work"])
        entry = self.runs.find(work.run)
        if entry is None and self.reader.run(str(message["was"])) is not None:
            return {"ended": True}
        return self.accept(work)

    def changes(self, message: Json) -> Json:
        """What changed of the targets under way after `since` of the life `boot`; waits for the next change, for `wait` seconds at most."""
        return self.live.changes(str(message["boot"]), int(message["since"]), float(message["wait"])) if self.live else {}

    def picture(self, message: Json) -> Json:
        """The picture of a target's run under way; None where none is known here."""
        return {"picture": self.live.picture(str(message["name"])) if self.live else None}

    # --- plans, live looks, and what a person decides
    def gap(self, message: Json) -> Json:
        """How a target's objects and fields stand against git now. Raises WorkerUnavailable: nothing looks here."""
        return {"gap": self._inspector().gap_facts(message)}

    def orphans(self, message: Json) -> Json:
        """What a target's next run would delete, and what it would keep. Raises as `gap`."""
        return {"orphans": self._inspector().orphans_facts(message)}

    def tree(self, message: Json) -> Json:
        """The inventory of a target, with how each object does."""
        return {"tree": plain(self._inspector().tree(str(message["name"])))}

    def events(self, message: Json) -> Json:
        """The events about a target's objects."""
        return {"events": plain(self._inspector().events(str(message["name"])))}

    def logs(self, message: Json) -> Json:
        """The end of a pod's log, of an object of a target's inventory; `container`, `previous`: see `Inspector.logs`."""
        name, subject, container = (str(message.get(key) or "") for key in ("name", "object", "container"))
        return {"logs": plain(self._inspector().logs(name, subject, container, previous=message.get("previous") is True))}

    def diff(self, message: Json) -> Json:
        """What changed between two recorded commits of a target."""
        asked = (str(message[key]) for key in ("name", "before", "after"))
        return {"diff": plain(self._inspector().diff(*asked))}

    def suspend(self, message: Json) -> Json:
        """Pause a target, in its record. `seen`: see `pause.suspend`. Raises AnnealError."""
        begun = pause.asked(str(message["by"]), str(message.get("reason", "")), str(message.get("until", "")))
        handler = self._inspector().handler
        with deadline.until(time.monotonic() + _WRITE):
            return self._paused(message, pause.suspend(handler, handler.target(str(message["name"])), begun, message.get("seen")))

    def resume(self, message: Json) -> Json:
        """End a target's pause. `seen`: see `pause.suspend`. Raises AnnealError."""
        handler = self._inspector().handler
        with deadline.until(time.monotonic() + _WRITE):
            return self._paused(message, pause.resume(handler, handler.target(str(message["name"])), message.get("seen")))

    def _paused(self, message: Json, done: str) -> Json:
        if self.live:
            self.live.recorded(str(message["name"]))
        return {"done": done}

    def _inspector(self) -> Inspector:
        if self.inspector is None:
            raise WorkerUnavailable.of("worker", "looks at no cluster here", fix="ask anneal gap, anneal orphans")
        return self.inspector()

    def metrics(self, message: Json) -> Json:  # noqa: ARG002 - all questions have one signature
        """Our metrics, in Prometheus' text format."""
        return {"text": self.exposed()}


QUESTIONS: dict[str, Callable[[WorkerApi, Json], Json]] = {
    "targets": WorkerApi.targets,
    "target": WorkerApi.target,
    "instances": WorkerApi.instances,
    "deliveries": WorkerApi.deliveries,
    "run": WorkerApi.run,
    "ends": WorkerApi.ends,
    "again": WorkerApi.again,
    "metrics": WorkerApi.metrics,
    "changes": WorkerApi.changes,
    "picture": WorkerApi.picture,
    "gap": WorkerApi.gap,
    "orphans": WorkerApi.orphans,
    "tree": WorkerApi.tree,
    "events": WorkerApi.events,
    "logs": WorkerApi.logs,
    "diff": WorkerApi.diff,
    "suspend": WorkerApi.suspend,
    "resume": WorkerApi.resume,
}
