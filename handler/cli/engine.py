"""What the worker process of `serve` and of `work` runs, put together in that process; both take from the queue that is configured."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from handler.app import log
from handler.app.build import Handler
from handler.app.external_services import ExternalServices
from handler.app.promotions import AwaitedLooks
from handler.app.run_events import RunEvents
from handler.app.target_status import TargetStatusReader
from handler.app.tick_survey import TickSurvey
from handler.cli.session import Session
from handler.config.secret_rotation import Rotation
from handler.config.secrets import RUNS
from handler.config.settings import Settings
from handler.inspect.inspector import Inspector
from handler.queues.sqs import SqsQueue, queue_url
from handler.render import Sandbox
from handler.worker.sqs_consumer import WAIT
from handler.worker.trigger_thread import NamedTrigger
from handler.worker.worker import Engine, Parts

if TYPE_CHECKING:
    from handler.app.instances.watch import InstanceWatch


def engine(session: Session) -> Engine:
    """Return what a worker process is made of. It resolves what signs in to git hosts; the door's secrets are the door's.

    With a queue no process is known whose memory could be asked for a run: then the record has an entry of each that was asked for by name.
    """
    return _engine(session, lambda settings: queue_url(settings, os.environ))


def clock_engine(session: Session, metrics: str = "prometheus") -> Engine:
    """Return the same without any request but its clock: each time it compares live with git. `metrics`: see `Parts`.

    Targets that have no runs here are known all the same: those that others follow, or depend on, and what siblings declare isn't deleted.
    How long health is believed is as it is configured: that drift runs aren't due here makes nothing younger.
    """
    ours = session.settings
    made = _lone_engine(session, lambda given: replace(given, targets=ours.targets, drift_interval=ours.drift_interval))
    return Engine(made.prepare, lambda settings: replace(made.build(settings), clock="drift", metrics=metrics))


def watch_engine(session: Session, trigger: NamedTrigger) -> Engine:
    """Return the same for a trigger of the program's own, beside the clock of a server."""
    made = _lone_engine(session, lambda given: replace(given, targets=session.settings.targets))
    return Engine(made.prepare, lambda settings: replace(made.build(settings), trigger=trigger))


def _lone_engine(session: Session, known: Callable[[Settings], Settings]) -> Engine:
    made = _engine(session, lambda _: "", known)

    def build(settings: Settings) -> Parts:
        awaited = session.settings.awaited(settings.targets)  # their git hosts are asked, too
        return replace(made.build(replace(settings, targets=(*settings.targets, *awaited))), look=None)

    return Engine(made.prepare, build)


def objects_engine(session: Session, metrics: str = "prometheus") -> Engine:
    """Return the same for the instances of templates: their objects, and the clock. `metrics`: see `Parts`."""
    made = _engine(session, lambda _: "", lambda given: replace(given, targets=session.settings.targets))
    return Engine(made.prepare, lambda settings: replace(made.build(settings), metrics=metrics))


def _engine(
    session: Session, queued: Callable[[Settings], str], known: Callable[[Settings], Settings] = lambda settings: settings
) -> Engine:
    sandbox = Sandbox()

    def build(settings: Settings) -> Parts:
        url = queued(settings)
        events, watches = RunEvents(), settings.health_interval > 0
        options = replace(session.options, notes=bool(url), terminal=False, watches=watches, lives_on=True, announce=events.announce)
        services = ExternalServices(os.environ)
        secrets = Rotation(settings, os.environ, needs=RUNS, fetch=services.fetch)
        log.configure(level=session.log_level)
        handler = Handler(known(settings), secrets, sandbox, os.environ, options, tables=session.added, services=services)
        reader = TargetStatusReader(settings, handler.records, awaits=AwaitedLooks(handler), members=handler.members)
        survey = TickSurvey(settings, handler)
        queue = SqsQueue(url, longest_wait=WAIT) if url else None
        parts = Parts(handler.run, reader, handler.requests, survey.look, queue, ways=handler, events=events)
        inspector = Inspector(handler)
        instances = _followed(handler) if any(target.is_template for target in settings.targets) else None
        statuses = events.add("statuses", settings, handler) if settings.has_commit_statuses else None
        return replace(parts, inspector=lambda: inspector, live=settings.page is not None, instances=instances, statuses=statuses)

    return Engine(sandbox.start, build)


def _followed(handler: Handler) -> InstanceWatch:
    from handler.app.instances.watch import InstanceWatch  # noqa: PLC0415 - few servers have a template

    return InstanceWatch(handler.templates)
