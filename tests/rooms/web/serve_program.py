"""`anneal serve` with a trivial engine, as a program: `python -m tests.rooms.web.serve_program CONFIG BIND RECORD`.

Each run appends its job to RECORD; a target named `slow` waits: a push for the stop event, a replay until RECORD.go is there.
With PATIENT set no slow client is ever late for its head or body.
"""

from __future__ import annotations

import json
import os
import sys
import threading
from collections.abc import Mapping
from pathlib import Path

from handler.config.settings import Settings
from handler.model.event import Job
from handler.model.result import Outcome, Result
from handler.web import __main__ as door
from handler.web import gunicorn_worker
from handler.worker.supervisor import serve
from handler.worker.worker import Engine, Parts
from tests.fakes.worker_parts import parts_of


def engine(record: Path) -> Engine:
    go = record.with_suffix(".go")

    def write(line: dict[str, object]) -> None:
        with record.open("a") as file:
            file.write(json.dumps(line) + "\n")

    def prepare() -> None:
        write({"prepared": os.getpid(), "threads": threading.active_count()})

    def build(settings: Settings) -> Parts:
        def run(job: Job, stop: threading.Event, _meanwhile: object = None) -> Result:
            write({"target": job.target, "trigger": job.trigger, "hint": job.hint, "pid": os.getpid(), "run": job.run, "force": job.force})
            if job.hint.startswith("dead"):
                raise RuntimeError("a mistake of ours")
            while job.target == "slow" and job.trigger == "replay" and not go.exists() and not stop.wait(0.02):
                pass
            if job.target == "slow" and job.trigger == "push":
                stop.wait()
                write({"released": job.target})
            return Result(job.target, Outcome.UNCHANGED, commit=job.hint, run=job.run)

        assert settings.targets
        return parts_of(run, settings)

    return Engine(prepare, build)


def fresh(environ: Mapping[str, str]) -> int:
    os.execve(sys.executable, [sys.executable, "-m", "handler.web"], environ)


def patient(environ: Mapping[str, str]) -> int:
    gunicorn_worker.HEAD_SECONDS = gunicorn_worker.BODY_SECONDS = 3600.0
    return door.main(environ)


if __name__ == "__main__":
    served = patient if os.environ.get("PATIENT") else fresh
    sys.exit(serve(Path(sys.argv[1]), sys.argv[2], lambda: engine(Path(sys.argv[3])), served))
