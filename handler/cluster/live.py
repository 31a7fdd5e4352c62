"""Reads live objects: label-selected LISTs for the plan, metadata for overviews and recovery, single objects for adoption.

LISTs are consistent (no resourceVersion) and paged. The first that fails ends all and is raised: a plan from half of the live objects would
prune the other half.
"""

from __future__ import annotations

import queue
import re
import threading
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from dataclasses import dataclass
from functools import partial
from typing import Any

from handler.cluster.api import JSON, Api, ApiRequest, items_of
from handler.cluster.parallel import together
from handler.model.errors import ApiRefused, ClusterUnavailable
from handler.model.names import Identity, Resource

LIMIT = 500  # objects a page, as in client-go's pager
PARTIAL = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json"
PARTIAL_LIST = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json"
_WORKERS = 8
_AFRESH = 3  # restarts of one LIST whose continue token expired

Object = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Listing:
    """One LIST: a kind in one scope. `partial`: only metadata; `selector`: labels, see `matches`, empty for all."""

    resource: Resource
    namespace: str = ""
    selector: str = ""
    partial: bool = False
    limit: int = LIMIT

    def request(self, following: str = "") -> ApiRequest:
        """Return the request of the first page, or of the page after a continue token."""
        query = {"limit": str(self.limit)}
        if self.selector:
            query["labelSelector"] = self.selector
        if following:
            query["continue"] = following
        subject = "/".join(part for part in (str(self.resource.group_kind), self.namespace) if part)
        return ApiRequest(
            "GET", self.resource.path(self.namespace), query, accept=PARTIAL_LIST if self.partial else JSON, subject=f"list {subject}"
        )


def members(
    api: Api,
    resources: Sequence[Resource],
    selector: str,
    namespaces: tuple[str, ...] | None,
    *,
    partial: bool = False,
    vanished: set[Resource] | None = None,
    limit: int = LIMIT,
) -> Iterator[Object]:
    """Yield every live object with these labels, page by page, from several LISTs at once, in no order.

    Consume all before acting: an error may follow, and a changed object may come again, the newer state last. `selector`: see `Listing`.
    `namespaces`: None: everywhere. `vanished`: kinds that answered 404 are added; without it they raise. `limit`: objects a page.
    """
    listings = [
        Listing(resource, scope, selector, partial, limit)
        for resource in resources
        for scope in (namespaces if resource.namespaced and namespaces is not None else ("",))
    ]
    yield from _together(api, listings, vanished)


def metadata(api: Api, resource: Resource, namespace: str = "", selector: str = "", *, limit: int = LIMIT) -> Iterator[Object]:
    """Yield the metadata (PartialObjectMetadata, with the kind's own apiVersion and kind) of a kind's objects."""
    for page in pages(api, Listing(resource, namespace, selector, partial=True, limit=limit)):
        yield from page


def probe(api: Api, wanted: Sequence[tuple[Resource, str, str]]) -> dict[Identity, Object]:
    """Return those of the objects (kind, namespace, name) that exist; a metadata LIST finds more than three of one kind and namespace."""
    grouped: dict[tuple[Resource, str], list[str]] = defaultdict(list)
    for resource, namespace, name in wanted:
        grouped[resource, namespace].append(name)
    scopes = list(grouped.items())
    existing = together([partial(_existing, api, resource, namespace, names) for (resource, namespace), names in scopes], _WORKERS)
    asked = [(resource, namespace, name) for ((resource, namespace), _), names in zip(scopes, existing, strict=True) for name in names]
    found = together([partial(_read, api, resource, namespace, name) for resource, namespace, name in asked], _WORKERS)
    return {
        Identity(resource.group, resource.kind, namespace, name): item
        for (resource, namespace, name), item in zip(asked, found, strict=True)
        if item is not None
    }


def _existing(api: Api, resource: Resource, namespace: str, names: list[str]) -> list[str]:
    if len(names) <= 3:
        return names
    try:
        there = {item["metadata"]["name"] for item in metadata(api, resource, namespace)}
    except ApiRefused as error:
        if error.status != 404:
            raise
        return []
    return [name for name in names if name in there]


def _read(api: Api, resource: Resource, namespace: str, name: str) -> Object | None:
    subject = str(Identity(resource.group, resource.kind, namespace, name))
    found = api.get(resource.path(namespace, name), subject=subject)
    return found and named(found, resource)


