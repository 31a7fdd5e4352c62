"""The two doors of functions, each a part of the same application: git hosts' deliveries; and named tokens' requests, and the page.

Neither keeps anything: what is asked is in the queue when it is answered. `api` alone reaches clusters, and reads there; for the page, it
plans beside that, and writes one thing: the pause of a target into its record.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from flask import Flask, Response

from handler.app.run_events import SETTLE, RunEvents
from handler.config.secrets import api_needs
from handler.config.settings import Settings, Target
from handler.feedback.emf import EmfLines
from handler.functions import Lazy
from handler.functions.bootstrap import Added, bootstrap, clusters
from handler.model.errors import WorkerUnavailable
from handler.web.app import Routes, create_app
from handler.web.status_api import WorkerLink

if TYPE_CHECKING:
    from handler.app.record_summaries import Readable
    from handler.app.target_status import Awaits, Json
    from handler.engine.run.promotion_claims import Awaited
    from handler.inspect.inspector import Inspector
    from handler.queues.pending import Work
    from handler.state.record import State

WEBHOOKS = Routes(frozenset({"webhooks"}), follows_objects=False)
TOKENS = Routes(frozenset({"replay", "reads", "page"}))


def webhooks(environ: Mapping[str, str] = os.environ, added: Added = None) -> Flask:
    """Make the door of git hosts; it knows webhook secrets alone. Raises ConfigInvalid, SecretUnavailable, QueueInvalid."""
    base = bootstrap(environ, {"webhooks"}, added)
    routes = replace(WEBHOOKS, triggers=base.tables.webhooks) if base.tables else WEBHOOKS
    events = RunEvents()
    lines: EmfLines = events.add("emf")
    events.add("log")
    app = create_app(base.settings, base.secrets, base.queue, lambda: True, metrics=lines, events=events, routes=routes)

    def settled(response: Response) -> Response:
        events.drained(SETTLE)  # a function is frozen once it has answered
        return response

    app.after_request(settled)
    return app


def api(environ: Mapping[str, str] = os.environ, added: Added = None) -> Flask:
    """Make the door of named tokens, and of people: it knows their secrets, and those of runs where there is a page to make plans for.

    Raises ConfigInvalid, SecretUnavailable, QueueInvalid.
    """
    base = bootstrap(environ, api_needs, added)
    settings, secrets = base.settings, base.secrets
    handler = Lazy(lambda: clusters(base, environ))

    def inspector() -> Inspector:
        from handler.inspect.inspector import Inspector

        return Inspector(handler.get())

    def looks() -> Awaits:
        from handler.app.promotions import AwaitedLooks

        return AwaitedLooks(handler.get(), asks_git=settings.page is not None)  # else git hosts' secrets aren't resolved here

    made = Lazy(looks)

    def awaits(target: Target, known: State | None) -> Sequence[Awaited]:
        return made.get()(target, known)

    seen = inspector if settings.page else None
    worker = behind(settings, lambda target: handler.get().records(target), seen, awaits)
    return create_app(settings, secrets, base.queue, lambda: True, worker=worker, metrics=EmfLines(), routes=TOKENS)


def behind(
    settings: Settings,
    records: Callable[[Target], Readable],
    inspector: Callable[[], Inspector] | None = None,
    awaits: Awaits = lambda _target, _known: (),
) -> WorkerLink:
    """Return the worker link of a function, which has no worker process: it reads the records. `records`: as `Handler.records`.

    `inspector`: makes what looks at clusters, at the first question that needs it; None: such questions aren't answered. `awaits`: as of
    `TargetStatusReader`.
    """
    from handler.app.record_summaries import PATIENCE
    from handler.app.target_status import TargetStatusReader
    from handler.queues.run_index import RunIndex
    from handler.worker.worker_api import WorkerApi

    looks = Lazy(inspector).get if inspector else None
    answers = WorkerApi(RunIndex(), TargetStatusReader(settings, records, PATIENCE, awaits), _taken, lambda: "", looks)

    def ask(question: str, **about: Any) -> Json:
        return answers.answer({"ask": question, **about})

    return WorkerLink(ask, lambda _request: None, sees=False)


def _taken(work: Work) -> Json:
    raise WorkerUnavailable.of(f"run {work.run}", "is taken by the queue alone")
