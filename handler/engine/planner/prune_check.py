"""Whether live objects may be deleted: asks what a deletion would take with it, and lets `handler.plan.prune` judge. Writes nothing.

Law: a Namespace takes all that is in it, a CRD all its instances; whatever the server lists there counts, ours or not, but for the system's
own, what goes with an owner in it, and what goes before anyway. What may not be read is left out of the facts, and that keeps the holder.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, TypeVar

from handler.cluster.api import Api
from handler.cluster.discovery import Discovery
from handler.cluster.live import metadata
from handler.cluster.parallel import together
from handler.config.settings import Target
from handler.model.errors import AccessDenied, ApiRefused, PlanRefused
from handler.model.names import GroupKind, Identity, Resource, identity_of
from handler.model.plan import Action, Cause, Change
from handler.plan.admission import CRD, NAMESPACE
from handler.plan.dependants import REMADE, Dependant, dependant_of, is_owned_within, owners_of
from handler.plan.inventory import Membership, is_member
from handler.plan.kubernixos_leftovers import Leftovers
from handler.plan.prune import PruneFacts, custom_kinds, judge, protection, questions
from handler.plan.system_objects import comes_with_namespace, is_system_kind

T = TypeVar("T")
_BY_CONTROLLER = frozenset({"endpoints.kubernetes.io/managed-by", "endpoints.kubernetes.io/last-change-trigger-time"})
"""Marks of Endpoints that their controller has made of a Service, which may be gone by now."""
_ENDPOINTS, _SERVICE = GroupKind("", "Endpoints"), GroupKind("", "Service")
_API_SERVICE = GroupKind("apiregistration.k8s.io", "APIService")  # its name is `<version>.<group>`


@dataclass(frozen=True, slots=True)
class PruneCheck:
    """Judges what one target would delete, with what only its cluster knows. `owned`: what it has listed that has owners, by uid."""

    target: Target
    ours: Membership
    api: Api
    discovery: Discovery
    owned: dict[str, Dependant] = field(default_factory=dict)

    def facts(self, candidates: Iterable[dict[str, Any]], gone: frozenset[str], before: frozenset[str] | None = None) -> PruneFacts:
        """Return what Namespaces and CRDs among candidates hold, by fresh discovery, but for uids that are `gone` before.

        `before`: the same of APIServices, where less is certain: until one is gone, a Namespace can't end, and may end with what is unseen.
        """
        namespaces, crds = questions(candidates, self.target)
        if namespaces or crds:
            self.discovery.refresh()
        stale = self.discovery.stale if namespaces else frozenset()
        silent = self._silent(stale, gone if before is None else before)
        lives = {name: self._known(partial(self._content, name, gone, stale)) for name in namespaces if not silent}
        content = {name: None if found is None else [str(identity_of(live)) for live in found] for name, found in lives.items()}
        counted = {crd.name: self._known(partial(self._instances, crd, gone)) for crd in crds}
        return PruneFacts(
            {name: found for name, found in content.items() if found is not None},
            {name: found for name, found in counted.items() if found is not None},
            silent,
        )

    def inside(self, holders: Iterable[Change]) -> list[Dependant]:
        """LIST what goes with Namespaces and CRDs that are made anew, as what these own. Raises PlanRefused: it can't be listed."""
        holders = [change for change in holders if change.removes and change.identity.group_kind in (NAMESPACE, CRD)]
        if holders:
            self.discovery.refresh()
        return [each for change in holders for each in self._inside(change)]

    def _inside(self, change: Change) -> Iterator[Dependant]:
        identity, none = change.identity, frozenset[str]()
        if identity.group_kind == CRD:
            served = custom_kinds(self.discovery.listable(), identity)
            found = self._known(lambda: [live for kind in served for live in metadata(self.api, kind, "")]) if served else None
        else:
            found = self._known(partial(self._content, identity.name, none, none))
        if found is None:
            raise PlanRefused.of(str(identity), "would be made anew, and what it holds can't be listed", fix="take that change back")
        for live in found:
            one, kept = identity_of(live), protection(live, self.target)
            ours = is_member(live, one, self.ours)
            yield Dependant(one, str(live["metadata"]["uid"]), (change.uid,), ours, kept, Cause.CONTENT)

    def judged(self, live: dict[str, Any], desired: Collection[Identity], gone: frozenset[str] = frozenset()) -> Change:
        """Judge one candidate by what it would take with it now, not counting the uids that go anyway; an APIService has to be gone."""
        return judge(live, self.target, desired, self.facts([live], gone, frozenset()))

    def judged_again(
        self, live: dict[str, Any], desired: Collection[Identity], leftovers: Leftovers | None = None, gone: frozenset[str] = frozenset()
    ) -> Change:
        """Judge one candidate from what is live right before its deletion: its content is asked anew, its marks too.

        `gone`: the uids of what went before, and may be there still.
        """
        if not is_member(live, identity_of(live), self.ours) and (leftovers is None or leftovers.kept(live) != ""):
            change = judge(live, self.target, desired, PruneFacts())
            return replace(change, action=Action.SKIP, reason="is no longer ours")
        return self.judged(live, desired, gone)

    def _known(self, ask: Callable[[], T]) -> T | None:
        """Ask; a kind that vanishes meanwhile (its CRD is going) is looked for anew, a kind that may not be read means: not known."""
        for pause in (0.2, 0.5, 1.0, 0.0):
            try:
                return ask()
            except AccessDenied:
                return None
            except ApiRefused as error:
                if error.status != 404:
                    raise
            time.sleep(pause)
            self.discovery.refresh()
        return None

    def _silent(self, stale: frozenset[str], gone: frozenset[str]) -> frozenset[str]:
        """Return the stale groups that stay: by an APIService, or by a CRD, which a dead APIService only hides."""
        kinds = [self.discovery.preferred(kind) for kind in (_API_SERVICE, CRD)] if stale else []
        try:
            staying = [live for kind in kinds if kind for live in metadata(self.api, kind) if live["metadata"]["uid"] not in gone]
        except AccessDenied:
            return stale
        return stale & {live["metadata"]["name"].partition(".")[2] for live in staying} if all(kinds) else stale

    def _content(self, namespace: str, gone: frozenset[str], leaving: frozenset[str]) -> list[dict[str, Any]] | None:
        """Return what is in a Namespace, but for groups that are leaving; None: another doesn't answer any more."""
        index = self.discovery.index()
        if index.served.stale - leaving:
            return None
        known = [kind for kind in index.listable() if kind.namespaced and kind.group not in leaving]
        kinds = [kind for kind in known if not is_system_kind(kind.group_kind)]
        lists = together([partial(self._listed, kind, namespace) for kind in kinds])
        found = [live for lives in lists for live in lives]
        for live in found:
            if each := dependant_of(live, is_member=is_member(live, identity_of(live), self.ours), kept=protection(live, self.target)):
                self.owned[each.uid] = each
        return _roots([live for live in found if not comes_with_namespace(live, identity_of(live))], gone)

    def _listed(self, kind: Resource, namespace: str) -> list[dict[str, Any]]:
        return list(metadata(self.api, kind, namespace))

    def _instances(self, crd: Identity, gone: frozenset[str]) -> int | None:
        """Count the instances of a CRD that would be deleted with it; None while the server doesn't say how it serves them."""
        served = custom_kinds(self.discovery.listable(), crd)
        found = [live for kind in served for live in metadata(self.api, kind, "")]
        return sum(live["metadata"].get("uid") not in gone for live in found) if served else None


