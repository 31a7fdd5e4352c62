"""The composition root: settings become what runs jobs. Nothing is built at import time, everything at first use.

One connection and one discovery a cluster and identity, one git host a repository and its credentials; targets share them. A target
whose cluster or credentials are broken fails alone.
"""

from __future__ import annotations

import os
import socket
import threading
import time
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from handler.cluster.api import Api
from handler.cluster.connect import Connection, connect
from handler.cluster.discovery import Discovery
from handler.cluster.store import Objects
from handler.config.digest import settings_digest
from handler.config.secrets import Reading
from handler.config.settings import Settings, Target
from handler.model.errors import AnnealError, ConfigInvalid
from handler.model.event import Job
from handler.model.names import applyset_id, run_id
from handler.model.optional import needed_by
from handler.model.refs import Head
from handler.model.render import Rendered, RenderRequest
from handler.model.result import Outcome, Result
from handler.model.tree import Tree
from handler.queues.lanes import git_host
from handler.reading import DEADLINE
from handler.reconcile import reconcile
from handler.render import RENDERERS, Renderer
from handler.render.sandbox import Sandbox
from handler.run.context import Rooms
from handler.run.planning import Planner
from handler.run.preparing import Preparer, Source
from handler.run.remembering import Remembering
from handler.source.host import GitHost
from handler.source.sharing import Sharing
from handler.state.configmap import state_name
from handler.state.lease import LeaseLock
from handler.state.store import StateStore
from handler.stores import Services
from handler.summaries import TOOLING

T = TypeVar("T")
WORKLOAD = "ANNEAL_WORKLOAD"
"""The environment variable that says, as namespace/name, which Deployment the handler itself runs in."""
LOOK_SLACK = 10.0
"""Seconds by which a look at a git host may be older than the tick it serves: the ticks of one repository's targets are spread."""


@dataclass(frozen=True, slots=True)
class Options:
    """What a command line may override. `sources`: by target name, instead of its git host (a directory, for `apply -f`).

    `notes`: this process is one of several on a queue (functions, containers), so its memory is nobody's: runs that are asked for by name
    leave an entry whatever they did, and a cluster that doesn't answer is given up soon, for others wait for the worker.
    """

    kubeconfig: str = ""
    context: str = ""
    sources: Mapping[str, Source] = field(default_factory=dict)
    notes: bool = False


