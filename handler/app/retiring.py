"""The end of a target by its record alone: on which cluster that is, and what ends it there.

Law: the record says where its objects are, nothing else does; what may be deleted is judged as of a target that may use all of that. What a
configured target declares by now, or may declare, isn't deleted.
"""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from functools import partial

from handler.app.connections import Connections, RecordPlace
from handler.app.record_places import TargetRecords
from handler.app.target_runner import TargetRunner
from handler.config.git_settings import Repository, directory_url
from handler.config.instance_target import for_instance
from handler.config.settings import Cluster, Prune, Settings, Target
from handler.engine.planner.members import living
from handler.engine.planner.planner import Planner
from handler.engine.retire import Retire
from handler.model.errors import AccessDenied, AnnealError, OperatorError
from handler.model.instance import Instance
from handler.model.names import Identity
from handler.model.plan import Change
from handler.plan.handover import may_declare
from handler.plan.inventory import TargetMarks
from handler.state.former import RecordName
from handler.state.record import State


def places_of(ways: Connections, name: str, *, given: bool) -> tuple[list[Target], list[str]]:
    """Return a target of this name for each cluster that has its record, and why others can't be read.

    `given`: the command line names the cluster, so that there is but one.
    """
    clusters = [Cluster()] if given else list(dict.fromkeys(target.cluster for target in ways.settings.targets)) or [Cluster()]
    found, unread = [], []
    for cluster in clusters:
        target = Target(name, Repository(url=directory_url(name)), ("*",), cluster=cluster)
        try:
            if ways.store(target).read().uid:
                found.append(target)
        except AnnealError as error:
            unread.append(str(error))
    return found, unread


def retire_of(
    ways: TargetRunner, target: Target, *, prune: bool, kinds: Sequence[str] = (), namespace: str = "", written: Settings | None = None
) -> Retire:
    """Return what retires a target. `kinds`: guarded ones that go, too; `namespace`: only what is there.

    `written`: the configuration without what flags say of the record; None: they say nothing.
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
        partial(claims, ways, written or settings, target),
        partial(_server, ways, target),
        partial(_taker, ways, target),
    )


def claims(
    ways: TargetRunner, written: Settings, retiring: Target, identities: Collection[Identity], *, certain: bool = False
) -> dict[Identity, str]:
    """Return which objects configured targets of this cluster declare at their heads, or may declare and can't be rendered.

    A template itself declares nothing. `certain`: raise OperatorError where that can't be seen: no person decides what stays for ever.
    """
    found: dict[Identity, str] = {}
    here = (written.state_namespace, written.installation) == (ways.settings.state_namespace, ways.settings.installation)
    for other in written.targets:
        mine = [each for each in identities if each not in found and may_declare(other, each)]
        if other.is_template or not mine or (here and other.name == retiring.name) or not is_here(ways, other, retiring):
            continue
        try:
            declared = _declared(ways, written, other, retiring)
            found |= {each: declared[each] for each in mine if each in declared}
        except AnnealError as error:
            first = error.problems[0] if error.problems else error
            if certain:
                seen = f"target {other.name} may declare {mine[0]}, and that can't be seen: {first}"
                raise OperatorError.of(f"target {retiring.name}", seen, fix=f"anneal check {other.name}") from None
            found |= dict.fromkeys(mine, f"target {other.name} may declare it, and that can't be seen: {first}")
    return found


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


def _declared(ways: TargetRunner, written: Settings, other: Target, retiring: Target) -> dict[Identity, str]:
    """Return what a target declares at its head, and what it has recorded, each with the reason to keep it. Raises AnnealError."""
    preparer = ways.preparer(other, ways.discovery(retiring))
    prepared = preparer.prepare(preparer.head().commit)
    heads = [*(item.identity for stage in prepared.stages for item in stage), *prepared.planned_hooks.items]
    place = RecordPlace(written.state_namespace, other.name, written.installation)
    state = ways.store_at(other, place, ways.records).read().state
    late = f"target {other.name} declares it in what it has applied last: `anneal apply {other.name}` before this, and it goes"
    return dict.fromkeys(state.declared if state else (), late) | dict.fromkeys(heads, f"target {other.name} declares it")


def _server(ways: TargetRunner, target: Target) -> str:
    """Return the running server that looks after a target; empty: none does, as far as can be read."""
    found = ways.pulse(target).server(target.name)
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
