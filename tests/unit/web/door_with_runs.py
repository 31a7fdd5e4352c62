"""A door with a worker behind it, both in this process: real records in memory, a run index with a run in every status."""

from __future__ import annotations

import threading
from dataclasses import replace

from flask import Flask

from handler.app.target_status import ended
from handler.inspect.inspector import Inspector
from handler.model.errors import Problem
from handler.model.event import Job
from handler.model.result import Outcome, Result, TargetStanding
from handler.queues.pending import Work
from handler.web.app import create_app
from handler.web.status_api import WorkerLink
from handler.worker.worker import Worker
from tests.fakes.engine import cluster, engine
from tests.fakes.feedback import AtOnce
from tests.fakes.git_host import GitHost
from tests.fakes.objects import FakeObjects
from tests.fakes.signed_webhooks import INFRA, SHOP, Kept, door_secrets, door_settings
from tests.fakes.worker_parts import asking, parts_of, remember
from tests.unit.state.samples import full, sha

QUEUED, RUNNING, ENDED, FAILED, RECORDED = (f"shop-prod.{digit * 12}" for digit in "abcde")


def never(job: Job, _stop: threading.Event, _meanwhile: object = None) -> Result:
    raise AssertionError(job)


def looking() -> Inspector:
    """What looks at the targets: one object of shop-prod is missing live, and one is no longer declared."""
    server, host = cluster("shop", "dev", "infra"), GitHost()
    handler = engine(server, host, door_settings())
    text = "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {}, namespace: shop}}\ndata: {{key: '1'}}\n"
    for name in ("old", "web"):
        host.push(host.commit({"web.yaml": text.format(name)}))
        if name == "old":
            assert handler.run(Job("shop-prod", "push")).outcome is Outcome.APPLIED
    return Inspector(handler)


def worker() -> Worker:
    """A worker that doesn't serve: its memory and its records are there to be asked."""
    objects = FakeObjects()
    run = replace(full().history[0], id=RECORDED)
    remember(objects, replace(full(), target="shop-prod", repository=SHOP, history=(run,)))
    remember(objects, replace(full(), target="infra", repository=INFRA))
    inspector = looking()
    made = Worker(door_settings(), replace(parts_of(never, objects=objects), inspector=lambda: inspector))
    index = made.answers.runs
    index.queued(Work(Job("shop-prod", "replay", actor="ci"), (QUEUED, "shop-prod.merged")))
    index.running(Work(Job("shop-prod", "push", actor="ada"), (RUNNING,)))
    done = Result("shop-prod", Outcome.APPLIED, sha(), "replay", counts={"created": 2}, run=ENDED, duration=0.25)
    problem = Problem("Deployment/shop/api", "is wrong", "deploy/api.yaml:3", "write it right")
    wrong = Result("shop-prod", Outcome.FAILED, sha(), "push", "no", problems=(problem,), who="author", code="plan-refused", run=FAILED)
    for result in (done, replace(wrong, standing=TargetStanding(failures=2, next_try=1e9, held=True))):
        job = Job("shop-prod", result.trigger, actor="ci")
        index.ended(Work(job, (result.run,)), ended(result, job, 1e9))
    return made


def door(queue: Kept | None = None) -> Flask:
    """The application, with that worker behind it."""
    events = AtOnce("log")
    metrics = events.add("door", "1.2.3", lambda: 0.0, lambda: 0.0)
    behind = WorkerLink(asking(worker()), lambda _request: None)
    return create_app(door_settings(), door_secrets(), queue or Kept(), lambda: True, worker=behind, metrics=metrics, events=events)
