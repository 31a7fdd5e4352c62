"""A Deployment's canary: a second Deployment with the new template and a share of the replicas, behind the same Services. Pure.

Its pods have all labels of the new template (Services, NetworkPolicies, PodDisruptionBudgets select them) and `anneal.dev/canary`, all that
the canary selects by: a selector can't change, so it serves every later template. The stable Deployment's selector matches them, too, but
a controller adopts only what has no owner. The canary has the stable one's labels, but none of its annotations, which act.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any

from handler.config.value_formats import duration
from handler.model.manifest import Manifest, at
from handler.model.names import IDENTITY, GroupKind, Identity
from handler.model.rollout import Check
from handler.rollout.interfaces import Object, Options
from handler.rollout.spec_fields import Fields

LABEL = "anneal.dev/canary"  # on a canary and its pods: the name of the Deployment that it stands beside
KEYS = ("steps",)
METRICS = "prometheus"  # the type of the checks that ask for metrics
DEPLOYMENT = GroupKind("apps", "Deployment")
DEFAULT: Options = {"steps": [{"weight": 10, "for": 120.0}, {"weight": 50, "for": 300.0}]}  # the steps of a canary that names none
FAILURE_LIMIT = 3  # samples of a metric that may fail in a row while a canary is held, unless its check says otherwise
_SUFFIX = "-canary"
_LABEL_MOST = 63  # characters of a label's value, and of a name that serves everywhere (RFC 1123)
_NAME_MOST = 242  # characters of a Deployment's name: its ReplicaSets add eleven, and may have 253


# --- what a Rollout says
def read(raw: Any, field: str) -> Options:
    """Read a step's `steps: [{weight: 10, for: 2m}, ...]`: weights in percent, rising; without any, the default. Raises SpecError."""
    fields = Fields(raw, field, KEYS)
    if not fields.has("steps"):
        fields.done()
        return DEFAULT
    found = [_step(item, place, fields) for item, place in fields.items("steps", most=100)]
    if not found and not fields.mistakes:
        fields.note("steps", "has no step", "write at least one, e.g. steps: [{weight: 10, for: 2m}], or leave `steps` out")
    for index in range(1, len(found)):
        if not fields.mistakes and found[index]["weight"] <= found[index - 1]["weight"]:
            fields.note(f"steps[{index}].weight", f"is {found[index]['weight']}, after {found[index - 1]['weight']}", "weights only rise")
    fields.done()
    return {"steps": found}


def _step(raw: Any, place: str, into: Fields) -> dict[str, Any]:
    fields = Fields(raw, place, ("weight", "for"))
    for name in ("weight", "for"):
        if isinstance(raw, dict) and not fields.has(name):
            fields.note(name, "is missing", "write e.g. {weight: 10, for: 2m}")
    found = {"weight": fields.whole("weight", 100, 1, 100), "for": fields.seconds("for", 0.0)}
    into.mistakes += fields.mistakes
    return found


def judged_by(success: Sequence[Check]) -> tuple[Check, ...]:
    """Return the checks of a canary's success: a metric that keeps failing ends it, long before the check's time is over."""
    return tuple(_limited(each) if each.type == METRICS else each for each in success)


def _limited(check: Check) -> Check:
    return replace(check, options={**check.options, "failureLimit": check.options.get("failureLimit") or FAILURE_LIMIT})


def weights(options: Options) -> Sequence[tuple[int, float]]:
    """Return the steps: how many percent, held for how many seconds."""
    return [(int(step["weight"]), float(step["for"])) for step in options["steps"]]


def steps_text(options: Options) -> str:
    """Say what the steps are: `10 % for 2m, 50 % for 10m`."""
    return ", ".join(f"{weight} % for {duration(seconds)}" for weight, seconds in weights(options))


# --- the canary itself
def identity_of_canary(stable: Identity) -> Identity:
    """Return the identity of a Deployment's canary: `<name>-canary`; a name too long for that is cut and made unique by its hash."""
    most = _LABEL_MOST if len(stable.name) <= _LABEL_MOST else _NAME_MOST
    name = stable.name + _SUFFIX
    if len(name) > most:
        digest = hashlib.sha256(stable.name.encode()).hexdigest()[:8]
        name = f"{stable.name[: most - len(digest) - len(_SUFFIX) - 1].rstrip('-.')}-{digest}{_SUFFIX}"
    return Identity(stable.group, stable.kind, stable.namespace, name)


