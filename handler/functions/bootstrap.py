"""What every function begins with: the configuration, the secrets of its own task, its log on standard output, the queue.

Law: a function resolves no secret that another one needs. The one exception: where a page is configured, `api` makes plans for it, and
resolves the worker's secrets, too (`handler.config.secrets.api_needs`).
"""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from handler.app import log
from handler.app.external_services import ExternalServices
from handler.config.load import load
from handler.config.secret_rotation import Rotation
from handler.config.secrets import Need
from handler.config.settings import Settings
from handler.model.advice import advice
from handler.model.run_event import Announce, unheard
from handler.queues.sqs import URL, SqsQueue, queue_url
from handler.queues.sqs_client import QueueInvalid

if TYPE_CHECKING:
    from handler.app.build import Handler
    from handler.app.tables import Tables

_LOG = logging.getLogger("anneal.function")
Added = Callable[[], "Tables"] | None  # makes the tables of a program of its own, at its first event; None: ours
Needs = Collection[Need] | Callable[[Settings], Collection[Need]]
CONFIG = "ANNEAL_CONFIG"
CODE = "needs-a-process"  # of the line that names what functions leave out
DEFAULT = "anneal.yaml"  # where a function finds its configuration: beside its code


@dataclass(frozen=True, slots=True)
class Bootstrap:
    """The parts. `services`: the way to secret stores and a cloud's clusters, one for all that is asked of them; `tables`: None: ours."""

    settings: Settings
    secrets: Rotation
    queue: SqsQueue
    services: ExternalServices
    tables: Tables | None = None


def bootstrap(environ: Mapping[str, str], needs: Needs, added: Added = None) -> Bootstrap:
    """Configure the log, and make the parts. Raises ConfigInvalid, SecretUnavailable, QueueInvalid: with every mistake of a kind.

    `environ`: ANNEAL_CONFIG names the configuration, ANNEAL_QUEUE_URL the queue; secrets are found there, too. `needs`: those to resolve,
    or what says them of a configuration.
    """
    path, tables = Path(environ.get(CONFIG) or DEFAULT), added() if added else None
    settings = tables.read(path) if tables else load(path)
    url = queue_url(settings, environ)
    if not url:
        raise QueueInvalid.of("queue", "none is configured, and a function has no other memory", fix=f"set {URL} or `queue.sqs.url`")
    services = ExternalServices(environ)
    wanted = needs(settings) if callable(needs) else needs
    secrets = Rotation(settings, environ, needs=wanted, fetch=services.fetch)
    log.configure(sys.stdout)
    _name_templates(settings)
    return Bootstrap(settings, secrets, SqsQueue(url), services, tables)


def without_templates(settings: Settings) -> Settings:
    """Return the settings of the targets that functions look after."""
    return replace(settings, targets=tuple(target for target in settings.targets if not target.is_template))


def _name_templates(settings: Settings) -> None:
    """Log, once a start, which targets functions don't look after."""
    names = [target.name for target in settings.targets if target.is_template]
    if names:
        fix = advice("run `anneal serve`, or `anneal run --trigger resource{words}`, where a process lives", names)
        seen = "functions follow no objects: nothing here runs the instances of these targets"
        _LOG.warning("templates are left out", extra={"fields": {"code": CODE, "targets": names, "seen": seen, "fix": fix}})


def clusters(base: Bootstrap, environ: Mapping[str, str], *, notes: bool = False, announce: Announce = unheard) -> Handler:
    """Return the way to all clusters; nothing is waited for there. `notes`, `announce`: as in `handler.app.build.Options`."""
    from handler.app.build import Handler, Options
    from handler.render import Sandbox, render_tools

    packed = Path(__file__).resolve().parents[2] / render_tools.IN_PACKAGE  # the image says where it has them
    os.environ.setdefault(render_tools.DIRECTORY, str(packed))
    options = Options(notes=notes, patience=0.0, looks=True, announce=announce)
    return Handler(base.settings, base.secrets, Sandbox(), environ, options, tables=base.tables, services=base.services)
