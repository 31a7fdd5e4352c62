"""Why an object isn't healthy, from its pods and the Warning events about it, while a run still waits for it. Pure.

    its pods, by their own word       a container waits in vain or ended, no Node, evicted       at once
    Warning events                    about the worst pod, the object, its ReplicaSets            at once
    neither, but no change for STILL  what the pod lacks                                          inferred

Law: a Warning counts while it may be today's cause: newer than the rollout, or repeated until now. A finding is new by its causes, not by
its words.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from handler.health.kinds.pods import WITH_PODS, containers, pod, trouble
from handler.health.kinds.reading import as_said, condition, count, moment, said
from handler.health.stuck_pods import DueRevision, is_stuck, revision_of
from handler.model.advice import advice
from handler.model.manifest import at, items_at
from handler.model.names import Identity, kubectl
from handler.model.numbers import many

STILL = 15.0  # seconds for which a verdict may stand before what no pod and no event says is inferred
STOOD = f"nothing has changed for {STILL:.0f}s"
PAST = "another revision"
SLACK = 10.0  # seconds by which clocks of a cluster may differ
_AT_ONCE = 2.0  # seconds at most between an event and the condition that a controller writes with it
_CONTINUES = 360.0  # seconds after its last event for which a repeated Warning goes on: clients send one in five minutes of many alike
_WARNINGS = 2  # warnings shown of a pod, and of an object
_REASON = re.compile(r"[A-Z][A-Za-z]{0,63}|exit code \d{1,3}")
"""What Kubernetes calls a reason, a word that programs compare, and how a container ended."""
_ERROR = "Error: "
"""What a kubelet writes before a reason that the container's state has as well: such an event says less than the one before it."""

Object = dict[str, Any]


class OwnerRef(NamedTuple):
    """Kind and name, in one namespace."""

    kind: str
    name: str


@dataclass(frozen=True, slots=True)
class Warned:
    """One Warning event. `at`: when it happened last, in seconds since the epoch; `times`: how often."""

    about: OwnerRef
    uid: str
    reason: str
    message: str
    at: float
    times: int = 1

    @classmethod
    def of(cls, event: Object, at_last: str) -> Warned:
        """Read an event of either API group. `at_last`: when it happened last, RFC 3339."""
        about = at(event, "involvedObject") or at(event, "regarding")
        owner = OwnerRef(said(at(about, "kind")), said(at(about, "name")))
        message = without_output(said(at(event, "message")) or said(at(event, "note")))
        times = max(count(event, "count"), count(event, "series", "count"), count(event, "deprecatedCount"), 1)
        return cls(owner, said(at(about, "uid")), said(at(event, "reason")), message, moment(at_last) or 0.0, times)

    @property
    def text(self) -> str:
        """As it is shown."""
        return f"Warning {as_said(self.reason)}: {as_said(self.message)}"

    @property
    def bare(self) -> str:
        """The same without what may hold anything."""
        return f"Warning {self.reason}" if _REASON.fullmatch(self.reason) else "Warning"


class Live(NamedTuple):
    """What is kept of a live object. `uid`: empty: there is none; `changed`: when one of its conditions did last, since the epoch.

    `due`: which pods it is to have, where it says so.
    """

    uid: str = ""
    changed: float = 0.0
    due: DueRevision = DueRevision()

    @classmethod
    def of(cls, live: Object | None) -> Live:
        """Read a live object; None: it isn't there."""
        times = (moment(at(each, "lastTransitionTime")) for each in items_at(live, "status", "conditions"))
        return cls(said(at(live, "metadata", "uid")), max((each for each in times if each is not None), default=0.0), DueRevision.of(live))


@dataclass(frozen=True, slots=True)
class Subject:
    """An object to be explained: `said`: its verdict; `still`: that has stood for `STILL`; `selector`: of its pods, empty: none.

    `closed`: of what is said of it and its pods only the reasons are repeated (`handler.plan.closed`).
    """

    identity: Identity
    live: Live
    said: str
    still: bool = False
    selector: str = ""
    closed: bool = False

    @property
    def has_pods(self) -> bool:
        """Whether it is a pod, or pods of it are looked at."""
        return self.identity.group_kind in WITH_PODS and bool(self.selector or self.identity.kind == "Pod")


@dataclass(frozen=True, slots=True)
class Finding:
    """What explains an object. `causes`: the reasons it consists of, empty: there is nothing to say yet; `pod`: which explains most."""

    causes: tuple[str, ...] = ()
    text: str = ""
    pod: Object | None = field(default=None, compare=False, repr=False)
    closed: bool = False

    def at_last(self, now: float) -> str:
        """Return what is said where nothing more will come of it: where nothing is wrong so far, what the pod lacks."""
        return self.text or (_lack(self.pod, now) if self.pod and not self.closed else "")


