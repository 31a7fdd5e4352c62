"""Pods that stay at a revision which isn't due any more until they are deleted. Pure.

A StatefulSet with ordered pods waits for each pod to be ready before it replaces any, also for one whose revision was taken back. One with
`OnDelete` replaces none by itself. The pods of a Deployment, a DaemonSet and a set with `Parallel` pods are replaced, ready or not.

Source: https://kubernetes.io/docs/concepts/workloads/controllers/statefulset/#forced-rollback
"""

from __future__ import annotations

from typing import Any, NamedTuple

from handler.health.kinds.pods import trouble
from handler.health.kinds.reading import condition, count, moment, said
from handler.model.manifest import at, items_at

_STARTS = 15.0  # seconds for which a pod may not be ready without a word why: it starts


class DueRevision(NamedTuple):
    """What pods a StatefulSet is to have: its uid, its newest revision, and the index from which on pods are to be of that.

    `on_delete`: people replace them. An empty revision: its controller hasn't said which one is due, or replaces pods that aren't ready.
    """

    uid: str = ""
    revision: str = ""
    first: int = 0
    on_delete: bool = False

    @classmethod
    def of(cls, live: Any) -> DueRevision:
        """Read a live object; of what isn't a StatefulSet nothing is said."""
        status, spec = at(live, "status"), at(live, "spec")
        seen = at(status, "observedGeneration") == at(live, "metadata", "generation") is not None
        if at(live, "kind") != "StatefulSet" or not seen or at(spec, "podManagementPolicy") == "Parallel":
            return cls()
        first = count(live, "spec", "ordinals", "start") + count(live, "spec", "updateStrategy", "rollingUpdate", "partition")
        on_delete = at(spec, "updateStrategy", "type") == "OnDelete"
        return cls(said(at(live, "metadata", "uid")), said(at(status, "updateRevision")), first, on_delete)

    def is_past(self, pod: Any) -> bool:
        """Whether a pod of it isn't ready and is of another revision than it is to be of."""
        return bool(self.revision) and self.lags(pod) and revision_of(pod) not in ("", self.revision)

    def lags(self, pod: Any) -> bool:
        """Whether a pod of it isn't ready, doesn't go already, and isn't below the partition."""
        mine = any(at(each, "uid") == self.uid and at(each, "controller") is True for each in items_at(pod, "metadata", "ownerReferences"))
        ordinal = said(at(pod, "metadata", "name")).rpartition("-")[2]
        ready = condition(pod, "Ready").true or at(pod, "metadata", "deletionTimestamp") is not None
        return mine and not ready and ordinal.isascii() and ordinal.isdecimal() and int(ordinal) >= self.first


def revision_of(pod: Any) -> str:
    """Return the revision of a StatefulSet's pod."""
    return said(at(pod, "metadata", "labels", "controller-revision-hash"))


def is_stuck(pod: Any, now: float) -> bool:
    """Whether a pod that isn't ready won't be in a moment: it says why, or hasn't been ready for a while."""
    since = condition(pod, "Ready").since or moment(at(pod, "metadata", "creationTimestamp"))
    return bool(trouble(pod)) or (since is not None and now - since >= _STARTS)
