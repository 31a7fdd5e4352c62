"""What containers have logged last, read live: of what fares badly (command line), or of any pod of a target that is named (page).

Law: a log is shown, never kept: no record, no cache and no log of ours has it. It is masked, or withheld (`handler.engine.waits.log_tail`).
Whose rights read it says the caller, by the `Api`: the command line the kubeconfig's, the page the target's identity. By name only a pod is
asked for that the target's inventory has; its uid is compared before its log is read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass, replace
from typing import Any

from handler.cluster.api import Api
from handler.cluster.evidence import Evidence
from handler.cluster.live import Object
from handler.engine.run.errors import RequestRefused
from handler.engine.waits.evidence import explain
from handler.engine.waits.log_tail import LoggedContainer, LogTail, logged_containers, read_container, read_tail
from handler.health.diagnosis import Live, Subject
from handler.health.kinds.pods import WITH_PODS, pods_of
from handler.inspect.inventory_tree import Inventory, SeenObject
from handler.model.advice import advice
from handler.model.manifest import at
from handler.model.names import Identity, Resource

MOST = 5  # objects of a target whose logs are read
_PODS = 50  # of one object that are listed
LINES = 100  # of a log that is asked for by name
_GROUPS = {each.kind: each.group for each in WITH_PODS}
_POD = Resource("", "v1", "Pod", "pods", namespaced=True)


@dataclass(frozen=True, slots=True)
class LoggedPod:
    """One object and the end of its worst pod's log. `tail`: None: no container of it has run, or none does badly now.

    `unread`: it or its pods can't be read.
    """

    object: str
    tail: LogTail | None
    unread: bool = False

    def facts(self) -> dict[str, Any]:
        """Return it as JSON."""
        return {"object": self.object, "unread": self.unread, **(asdict(self.tail) if self.tail else {})}

    def lines(self) -> Iterator[str]:
        """Yield it as lines."""
        tail, namespace = self.tail, self.object.split("/")[1]
        if tail is None and self.unread:
            yield advice("{text}: its pods can't be read; kubectl auth can-i list pods -n {} says whether you may", self.object, namespace)
            return
        if tail is None:
            yield f"{self.object}: none of its containers that have run does badly now"
            return
        when = ", before its last restart" if tail.previous else ""
        yield f"{self.object}, pod {tail.pod}, container {tail.container}{when}:"
        if tail.withheld:
            yield f"| withheld: {tail.withheld}"
            yield f"| {tail.fix}"
        elif not tail.lines:
            yield advice("| nothing; or it can't be read: kubectl auth can-i get pods --subresource=log -n {}", namespace)
        yield from (f"| {line}" for line in tail.lines)


def read(api: Callable[[], Api], subjects: Iterable[str]) -> list[LoggedPod]:
    """Read the logs of the first of these objects that have pods, with the rights of `api`. Raises AnnealError.

    `subjects`: objects as messages call them, `Deployment/shop/api`; others than workloads are passed over.
    """
    found = [identity for subject in dict.fromkeys(subjects) if (identity := _workload(subject))][:MOST]
    if not found:
        return []
    reader = api()
    now = reader.server_time()

    def logged(identity: Identity) -> LoggedPod:
        evidence = Evidence(reader)
        pod = _worst_pod(evidence, identity, now)
        if pod is None:
            return LoggedPod(str(identity), None, evidence.denied or evidence.broken)
        return LoggedPod(str(identity), read_tail(evidence, pod, identity.namespace))

    return [logged(identity) for identity in found]


def _worst_pod(evidence: Evidence, identity: Identity, now: float) -> Object | None:
    """Return the pod of an object that does worst; None: none of its pods does badly, or they can't be read."""
    live = evidence.live(Resource(identity.group, "v1", identity.kind, f"{identity.kind.lower()}s", namespaced=True), identity)
    subject = Subject(identity, Live.of(live), "", still=True, selector=pods_of(identity, live or {}))
    found = explain(evidence, [subject], 0.0, now).get(identity) if live else None
    return found.pod if found else None