@dataclass(frozen=True, slots=True)
class NamespaceSight:
    """What was read of one namespace. `since`: when the rollout began; `now`: both in seconds, by the API server's clock."""

    pods: Mapping[OwnerRef, Sequence[Object]]
    warnings: Mapping[OwnerRef, Sequence[Warned]]
    since: float
    now: float

    @classmethod
    def of(cls, pods: Iterable[Object], warnings: Iterable[Warned], since: float, now: float) -> NamespaceSight:
        """Sort what was read by what it belongs to: a pod of a ReplicaSet is its Deployment's, too."""
        owned: dict[OwnerRef, list[Object]] = defaultdict(list)
        about: dict[OwnerRef, list[Warned]] = defaultdict(list)
        for each in pods:
            for owner in _owners(each):
                owned[owner].append(each)
        for warned in warnings:
            if not warned.reason or not warned.message:
                continue
            for owner in _with_deployment(warned.about):
                about[owner].append(warned)
        newest_first = {owner: sorted(found, key=lambda each: each.at, reverse=True) for owner, found in about.items()}
        return cls(owned, newest_first, since, now)

    def about(self, live: Object) -> list[Warned]:
        """Return the Warnings about a pod that may still explain how it does."""
        owner, uid = OwnerRef("Pod", _name(live)), said(at(live, "metadata", "uid"))
        past, placed = _changed(live) - SLACK, condition(live, "PodScheduled").true
        found = [each for each in self.warnings.get(owner, ()) if each.uid == uid and each.at >= past]
        return [each for each in found if not (placed and each.reason == "FailedScheduling")]

    def about_owner(self, subject: Subject, past: float) -> list[Warned]:
        """Return the Warnings about an object, and a Deployment's ReplicaSets, but for what happened before `past`."""
        owner = OwnerRef(subject.identity.kind, subject.identity.name)
        mine = [each for each in self.warnings.get(owner, ()) if each.uid == subject.live.uid or each.about != owner]
        return [each for each in mine if subject.live.uid and each.at >= past and self._counts(each)]

    def _counts(self, warned: Warned) -> bool:
        return warned.at >= self.since - SLACK or (warned.times > 1 and self.now - warned.at <= _CONTINUES)


def diagnose(subject: Subject, sight: NamespaceSight) -> Finding:
    """Explain `subject` by `sight`, what was read of its namespace."""
    owned = sight.pods.get(OwnerRef(subject.identity.kind, subject.identity.name), ()) if subject.has_pods else ()
    pods = [each for each in owned if at(each, "metadata", "deletionTimestamp") is None]
    worst = _worst(subject, pods, sight)
    explained = _Explanation(subject.said, subject.closed)
    if worst is not None:
        explained.pod(worst, sight.about(worst))
        if subject.live.due.is_past(worst) and (subject.still or is_stuck(worst, sight.now)):
            explained.past(Identity("", "Pod", subject.identity.namespace, _name(worst)))
    explained.warnings(sight.about_owner(subject, _past(subject, pods)))
    if not explained.causes and subject.still:
        explained.infer(worst, sight.now, none=subject.has_pods and not pods)
    return Finding(tuple(dict.fromkeys(explained.causes)), "; ".join(explained.parts), worst, subject.closed)


def _past(subject: Subject, pods: Sequence[Object]) -> float:
    """Return when a pod was made or a controller changed a condition: earlier Warnings are outdated."""
    if subject.identity.group_kind in WITH_PODS:
        return max(map(_created, pods), default=0.0) if subject.identity.kind != "Pod" else 0.0
    return subject.live.changed - _AT_ONCE


_PROBE = re.compile(r"(?P<probe>(?:Readiness|Liveness|Startup) probe \w+): (?P<output>.*)", re.DOTALL)
_KUBELETS = re.compile(
    r"HTTP probe failed with statuscode: \d{3}|command timed out"
    r"|(?:Get \"[^\"]*\": )?((?:dial tcp [\da-f.:\[\]]{1,60}: )?(?:connect: )?"
    r"(?:connection refused|i/o timeout|no route to host|connection reset by peer|EOF|context deadline exceeded"
    r"(?: \(Client\.Timeout exceeded while awaiting headers\))?))"
)
"""What the kubelet itself says of a probe, but for the URL, whose query may hold a token."""
_HOOK = re.compile(r"(?P<hook>(?:Exec|Http) lifecycle hook .*? failed) - error: .*", re.DOTALL | re.IGNORECASE)


def without_output(message: str) -> str:
    """Return an event's message without what a container's program wrote: a probe, or a hook of its life, repeats that."""
    probe, hook = _PROBE.fullmatch(message), _HOOK.fullmatch(message)
    if probe:
        said = _KUBELETS.fullmatch(probe["output"])
        return f"{probe['probe']}: {said[1] or said[0]}" if said else probe["probe"]
    return hook["hook"] if hook else message


