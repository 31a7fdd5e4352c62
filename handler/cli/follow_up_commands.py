"""Commands that a person copies from what is shown: found in what a failure says, and complete where this command was given flags. Pure."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from handler.config.settings import Cluster

_VERBS = (
    "adopt|apply|approve|check|doctor|gap|history|orphans|plan|promote|prune|rbac|render|resume|retarget|retire|rollback|rollout|run|"
    "serve|status|suspend|unlock|unpin"
)
_OURS = re.compile(rf"\banneal (?=(?:{_VERBS})\b)")
_THEIRS = re.compile(r"\bkubectl (?=(?:apply|auth|create|delete|describe|edit|get|patch)\b)")
_CREATES = re.compile(r"create it: (kubectl create namespace [^\s;]+)")
_LOOKS = re.compile(r"(kubectl get [^;\n]+) shows who must act")
_ACCOUNT = re.compile(r'User "system:serviceaccount:([^":]+):([^":]+)" cannot ')


@dataclass(frozen=True, slots=True)
class GivenFlags:
    """The flags that this command was given: `anneal` for its configuration and clusters; `kubectl` those that kubectl takes, too."""

    anneal: tuple[str, ...] = ()
    kubectl: tuple[str, ...] = ()

    def complete(self, text: str, cluster: Cluster) -> str:
        """Return a text whose commands do the same from where this one was typed. `cluster`: the target's."""
        ours, theirs = (shlex.join(flags) for flags in (self.anneal, on_cluster(cluster, self.kubectl)))
        text = _OURS.sub(lambda found: f"{found.group()}{ours} ", text) if ours else text
        return _THEIRS.sub(lambda found: f"{found.group()}{theirs} ", text) if theirs else text


NOTHING_GIVEN = GivenFlags()


def on_cluster(cluster: Cluster, kubectl: Sequence[str]) -> list[str]:
    """Return the flags with which kubectl works on a cluster. `kubectl`: flags that stand above the configuration."""
    if kubectl:
        return list(kubectl)
    own = ["--kubeconfig", cluster.kubeconfig.file] if cluster.kubeconfig and cluster.kubeconfig.file else []
    return [*own, *(["--context", cluster.context] if cluster.context else [])]


def reaching(cluster: Cluster, kubectl: Sequence[str]) -> str:
    """Return the command that asks whether a cluster answers. `kubectl`: flags that stand above the configuration."""
    if cluster.eks and not kubectl:
        region = f" --region {cluster.eks.region}" if cluster.eks.region else ""
        return f"aws eks describe-cluster --name {cluster.eks.cluster}{region}"
    return shlex.join(["kubectl", *on_cluster(cluster, kubectl), "get", "--raw", "/readyz", "--request-timeout", "5s"])


def asking(url: str) -> str:
    """Return the command that asks a git host for what Anneal asks it."""
    return shlex.join(["git", "ls-remote", url])


def creating(message: str) -> str:
    """Return the command that makes the Namespaces which are all that a failure says is missing; empty: it says something else, too."""
    found = [_CREATES.search(line) for line in message.splitlines()]
    return " && ".join(dict.fromkeys(each.group(1) for each in found if each)) if all(found) else ""


def looking(message: str) -> str:
    """Return the command that shows why the first object isn't gone; empty: the message names none."""
    found = _LOOKS.search(message)
    return found.group(1) if found else ""


def granting(target: str, message: str) -> str:
    """Return the command by which an administrator grants what a ServiceAccount lacks; empty: the failure says nothing of one."""
    found = _ACCOUNT.search(message)
    return f"anneal rbac {target} --service-account {found.group(1)}/{found.group(2)} | kubectl apply -f -" if found else ""
