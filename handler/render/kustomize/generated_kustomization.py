"""The kustomization of a directory that has none, as Flux' kustomize-controller generates it (fluxcd/pkg, kustomize_generator.go).

    deploy/api.yaml                       listed
    deploy/web/kustomization.yaml         deploy/web is listed, nothing below it
    deploy/README.md, a symbolic link     left out
    .sourceignore, Flux' own defaults     leave out, as source-controller does

Law: names and trees decide, in the worker; no manifest is looked into.
"""

from __future__ import annotations

import json
import posixpath
from collections.abc import Mapping
from dataclasses import dataclass, field

from handler.model.errors import SourceRefused
from handler.model.tree import EXECUTABLE, FILE, Tree, TreeEntry, printable, resolve_links
from handler.render.folders import KUSTOMIZATIONS
from handler.render.globs import IgnoreLine, ignore_rules, ignored

IGNORE_FILE = ".sourceignore"
DEFAULTS = ignore_rules(
    "\n".join(
        (
            *(".git/", ".gitignore", ".gitmodules", ".gitattributes"),
            *("*.jpg", "*.jpeg", "*.gif", "*.png", "*.wmv", "*.flv", "*.tar.gz", "*.zip"),
            *(".github/", ".circleci/", ".travis.yml", ".gitlab-ci.yml", "appveyor.yml", ".drone.yml", "cloudbuild.yaml"),
            *("codeship-services.yml", "codeship-steps.yml", "**/.goreleaser.yml", "**/.sops.yaml", "**/.flux.yaml"),
        )
    )
)
"""What source-controller leaves out of every artifact (fluxcd/pkg, sourceignore.go)."""
MAX_IGNORE_BYTES = 64 << 10
MAX_COMPARISONS = 10_000_000

_EMPTY = {"namespace": "_placeholder"}  # as Flux: a kustomization that says nothing is an error


def generated(tree: Tree, path: str, rollout: str = "") -> tuple[Mapping[str, bytes], dict[str, str]]:
    """Return the kustomization that a directory lacks, by its path, and what was looked at outside of it; none where it has one.

    `rollout`: the target's Rollout, which is no resource. Raises SourceRefused: an ignore file breaks a rule.
    """
    if any(resolve_links(tree, posixpath.join(path, name)).entry for name in KUSTOMIZATIONS):
        return {}, {}
    top = resolve_links(tree, path).entry
    entries = [entry for entry in tree.walk(top.path) if entry.mode in (FILE, EXECUTABLE)] if top else []
    resources = _Resources(tree, top.path if top else path, rollout)
    listed = resources.of(entries)
    document = {
        "apiVersion": "kustomize.config.k8s.io/v1beta1",
        "kind": "Kustomization",
        **({"resources": [f"./{each}" for each in listed]} if listed else _EMPTY),
    }
    return {posixpath.join(path, KUSTOMIZATIONS[0]): json.dumps(document).encode()}, resources.looked


@dataclass(slots=True)
class _Resources:
    """`root`: the directory, links followed; `looked`: path -> id of ignore files above it (empty: not there)."""

    tree: Tree
    root: str
    rollout: str
    looked: dict[str, str] = field(default_factory=dict)
    rules: dict[str, tuple[IgnoreLine, ...]] = field(default_factory=dict)
    ignores: dict[str, bool] = field(default_factory=dict)

    def of(self, entries: list[TreeEntry]) -> list[str]:
        """Return what is listed, below the root, in the order of a walk."""
        self._read_rules(entries)
        cut = len(self.root) + 1 if self.root else 0
        kustomized = {posixpath.dirname(each.path) for each in entries if posixpath.basename(each.path) in KUSTOMIZATIONS}
        found: set[str] = set()
        for entry in entries:
            inner = next((above for above in self._above(entry.path) if above in kustomized and not self._ignored(above, True)), None)
            if inner is not None:
                found.add(inner[cut:])
            elif entry.path.endswith((".yaml", ".yml")) and entry.path != self.rollout and not self._ignored(entry.path, False):
                found.add(entry.path[cut:])
        return sorted(found, key=lambda each: each.split("/"))

    def _above(self, path: str) -> list[str]:
        """Return the directories around a path below the root, the uppermost first."""
        parts = path.split("/")
        start = self.root.count("/") + 2 if self.root else 1
        return ["/".join(parts[:count]) for count in range(start, len(parts))]

    def _ignored(self, path: str, directory: bool) -> bool:
        """Whether a path or a directory above it is left out."""
        if path not in self.ignores:
            above = posixpath.dirname(path)
            self.ignores[path] = bool(above and self._ignored(above, True)) or ignored(path, self.rules, directory=directory)
        return self.ignores[path]

    def _read_rules(self, entries: list[TreeEntry]) -> None:
        files = {entry.path: entry.oid for entry in entries if posixpath.basename(entry.path) == IGNORE_FILE}
        parts = self.root.split("/") if self.root else []
        for count in range(len(parts)):
            path = "/".join((*parts[:count], IGNORE_FILE))
            entry = self.tree.lookup(path)
            self.looked[path] = entry.oid if entry else ""
            if entry and entry.mode in (FILE, EXECUTABLE):
                files[path] = entry.oid
        blobs = self.tree.blobs(set(files.values())) if files else {}
        for path, oid in files.items():
            if len(blobs[oid]) > MAX_IGNORE_BYTES:
                raise SourceRefused.of(printable(path), f"has more than {MAX_IGNORE_BYTES:,} bytes")
            self.rules[posixpath.dirname(path)] = ignore_rules(blobs[oid].decode("utf-8-sig", "replace"))
        self.rules[""] = (*DEFAULTS, *self.rules.get("", ()))
        if len(entries) * sum(map(len, self.rules.values())) > MAX_COMPARISONS:
            raise SourceRefused.of(
                IGNORE_FILE, "too many rules for so many files", fix="write directories (`docs/`) instead of their files"
            )