def names(text: str, cause: str) -> bool:
    """Whether a text names a cause; `exit code 1` isn't named by `exit code 137`."""
    start = text.find(cause)
    while start >= 0:
        end = start + len(cause)
        if not text[end : end + 1].isalnum():
            return True
        start = text.find(cause, start + 1)
    return False


@dataclass(slots=True)
class _Explanation:
    """The words of a finding as they come together. `said`: the object's verdict; `closed`: see `Subject`."""

    said: str
    closed: bool
    parts: list[str] = field(default_factory=list)
    causes: list[str] = field(default_factory=list)

    def pod(self, live: Object, warned: Iterable[Warned]) -> None:
        wrong = trouble(live)
        texts = [*(filter(_REASON.fullmatch, wrong) if self.closed else wrong.values())]
        restarts = max((count({"status": status}, "status", "restartCount") for status in containers(live)), default=0)
        texts += [f"restarted {many(restarts, 'time')}"] if wrong and restarts else []
        self.causes += wrong
        texts += self._fresh(warned, "; ".join(texts))
        if texts:
            self.parts.append(f"pod {_name(live)}: {'; '.join(texts)}")

    def past(self, stuck: Identity) -> None:
        """Say of a pod that its failure isn't that of the revision which is due, and how it is replaced."""
        why = "is of another revision than is due, and stays until it is deleted"
        self.parts.append(advice("pod {text} {text}: {text}", stuck.name, why, kubectl("delete", stuck)))
        self.causes.append(PAST)

    def warnings(self, warned: Iterable[Warned]) -> None:
        self.parts += self._fresh(warned, "; ".join(self.parts))

    def infer(self, worst: Object | None, now: float, *, none: bool) -> None:
        if worst is not None and not self.closed:
            self.parts.append(_lack(worst, now))
        self.parts += ["it has no pods", STOOD] if none else [STOOD]
        self.causes.append(STOOD)

    def _fresh(self, warned: Iterable[Warned], before: str) -> Iterator[str]:
        text, number = f"{self.said}; {before}", 0
        for each in warned:
            said = each.bare if self.closed else each.text
            if names(text, each.reason):
                self.causes.append(each.reason)
            elif number < _WARNINGS and (self.closed or each.message.removeprefix(_ERROR) not in text):
                number, text = number + 1, f"{text}; {said}"
                self.causes.append(each.reason)
                yield said


def _worst(subject: Subject, pods: Sequence[Object], sight: NamespaceSight) -> Object | None:
    """Return the pod that explains most: of the revision that is due, else the newest; unless nothing of that does and nothing changes."""
    if not pods:
        return None

    def worth(each: Object) -> tuple[bool, bool, float]:
        return bool(trouble(each)), bool(sight.about(each)), _created(each)

    ill, due = [each for each in pods if not pod(each, sight.now).healthy], subject.live.due
    newest = _revision(max((each for each in pods if revision_of(each) == due.revision), key=_created, default=max(pods, key=_created)))
    found = max((each for each in ill if _revision(each) == newest), key=worth, default=None)
    found = found or max((each for each in ill if due.is_past(each) and is_stuck(each, sight.now)), key=worth, default=None)
    if subject.still and (found is None or not any(worth(found)[:2])):
        return max(ill, key=worth, default=None)
    return found


def _owners(live: Object) -> Iterator[OwnerRef]:
    yield OwnerRef("Pod", _name(live))
    for each in items_at(live, "metadata", "ownerReferences"):
        if at(each, "controller") is True:
            yield from _with_deployment(OwnerRef(said(at(each, "kind")), said(at(each, "name"))))


def _with_deployment(owner: OwnerRef) -> Iterator[OwnerRef]:
    """Yield an owner, and the Deployment that made it: the name of its ReplicaSet is its own and a hash."""
    yield owner
    if owner.kind == "ReplicaSet" and "-" in owner.name:
        yield OwnerRef("Deployment", owner.name.rpartition("-")[0])


def _revision(live: Object) -> tuple[Any, Any]:
    labels = at(live, "metadata", "labels")
    return str(at(labels, "pod-template-hash")), str(at(labels, "controller-revision-hash"))


def _changed(live: Object) -> float:
    places = (("running", "startedAt"), ("terminated", "finishedAt"))
    states = [at(status, "state", *place) for status in containers(live) for place in places]
    return max((moment(each) or 0.0 for each in states), default=0.0)


def _created(live: Object) -> float:
    return moment(at(live, "metadata", "creationTimestamp")) or 0.0


def _lack(live: Object, now: float) -> str:
    return f"pod {_name(live)}: {pod(live, now).message}"


def _name(live: Object) -> str:
    return said(at(live, "metadata", "name"))
