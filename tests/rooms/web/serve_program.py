"""`anneal serve` with a trivial engine, as a program: `python -m tests.rooms.web.serve_program CONFIG BIND RECORD`.

Each run appends its job to RECORD; a target named `slow` waits: a push for the stop event, a replay until RECORD.go is there.
With PATIENT set no slow client is ever late for its head or body; with PAGED the page's signing in is there.
"""

from __future__ import annotations

import json
import os
import sys
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from flask import Flask, Response, request

from handler.config.secrets import Accepting
from handler.config.settings import Settings
from handler.model.event import Job
from handler.model.result import Outcome, Result
from handler.web import __main__ as door
from handler.web import bootstrap, gunicorn_worker
from handler.web.app import create_app
from handler.web.page.access import PageAccess
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
                stop.wait(600)
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


def paged(environ: Mapping[str, str]) -> int:
    """Serve the page's signing in, too, and at `/` who is asking and what he sees, unless the door has a page there."""
    plain = create_app

    def made(settings: Settings, secrets: Accepting, *others: Any, **more: Any) -> Flask:
        app = plain(settings, secrets, *others, **more)
        if settings.page and not any(rule.rule == "/" for rule in app.url_map.iter_rules()):
            add_page(app, settings, PageAccess(settings.page, secrets, lambda: None))
        return app

    setattr(bootstrap, "create_app", made)  # noqa: B010 - it doesn't export it
    return door.main(environ)


def add_page(app: Flask, settings: Settings, access: PageAccess) -> None:
    def overview() -> Response:
        visitor = access.visitor(request)
        return Response(" ".join([visitor.name, *(each.name for each in settings.targets if visitor.sees(each.name))]))

    app.add_url_rule("/", endpoint="page.overview", view_func=overview)
    for route in access.routes():
        app.add_url_rule(route.rule, endpoint=route.endpoint, view_func=route.view, methods=[route.method], provide_automatic_options=False)


if __name__ == "__main__":
    served = patient if os.environ.get("PATIENT") else paged if os.environ.get("PAGED") else fresh
    sys.exit(serve(Path(sys.argv[1]), sys.argv[2], lambda: engine(Path(sys.argv[3])), served))
