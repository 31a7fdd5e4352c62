"""Folders among plain manifests whose objects kustomize or Helm must make: one problem a folder, with what renders it. Pure.

    deploy/Chart.yaml                     a chart: everything below it is Helm's
    deploy/overlays/prod/kustomization    kustomize's, with everything below it, the folders it refers to and the files it names

Law: the file's name decides, unless it holds an ordinary object. Mistakes of a file below such a folder aren't reported by themselves: its
patches, templates and values aren't meant for the cluster as they are. Runs in the render child.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Self

from handler.model.advice import advice
from handler.model.errors import Problem
from handler.model.render import Called
from handler.render.document import Document
from handler.render.documents import documents

CHART = "Chart.yaml"
NIX_MODULE = "kubernixos.nix"
BARE = "Kustomization"
KUSTOMIZATIONS = ("kustomization.yaml", "kustomization.yml", BARE)
"""The names that kustomize itself looks for (sigs.k8s.io/kustomize, `konfig.RecognizedKustomizationFileNames`)."""
KUSTOMIZE = "kustomize.config.k8s.io/"
IGNORE_FILE = ".annealignore"
_REFERRING = ("resources", "bases", "components")
_LISTING = frozenset({"apiVersion", "kind", "metadata", "resources"})
"""Keys of a kustomization that changes nothing of what it lists."""
_NO_NAME, _LONGEST_NAME = re.compile(r"[^a-z0-9-]+"), 56


@dataclass(frozen=True, slots=True)
class Folder:
    """A folder of kustomize's. `refers`: paths that it builds on, folders or files; `lists`: it changes nothing of them."""

    path: str
    marker: str
    refers: tuple[str, ...] = ()
    component: bool = False
    lists: bool = False

    @classmethod
    def of(cls, marker: str, document: Mapping[str, Any]) -> Self:
        """Read a kustomization."""
        path = posixpath.dirname(marker)
        named = [each for key in _REFERRING for each in _texts(document.get(key))]
        refers = tuple(_below(path, each) for each in named if "://" not in each)
        component = document.get("kind") == "Component"
        return cls(path, marker, refers, component, lists=not component and _LISTING.issuperset(document))


@dataclass(slots=True)
class FoundFolders:
    """The folders among a commit's files. `charts`: their paths; `kustomize`: by path."""

    charts: list[str] = field(default_factory=list)
    kustomize: dict[str, Folder] = field(default_factory=dict)

    def covers(self, path: str) -> bool:
        """Whether a file is Helm's or kustomize's."""
        if any(inside(path, folder) for folder in (*self.charts, *self.kustomize)):
            return True
        return any(path in folder.refers for folder in self.kustomize.values())

    def problems(self, called: Called, root: str, places: Sequence[str]) -> Iterator[Problem]:
        """Yield one for each chart and each tree of kustomize folders. `root`: what is rendered; `places`: all files of it."""
        others = [path for path in places if not self.covers(path)]
        found = [chart_problem(path, called, root, others) for path in self.charts]
        found += [_kustomize(tree, called, root, others, places) for tree in self._trees()]
        yield from sorted(found, key=lambda each: each.subject)

    def _trees(self) -> Iterator[list[Folder]]:
        """Yield the folders that refer to each other, or lie in each other, together."""
        left = dict(sorted(self.kustomize.items()))
        while left:
            tree = [left.pop(next(iter(left)))]
            while near := [path for path, each in left.items() if any(_related(each, other) for other in tree)]:
                tree += [left.pop(path) for path in near]
            yield sorted(tree, key=lambda each: each.path)


def find(files: Iterable[tuple[str, bytes]]) -> FoundFolders:
    """Find the charts and kustomize folders among files. Other files in a chart aren't reported, whatever they are."""
    markers = {path: data for path, data in files if posixpath.basename(path) in (CHART, *KUSTOMIZATIONS)}
    read = {path: _document(data, path) for path, data in markers.items()}
    meant = {path: document for path, document in read.items() if not _is_object(document)}
    charts = [posixpath.dirname(path) for path in meant if posixpath.basename(path) == CHART]
    found = FoundFolders([path for path in charts if not any(path != other and inside(path, other) for other in charts)])
    for path, document in meant.items():
        folder = posixpath.dirname(path)
        if posixpath.basename(path) != CHART and not any(inside(folder, chart) for chart in found.charts):
            found.kustomize[folder] = Folder.of(path, document)
    return found


def chart_problem(path: str, called: Called, root: str, others: Sequence[str] = ()) -> Problem:
    """Return the problem of a Helm chart. `others`: the files that are neither Helm's nor kustomize's."""
    build = advice("helm template {} {path} --include-crds{text}", called.name, called.place(path), called.namespaced)
    seen = f"a Helm chart ({CHART}): Helm makes its objects, and this renderer reads plain manifests"
    return Problem(_shown(called, path), seen, fix=_ways("helm", path, build, "", [path], called, root, others))


def _kustomize(tree: Sequence[Folder], called: Called, root: str, others: Sequence[str], places: Sequence[str]) -> Problem:
    """Return the problem of a tree of kustomize folders."""
    common = posixpath.commonpath([f"/{each.path}" for each in tree])[1:]
    one, leaves = posixpath.basename(tree[0].marker), _leaves(tree)
    seen = f"a kustomize folder ({one})" if len(tree) == 1 else f"{len(tree)} kustomize folders that belong together"
    rest = [_within(each, common) for each in leaves[1:]]
    others_too = f", or another of them: {', '.join(rest[:4])}{', …' if len(rest) > 4 else ''}" if rest else ""
    build = advice("kustomize build {path}", called.place(leaves[0]))
    fix = _ways("kustomize", leaves[0], build, others_too, [each.path for each in tree], called, root, others)
    if len(tree) == 1 and tree[0].lists and _is_whole(tree[0], places):
        ignoring = _ignoring([_within(tree[0].marker, root)], called, root)
        fix = advice("it only lists plain manifests; to apply them as they are: {text}; or {text}", ignoring, fix)
    return Problem(_shown(called, common), f"{seen}: kustomize makes the objects, and this renderer reads plain manifests", fix=fix)


