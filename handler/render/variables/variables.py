"""Which variables a target has, and its objects with them written out. The worker's half.

    gather       the configuration's and those of ConfigMaps and Secrets, read as the target's identity
    substitute   one call of the child for all objects with a variable in them; where none has one, nothing is read or called
    rename       what names objects: a Rollout's keys, what each render makes anew

Law: each object of the cluster that variables come from is in the read set, by uid and resourceVersion: it says when a value changes and
nothing of what it is. No digest of a value is kept anywhere.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from handler.config.post_build import PostBuild, SubstituteFrom
from handler.model.advice import advice
from handler.model.errors import Problem, RenderFailed, ValuesInvalid
from handler.model.manifest import Manifest
from handler.model.names import Identity
from handler.model.outside_inputs import VALUES, OutsideInputs
from handler.model.render import Rendered, RenderRequest
from handler.model.tree import ReadSet, judged_from, printable
from handler.render.file_renderer import refuse
from handler.render.objects import twice_declared
from handler.render.sandbox import Sandbox
from handler.render.variables.substitution import Substituted, decode_row, finished

PLACEHOLDERS = ("", "placeholder", "substituting" * 5)
"""What stands for a value of the cluster, by set: words that names, hosts and tags may hold, without a letter that both have."""
MAX_VALUE = 1 << 20
"""Bytes of a variable: Kubernetes keeps no more in one object."""
_MARK = re.compile(rb"\$[${]")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def with_variables(rendered: Rendered, request: RenderRequest, sandbox: Sandbox) -> Rendered:
    """Return a render with its variables written out, or as it is where the target has none.

    Raises ManifestInvalid: every expression that can't be read or substituted, and what is made of it; ValuesInvalid: an object of the
    cluster that holds variables is missing; RenderFailed: the child died; AnnealError: the cluster can't be asked.
    """
    marked = [each for each in (*rendered.manifests, *rendered.rests) if _MARK.search(each.raw)]
    if not marked:
        return rendered
    settings = request.post_build
    if not isinstance(settings, PostBuild):
        return _unchanged(rendered, marked)
    gathered = _Gathered()
    is_asked = request.keys_known or not request.placeholders
    if is_asked:
        gathered.run(settings, request.outside, request.called.namespaces[0], PLACEHOLDERS[request.placeholders])
    gathered.override(settings.values)
    if not gathered.values and settings.substitute_strategy == "WithVariables" and is_asked:
        return _unchanged(rendered, marked)
    reads = ReadSet.of({**dict(rendered.reads.paths), **gathered.reads})
    with judged_from(reads):
        return _Substitution(replace(rendered, reads=reads), marked, gathered, settings).run(request, sandbox)


def _unchanged(rendered: Rendered, marked: Sequence[Manifest]) -> Rendered:
    """Return a render into which nothing is substituted: what waited for that is finished."""
    waiting = [each for each in marked if b'"stringData"' in each.raw or "${" in f"{each.identity}{each.api_version}"]
    rows = [row for each in waiting for row in finished(each.body(), each.place, each.item)]
    refuse([row for row in rows if isinstance(row, Problem)])
    made = dict(zip(map(id, waiting), (row for row in rows if isinstance(row, Manifest)), strict=True))
    return _with(rendered, made) if made else rendered


@dataclass(slots=True)
class _Gathered:
    """The variables. `origins`: variable -> the object of the cluster that holds it; `reads`: what was looked at."""

    values: dict[str, str] = field(default_factory=dict)
    origins: dict[str, SubstituteFrom] = field(default_factory=dict)
    reads: dict[str, str] = field(default_factory=dict)

    def run(self, settings: PostBuild, outside: OutsideInputs, namespace: str, placeholder: str) -> None:
        """Take all of the cluster's. `placeholder`: what stands for each value, an empty one too; empty: the values themselves."""
        for source in settings.substitute_from:
            name = f"{VALUES}{source.kind}/{source.name}"
            self.reads[name] = self.reads.get(name) or outside.ask(name)
            data = outside.values(source.kind, source.name)
            if data is None and not source.optional:
                raise _missing(source, namespace)
            self._take(source, dict.fromkeys(filter(_NAME.fullmatch, data or ()), placeholder.encode()) if placeholder else data or {})

    def _take(self, source: SubstituteFrom, data: Mapping[str, bytes]) -> None:
        for key, value in data.items():
            shown = printable(key, 80)
            if not _NAME.fullmatch(key):
                fix = "rename that key, to A-Z, a-z, 0-9 and _, or keep it in another object"
                raise ValuesInvalid.of(str(source), f"has the key {shown}, and postBuild takes each as the name of a variable", fix=fix)
            if len(value) > MAX_VALUE:
                raise ValuesInvalid.of(str(source), f"holds more in {shown} than the {MAX_VALUE:,} bytes that a variable has")
            try:
                self.values[key] = value.decode().replace("\n", "")
            except UnicodeDecodeError:
                raise ValuesInvalid.of(str(source), f"isn't UTF-8 in {shown}; postBuild takes each key as a variable") from None
            self.origins[key] = source

    def override(self, values: Mapping[str, str]) -> None:
        """Put the configuration's above those of the cluster."""
        for name, value in values.items():
            self.values[name] = value.replace("\n", "")
            self.origins.pop(name, None)


