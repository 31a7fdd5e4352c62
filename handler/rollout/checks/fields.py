"""`fieldComparisons`: values of the object, found by JSONPath, are what they must be. Both dialects of upstream.

    fieldComparisons:                                                     the old one: only the list
      expectedValues: [{name: …, path: '{.status.replicas}', value: {path: '{.status.updatedReplicas}'}}]
      timeout: 1h
      progressTimeout: 5m

A path finds one value; where it finds none, `default` is its value, and under `success` a zero that Kubernetes omits; several are compared
with nothing. What is compared is JSON: 1 is 1.0, and no "1". Nothing passes before the object's controller has seen what was written.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from handler.health.kstatus import judge
from handler.model.field_masking import MASKED, is_sensitive, shown
from handler.model.health import Status
from handler.model.manifest import at
from handler.model.names import GroupKind
from handler.rollout import jsonpath
from handler.rollout.interfaces import Judged, Object, Options, Probe, Scene, Verdict
from handler.rollout.jsonpath import same
from handler.rollout.spec_fields import KEYS, Fields, limits

MOST = 100  # comparisons of one check
_VALUES = ("static", "staticInt64", "path")
_EXAMPLE = "write e.g. {name: done, path: '{.status.succeeded}', default: 0, value: {static: 1}}"
_SHOWN = 120  # characters of a value in a message
_SECRET = GroupKind("", "Secret")
_NOTHING: Any = object()  # what a path finds where there is nothing


class FieldComparisons:
    """The row."""

    def read(self, raw: Any, field: str) -> Options:
        """Read a list of comparisons, or a mapping that holds them."""
        fields = Fields({"expectedValues": raw} if isinstance(raw, list) else raw, field, ("expectedValues", *KEYS))
        found = limits(fields)
        items = fields.items("expectedValues", most=MOST)
        if not items and not fields.mistakes:
            fields.note("expectedValues", "compares nothing", _EXAMPLE)
        expected = [_comparison(item, place, fields) for item, place in items]
        if isinstance(raw, list):
            fields.mistakes = [_unwrapped(each, field) for each in fields.mistakes]
        fields.done()
        return {**found, "expectedValues": expected}

    def begin(self, options: Options, scene: Scene) -> Probe:
        """Begin for one step."""
        return _Probe(scene, tuple(map(_Comparison.of, options["expectedValues"])))


def _unwrapped(mistake: Any, field: str) -> Any:
    return type(mistake)(mistake.field.replace(f"{field}.expectedValues", field, 1), mistake.message, mistake.fix)


def _comparison(raw: Any, place: str, into: Fields) -> dict[str, Any]:
    fields = Fields(raw, place, ("name", "path", "default", "value"))
    default = {"default": _json(fields, "default")} if fields.has("default") else {}
    found = {"name": fields.text("name"), "path": _path(fields), **default, "value": _value(fields)}
    into.mistakes += fields.mistakes
    return found


def _value(fields: Fields) -> dict[str, Any]:
    if not fields.has("value"):
        fields.note("value", "is missing", _EXAMPLE)
        return {}
    value = Fields(fields.raw["value"], f"{fields.field}.value", _VALUES)
    given = [name for name in _VALUES if value.has(name)]
    if len(given) != 1 and not value.mistakes:
        fields.note("value", f"expected exactly one of {', '.join(_VALUES)}, found {' and '.join(given) or 'none'}", _EXAMPLE)
    found: dict[str, Any] = {}
    if given[:1] == ["path"]:
        found = {"path": _path(value)}
    elif given[:1] == ["staticInt64"]:
        found = {"static": value.whole("staticInt64", 0, -(1 << 63), (1 << 63) - 1)}
    elif given:
        found = {"static": _json(value, "static")}
    fields.mistakes += value.mistakes
    return found


def _path(fields: Fields) -> str:
    text = fields.text("path", required=True, most=jsonpath.LONGEST)
    try:
        return jsonpath.compiled(text).text if text else ""
    except jsonpath.Unreadable as error:
        fields.note("path", str(error), "write one path, e.g. {.status.readyReplicas}")
        return ""


def _json(fields: Fields, name: str) -> Any:
    value = fields.raw[name]
    try:
        return json.loads(json.dumps(value, allow_nan=False))
    except (ValueError, TypeError, RecursionError):
        fields.note(name, "isn't a value that an object's field can have", "write a number, text, true, false, a list or a mapping")
        return None


@dataclass(frozen=True, slots=True)
class _Side:
    path: jsonpath.Path
    default: Any = _NOTHING

    def value(self, live: Object, zeros: Object | None, effort: jsonpath.Effort) -> Any:
        try:
            found = self.path.find(live, effort)
            if not found and zeros is not None and self.default is _NOTHING:
                found = self.path.find(zeros, effort)
        except jsonpath.Spent:
            raise
        except jsonpath.TooMany:
            raise ValueError(f"{self.path.text} finds too many values; one is compared") from None
        if len(found) > 1:
            raise ValueError(f"{self.path.text} finds {len(found):,} values; one is compared")
        found = found or [self.default]
        effort.weigh(found[0])
        return found[0]


@dataclass(frozen=True, slots=True)
class _Comparison:
    name: str
    side: _Side
    expected: _Side | None
    static: Any

    @classmethod
    def of(cls, options: Mapping[str, Any]) -> _Comparison:
        value = options["value"]
        other = _Side(jsonpath.compiled(value["path"])) if "path" in value else None
        side = _Side(jsonpath.compiled(options["path"]), options.get("default", _NOTHING))
        return cls(options["name"], side, other, value.get("static"))

    def values(self, live: Object, zeros: Object | None, effort: jsonpath.Effort) -> tuple[Any, Any]:
        seen = self.side.value(live, zeros, effort)
        return seen, self.expected.value(live, zeros, effort) if self.expected else self.static

    def sentence(self, seen: str, wanted: str, *, holds: bool) -> str:
        other = f" ({self.expected.path.text})" if self.expected else ""
        return self.named(f"{self.side.path.text} is {seen}" + ("" if holds else f", expected {wanted}{other}"))

    def named(self, said: str) -> str:
        return f"{self.name}: {said}" if self.name else said


@dataclass(slots=True)
class _Probe:
    scene: Scene
    comparisons: tuple[_Comparison, ...]
    last: Object | None = None

    def look(self, live: Object | None, now: float) -> Judged:
        if live is None:
            return self._gone(now)
        self.last = live
        early = self._early(live)
        if early:
            return Judged(Verdict.PENDING, early, early)
        try:
            return self._compared(live)
        except RecursionError:
            return Judged(Verdict.FAILED, "is nested too deeply to compare")

    def _gone(self, now: float) -> Judged:
        if judge(None, 0, now, self.scene.declared).healthy:
            last = judge(self.last, 0, now) if self.last else None
            if last and last.status is Status.FAILED:
                return Judged(Verdict.FAILED, last.told(closed=self.scene.closed))
            if not self.scene.failing:
                return Judged(Verdict.PASSED, "has ended, and its ttlSecondsAfterFinished removed it")
        return Judged(Verdict.PENDING, "is not there", "gone")

    def _compared(self, live: Object) -> Judged:
        effort = self.scene.effort()
        zeros = None if self.scene.failing else filled(live, self.scene.identity.group_kind)
        seen_all, missing, values = [], [], []
        for each in self.comparisons:
            try:
                seen, wanted = each.values(live, zeros, effort)
            except ValueError as error:
                holds, said = False, each.named(str(error))
            else:
                holds = _NOTHING not in (seen, wanted) and same(seen, wanted)
                said = each.sentence(self._shown(seen, each), self._shown(wanted, each), holds=holds)
                values += [seen, wanted]
            seen_all.append(said)
            missing += [] if holds else [said]
        progress = hashlib.sha256(repr(values).encode()).hexdigest()
        return Judged(Verdict.PENDING if missing else Verdict.PASSED, "; ".join(missing or seen_all), progress)

    def _early(self, live: Object) -> str:
        if at(live, "metadata", "deletionTimestamp"):
            return "is being deleted"
        wanted, shown, observed = self.scene.generation, at(live, "metadata", "generation"), at(live, "status", "observedGeneration")
        if isinstance(shown, int) and shown < wanted:
            return f"is shown as of generation {shown}, {wanted} was written"
        if isinstance(observed, int) and observed < wanted:
            return f"its controller hasn't seen the newest change yet (generation {wanted}, seen: {observed})"
        return ""

    def _shown(self, value: Any, of: _Comparison) -> str:
        if value is _NOTHING:
            return "missing"
        kind, path = self.scene.identity.group_kind, of.side.path.text.strip("{}.$")
        if self.scene.closed or kind == _SECRET or is_sensitive(kind, path):
            return MASKED
        odd = isinstance(value, float) and not math.isfinite(value)
        whole = isinstance(value, dict | list)
        written = str(value) if odd else shown(kind, path, value) if whole else json.dumps(value, ensure_ascii=False)
        return written if len(written) <= _SHOWN else written[: _SHOWN - 1] + "…"


@dataclass(frozen=True, slots=True)
class Zeros:
    """A kind's omitted zeros. `status`, `spec`: fields and the value at which each is omitted; `wanted`, `counted`: the numbers of pods.

    Only where k8s.io/api omits a field, and the controller has observed an object that asks for no pods or has some. Else it is missing.
    """

    status: Mapping[str, Any]
    spec: Mapping[str, Any]
    wanted: tuple[str, str] = ("spec", "replicas")
    counted: tuple[str, str] = ("status", "replicas")

    def known(self, live: Mapping[str, Any]) -> bool:
        """Whether the controller has counted."""
        if not isinstance(at(live, "status", "observedGeneration"), int):
            return False
        return at(live, *self.wanted) == 0 or (at(live, *self.counted) or 0) > 0


@dataclass(frozen=True, slots=True)
class JobZeros(Zeros):
    """A Job's: its status has no generation, and its counters are written together with its start or its first condition."""

    def known(self, live: Mapping[str, Any]) -> bool:
        """Whether the controller has counted."""
        return bool(at(live, "status", "startTime") or at(live, "status", "conditions"))