def _ways(kind: str, path: str, build: str, note: str, folders: Iterable[str], called: Called, root: str, others: Sequence[str]) -> str:
    """Return the ways out: let renderer `kind` take `path`, or what else `note` names; commit what `build` prints; leave it out."""
    left_out = {_top(path, root, others) for path in folders}
    leaving = "" if not others or root in left_out else _ignoring([f"/{_within(path, root)}/" for path in sorted(left_out)], called, root)
    if called.in_git:
        return _ways_in_git(kind, path, build, note, called, root, leaving)
    by_hand = _beside(called, path, others).applying(called.place(path))
    text = advice("{text}{text}; or commit what `{text}` prints, instead", by_hand, note, build)
    return advice("{text}; or leave it out: {text}", text, leaving) if leaving else text


def _ways_in_git(kind: str, path: str, build: str, note: str, called: Called, root: str, leaving: str) -> str:
    """Return the ways out of a target: what git declares is rendered from git, for applied by hand it would be another target's."""
    name = _NO_NAME.sub("-", f"{called.name}-{posixpath.basename(path).lower()}").strip("-") + ".yaml"  # no file that may be there
    if leaving:  # whatever renders it, here it stays a mistake
        made = advice("{text} > {path}", build, called.place(posixpath.join(root, name)))
        other = advice("{path: {yaml}, renderer: {type: {yaml}}}", path, kind)
        first = advice("leave it out here: {text}; to deploy it let another target render it: {text}{text}", leaving, other, note)
        return advice("{text}; or commit what this prints: {text}", first, made)
    own = advice("write renderer: {type: {yaml}}", kind) if path == root else advice("write path: {yaml}{text}", path, note)
    if not path:  # anything else is inside of it
        return own
    apart = f"{path}-built"
    made = advice("mkdir {path} && {text} > {path}", called.place(apart), build, called.place(f"{apart}/{name}"))
    return advice("{text}; or write path: {yaml}, and commit what this prints: {text}", own, apart, made)


def _beside(called: Called, path: str, others: Sequence[str]) -> Called:
    """Return how a folder beside other files is called: as one with them, each would prune what the other has applied."""
    apart = _NO_NAME.sub("-", f"{called.name}-{posixpath.basename(path).lower()}")[:_LONGEST_NAME].strip("-")
    return replace(called, name=apart) if others else called


def _top(path: str, root: str, others: Sequence[str]) -> str:
    """Return the uppermost directory below the root around a folder in which nothing else lies; the root, where it is that one."""
    while inside(path, root) and path != root:
        above = posixpath.dirname(path)
        if above == root or any(inside(each, above) for each in others):
            return path
        path = above
    return root


def _ignoring(lines: Sequence[str], called: Called, root: str) -> str:
    """Return the command that adds lines to the ignore file of what is rendered."""
    return advice("printf '%s\\n'{words} >> {path}", lines, called.place(posixpath.join(root, IGNORE_FILE)))


def _leaves(tree: Sequence[Folder]) -> list[str]:
    """Return what can be built and no other folder builds on; where each builds on another, all of it."""
    used = {refers for each in tree for refers in each.refers}
    whole = [each.path for each in tree if not each.component]
    return [path for path in whole if path not in used] or whole or [tree[0].path]


def _is_whole(folder: Folder, places: Sequence[str]) -> bool:
    """It lists just the files that would be rendered without it."""
    others = {path for path in places if inside(path, folder.path)} - {folder.marker}
    return bool(others) and others == set(folder.refers)


def _related(one: Folder, other: Folder) -> bool:
    refers = other.path in one.refers or one.path in other.refers or not set(one.refers).isdisjoint(other.refers)
    return refers or inside(one.path, other.path) or inside(other.path, one.path)


def _document(data: bytes, path: str) -> Mapping[str, Any]:
    """Return the first document of a file; nothing of one that can't be read: its name says enough."""
    first = next(documents(data, path if path.endswith((".yaml", ".yml")) else f"{path}.yaml"), None)
    return first.value if isinstance(first, Document) and isinstance(first.value, dict) else {}


def _is_object(document: Mapping[str, Any]) -> bool:
    """Whether it is an ordinary object that only has such a file's name, e.g. Flux' kind Kustomization."""
    version, metadata = document.get("apiVersion"), document.get("metadata")
    named = isinstance(metadata, dict) and bool(metadata.get("name")) and bool(document.get("kind"))
    return named and isinstance(version, str) and not version.startswith(KUSTOMIZE)


def _texts(value: Any) -> list[str]:
    return [each for each in value if isinstance(each, str)] if isinstance(value, list) else []


def _below(folder: str, reference: str) -> str:
    """Return a reference's path from the root of the repository; what leads out of it is never a path here."""
    joined = posixpath.normpath(posixpath.join(folder, reference))
    return "" if joined == "." else joined


def inside(path: str, folder: str) -> bool:
    """Whether a path is a folder or below it; the root is empty."""
    return not folder or path == folder or path.startswith(f"{folder}/")


def _within(path: str, folder: str) -> str:
    return path.removeprefix(f"{folder}/") if folder else path


def _shown(called: Called, path: str) -> str:
    return f"{called.place(path)}/"
