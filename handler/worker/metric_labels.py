"""What the labels of metrics call a target's git host and cluster: short, without credentials, and one for each that is configured."""

from __future__ import annotations

from collections.abc import Mapping

from handler.config.settings import Cluster, Settings
from handler.feedback.prometheus import TargetLabels
from handler.queues.bulkheads import git_host


def places(settings: Settings) -> Mapping[str, TargetLabels]:
    """Return the place of each target. Clusters that would be called the same are distinguished by their whole name, else by a number."""
    names: dict[Cluster, str] = {}
    for target in settings.targets:
        if target.cluster not in names:
            known = set(names.values())
            wanted = (cluster_label(target.cluster), target.cluster.name, *(f"{target.cluster.name}#{n}" for n in range(2, len(known) + 3)))
            names[target.cluster] = next(name for name in wanted if name not in known)
    return {target.name: TargetLabels(git_host(target), names[target.cluster]) for target in settings.targets}


def cluster_label(cluster: Cluster) -> str:
    """Return what is said of a cluster in the configuration, in short; where that is nothing, `default`."""
    own = cluster.eks.cluster if cluster.eks else "in-cluster" if cluster.in_cluster else ""
    return own or cluster.context or cluster.server or cluster.name
