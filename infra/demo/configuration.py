"""The demo's `anneal.yaml`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from infra.demo.repository import Repository
from infra.demo.stage import Stage


@dataclass(frozen=True, slots=True)
class Clock:
    """How often Anneal looks by itself: at git (`interval`), and at the whole cluster (`drift`). Empty: the defaults."""

    interval: str = ""
    drift: str = ""

    def lines(self) -> list[str]:
        """Return it as lines of the configuration."""
        pairs = (("interval", self.interval), ("driftInterval", self.drift))
        return [f"{key}: {value}" for key, value in pairs if value]


@dataclass(frozen=True, slots=True)
class Further:
    """A target beside the shop's, of the same repository, in the namespace of what customers see. `renderer`: YAML; empty: `path` says.

    `more`: further lines of its configuration.
    """

    name: str
    path: str
    renderer: str = ""
    more: tuple[str, ...] = ()

    def lines(self, stage: Stage, repository: Repository) -> list[str]:
        """Return it as lines of the configuration."""
        return [
            f"  - name: {self.name}",
            f"    repository: {{url: {repository.url}}}",
            f"    path: {self.path}",
            *([f"    renderer: {self.renderer}"] if self.renderer else []),
            f"    cluster: {{kubeconfig: {{file: {stage.kubeconfig}}}}}",
            f"    namespace: {stage.names.front}",
            f"    namespaces: [{stage.names.front}]",
            *(f"    {line}" for line in self.more),
        ]


PERSON = "you"
"""Who signs in to the page."""
USUAL = Clock()
QUICK = Clock("1s", "2s")


def configuration(stage: Stage, repository: Repository, clock: Clock, more: Sequence[Further] = ()) -> str:
    """Return the configuration of this demo. `more`: targets beside the shop's."""
    names = stage.names
    lines = [
        "apiVersion: anneal.dev/v1alpha1",
        "kind: Config",
        *([f"stateNamespace: {names.state}"] if names.prefix else []),
        *clock.lines(),
        f"webhooks: {{github: {{secrets: [{{file: {stage.secret_file}}}]}}}}",
        *(_page(stage) if stage.page else []),
        "targets:",
        "  - name: shop",
        f"    repository: {{url: {repository.url}}}",
        "    path: deploy",
        f"    cluster: {{kubeconfig: {{file: {stage.kubeconfig}}}}}",
        f"    namespaces: [{names.front}, {names.back}]",
        "    clusterScoped: [Namespace, CustomResourceDefinition.apiextensions.k8s.io]",
        *(line for each in more for line in each.lines(stage, repository)),
    ]
    return "\n".join(lines) + "\n"


def _page(stage: Stage) -> list[str]:
    """Return the page, with one person who sees and does everything, as lines of the configuration."""
    return [
        "page:",
        f"  url: http://{stage.address}",
        f"  key: {{file: {stage.page_key_file}}}",
        f"  tokens: [{{name: {PERSON}, secret: {{file: {stage.token_file}}}}}]",
        f'  roles: [{{role: operator, users: [{PERSON}], logs: ["*"]}}]',
    ]
