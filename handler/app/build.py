"""The composition root: settings and tables become what runs jobs. Nothing is built at import time, everything at first use.

What leads to clusters and git hosts is shared by targets (`connections`). A target whose cluster or credentials are broken fails alone.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache, partial
from typing import TYPE_CHECKING

from handler.app.connections import Options
from handler.app.external_services import ExternalServices, TargetKeys
from handler.app.other_records import ConfiguredRecords
from handler.app.promotions import promoters_of
from handler.app.record_places import TargetRecords
from handler.app.sibling_targets import OneRepository
from handler.app.tables import LazyTable, Tables
from handler.app.target_runner import TargetRunner
from handler.cluster.discovery import Discovery
from handler.config.decryption import Decryption
from handler.config.renderer_settings import ChartSource
from handler.config.secrets import Reading
from handler.config.settings import Settings, Target
from handler.config.settings_digest import settings_digest
from handler.engine.health.custom_health import CustomHealth
from handler.engine.planner.desired import CommitSource, Preparer, request_for
from handler.engine.planner.planner import Planner
from handler.engine.planner.render_cache import RenderCache
from handler.engine.reconcile import reconcile
from handler.engine.run.dependencies import AwaitedTarget, Dependencies
from handler.model.errors import AnnealError, ConfigInvalid, Suspended
from handler.model.event import Job
from handler.model.instance import is_instance
from handler.model.names import run_id
from handler.model.outside_inputs import OutsideInputs
from handler.model.pull_request import is_pull_request
from handler.model.queue_view import ALONE, QueueView
from handler.model.refs import Head
from handler.model.render import RecordedRender, Rendered
from handler.model.result import Outcome, Result
from handler.model.rollout import Moments
from handler.model.run_event import RunEnded, unheard
from handler.model.tree import Tree
from handler.plan.gap import FieldGaps
from handler.plan.inventory import TargetMarks
from handler.render.charts.chart_readers import read_index, read_name
from handler.render.sandbox import Sandbox
from handler.render.sops.decryptor import Decryptor
from handler.render.target_render import render_target
from handler.state.record import Pin, State
from handler.state.record_values import RecordedCommitStatus

if TYPE_CHECKING:
    from handler.app.instances.registry import Instances
    from handler.app.instances.template_run import TemplateRuns
    from handler.app.pull_requests.pull_request_run import PullRequestRuns
    from handler.rollout.interfaces import CheckType
    from handler.source.charts.chart_fetcher import ChartFetcher

__all__ = ["Handler", "Options"]
WORKLOAD = "ANNEAL_WORKLOAD"
"""The environment variable that says, as namespace/name, which Deployment the handler itself runs in."""
SETTLED = 10.0
"""Seconds that a command waits for the status of an instance that it ran."""
SEEN = 1000
"""Objects of renders that stay in memory for looks beside runs."""
LOOK_SLACK = 10.0
"""Seconds by which a look at a git host may be older than the tick it serves: the ticks of one repository's targets are spread."""