def _roots(found: Sequence[dict[str, Any]], gone: Collection[str]) -> list[dict[str, Any]]:
    """Return what of a Namespace goes with nothing else of it, nor with what went before (`gone`), nor is made again."""
    there = {identity_of(live) for live in found}
    owned = {str(live["metadata"]["uid"]): owners_of(live) for live in found}  # an object that is served as two kinds has one
    made = {str(live["metadata"]["uid"]) for live in found if _is_made_again(live, there)}
    going = {*owned, *gone}
    roots = {uid for uid, owners in owned.items() if uid not in made and not (owners and going.issuperset(owners))}
    reached = {*roots, *made, *gone}
    # What none of these owns, through whatever owns that in turn, owns nothing but each other, and counts, too.
    while more := {uid for uid, owners in owned.items() if uid not in reached and reached.issuperset(owners)}:
        reached |= more
    counted = (owned.keys() - reached | roots) - {*gone}
    return [live for live in found if live["metadata"]["uid"] in counted]


def _is_made_again(live: dict[str, Any], there: Collection[Identity]) -> bool:
    """Whether a controller makes an object of what is `there`, or it goes already."""
    one = identity_of(live)
    service = Identity(_SERVICE.group, _SERVICE.kind, one.namespace, one.name)
    if one.group_kind == _ENDPOINTS and (service in there or not _BY_CONTROLLER.isdisjoint(_keys(live))):
        return True
    is_going = live["metadata"].get("deletionTimestamp") is not None
    return bool(owners_of(live)) and (is_going or (one.group_kind in REMADE and is_owned_within(live)))


def _keys(live: dict[str, Any]) -> set[str]:
    metadata = live["metadata"]
    return {*(metadata.get("labels") or {}), *(metadata.get("annotations") or {})}