def pages(api: Api, listing: Listing) -> Iterator[list[Object]]:
    """Yield one LIST's pages; after 410 it restarts, without unchanged objects. Raises ApiRefused with status 404: no such kind."""
    seen: set[tuple[str, str]] = set()
    following = ""
    afresh = 0
    while True:
        try:
            answer = api.expect(listing.request(following))
        except ApiRefused as error:
            if error.status != 410 or not following:
                raise
            afresh += 1
            if afresh > _AFRESH:
                raise ClusterUnavailable.of(listing.request().name, f"its continue token expired {afresh} times") from error
            following = ""
            continue
        found = items_of(answer, listing.resource, listing.request().name, partial=listing.partial)
        fresh = [item for item in found if _new(item, seen) and matches(item, listing.selector)]
        yield [named(item, listing.resource) for item in fresh]
        before, following = following, str(answer["metadata"].get("continue") or "")
        if following and following == before:
            raise ClusterUnavailable.of(listing.request().name, "its pages go round in a circle")
        if not following:
            return


def _new(item: Object, seen: set[tuple[str, str]]) -> bool:
    key = (item["metadata"].get("uid", ""), item["metadata"].get("resourceVersion", ""))
    if key in seen and all(key):
        return False
    seen.add(key)
    return True


def matches(item: Object, selector: str) -> bool:
    """Return whether an object carries the labels of a selector, as the API server reads it: `k=v,k!=v,k,!k,k in (v,w),k notin (v,w)`."""
    labels = item["metadata"].get("labels") or {}
    return all(_holds(term.strip(), labels) for term in _TERM.findall(selector))


_TERM = re.compile(r"[^,(]+(?:\([^)]*\))?")


def _holds(term: str, labels: Mapping[str, str]) -> bool:
    """Whether one term of a selector holds; a label that is missing is none of any values."""
    if among := re.fullmatch(r"(\S+) (in|notin) \((.*)\)", term):
        values = [value.strip() for value in among[3].split(",")]
        return (labels.get(among[1]) in values) == (among[2] == "in")
    key, operator, value = re.fullmatch(r"([^=!]*)(!=|==?|)(.*)", term.removeprefix("!")).groups()  # type: ignore[union-attr]  # it matches any
    if not operator:
        return (key in labels) != term.startswith("!")
    return (labels.get(key.strip()) == value.strip()) == (operator != "!=")


def named(item: Object, resource: Resource) -> Object:
    """Fill in apiVersion and kind, which items of a LIST lack and metadata-only ones carry wrongly."""
    item["apiVersion"] = resource.api_version
    item["kind"] = resource.kind
    return item


def _together(api: Api, listings: list[Listing], vanished: set[Resource] | None) -> Iterator[Object]:
    lines: queue.Queue[list[Object] | BaseException | None] = queue.Queue(maxsize=2)
    closing = threading.Event()

    def run(listing: Listing) -> None:
        try:
            for page in pages(api, listing):
                if not put(lines, page, closing):
                    return
            put(lines, None, closing)
        except ApiRefused as error:
            gone = error.status == 404 and vanished is not None
            if gone and vanished is not None:
                vanished.add(listing.resource)
            put(lines, None if gone else error, closing)
        except BaseException as error:  # noqa: BLE001 - it is raised again on the reader's thread
            put(lines, error, closing)

    pool = ThreadPoolExecutor(_WORKERS, thread_name_prefix="list")
    try:
        for listing in listings:
            pool.submit(copy_context().run, run, listing)
        yield from _drain(lines, len(listings))
    finally:
        closing.set()
        pool.shutdown(wait=True, cancel_futures=True)


def _drain(lines: queue.Queue[list[Object] | BaseException | None], open_lists: int) -> Iterator[Object]:
    while open_lists:
        line = lines.get()
        if isinstance(line, BaseException):
            raise line
        if line is None:
            open_lists -= 1
        else:
            yield from line


def put(lines: queue.Queue[Any], line: Any, closing: threading.Event) -> bool:
    """Put a line; False when the reader has closed."""
    while not closing.is_set():
        try:
            lines.put(line, timeout=0.1)
        except queue.Full:
            continue
        return True
    return False
