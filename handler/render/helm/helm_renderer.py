"""The Helm renderer: `helm template` of a chart in the tree, or of one from elsewhere, as a program in the sandbox.

    gather    the chart, the charts that it needs, values in their order      helm_charts, helm_values, tree_files
    look      a child: name, places, functions that make things anew          chart_scan, chart_archive, chart_facts
    ask       the cluster's version and APIs, where the chart looks at them   OutsideInputs
    run       install or upgrade                                              programs; in the child helm_output, helm_errors
    again     where something is made anew, a second time                     made_anew

Law: all that the output follows from is in the read set: directories and files of git, the tool, the cluster where it is looked at, objects
that hold values, charts from elsewhere. Helm asks nothing itself: it has no network, no cluster, no plugin.
"""

from __future__ import annotations

import hashlib
import re
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache

from handler.config.renderer_settings import HELM, RendererSettings, options_of, shape_of
from handler.model.errors import ManifestInvalid, Problem, RenderFailed, ValuesInvalid
from handler.model.manifest import Manifest, at, canonical
from handler.model.names import Identity
from handler.model.outside_inputs import APIS, VERSION, ClusterFacts, KnownChart
from handler.model.render import Files, Rendered, RenderRequest
from handler.model.rollout import ARGO_HOOK, HELM_HOOK
from handler.model.tree import ReadSet, Tree, printable, resolve_links
from handler.render import render_tools
from handler.render.charts.chart_lock import LOCK
from handler.render.charts.chart_readers import read_lock
from handler.render.file_renderer import at_most, directory, normal
from handler.render.folders import CHART
from handler.render.helm.chart_facts import ChartFacts, Use
from handler.render.helm.chart_scan import CLOCK, EMPTY_HERE
from handler.render.helm.helm_charts import ChartFiles, Completion, below, contents, fetched_chart
from handler.render.helm.helm_values import Values, layered, take_files, value_files
from handler.render.helm.made_anew import calls, others, renamed, unstable
from handler.render.helm.pieces import ProgramOutput, assembled, decode_output, digests
from handler.render.objects import twice_declared
from handler.render.programs.program import Program
from handler.render.rollout_file import lines_of, read_rollout
from handler.render.sandbox import Sandbox
from handler.render.tree_files import TreeFiles

_AT_ONCE = 500  # API versions in one argument: Linux takes 128 KiB
_MAX_SHOWN = 5
_SECOND = 1.0
_VALUES = "values.yaml"
_FIELD = re.compile(r"Chart\.yaml: “chart\.metadata\.(\w+)|(kubeVersion|chart): “(?:chart requires|library charts)")
_FIELDS = {"kubeVersion": "kubeVersion", "chart": "type"}
_HOOKS = {False: frozenset({"pre-install", "post-install"}), True: frozenset({"pre-upgrade", "post-upgrade"})}


_GIVEN = (
    "it may miss what it looks up on an upgrade, and nothing is looked up here; values of a live object are given by "
    "renderer: {valuesFrom: [{kind: Secret, name: …, key: …, targetPath: …}]}"
)


class HelmRenderer:
    """Renders a chart. `request.options`: `RendererSettings`."""

    def render(self, tree: Tree, request: RenderRequest, sandbox: Sandbox) -> Rendered:
        """Return the objects that helm would install, or upgrade to, in its order.

        Raises SourceRefused: the path, a file of values or a chart that is needed isn't there, or a link or limit forbids it;
        ManifestInvalid: what helm refuses, or renders that can't be applied; RenderFailed: helm broke a limit; RendererUnavailable: there
        is no helm here; ValuesInvalid: values of the cluster are missing, `set` can't be read.
        """
        options = options_of(request.options)
        return _Release(tree, request, sandbox, options, render_tools.find("helm")).render()


