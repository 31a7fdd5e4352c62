"""The flags of this command line, put into the commands that we advise. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from handler.model.advice import Advice, advice

if TYPE_CHECKING:
    from handler.config.settings import Cluster

_VERBS = (
    "adopt|apply|approve|check|doctor|gap|history|orphans|plan|promote|prune|rbac|render|resume|retarget|retire|rollback|rollout|run|"
    "serve|status|suspend|unlock|unpin"
)
_OURS = re.compile(rf"\banneal (?=(?:{_VERBS})\b)")
_AS_ANOTHER = re.compile(r"\banneal (?=--kubeconfig )")  # names its own way to the cluster
_THEIRS = re.compile(r"\bkubectl (?=(?:apply|auth|create|delete|describe|edit|get|patch)\b)")


@dataclass(frozen=True, slots=True)
class GivenFlags:
    """The flags that this command was given: `anneal` for its configuration and clusters; `kubectl` those that kubectl takes, too."""

    anneal: tuple[str, ...] = ()
    kubectl: tuple[str, ...] = ()

    def complete(self, text: str, cluster: Cluster) -> str:
        """Return an Advice whose commands do the same from where this one was typed; any other text as it is. `cluster`: the target's."""
        if not isinstance(text, Advice):
            return text
        above = self.anneal[:2] if self.anneal[:1] == ("-c",) else ()
        ours, config, theirs = (advice("{words}", flags)[1:] for flags in (self.anneal, above, on_cluster(cluster, self.kubectl)))

        def completed(piece: str) -> str:
            piece = _OURS.sub(lambda found: f"{found.group()}{ours} ", piece) if ours else piece
            piece = _AS_ANOTHER.sub(lambda found: f"{found.group()}{config} ", piece) if config else piece
            return _THEIRS.sub(lambda found: f"{found.group()}{theirs} ", piece) if theirs else piece

        return text.completed(completed)


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
        region = ["--region", cluster.eks.region] if cluster.eks.region else []
        return str(advice("aws eks describe-cluster --name {}{words}", cluster.eks.cluster, region))
    return str(advice("kubectl{words} get --raw /readyz --request-timeout 5s", on_cluster(cluster, kubectl)))


def asking(url: str) -> str:
    """Return the command that asks a git host for what Anneal asks it."""
    return advice("git ls-remote {}", url)
