"""How the objects of one wait stand: each judged with each change of it, and when time alone changes the verdict.

Law: only verdicts are kept; of an object that merely has to settle, what it is judged by. Any change of any verdict is progress. The
operator's expressions judge many objects at once, for one child does that as fast as one.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from handler.engine.health.custom_health import CustomHealth, no_expressions
from handler.health.diagnosis import Live
from handler.health.kstatus import judge, remnant
from handler.model.health import Health, Status
from handler.model.manifest import canonical
from handler.model.names import Identity
from handler.plan.admission import Desired

Object = dict[str, Any]
Verdict = Callable[[Identity, Object | None], Health | None]
_AT_ONCE = 200  # objects that wait for the operator's expressions, at most
_TOGETHER = 2.0  # seconds that a failure waits for the first look at the other objects: failures until then are reported together


def as_usual(_identity: Identity, _live: Object | None) -> Health | None:
    """Leave the verdict to the kind."""
    return None


class Ended(Exception):
    """The wait is over: something has failed, or (`stuck`) nothing goes on."""

    def __init__(self, *, stuck: bool) -> None:
        super().__init__()
        self.stuck = stuck


@dataclass(slots=True)
class Tracker:
    """The verdicts of one wait. `generations`, `verdict`: see `Waits.healthy`.

    `patience`: seconds for which nothing may change; `now`: seconds since the epoch by the API server's clock; `custom`: the operator's
    expressions; `moved`: when a verdict changed last (monotonic); `live`: what is kept of each object.
    """

    items: Sequence[Desired]
    generations: Mapping[Identity, int]
    patience: float
    now: Callable[[], float]
    verdict: Verdict
    custom: CustomHealth = field(default_factory=no_expressions)
    moved: float = field(default_factory=time.monotonic)
    seen: dict[Identity, Health] = field(default_factory=dict)
    live: dict[Identity, Live] = field(default_factory=dict)
    _stood: dict[Identity, float] = field(default_factory=dict)
    _declared: dict[Identity, Desired] = field(init=False)
    _settling: dict[Identity, tuple[float, Object]] = field(default_factory=dict)
    _unjudged: dict[Identity, Object] = field(default_factory=dict)
    _content: list[Identity] = field(default_factory=list)
    _failed: float = 0.0

    def __post_init__(self) -> None:
        self._declared = {item.identity: item for item in self.items}

    def judge(self, identity: Identity, live: Object | None) -> bool:
        """Judge a new state of an object; True: it is healthy. Expressions are evaluated at the next beat."""
        found = self.verdict(identity, live)
        self._unjudged.pop(identity, None)
        self._content = [each for each in self._content if each != identity]
        if found is None and live is not None and self.custom.covers(identity.group_kind):
            self._unjudged[identity] = live
            if len(self._unjudged) >= _AT_ONCE:
                self._expressed()
            return False
        return self._take(identity, live, found or self._usual(identity, live))

    def _take(self, identity: Identity, live: Object | None, found: Health) -> bool:
        before = self.seen.get(identity)
        if live is None and found.healthy and before and before.status is Status.FAILED:
            found = before  # a Job that has failed removes itself as one that is complete does
        if before is None or (before.status, before.message) != (found.status, found.message):
            self.moved = self._stood[identity] = time.monotonic()
        self.seen[identity], self.live[identity] = found, Live.of(live)
        self._settling.pop(identity, None)
        if live is not None and found.again:
            kept = live if self.custom.covers(identity.group_kind) else remnant(live)  # expressions may look at all of it
            self._settling[identity] = (time.monotonic() + found.again, kept)
        if found.status is Status.FAILED:
            self._failed = self._failed or time.monotonic()
        return found.healthy

    def _usual(self, identity: Identity, live: Object | None) -> Health:
        declared = self._declared[identity].manifest.body() if live is None else None
        return judge(live, self.generations.get(identity, 0), self.now(), declared)

    def beat(self) -> list[Identity]:
        """Judge what expressions and time change; return what is healthy by that. Raises Ended: one has failed, or nothing changes."""
        self._expressed()
        healthy, self._content = self._content, []
        now = time.monotonic()
        due = [(identity, live) for identity, (when, live) in self._settling.items() if when <= now]
        healthy += [identity for identity, live in due if self.judge(identity, live)]
        if self._failed and any(health.status is Status.FAILED for health in self.seen.values()):
            if len(self.seen) == len(self.items) or now - self._failed >= _TOGETHER:
                raise Ended(stuck=False)
        elif now - self.moved >= self.patience:
            raise Ended(stuck=True)
        return healthy

    def _expressed(self) -> None:
        asked, self._unjudged = self._unjudged, {}
        found = self.custom.verdicts(asked.values(), self.generations) if asked else {}
        self._content += [identity for identity, health in found.items() if self._take(identity, asked[identity], health)]

    def unhealthy(self) -> list[tuple[Desired, Health]]:
        """Return what isn't healthy, what has failed first."""
        unseen = Health(Status.NOT_FOUND, "has not been looked at")
        found = [(item, self.seen.get(item.identity, unseen)) for item in self.items]
        left = [each for each in found if not each[1].healthy]
        return sorted(left, key=lambda each: (each[1].status is not Status.FAILED, each[0].identity))

    def stands(self, identity: Identity) -> float:
        """Return for how many seconds the verdict of an object has been as it is."""
        now = time.monotonic()
        return now - self._stood.get(identity, now)

    def notes(self) -> dict[Identity, str]:
        """Return what should be known of what is healthy."""
        noted = {identity: health.message for identity, health in self.seen.items() if health.healthy and health.message}
        return dict(sorted(noted.items()))

    def digest(self) -> str:
        """Return one value for all verdicts, by which another process knows whether anything has changed."""
        return hashlib.sha256(canonical(sorted((str(i), h.status, h.message) for i, h in self.seen.items()))).hexdigest()
