"""When health was last watched on a cluster: one Lease an installation, renewed by every worker that watches.

Law: records tell of another verdict only, so nothing in them says that somebody still looks. Without a renewal for its whole duration
what they say of health isn't known to hold, unless a run has judged the target since.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from handler.model.errors import AccessDenied, Moved
from handler.model.health import HealthState
from handler.state.lease_record import LeaseRecord, micro_time, new_lease
from handler.state.objects import Body, Objects, create_in_namespace, replace_same
from handler.state.record import TargetHealth
from handler.state.rules import seconds_of, stamp

INTERVALS = 3
"""Without a look for so many intervals health is unknown."""
_LABELS = {"app.kubernetes.io/managed-by": "anneal"}


def heartbeat_name(installation: str) -> str:
    """Return the name of an installation's Lease; no target's has a dot in it."""
    return f"anneal-health.{installation}"


@dataclass(frozen=True, slots=True)
class Beat:
    """The last renewal, in seconds since the epoch, and for how many seconds it holds."""

    renewed: float
    duration: float


@dataclass(frozen=True, slots=True)
class Heartbeat:
    """The Lease of one installation on one cluster."""

    objects: Objects
    namespace: str
    installation: str

    def read(self) -> Beat | None:
        """Return the last renewal; None: no worker has ever watched, or that may not be read: then it vouches for nothing."""
        try:
            body = self._body()
        except AccessDenied:
            return None
        return None if body is None else _beat(body)

    def renew(self, holder: str, interval: float) -> None:
        """Say that health is watched now; where another worker has just said so, that is as good.

        Args:
            holder: who says so.
            interval: seconds between two renewals.

        Raises:
            AnnealError: the Lease can't be read or written.

        """
        body, now = self._body(), self.objects.server_time()
        known = _beat(body) if body else None
        duration = max(int(INTERVALS * interval), 1)
        if known and known.duration == duration and 0 <= now - known.renewed < interval / 2:
            return
        made = body or new_lease(self.namespace, heartbeat_name(self.installation), _LABELS)
        spec = {"holderIdentity": holder, "leaseDurationSeconds": duration, "renewTime": micro_time(now)}
        try:
            (replace_same if body else create_in_namespace)(self.objects, {**made, "spec": spec})
        except Moved:
            return

    def _body(self) -> Body | None:
        return self.objects.get("Lease", self.namespace, heartbeat_name(self.installation))


def _beat(body: Body) -> Beat:
    return Beat(LeaseRecord.of(body).renewed, float((body.get("spec") or {}).get("leaseDurationSeconds") or 0))


def known(health: TargetHealth, beat: Beat | None, now: float, drift_interval: float) -> TargetHealth:
    """Return a recorded health as it is known to be now: unknown, if nobody has judged it for three intervals.

    Args:
        health: as recorded.
        beat: the last renewal on its cluster; None: health isn't watched there, or a run of the target is open: runs judge it.
        now: seconds since the epoch.
        drift_interval: seconds between two drift runs.

    """
    judged = seconds_of(health.judged) if health.judged else 0.0
    if not health.state:
        return replace(health, state=str(HealthState.UNKNOWN))
    if beat and now - beat.renewed <= beat.duration:
        return health
    unwatched = beat is None or judged > beat.renewed + beat.duration
    if unwatched and now - judged <= INTERVALS * drift_interval:
        return health
    last = max(judged, beat.renewed if beat else 0.0)
    since = max(last, seconds_of(health.since))
    seen = f"was {health.state} when it was judged last, {stamp(last)}"
    return replace(health, state=str(HealthState.UNKNOWN), since=stamp(since), worst=(seen, *health.worst))
