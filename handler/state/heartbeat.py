"""Which servers run, what they last looked at, when health was last watched: one Lease an installation and cluster, renewed every minute.

    spec.renewTime, holderIdentity     the last renewal, and whose
    anneal.dev/health                  when health was watched last, and for how many seconds that holds
    anneal.dev/health-since            since when without a gap
    anneal.dev/servers                 by server: its version, its last renewal, and whether it ended with that
    anneal.dev/targets                 by target: the server that looks after it, when one last looked at it; gzipped above 4 KB

Law: times are the API server's. Each server writes what is its own by compare-and-swap and keeps the rest. What is read is untrusted.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from handler.model.errors import AccessDenied, Moved
from handler.model.health import HealthState
from handler.model.names import HEARTBEAT, state_name
from handler.model.quotation import printable
from handler.state.cluster_port import Body, StateObjects, create_in_namespace, replace_same
from handler.state.lease_record import annotated, micro_time, new_lease
from handler.state.record import TargetHealth
from handler.state.record_format import GZIP_ABOVE, gzipped_text, inflated, seconds_of, stamp

T = TypeVar("T")
INTERVALS = 3
"""Without a look for so many intervals health is unknown; without a renewal for so many, a server doesn't run."""
EVERY = 60.0  # seconds between two renewals
HOLDS = INTERVALS * EVERY
_HEALTH, _SERVERS, _TARGETS = "anneal.dev/health", "anneal.dev/servers", "anneal.dev/targets"
_SINCE = f"{_HEALTH}-since"
_TRIES = 5
_REMEMBERED = 86_400.0  # seconds for which a server that doesn't run is remembered; the last one always is
_MOST = 32


def heartbeat_name(installation: str) -> str:
    """Return the name of an installation's Lease; no target's is like it: no template may have that name."""
    return f"{state_name(HEARTBEAT)}.{installation}"


@dataclass(frozen=True, slots=True)
class Beat:
    """When health was watched last, and for how many seconds that holds; `since`: from when on without a gap, 0: not known."""

    renewed: float
    duration: float
    since: float = field(default=0.0, compare=False)


@dataclass(frozen=True, slots=True)
class Server:
    """One server. `renewed`: its last renewal (seconds since the epoch); `ended`: the server announced its shutdown."""

    name: str
    version: str
    renewed: float
    ended: bool = False


@dataclass(frozen=True, slots=True)
class Pulse:
    """What the Lease says. Times are in seconds since the epoch, `now` is the API server's when it was read.

    `watched`: when health was watched; None: never. `servers`: by name. `targets`: by target, the server that looks after it and when
    one last looked at it (0: not yet). `readable`: False where the Lease may not be read, so that nothing is known.
    """

    now: float = 0.0
    watched: Beat | None = None
    servers: Mapping[str, Server] = field(default_factory=dict)
    targets: Mapping[str, tuple[str, float]] = field(default_factory=dict)
    readable: bool = True

    def runs(self, server: Server) -> bool:
        """Whether a server has renewed lately, and not to say that it ends."""
        return not server.ended and self.now - server.renewed <= HOLDS

    def server(self, target: str) -> Server | None:
        """Return the running server that looks after a target; None: no running server does."""
        found = self.servers.get(self.targets.get(target, ("", 0.0))[0])
        return found if found and self.runs(found) else None

    def looked(self, target: str) -> float:
        """Return when a server last looked at a target; 0: never, as far as is known."""
        return self.targets.get(target, ("", 0.0))[1]

    def watch(self, target: str) -> Beat | None:
        """Return the last watch of one target's health; None: it was none of this target, as far as is known."""
        server = self.servers.get(self.targets.get(target, ("", 0.0))[0])
        return self.watched if self.watched and server and server.renewed >= self.watched.renewed else None

    @property
    def last(self) -> Server | None:
        """Return the server that renewed last, whether it runs or not."""
        return max(self.servers.values(), key=lambda server: server.renewed, default=None)


UNREAD = Pulse(readable=False)  # of a Lease that wasn't read, or may not be


@dataclass(frozen=True, slots=True)
class Signs:
    """What one server says at a renewal.

    `looks`: by target that it looks after, how many seconds ago it looked, infinity: not yet. `watched`: how many seconds ago it watched
    the health of all of them, and for how many that holds. `ended`: it looks after them no more.
    """

    server: str
    version: str
    looks: Mapping[str, float]
    watched: tuple[float, float] | None = None
    ended: bool = False


@dataclass(frozen=True, slots=True)
class Heartbeat:
    """The Lease of one installation on one cluster."""

    objects: StateObjects
    namespace: str
    installation: str

    def read(self) -> Pulse:
        """Return what it says; nothing where it isn't there. Where it may not be read, it vouches for nothing."""
        try:
            body = self._body()
        except AccessDenied:
            return UNREAD
        return Pulse() if body is None else _pulse(body, self.objects.server_time())

    def renew(self, signs: Signs) -> str:
        """Say that a server runs; return the Lease's uid. Raises AnnealError: it can't be read or written; Moved: others were quicker."""
        for left in reversed(range(_TRIES)):
            body, now = self._body(), self.objects.server_time()
            known = _pulse(body, now) if body else Pulse(now)
            made = body or new_lease(self.namespace, heartbeat_name(self.installation))
            try:
                written = (replace_same if body else create_in_namespace)(self.objects, _with(made, _renewed(known, signs, now)))
            except Moved:
                if not left:
                    raise
                continue
            return str(written["metadata"]["uid"])
        raise AssertionError  # pragma: no cover - the last try raises

    def _body(self) -> Body | None:
        return self.objects.get("Lease", self.namespace, heartbeat_name(self.installation))


