"""The git half of a run: which commit, its tree, its documents, admitted and staged. Nothing live is read but discovery.

Law: the git host is the linearizer; a payload's commit is a hint. What was prepared last is kept, whole or not at all, so that a drift run
neither fetches nor renders it again.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Protocol, runtime_checkable

from handler.cluster.discovery import Discovery
from handler.config.git_settings import Revision
from handler.config.instance_target import refuse_template
from handler.config.renderer_settings import AUTO, JSONNET
from handler.config.settings import Target
from handler.engine.planner import canaries
from handler.model.advice import advice
from handler.model.errors import AnnealError, AuthorError, CommitUnproven, PlanRefused, Problem, RefNotFound, SourceRefused
from handler.model.manifest import Manifest
from handler.model.names import Identity
from handler.model.outside_inputs import KnownChart, NothingOutside, OutsideInputs
from handler.model.refs import Head
from handler.model.render import Called, Files, RecordedRender, Rendered, RenderRequest, nowhere
from handler.model.rollout import Mode, Rollout
from handler.model.tree import OUTSIDE, CommitInfo, ReadSet, Tree, judged_from
from handler.plan.admission import Admission, Desired
from handler.plan.closed import closed
from handler.plan.hooks import PlannedHooks, resting, separate
from handler.plan.ignore import Ignoring
from handler.plan.order import order
from handler.plan.rollout import PlannedRollout, refuse_strays, roll
from handler.render import render_tools
from handler.render.set_digest import set_digest
from handler.rollout.interfaces import ActionReader, CheckType
from handler.state.record import Approval, Pin

NOTHING_RECORDED = RecordedRender()


class CommitSource(Protocol):
    """Where commits come from: a git host, or a directory for the CLI."""

    def head(self, revision: Revision, since: float = math.inf) -> Head:
        """Resolve a revision; an answer requested at `since` (monotonic seconds) or later will do, infinity: resolve now."""

    def fetch(self, sha: str, path: str = "") -> Tree:
        """Return that commit's tree."""

    def recheck(self, sha: str, path: str = "") -> None:
        """Raise CommitUnverified if a commit whose tree was returned no longer counts."""


@runtime_checkable
class Ancestry(Protocol):
    """How commits follow each other: a git host."""

    def reaches(self, head: str, commit: str) -> bool:
        """Whether a commit is `head`, or one that it leads to by parents. Raises AnnealError: the host can't tell."""


@dataclass(frozen=True)
class Prepared:
    """A commit's desired set. `reads`: what it was made from, `digest`: the rendered set, without what each render makes anew.

    `planned_hooks`: its hooks; those of the `Sync` phase stand in `stages`, too. `awaits`: what must be healthy before each object.
    `planned_rollout`: its Rollout, whose groups end `stages`. `rendered`: what the renderer made of it. `notes`: what a plan says.
    """

    commit: CommitInfo
    reads: ReadSet
    digest: str
    stages: tuple[tuple[Desired, ...], ...]
    rendered: Rendered = field(default_factory=lambda: Rendered((), ReadSet(())), repr=False)
    planned_hooks: PlannedHooks = field(default_factory=PlannedHooks, repr=False)
    awaits: Mapping[Identity, frozenset[Identity]] = field(default_factory=dict, repr=False)
    notes: tuple[str, ...] = ()
    planned_rollout: PlannedRollout = field(default_factory=PlannedRollout, repr=False)

    @cached_property
    def closed(self) -> frozenset[Identity]:
        """Its objects of which no word of the cluster is repeated."""
        items = (*(item for stage in self.stages for item in stage), *self.planned_hooks.items.values())
        return closed((item.manifest for item in items), self.rendered.unstable)

    @property
    def rollout(self) -> Rollout | None:
        """Its Rollout."""
        return self.planned_rollout.rollout

    @property
    def automatic(self) -> int:
        """How many of its stages come before the Rollout's groups."""
        return len(self.stages) - len(self.planned_rollout.stages)


