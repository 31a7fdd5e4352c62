"""Looks at claims and volumes that the changes of a plan take along by a policy; only where there are such changes. Writes nothing.

    a StatefulSet goes, or is scaled down     one LIST of the claims of its namespace; also by an autoscaler, or as a new one
    a claim goes, or a VolumeSnapshot         a GET of the volume, or content, that is bound to it

Law: claims go only where `prune.kinds` names claims and none of them is protected; else their StatefulSet lets all of them go first. What
can't be read keeps what may take it along. A volume that can't be read is taken to go.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from handler.cluster.api import Api
from handler.cluster.live import Listing, pages, probe
from handler.engine.planner.prune_check import PruneCheck
from handler.model.advice import advice
from handler.model.errors import AccessDenied
from handler.model.names import Identity, Resource, identity_of
from handler.model.plan import Action, Cause, Change, Gone
from handler.plan import retention
from handler.plan.admission import NAMESPACE, Desired, listed
from handler.plan.dependants import Dependant, dependant_of
from handler.plan.inventory import is_member
from handler.plan.prune import kept_by_mark, protection

CLAIMS = Resource(retention.CLAIM.group, "v1", retention.CLAIM.kind, "persistentvolumeclaims", namespaced=True)
Object = dict[str, Any]


@dataclass(frozen=True, slots=True)
class RetentionFindings:
    """What policies make of a plan. `changes`: in place of the same objects'; `kept`: what may not go, with why; `claims`: their claims.

    `unread`: what is kept since its claims can't be listed; `listed`: what of the claims has owners.
    """

    changes: dict[Identity, Change] = field(default_factory=dict)
    kept: dict[Identity, str] = field(default_factory=dict)
    claims: dict[Identity, Object] = field(default_factory=dict)
    unread: set[Identity] = field(default_factory=set)
    listed: list[Dependant] = field(default_factory=list)


def claims_of(api: Api, namespace: str) -> dict[Identity, Object]:
    """Return the claims of a namespace. Raises AccessDenied."""
    return {identity_of(live): live for page in pages(api, Listing(CLAIMS, namespace)) for live in page}


def claims_along(changes: Sequence[Change], check: PruneCheck, declared: Mapping[Identity, Desired]) -> RetentionFindings:
    """Return the changes of StatefulSets, and of what scales them, with the claims that go. `declared`: by git, which keeps a claim."""
    found, opened = RetentionFindings(), listed(retention.CLAIM, check.target.prune.kinds)
    spaces = {change.identity for change in changes if change.action is Action.PRUNE}
    sets = [change for change in changes if change.identity.group_kind == retention.STATEFUL_SET and (change.removes or change.takes)]
    scaling = [(change, declared[one].manifest.body()) for change in changes if (one := retention.scales(change)) in declared and one]
    scaling = [(change, body) for change, body in scaling if retention.deletes_claims(body, "whenScaled")]
    for namespace in sorted({change.identity.namespace for change in (*sets, *(change for change, _ in scaling))}):
        here = [change for change in sets if change.identity.namespace == namespace]
        try:
            claims = claims_of(check.api, namespace)
        except AccessDenied as denied:
            why = denied.problems[0].message
            seen = advice("its claims can't be listed, and may go with it: {text}; the right: anneal rbac {}", why, check.target.name)
            unread = {change.identity: seen for change in here if change.removes}
            found.kept.update(unread)
            found.unread.update(unread)
            continue
        for change, body in (each for each in scaling if each[0].identity.namespace == namespace):
            known = {gone.identity for each in here for gone in each.takes}
            takes = _with_pods(check, retention.scaled_by(change, body, claims.keys() - known), str(body["metadata"]["name"]))
            here += [replace(change, takes=takes)] if takes else []
        ours = {one: is_member(live, one, check.ours) for one, live in claims.items()}
        owned = (dependant_of(live, is_member=ours[one], kept=protection(live, check.target)) for one, live in claims.items())
        found.listed.extend(filter(None, owned))
        space = Identity(NAMESPACE.group, NAMESPACE.kind, "", namespace)
        for change in here:
            named, prunes = {each.identity for each in change.takes}, change.action is Action.PRUNE
            mine = {one: live for one, live in claims.items() if one in named or (change.removes and retention.refers(live, change.uid))}
            stay = prunes and any(not opened or one in declared or protection(live, check.target) for one, live in mine.items())
            going = {one: live for one, live in mine.items() if not stay and (prunes or one in named)}
            found.claims.update(mine)
            takes = tuple(_gone(one, live, change.identity, check) for one, live in going.items())
            found.changes[change.identity] = replace(change, takes=takes)
            if stay and space in spaces:
                found.kept[space] = f"still holds {min(mine)}"
            for one in () if prunes else going:
                if mark := kept_by_mark(mine[one]["metadata"]) or ("declared by git" if one in declared else ""):
                    found.kept[change.identity] = f"{one} would go once it is written, but it is {mark}"
    return found


def _with_pods(check: PruneCheck, takes: tuple[Gone, ...], name: str) -> tuple[Gone, ...]:
    """Return the claims whose pods are there, which alone are scaled away; all of them where these can't be read."""
    pods = {gone.identity: retention.pod_of(gone.identity, name) for gone in takes}
    live = _read(check, pods.values()) if takes else {}
    return tuple(gone for gone in takes if live is None or pods[gone.identity] in live)


def _gone(identity: Identity, live: Object, by: Identity, check: PruneCheck) -> Gone:
    uid = str(live["metadata"]["uid"])
    return Gone(identity, uid, Cause.VOLUME, by, is_member=is_member(live, identity, check.ours))


# --- volumes
def volumes_along(changes: Sequence[Change], check: PruneCheck, known: Mapping[Identity, Object]) -> dict[Identity, Change]:
    """Return the changes with the volumes that go with claims, in place of the same objects'. `known`: bodies of what goes."""
    lost = {gone.identity: change.identity for change in changes for gone in change.gone if gone.identity.group_kind in retention.BACKED}
    bodies = {one: known[one] for one in lost if one in known}
    bodies |= _read(check, lost.keys() - bodies.keys()) or {}
    bound = {backing: lost[one] for one, live in bodies.items() if (backing := retention.backing(live)) is not None}
    volumes, unread = _read(check, bound), {"metadata": {"uid": ""}}
    written = {change.identity: change.manifest.body() for change in changes if change.manifest}
    policies = {one: (live, written.get(one, live)) for one, live in (volumes or {}).items()}  # as it is, and as git has it
    going = bound if volumes is None else [one for one in bound if any(map(retention.goes_along, policies.get(one, ())))]
    before, found = {change.identity: change for change in changes if change.gone}, dict[Identity, Change]()
    for one in going:
        change = found.get(bound[one], before[bound[one]])
        if one not in {each.identity for each in change.takes}:
            along = _gone(one, (volumes or {}).get(one, unread), change.identity, check)
            found[change.identity] = replace(change, takes=(*change.takes, along))
    return found


def _read(check: PruneCheck, wanted: Iterable[Identity]) -> dict[Identity, Object] | None:
    """Return those of the objects that are there; None: they can't be read."""
    resources = [(check.discovery.preferred(one.group_kind), one) for one in wanted]
    try:
        return probe(check.api, [(resource, one.namespace, one.name) for resource, one in resources if resource is not None])
    except AccessDenied:
        return None
