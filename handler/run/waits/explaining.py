"""Why an object isn't healthy, as a person would want it: not `0/1`, but the pod, what became of its container, the newest warnings.

`Deployment/shop/api: isn't healthy after 5m: 1 of 3 replicas available; pod api-7d9f-x: container app waits: CrashLoopBackOff; container
app ended with exit code 1; Warning BackOff: …`. Law: everything is masked before it is cut. What a container has logged is no part of it,
for it may hold any secret: `evidence: {logs: record}` on the target adds its end, masked.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from handler.cluster.evidence import Evidence
from handler.model.health import Status
from handler.model.manifest import at, items_at
from handler.model.names import Identity
from handler.model.resource import Resource
from handler.model.tree import printable
from handler.model.words import many
from handler.rollout.diagnosis import without_output
from handler.rollout.kinds.pods import containers, pod
from handler.rollout.kinds.reading import count
from handler.run.waits.log_tail import read_tail

Object = dict[str, Any]
LONGEST = 900
"""Characters of what is said of one object."""
_WARNINGS = 2
_LOG = 400
"""Of these so many are at most a log's end."""
_SELECTING = {"Deployment", "ReplicaSet", "StatefulSet", "DaemonSet", "Job", "ReplicationController"}
HAVE_PODS = frozenset({*_SELECTING, "Pod"})
"""Kinds whose pods say more than they do themselves."""


def explain(evidence: Evidence, resource: Resource, identity: Identity, now: float, mask: Callable[[str], str]) -> str:
    """Return what explains that an object isn't healthy, in one line; empty where nothing can be read.

    Args:
        evidence: bounded reads, shared by all objects of one failure.
        resource: its kind.
        identity: the object.
        now: seconds since the epoch, by the API server's clock.
        mask: hides secrets.

    """
    live = evidence.live(resource, identity)
    if live is None:
        return ""
    worst, blamed = _blamed(evidence, live, identity, now)
    parts = []
    if worst is not None:
        restarts = max((count({"status": status}, "status", "restartCount") for status in containers(worst)), default=0)
        again = f", restarted {many(restarts, 'time')}" if restarts else ""
        parts.append(f"pod {at(worst, 'metadata', 'name')}: {pod(worst, now).message}{again}")
    parts += _warnings(evidence, blamed, identity.namespace)
    told = printable(mask("; ".join(parts)), LONGEST - _LOG)
    return "; ".join(filter(None, (told, _log(evidence, worst, identity.namespace, mask))))


def worst_pod(evidence: Evidence, resource: Resource, identity: Identity, now: float) -> Object | None:
    """Return the pod of an object that does worst; None: none of its pods does badly, or they can't be read."""
    live = evidence.live(resource, identity)
    return None if live is None else _blamed(evidence, live, identity, now)[0]


def _blamed(evidence: Evidence, live: Object, identity: Identity, now: float) -> tuple[Object | None, list[Object]]:
    """Return the pod that does worst, and the objects whose events tell why: that pod's, else of who should make pods, and the object's."""
    if identity.kind == "Pod" and not identity.group:
        return live, [live]
    selector = _selector(live) if identity.kind in _SELECTING else ""
    if not selector:
        return None, [live]
    pods = evidence.pods(identity.namespace, selector)
    worst = max(pods, key=lambda each: _rank(each, now), default=None)
    if worst is None and identity.kind == "Deployment":
        return None, [*evidence.replica_sets(identity.namespace, selector)[:1], live]
    return (worst, [worst, live]) if worst is not None and _rank(worst, now)[0] else (None, [live])


def _rank(each: Object, now: float) -> tuple[int, str]:
    """Return how badly a pod does, the newer of two alike first."""
    leaving = at(each, "metadata", "deletionTimestamp") is not None
    worth = {Status.FAILED: 2, Status.IN_PROGRESS: 1}.get(pod(each, now).status, 0)
    return (0 if leaving else worth, str(at(each, "metadata", "creationTimestamp") or ""))


def pods_of(identity: Identity, body: Object) -> str:
    """Return the label selector of an object's pods, by its manifest or as it lives; empty: it has none of its own."""
    if identity.kind == "Job" and at(body, "spec", "selector") is None:
        return f"job-name={identity.name}"  # what the server adds
    return _selector(body) if identity.kind in _SELECTING else ""


def _selector(live: Object) -> str:
    """Return `spec.selector` as a query's label selector."""
    selector = at(live, "spec", "selector")
    labels = at(selector, "matchLabels") if live.get("kind") != "ReplicationController" else selector
    terms = [f"{key}={value}" for key, value in (labels.items() if isinstance(labels, dict) else ())]
    return ",".join([*terms, *_expressions(selector)])


def _expressions(selector: Any) -> Iterator[str]:
    for each in items_at(selector, "matchExpressions"):
        key, operator, values = at(each, "key"), at(each, "operator"), ",".join(map(str, items_at(each, "values")))
        written = {"Exists": f"{key}", "DoesNotExist": f"!{key}", "In": f"{key} in ({values})", "NotIn": f"{key} notin ({values})"}
        if operator in written:
            yield written[operator]


def _warnings(evidence: Evidence, blamed: list[Object], namespace: str) -> list[str]:
    """Return the newest warnings, each reason once, those about the first one blamed first."""
    found: dict[str, str] = {}
    for each in blamed:
        uid = str(at(each, "metadata", "uid") or "")
        for event in evidence.warnings(namespace, uid) if uid and len(found) < _WARNINGS else ():
            reason = str(at(event, "reason") or "")
            found.setdefault(reason, f"Warning {reason}: {without_output(str(at(event, 'message') or at(event, 'note') or ''))}")
    return list(found.values())[:_WARNINGS]


def _log(evidence: Evidence, worst: Object | None, namespace: str, mask: Callable[[str], str]) -> str:
    """Return the end of the failing container's log in one line, where the target has it recorded."""
    tail = read_tail(evidence, worst, namespace, mask) if evidence.logs and worst is not None else None
    if tail is None or tail.withheld:
        return printable(f"its log is withheld: {tail.withheld}; {tail.fix}", _LOG) if tail else ""
    shown = " | ".join(tail.lines)
    return f"its log ends: {shown if len(shown) <= _LOG else '…' + shown[-_LOG + 1 :]}" if shown else ""
