"""Which records of this installation belong to no configured target: retired ones, found in the LIST of summaries that views make anyway.

A target that was moved to another cluster is one on the cluster that it left, as long as another target is there.

Law: nothing is asked for them. What `anneal apply -f` and the like have recorded is no configuration's to know, and is left out, as what a
running server looks after. Who may write records makes one look retired: the command that is advised shows what its end deletes, and
changes nothing. One of an installation without a name of its own may be another configuration's.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from handler.app.record_summaries import Metadata, summary_of
from handler.config.settings import Cluster, Settings
from handler.model.advice import advice
from handler.model.instance import is_instance, template_of
from handler.model.names import state_name
from handler.state.configmap import TARGET
from handler.state.heartbeat import UNREAD, Pulse
from handler.state.summary import Summary


@dataclass(frozen=True, slots=True)
class ClusterRecords:
    """What one LIST of a cluster's records has shown, by their names. `uid`: the cluster's; empty: it isn't known.

    `pulse`: what its heartbeat says.
    """

    states: Mapping[str, Metadata]
    uid: str = ""
    pulse: Pulse = UNREAD


@dataclass(frozen=True, slots=True)
class RetiredTarget:
    """A record without a target. `taken_by`: the target that takes it over, or has begun to; empty: none does.

    `stranger`: another configuration of this cluster may have it; `moved_to`: the cluster that the target is on by now; empty: there is
    none of its name; `next`: the command that shows what its end deletes, or lets another take it over; `template`: whose
    instance it is, `next_of_all`: the same command for all of those; empty: it is no instance, or a target of the template's name is
    configured.
    """

    target: str
    namespace: str
    cluster: str
    commit: str
    subject: str
    orphans: int
    taken_by: str
    stranger: bool
    moved_to: str
    next: str
    template: str = ""
    next_of_all: str = ""

    def __str__(self) -> str:
        commit = f", at {self.commit[:8]}" if self.commit else ""
        return f"{self.target} (ConfigMap/{self.namespace}/{state_name(self.target)} on cluster {self.cluster}{commit})"


def retired(seen: Mapping[Cluster, ClusterRecords], settings: Settings) -> list[RetiredTarget]:
    """Return the retired targets among the records of clusters, by name, then by cluster; once where two ways lead to one."""
    once = {seen[cluster].uid or cluster: cluster for cluster in reversed(list(seen))}
    found = (each for cluster in once.values() for each in _on(cluster, seen, settings))
    return sorted(found, key=lambda each: (each.target, each.cluster))


def _on(cluster: Cluster, seen: Mapping[Cluster, ClusterRecords], settings: Settings) -> Iterator[RetiredTarget]:
    records = seen[cluster]
    named = ((_target_of(metadata), metadata) for metadata in records.states.values())
    known = {name: (metadata, summary) for name, metadata in named if name and (summary := summary_of(metadata, settings, name))}
    gone = {
        name: moved for name, (metadata, _) in known.items() if (moved := _moved_to(name, metadata, cluster, seen, settings)) is not None
    }
    takers = {target.renamed_from: target.name for target in settings.targets if target.renamed_from}
    for name, moved in gone.items():
        summary = known[name][1]
        template = template_of(name) if is_instance(name) and (moved or settings.target(template_of(name)) is None) else ""
        if summary.directory or records.pulse.server(template or name):
            continue
        taker = summary.renamed_to or takers.get(name, "")
        taker = taker if summary.renamed_to or _may_take(known.get(taker)) else ""
        stranger = settings.is_shared and not taker
        more = (summary.commit, summary.subject, summary.orphans, taker, stranger, moved)
        left = cluster if moved else None
        next_one = advice("anneal apply {}", taker) if taker else _retire(name, left)
        whole = _retire(template, left) if template and not taker else ""
        yield RetiredTarget(name, settings.state_namespace, cluster.name, *more, next_one, template, whole)


def _moved_to(name: str, metadata: Metadata, cluster: Cluster, seen: Mapping[Cluster, ClusterRecords], settings: Settings) -> str | None:
    """Return the cluster on which a record's target is by now, empty: there is none of its name; None: it may be here."""
    target = settings.target(template_of(name))
    if target is None or (is_instance(name) and not target.is_template):
        return ""
    there = None if target.cluster == cluster else seen.get(target.cluster)
    if there is None or (there.states.get(state_name(name)) or {}).get("uid") == metadata.get("uid"):
        return None  # two ways may lead to one cluster
    return target.cluster.name


def _may_take(known: tuple[Metadata, Summary] | None) -> bool:
    """Whether a target takes over what its line names: not after it has deployed under its own record."""
    return known is None or not known[1].commit or known[1].former


def _retire(name: str, left: Cluster | None) -> str:
    flags = [] if left is None else ["--context", left.context] if left.context else []
    if left is not None and (left.kubeconfig or not flags):
        flags = ["--kubeconfig", left.kubeconfig.file if left.kubeconfig and left.kubeconfig.file else "FILE", *flags]
    return advice("anneal retire {} --prune --dry-run{words}", name, flags)


def _target_of(metadata: Metadata) -> str:
    return str((metadata.get("labels") or {}).get(TARGET) or "")
