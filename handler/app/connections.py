"""The ways to targets' clusters and git hosts, made at first use, shared by cluster and identity, or by repository and credentials."""

from __future__ import annotations

import math
import os
import socket
import threading
import time
from collections.abc import Callable, Hashable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, TypeVar

from handler.app.external_services import ExternalServices
from handler.app.record_summaries import PATIENCE, TOOLING, HealthNow
from handler.cluster.api import Api
from handler.cluster.connect import ClusterConnection, connect
from handler.cluster.discovery import Discovery
from handler.cluster.kubeconfig import SecretStore
from handler.cluster.own_objects import OwnObjects
from handler.config.renderer_settings import ChartSource
from handler.config.secrets import Reading
from handler.config.settings import Cluster, Settings, Target
from handler.engine.planner.desired import Ancestry, CommitSource
from handler.model.advice import advice
from handler.model.errors import AnnealError, ConfigInvalid
from handler.model.instance import template_of
from handler.model.names import state_name
from handler.model.optional_imports import needed_by
from handler.model.plan import Plan
from handler.model.refs import Head
from handler.model.run_event import Announce, unheard
from handler.model.tree import CommitInfo
from handler.queues.bulkheads import git_host
from handler.state import commit_status_update
from handler.state.heartbeat import Heartbeat, Pulse
from handler.state.known_summaries import forget_summary
from handler.state.lease import LeaseLock
from handler.state.store import Keep, StateStore

if TYPE_CHECKING:
    from handler.feedback.git_hosts import GitHostApi
    from handler.prometheus.client import PrometheusClient
    from handler.source.charts.chart_fetcher import ChartFetcher
    from handler.source.charts.chart_repository import ReadIndex, ReadName
    from handler.source.git_host import GitHost

T = TypeVar("T")
_UNMET = 1.0  # seconds after which read-only views give up on a server that accepts no connection


@dataclass(frozen=True, slots=True)
class RecordPlace:
    """Where a record is: its namespace, the target's name in it, the installation that writes it."""

    namespace: str
    name: str
    installation: str


@dataclass(frozen=True, slots=True)
class Options:
    """What a command line may override. `sources`: by target name, instead of its git host (a directory, for `apply -f`).

    `notes`: this process is one of several on a queue, so its memory isn't asked: named requests leave an entry in the record whatever they
    did. `patience`: seconds that one run may wait for one thing to become healthy. `looks`: no process lives that watches health;
    `watches`: this one does; `lives_on`: it sees the end of a grace. `placeholders`: no key of encrypted files is asked, and no cluster for
    variables. `any_metrics`: checks may ask any Prometheus, listed or not. `terminal`: exec plugins may prompt. With `notes` or `terminal`
    a cluster that doesn't answer is given up soon. `brief`: seconds that a cluster has for one answer to read-only views. `places`: by
    target name, of records in other places. `clock`: of all that is recorded, in seconds since the epoch. `announce`, `agrees`: see
    `engine.run.dependencies.Dependencies`.
    """

    kubeconfig: str = ""
    context: str = ""
    master: str = ""
    sources: Mapping[str, CommitSource] = field(default_factory=dict)
    notes: bool = False
    patience: float = math.inf
    looks: bool = False
    watches: bool = False
    lives_on: bool = False
    brief: float = PATIENCE
    any_metrics: bool = False
    placeholders: bool = False
    terminal: bool = False
    announce: Announce = unheard
    places: Mapping[str, RecordPlace] = field(default_factory=dict)
    agrees: Callable[[Plan], bool] | None = None
    clock: Callable[[], float] = time.time