def replicas(stable: int, weight: int) -> int:
    """Return how many replicas a canary has: so many percent of the stable ones, rounded up, at least one."""
    return max(1, math.ceil(stable * weight / 100))


def replicas_of(live: Object) -> int:
    """Return the replicas that a live Deployment wants, whatever scales it."""
    value = at(live, "spec", "replicas")
    return value if isinstance(value, int) else 1


def manifest(declared: Manifest, wanted: Object, target: str, count: int, without: Collection[str] = ()) -> Manifest:
    """Return a canary of `count` replicas, without the labels in `without`; `wanted`: what the stable Deployment would become."""
    mark = {LABEL: _value(declared.identity.name)}
    identity, labels = identity_of_canary(declared.identity), _mapping(at(declared.body(), "metadata", "labels"))
    metadata = {
        "name": identity.name,
        "namespace": identity.namespace,
        "labels": {key: value for key, value in labels.items() if key not in without} | mark,
        "annotations": {IDENTITY: identity.mark(target)},
    }
    spec = _mapping(wanted.get("spec"))
    template = _mapping(spec.get("template"))
    pod = _mapping(template.get("metadata"))
    pod = {key: value for key, value in pod.items() if value is not None} | {"labels": _mapping(pod.get("labels")) | mark}
    spec |= {"replicas": count, "selector": {"matchLabels": mark}, "template": template | {"metadata": pod}}
    body = {"apiVersion": declared.api_version, "kind": declared.identity.kind, "metadata": metadata, "spec": spec}
    return declared.with_body(body)


def _mapping(value: Any) -> dict[str, Any]:
    return dict(value) if isinstance(value, dict) else {}


def _value(name: str) -> str:
    if len(name) <= _LABEL_MOST:
        return name
    return f"{name[: _LABEL_MOST - 9].rstrip('-.')}-{hashlib.sha256(name.encode()).hexdigest()[:8]}"


def is_needed(live: Object | None, wanted: Object) -> bool:
    """Whether a Deployment goes by canary: it runs, on some replica, and its pods are to be others. `wanted`: what it would become."""
    return live is not None and replicas_of(live) > 0 and at(live, "spec", "template") != at(wanted, "spec", "template")


# --- what must be known after a restart
class CanaryPhase(StrEnum):
    """Where a canary stands. `scale`: brought to its share; `hold`: held there; `promote`: the stable one rolls; `remove`: it goes."""

    SCALE = "scale"
    HOLD = "hold"
    PROMOTE = "promote"
    REMOVE = "remove"


def moment(seconds: float) -> str:
    """Write seconds since the epoch as RFC 3339 in UTC, to the millisecond."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _is_moment(text: str) -> bool:
    if not re.fullmatch(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{3}Z", text):
        return False
    try:
        return datetime.fromisoformat(text).year > 1970
    except ValueError:
        return False


@dataclass(frozen=True, slots=True)
class CanaryMark:
    """The journal's mark of a canary's step: `index` of its steps, `since` in RFC 3339; `reason`: why it was refused, empty: it wasn't."""

    phase: CanaryPhase
    index: int
    since: str
    reason: str = ""

    def text(self) -> str:
        """Write it: `hold 1 2026-01-31T12:00:00.000Z`, `remove 1 2026-01-31T12:00:00.000Z errors: 0.5`."""
        return f"{self.phase} {self.index} {self.since} {self.reason}".rstrip()

    @classmethod
    def of(cls, text: str) -> CanaryMark | None:
        """Read it; None for what `text` hasn't written: then the step begins anew, which repeats what can be repeated."""
        phase, _, rest = text.partition(" ")
        index, _, rest = rest.partition(" ")
        since, _, reason = rest.partition(" ")
        if phase not in set(CanaryPhase) or not re.fullmatch("[0-9]{1,3}", index) or not _is_moment(since):
            return None
        return cls(CanaryPhase(phase), int(index), since, reason)

    def share(self, options: Options) -> int:
        """Return how many percent have the new pods: the canary's share, all of them once it is promoted, none where it was refused."""
        if self.phase in (CanaryPhase.SCALE, CanaryPhase.HOLD):
            return weights(options)[self.index][0]
        return 0 if self.reason else 100
