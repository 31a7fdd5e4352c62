"""The kustomize renderer: what `kustomize build` prints of the target's path, run over the commit's files in a sandbox.

    generate     a kustomization where the path has none, as Flux does      generated_kustomization
    closure      the directories it is built of; what isn't git's, refused  kustomize_closure | kustomization, remotes
    charts       those that it inflates and git doesn't hold                outside inputs, chart_archive
    build        the program, behind its walls                              sandbox | programs
    read         its output, or its one true mistake                        kustomize_output, kustomize_errors

Law: the program sees the closure's directories and nothing else; the same trees, tools and charts give the same objects.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from handler.config.renderer_settings import KUSTOMIZE, options_of
from handler.model.errors import Problem
from handler.model.manifest import Manifest
from handler.model.outside_inputs import APIS, VERSION, ChartReference, KnownChart, OutsideInputs, chart_read
from handler.model.render import Rendered, RenderRequest
from handler.model.tree import MAX_PATH, ReadSet, Tree, printable
from handler.render import render_tools
from handler.render.charts.chart_lock import LOCK
from handler.render.charts.chart_readers import locked, read_lock
from handler.render.file_renderer import directory, normal, refuse
from handler.render.frames import Row, decode, decode_noted
from handler.render.identity_keys import identity_keys
from handler.render.kustomize.generated_kustomization import generated
from handler.render.kustomize.kustomize_closure import ChartUse, Closure
from handler.render.programs.program import Program, ProgramLimits
from handler.render.rollout_file import read_rollout
from handler.render.sandbox import Sandbox
from handler.render.tree_files import TreeFiles

LIMITS = ProgramLimits()
"""Of a build; where charts are inflated, of kustomize and helm together."""


class KustomizeRenderer:
    """Renders a directory with a kustomization; `request.options`: `RendererSettings`.

    The read set: the trees of the directories that it is built of, the tools, and charts from elsewhere.
    """

    def render(self, tree: Tree, request: RenderRequest, sandbox: Sandbox) -> Rendered:
        """Return the objects in the order of `kustomize build`.

        Raises SourceRefused: the path, a link or a limit; ManifestInvalid: every entry that isn't the tree's, or what kustomize refuses;
        RendererUnavailable: no kustomize, or no helm, or their walls don't stand; RenderFailed: a program broke a limit.
        """
        options = options_of(request.options)
        path, rollout = normal(request.path), normal(request.rollout)
        files = TreeFiles(tree, reads=directory(tree, path)[1])
        with files.judged():
            made, looked = generated(tree, path, rollout) if options.generate else ({}, {})
            files.reads.update(looked)
            closure = Closure(tree, sandbox, request.called, options.helm_charts, files, made)
            refuse(closure.run(path))
            build = _Build(closure, request, path)
            manifests = build.run(sandbox)
            found = read_rollout(tree, request, rollout, sandbox)
        return Rendered(
            manifests,
            ReadSet.of({**files.decisive(), **found.reads}),
            rollout=found.document,
            keys=identity_keys(manifests),
            where=found.where,
            renderer=KUSTOMIZE,
            notes=tuple(dict.fromkeys(build.notes)),
        )


@dataclass(slots=True)
class _Build:
    """One run of the program. What it reads beside the tree joins the closure's reads."""

    closure: Closure
    request: RenderRequest
    path: str
    notes: list[str] = field(default_factory=list)
    locks: dict[str, Sequence[KnownChart]] = field(default_factory=dict)

    def run(self, sandbox: Sandbox) -> tuple[Manifest, ...]:
        """Return the objects. Raises as the renderer does."""
        contents = self.closure.files.contents(self.closure.is_built)
        refuse(self.closure.pointers())
        contents |= self.closure.generated
        for use in self.closure.charts:
            if use.wanted:
                contents |= self._fetched(use, use.wanted, sandbox)
        contents |= {path: reading.noted.encode() for path, reading in self.closure.readings.items() if reading.noted}
        program = self._program({path: number for number, path in enumerate(contents)})
        subject = printable(self.path) or "repository"
        rows = sandbox.run("kustomize", self._lines(), list(contents.values()), decode_noted, subject, program, weak=self.request.weak)
        refuse([row for row in rows if isinstance(row, Problem)])
        self.notes += [row for row in rows if isinstance(row, str)]
        return tuple(row for row in rows if isinstance(row, Manifest))

    def _program(self, files: Mapping[str, int]) -> Program:
        """Return what is run: nothing of it may be fetched or started but helm, where charts are inflated."""
        kustomize = self._tool("kustomize")
        if not self.closure.charts:
            return Program(kustomize.path, ("build", "."), files, self.path, limits=LIMITS)
        helm = self._tool("helm")
        arguments = ("build", ".", "--enable-helm", "--helm-command", helm.path, *self._cluster(helm))
        return Program(kustomize.path, arguments, files, self.path, (helm.path,), replace(LIMITS, processes=2))

    def _tool(self, name: str) -> render_tools.RenderTool:
        tool = render_tools.find(name)
        self.closure.files.reads[tool.read] = tool.digest
        return tool

    def _cluster(self, helm: render_tools.RenderTool) -> Iterator[str]:
        """Yield the flags that say for which cluster charts are rendered, where an entry doesn't; note what is assumed."""
        silent = [use for use in self.closure.charts if not (use.entry.kube_version and use.entry.api_versions)]
        if not silent:
            return
        outside = self.request.outside
        facts = outside.cluster()
        self.closure.files.reads |= {name: outside.ask(name) for name in (VERSION, APIS)}
        yield from ("--helm-kube-version", facts.version) if facts.version else ()
        for each in facts.api_versions:
            yield from ("--helm-api-versions", each)
        cluster = f"Kubernetes {facts.version} of the cluster" if facts.version else f"the Kubernetes that helm {helm.version} assumes"
        for use in silent:
            missing = [
                name for name, said in (("kubeVersion", use.entry.kube_version), ("apiVersions", use.entry.api_versions)) if not said
            ]
            self.notes.append(
                f"chart {printable(use.entry.name, 80)} is rendered for {cluster}: {use.place} writes no {' and no '.join(missing)}"
            )

    def _fetched(self, use: ChartUse, wanted: ChartReference, sandbox: Sandbox) -> dict[str, bytes]:
        """Return the files of a chart where kustomize looks for one that it has pulled; a lock beside the kustomization decides."""
        outside: OutsideInputs = self.request.outside
        if use.base not in self.locks:
            self.locks[use.base] = self._lock(use.base, sandbox)
        wanted = locked(wanted, self.locks[use.base])
        chart = outside.chart(wanted)
        self.closure.files.reads[chart_read(wanted)] = chart.digest
        subject = f"chart {printable(use.entry.name, 80)}"
        rows = sandbox.run("chart files", {"place": use.place}, [chart.data], _decode_file, subject=subject)
        refuse([row for row in rows if isinstance(row, Problem)])
        return {f"{use.directory}/{row[0]}": row[1] for row in rows if isinstance(row, tuple)}

    def _lock(self, base: str, sandbox: Sandbox) -> Sequence[KnownChart]:
        """Return what git locks of the charts of a kustomization; its directory is read already."""
        path = posixpath.join(base, LOCK)
        oid = self.closure.files.blobs.get(path)
        return read_lock(sandbox, self.closure.tree.blobs([oid])[oid], printable(path)) if oid else ()

    def _lines(self) -> dict[str, Any]:
        """Return where entries and objects stand, for the child to find the lines of its messages and places."""
        readings = self.closure.readings
        return {
            "root": self.path,
            "marks": {
                _shown(path): [(each.field, each.text, each.line) for each in reading.references] for path, reading in readings.items()
            },
            "objects": {_shown(path): dict(reading.objects) for path, reading in readings.items() if reading.objects},
            "origins": not readings[self.closure.built].noted,
        }


def _shown(path: str) -> str:
    return printable(path, MAX_PATH)


def _decode_file(frame: bytes) -> tuple[str, bytes] | Row:
    """Read one file of a chart, or a mistake. Raises ValueError: it is neither, or its path leads elsewhere."""
    if frame[:1] != b"F":
        return decode(frame)
    name, _, data = frame[1:].partition(b"\0")
    path = name.decode()
    if {"", ".", ".."} & set(path.split("/")):
        raise ValueError("a path that leads elsewhere")
    return path, data
