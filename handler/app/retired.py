"""Which records of this installation belong to no configured target: retired ones, found in the LIST of summaries that views make anyway.

Law: nothing is asked for them. What `anneal apply -f` and the like have recorded is no configuration's to know, and is left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from handler.app.record_summaries import Metadata, summary_of
from handler.config.settings import Settings
from handler.state.configmap import TARGET, state_name


@dataclass(frozen=True, slots=True)
class RetiredTarget:
    """A record without a target. `taken_by`: the target that takes it over, or has begun to; empty: none does."""

    target: str
    namespace: str
    cluster: str
    commit: str = ""
    subject: str = ""
    orphans: int = 0
    taken_by: str = ""

    @property
    def next(self) -> str:
        """The command that ends it."""
        return f"anneal apply {self.taken_by}" if self.taken_by else f"anneal retire {self.target} --prune"

    def __str__(self) -> str:
        commit = f", at {self.commit[:8]}" if self.commit else ""
        return f"{self.target} (ConfigMap/{self.namespace}/{state_name(self.target)} on cluster {self.cluster}{commit})"


def retired(states: Mapping[str, Metadata], settings: Settings, cluster: str) -> list[RetiredTarget]:
    """Return the retired targets among the records of a cluster, by name."""
    names = {target.name for target in settings.targets}
    takers = {target.renamed_from: target.name for target in settings.targets if target.renamed_from}
    found = []
    for metadata in states.values():
        name = str((metadata.get("labels") or {}).get(TARGET) or "")
        summary = summary_of(metadata, settings, name) if name and name not in names else None
        if summary and not summary.directory:
            taker = summary.renamed_to or takers.get(name, "")
            more = (summary.commit, summary.subject, summary.orphans, taker)
            found.append(RetiredTarget(name, settings.state_namespace, cluster, *more))
    return in_order(found)


def in_order(found: Iterable[RetiredTarget]) -> list[RetiredTarget]:
    """Return them by name, then by cluster."""
    return sorted(found, key=lambda each: (each.target, each.cluster))
