"""`anneal serve` with live events and a stand-in for the page: `python -m tests.rooms.web.live_program CONFIG BIND RECORD`.

A run records its hint as the target's commit and ends; one of `slow` that was asked for by name follows RECORD.phase: each new text there
is announced as its phase, "end" ends it. `/ui/live?topic=…&sees=…&visitor=…&for=seconds` opens a stream. A request for `/block`,
`/api/block`, `/ui/block` or `/ui/targets/any/block` appends a line to RECORD and waits until RECORD.free is there.
HEARTBEAT, LIFE, FAT (characters of a target's fragment) and CONNECTIONS (that may stand at the door) come from the environment.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from flask import Flask, Response, request

from handler.app.record_summaries import Readable
from handler.app.run_events import RunEvents
from handler.app.target_status import TargetStatusReader
from handler.config.settings import Settings, Target
from handler.model.event import Job
from handler.model.names import Identity
from handler.model.plan import Action, Change
from handler.model.result import Outcome, Result
from handler.model.run_event import ObjectsWritten, OpenWait, RunPhase
from handler.state.record import State
from handler.web import __main__ as door
from handler.web import bootstrap, event_streams, gunicorn_worker
from handler.web.app import create_app
from handler.web.connection_limits import Bounds, FrontLimits
from handler.web.page.live_feed import LiveFeed
from handler.web.page.overview import OVERVIEW
from handler.worker.supervisor import serve
from handler.worker.worker import Engine, Parts
from tests.fakes.objects import FakeObjects
from tests.fakes.worker_parts import remember
from tests.patience import until

RECORD = Path(sys.argv[3])


def write(line: dict[str, object]) -> None:
    with RECORD.open("a") as file:
        file.write(json.dumps(line) + "\n")


class Records:
    """The records of all targets, on one cluster."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._states: dict[str, State] = {}
        self.objects = FakeObjects()

    def read(self, _target: Target) -> Readable:
        return self.objects

    def applied(self, target: str, commit: str) -> None:
        with self._lock:
            self._states[target] = State(target, "default", "uid", "url", commit=commit)
            objects = FakeObjects()
            for state in self._states.values():
                remember(objects, state)
            self.objects = objects


def follow(job: Job, stop: threading.Event, events: RunEvents) -> None:
    phase, file = "", RECORD.with_suffix(".phase")
    while phase != "end" and not stop.wait(0.02):
        text = file.read_text() if file.exists() else phase
        if text and text != phase:
            phase = text
            events.announce(RunPhase("slow", job.run, "c" * 40, phase, waits=(OpenWait("everything", (f"missing since {phase}",)),)))
            write({"phase": phase})


def build(settings: Settings) -> Parts:
    events, records = RunEvents(), Records()

    def run(job: Job, stop: threading.Event, _meanwhile: object = None) -> Result:
        if job.target == "slow" and job.trigger == "replay":
            follow(job, stop, events)
        elif job.hint:
            events.announce(RunPhase(job.target, job.run, job.hint, "applying"))
            records.applied(job.target, job.hint)
            events.announce(ObjectsWritten(job.target, job.run, (Change(Action.UPDATE, Identity("", "ConfigMap", "shop", "app")),)))
        write({"target": job.target, "trigger": job.trigger, "hint": job.hint, "pid": os.getpid(), "run": job.run})
        return Result(job.target, Outcome.APPLIED if job.hint else Outcome.UNCHANGED, commit=job.hint, run=job.run)

    return Parts(run, TargetStatusReader(settings, records.read), events=events, live=True)


def render(topic: str, data: Any) -> Mapping[str, str]:
    if topic == OVERVIEW:
        return {f"row-{row['target']}": f"<tr>{row['target']} {row['commit']}</tr>" for row in data} | {"total": str(len(data))}
    return {"live": json.dumps(data["live"]) + "x" * int(os.environ.get("FAT", "0")), "record": str(data["target"]["recorded"])}


def routes(app: Flask, settings: Settings, **given: Any) -> None:
    names = frozenset(target.name for target in settings.targets)
    feed = LiveFeed(given["worker"].ask, render, names)

    def live() -> Response:
        asked = request.args
        seen, ends = frozenset(asked.get("sees", "").split(",")), time.time() + float(asked.get("for", "500"))
        opened = feed.open(request.environ, asked.get("topic", OVERVIEW), seen, ends, asked.get("visitor", ""))
        if asked.get("fails"):
            raise RuntimeError("a mistake after it was opened")
        return Response() if opened else Response(status=503, headers={"Retry-After": "5"})

    def block(**_path: str) -> Response:
        write({"blocked": request.path})
        until(RECORD.with_suffix(".free").exists)
        return Response()

    app.add_url_rule("/ui/live", "live", live)
    for path in ("/block", "/api/block", "/ui/block", "/ui/targets/<target>/block"):
        app.add_url_rule(path, path, block)


def _with_streams(*limits: Any, **named: Any) -> FrontLimits:
    return FrontLimits(*limits, **named | {"streams": True})


def web(environ: Mapping[str, str]) -> int:
    def created(settings: Settings, *more: Any, **given: Any) -> Flask:
        app = create_app(settings, *more, **given)
        routes(app, settings, **given)
        return app

    vars(bootstrap).update(create_app=created, FrontLimits=_with_streams)
    if most := os.environ.get("CONNECTIONS"):
        vars(gunicorn_worker).update(Bounds=partial(Bounds, connections=int(most)))
    for name in ("HEARTBEAT", "LIFE"):
        setattr(event_streams, name, float(os.environ.get(name, getattr(event_streams, name))))
    return door.main(environ)


def fresh(environ: Mapping[str, str]) -> int:
    os.execve(sys.executable, [sys.executable, "-m", "tests.rooms.web.live_program", *sys.argv[1:4], "web"], environ)


if __name__ == "__main__":
    if sys.argv[4:]:
        sys.exit(web(os.environ))
    made = Engine(lambda: write({"prepared": os.getpid()}), build)
    sys.exit(serve(Path(sys.argv[1]), sys.argv[2], lambda: made, fresh))
