"""The ways to targets' clusters and git hosts, each made at its first use.

One connection and one discovery a cluster and identity, one git host a repository and its credentials; targets share them.
"""

from __future__ import annotations

import math
import os
import socket
import threading
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from handler.cluster.api import Api
from handler.cluster.connect import Connection, connect
from handler.cluster.discovery import Discovery
from handler.cluster.kubeconfig import SecretStore
from handler.cluster.store import Objects
from handler.config.secrets import Reading
from handler.config.settings import Settings, Target
from handler.model.errors import ConfigInvalid
from handler.model.optional import needed_by
from handler.prometheus.client import Metrics
from handler.reading import DEADLINE
from handler.run.preparing import Source
from handler.run.rooms import unseen
from handler.source.host import GitHost
from handler.source.sharing import Sharing
from handler.state.configmap import state_name
from handler.state.heartbeat import Beat, Heartbeat
from handler.state.lease import LeaseLock
from handler.state.record import State
from handler.state.store import StateStore
from handler.stores import Services
from handler.summaries import TOOLING

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Options:
    """What a command line may override. `sources`: by target name, instead of its git host (a directory, for `apply -f`).

    `notes`: this process is one of several on a queue (functions, containers), so its memory is nobody's: runs that are asked for by name
    leave an entry whatever they did, and a cluster that doesn't answer is given up soon, for others wait for the worker.
    `patience`: how many seconds one run may wait for one thing to become healthy. `looks`: no process lives that watches health;
    `watches`: this one does, so a verdict that holds isn't written again.
    `any_metrics`: checks may ask any Prometheus, listed or not: for who reads no git but his own directory. `terminal`: a person waits at
    one, and exec plugins may speak there. `seen`: told of the record each time that a run under way has written to it.
    """

    kubeconfig: str = ""
    context: str = ""
    master: str = ""
    sources: Mapping[str, Source] = field(default_factory=dict)
    notes: bool = False
    patience: float = math.inf
    looks: bool = False
    watches: bool = False
    any_metrics: bool = False
    terminal: bool = False
    seen: Callable[[State], None] = unseen


class Reaching:
    """The ways of one configuration. Safe to share between threads."""

    def __init__(
        self, settings: Settings, secrets: Reading, environ: Mapping[str, str], options: Options, services: Services | None = None
    ) -> None:
        self.settings = settings
        self.secrets = secrets
        self._environ = environ
        self._services = services or Services(environ)
        self._options = options
        self._made: dict[Hashable, Any] = {}
        self._lock = threading.Lock()
        self._shared = Sharing()
        self._holder = f"{socket.gethostname()}_{os.getpid()}"

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
                master=options.master,
                environ=self._environ,
                store=SecretStore(self._services.fetch, self.settings.secrets_interval),
                cloud=self._services.eks,
                terminal=options.terminal,
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

    def metrics(self) -> Metrics:
        """Return the way to Prometheus, for checks."""
        return self._once(("metrics",), lambda: Metrics(self.settings.prometheus, self.secrets, anywhere=self._options.any_metrics))

    def store(self, target: Target) -> StateStore:
        """Return the record of a target."""
        return self._store(target, self.objects)

    def beat(self, target: Target) -> Beat | None:
        """Return when a worker last said that it watches the health of what is on a target's cluster; asked once, if one is to."""
        objects, settings = self.objects(target), self.settings
        if not settings.health_interval:
            return None
        read = Heartbeat(objects, settings.state_namespace, settings.installation).read
        return self._once(("beat", target.cluster), read)

    def brief_store(self, target: Target) -> StateStore:
        """Return the same for those who won't wait long."""
        return self._store(target, self.records)

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
