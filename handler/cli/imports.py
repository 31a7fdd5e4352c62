"""`anneal import`: reads objects of Flux and Argo CD from files, standard input or the cluster, and prints the targets that do the same.

Law: nothing is changed, no Secret is read. What files and cluster hold is untrusted text: it is read in the render child.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from handler.cli import reports
from handler.cli.filenames import GLOBS, FilenameFlags, contents
from handler.cli.importing import output
from handler.cli.importing.conversion import KINDS, convert, is_known
from handler.cli.importing.custom_resource import CustomResource
from handler.cli.local_source import Files
from handler.cli.session import Session
from handler.cluster.live import Listing, pages
from handler.config.git_settings import Repository, directory_url
from handler.config.settings import Settings, Target
from handler.model.errors import ManifestInvalid, Problem, SourceRefused
from handler.model.names import Resource
from handler.model.tree import MAX_PATH, printable
from handler.render.file_renderer import FileSelection
from handler.render.folders import CHART
from handler.render.globs import Selection
from handler.render.located import Located, decode_located
from handler.render.tree_files import MAX_FILES, MAX_TOTAL
from handler.source.checkout import checkout_around

_TEXTS = (("spec", "source", "helm", "values"), ("spec", "sources", "*", "helm", "values"))
"""Fields of an Application that hold YAML as text."""
TEMPLATES = "template of a chart, which holds objects once `helm template` has rendered it"
LIVE = "cluster"  # what places of objects of the cluster are called
_KEPT = ("apiVersion", "kind", "metadata", "spec")
Objects = tuple[list[CustomResource], Mapping[str, int], list[Problem]]
"""Objects to convert, how many of other kinds there were, what couldn't be read."""


def import_(session: Session, filenames: tuple[str, ...], from_cluster: bool, namespaces: tuple[str, ...], repository: str | None) -> int:
    """Print the targets that do what objects of Flux and Argo CD do."""
    if bool(filenames) == from_cluster:
        example = "anneal import -f clusters/prod, or anneal import --from-cluster"
        raise click.UsageError(f"name files by -f, or the cluster by --from-cluster: {example}")
    if namespaces and not from_cluster:
        raise click.UsageError("-n goes with --from-cluster; of files all objects are read")
    given = _from_cluster(session, namespaces) if from_cluster else _from_files(session, filenames)
    found, alone, unread = given
    if not found:
        raise ManifestInvalid(*unread, _nothing(from_cluster, alone))
    made = convert(found, repository or "", _repository_around(filenames))
    problems = [*unread, *made.problems]
    if not made.targets:
        named = {problem.subject for problem in problems}
        lost = [Problem(note.source, note.text, note.place) for each in found for note in each.notes if not note.field]
        others = [problem for problem in lost if problem.subject not in named]
        raise ManifestInvalid(*problems, *others, Problem("import", "none of these objects becomes a target"))
    if session.output.as_json:
        session.output.document({**output.facts(made, alone), "problems": problems})
    else:
        session.output.text(output.document(made, alone))
        session.output.note(f"anneal import: {output.summary(made)}; next: anneal check")
    reports.problems(session.output, problems)
    return reports.FAILED if problems else reports.DONE_CODE


def _nothing(from_cluster: bool, alone: Mapping[str, int]) -> Problem:
    known = ", ".join(sorted(str(kind) for kind in KINDS))
    seen = f"; there are: {_counted(alone)}" if alone else ""
    return Problem("the cluster" if from_cluster else "the input", f"has no object that import knows{seen}", fix=f"known: {known}")


def _counted(alone: Mapping[str, int]) -> str:
    return ", ".join(f"{count} {kind}" for kind, count in sorted(alone.items())[:20])


def _repository_around(filenames: Sequence[str]) -> str:
    """Return the remote of the checkout that the first file lies in, where a target may follow it."""
    first = next((Path(each) for each in filenames if each != "-"), None)
    checkout = checkout_around(first if first.is_dir() else first.parent) if first else None
    return checkout.remote if checkout and checkout.remote.startswith(("https://", "ssh://", "git@")) else ""