def _missing(source: SubstituteFrom, namespace: str) -> ValuesInvalid:
    kind = "secret generic" if source.kind == "Secret" else "configmap"
    create = advice("kubectl create {text} {} -n {} --from-literal=NAME=value", kind, source.name, namespace)
    seen = f"isn't there, in namespace {namespace}; postBuild.substituteFrom takes variables from it"
    return ValuesInvalid.of(str(source), seen, fix=advice("create it: {text}; or write `optional: true` there", create))


@dataclass(frozen=True, slots=True)
class _Substitution:
    """One call of the child. `marked`: the objects with a variable in them."""

    rendered: Rendered
    marked: Sequence[Manifest]
    gathered: _Gathered
    settings: PostBuild

    def run(self, request: RenderRequest, sandbox: Sandbox) -> Rendered:
        subject = printable(request.path) or "repository"
        rows = self._rows(self.gathered.values, request, sandbox)
        problems = [row for row in rows if isinstance(row, Problem)]
        refuse(self._told(problems, request, sandbox) if problems else [])
        found = [row for row in rows if isinstance(row, Substituted)]
        if [row.number for row in found] != list(range(len(self.marked))):
            raise RenderFailed.of(subject, "was not answered by the render child")
        return _with(self.rendered, {id(self.marked[row.number]): row.manifest for row in found})

    def _rows(self, values: Mapping[str, str], request: RenderRequest, sandbox: Sandbox) -> Sequence[Substituted | Problem]:
        parts = [json.dumps(values).encode(), *(each.raw for each in self.marked)]
        return sandbox.run("substitute", self._options(request), parts, decode_row, subject=printable(request.path) or "repository")

    def _told(self, problems: Sequence[Problem], request: RenderRequest, sandbox: Sandbox) -> Sequence[Problem]:
        """Return the mistakes that placeholders meet, too: any other may say what a Secret holds, by its words or by coming."""
        secrets = {name: str(origin) for name, origin in self.gathered.origins.items() if origin.kind == "Secret"}
        if not secrets or request.placeholders or request.told:
            return problems
        beside = self._rows({**self.gathered.values, **dict.fromkeys(secrets, PLACEHOLDERS[1])}, request, sandbox)
        alike = [each for each in problems if each in beside]
        seen = f"fails with the values of {', '.join(sorted({*secrets.values()}))}, and not without them: what is said of it isn't shown"
        fix = advice("who may see them sees it by: anneal render {} --show-secrets", request.called.name)
        return alike or [Problem(printable(request.path) or "repository", seen, fix=fix)]

    def _options(self, request: RenderRequest) -> dict[str, Any]:
        is_unasked = request.placeholders and not request.keys_known and self.settings.substitute_from
        return {
            "places": [each.place for each in self.marked],
            "items": [each.item for each in self.marked],
            "origins": {name: str(origin) for name, origin in self.gathered.origins.items()},
            "unknown": None if self.settings.substitute_strategy == "Strict" else "",
            "asked": PLACEHOLDERS[request.placeholders] if is_unasked else None,
        }


def _with(rendered: Rendered, made: Mapping[int, Manifest]) -> Rendered:
    """Return a render with other objects in the place of some. Raises ManifestInvalid: two have become the same one."""
    manifests, rests = (tuple(made.get(id(each), each) for each in group) for group in (rendered.manifests, rendered.rests))
    refuse(twice_declared(manifests))
    pairs = zip((*rendered.manifests, *rendered.rests), (*manifests, *rests), strict=True)
    named = {each.identity: other.identity for each, other in pairs if each.identity != other.identity}
    return replace(
        rendered,
        manifests=manifests,
        rests=rests,
        keys=_keys(rendered.keys, named),
        unstable={named.get(identity, identity): each for identity, each in rendered.unstable.items()},
        renamed=tuple(named.get(identity, identity) for identity in rendered.renamed),
    )


def _keys(keys: Mapping[str, tuple[Identity, ...]], named: Mapping[Identity, Identity]) -> Mapping[str, tuple[Identity, ...]]:
    """Return how a Rollout calls objects: as git writes them, and by what they are now where that is how it may call them."""
    now = {str(named[each]): (named[each],) for key, (each, *_) in keys.items() if each in named and key == str(each)}
    return {**now, **{key: tuple(named.get(each, each) for each in found) for key, found in keys.items()}}