@dataclass(frozen=True, slots=True)
class Inputs:
    """From what a run was made: the record compares these. `settings`: digest of the target's settings; `repository`: its URL.

    `charts`: for the record.
    """

    prepared: Prepared
    settings: str
    repository: str = ""
    path: str = ""
    charts: tuple[KnownChart, ...] = ()

    @property
    def reads(self) -> str:
        """Digest of the read set."""
        return self.prepared.reads.digest()

    @property
    def commit(self) -> CommitInfo:
        """The commit."""
        return self.prepared.commit

    def are_of(self, approval: Approval | None) -> bool:
        """Whether an approval was given for the same inputs."""
        return approval is not None and (approval.reads, approval.settings) == (self.reads, self.settings)


_ENGINES = {
    f"{OUTSIDE}tool/rjsonnet": "jrsonnet",
    render_tools.read_name(JSONNET): "Google's program",
    render_tools.read_name(render_tools.LIBRARY): "Google's library in C++",
}
"""What the engines of jsonnet are called in records, that of a former release first."""


@dataclass(slots=True)
class Preparer:
    """Prepares commits of one target; it outlives runs, for the sake of what it rendered last.

    `own`: namespace/name of the workload that this handler runs in, which goes last. `outside`: makes what isn't git,
    for one run. `proves`: whether the revision leads to a commit, by its head where that is known, else empty. `recorded`: the commit that
    the state named at the end of this process's last run, and when that was (monotonic seconds); None before the first. `actions`,
    `checks`: what a Rollout may name.
    """

    target: Target
    applyset: str
    state_namespace: str
    source: CommitSource
    render: Callable[[Tree, RenderRequest], Rendered]
    discovery: Discovery
    own: str = ""
    outside: Callable[[RecordedRender, str], OutsideInputs] = lambda _recorded, _commit: NothingOutside()
    proves: Callable[[str, str], bool] = lambda _commit, _head: False
    actions: Mapping[str, ActionReader] = field(default_factory=dict)
    checks: Mapping[str, CheckType] = field(default_factory=dict)
    last: Prepared | None = field(default=None)
    recorded: tuple[str, float] | None = field(default=None)

    def head(self, since: float = math.inf) -> Head:
        """Return what the configured revision names now, or by an answer that was asked for at `since` or later. Raises RefNotFound."""
        return self.source.head(self.target.revision, since)

    def tree(self, sha: str) -> Tree:
        """Return a commit's tree. Raises RefNotFound: the host no longer has it."""
        return self.source.fetch(sha, self.target.path)

    def prove(self, sha: str, head: str = "") -> None:
        """Refuse a commit that only a record or a request names. `head`: what the revision names now; empty: the host is asked.

        Raises CommitUnproven: the revision doesn't lead to it, as far as the host shows; GitUnavailable.
        """
        try:
            why = "" if self.proves(sha, head) else "the host shows no way to it from there"
        except (RefNotFound, SourceRefused) as error:
            why = str(error)
        if why:
            name = self.target.name
            seen = f"commit {sha[:12]} isn't proven to be on {self.target.revision}, and nothing of it is rendered or written: {why}"
            fix = "to follow the revision again: `anneal unpin {}`; to vouch for it, in a shell: `anneal apply {} --commit SHA --force`"
            raise CommitUnproven.of(f"target {name}", seen, fix=advice(fix, name, name))

    def prepare(
        self, sha: str, recorded: RecordedRender = NOTHING_RECORDED, outside: OutsideInputs | None = None, *, older: bool = False
    ) -> Prepared:
        """Fetch, render, admit and order a commit; what was rendered from the same reads is not rendered again.

        Signatures are checked and what isn't git is asked each time: either may have changed. `recorded`: what the record says of renders;
        `outside`: what isn't git, None: made for this commit. `older`: the commit isn't the head; one from before the target's Rollout goes
        without, so that there is a way back to it. Raises AuthorError: every mistake in git, all at once.
        """
        outside = outside or self.outside(recorded, sha)
        last = self.last  # another thread may `forget` it meanwhile
        if last and not older and self.target.rollout and last.rendered.rollout is None:
            last = None  # a head without its Rollout is refused
        last = last if last and last.rendered.fits(recorded.installed) else None
        if last and last.commit.sha == sha and last.reads.holds(outside.ask):
            self.source.recheck(sha, self.target.path)
            return last
        tree = self.tree(sha)
        known = last.rendered if last and last.reads.on(tree, outside.ask) == last.reads else None
        rendered = known or self._rendered(tree, recorded, outside, older=older)
        with judged_from(rendered.reads):
            return self._ordered(tree, rendered)

    def _rendered(self, tree: Tree, recorded: RecordedRender, outside: OutsideInputs, *, older: bool) -> Rendered:
        """Render; where another renderer than the recorded one was chosen and fails, say also how to stay with that."""
        try:
            return self.render(tree, replace(self.request(older=older), outside=outside, installed=recorded.installed))
        except AnnealError as error:
            renderer = error.basis.renderer
            if renderer and recorded.renderer not in ("", renderer):
                error.problems = (*error.problems, changed_renderer(self.target.name, recorded.renderer, renderer))
            raise

    def _ordered(self, tree: Tree, rendered: Rendered) -> Prepared:
        refuse_strays(rendered.manifests, self.target)
        admitted = self._admit(rendered.manifests)
        named = {manifest.identity: item.identity for manifest, item in zip(rendered.manifests, admitted, strict=True)}
        rendered = replace(
            rendered,
            unstable={named.get(identity, identity): each for identity, each in rendered.unstable.items()},
            renamed=tuple(named.get(identity, identity) for identity in rendered.renamed),
        )
        automatic, planned_rollout = roll(rendered, admitted, self.actions, self.checks)
        canaries.refuse(planned_rollout.rollout, {item.identity: item for item in admitted}, rendered.where)
        automatic, left_out = _without_unserved(automatic)
        rest, planned_hooks = separate(automatic, planned_rollout.named)
        planned_hooks = resting(planned_hooks, self._resting(rendered, {item.identity for item in admitted}))
        planned_rollout = replace(planned_rollout, rest=sum(item.mode is not Mode.HOOK for item in rest))
        ordered = order(rest, self.own, planned_hooks.first, planned_hooks.items, planned_rollout.named)
        path, sha = self.target.rollout, tree.commit.sha
        without = (f"commit {sha[:12]} has no {path}: it goes without a Rollout",) if path and not rendered.rollout else ()
        prepared = self.last = Prepared(
            commit=tree.commit,
            reads=rendered.reads,
            digest=set_digest(rendered, named),
            stages=(*ordered.stages, *planned_rollout.stages),
            rendered=replace(rendered, where=nowhere, keys=rendered.keys if rendered.rollout else {}),
            planned_hooks=planned_hooks,
            awaits=ordered.awaits,
            notes=(
                *without,
                *rendered.notes,
                *_held_values(rendered, self.target),
                *left_out,
                *planned_rollout.notes,
                *planned_hooks.notes,
                *ordered.notes,
            ),
            planned_rollout=planned_rollout,
        )
        return prepared

    def looked_at(self, name: str) -> bool:
        """Whether what is kept was made from this, too."""
        last = self.last
        return last is not None and any(path == name for path, _ in last.reads.paths)

    def forget(self) -> None:
        """Render anew next time; a run that is under way keeps what it has."""
        self.last = None

    @property
    def size(self) -> int:
        """How many objects are kept for the next run."""
        last = self.last
        return len(last.rendered.manifests) if last else 0

    def request(self, *, older: bool = False) -> RenderRequest:
        """Return what the renderer is asked for, of git."""
        last = self.last
        return request_for(self.target, self.source, last.rendered.files if last else {}, older=older)

    def _admit(self, manifests: tuple[Manifest, ...]) -> tuple[Desired, ...]:
        try:
            return self._admission().admit(manifests)
        except PlanRefused:
            self.discovery.refresh()
        try:
            return self._admission().admit(manifests)
        except PlanRefused as error:
            kinds = dict.fromkeys((manifest.api_version, manifest.identity.kind) for manifest in manifests)
            error.basis = replace(error.basis, unserved=tuple(kind for kind in kinds if self.discovery.find(*kind) is None))
            raise

    def _resting(self, rendered: Rendered, declared: Collection[Identity]) -> Iterator[Desired]:
        """Yield the hooks that had their time; of one that may not be declared any more nothing of ours lives."""
        for manifest in rendered.rests:
            with contextlib.suppress(PlanRefused):
                yield from (item for item in self._admission().admit((manifest,)) if item.identity not in declared)

    def _admission(self) -> Admission:
        known = self.discovery.listable()
        return Admission(self.target, self.applyset, self.state_namespace, self.discovery.find, known)

    def beside(self, reads: Iterable[str]) -> tuple[str, ...]:
        """Return what of a read set is git's and stands neither below the target's path nor is its Rollout: bases, files of values."""
        path, rollout = self.target.path.strip("/"), self.target.rollout
        if not path:
            return ()
        return tuple(
            each for each in reads if not each.startswith(OUTSIDE) and each not in (path, rollout) and not each.startswith(f"{path}/")
        )

    def reads_at(self, sha: str, beside: Sequence[str] = ()) -> str:
        """Return what a pin compares: the digest of the target's path and Rollout at a commit, and of what is `beside` them.

        Empty: the commit is gone or refused.
        """
        paths = (self.target.path, self.target.rollout) if self.target.rollout else (self.target.path,)
        try:
            tree = self.tree(sha)
        except AuthorError:
            return ""
        return ReadSet(tuple((path, "") for path in (*paths, *beside))).on(tree).digest()

    def is_held_by(self, pin: Pin, head: str) -> bool:
        """Whether a head leaves a pin as it is; one that is refused ends none."""
        return head == pin.commit or self.reads_at(head, pin.beside) in ("", pin.away)


