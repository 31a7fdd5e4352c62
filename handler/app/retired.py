"""Which records of this installation belong to no configured target: retired ones, found in the LIST of summaries that views make anyway.

Law: nothing is asked for them. What `anneal apply -f` and the like have recorded is no configuration's to know, and is left out. A record
of a repository that no configured target has may be another configuration's: no command that deletes is advised for it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from handler.app.record_summaries import Metadata, summary_of
from handler.config.settings import Settings
from handler.state.configmap import TARGET, state_name
from handler.state.record import FORMAT
from handler.state.summary import home_of


@dataclass(frozen=True, slots=True)
class RetiredTarget:
    """A record without a target. `taken_by`: the target that takes it over, or has begun to; empty: none does.

    `stranger`: no configured target is known to be of its repository.
    """

    target: str
    namespace: str
    cluster: str
    commit: str = ""
    subject: str = ""
    orphans: int = 0
    taken_by: str = ""
    stranger: bool = False

    @property
    def next(self) -> str:
        """The command that ends it, or says of which repository it is."""
        if self.stranger and not self.taken_by:
            return f"kubectl get configmap {state_name(self.target)} -n {self.namespace} -o 'jsonpath={{.data.repository}}'"
        return f"anneal apply {self.taken_by}" if self.taken_by else f"anneal retire {self.target} --prune"

    def __str__(self) -> str:
        commit = f", at {self.commit[:8]}" if self.commit else ""
        return f"{self.target} (ConfigMap/{self.namespace}/{state_name(self.target)} on cluster {self.cluster}{commit})"


def retired(states: Mapping[str, Metadata], settings: Settings, cluster: str, uid: str = "") -> list[RetiredTarget]:
    """Return the retired targets among the records of a cluster, by name. `uid`: the cluster's; empty: it isn't known."""
    names = {target.name for target in settings.targets}
    takers = {target.renamed_from: target.name for target in settings.targets if target.renamed_from}
    known = {name: summary_of(metadata, settings, name) for metadata in states.values() if (name := _target_of(metadata))}
    homes = {summary.home for name, summary in known.items() if summary and name in names}
    if uid:
        urls = {target.repository.url for target in settings.targets}
        homes |= {home_of(url, settings.installation, uid, each + 1) for url in urls for each in range(FORMAT)}
    found = []
    for name, summary in known.items():
        if summary and name not in names and not summary.directory:
            taker = summary.renamed_to or takers.get(name, "")
            more = (summary.commit, summary.subject, summary.orphans, taker, summary.home not in homes)
            found.append(RetiredTarget(name, settings.state_namespace, cluster, *more))
    return in_order(found)


def _target_of(metadata: Metadata) -> str:
    return str((metadata.get("labels") or {}).get(TARGET) or "")


def in_order(found: Iterable[RetiredTarget]) -> list[RetiredTarget]:
    """Return them by name, then by cluster."""
    return sorted(found, key=lambda each: (each.target, each.cluster))
