"""Anneal as a library: `build` makes of a configuration what runs jobs and takes deliveries. `anneal` is one program made of it.

For operators: `reconcile` makes live objects as expected, with a `Client` and a `Lister`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from importlib import import_module
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self

from handler.app.build import Handler
from handler.app.connections import Options
from handler.app.external_services import ExternalServices
from handler.app.tables import ACTIONS, CHECKS, TRIGGERS, Tables
from handler.config.secret_rotation import Rotation
from handler.config.settings import Settings
from handler.render import RENDERERS, Renderer
from handler.render.sandbox import Sandbox

if TYPE_CHECKING:
    from wsgiref.types import WSGIApplication

    from handler.engine.rollout_runner.actions import ActionType
    from handler.library.operator_client import Client
    from handler.library.operator_client import ClusterLister as Lister
    from handler.library.reconciler import Reconciled, ReconcileFailed, reconcile
    from handler.queues import Queue
    from handler.rollout.interfaces import CheckType
    from handler.triggers import Trigger

__all__ = [
    "ACTIONS",
    "CHECKS",
    "RENDERERS",
    "TRIGGERS",
    "Anneal",
    "Client",
    "Handler",
    "Lister",
    "Options",
    "ReconcileFailed",
    "Reconciled",
    "Tables",
    "build",
    "reconcile",
]
_FOR_OPERATORS = {
    "Client": "operator_client:Client",
    "Lister": "operator_client:ClusterLister",
    "ReconcileFailed": "reconciler:ReconcileFailed",
    "Reconciled": "reconciler:Reconciled",
    "reconcile": "reconciler:reconcile",
}
"""What programs that build on `build` don't load."""


def __getattr__(name: str) -> object:
    """Load what operators import when they do."""
    if name not in _FOR_OPERATORS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module, _, found = _FOR_OPERATORS[name].partition(":")
    return getattr(import_module(f"{__name__}.{module}"), found)


class Anneal(Handler):
    """Runs jobs of one configuration (`run`), and makes the door for a server. As a context it ends what it started."""

    def __init__(self, settings: Settings, tables: Tables, environ: Mapping[str, str], options: Options, sandbox: Sandbox) -> None:
        services = ExternalServices(environ)
        self._accepting = Rotation(settings, environ, fetch=services.fetch)
        super().__init__(settings, self._accepting, sandbox, environ, options, tables=tables, services=services)
        self._started = sandbox

    def door(self, queue: Queue, ready: Callable[[], bool] = lambda: True) -> WSGIApplication:
        """Return the WSGI application that puts what deliveries and requests of named tokens ask for into a queue.

        `queue`: runs jobs with `run`, e.g. `handler.queues.inline.Inline`; `ready`: says whether they are run now.
        """
        from handler.web.app import Routes, create_app

        routes = Routes(frozenset({"webhooks", "replay", "ready"}), self.tables.webhooks)
        return create_app(self.settings, self._accepting, queue, ready, routes=routes)

    def __enter__(self) -> Self:
        """Start what renders, before the program has threads."""
        self._started.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        """End it."""
        self._started.close()


def build(
    settings: Settings | Path,
    *,
    renderers: Mapping[str, Renderer] = RENDERERS,
    actions: Mapping[str, ActionType] = ACTIONS,
    triggers: Mapping[str, Trigger] = TRIGGERS,
    checks: Mapping[str, CheckType] = CHECKS,
    environ: Mapping[str, str] = os.environ,
    options: Options = Options(),  # noqa: B008 - frozen
    sandbox: Sandbox | None = None,
) -> Anneal:
    """Build Anneal.

    Args:
        settings: a configuration's file, or settings that the program has made. What it names must be in the tables.
        renderers: what turns a commit into objects, by the name that `renderer.type` says.
        actions: what a step of a Rollout does, by the name that its `action` says.
        triggers: whose webhooks are understood, by the last part of their path; what asks for runs isn't begun here.
        checks: what is judged of a step's object, by the key of its entry in `success` or `failure`.
        environ: where secrets and KUBECONFIG are looked up.
        options: what a command line may override.
        sandbox: where renders run; one's own offers the functions of one's own renderers.

    Raises:
        ConfigInvalid, SecretUnavailable: with every mistake of a kind.

    """
    tables = Tables(renderers, triggers, actions, checks)
    known = tables.read(settings) if isinstance(settings, Path) else tables.admitted(settings)
    return Anneal(known, tables, environ, options, sandbox or Sandbox())
