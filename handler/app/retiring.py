"""The end of a target by its record alone: on which cluster that is, and what ends it there.

Law: the record says where its objects are, nothing else does; what may be deleted is judged as of a target that may use all of that. What a
configured target declares by now isn't deleted; while it can't be seen what one declares, nothing is deleted or let go (`EndUnsure`).
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from handler.app.connections import Connections, RecordPlace
from handler.app.instances.listed_objects import KindNotServed
from handler.app.instances.recorded_instances import records_of
from handler.app.instances.registry import Instances
from handler.app.record_places import TargetRecords
from handler.app.record_summaries import listed
from handler.app.target_runner import TargetRunner
from handler.config.git_settings import Repository, directory_url
from handler.config.instance_target import for_instance
from handler.config.settings import Cluster, Prune, Settings, Target
from handler.engine.planner.members import living
from handler.engine.planner.planner import Planner
from handler.engine.retire import Retire
from handler.engine.run.errors import EndUnsure
from handler.model.advice import advice
from handler.model.errors import AccessDenied, AnnealError
from handler.model.instance import Instance, is_instance, template_of
from handler.model.names import Identity
from handler.model.plan import Change
from handler.plan.handover import may_declare
from handler.plan.inventory import TargetMarks
from handler.state.heartbeat import heartbeat_name
from handler.state.record import State
from handler.state.record_values import RecordName


def places_of(ways: Connections, name: str, *, given: bool) -> tuple[list[Target], list[str]]:
    """Return a target of this name for each cluster that has its record, or one of an instance of it, and why others can't be read.

    `given`: the command line names the cluster, so that there is but one.
    """
    clusters = [Cluster()] if given else list(dict.fromkeys(target.cluster for target in ways.settings.targets)) or [Cluster()]
    found, unread = [], []
    for cluster in clusters:
        target = Target(name, Repository(url=directory_url(name)), ("*",), cluster=cluster)
        try:
            if ways.store(target).read().uid or instances_of(ways, target):
                found.append(target)
        except AnnealError as error:
            unread.append(str(error))
    return found, unread


def instances_of(ways: Connections, target: Target) -> list[Target]:
    """Return a target for each record on this one's cluster that is of an instance of it, by their names. Raises AnnealError."""
    if is_instance(target.name):
        return []
    found = records_of(listed(ways.records(target), ways.settings), ways.settings, target.name)
    return [replace(target, name=name) for name in sorted(found)]


def retire_of(
    ways: TargetRunner,
    target: Target,
    *,
    prune: bool,
    kinds: Sequence[str] = (),
    namespace: str = "",
    written: Settings | None = None,
    claimed: DeclaredClaims | None = None,
) -> Retire:
    """Return what retires a target. `kinds`: guarded ones that go, too; `namespace`: only what is there.

    `written`: the configuration without what flags say of the record; None: they say nothing. `claimed`: what others have been asked
    already; None: nothing.
    """
    settings = ways.settings
    return Retire(
        target.name,
        settings.installation,
        ways.store(target),
        ways.lock(target),
        partial(_planner, ways, target, tuple(kinds)),
        ways.objects(target).cluster_uid,
        partial(_has_taken, ways, target),
        settings.lease_duration,
        prune,
        namespace,
        partial((claimed or DeclaredClaims(ways, written or settings)).of, target),
        partial(_server, ways, target),
        partial(_taker, ways, target),
    )


def certain_claims(ways: TargetRunner, written: Settings, retiring: Target, identities: Collection[Identity]) -> dict[Identity, str]:
    """Return which objects configured targets of this cluster declare at their heads. Raises EndUnsure: one can't be rendered.

    A template itself declares nothing, and what its instances declare isn't asked: those of one look after themselves.
    """
    alone = replace(written, targets=tuple(target for target in written.targets if not target.is_template))
    return DeclaredClaims(ways, alone).of(retiring, identities)


@dataclass(slots=True)
class DeclaredClaims:
    """What configured targets, and the instances of templates, claim of what retires. `written`: see `retire_of`.

    Each is asked once, until `forget`. What can't be rendered may declare all that it is allowed to. Safe to share between threads.
    """

    ways: TargetRunner
    written: Settings
    _declared: dict[str, dict[Identity, str] | AnnealError] = field(default_factory=dict)
    _instances: dict[str, Sequence[Target]] = field(default_factory=dict)
    _asking: threading.RLock = field(default_factory=threading.RLock)

    def forget(self) -> None:
        """Ask all of them anew from now on."""
        self._declared.clear()
        self._instances.clear()

    def of(self, retiring: Target, identities: Collection[Identity]) -> dict[Identity, str]:
        """Return which of these objects others on the cluster claim, each with the reason to keep it.

        Raises EndUnsure: one may claim some of them, and can't be asked.
        """
        with self._asking:
            return self._of(retiring, identities)

    def _of(self, retiring: Target, identities: Collection[Identity]) -> dict[Identity, str]:
        found: dict[Identity, str] = {}
        known, written = self.ways.settings, self.written
        here = (written.state_namespace, written.installation) == (known.state_namespace, known.installation)
        for configured in written.targets:
            mine = [each for each in identities if each not in found and may_declare(configured, each)]
            if not mine or not is_here(self.ways, configured, retiring):
                continue
            try:
                others = self._each(configured)
            except AnnealError as error:
                raise _unseen(f"an instance of {configured.name}", configured, retiring, mine, error) from None
            for other in others:
                if not (here and other.name == retiring.name):
                    found |= self._of_one(other, retiring, [each for each in mine if each not in found])
        return found

    def _each(self, configured: Target) -> Sequence[Target]:
        """Return a target itself, of a template its instances. Raises AnnealError: they aren't known."""
        if not configured.is_template:
            return [configured]
        if configured.name not in self._instances:
            try:
                self._instances[configured.name] = list(Instances.of(self.ways).look(configured).values())
            except KindNotServed:  # without their kind there are no objects
                self._instances[configured.name] = []
        return self._instances[configured.name]

    def _of_one(self, other: Target, retiring: Target, identities: Collection[Identity]) -> dict[Identity, str]:
        mine = [each for each in identities if may_declare(other, each)]
        if not mine:
            return {}
        if other.name not in self._declared:
            try:
                self._declared[other.name] = _declared(self.ways, self.written, other, retiring)
            except AnnealError as error:
                self._declared[other.name] = error
        declared = self._declared[other.name]
        if isinstance(declared, AnnealError):
            raise _unseen(f"target {other.name}", other, retiring, mine, declared)
        return {each: declared[each] for each in mine if each in declared}


