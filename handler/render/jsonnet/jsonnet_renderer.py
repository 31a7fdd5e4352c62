"""The jsonnet renderer: what a program of the target's path makes, evaluated over files of the commit alone.

    configure    the target's mapping or file, or what a trigger hands over     configurations of the child
    imports      every file that the program may see                           jsonnet_imports | import_lexer
    evaluate     Google's program behind its walls; else its library          gojsonnet, evaluation
    read         its output, or its one mistake                                jsonnet_output, jsonnet_errors

Law: nothing but these files, the settings and the engine decides what is made.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from handler.config.renderer_settings import JSONNET, RendererSettings, options_of
from handler.model.errors import AnnealError, Problem, ProgramAbsent, RenderFailed, SourceRefused
from handler.model.manifest import Manifest
from handler.model.names import Identity
from handler.model.outside_inputs import LISTED, LISTED_SECRETS
from handler.model.render import Rendered, RenderRequest
from handler.model.tree import MAX_PATH, ReadSet, Tree, printable
from handler.render import render_tools
from handler.render.file_renderer import directory, normal, refuse
from handler.render.frames import decode_problem
from handler.render.identity_keys import identity_keys
from handler.render.jsonnet import gojsonnet
from handler.render.jsonnet.jsonnet_errors import FASTER, NO_YAML
from handler.render.jsonnet.jsonnet_imports import JsonnetImports, below, table
from handler.render.jsonnet.jsonnet_output import OutputKey, OutputRollout, OutputRow, decode_output
from handler.render.jsonnet.listed_secrets import secrets_of
from handler.render.rollout_file import read_rollout
from handler.render.sandbox import Sandbox
from handler.render.tree_files import TreeFiles

LIBRARIES = ("vendor", "lib")
"""Directories of imports that there always are, as for jsonnet-bundler and Tanka."""
_SLOW = "Google's library in C++ evaluates it, which takes several times as long as its program"
_ENDS = {
    "SIGABRT": ("it needs more memory than it may have, as a rule", "let it make less at once"),
    "more processor time": (_SLOW, FASTER),
    "longer than": (_SLOW, FASTER),
}
"""How the library's process ends -> what does that, and the way out."""


class JsonnetRenderer:
    """Renders a jsonnet program; `request.options`: `RendererSettings`.

    The read set: the target's directory, each file that is imported and each place that was looked into, and the engine.
    """

    def render(self, tree: Tree, request: RenderRequest, sandbox: Sandbox) -> Rendered:
        """Return the objects in the order of the output.

        Raises SourceRefused: the path, a link, an import or a limit; ManifestInvalid: what the engine refuses, or an output that is no
        object; RendererUnavailable: neither engine can be started; RenderFailed: a limit was broken.
        """
        options = options_of(request.options)
        path, rollout = normal(request.path), normal(request.rollout)
        files = TreeFiles(tree, reads=directory(tree, path)[1])
        with files.judged():
            imports = JsonnetImports(files, sandbox, search_path(path, options.jpath))
            config = _configuration(request, options, path, imports)
            imports.run(_inside(path, options.entrypoint))
            listed = _listed(request, imports)
            rows = _Evaluation(imports, request, options, config, listed).run(sandbox, _inside(path, options.entrypoint))
            refuse([row for row in rows if isinstance(row, Problem)])
            found = read_rollout(tree, request, rollout, sandbox)
        made, manifests, keys = _sorted(rows)
        reads = ReadSet.of({**files.decisive(), **found.reads})
        return Rendered(manifests, reads, rollout=found.document or made, keys=keys, where=found.where, renderer=JSONNET)


def search_path(path: str, jpath: Sequence[str]) -> list[str]:
    """Return where imports are looked up after the importing file's own directory, the first one first.

    Each directory is meant below the target's path, then from the repository's root; of several the last one is the first, as of jsonnet's
    --jpath. Raises SourceRefused: one leads out of the repository.
    """
    found = [path]
    for each in LIBRARIES + tuple(jpath):
        both = [inside for base in (path, "") if (inside := below(base, each)) is not None]
        if not both:
            raise SourceRefused.of(f"jpath {printable(each)}", "leads out of the repository")
        found[:0] = both
    return list(dict.fromkeys(found))


def absent_imports(tree: Tree, path: str, options: RendererSettings, sandbox: Sandbox) -> set[str]:
    """Return what a program looks for and the tree doesn't hold: of each path the first directory that is missing, or the file."""
    files = TreeFiles(tree)
    with contextlib.suppress(AnnealError):  # the render says so
        imports = JsonnetImports(files, sandbox, search_path(path, options.jpath))
        if options.config_file:
            files.add_file(_inside(path, options.config_file))
        imports.run(_inside(path, options.entrypoint))
    return {each for each, oid in files.reads.items() if not oid}


def _inside(path: str, name: str) -> str:
    """Return a file below or beside the target's path. Raises SourceRefused: it leads out of the repository."""
    found = below(path, name)
    if not found:
        raise SourceRefused.of(printable(name), "leads out of the repository", fix="name a file of the repository")
    return found