def _renewed(known: Pulse, signs: Signs, now: float) -> Pulse:
    servers = {**known.servers, signs.server: Server(signs.server, signs.version, now, signs.ended)}
    newest = sorted(servers.values(), key=lambda server: server.renewed, reverse=True)[:_MOST]
    kept = {server.name: server for server in newest if now - server.renewed <= _REMEMBERED}
    named = _heir(known, signs.server) if signs.ended else signs.server
    mine = {name: (named, max(known.looked(name), now - ago, 0.0)) for name, ago in signs.looks.items()}
    others = {name: each for name, each in known.targets.items() if each[0] in kept and each[0] != signs.server}
    watched = known.watched
    if signs.watched and (watched is None or watched.renewed <= now - signs.watched[0]):
        watched = _watched_on(watched, now - signs.watched[0], signs.watched[1])
    return Pulse(now, watched, kept, others | mine)


def _watched_on(known: Beat | None, renewed: float, duration: float) -> Beat:
    goes_on = known is not None and renewed - known.renewed <= known.duration
    return Beat(renewed, duration, (known.since or known.renewed) if known and goes_on else renewed)


def _heir(known: Pulse, server: str) -> str:
    """Name a running server in the place of one that ends, until that says itself what it looks after; else the same."""
    others = [each for each in known.servers.values() if each.name != server and known.runs(each)]
    return max(others, key=lambda each: each.renewed).name if others else server


# --- as a Lease
def _with(body: Body, pulse: Pulse) -> Body:
    last = pulse.last
    assert last is not None  # noqa: S101 - the server that renews is among them
    servers = {
        server.name: {"version": server.version, "renewed": micro_time(server.renewed), **({"ended": True} if server.ended else {})}
        for server in pulse.servers.values()
    }
    targets = {name: [server, int(looked)] for name, (server, looked) in sorted(pulse.targets.items())}
    text = json.dumps(targets, separators=(",", ":"))
    said = {_SERVERS: json.dumps(servers), _TARGETS: text if len(text) <= GZIP_ABOVE else gzipped_text(text.encode())}
    if pulse.watched:
        said[_HEALTH] = f"{micro_time(pulse.watched.renewed)} {pulse.watched.duration:.0f}"
        said[_SINCE] = micro_time(pulse.watched.since)
    spec = {"holderIdentity": last.name, "leaseDurationSeconds": int(HOLDS), "renewTime": micro_time(pulse.now)}
    return {**annotated(body, said), "spec": spec}


def _pulse(body: Body, now: float) -> Pulse:
    annotations = body["metadata"].get("annotations") or {}

    def part(name: str, read: Callable[[str], T], nothing: T) -> T:
        try:
            return read(annotations[name])
        except (LookupError, ValueError, TypeError, AttributeError, OverflowError, RecursionError):
            return nothing

    watched = part(_HEALTH, _watched, None)
    latest = now + EVERY  # what says that it is later isn't believed; nearly now it may be: clocks differ
    watched = watched if watched and watched.renewed <= latest else None
    if watched:
        watched = replace(watched, since=min(part(_SINCE, seconds_of, 0.0), watched.renewed))
    servers: dict[str, Server] = part(_SERVERS, _servers, {})
    targets: dict[str, tuple[str, float]] = part(_TARGETS, _targets, {})
    servers = {name: each for name, each in servers.items() if each.renewed <= latest}
    return Pulse(now, watched, servers, {name: each for name, each in targets.items() if 0 <= each[1] <= latest})


def _watched(text: str) -> Beat | None:
    renewed, _, duration = text.partition(" ")
    return Beat(seconds_of(renewed), float(int(duration)))


def _servers(text: str) -> dict[str, Server]:
    found: dict[str, Any] = json.loads(text)
    return {
        printable(name): Server(
            printable(name), printable(str(facts["version"]), 40), seconds_of(facts["renewed"]), facts.get("ended") is True
        )
        for name, facts in found.items()
    }


def _targets(text: str) -> dict[str, tuple[str, float]]:
    found: dict[str, Any] = json.loads(text if text.startswith("{") else inflated(text))
    return {name: (printable(str(server)), float(int(looked))) for name, (server, looked) in found.items()}


# --- health
def known(health: TargetHealth, beat: Beat | None, now: float, drift_interval: float) -> TargetHealth:
    """Return a recorded health as it is known to be `now` (seconds since the epoch): unknown, if it wasn't judged for three intervals.

    One that is watched again after such a gap is known since then.
    `beat`: when it was watched last on its cluster; None: it isn't watched there, or a run of the target is open, which judges it.
    `drift_interval`: seconds between two drift runs.
    """
    judged = seconds_of(health.judged) if health.judged else 0.0
    if not health.state:
        return replace(health, state=str(HealthState.UNKNOWN))
    if beat and now - beat.renewed <= beat.duration:
        has_gap = beat.since > max(judged + beat.duration, seconds_of(health.since) if health.since else 0.0)
        return replace(health, since=stamp(beat.since)) if has_gap else health
    unwatched = beat is None or judged > beat.renewed + beat.duration
    if unwatched and now - judged <= INTERVALS * drift_interval:
        return health
    last = max(judged, beat.renewed if beat else 0.0)
    since = max(last, seconds_of(health.since))
    seen = f"was {health.state} when it was judged last, {stamp(last)}"
    return replace(health, state=str(HealthState.UNKNOWN), since=stamp(since), worst=(seen, *health.worst))