@dataclass(slots=True)
class _Release:
    """One render of one release."""

    tree: Tree
    request: RenderRequest
    sandbox: Sandbox
    settings: RendererSettings
    tool: render_tools.RenderTool

    @property
    def name(self) -> str:
        return self.settings.release_name or self.request.called.name

    @property
    def namespace(self) -> str:
        first = self.request.called.namespaces[0]
        return "default" if first == "*" else first

    def render(self) -> Rendered:
        files = TreeFiles(self.tree)
        with files.judged():
            return self._rendered(files)

    def _rendered(self, files: TreeFiles) -> Rendered:
        """Render; what is looked at, of git and elsewhere, is noted in `files.reads` before it decides anything."""
        rollout = read_rollout(self.tree, self.request, normal(self.request.rollout), self.sandbox)
        chart, values = self._inputs(files)
        facts = Completion(chart, files, self.request.outside, self.sandbox).run(values.layers)
        cluster, asked = self._cluster(facts)
        files.reads |= {**asked, self.tool.read: self.tool.digest}
        installs = self._installs(ReadSet.of(files.reads))
        upgrade = self.request.installed not in ("", installs)
        files.reads |= rollout.reads
        known = ReadSet.of(files.reads)
        made = _Making(self, chart, values, facts, self._arguments(chart, values, cluster, upgrade=upgrade), upgrade).run()
        return replace(
            made,
            reads=known,
            rollout=rollout.document,
            keys=_keys(made.manifests, chart.place),
            where=rollout.where,
            installs=installs,
        )

    def _inputs(self, files: TreeFiles) -> tuple[ChartFiles, Values]:
        """Return the chart as git or its origin has it, and all values."""
        path, outside = normal(self.request.path), self.request.outside
        lock = cache(lambda: self._locked(files))
        fetched = fetched_chart(self.settings.chart, outside, lock, files.reads) if self.settings.chart else None
        paths = value_files(self.settings, path)
        if fetched is None:
            directory(self.tree, path)
            files.add(path)
        take_files(files, paths)
        found = contents(files)
        values = layered(self.settings, [(printable(each), found[each]) for each in paths], outside, self.namespace, files.reads)
        return fetched or ChartFiles(below(found, path), path, lock, reads=files.reads), values

    def _locked(self, files: TreeFiles) -> Sequence[KnownChart]:
        """Return what git locks of charts from elsewhere. Raises ManifestInvalid."""
        path = "/".join(filter(None, [normal(self.request.path), LOCK]))
        found = resolve_links(self.tree, path)
        files.reads.update(found.looked)
        if found.entry is None:
            return ()
        return read_lock(self.sandbox, self.tree.blobs([found.entry.oid])[found.entry.oid], printable(path))

    def _cluster(self, facts: ChartFacts) -> tuple[ClusterFacts, dict[str, str]]:
        """Return what the cluster is, where the chart looks at it; a chart that doesn't isn't bound to one."""
        if not facts.asks_cluster:
            return ClusterFacts("", ()), {}
        return self.request.outside.cluster(), {name: self.request.outside.ask(name) for name in (VERSION, APIS)}

    def _installs(self, inputs: ReadSet) -> str:
        """Return the digest of all that an install is made of: while it is the recorded one, what runs is still the install."""
        shape = {name: value for name, value in shape_of(self.settings).items() if name != "type"}
        facts = (inputs.digest(), self.name, self.namespace, shape)
        return hashlib.sha256(canonical(facts)).hexdigest()

    def _arguments(self, chart: ChartFiles, values: Values, cluster: ClusterFacts, *, upgrade: bool) -> tuple[str, ...]:
        apis = cluster.api_versions
        chunks = [apis[start : start + _AT_ONCE] for start in range(0, len(apis), _AT_ONCE)]
        return (
            *("template", self.name, "chart.tgz" if chart.archive else "./chart", "--namespace", self.namespace),
            *(() if self.settings.skip_crds else ("--include-crds",)),
            *(("--kube-version", cluster.version) if cluster.version else ()),
            *(word for chunk in chunks for word in ("--api-versions", ",".join(chunk))),
            *(("--is-upgrade",) if upgrade else ()),
            *(word for number in range(len(values.layers)) for word in ("-f", _layer(number))),
            *values.arguments,
        )