def _workload(subject: str) -> Identity | None:
    kind, *names = subject.split("/")
    if kind not in _GROUPS or len(names) != 2 or not all(names):
        return None
    return Identity(_GROUPS[kind], kind, *names)


# --- by name
@dataclass(frozen=True, slots=True)
class PodLog:
    """The end of one pod's log. `pod` empty: there is none; the rest: see `LogTail`.

    `containers`: those of this pod that have a log; `pods`: those of the object, where it has several.
    """

    target: str
    object: str
    pod: str = ""
    container: str = ""
    previous: bool = False
    lines: tuple[str, ...] = ()
    withheld: str = ""
    fix: str = ""
    notes: tuple[str, ...] = ()
    containers: tuple[LoggedContainer, ...] = ()
    pods: tuple[str, ...] = ()


def asked(inventory: Inventory, subject: str) -> SeenObject:
    """Return the object of a target's inventory whose logs are asked for. Raises RequestRefused: it is none, or has no logs."""
    found = inventory.named(subject)
    if found is None:
        seen = "is no pod of this target, and has none below it"
        raise RequestRefused.of(subject[:200], seen, fix=f"the inventory of {inventory.target} shows what has logs")
    return found


def read_named(api: Api, inventory: Inventory, top: SeenObject, container: str = "", *, previous: bool = False) -> PodLog:
    """Read the log of the pod at or below an object that does worst, or else of the newest, with the rights of `api`.

    `container`: whose, empty: the one that explains most; `previous`: from before its last restart. Raises RequestRefused: it has none.
    """
    subject, pods = str(top.identity), inventory.pods(top)
    if not pods:
        return PodLog(inventory.target, subject, notes=("it has no pods, or they can't be listed",))
    evidence, identity = Evidence(api, LINES), pods[0].identity
    pod = evidence.live(_POD, identity)
    if pod is None or at(pod, "metadata", "uid") != pods[0].uid:
        why = "can't be read with the target's identity" if evidence.denied or evidence.broken else "is gone; another may have come"
        return PodLog(inventory.target, subject, identity.name, notes=(f"{identity} {why}",))
    known = logged_containers(pod)
    if container:
        _require_logged(known, identity, container, previous=previous)
        tail: LogTail | None = read_container(evidence, pod, identity.namespace, container, previous=previous)
    else:
        tail = read_tail(evidence, pod, identity.namespace, healthy=True)
    others = tuple(str(each.identity) for each in pods[:_PODS]) if len(pods) > 1 else ()
    if tail is None:
        return PodLog(inventory.target, subject, identity.name, notes=("none of its containers has run yet",), pods=others)
    about = (tail.pod, tail.container, tail.previous, tail.lines, tail.withheld, tail.fix)
    found = PodLog(inventory.target, subject, *about, containers=known, pods=others)
    return found if tail.lines or tail.withheld else _empty(found, evidence, identity, api)


def _require_logged(known: Iterable[LoggedContainer], pod: Identity, container: str, *, previous: bool) -> None:
    if any(each.name == container and (each.previous or not previous) for each in known):
        return
    seen = "has no container of that name with such a log" + (", for it wasn't restarted" if previous else "")
    raise RequestRefused.of(f"{pod}, container {container[:100]}", seen, fix="its page without a container lists those that have one")


def _empty(found: PodLog, evidence: Evidence, identity: Identity, api: Api) -> PodLog:
    """Say of a log without lines why that may be."""
    who = f" --as system:serviceaccount:{api.impersonate.replace('/', ':', 1)}" if api.impersonate else ""
    ask = advice("kubectl auth can-i get pods --subresource=log -n {}{}", identity.namespace, who)
    why = f"its log can't be read: {ask}" if evidence.denied or evidence.broken else "it has logged nothing"
    return replace(found, notes=(why,))