class Handler(TargetRunner):
    """Runs jobs of the targets of one configuration. Safe to share between threads."""

    def __init__(
        self,
        settings: Settings,
        secrets: Reading,
        sandbox: Sandbox,
        environ: Mapping[str, str],
        options: Options = Options(),  # noqa: B008 - frozen
        *,
        tables: Tables | None = None,
        services: ExternalServices | None = None,
    ) -> None:
        super().__init__(settings, secrets, environ, options, services)
        self.tables = tables or Tables()
        self._sandbox = sandbox
        self._renders, self._seen_renders = RenderCache(), RenderCache(SEEN)

    @property
    def templates(self) -> TemplateRuns:
        """What runs templates; few programs have one, so the others don't load it."""
        return self._once(("templates",), self._templates)

    def _templates(self) -> TemplateRuns:
        from handler.app.instances.registry import Instances
        from handler.app.instances.template_run import TemplateRuns

        instances = Instances.of(self)
        instances.left.append(self.forget)
        return TemplateRuns(self, instances)

    @property
    def instances(self) -> Instances:
        """The instances that this process knows."""
        return self.templates.instances

    def run(self, job: Job, stop: threading.Event | None = None, queue_view: QueueView = ALONE) -> Result:
        """Run one job; whatever goes wrong with its target is its Result. `queue_view`: other requests, and its worker slot.

        A template looks after its instances, which run where `templates.ask` has them run, without it in this call.
        """
        stop = stop or threading.Event()
        if is_pull_request(job.target):
            return self._pull_requests().run(job, stop)
        template = self.settings.target(job.target)
        if template is not None and template.is_template:
            return self.templates.run(template, job, stop)
        if not is_instance(job.target):
            return self._reconcile(job, stop, queue_view)
        return self._run_instance(job, stop, partial(self._reconcile, stop=stop, queue=queue_view))

    def _pull_requests(self) -> PullRequestRuns:
        from handler.app.pull_requests.pull_request_run import PullRequestRuns

        return self._once(("pull requests",), lambda: PullRequestRuns(self))

    def _run_instance(self, job: Job, stop: threading.Event, ordinary: Callable[[Job], Result]) -> Result:
        from handler.app.instance_statuses import InstanceStatuses
        from handler.app.instances import instance_run

        result = self._guarded(job, lambda: instance_run.run(self, self.instances, job, stop, ordinary))
        if self.templates.ask is None and not job.dry_run:  # no process lives that writes it beside the runs
            statuses = InstanceStatuses(self, self.instances.known)
            statuses.hear(RunEnded.of(job, result, result.duration))
            statuses.settle(SETTLED)
        return result

    def forget(self, name: str) -> None:
        """Let go of all that is kept for a target of this name."""
        super().forget(name)
        self._renders.drop(name)
        self._seen_renders.drop(name)

    def _reconcile(self, job: Job, stop: threading.Event, queue: QueueView) -> Result:
        return self._run(job, lambda: self.dependencies(job.target), self._renders, stop, queue)

    def look(self, job: Job, gaps: FieldGaps) -> Result:
        """Plan one target beside its runs; `gaps` takes what is compared, field by field. By one thread a target. `job`: a dry run."""

        def own() -> Dependencies:
            made = self._once(("looks", job.target), lambda: self._dependencies(self.target(job.target)))
            return replace(made, gaps=gaps, announce=unheard)

        return self._run(job, own, self._seen_renders)

    @staticmethod
    def _run(
        job: Job, made: Callable[[], Dependencies], renders: RenderCache, stop: threading.Event | None = None, queue: QueueView = ALONE
    ) -> Result:
        def whole() -> Result:
            dependencies = made()
            try:
                return reconcile(dependencies, job, stop, queue)
            finally:
                renders.ran(job.target, dependencies.preparer)

        return Handler._guarded(job, whole)

    @staticmethod
    def _guarded(job: Job, run: Callable[[], Result]) -> Result:
        """Return the end of a run; what can't even begin is its Result."""
        since = time.monotonic()
        try:
            return run()
        except AnnealError as error:
            outcome = Outcome.SUSPENDED if isinstance(error, Suspended) else Outcome.FAILED
            failed = Result(job.target, outcome, trigger=job.cause, message=str(error), problems=error.problems)
            return replace(failed, who=error.who, code=error.code, duration=time.monotonic() - since, run=job.run or run_id(job.target))

    def target(self, name: str) -> Target:
        """Return a target by name. Raises ConfigInvalid, which names those that there are."""
        target = self.settings.target(name)
        if target is None and is_instance(name):
            return self.instances.find(name)
        if target is None:
            known = ", ".join(sorted(item.name for item in self.settings.targets))
            raise ConfigInvalid.of(f"target {name}", "is not configured", fix=f"configured are: {known}")
        return target

    def dependencies(self, name: str) -> Dependencies:
        """Return what a target's runs are made of; made once, of an instance anew for another object."""
        target = self.target(name)
        made = self._once(("dependencies", name), lambda: self._dependencies(target))
        if made.target == target:
            return made
        self.forget(name)
        return self._once(("dependencies", name), lambda: self._dependencies(target))

    def head(self, target: Target, since: float) -> Head:
        """Return the head of a target's revision; of one that follows others, what they have proven: empty, nothing. Raises AnnealError."""
        if target.revision.promoted is None:
            return super().head(target, since)
        store = self.brief_store(target)
        return Head(self._head_for(target, store.read().state or store.blank(""), since))

    # --- what a survey sees by
    @property
    def slack(self) -> float:
        """By how many seconds a look at a git host may be older than the tick it serves."""
        return min(LOOK_SLACK, self.settings.interval / 10)

    def digest(self, target: Target) -> str:
        """Return the digest of a target's settings; made once, of an instance anew for another object."""
        key = ("digest", target.name)
        of, found = self._once(key, lambda: (target, settings_digest(target)))
        return found if of == target else self._anew(key, (target, settings_digest(target)))[1]

    def render(self, target: Target, tree: Tree, *, older: bool = False, told: bool = False) -> Rendered:
        """Render a target's path of a tree to be shown; its cluster is asked only for what charts look at, or for values.

        `older`, `told`: see `RenderRequest`. Raises AuthorError with every mistake in git; AnnealError: values or a chart from elsewhere
        can't be had.
        """
        from handler.app.shown_inputs import ShownInputs

        discovery = cache(lambda: Discovery(self.brief_api(target)))
        shown = ShownInputs(self.outside(target, discovery, RecordedRender(), tree.commit.sha))
        sources = target.post_build.substitute_from if target.post_build else ()
        lacks = self._options.placeholders or shown.lacks(sources)
        request = replace(request_for(target, self.source(target), {}, older=older), outside=shown, placeholders=int(lacks), told=told)
        renderer = self.tables.renderers[target.renderer.chosen]
        rendered = render_target(renderer, tree, request, self._sandbox, self.decryptor(target))
        return replace(rendered, notes=(*rendered.notes, *shown.notes))

    def preparer(self, target: Target, discovery: Discovery) -> Preparer:
        """Return what prepares a target's commits by what a cluster serves."""
        renderer = self.tables.renderers[target.renderer.chosen]
        return Preparer(
            target,
            TargetMarks.of(target.name, self.settings.state_namespace).applyset,
            self.settings.state_namespace,
            self.source(target),
            lambda tree, request: render_target(renderer, tree, request, self._sandbox, self.decryptor(target)),
            discovery,
            self._environ.get(WORKLOAD, ""),
            lambda recorded, commit: self.outside(target, lambda: discovery, recorded, commit),
            lambda commit, head: self.proves(target, commit, head),
            actions=self.tables.actions,
            checks=LazyTable(self._bound_checks),
        )

    def preview_preparer(self, target: Target, source: CommitSource, number: int) -> Preparer:
        """Return what prepares another tree than a run's, with placeholders of a set for all values that aren't in git."""
        from handler.render.placeholder_inputs import PlaceholderInputs, charts_of

        discovery, renderer = self.discovery(target), self.tables.renderers[target.renderer.chosen]
        decryptor = Decryptor(target.name, target.decryption, None, number) if target.decryption else None
        return replace(
            self.preparer(target, discovery),
            source=source,
            render=lambda tree, request: render_target(
                renderer, tree, replace(request, placeholders=number, keys_known=True), self._sandbox, decryptor
            ),
            outside=lambda recorded, commit: PlaceholderInputs(
                self.outside(target, lambda: discovery, recorded, commit), number, charts_of(target.renderer)
            ),
        )

    def is_overtaken(self, target: Target, state: State, status: RecordedCommitStatus) -> bool:
        """Whether a commit that only a webhook has named was overtaken. Raises AnnealError: the git host can't be asked now."""
        from handler.app.commit_statuses.posting import is_overtaken

        return is_overtaken(self, target, state, status)

    def decryptor(self, target: Target) -> Decryptor | None:
        """Return what decrypts a target's files, made once; None: it lists no keys."""
        placeholders = self._options.placeholders
        settings = target.decryption or (Decryption() if placeholders else None)
        if settings is None:
            return None
        keys = None if placeholders else TargetKeys(settings, self.secrets, self._services.kms.unwrap)
        return self._once(("decryptor", target.name), lambda: Decryptor(target.name, settings, keys))

    def outside(self, target: Target, discovery: Callable[[], Discovery], recorded: RecordedRender, commit: str) -> OutsideInputs:
        """Return what one render of a target takes from elsewhere than git. `recorded`: what its record says of renders."""
        from handler.app.outside_inputs import TargetInputs
        from handler.source.charts.chart_pins import ChartPins

        pins = ChartPins(recorded.charts, commit)
        api = partial(self.api, target)
        lists = self.instances.lists(target) if target.instance else None
        return TargetInputs(target, api, discovery, lambda: self.charts(target.charts), pins, lists)

    def charts(self, sources: tuple[ChartSource, ...]) -> ChartFetcher:
        """Return what fetches charts, shared by targets that list the same sources. Raises ConfigInvalid: one can't be used."""
        return self._charts(sources, partial(read_index, self._sandbox), partial(read_name, self._sandbox))

    def _sibling_preparer(self, target: Target, other: Discovery | None) -> Preparer:
        return self.preparer(target, other) if other else self.dependencies(target.name).preparer

    def _bound_checks(self) -> Mapping[str, CheckType]:
        from handler.rollout.checks.prometheus import bound

        return bound(self.tables.checks, self.metrics().listed.problem)

    def custom_health(self, target: Target) -> CustomHealth:
        """Return what judges a target's objects by the operator's expressions: its own stand above the installation's. Made once."""
        entries = (*self.settings.health_check_exprs, *target.health_check_exprs)
        return self._once(("health", target.name), lambda: CustomHealth(entries, self._sandbox))

    def _query(self, url: str, query: str, seconds: float = 0.0, step: float = 0.0) -> Moments:
        return self.metrics().query(url, query, seconds, step)

    def _dependencies(self, target: Target) -> Dependencies:
        settings, discovery = self.settings, self.discovery(target)
        applyset = TargetMarks.of(target.name, settings.state_namespace).applyset
        return Dependencies(
            target=target,
            settings=self.digest(target),
            preparer=self.preparer(target, discovery),
            planner=Planner(
                target, applyset, self.api(target), discovery, custom=self.custom_health(target), lives_on=self._options.lives_on
            ),
            store=self.store(target),
            lock=self.lock(target),
            cluster_uid=self._cluster_uid(target, self.objects),
            lease_duration=settings.lease_duration,
            slack=self.slack,
            drift_interval=settings.drift_interval,
            watched=self._options.watches,
            notes=self._options.notes,
            first=self.brief_store(target) if self._options.notes or self._options.terminal else None,
            patience=self._options.patience,
            looks=self._options.looks,
            actions=self.tables.actions,
            metrics=self._query,
            clock=self._options.clock,
            announce=self._options.announce,
            agrees=self._options.agrees,
            siblings=OneRepository(self, target, self._sibling_preparer),
            health=self.custom_health(target),
            places=TargetRecords(self, target),
            awaited=tuple(self._awaited(name) for name in target.depends_on),
            others=ConfiguredRecords(self, self.target),
            promoters=promoters_of(self, target),
        )

    def _head_for(self, target: Target, known: State, since: float) -> str:
        if target.revision.promoted:
            return promoters_of(self, target).choose(known, self.now(), since).commit
        return super().head(target, since).commit

    def _is_held_by(self, name: str, pin: Pin, head: str) -> bool:
        return self.dependencies(name).preparer.is_held_by(pin, head)

    def _awaited(self, name: str) -> AwaitedTarget:
        target = self.target(name)
        return AwaitedTarget(
            target,
            self.digest(target),
            partial(self._head_for, target),
            partial(self._is_held_by, name),
            lambda later, earlier: self.ancestry(target).reaches(later, earlier),
        )