@dataclass(slots=True)
class _Making:
    """Runs helm, twice where the chart makes something anew."""

    release: _Release
    chart: ChartFiles
    values: Values
    facts: ChartFacts
    arguments: tuple[str, ...]
    upgrade: bool

    def run(self) -> Rendered:
        """Return the objects, without what they were read from. Raises ManifestInvalid, ValuesInvalid, RenderFailed."""
        first = self._once(self.release.request.known)
        manifests = self._active(first)
        self._refuse(twice_declared(manifests))
        made = Rendered(
            manifests,
            ReadSet(()),
            first.files,
            renderer=HELM,
            notes=(*self._empty(), *first.notes, *self._idle(len(first.manifests) - len(manifests))),
            upgrade=self.upgrade,
            rests=self._rests(first, manifests),
        )
        anew = [use for use in self.facts.uses if use.function not in EMPTY_HERE and not self.release.request.beside]
        return self._compared(made, anew) if anew else made

    def _compared(self, made: Rendered, anew: Sequence[Use]) -> Rendered:
        """Render once more, a clock second later where that counts, and note what differs."""
        if any(use.function in CLOCK for use in anew):
            time.sleep(_SECOND)
        again = self._active(self._once(made.files))
        notes = (*made.notes, *renamed(made.manifests, again, anew))
        other = tuple(each.identity for each in others(made.manifests, again))
        return replace(made, notes=notes, unstable=unstable(made.manifests, again, anew), renamed=other)

    def _active(self, output: ProgramOutput) -> tuple[Manifest, ...]:
        return tuple(manifest for manifest in output.manifests if not _is_idle(manifest, upgrade=self.upgrade))

    def _rests(self, output: ProgramOutput, active: Sequence[Manifest]) -> tuple[Manifest, ...]:
        """Return the hooks of the install before this upgrade: helm leaves what they made, so that a password made then lives on."""
        there = {manifest.identity for manifest in active}
        idle = (manifest for manifest in output.manifests if _is_idle(manifest, upgrade=self.upgrade))
        found = {manifest.identity: manifest for manifest in idle if manifest.identity not in there}
        return tuple(found.values()) if self.upgrade else ()

    def _idle(self, count: int) -> Iterator[str]:
        act, other = ("upgrade", "install") if self.upgrade else ("install", "upgrade")
        if count:
            hooks = f"{count} hook{'' if count == 1 else 's'}"
            yield f"{hooks} that only an {other} runs left out: release {self.release.name} is rendered for an {act}"

    def _empty(self) -> Iterator[str]:
        for function in EMPTY_HERE:
            uses = [use for use in self.facts.uses if use.function == function]
            if uses:
                yield f"{calls(uses, _MAX_SHOWN)}: finds nothing here, as in helm template: no render asks a cluster or DNS"

    def _once(self, known: Files) -> ProgramOutput:
        """Run helm. `known`: pieces of its output that were read before."""
        parts, files = self._files()
        program = Program(self.release.tool.path, self.arguments, files, environment={"HELM_NO_PLUGINS": "1"})
        options = {
            "chart": printable(self.chart.place),
            "roots": self.facts.roots,
            "kinds": self.facts.kinds,
            "values": {_layer(number): name for number, (name, _) in enumerate(self.values.layers)},
            "known": digests(known),
        }
        subject = printable(self.release.request.path) or "repository"
        weak = self.release.request.weak
        rows = self.release.sandbox.run("helm", options, parts, decode_output, subject=subject, program=program, weak=weak)
        try:
            output = assembled(rows, known)
        except KeyError:
            raise RenderFailed.of(subject, "was not answered by the render child") from None
        self._refuse([*output.problems])
        return output

    def _files(self) -> tuple[list[bytes], dict[str, int]]:
        """Return what is written for helm: the parts of a call, and where each is put."""
        prefix = "" if self.chart.archive else "chart/"
        placed = {f"{prefix}{path}": data for path, data in self.chart.files.items()}
        placed |= {_layer(number): data for number, (_, data) in enumerate(self.values.layers)}
        return list(placed.values()), {path: number for number, path in enumerate(placed)}

    def _refuse(self, problems: list[Problem]) -> None:
        if not problems:
            return
        shown = self._valued(at_most(problems))
        if all(each.subject.startswith("renderer.") for each in shown):
            raise ValuesInvalid(*shown)
        raise ManifestInvalid(*shown)

    def _valued(self, problems: list[Problem]) -> list[Problem]:
        """Return mistakes, those of values with the place where each is written, if any file of values has it."""
        paths = [each.subject.partition(" ")[2] if each.subject.startswith("values ") else "" for each in problems]
        fields = [field for path in paths for field in (path, path.rpartition(".")[0])]
        own = "/".join(filter(None, [self.chart.place, _VALUES])), self.chart.files.get(_VALUES, b"")
        places: dict[int, str] = {}
        for name, data in (own, *self.values.layers) if any(paths) else ():
            found = iter(lines_of(self.release.sandbox, name, data)(fields))
            places |= {number: f"{name}:{line}" for number, (line, above) in enumerate(zip(found, found, strict=True)) if line != above}
        placed = (replace(each, place=places.get(number, each.place)) for number, each in enumerate(problems))
        return [self._charted(self._unlooked(each)) for each in placed]

    def _unlooked(self, problem: Problem) -> Problem:
        """Give a template's mistake a way out where the chart would look up on an upgrade what an install has made."""
        looks = self.upgrade and any(use.function == "lookup" for use in self.facts.uses)
        return replace(problem, fix=_GIVEN) if looks and problem.subject == "template" and not problem.fix else problem

    def _charted(self, problem: Problem) -> Problem:
        """Return a mistake of Chart.yaml with the line of the field that it is about."""
        about = _FIELD.match(f"{problem.subject}: {problem.message}")
        if not about or not problem.place.endswith(CHART):
            return problem
        data = self.chart.files.get(CHART, b"")
        [line] = lines_of(self.release.sandbox, problem.place, data)([about[1] or _FIELDS[about[2]]])
        return replace(problem, place=f"{problem.place}:{line}") if line else problem


def _layer(number: int) -> str:
    return f"values/{number}.yaml"


def _is_idle(manifest: Manifest, *, upgrade: bool) -> bool:
    """Whether it is a hook that helm wouldn't run now, but at the other of install and upgrade."""
    if HELM_HOOK.encode() not in manifest.raw:
        return False
    annotations = at(manifest.body(), "metadata", "annotations") or {}
    words = {word.strip() for word in str(annotations.get(HELM_HOOK) or "").split(",")}
    return not annotations.get(ARGO_HOOK) and bool(words & _HOOKS[not upgrade]) and not words & _HOOKS[upgrade]


def _keys(manifests: Sequence[Manifest], place: str) -> dict[str, tuple[Identity, ...]]:
    """Return how a Rollout may call objects: all of a template by its path below the chart, one by its kind and name."""
    found: dict[str, tuple[Identity, ...]] = {}
    for manifest in manifests:
        template = manifest.place.rpartition(":")[0].removeprefix(f"{place}/" if place else "")
        found[template] = (*found.get(template, ()), manifest.identity)
    return {**found, **{str(manifest.identity): (manifest.identity,) for manifest in manifests}}