class Handler:
    """Runs jobs of the targets of one configuration. Safe to share between threads."""

    def __init__(
        self,
        settings: Settings,
        secrets: Reading,
        sandbox: Sandbox,
        environ: Mapping[str, str],
        options: Options = Options(),
        renderers: Mapping[str, Renderer] = RENDERERS,
        *,
        services: Services | None = None,
    ) -> None:
        self.settings = settings
        self.secrets = secrets
        self._sandbox = sandbox
        self._environ = environ
        self._services = services or Services(environ)
        self._options = options
        self._renderers = renderers
        self._made: dict[Hashable, Any] = {}
        self._lock = threading.Lock()
        self._renders = Remembering()
        self._shared = Sharing()
        self._holder = f"{socket.gethostname()}_{os.getpid()}"

    def run(self, job: Job, stop: threading.Event | None = None) -> Result:
        """Run one job; whatever goes wrong with its target is its Result."""
        since = time.monotonic()
        try:
            rooms = self.rooms(job.target)
        except AnnealError as error:
            failed = Result(job.target, Outcome.FAILED, trigger=job.trigger, message=str(error), problems=error.problems)
            return replace(failed, who=error.who, code=error.code, duration=time.monotonic() - since, run=job.run or run_id(job.target))
        try:
            return reconcile(rooms, job, stop)
        finally:
            self._renders.ran(job.target, rooms.preparer)

    def target(self, name: str) -> Target:
        """Return a target by name.

        Raises:
            ConfigInvalid: there is none of that name; the known ones are named.

        """
        target = self.settings.target(name)
        if target is None:
            known = ", ".join(sorted(item.name for item in self.settings.targets))
            raise ConfigInvalid.of(f"target {name}", "is not configured", fix=f"configured are: {known}")
        return target

    def rooms(self, name: str) -> Rooms:
        """Return what a target's runs are made of; made once."""
        return self._once(("rooms", name), lambda: self._rooms(self.target(name)))

    def api(self, target: Target, *, impersonated: bool = True) -> Api:
        """Return the way to a target's cluster, as the target's identity or as the handler's own."""
        account = target.impersonate.service_account if impersonated and target.impersonate else ""
        return self._once(("api", target.cluster, account), lambda: Api(self._connection(target), impersonate=account))

    def _connection(self, target: Target) -> Connection:
        options = self._options
        return self._once(
            ("connection", target.cluster),
            lambda: connect(
                target.cluster,
                kubeconfig=options.kubeconfig,
                context=options.context,
                environ=self._environ,
                fetch=self._services.fetch,
                interval=self.settings.secrets_interval,
                cloud=self._services.eks,
            ),
        )

    def discovery(self, target: Target) -> Discovery:
        """Return what a target's cluster serves, as seen by the handler's own identity."""
        return self._once(("discovery", target.cluster), lambda: Discovery(self.api(target, impersonated=False)))

    def objects(self, target: Target) -> Objects:
        """Return raw access to states and Leases, by the handler's own identity."""
        return self._once(("objects", target.cluster), lambda: Objects(self.api(target, impersonated=False)))

    def records(self, target: Target) -> Objects:
        """Return the same for those who only read and won't wait long."""
        connection = self._connection(target)
        brief = self._once(("brief", target.cluster), lambda: Api(connection, deadline=DEADLINE, silence=DEADLINE))
        return self._once(("records", target.cluster), lambda: Objects(brief))

    def requests(self) -> float:
        """Return how many requests to API servers were made so far, by runs, surveys and readers."""
        with self._lock:
            return float(sum(made.requests for made in self._made.values() if isinstance(made, Api)))

    def store(self, target: Target) -> StateStore:
        """Return the record of a target."""
        return self._store(target, self.objects)

    def _store(self, target: Target, objects: Callable[[Target], Objects]) -> StateStore:
        settings = self.settings
        return StateStore(objects(target), settings.state_namespace, target.name, settings.installation, TOOLING)

    def lock(self, target: Target) -> LeaseLock:
        """Return the lock of a target; its requests are impatient, for a renewal that hangs must not outlast the Lease."""
        settings, name = self.settings, state_name(target.name)
        third = settings.lease_duration / 3
        impatient = self._once(("lease", target.cluster), lambda: Api(self._connection(target), deadline=third, silence=third))
        return LeaseLock(Objects(impatient), settings.state_namespace, name, self._holder, settings.lease_duration)

    def source(self, target: Target) -> Source:
        """Return where a target's commits come from; of one that requires signatures, only commits that carry them.

        Raises:
            ConfigInvalid: a key of `verify` can't be used.

        """
        given, verify = self._options.sources.get(target.name), target.verify
        if verify is None:
            return given or self._host(target)
        if given is not None:
            seen = "requires signed commits, and a directory carries no signature"
            raise ConfigInvalid.of(f"target {target.name}", seen, fix="push, and apply the commit from git")
        with needed_by(f"targets[{target.name}].verify"):
            from handler.source.signed.verified import Keys, Verified  # noqa: PLC0415 - loads two libraries that only such targets need

        return self._once(("verified", target.name), lambda: Verified(self._host(target), Keys.of(verify, target.name)))

    def _host(self, target: Target) -> GitHost:
        """Return a repository's git host, shared by whoever asks it alike; what its webhooks are told by is no part of that."""
        repository = target.repository
        key = ("git", repository.url, repository.auth, repository.tls)
        secrets, shared = self.secrets, self._shared
        return self._once(key, lambda: GitHost(repository, secrets.read, mask=secrets.mask, again=secrets.again, shared=shared))

    # --- what a survey sees by
    @property
    def slack(self) -> float:
        """By how many seconds a look at a git host may be older than the tick it serves."""
        return min(LOOK_SLACK, self.settings.interval / 10)

    def digest(self, target: Target) -> str:
        """Return the digest of a target's settings."""
        return self._once(("digest", target.name), lambda: settings_digest(target))

    def cluster_uid(self, target: Target) -> str:
        """Return the uid of a target's cluster, as it was asked for first."""
        return self._cluster_uid(target, self.records)(False)

    def place(self, target: Target) -> tuple[str, Hashable]:
        """Return a target's git host, and what those share who ask it the same: repository, credentials and revision."""
        return git_host(target), (self._host(target), target.revision)

    def head(self, target: Target, since: float) -> Head:
        """Tell what a target follows, by an answer asked for at `since` (monotonic seconds) or later. Raises AnnealError."""
        return self._host(target).head(target.revision, since)

    def render(self, target: Target, tree: Tree) -> Rendered:
        """Render a target's path of a tree; asks no cluster.

        Raises:
            AuthorError: every mistake in git, all at once.

        """
        options = target.renderer
        request = RenderRequest(target.path, options.include, options.exclude, target.rollout)
        return self._renderers[options.type].render(tree, request, self._sandbox)

    def _rooms(self, target: Target) -> Rooms:
        """Put a target's rooms together."""
        settings = self.settings
        applyset = applyset_id(state_name(target.name), settings.state_namespace)
        discovery, renderer = self.discovery(target), self._renderers[target.renderer.type]
        preparer = Preparer(
            target,
            applyset,
            settings.state_namespace,
            self.source(target),
            lambda tree, request: renderer.render(tree, request, self._sandbox),
            discovery,
            self._environ.get(WORKLOAD, ""),
        )
        return Rooms(
            target=target,
            settings=self.digest(target),
            preparer=preparer,
            planner=Planner(target, applyset, self.api(target), discovery),
            store=self.store(target),
            lock=self.lock(target),
            cluster_uid=self._cluster_uid(target, self.objects),
            lease_duration=settings.lease_duration,
            slack=self.slack,
            notes=self._options.notes,
            first=self._store(target, self.records) if self._options.notes else None,
        )

    def _cluster_uid(self, target: Target, objects: Callable[[Target], Objects]) -> Callable[[bool], str]:
        """Return what tells a cluster's uid, asked again only when that is wanted."""
        key = ("uid", target.cluster)

        def uid(fresh: bool) -> str:
            if fresh or key not in self._made:
                found = objects(target).cluster_uid()
                with self._lock:  # others may be counting what is made
                    self._made[key] = found
            return str(self._made[key])

        return uid

    def _once(self, key: Hashable, make: Callable[[], T]) -> T:
        """Make a shared part at its first use; when two threads make it at once, the first one's is kept."""
        if key not in self._made:
            made = make()
            with self._lock:
                self._made.setdefault(key, made)
        found: T = self._made[key]
        return found