class Connections:
    """The ways of one configuration. Safe to share between threads."""

    def __init__(
        self, settings: Settings, secrets: Reading, environ: Mapping[str, str], options: Options, services: ExternalServices | None = None
    ) -> None:
        self.settings = settings
        self.secrets = secrets
        self._environ = environ
        self._services = services or ExternalServices(environ)
        self._options = options
        self._made: dict[Hashable, Any] = {}
        self._asked_before = 0.0
        self._lock = threading.Lock()
        self._holder = f"{socket.gethostname()}_{os.getpid()}"

    def api(self, target: Target, *, impersonated: bool = True) -> Api:
        """Return the way to a target's cluster, as the target's identity or as the handler's own."""
        return self.api_as(target, target.impersonate.service_account if impersonated and target.impersonate else "")

    def api_as(self, target: Target, account: str) -> Api:
        """Return the way to a target's cluster as any ServiceAccount (namespace/name)."""
        return self._once(("api", target.cluster, account), lambda: Api(self._connection(target), impersonate=account))

    def _connection(self, target: Target) -> ClusterConnection:
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

    def objects(self, target: Target) -> OwnObjects:
        """Return raw access to states and Leases, by the handler's own identity."""
        return self._once(("objects", target.cluster), lambda: OwnObjects(self.api(target, impersonated=False)))

    def records(self, target: Target) -> OwnObjects:
        """Return the same with short time-outs, for read-only views."""
        return self._once(("records", target.cluster), lambda: OwnObjects(self.brief_api(target)))

    def brief_api(self, target: Target, *, impersonated: bool = False) -> Api:
        """Return the way to a target's cluster with short time-outs, for views: as the handler's own, or the target's identity."""
        connection, most = self._connection(target), self._options.brief
        account = target.impersonate.service_account if impersonated and target.impersonate else ""
        key = ("brief", target.cluster, account)
        return self._once(key, lambda: Api(connection, impersonate=account, deadline=most, silence=most, unmet=_UNMET))

    def requests(self) -> float:
        """Return how many requests to API servers were made so far, by runs, surveys and readers."""
        with self._lock:
            return self._asked_before + float(sum(made.requests for made in self._made.values() if isinstance(made, Api)))

    def now(self) -> float:
        """Return the time by the clock of records, in seconds since the epoch."""
        return self._options.clock()

    def metrics(self) -> PrometheusClient:
        """Return the way to Prometheus, for checks."""
        from handler.prometheus.client import PrometheusClient

        return self._once(
            ("metrics",), lambda: PrometheusClient(self.settings.prometheus, self.secrets, anywhere=self._options.any_metrics)
        )

    def members(self, target: Target) -> int | None:
        """Return how many objects live with a target's marks, by its own rights: asked where it has no record. None: that can't be seen."""
        from handler.engine.planner.planner import Planner
        from handler.engine.run.recovery_scan import scan
        from handler.plan.inventory import TargetMarks

        marks = TargetMarks.of(target.name, self.settings.state_namespace)
        with suppress(AnnealError):
            found = scan(Planner(target, marks.applyset, self.brief_api(target, impersonated=True), self.discovery(target)))
            return found.count or (None if found.denied else 0)
        return None

    def store(self, target: Target) -> StateStore:
        """Return the record of a target."""
        return self._store(target, self.objects)

    def pulse(self, target: Target) -> Pulse:
        """Return what the heartbeat on a target's cluster says; asked once."""
        place, records = self._place(target), self.records(target)
        read = Heartbeat(records, place.namespace, place.installation).read
        return self._once(("pulse", target.cluster, place.namespace, place.installation), read)

    def brief_store(self, target: Target) -> StateStore:
        """Return the same with short time-outs."""
        return self._store(target, self.records)

    def health(self, target: Target) -> HealthNow:
        """Return what knows the health of a target's record, by reads with short time-outs."""
        place = self._place(target)
        return HealthNow(self.settings, Heartbeat(self.records(target), place.namespace, place.installation), self._options.clock)

    def elsewhere(self, cluster: Cluster | None, targets: tuple[Target, ...], namespace: str, installation: str) -> Connections:
        """Return the ways to records of another installation, whose targets these are; what is empty is as here.

        `cluster`: None: this one's, to which flags of a command line lead, too. Made once.
        """
        key = ("elsewhere", cluster, targets, namespace, installation)
        return self._once(key, lambda: self._elsewhere(cluster, targets, namespace, installation))

    def _elsewhere(self, cluster: Cluster | None, targets: tuple[Target, ...], namespace: str, installation: str) -> Connections:
        settings = self.settings
        there = replace(
            settings,
            targets=targets,
            state_namespace=namespace or settings.state_namespace,
            installation=installation or settings.installation,
            installation_from="" if installation else settings.installation_from,
        )
        options = replace(self._options, places={}, sources={})
        options = replace(options, kubeconfig="", context="", master="") if cluster else options
        return Connections(there, self.secrets, self._environ, options, self._services)

    def _store(self, target: Target, objects: Callable[[Target], OwnObjects]) -> StateStore:
        return self.store_at(target, self._place(target), objects)

    def store_at(self, target: Target, place: RecordPlace, objects: Callable[[Target], OwnObjects] | None = None) -> StateStore:
        """Return a record at any place of a target's cluster."""
        found = (objects or self.objects)(target)
        settings, name = self.settings, place.installation
        before = (settings.installation_from if name == settings.installation else "", target.repository.url)
        return StateStore(found, place.namespace, place.name, name, TOOLING, self._keep(target), before)

    def _keep(self, target: Target) -> Keep:
        """Return what completes a record as it is written; a directory's commits are on no git host."""
        soaks, feedback = self.health(target).keep, target.repository.feedback
        if feedback is None or not target.has_commit_statuses or template_of(target.name) in self._options.sources:
            return soaks
        every = feedback.status_for == "all"
        return lambda before, after: commit_status_update.kept(before, soaks(before, after), every=every)

    def git_api(self, target: Target) -> GitHostApi:
        """Return the API of the git host of a target's repository, which has feedback. Raises ConfigInvalid: it can't be asked."""
        from handler.app.git_host_apis import git_host_api
        from handler.source.git_host import SharedConnections
        from handler.source.host_api import WritePace

        repository, shared = target.repository, self._once(("sharing",), SharedConnections)
        key = ("git api", repository.url, repository.feedback, repository.tls)

        def pace(url: str, seconds: float) -> WritePace:
            return self._once(("pace", url), lambda: WritePace(seconds))

        return self._once(key, lambda: git_host_api(repository, self.secrets, shared.pools, pace))

    def _place(self, target: Target) -> RecordPlace:
        settings = self.settings
        return self._options.places.get(target.name) or RecordPlace(settings.state_namespace, target.name, settings.installation)

    def lock(self, target: Target) -> LeaseLock:
        """Return the lock of a target; its requests are impatient, for a renewal that hangs must not outlast the Lease."""
        return self.lock_at(target, self._place(target))

    def lock_at(self, target: Target, place: RecordPlace) -> LeaseLock:
        """Return the lock beside a record at any place of a target's cluster, in the same way."""
        settings = self.settings
        third = settings.lease_duration / 3
        impatient = self._once(("lease", target.cluster), lambda: Api(self._connection(target), deadline=third, silence=third))
        return LeaseLock(OwnObjects(impatient), place.namespace, state_name(place.name), self._holder, settings.lease_duration)

    def cluster_uid(self, target: Target) -> str:
        """Return the uid of a target's cluster, as it was asked for first."""
        return self._cluster_uid(target, self.records)(False)

    def commit(self, target: Target, sha: str) -> CommitInfo | None:
        """Return a commit of a target's repository for display; None: its host doesn't serve single commits. Raises AnnealError."""
        return self.git_host(target).commit(sha)

    def place(self, target: Target) -> tuple[str, Hashable]:
        """Return a target's git host, and the key of a shared answer: repository, credentials and revision."""
        return git_host(target), (self.git_host(target), target.revision)

    def head(self, target: Target, since: float) -> Head:
        """Return the head of a target's revision, by an answer requested at `since` (monotonic seconds) or later. Raises AnnealError."""
        return self.git_host(target).head(target.revision, since)

    def source(self, target: Target) -> CommitSource:
        """Return where a target's commits come from; with `verify`, signed ones alone. Raises ConfigInvalid: a key of it can't be used."""
        given, verify = self._options.sources.get(template_of(target.name)), target.verify
        if target.revision.promoted:
            self.ancestry(target)
        if verify is None:
            return given or self.git_host(target)
        if given is not None:
            seen = "requires signed commits, and a directory carries no signature"
            raise ConfigInvalid.of(f"target {target.name}", seen, fix="push, and apply the commit from git")
        with needed_by(f"targets[{target.name}].verify"):
            from handler.source.signatures.verified_source import TrustedKeys, VerifiedSource

        return self._once(("verified", target.name), lambda: VerifiedSource(self.git_host(target), TrustedKeys.of(verify, target.name)))

    def ancestry(self, target: Target) -> Ancestry:
        """Return what knows how a target's commits follow each other. Raises ConfigInvalid: it is a directory, which holds none."""
        given = self._options.sources.get(template_of(target.name))
        if given is None:
            return self.git_host(target)
        if not isinstance(given, Ancestry):
            seen = "follows commits that another target has proven, and a directory holds none"
            raise ConfigInvalid.of(
                f"target {target.name}", seen, fix=advice("from git: anneal apply {}, or anneal promote {}", target.name, target.name)
            )
        return given

    def proves(self, target: Target, commit: str, head: str = "") -> bool:
        """Whether a target's revision leads to a commit; a directory has but its present one. Raises as `GitHost.proves`."""
        given = self._options.sources.get(template_of(target.name))
        if given is None:
            return self.git_host(target).proves(target.revision, commit, head)
        head = head or given.head(target.revision).commit
        return given.reaches(head, commit) if isinstance(given, Ancestry) else commit == head

    def git_host(self, target: Target) -> GitHost:
        """Return a repository's git host, shared by targets with the same URL and credentials; webhook settings don't count."""
        from handler.source.git_host import GitHost, SharedConnections

        repository, shared = target.repository, self._once(("sharing",), SharedConnections)
        key = ("git", repository.url, repository.auth, repository.tls)
        secrets = self.secrets
        return self._once(key, lambda: GitHost(repository, secrets.read, again=secrets.again, shared=shared))

    def _charts(self, sources: tuple[ChartSource, ...], read_index: ReadIndex, read_name: ReadName) -> ChartFetcher:
        """Return what fetches charts from these sources; connections are those of git hosts, the cache is shared by all."""
        from handler.source.charts.chart_fetcher import ChartCache, ChartFetcher
        from handler.source.git_host import SharedConnections

        shared, cache = self._once(("sharing",), SharedConnections), self._once(("chart cache",), ChartCache)
        return self._once(("charts", sources), lambda: ChartFetcher(sources, self.secrets, read_index, read_name, shared.pools, cache))

    def _cluster_uid(self, target: Target, objects: Callable[[Target], OwnObjects]) -> Callable[[bool], str]:
        """Return a function that reads a cluster's uid, once unless a fresh one is wanted."""
        key = ("uid", target.cluster)

        def uid(fresh: bool) -> str:
            if fresh or key not in self._made:
                found = objects(target).cluster_uid()
                return str(self._anew(key, found))
            return str(self._made[key])

        return uid

    def forget(self, name: str) -> None:
        """Let go of what was made for a target of this name alone; a run that is under way keeps what it has."""
        with self._lock:
            for kind in ("dependencies", "looks", "digest", "health", "decryptor", "verified"):
                self._made.pop((kind, name), None)
        forget_summary(self.settings.state_namespace, name)

    def forget_account(self, cluster: Cluster, account: str) -> None:
        """Let go of the ways of an account that no target has any more; what they have asked still counts."""
        with self._lock:
            gone = [self._made.pop((kind, cluster, account), None) for kind in ("api", "brief")]
            self._asked_before += sum(each.requests for each in gone if isinstance(each, Api))

    def _anew(self, key: Hashable, made: T) -> T:
        """Keep a part in place of another one."""
        with self._lock:  # others may be counting what is made
            self._made[key] = made
        return made

    def _once(self, key: Hashable, make: Callable[[], T]) -> T:
        """Make a shared part at its first use; when two threads make it at once, the first one's is kept."""
        with suppress(KeyError):
            found: T = self._made[key]
            return found
        made = make()
        with self._lock:
            kept: T = self._made.setdefault(key, made)
        return kept  # though another thread has let go of it by now
