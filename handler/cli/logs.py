"""What the containers of unhealthy objects have logged last, read live with the rights of the kubeconfig that the command uses.

Law: a log is printed, never kept: no record, no log of ours and no API has it. It is masked, or withheld (`handler.engine.waits.log_tail`).
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from handler.cli.session import Session
from handler.engine.planner.due import FAILED
from handler.health.kinds.pods import WITH_PODS, pods_of
from handler.model.errors import AnnealError, RolloutFailed
from handler.model.names import Identity, Resource
from handler.model.result import Result

if TYPE_CHECKING:
    from handler.cluster.evidence import Evidence
    from handler.cluster.live import Object
    from handler.config.settings import Target
    from handler.engine.waits.log_tail import LogTail
    from handler.state.record import State

MOST = 5  # objects of a target whose logs are read
_GROUPS = {each.kind: each.group for each in WITH_PODS}


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
            yield f"{self.object}: its pods can't be read; kubectl auth can-i list pods -n {namespace} says whether you may"
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
            yield f"| nothing; or it can't be read: kubectl auth can-i get pods --subresource=log -n {namespace}"
        yield from (f"| {line}" for line in tail.lines)


def of_record(state: State | None) -> list[str]:
    """Return which objects a record calls unhealthy: those of failed steps, what the newest wait left, and what does worst now."""
    steps = state.rollout.steps if state and state.rollout else ()
    lines = (*state.status.unhealthy, *state.health.worst) if state else ()
    return [*(step.object for step in steps if step.outcome == FAILED), *(line.partition(": ")[0] for line in lines)]


def read(session: Session, target: Target, subjects: Iterable[str]) -> list[LoggedPod]:
    """Read the logs of the first of these objects that have pods, with the kubeconfig's own rights. Raises AnnealError.

    `subjects`: objects as messages call them, `Deployment/shop/api`; others than workloads are passed over.
    """
    found = [identity for subject in dict.fromkeys(subjects) if (identity := _workload(subject))][:MOST]
    if not found:
        return []
    from handler.cluster.evidence import Evidence
    from handler.engine.waits.log_tail import read_tail

    api = session.handler.api(target, impersonated=False)
    now = api.server_time()

    def logged(identity: Identity) -> LoggedPod:
        evidence = Evidence(api)
        pod = _worst_pod(evidence, identity, now)
        if pod is None:
            return LoggedPod(str(identity), None, evidence.denied or evidence.broken)
        return LoggedPod(str(identity), read_tail(evidence, pod, identity.namespace, session.secrets.mask))

    return [logged(identity) for identity in found]


def _worst_pod(evidence: Evidence, identity: Identity, now: float) -> Object | None:
    """Return the pod of an object that does worst; None: none of its pods does badly, or they can't be read."""
    from handler.engine.waits.explanation import explain
    from handler.health.diagnosis import Live, Subject

    live = evidence.live(Resource(identity.group, "v1", identity.kind, f"{identity.kind.lower()}s", namespaced=True), identity)
    subject = Subject(identity, Live.of(live), "", still=True, selector=pods_of(identity, live or {}))
    found = explain(evidence, [subject], 0.0, now).get(identity) if live else None
    return found.pod if found else None


def after_failure(session: Session, ended: Result) -> None:
    """Print what the containers of a failed rollout have logged, where a person looks: the log of a pipeline keeps what it is given."""
    target = session.settings.target(ended.target)
    if session.output.as_json or not sys.stdout.isatty() or target is None or ended.code != RolloutFailed.code:
        return
    try:
        found = read(session, target, (problem.subject for problem in ended.problems))
    except AnnealError as error:
        session.output.note(f"the logs can't be read: {error}")
        return
    for line in (line for each in found if each.tail for line in each.lines()):
        session.output.line(line, "dim")


def _workload(subject: str) -> Identity | None:
    kind, *names = subject.split("/")
    if kind not in _GROUPS or len(names) != 2 or not all(names):
        return None
    return Identity(_GROUPS[kind], kind, *names)