def request_for(target: Target, source: CommitSource, known: Files, *, older: bool) -> RenderRequest:
    """Return what a renderer is asked for. `source`: a directory's `shown` is how commands in messages name it.

    Raises ConfigInvalid: the target is a template, of which only instances render.
    """
    refuse_template(target, "renders for its object")
    options = target.renderer
    ours = [each for each in target.namespaces if each != target.namespace]
    namespaces = (target.namespace, *ours) if target.namespace else target.namespaces
    shown = getattr(source, "shown", None)
    called = Called(target.name, namespaces, shown or "", in_git=shown is None)
    weak = target.sandbox == "weak"
    request = RenderRequest(target.path, options.include, options.exclude, target.rollout, known, older, called, options, weak=weak)
    configuration = target.instance.body if target.instance else {}
    return replace(request, post_build=target.post_build, compat=target.compat, configuration=configuration)


def changed_renderer(target: str, recorded: str, now: str) -> Problem:
    """Return the problem where what a path holds chooses another renderer than made the recorded objects."""
    seen = f"{now} makes its objects from now on, and {recorded} made the recorded ones"
    return Problem(f"target {target}", seen, fix=advice("to stay with that: renderer: {type: {yaml}}", recorded))


def held_renderer(target: Target, recorded: str, now: str) -> dict[tuple[str, str, str], str]:
    """Return why a plan must wait whose objects another renderer makes than the recorded ones, where its name isn't configured."""
    if target.renderer.chosen != AUTO or recorded in ("", now):
        return {}
    changed = changed_renderer(target.name, recorded, now)
    return {("render", f"renderer {now}", ""): f"{changed.message}; {changed.fix}"}


