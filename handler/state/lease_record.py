"""A coordination.k8s.io/v1 Lease as a value, and the bodies that a holder writes. Pure.

The annotation `anneal.dev/requested` asks for a run: renewals keep it, taking the Lease clears it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from handler.model.names import MANAGED_BY
from handler.model.quotation import printable
from handler.state.cluster_port import Body
from handler.state.record_format import seconds_of

REQUESTED = "anneal.dev/requested"
_LONGEST = 3600.0  # a foreign Lease that claims more than an hour is believed for an hour


def micro_time(seconds: float) -> str:
    """Write seconds since the epoch as Kubernetes' MicroTime."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


@dataclass(frozen=True, slots=True)
class LeaseRecord:
    """What a Lease says. `holder` is empty when it is free; `duration` in seconds; `renewed` since the epoch, 0 when unknown."""

    uid: str
    holder: str
    transitions: int
    duration: float
    renewed: float
    requested: str

    @classmethod
    def of(cls, body: Body) -> LeaseRecord:
        """Read a Lease's body."""
        spec: dict[str, Any] = body.get("spec") or {}
        metadata: dict[str, Any] = body["metadata"]
        return cls(
            uid=metadata["uid"],
            holder=printable(spec.get("holderIdentity") or ""),
            transitions=_count(spec.get("leaseTransitions")),
            duration=min(float(spec.get("leaseDurationSeconds") or 0), _LONGEST),
            renewed=_seconds(spec.get("renewTime")),
            requested=(metadata.get("annotations") or {}).get(REQUESTED) or "",
        )

    @property
    def token(self) -> str:
        """The fencing token of this tenure: no two tenures share one, not even after the Lease was deleted."""
        return f"{self.uid}.{self.transitions}"

    @property
    def tenure(self) -> tuple[str, str, int, float]:
        """What a living holder changes; a request on the Lease doesn't."""
        return (self.uid, self.holder, self.transitions, self.renewed)


def _seconds(text: Any) -> float:
    try:
        return seconds_of(str(text or ""))
    except ValueError:
        return 0.0


def _count(transitions: Any) -> int:
    return max(transitions, 0) if isinstance(transitions, int) else 0


def new_lease(namespace: str, name: str) -> Body:
    """Return the body of a Lease that was never held."""
    return {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"name": name, "namespace": namespace, "labels": {**MANAGED_BY}},
        "spec": {},
    }


def taken(body: Body, holder: str, duration: float, now: float) -> Body:
    """Return the body with a new holder and one more transition; requests are cleared. `now`: the server's time."""
    spec = body.get("spec") or {}
    fresh = {
        "holderIdentity": holder,
        "leaseDurationSeconds": math.ceil(duration),
        "acquireTime": micro_time(now),
        "renewTime": micro_time(now),
        "leaseTransitions": (_count(spec.get("leaseTransitions")) + 1) % 2**31,  # the API server's is an int32
    }
    return without_request({**body, "spec": fresh})


def renewed(body: Body, now: float) -> Body:
    """Return the body renewed; everything else stays."""
    return {**body, "spec": {**body["spec"], "renewTime": micro_time(now)}}


def freed(body: Body) -> Body:
    """Return the body without a holder; requests stay."""
    return {**body, "spec": {key: value for key, value in body["spec"].items() if key != "holderIdentity"}}


def annotated(body: Body, annotations: dict[str, str]) -> Body:
    """Return the body with these annotations, too."""
    return {**body, "metadata": {**body["metadata"], "annotations": {**(body["metadata"].get("annotations") or {}), **annotations}}}


def without_request(body: Body) -> Body:
    """Return the body without a request."""
    kept = {key: value for key, value in (body["metadata"].get("annotations") or {}).items() if key != REQUESTED}
    return {**body, "metadata": {**body["metadata"], "annotations": kept}}
