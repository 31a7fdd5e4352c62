"""Custom resources as documents, converted; what a configuration reads of what is printed; and which leaf nothing was said of."""

from __future__ import annotations

from typing import Any

from handler.cli.importing.conversion import Conversion, convert, is_known
from handler.cli.importing.custom_resource import LOST, SET, CustomResource, FieldNote, FieldPath, leaves, shown
from handler.cli.importing.output import document
from handler.config.load import parse
from handler.config.settings import Settings, Target

Document = dict[str, Any]
SOURCE, KUSTOMIZE, HELM, ARGOCD = (
    "source.toolkit.fluxcd.io/v1",
    "kustomize.toolkit.fluxcd.io/v1",
    "helm.toolkit.fluxcd.io/v2",
    "argoproj.io/v1alpha1",
)
NAMED = {("apiVersion",), ("kind",), ("metadata", "name"), ("metadata", "namespace")}
GIT_URL = "https://git.example.com/acme/shop"


def made(version: str, kind: str, name: str, spec: Any, namespace: str = "flux-system", **metadata: Any) -> Document:
    return {"apiVersion": version, "kind": kind, "metadata": {"name": name, "namespace": namespace, **metadata}, "spec": spec}


def git(name: str = "shop", **spec: Any) -> Document:
    return made(SOURCE, "GitRepository", name, {"interval": "1m", "url": GIT_URL, "ref": {"branch": "main"}} | spec)


def ks(name: str = "apps", **spec: Any) -> Document:
    common = {"interval": "10m", "prune": True, "path": "./deploy", "sourceRef": {"kind": "GitRepository", "name": "shop"}}
    return made(KUSTOMIZE, "Kustomization", name, common | spec)


def chart(**spec: Any) -> Document:
    return {"spec": {"chart": "web", "version": "1.x", "sourceRef": {"kind": "HelmRepository", "name": "charts"}} | spec}


def repo(**spec: Any) -> Document:
    return made(SOURCE, "HelmRepository", "charts", {"interval": "5m", "url": "https://charts.example.com/stable"} | spec)


def release(name: str = "web", **spec: Any) -> Document:
    return made(HELM, "HelmRelease", name, {"interval": "10m", "chart": chart()} | spec)


def app(source: Any = None, name: str = "web", **spec: Any) -> Document:
    where = {"repoURL": GIT_URL, "path": "deploy", "targetRevision": "main"} | (source or {})
    common = {
        "project": "default",
        "source": where,
        "destination": {"server": "https://kubernetes.default.svc", "namespace": "web"},
        "syncPolicy": {"automated": {"prune": True, "selfHeal": True}},
    }
    return made(ARGOCD, "Application", name, {key: value for key, value in (common | spec).items() if value is not None}, "argocd")


def converted(*documents: Any, repository: str = "", texts: Any = None) -> Conversion:
    known = [each for each in documents if isinstance(each, dict) and is_known(each)]
    return convert([CustomResource(each, "in.yaml", line + 1, texts=texts or {}) for line, each in enumerate(known)], repository)


def read(found: Conversion) -> Settings:
    """What a configuration makes of the printed text."""
    return parse(document(found, {}))


def target(*documents: Any, **options: Any) -> Target:
    """The only target, as a configuration reads it."""
    (found,) = read(converted(*documents, **options)).targets
    return found


def notes(found: Conversion, verdict: str = "") -> dict[str, FieldNote]:
    """Field -> the last that was said of it."""
    return {note.field: note for each in found.resources for note in each.notes if verdict in ("", note.verdict)}


def lost(*documents: Any, **options: Any) -> dict[str, str]:
    return {field: note.text for field, note in notes(converted(*documents, **options), LOST).items()}


def settings_of(*documents: Any) -> dict[str, str]:
    return {field: note.setting for field, note in notes(converted(*documents), SET).items()}


def unsaid(found: Conversion) -> list[tuple[str, FieldPath]]:
    """Leaves that no line of the output names, by itself or by what it is in."""
    said: dict[int, list[FieldPath]] = {}
    for each in found.resources:
        fields = {note.field for note in each.notes}
        said[id(each)] = [path for path in each.covered if path in NAMED or shown(path) in fields]
    return [
        (str(each), path)
        for each in found.resources
        for path, _ in leaves(each.body)
        if not any(path[:length] in said[id(each)] for length in range(len(path) + 1))
    ]