_DEPLOYMENT = ("replicas", "updatedReplicas", "readyReplicas", "availableReplicas", "unavailableReplicas")
_STATEFUL_SET = ("readyReplicas", "currentReplicas", "updatedReplicas")
_DAEMON_SET = ("updatedNumberScheduled", "numberAvailable", "numberUnavailable")
_REPLICAS = ("fullyLabeledReplicas", "readyReplicas", "availableReplicas")
_DELAY = {"minReadySeconds": 0}
ZEROS: Mapping[GroupKind, Zeros] = {
    GroupKind("apps", "Deployment"): Zeros(dict.fromkeys(_DEPLOYMENT, 0), {**_DELAY, "paused": False}),
    GroupKind("apps", "StatefulSet"): Zeros(dict.fromkeys(_STATEFUL_SET, 0), _DELAY),
    GroupKind("apps", "DaemonSet"): Zeros(
        dict.fromkeys(_DAEMON_SET, 0), _DELAY, ("status", "desiredNumberScheduled"), ("status", "currentNumberScheduled")
    ),
    GroupKind("apps", "ReplicaSet"): Zeros(dict.fromkeys(_REPLICAS, 0), _DELAY),
    GroupKind("", "ReplicationController"): Zeros(dict.fromkeys(_REPLICAS, 0), _DELAY),
    GroupKind("batch", "Job"): JobZeros(dict.fromkeys(("active", "succeeded", "failed"), 0), {}),
}


def filled(live: Mapping[str, Any], kind: GroupKind) -> dict[str, Any] | None:
    """Return an object with the zeros that Kubernetes has omitted; None: its kind omits none, or its controller hasn't counted yet."""
    zeros = ZEROS.get(kind)
    if zeros is None or not zeros.known(live):
        return None
    return {**live, "status": {**zeros.status, **live["status"]}, "spec": {**zeros.spec, **(live.get("spec") or {})}}
