"""`reconcile`: expected objects and live ones -> what is missing is created, what differs updated, what is too much deleted.

Law: only what an apply would change is written. Deleted is only what lies in the named namespace, carries the selected labels, belongs to
no owner and isn't protected; nothing while a LIST or a write has failed.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import threading
import time
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from handler.cluster.live import Object
from handler.cluster.parallel import parallel
from handler.library.delete_selector import DeleteSelector
from handler.library.expected_objects import ExpectedObject, expected_of, kinds_made, named_kind, placed_wrong
from handler.library.operator_client import ObjectClient, ObjectLister
from handler.model.advice import advice
from handler.model.errors import AnnealError, ApiRefused, ClusterUnavailable, Moved, Problem
from handler.model.names import FIELD_MANAGER, GroupKind, Identity, Resource, identity_of
from handler.model.plan import FieldChange
from handler.plan.diff import field_changes, meaningful
from handler.plan.managed_fields import is_same, our_entry
from handler.plan.order import sort_key
from handler.plan.prune import GUARDED, kept_by_itself

_TRIES = 3  # of one write that meets a change
_REMEMBERED = 50_000  # verdicts
_ESTABLISHED = (
    "kubectl get crd -o 'custom-columns=NAME:.metadata.name,ESTABLISHED:.status.conditions[?(@.type==\"Established\")].status'"
    " | grep {} shows whether it is established"
)
_LOOK_AGAIN = 0.2  # seconds between two discoveries of a new kind
_guard = threading.Lock()


@dataclass(frozen=True, slots=True)
class UpdatedObject:
    """An object that was updated. `fields`: what differed, masked; none: only whose fields they are."""

    identity: Identity
    fields: tuple[FieldChange, ...]


@dataclass(frozen=True, slots=True)
class Reconciled:
    """What one call did, each sorted."""

    created: tuple[Identity, ...] = ()
    updated: tuple[UpdatedObject, ...] = ()
    deleted: tuple[Identity, ...] = ()
    unchanged: tuple[Identity, ...] = ()

    @property
    def changed(self) -> bool:
        """Whether anything was written."""
        return bool(self.created or self.updated or self.deleted)


class ReconcileFailed(AnnealError):
    """All that went wrong in one call, each problem with its object. `done`: what was done all the same."""

    def __init__(self, *problems: Problem, done: Reconciled = Reconciled()) -> None:
        """Keep what was done."""
        super().__init__(*problems)
        self.done = done


def reconcile(
    client: ObjectClient,
    objects: Iterable[Any],
    delete_from_namespace: str | None = None,
    delete_selector: Any = None,
    kinds: Collection[str] = (),
    lister: ObjectLister | None = None,
    *,
    field_manager: str = "anneal-library",
    timeout: float = 60.0,
) -> Reconciled:
    """Make live objects as expected, and return what was done.

    Args:
        client: the cluster.
        objects: dicts, models of the `kubernetes` package, lists of them, nested. They aren't changed.
        delete_from_namespace: where objects that aren't expected are deleted; None: nowhere.
        delete_selector: which ones: `app=shop`, `{"app": "shop"}` or a LabelSelector, dict or model; None: none.
        kinds: kinds that are deleted though none of them is expected: `apps/v1/Deployment` or `Deployment.apps`.
        lister: what is known of live objects without a request; None: one LIST a kind and namespace.
        field_manager: the name of the operator, constant for life: what it declared once and doesn't any more is removed.
        timeout: seconds to wait for the kind of a new CustomResourceDefinition.

    Raises:
        ReconcileFailed: something couldn't be read or written; nothing was deleted then.
        SelectorRefused: the selector can't be read, or also selects what has no labels.

    """
    if not field_manager or field_manager == FIELD_MANAGER:
        fix = "give the operator's own name: field_manager='shop-operator'"
        raise ReconcileFailed(Problem("field_manager", f"{field_manager!r} isn't an operator's", fix=fix))
    selector = None if delete_selector is None else DeleteSelector.of(delete_selector)
    call = _Reconciliation(client, lister, field_manager, time.monotonic() + timeout)
    expected = expected_of(client, objects, call.problems)
    opted, made = [kinds] if isinstance(kinds, str) else kinds, kinds_made(item.body for item in expected)
    named = [found for kind in opted if (found := call.attempt(f"kinds: {kind}", partial(named_kind, client, kind, made)))]
    call.end_if_failed()
    call.read(expected)
    call.write(expected)
    call.end_if_failed()
    if delete_from_namespace and selector:
        call.delete(expected, named, delete_from_namespace, selector)
        call.end_if_failed()
    return call.done()


class _Reconciliation:
    """One call."""

    def __init__(self, client: ObjectClient, lister: ObjectLister | None, manager: str, end: float) -> None:
        self.problems: list[Problem] = []
        self._client, self._lister, self._manager, self._end = client, lister, manager, end
        self._listed: dict[tuple[Resource, str], dict[Identity, Object]] = {}
        self._created: list[Identity] = []
        self._updated: list[UpdatedObject] = []
        self._deleted: list[Identity] = []
        self._unchanged: list[Identity] = []
        self._uids: set[str] = set()
        """Of what is expected: one object may be read as two kinds, as an Event is."""

    def done(self) -> Reconciled:
        updated = sorted(self._updated, key=lambda each: each.identity)
        return Reconciled(tuple(sorted(self._created)), tuple(updated), tuple(sorted(self._deleted)), tuple(sorted(self._unchanged)))

    def end_if_failed(self) -> None:
        if self.problems:
            raise ReconcileFailed(*self.problems, done=self.done())

    def attempt(self, subject: str, task: Callable[[], Any]) -> Any:
        """Return what a task returns; None when it fails, which is noted."""
        try:
            return task()
        except AnnealError as error:
            self._note(subject, error)
            return None

    def _note(self, subject: str, error: AnnealError) -> None:
        if isinstance(error, ApiRefused) and error.status == 404:
            self._client.refresh()  # its kind may be served otherwise since
        for each in error.problems:
            message = each.message if each.subject == subject else f"{each.subject}: {each.message}"
            self.problems.append(Problem(subject, message, each.place, each.fix))

    def _all(self, tasks: Sequence[tuple[str, Callable[[], None]]]) -> None:
        for (subject, _), result in zip(tasks, parallel([task for _, task in tasks]), strict=True):
            if isinstance(result, AnnealError):
                self._note(subject, result)

    # --- reads
    def read(self, expected: Iterable[ExpectedObject]) -> None:
        """LIST what is expected, where no lister knows it."""
        places = {(item.resource, item.identity.namespace) for item in expected if item.resource}
        if self._lister is None:
            self._all([(_place(*place), partial(self._list, *place)) for place in places])

    def _list(self, resource: Resource, namespace: str) -> None:
        listed = self._client.list(resource, namespace)
        self._listed[resource, namespace] = {identity_of(live): live for live in listed}

    def _items(self, resource: Resource, namespace: str) -> list[Object]:
        if self._lister is not None:
            return self._lister.items(resource, namespace)
        if (resource, namespace) not in self._listed:
            self._list(resource, namespace)
        return list(self._listed[resource, namespace].values())

    def _live(self, resource: Resource, identity: Identity) -> Object | None:
        if self._lister is not None:
            return self._lister.get(resource, identity.namespace, identity.name)
        return self._listed[resource, identity.namespace].get(identity)

    # --- writes
    def write(self, expected: Iterable[ExpectedObject]) -> None:
        """Write what differs, kind after kind in the order of an apply."""
        ordered = sorted(expected, key=lambda item: sort_key(item.identity))
        for _, stage in itertools.groupby(ordered, key=lambda item: sort_key(item.identity)[0]):
            waiting = [item for item in stage if not self._stands(item)]
            self._all([(str(item.identity), partial(self._put, item)) for item in waiting])

    def _stands(self, item: ExpectedObject) -> bool:
        """Whether an object is known to be as expected, or isn't to be written since its kind can't be read."""
        if item.resource is None:
            return False
        if self._lister is None and (item.resource, item.identity.namespace) not in self._listed:
            return True
        try:
            live = self._live(item.resource, item.identity)
        except AnnealError as error:
            self._note(str(item.identity), error)
            return True
        same = live is not None and self._is_same(item, live)
        if same:
            self._unchanged.append(item.identity)
        return same

    def _is_same(self, item: ExpectedObject, live: Object) -> bool:
        self._uids.add(live["metadata"]["uid"])
        if live["metadata"].get("deletionTimestamp"):
            return False
        if is_same(item.body, live, self._manager):
            return True
        known = self._client.verdicts.get(item.identity)
        return known is not None and known == self._verdict(item, live)

    def _verdict(self, item: ExpectedObject, live: Object) -> bytes:
        entry = our_entry(live, self._manager) or {}
        seen = [live["metadata"].get("uid"), meaningful(live), entry.get("fieldsV1"), item.body, self._manager]
        return hashlib.blake2b(json.dumps(seen, sort_keys=True).encode(), digest_size=16).digest()

    def _put(self, item: ExpectedObject) -> None:
        identity = item.identity
        resource = item.resource or self._once_served(item)
        live = None if item.resource is None else self._live(resource, identity)
        if item.resource is None or (self._lister is not None and (live is None or live["metadata"].get("deletionTimestamp"))):
            live = self._client.get(resource, identity.namespace, identity.name)  # a cache may be old
        for left in reversed(range(_TRIES)):
            if live is not None and self._is_same(item, live):
                self._unchanged.append(identity)
                return
            if live is not None and live["metadata"].get("deletionTimestamp"):
                seen = f"is being deleted since {live['metadata']['deletionTimestamp']}"
                raise ClusterUnavailable.of(str(identity), seen, fix="reconcile again once it is gone")
            try:
                stored = self._client.apply(resource, item.body, self._manager, live)
            except Moved:
                if not left:
                    raise
                live = self._client.get(resource, identity.namespace, identity.name)
                continue
            self._applied(item, resource, live, stored)
            return

    def _applied(self, item: ExpectedObject, resource: Resource, live: Object | None, stored: Object) -> None:
        self._uids.add(stored["metadata"]["uid"])
        if live is None:
            self._created.append(item.identity)
        elif live["metadata"].get("resourceVersion") == stored["metadata"].get("resourceVersion"):
            self._unchanged.append(item.identity)
        else:
            self._updated.append(UpdatedObject(item.identity, field_changes(item.identity.group_kind, live, stored)))
        if not is_same(item.body, stored, self._manager):
            with _guard:
                verdicts = self._client.verdicts
                verdicts.pop(item.identity, None)
                verdicts[item.identity] = self._verdict(item, stored)
                while len(verdicts) > _REMEMBERED:
                    del verdicts[next(iter(verdicts))]
        if self._lister is not None:
            self._lister.saw(resource, stored)

    def _once_served(self, item: ExpectedObject) -> Resource:
        """Wait until the kind that an expected CustomResourceDefinition makes is served."""
        version = str(item.body["apiVersion"])
        while True:
            found = self._client.find(version, item.identity.kind)
            if found is not None:
                wrong, fix = placed_wrong(found, item.identity)
                if wrong:
                    raise AnnealError.of(str(item.identity), wrong, fix=fix)
                return found
            if time.monotonic() > self._end:
                fix = advice(_ESTABLISHED, item.identity.group)
                raise ClusterUnavailable.of(str(item.identity), f"{version} {item.identity.kind} isn't served yet", fix=fix)
            time.sleep(_LOOK_AGAIN)
            self._client.refresh()

    # --- deletions
    def delete(self, expected: Iterable[ExpectedObject], named: Iterable[Resource], namespace: str, selector: DeleteSelector) -> None:
        """Delete what isn't expected, once all kinds were read."""
        opted = frozenset(resource.group_kind for resource in named)
        there = (item.resource or self._client.find(item.body["apiVersion"], item.identity.kind) for item in expected)
        found = {resource.group_kind: resource for resource in (*named, *there) if resource and resource.namespaced}
        wanted = frozenset(item.identity for item in expected)
        items = [
            (found[kind], self.attempt(_place(found[kind], namespace), partial(self._items, found[kind], namespace))) for kind in found
        ]
        self.end_if_failed()

        def may_go(live: Object) -> bool:
            return live["metadata"]["uid"] not in self._uids and _may_go(wanted, opted, selector, namespace, live)

        going = [(resource, live) for resource, listed in items for live in listed or () if may_go(live)]
        going.sort(key=lambda each: sort_key(identity_of(each[1])), reverse=True)
        for _, stage in itertools.groupby(going, key=lambda each: sort_key(identity_of(each[1]))[0]):
            self._all([(str(identity_of(live)), partial(self._remove, resource, live, may_go)) for resource, live in stage])

    def _remove(self, resource: Resource, live: Object | None, may_go: Callable[[Object], bool]) -> None:
        identity = identity_of(live or {})
        for left in reversed(range(_TRIES)):
            if self._lister is not None or left < _TRIES - 1:
                live = self._client.get(resource, identity.namespace, identity.name)
            if live is None or not may_go(live):
                return
            try:
                gone = self._client.delete(resource, live)
            except Moved:
                if not left:
                    raise
                continue
            if gone:
                self._deleted.append(identity)
            with _guard:
                self._client.verdicts.pop(identity, None)
            if self._lister is not None:
                self._lister.dropped(resource, identity, str(live["metadata"]["uid"]))
            return


def _may_go(wanted: frozenset[Identity], opted: frozenset[GroupKind], selector: DeleteSelector, namespace: str, live: Object) -> bool:
    identity = identity_of(live)
    if identity in wanted or identity.namespace != namespace or not selector.admits(live):
        return False
    kept = kept_by_itself(live) or live["metadata"].get("deletionTimestamp")
    return not kept and (identity.group_kind not in GUARDED or identity.group_kind in opted)


def _place(resource: Resource, namespace: str) -> str:
    return f"{resource.group_kind} in {namespace}" if namespace else str(resource.group_kind)
