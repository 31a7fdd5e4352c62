"""Pods and their containers: their owners, what a pod waits for, and why one that never will be ready never will."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from handler.health.kinds.reading import HEALTHY, Object, as_said, condition, count, fails, said, waits
from handler.model.health import Health
from handler.model.manifest import at, items_at
from handler.model.names import GroupKind, Identity

WITH_PODS = frozenset(
    {
        *(GroupKind("apps", kind) for kind in ("Deployment", "ReplicaSet", "StatefulSet", "DaemonSet")),
        GroupKind("batch", "Job"),
        GroupKind("", "ReplicationController"),
        GroupKind("", "Pod"),
    }
)
"""Kinds whose pods say more than they do themselves; each is served as v1, its plural is its name and an s."""
UNSCHEDULABLE = 15.0  # seconds for which a new pod may find no Node: the scheduler or an autoscaler may be about to (kstatus)
_HOPELESS = ("InvalidImageName",)
_EXIT = re.compile(r"exit code [^ :;]+")
_NEVER_RAN = frozenset({"ContainerCannotRun", "StartError", "ContainerStatusUnknown"})
"""Reasons whose message is the kubelet's; another's is the program's last words, which may hold any secret."""


def pods_of(identity: Identity, body: Object) -> str:
    """Return the label selector of an object's pods, by its manifest or as it lives; empty: it has none of its own."""
    if identity.group_kind not in WITH_PODS:
        return ""
    if identity.kind == "Job" and at(body, "spec", "selector") is None:
        return f"job-name={identity.name}"  # what the server adds
    return selector_of(body)


def selector_of(body: Any) -> str:
    """Return `spec.selector` as a query's label selector."""
    selector = at(body, "spec", "selector")
    labels = at(selector, "matchLabels") if at(body, "kind") != "ReplicationController" else selector
    terms = [f"{key}={value}" for key, value in sorted(labels.items() if isinstance(labels, dict) else ())]
    return ",".join([*terms, *_expressions(selector)])


def _expressions(selector: Any) -> Iterator[str]:
    for each in items_at(selector, "matchExpressions"):
        key, operator, values = at(each, "key"), at(each, "operator"), ",".join(map(str, items_at(each, "values")))
        written = {"Exists": f"{key}", "DoesNotExist": f"!{key}", "In": f"{key} in ({values})", "NotIn": f"{key} notin ({values})"}
        if operator in written:
            yield written[operator]


def pod(live: Object, now: float) -> Health:
    """It runs and is ready, or has done its work. One that failed never works again, whatever became of it (kstatus calls that current)."""
    phase = at(live, "status", "phase")
    if phase == "Succeeded":
        return HEALTHY
    if phase == "Failed":
        ended = next((text for text in map(ended_text, containers(live)) if text), "")
        return fails(
            "; ".join(filter(None, (as_said(at(live, "status", "reason")), as_said(at(live, "status", "message")), ended))) or "failed"
        )
    if phase == "Running" and condition(live, "Ready").true:
        return HEALTHY
    stuck = next((text for status in containers(live) if (text := stuck_text(status))), "")
    if stuck:
        return fails(stuck)
    return _unscheduled(live, now) or waits(_missing(live))


def _unscheduled(live: Object, now: float) -> Health | None:
    scheduled = condition(live, "PodScheduled")
    if not scheduled.false or scheduled.reason != "Unschedulable":
        return None
    left = (scheduled.since or now) + UNSCHEDULABLE - now
    return waits(scheduled.said, min(left, UNSCHEDULABLE)) if left > 0 else fails(scheduled.said)


def _missing(live: Object) -> str:
    waiting = (text for status in containers(live) if (text := waiting_text(status)))
    ready = condition(live, "Ready")
    return next(waiting, "") or ready.said or f"is {as_said(at(live, 'status', 'phase')) or 'not started'}"


def containers(live: Object) -> Iterator[Any]:
    """Yield the statuses of a pod's containers, those that run first first."""
    for name in ("initContainerStatuses", "containerStatuses"):
        yield from items_at(live, "status", name)


def is_stuck(reason: str) -> bool:
    """Whether a container waits for what doesn't come by itself (gitops-engine): CrashLoopBackOff, ErrImagePull."""
    return reason.startswith("Err") or reason.endswith(("Error", "BackOff")) or reason in _HOPELESS


def stuck_text(status: Any) -> str:
    """Say for what a container waits in vain; empty: it doesn't."""
    return waiting_text(status) if is_stuck(str(at(status, "state", "waiting", "reason") or "")) else ""


def waiting_text(status: Any) -> str:
    """`container app waits: ImagePullBackOff: Back-off pulling image "app:2"`, and how it ended before; empty: it doesn't wait."""
    waiting = at(status, "state", "waiting")
    if not isinstance(waiting, dict):
        return ""
    why = ": ".join(filter(None, (as_said(waiting.get("reason")), as_said(waiting.get("message")))))
    ended = ended_text(status)
    return f"container {as_said(at(status, 'name'))} waits{f': {why}' if why else ''}{f'; {ended}' if ended else ''}"


def ended_text(status: Any) -> str:
    """`container app ended with exit code 137 (OOMKilled)`, its present end or else the last one; never what its program has written."""
    for place in ("state", "lastState"):
        ended = at(status, place, "terminated")
        code = at(ended, "exitCode")
        if isinstance(ended, dict) and code not in (0, None):
            reason = said(ended.get("reason"))
            message = as_said(ended.get("message")) if reason in _NEVER_RAN else ""
            named = f" ({as_said(reason)})" if reason and reason != "Error" else ""
            return (
                f"container {as_said(at(status, 'name'))} ended with exit code {said(str(code))}{named}{f': {message}' if message else ''}"
            )
    return ""


def trouble(live: Object) -> dict[str, str]:
    """Return what a pod itself says is wrong with it, now: each cause by its reason, with its text; empty: nothing, so far."""
    if at(live, "status", "phase") == "Failed":
        text = pod(live, 0.0).message
        return {said(at(live, "status", "reason")) or _exit_code(text) or text: text}
    found = {}
    for status in containers(live):
        ended = ended_text(status) if at(status, "ready") is not True else ""
        stuck = stuck_text(status)
        if stuck:
            found[said(at(status, "state", "waiting", "reason"))] = stuck
        elif ended:
            found[_exit_code(ended)] = ended
    scheduled = condition(live, "PodScheduled")
    if scheduled.false and scheduled.reason == "Unschedulable":
        found[scheduled.reason] = scheduled.said
    return found


def _exit_code(text: str) -> str:
    found = _EXIT.search(text)
    return found.group() if found else ""


def last_words(live: Object, container: str) -> str:
    """Return what a container's program wrote as its present end, or else its last one (`terminationMessagePath`, or its log)."""
    statuses = [status for status in containers(live) if at(status, "name") == container]
    found = (at(status, place, "terminated", "message") for status in statuses for place in ("state", "lastState"))
    return next((words for words in found if isinstance(words, str) and words), "")


def failing(live: Object) -> tuple[str, bool]:
    """Return the container whose log explains most, and whether that is the log before its last restart; empty: none has ever run."""
    for status in containers(live):
        restarted = bool(count(status, "restartCount"))
        if at(status, "state", "terminated", "exitCode") not in (None, 0):
            return str(at(status, "name") or ""), False
        if at(status, "state", "waiting") is not None and restarted:
            return str(at(status, "name") or ""), True
        if at(status, "state", "running") is not None and at(status, "ready") is not True:
            return str(at(status, "name") or ""), restarted
    return "", False
