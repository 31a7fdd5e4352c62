"""Reads what explains unhealthy objects: the Warnings of their namespaces, and their pods; `handler.health.diagnosis` judges them.

Law: few reads, bounded by `Evidence`. What can't be read explains nothing, and denies nothing.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from handler.cluster.evidence import Evidence, happened
from handler.health.diagnosis import Finding, NamespaceSight, Subject, Warned, diagnose
from handler.model.names import Identity

_SINGLE = 3  # objects of one namespace whose pods are asked for by their labels; of more, the namespace's are read


def explain(evidence: Evidence, subjects: Iterable[Subject], since: float, now: float) -> dict[Identity, Finding]:
    """Return what explains each object (none: not while something is unread). `since`, `now`: by the API server's clock."""
    spaces: dict[str, list[Subject]] = defaultdict(list)
    for subject in subjects:
        spaces[subject.identity.namespace].append(subject)
    found: dict[Identity, Finding] = {}
    for namespace, mine in spaces.items():
        sight = _seen(evidence, namespace, mine, since, now)
        each_one = {subject.identity: diagnose(subject, sight) for subject in mine}
        found |= {identity: each for identity, each in each_one.items() if each.causes or not evidence.broken}
    return found


def _seen(evidence: Evidence, namespace: str, subjects: Iterable[Subject], since: float, now: float) -> NamespaceSight:
    selectors = dict.fromkeys(subject.selector for subject in subjects if subject.has_pods)
    asked = [*selectors] if len(selectors) <= _SINGLE and all(selectors) else [""]
    pods = [each for selector in (asked if selectors else ()) for each in evidence.pods(namespace, selector)]
    return NamespaceSight.of(pods, [Warned.of(each, happened(each)) for each in evidence.warnings(namespace)], since, now)
