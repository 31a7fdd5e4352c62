"""What the worker answers to the web process's questions: its own memory first, then the records. One literal table.

A question that fails is answered with its trouble; the conversation goes on.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from handler.app.target_status import Json, TargetStatusReader
from handler.model.errors import AnnealError
from handler.model.to_json import masked
from handler.queues import message as codec
from handler.queues.inbox import Closed
from handler.queues.pending import Work
from handler.queues.run_index import RunEntry, RunIndex
from handler.state.record_format import stamp

if TYPE_CHECKING:
    from handler.feedback.live_runs import LiveRuns
    from handler.inspect.inspector import Inspector

_LOG = logging.getLogger("anneal.read")


@dataclass(frozen=True, slots=True)
class WorkerApi:
    """Answers frames. `accept`: puts a job into the queue, or raises Closed; `exposed`: the worker's metrics as text.

    `inspector`: answers what a record doesn't say; None: such questions aren't answered here. `live`: what changes; None: it isn't kept.
    """

    runs: RunIndex
    reader: TargetStatusReader
    accept: Callable[[Work], Json]
    exposed: Callable[[], str]
    mask: Callable[[str], str] = str
    inspector: Inspector | None = None
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
            return {"trouble": {"code": error.code, "message": self.mask(str(error))}}
        except Exception:  # noqa: BLE001 - one question's mistake may not end the conversation
            _LOG.exception("a question wasn't answered", extra={"fields": {"question": question}})
            return {"trouble": {"code": "internal", "message": "internal error"}}

    def targets(self, message: Json) -> Json:
        """Rows of the named targets; `each`: by reads of their own, where they are few of many."""
        names = message["names"]
        return {"targets": [self.reader.row(name) for name in names] if message.get("each") else self.reader.targets(names)}

    def target(self, message: Json) -> Json:
        """One target, whole."""
        return {"target": self.reader.target(message["name"])}

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
        found: Json = masked(known, self.mask)
        return found

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
        found = self.live.changes(str(message["boot"]), int(message["since"]), float(message["wait"])) if self.live else {}
        return found | {"targets": masked(found["targets"], self.mask)} if found else {}

    def metrics(self, message: Json) -> Json:  # noqa: ARG002 - all questions have one signature
        """Our metrics, in Prometheus' text format."""
        return {"text": self.exposed()}


QUESTIONS: dict[str, Callable[[WorkerApi, Json], Json]] = {
    "targets": WorkerApi.targets,
    "target": WorkerApi.target,
    "deliveries": WorkerApi.deliveries,
    "run": WorkerApi.run,
    "ends": WorkerApi.ends,
    "again": WorkerApi.again,
    "metrics": WorkerApi.metrics,
    "changes": WorkerApi.changes,
}
