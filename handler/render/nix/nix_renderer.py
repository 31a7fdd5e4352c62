"""The Nix renderer: the objects of NixOS modules that set `kubernixos.manifests`, evaluated by nix in a sandbox.

    closure      the files of the commit that expressions name        nix_closure
    nixpkgs      of the tree, or a directory that the operator names  nixpkgs
    evaluate     eval.nix over them, behind the program's walls       sandbox | programs
    read         its objects, or its one mistake                      nix_output, nix_errors

Law: nix sees the closure, the directories of `nixPath` and its own libraries. It builds, fetches and stores nothing.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from handler.config.renderer_settings import NIX, RendererSettings, options_of
from handler.model.errors import Problem, RenderFailed, SourceRefused
from handler.model.manifest import Manifest
from handler.model.render import Rendered, RenderRequest
from handler.model.tree import DIRECTORY, MAX_PATH, ReadSet, Tree, printable, resolve_links
from handler.render import render_tools
from handler.render.file_renderer import directory, normal, refuse
from handler.render.folders import NIX_MODULE
from handler.render.frames import Row
from handler.render.identity_keys import identity_keys
from handler.render.nix import nixpkgs
from handler.render.nix.nix_closure import NixClosure
from handler.render.nix.nix_errors import OWN, PACKAGES_FROM, SETTINGS, TREE
from handler.render.nix.nix_output import NixFacts, decode_nix
from handler.render.nix.nixpkgs import NIXPKGS, OperatorDirectory
from handler.render.programs.program import Program, ProgramLimits
from handler.render.rollout_file import read_rollout
from handler.render.sandbox import Sandbox
from handler.render.tree_files import TreeFiles

LIMITS = ProgramLimits()
MODULES = f"[ ./{NIX_MODULE} ]"
"""What is evaluated where the settings name no modules."""
SYSTEM = "x86_64-linux"
"""What `builtins.currentSystem` says wherever it is evaluated: nothing is built for it."""
_NAMES = ("builtins", "import", "scopedImport", "fetchGit", "fetchMercurial", "fetchTarball", "fetchTree")
_HIDDEN = ("currentTime", "fetchClosure", "fetchurl", "getFlake", "nixPath")
_SCOPE = f"{{ {', '.join((*_NAMES, *(f'__{name}' for name in _HIDDEN)))} }}:"
"""The head of the operator's expressions: the names of eval.nix' `scope` stand in front of nix' own."""
_FLAGS = (
    *("--eval", "--strict", "--json", "--readonly-mode", "--store", "dummy://"),
    *(word for name, value in (("restrict-eval", "true"), ("allow-import-from-derivation", "false")) for word in ("--option", name, value)),
    *("--option", "system", SYSTEM, "--option", "allowed-uris", ""),
    "--show-trace",  # else many messages have no place
)
_POINTER = "is a pointer of Git LFS, which isn't fetched"


class NixRenderer:
    """Evaluates modules; `request.options`: `RendererSettings`. The read set: the closure, nix itself, the directories of `nixPath`."""

    def render(self, tree: Tree, request: RenderRequest, sandbox: Sandbox) -> Rendered:
        """Return the objects in the order of their names, or of the list, with their checksum and the server that they are for.

        Raises SourceRefused: the path, a link or a limit; ManifestInvalid: what nix refuses, or can't be applied; RendererUnavailable: no
        nix, no such directory, or its walls don't stand; RenderFailed: it broke a limit.
        """
        options = options_of(request.options)
        path, rollout = normal(request.path), normal(request.rollout)
        files = TreeFiles(tree, reads=directory(tree, path)[1])
        with files.judged():
            facts, manifests, notes = _Evaluation(tree, request, sandbox, options, files, path).run()
            found = read_rollout(tree, request, rollout, sandbox)
        return Rendered(
            manifests,
            ReadSet.of({**files.decisive(), **found.reads}),
            rollout=found.document,
            keys=identity_keys(manifests),
            where=found.where,
            renderer=NIX,
            notes=notes,
            checksum=facts.checksum,
            server=facts.server,
        )


