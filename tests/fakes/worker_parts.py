"""What a worker of a test is made of: a run of the test's own, and records in memory."""

from __future__ import annotations

import json
from typing import Any

from handler import __version__
from handler.app.record_summaries import Readable
from handler.app.run_guard import Run
from handler.app.target_status import TargetStatusReader
from handler.config.settings import Settings, Target
from handler.state.record import State
from handler.state.store import StateStore
from handler.web.status_api import AskWorker
from handler.worker.worker import Parts, Worker
from tests.fakes.objects import FakeObjects
from tests.fakes.signed_webhooks import door_settings


def parts_of(run: Run, settings: Settings | None = None, objects: FakeObjects | None = None) -> Parts:
    """Return the parts; all targets are on one cluster."""
    settings, found = settings or door_settings(), objects or FakeObjects()

    def records(_target: Target) -> Readable:
        return found

    return Parts(run, TargetStatusReader(settings, records))


def remember(objects: FakeObjects, state: State) -> None:
    """Write a state as a run does."""
    StateStore(objects, "anneal-system", state.target, state.installation, f"anneal/v{__version__}").create(state)


def asking(worker: Worker) -> AskWorker:
    """Return what asks a worker of this process, as over the socket: only JSON comes back."""

    def ask(question: str, **about: Any) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(json.dumps(worker.answers.answer({"ask": question, **about})))
        return found

    return ask