# --- from files
def _from_files(session: Session, filenames: tuple[str, ...]) -> Objects:
    """Read the manifests that are named; templates of charts aren't YAML yet, and are left out."""
    named = Files(contents(FilenameFlags(filenames)))
    tree = named.fetch(named.commit.sha)
    root = tree.lookup("")
    assert root is not None  # noqa: S101 - every tree has a root
    globs = FilenameFlags(filenames).include()
    found = FileSelection(tree, root, Selection.of((*globs, *GLOBS) if len(filenames) == 1 else globs, ())).run()
    wanted = {path: oid for path, oid in found.items() if not _is_template(tree, path)}
    blobs = tree.blobs(set(wanted.values()))
    if len(wanted) > MAX_FILES or sum(len(blobs[oid]) for oid in wanted.values()) > MAX_TOTAL:
        limit = f"{MAX_FILES:,} files and {MAX_TOTAL:,} bytes are read"
        raise SourceRefused.of("import", f"has {len(wanted):,} files; at most {limit}", fix="name the directories that hold the objects")
    objects, alone, unread = _read(session, {_typed(path, filenames): blobs[oid] for path, oid in wanted.items()})
    templates = len(found) - len(wanted)
    return objects, {**alone, **({TEMPLATES: templates} if templates else {})}, unread


def _typed(path: str, filenames: tuple[str, ...]) -> str:
    """Return a path below the only directory that is named as one would type it from here."""
    only = Path(filenames[0])
    return str(only / path.partition("/")[2]) if len(filenames) == 1 and only.is_dir() and "/" in path and only.name in ("", "..") else path


def _is_template(tree: Any, path: str) -> bool:
    parts = path.split("/")
    above = ["/".join((*parts[:at], CHART)) for at, part in enumerate(parts) if part == "templates"]
    return any(tree.lookup(each) for each in above)


def _read(session: Session, files: Mapping[str, bytes]) -> Objects:
    """Read objects in the render child."""
    options = {"places": [printable(path, MAX_PATH) for path in files], "texts": _TEXTS}
    rows = session.sandbox.run("located", options, list(files.values()), decode_located, subject="import") if files else []
    alone: Counter[str] = Counter()
    found: list[CustomResource] = []
    for row in rows:
        if not isinstance(row, Problem):
            _sort(row, found, alone)
    return found, alone, [row for row in rows if isinstance(row, Problem)]


def _sort(row: Located, found: list[CustomResource], alone: Counter[str]) -> None:
    path, line, value, standing, texts = row
    if isinstance(value, dict) and is_known(value):
        live = path == LIVE  # it has no lines
        found.append(CustomResource(value, path, 0 if live else line, {} if live else standing, texts))
    elif value is not None:
        kind = value.get("kind") if isinstance(value, dict) else None
        alone[printable(kind, 80) if isinstance(kind, str) and kind else "without a kind"] += 1


# --- from the cluster
def _from_cluster(session: Session, namespaces: tuple[str, ...]) -> Objects:
    """List the known kinds that the cluster serves; of each object metadata and spec, as if they had been printed into a file."""
    anything = Target("import", Repository(url=directory_url("import")), ("*",))
    session.settings = Settings((anything,))
    ways = session.ways(git=False)
    api, discovery = ways.api(anything), ways.discovery(anything)
    served = [resource for kind in KINDS if (resource := discovery.preferred(kind)) is not None and "list" in resource.verbs]
    items = [item for resource in served for scope in (namespaces or ("",)) for item in _listed(api, resource, scope)]
    text = json.dumps({"apiVersion": "v1", "kind": "List", "items": items})
    return _read(session, {LIVE: text.encode()}) if items else ([], {}, [])


def _listed(api: Any, resource: Resource, namespace: str) -> Iterator[dict[str, Any]]:
    for page in pages(api, Listing(resource, namespace)):
        yield from ({key: item[key] for key in _KEPT if key in item} for item in page)