@dataclass(frozen=True, slots=True)
class _Evaluation:
    """One run of nix. What it reads joins the reads of `files`."""

    tree: Tree
    request: RenderRequest
    sandbox: Sandbox
    options: RendererSettings
    files: TreeFiles
    path: str

    def run(self) -> tuple[NixFacts, tuple[Manifest, ...], tuple[str, ...]]:
        """Return the facts, the objects and what nix noted. Raises as the renderer does."""
        tool = render_tools.find(NIX)
        roots = [nixpkgs.find(name, path) for name, path in nixpkgs.paths(self.options.nix_path).items()]
        self.files.reads |= {tool.read: tool.digest, **{each.read: each.digest for each in roots}}
        self._refuse_nothing()
        modules, packages = self.options.modules or MODULES, self.options.packages or self._packages(roots)
        closure = NixClosure(self.tree, self.sandbox, self.files, self.path)
        closure.run((modules, packages), self.options.sources)
        contents = self.files.contents()
        refuse([Problem(printable(each), _POINTER) for each in sorted(self.files.pointers) if each.endswith(".nix")])
        placed = {**{f"{TREE}/{path}": data for path, data in contents.items()}, **_own()}
        program = self._program(tool, roots, modules, packages, {path: number for number, path in enumerate(placed)})
        places = {"directory": printable(self.path), "roots": {each.name: each.real for each in roots}, "absent": sorted(closure.absent)}
        options = {"places": places, "trace": self.options.show_trace}
        subject = printable(self.path) or "repository"
        found = self.sandbox.run("nix", options, list(placed.values()), decode_nix, subject, program, weak=self.request.weak)
        rows = [*self._placed(found)]
        refuse([row for row in rows if isinstance(row, Problem)])
        facts = [row for row in rows if isinstance(row, NixFacts)]
        if len(facts) != 1:
            raise RenderFailed.of(subject, "was not answered by the render child")
        notes = tuple(dict.fromkeys(row for row in rows if isinstance(row, str)))
        return facts[0], tuple(row for row in rows if isinstance(row, Manifest)), notes

    def _placed(self, rows: Sequence[Row | NixFacts | str]) -> Iterator[Row | NixFacts | str]:
        """Yield rows without places that are no file: a program makes up the file of a definition, and a message."""
        known = {name for path in (self.path or ".", *self.files.blobs) for name in (printable(path), printable(path, MAX_PATH))}
        known |= SETTINGS
        for row in rows:
            if isinstance(row, Problem | Manifest) and row.place and known.isdisjoint((row.place, row.place.rpartition(":")[0])):
                row = replace(row, place=f"{printable(self.path) or '.'}:1")  # noqa: PLW2901 - the same row, placed
            yield row

    def _refuse_nothing(self) -> None:
        """Refuse a path without modules, where the settings name none."""
        path = posixpath.join(self.path, NIX_MODULE)
        if not self.options.modules and resolve_links(self.tree, path).entry is None:
            fix = "add it, or name modules: renderer: {type: nix, modules: '[ ./production.nix ]'}"
            raise SourceRefused.of(printable(path), "isn't there, and the target names no modules", fix=fix)

    def _packages(self, roots: Sequence[OperatorDirectory]) -> str:
        """Return where nixpkgs is, where the settings don't say it: the repository's own directory of that name, or the operator's."""
        if any(each.name == NIXPKGS for each in roots):
            return f"<{NIXPKGS}>"
        found = resolve_links(self.tree, NIXPKGS)
        self.files.reads.update(found.looked)
        if found.entry is None or found.entry.mode != DIRECTORY:
            return f"<{NIXPKGS}>"
        return f"./{posixpath.relpath(NIXPKGS, self.path or '.')}"

    def _program(
        self, tool: render_tools.RenderTool, roots: Sequence[OperatorDirectory], modules: str, packages: str, files: Mapping[str, int]
    ) -> Program:
        """Return what is run. Paths are relative: in an expression of the operator `{home}` has another meaning."""
        start = posixpath.normpath(posixpath.join(TREE, self.path))
        up = posixpath.relpath(".", start)
        allowed = {f"anneal:{TREE}": f"{up}/{TREE}", f"anneal:{OWN}": f"{up}/{OWN}", **{each.name: each.real for each in roots}}
        arguments = (
            *_FLAGS,
            *(word for name, place in allowed.items() for word in ("-I", f"{name}={place}")),
            *("--arg", "modules", f"{_SCOPE}\n{modules}"),
            *("--arg", "packages", "\n" * (PACKAGES_FROM - 1) + f"{_SCOPE}\n{packages}"),
            "-",
        )
        return Program(
            tool.path,
            arguments,
            files,
            start,
            limits=LIMITS,
            environment={**tool.environment, "NIX_CONF_DIR": "{home}/none", "NIX_STATE_DIR": "{home}/none", "NIX_USER_CONF_FILES": ""},
            loader=tool.loader,
            readable=(*tool.libraries, *(each.real for each in roots)),
            expression=f"import {up}/{OWN}/eval.nix",
        )


@cache
def _own() -> Mapping[str, bytes]:
    """Return what of ours nix evaluates."""
    here = Path(__file__).parent
    return {f"{OWN}/{name}": (here / name).read_bytes() for name in ("eval.nix", "kubernixos.nix")}