def _configuration(request: RenderRequest, options: RendererSettings, path: str, imports: JsonnetImports) -> str:
    """Return the program's configuration as JSON: a trigger's stands above the target's."""
    if request.configuration or not options.config_file:
        return json.dumps(dict(request.configuration)) if request.configuration else options.config or "{}"
    place = _inside(path, options.config_file)
    shown = printable(place, MAX_PATH)
    if not imports.files.add_file(place):
        fix = "add it, or correct `configFile` of the target's renderer"
        raise SourceRefused.of(shown, f"isn't in commit {imports.files.tree.commit.sha[:12]}", fix=fix)
    oid = imports.files.blobs.pop(place)  # it may be imported, too, but needn't be a file of jsonnet
    data = imports.files.tree.blobs([oid])[oid]
    rows = imports.sandbox.run("jsonnet configuration", {"place": shown}, [data], _decode_configuration, subject=shown)
    refuse([row for row in rows if isinstance(row, Problem)])
    return next(row for row in rows if isinstance(row, str))


def _decode_configuration(frame: bytes) -> str | Problem:
    """Read JSON or a mistake. Raises ValueError: it is neither."""
    return json.dumps(json.loads(frame[1:])) if frame[:1] == b"C" else decode_problem(frame)


def _listed(request: RenderRequest, imports: JsonnetImports) -> dict[str, bytes]:
    """Return what a program imports of its trigger's resources, and note it as read. Raises AnnealError: one isn't watched, or known."""
    found: dict[str, bytes] = {}
    for path, place in imports.lists.items():
        name = path.split("/")[1]
        try:
            found[path] = request.outside.listed(name)
        except AnnealError as error:
            error.problems = tuple(replace(each, place=each.place or place) for each in error.problems)
            raise
        read = f"{LISTED_SECRETS if secrets_of(json.loads(found[path])) else LISTED}{name}"
        imports.files.reads[read] = request.outside.ask(read)
    return found


class _Evaluation:
    """One evaluation: by the program where it is installed and its walls stand or aren't asked for, else by the library."""

    def __init__(
        self, imports: JsonnetImports, request: RenderRequest, options: RendererSettings, config: str, listed: Mapping[str, bytes]
    ) -> None:
        self._imports, self._request, self._listed = imports, request, listed
        strings, codes = gojsonnet.codes(json.loads(options.ext_vars or "{}"))
        top_strings, top_codes = gojsonnet.codes(json.loads(options.top_level_arguments or "{}"))
        codes = codes if "config" in strings else {"config": config, **codes}
        values = {"strings": strings, "codes": codes, "top_strings": top_strings, "top_codes": top_codes}
        self._options: dict[str, Any] = {**values, "config": config, "rollout": bool(request.rollout), **table(imports)}

    def run(self, sandbox: Sandbox, entrypoint: str) -> list[OutputRow]:
        """Return the objects with their keys, or mistakes. Raises as the renderer does."""
        files = self._imports.contents
        options = {**self._options, "entrypoint": entrypoint, "files": list(files), "lists": list(self._listed)}
        subject = printable(entrypoint, MAX_PATH)
        reads = self._imports.files.reads
        try:
            tool = render_tools.find(JSONNET)
            program, parts = gojsonnet.program(tool.path, options, self._imports.search, files, self._listed)
            reads[tool.read] = tool.digest
            return sandbox.run("gojsonnet", options, parts, decode_output, subject, program, weak=self._request.weak)
        except ProgramAbsent:
            if not (library := render_tools.digest(render_tools.LIBRARY)):
                raise
        reads.pop(render_tools.read_name(JSONNET), None)
        unjudged = [path for path in self._imports.programs(texts=True) if b"parseYaml" in files[path]]
        refuse([Problem(printable(path, MAX_PATH), f"is imported as a text, too: {NO_YAML}", fix=FASTER) for path in unjudged])
        reads[render_tools.read_name(render_tools.LIBRARY)] = library
        try:
            return sandbox.run("jsonnet", options, [*files.values(), *self._listed.values()], decode_output, subject)
        except RenderFailed as failed:
            raise RenderFailed(*map(_of_program, failed.problems), reason=failed.reason) from None


def _of_program(problem: Problem) -> Problem:
    """Say what of a program ends a child in this way."""
    why, fix = next((said for name, said in _ENDS.items() if name in problem.message), ("", ""))
    return replace(problem, message=f"{problem.message}: {why}", fix=fix) if why else problem


def _sorted(rows: Sequence[OutputRow]) -> tuple[Manifest | None, tuple[Manifest, ...], Mapping[str, tuple[Identity, ...]]]:
    """Return the Rollout that a program made, the objects, and how it calls them."""
    keys: dict[str, tuple[Identity, ...]] = {}
    manifests: list[Manifest] = []
    key, made = "", None
    for row in rows:
        if isinstance(row, OutputKey):
            key = row.text
        elif isinstance(row, OutputRollout):
            made = row.document
        elif isinstance(row, Manifest):
            manifests.append(row)
            if key:
                keys[key] = (*keys.get(key, ()), row.identity)
    return made, tuple(manifests), keys or identity_keys(manifests)