def changed_engine(recorded: Collection[str], now: ReadSet) -> Iterator[str]:
    """Yield a note where another engine made what is recorded. `recorded`: what that read."""
    before, after = (next((name for read, name in _ENGINES.items() if read in reads), "") for reads in (recorded, dict(now.paths)))
    if before and after and before != after:
        yield f"jsonnet is evaluated by {after} now, and {before} made the recorded objects: numbers in texts may differ"


def _held_values(rendered: Rendered, target: Target) -> Iterator[str]:
    """Yield a note of each object that every render makes anew, where no rule of the target says so."""
    ignoring = Ignoring.of(target.ignore, (), rendered.unstable)
    for identity in rendered.unstable:
        paths = ignoring.held(identity)
        if paths:
            select = {"kind": identity.kind, "name": identity.name} | ({"namespace": identity.namespace} if identity.namespace else {})
            rule = advice("ignore: {yaml}", [{"select": select, "paths": [*paths]}])
            seen = f"each render makes {', '.join(paths)} anew ({rendered.unstable[identity].why}): a live value stays as it is"
            yield advice("{text}: {text}; to say so for good: {text}", identity, seen, rule)


def _without_unserved(items: Sequence[Desired]) -> tuple[tuple[Desired, ...], tuple[str, ...]]:
    """Leave out what an annotation leaves alone and the server doesn't serve: nothing of it can live. Return the rest, and notes."""
    left = [item for item in items if not item.resource.plural]
    return tuple(item for item in items if item.resource.plural), tuple(f"{item.identity} is left out: {item.reason}" for item in left)
