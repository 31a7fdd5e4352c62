"""Finds what the original Kubernixos has left, and puts it among the deletions of a plan. Writes nothing.

    every kind with the verbs, metadata only, by the label      a kind that is gone meanwhile is passed over; any other failure ends it
    declared, a target's, another owner's, copied?              `handler.plan.kubernixos_leftovers`
    a sibling's?  protected?  what would go with it?            as every deletion of ours is judged

Law: on doubt nothing is found: a group that doesn't answer, or a kind that may not be read, raises.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import replace
from typing import Any

from handler.cluster.live import members
from handler.config.settings import Target
from handler.engine.planner.losses import PlanParts, with_claims
from handler.engine.planner.planner import Planned, Planner
from handler.model.errors import ClusterUnavailable
from handler.model.names import KUBERNIXOS, Identity, identity_of, uid_and_version
from handler.model.plan import Action, Change
from handler.model.render import Rendered
from handler.plan.dependants import dependant_of, endpoints_of
from handler.plan.kubernixos_leftovers import Leftovers, is_inside, is_looked_through
from handler.plan.prune import judge, leaving, left_to

Object = dict[str, Any]


def with_leftovers(planner: Planner, planned: Planned, rendered: Rendered) -> Planned:
    """Return a plan that also deletes, or says what keeps, the labelled objects that it doesn't declare.

    Raises ClusterUnavailable, AccessDenied: not all of them are known.
    """
    rule = Leftovers(planner.target, planner.applyset, rendered.checksum)
    kept: list[Change] = []
    going: dict[Identity, Object] = {}
    unwanted = list(_unwanted(planner, planned, rule, _declared(rendered, planner.target)))
    for live in unwanted:
        why = rule.kept(live)
        if why:
            kept.append(_skipped(live, why))
        else:
            going[identity_of(live)] = live
    claims = planned.decision.handover.claims(going)
    kept += [left_to(going.pop(identity), *claim) for identity, claim in claims.items()]
    changes = _judged(planner, planned, list(going.values()))
    comparison = planned.decision.comparison
    owned = [*comparison.dependants.values(), *filter(None, map(dependant_of, unwanted))]
    declared = {change.identity: change.uid for stage in planned.plan.stages for change in stage if change.uid}
    owned += [each for change in changes for each in endpoints_of(change, declared, planned.desired)]
    parts = with_claims(PlanParts({}, {}, (*changes, *kept), ()), planner.prune_judge, comparison, owned)
    found, notes = (*planned.plan.prunes, *parts.prunes), (*planned.plan.notes, *parts.notes)
    return replace(planned, plan=replace(planned.plan, prunes=found, notes=notes), bodies=planned.bodies | going, leftovers=rule)


def _declared(rendered: Rendered, target: Target) -> set[Identity]:
    """Return all that is declared, also what a plan leaves out because its kind isn't served so: it may be in another version."""
    found = {manifest.identity for manifest in (*rendered.manifests, *rendered.rests)}
    return found | {replace(each, namespace=each.namespace or target.namespace) for each in found}


def _unwanted(planner: Planner, planned: Planned, rule: Leftovers, declared: Collection[Identity]) -> Iterable[Object]:
    """Return each labelled object once that the plan neither declares nor has among its members, whatever group serves it."""
    planner.discovery.refresh()
    kinds = [kind for kind in planner.discovery.listable() if is_looked_through(kind, planner.target)]
    if stale := planner.discovery.stale:
        seen = f"the API group {min(stale)} doesn't answer, so what it holds can't be listed"
        raise ClusterUnavailable.of("leftovers", seen, fix=f"repair the APIService of {min(stale)}; nothing is pruned on doubt")
    scopes = None if "*" in planner.target.namespaces else planner.target.namespaces
    known = _declared_uids(planned)
    found: dict[str, Object] = {}
    for live in members(planner.api, kinds, KUBERNIXOS, scopes, partial=True, vanished=set()):
        identity, uid = identity_of(live), str(live["metadata"]["uid"])
        if identity in planned.desired or identity in declared:
            known.add(uid)
        elif is_inside(identity, planner.target) and rule.kept(live) is not None and (identity.group == "" or uid not in found):
            found[uid] = live  # of an object that several groups serve, such as OpenShift's Projects, the Namespace has the guards
    return [live for uid, live in found.items() if uid not in known]


def _declared_uids(planned: Planned) -> set[str]:
    """Return the uids of all that is declared and lives, ours or not."""
    comparison = planned.decision.comparison
    noted = [live["metadata"]["uid"] for part in (comparison.hooks, comparison.left) for live in part.values()]
    return {change.uid for stage in planned.plan.stages for change in stage if change.uid} | set(map(str, noted))


def lives(planned: Planned) -> bool:
    """Whether anything that is declared lives, ours or not."""
    return bool(_declared_uids(planned))


def _judged(planner: Planner, planned: Planned, going: Collection[Object]) -> list[Change]:
    target = planner.target
    gone = leaving(going, target) | {change.uid for change in planned.plan.prunes if change.writes}
    facts = planner.prune_judge.facts(going, gone)
    return [judge(live, target, planned.desired, facts) for live in going]


def _skipped(live: Object, why: str) -> Change:
    return Change(Action.SKIP, identity_of(live), *uid_and_version(live), why)