def exclusive_notes(ways: TargetRunner, written: Settings, retiring: Target, staying: Sequence[Change]) -> Iterator[str]:
    """Yield which configured targets of this cluster delete in time what stays in their exclusive namespaces, undeclared by them."""
    spaces = {change.identity.namespace for change in staying}
    for other in written.targets:
        shared = sorted(spaces & set(other.exclusive))
        if shared and is_here(ways, other, retiring):
            seen = f"target {other.name} has {', '.join(shared)} as `exclusive`: what stays there and it doesn't declare is an orphan"
            yield f"{seen}, which it deletes {other.orphan_grace:.0f} s (`orphanGrace`) after it has noted it"


def is_here(ways: Connections, other: Target, retiring: Target) -> bool:
    """Whether a configured target is on a record's cluster, or may be: where it can't be asked. Flags say where the record alone is."""
    try:
        return ways.elsewhere(other.cluster, (other,), "", "").cluster_uid(other) == ways.cluster_uid(retiring)
    except AnnealError:
        return True


def _unseen(named: str, other: Target, retiring: Target, mine: Sequence[Identity], error: AnnealError) -> EndUnsure:
    more = f" and {len(mine) - 1} more" if len(mine) > 1 else ""
    seen = f"{named} may declare {mine[0]}{more}, and that can't be seen: {error.problems[0] if error.problems else error}"
    return EndUnsure.of(f"target {retiring.name}", seen, fix=advice("`anneal check {}` says what it needs", other.name))


def _declared(ways: TargetRunner, written: Settings, other: Target, retiring: Target) -> dict[Identity, str]:
    """Return what a target declares at its head, and what it has recorded, each with the reason to keep it. Raises AnnealError."""
    preparer = ways.preparer(other, ways.discovery(retiring))
    prepared = preparer.prepare(preparer.head().commit)
    heads = [*(item.identity for stage in prepared.stages for item in stage), *prepared.planned_hooks.items]
    place = RecordPlace(written.state_namespace, other.name, written.installation)
    state = ways.store_at(other, place, ways.records).read().state
    late = advice(
        "target {text} declares it in what it has applied last: `anneal apply {}` before this, and it goes", other.name, other.name
    )
    return dict.fromkeys(state.declared if state else (), late) | dict.fromkeys(heads, f"target {other.name} declares it")


def _server(ways: TargetRunner, target: Target) -> str:
    """Return the running server that looks after a target, or the gone template that it is of; empty: none does. Raises EndUnsure."""
    name = target.name if ways.settings.target(template_of(target.name)) else template_of(target.name)
    pulse = ways.pulse(target)
    if not pulse.readable:
        lease = f"Lease/{ways.settings.state_namespace}/{heartbeat_name(ways.settings.installation)}"
        raise EndUnsure.of(
            f"target {target.name}", f"whether a server looks after it can't be seen: {lease} may not be read", fix=f"grant get on {lease}"
        )
    found = pulse.server(name)
    return found.name if found else ""


def _taker(ways: Connections, target: Target) -> str:
    """Return the target whose record says that it takes this one over, and waits for that; empty: none does, as far as can be read."""
    records = TargetRecords(ways, target)
    states = (records.at(place).store.read().state for place in records.takers())
    with contextlib.suppress(AccessDenied):
        space = records.namespace
        return next((each.target for each in states if each and each.former and each.former.is_same(target.name, space)), "")
    return ""


def _has_taken(ways: Connections, target: Target, former: RecordName) -> bool:
    """Whether the record that a target takes over says so, or is gone."""
    records = TargetRecords(ways, target)
    old = records.at(former)
    old.stored = old.store.read()
    return old.is_claimed_by(target.name, records.namespace)


def _planner(ways: Connections, target: Target, kinds: tuple[str, ...], state: State) -> Planner:
    """Return what sees and judges the members of a record: in those of its namespaces that live, and of any cluster-scoped kind."""
    space, api = ways.settings.state_namespace, ways.api(target)
    rules = Prune(kinds=(*target.prune.kinds, *kinds), allow_empty=True)
    alone = replace(target, namespaces=living(api, state.namespaces), cluster_scoped=("*",), prune=rules)
    known = state.instance
    alone = for_instance(alone, Instance(known.identity, known.uid, {})) if known else alone
    return Planner(alone, TargetMarks.of(target.name, space).applyset, api, ways.discovery(target))
