"""The end of a failing container's log, masked; withheld where masking is impossible.

Law: a log is shown only after every Secret in the pod's spec was read, with the rights of its reader, and what it holds was masked: that
the container was given, and nothing else is looked for, so that a log answers no question about another Secret. Where one can't be read,
nothing is shown, and the missing right is named. Everything is masked, then cut.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from handler.cluster.evidence import Evidence
from handler.cluster.live import Object
from handler.health.kinds.pods import containers, failing, last_words
from handler.health.kinds.reading import count
from handler.model.advice import advice
from handler.model.errors import AccessDenied, AnnealError
from handler.model.field_masking import sensitive, without_credentials, without_given
from handler.model.manifest import at, items_at
from handler.model.names import GroupKind
from handler.model.pod_secrets import held, mounted_secrets
from handler.model.quotation import printable, quoted

_LINE = 400  # characters of one line that are shown
_POD = GroupKind("", "Pod")
_COLOURS = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


@dataclass(frozen=True, slots=True)
class LogTail:
    """The last lines of one container. `previous`: those before its last restart; `withheld`: why there are none, `fix` the way out."""

    pod: str
    container: str
    previous: bool = False
    lines: tuple[str, ...] = ()
    withheld: str = ""
    fix: str = ""


@dataclass(frozen=True, slots=True)
class LoggedContainer:
    """A container that has run. `previous`: whether there is a log from before its last restart."""

    name: str
    previous: bool


def logged_containers(pod: Object) -> tuple[LoggedContainer, ...]:
    """Return the containers of a pod that have a log, those that run first first."""
    found = ((each, at(each, "state"), bool(count(each, "restartCount"))) for each in containers(pod))
    return tuple(
        LoggedContainer(str(at(each, "name") or ""), restarted)
        for each, state, restarted in found
        if restarted or at(state, "running") or at(state, "terminated")
    )


def read_tail(evidence: Evidence, pod: Object, namespace: str, *, healthy: bool = False) -> LogTail | None:
    """Read the end of the log of a pod's container that explains most, with the identity of `evidence`; None: none has ever run.

    `healthy`: where all do well, the log of the first.
    """
    container, previous = failing(pod)
    container = container or (_main(pod) if healthy else "")
    if not container:
        return None
    return read_container(evidence, pod, namespace, container, previous=previous, words=last_words(pod, container).strip())


def read_container(evidence: Evidence, pod: Object, namespace: str, container: str, *, previous: bool, words: str = "") -> LogTail:
    """Read the end of the log of one of a pod's containers; `previous`: from before its last restart; `words`: what it wrote beside it."""
    name = str(at(pod, "metadata", "name"))
    hidden = [str(value) for _, value in sensitive(_POD, pod) if not isinstance(value, bool)]
    for secret in sorted(mounted_secrets(at(pod, "spec"))):
        try:
            hidden += held(evidence.secret(namespace, secret))
        except AnnealError as error:
            return LogTail(name, container, previous, (), *_withheld(error, namespace, secret))
    log = evidence.log(namespace, name, container, previous=previous)
    said = log if words in log else f"{log}\n{words}"
    return LogTail(name, container, previous, tuple(_lines(said, hidden)))


def _main(pod: Object) -> str:
    states = ((each, at(each, "state")) for each in items_at(pod, "status", "containerStatuses"))
    return next((str(at(each, "name") or "") for each, state in states if at(state, "running") or at(state, "terminated")), "")


def recorded(evidence: Evidence, pod: Object, namespace: str) -> str:
    """Return the end of a pod's log in one line, for a target that has it recorded; the arguments: see `read_tail`."""
    tail = read_tail(evidence, pod, namespace)
    if tail is None or tail.withheld:
        return printable(f"its log is withheld: {tail.withheld}; {tail.fix}", _LINE) if tail else ""
    shown = " | ".join(tail.lines)
    return f"its log ends: {quoted(shown if len(shown) <= _LINE else '…' + shown[-_LINE + 1 :])}" if shown else ""


def _lines(said: str, secrets: Iterable[str]) -> Iterator[str]:
    shown = without_credentials(without_given(_COLOURS.sub("", said), secrets))
    return (printable(line.strip(), _LINE) for line in shown.splitlines() if line.strip())


def _withheld(error: AnnealError, namespace: str, secret: str) -> tuple[str, str]:
    seen = f"the pod may print Secret/{namespace}/{secret}, which can't be read to mask it"
    if not isinstance(error, AccessDenied):
        return f"{seen}: {error.problems[0].message}", advice("try again: kubectl get {} -n {} -o name", f"secret/{secret}", namespace)
    rule = {"apiGroups": [""], "resources": ["secrets"], "resourceNames": [secret], "verbs": ["get"]}
    way = "add to a Role in {text}: {yaml}; kubectl auth can-i get {} -n {} says when it holds"
    return f"{seen}: 403", advice(way, namespace, rule, f"secret/{secret}", namespace)
