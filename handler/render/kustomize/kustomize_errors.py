"""What kustomize says of a build that failed -> one problem: the true cause, with the line of the entry that leads to it. Pure.

    Error: accumulating resources: accumulation err='accumulating resources from '../base': '…' must resolve to a file':
    recursed accumulation of path '/…/base': accumulating resources: … 'a.yaml': MalformedYAMLError: yaml: … in File: a.yaml
    → deploy/base/kustomization.yaml:2: a.yaml: isn't YAML: mapping values are not allowed in this context

Law: nothing of this machine's paths is left, and no text that a generator or patch holds, for it may be a secret's.
"""

from __future__ import annotations

import json
import posixpath
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from handler.model.errors import Problem
from handler.model.quotation import quoted
from handler.model.tree import printable
from handler.render.kustomize.remotes import shown

Marks = Mapping[str, Sequence[tuple[str, str, int]]]
"""A kustomization's path -> field, text and line of each of its entries."""
MOST = 600  # letters of a message: the cause stands first

_PATCHES = ("patches", "patchesStrategicMerge", "patchesJson6902")
_ERROR = re.compile(r"^Error: ", re.MULTILINE)
_QUOTED = re.compile(r'(?:accumulateDirectory|loader\.New):? ("(?:[^"\\]|\\.)*")\s*\Z', re.DOTALL)
_INNER = re.compile(r".*(?:recursed accumulation of path|couldn't make target for path) '(?P<folder>[^']*)': ", re.DOTALL)
_CYCLE = re.compile(r".*(?=cycle detected: )", re.DOTALL)
_NO_DIRECTORY = re.compile(r"accumulation err='(?P<why>.*)': must build at directory: .*", re.DOTALL)
_FROM = re.compile(r"(?:accumulating|merging) resources from '(?P<named>[^']*)': ", re.DOTALL)
_BASE = re.compile(
    r"accumulation err='accumulating resources from '(?P<named>[^']*)': '[^']*' must resolve to a file': "
    r"(?:recursed merging from path '[^']*': )?"
)
_CONFIGURED = re.compile(r"trouble configuring builtin (?P<kind>\w+) with config: `.*`: ", re.DOTALL)
_IDENTITY = re.compile(r"\b(\w+)\.(?:\[noVer\]|v\w+)\.(?:\[noGrp\]|[\w.-]+)/([\w.-]*?)\.(\[noNs\]|[\w-]+)(?![\w.-])")
_BUILTIN = {
    "PatchTransformer": _PATCHES,
    "PatchStrategicMergeTransformer": ("patchesStrategicMerge",),
    "PatchJson6902Transformer": ("patchesJson6902",),
    "ReplacementTransformer": ("replacements",),
    "HelmChartInflationGenerator": ("helmCharts", "helmChartInflationGenerator"),
    "ConfigMapGenerator": ("configMapGenerator",),
    "SecretGenerator": ("secretGenerator",),
}


@dataclass(frozen=True, slots=True)
class _Rule:
    """A message that is known. `said`: what it becomes, with its groups; `fields`: where it belongs; `fix`: the way out."""

    pattern: re.Pattern[str]
    said: str
    fields: tuple[str, ...] = ()
    fix: str = ""


def _rule(pattern: str, said: str, *fields: str, fix: str = "") -> _Rule:
    return _Rule(re.compile(pattern, re.DOTALL), said, fields, fix)


_RULES = (
    _rule(r'invalid Kustomization: json: unknown field "(?P<field>[^"]*)".*', "kustomize knows no such field", fix="correct or remove it"),
    _rule(
        r"invalid Kustomization: json: cannot unmarshal (?P<found>\w+) into Go struct field "
        r"\w+\.(?P<field>\w+)(?P<rest>[\w.]*) of type (?P<type>.*)",
        "{field}{rest} can't be of type {found}; kustomize takes {type}",
    ),
    _rule(r"Failed to read kustomization file under \S+\s+(?P<why>.*)", "{why}"),
    _rule(r"MalformedYAMLError: (?:yaml: )?(?P<why>.*) in File: .*", "isn't YAML: {why}"),
    _rule(r"missing metadata\.name in object \{\{\S* (?P<kind>\w*)\}.*", "holds an object of kind {kind} without metadata.name"),
    _rule(r"missing Resource metadata.*", "holds no Kubernetes object", fix="remove it from this list, or correct the file"),
    _rule(r"may not add resource with an already registered id: (?P<id>\S+)", "{id} is declared twice", fix="remove one of them"),
    _rule(
        r'no resource matches strategic merge patch "?(?P<id>[^":]+)"?.*',
        "a patch is for {id}, which no resource declares",
        *_PATCHES,
        fix="correct the patch's kind, name and namespace, or remove it",
    ),
    _rule(r"no matches for Id (?P<id>[^;]+); failed to find unique target.*", "a patch is for {id}, which no resource declares", *_PATCHES),
    _rule(
        r"(?:configmap|secret) (?P<named>\S+) illegally repeats the key `(?P<key>[^`]*)`",
        "{named} has the key {key} twice",
        "configMapGenerator",
        "secretGenerator",
    ),
    _rule(r"unable to parse SM or JSON patch.*", "a patch is neither an object nor a list of JSON patch operations", *_PATCHES),
    _rule(r"(?P<why>\w+ operation does not apply: .*)", "a JSON patch fails: {why}", *_PATCHES),
    _rule(
        r'merging from generator .*Kind:"(?P<kind>\w+)".* Name:"(?P<named>[^"]*)".*does not exist; cannot merge or replace.*',
        "{kind}/{named} isn't among the resources, so that nothing can be merged with it",
        "configMapGenerator",
        "secretGenerator",
        fix="remove behavior, or add what it changes to resources",
    ),
    _rule(r".*literal source.*", "a literal isn't written as key=value", "configMapGenerator", "secretGenerator", fix="write key=value"),
    _rule(r"loading KV pairs: (?P<why>.*)", "a generator's data can't be read: {why}", "configMapGenerator", "secretGenerator"),
    _rule(
        r"fieldPath `(?P<path>[^`]*)` is missing for replacement source (?P<id>\S+)",
        "a replacement takes {path} of {id}, which has none",
        "replacements",
    ),
    _rule(r"nothing selected by (?P<id>[^:]*).*", "a replacement takes a value of {id}, which no resource declares", "replacements"),
    _rule(r"(?P<why>.*replacement.*)", "{why}", "replacements"),
    _rule(r"var '\{(?P<named>\w+) .*", "variable {named} names an object that no resource declares", "vars"),
    _rule(r"kustomization\.yaml is empty.*", "is empty", fix="list what it builds: resources: […]"),
    _rule(
        r"cycle detected: candidate root '(?P<outer>[^']*)' contains visited root '(?P<named>[^']*)'.*",
        "{outer} is built of {named}, which lies in it or refers back to it",
        fix="move what both need to a directory beside them",
    ),
    _rule(
        r"expected kind 'Component' for path '(?P<named>[^']*)'.*", "{named} is no component", "components", fix="list it under resources"
    ),
    _rule(
        r"expected kind != 'Component' for path '(?P<named>[^']*)'.*", "{named} is a component", "resources", fix="list it under components"
    ),
    _rule(r"(?P<why>loading CRDs .*)", "{why}", "crds"),
    _rule(
        r"(?:Error: )?(?P<why>.*?)(?:\s+Use --debug flag[^:]*)?\s*: unable to run: .*",
        "helm says: {why}",
        "helmCharts",
        "helmChartInflationGenerator",
    ),
)


def explain(errors: str, home: str, root: str, marks: Marks) -> Problem:
    """Return the problem that kustomize's standard error names. `home`: the private directory; `root`: what is built."""
    text = _ERROR.split(errors.replace(f"{home}/", "").replace(home, "."))[-1].strip()
    text, folder, named = _reduced(text, root)
    fields: tuple[str, ...] = ()
    if found := _CONFIGURED.match(text):
        fields, text = _BUILTIN.get(found["kind"], ()), text[found.end() :]
    rule = next((rule for rule in _RULES if rule.pattern.fullmatch(text)), None)
    groups: dict[str, str] = {}
    if rule and (match := rule.pattern.fullmatch(text)):
        groups = {name: quoted(value or "", MOST) if name == "why" else value or "" for name, value in match.groupdict().items()}
        text, fields = rule.said.format(**groups), (*fields, *rule.fields, *filter(None, [groups.get("field")]))
    subject = named or groups.get("field") or "kustomize"
    message = printable(shown(_identities(" ".join(text.split()))), MOST)
    message = message if rule else quoted(message)
    place = _place(marks, folder, fields, [each for each in (named, groups.get("named", ""), *_words(text)) if each])
    return Problem(printable(subject), message or "failed and said nothing", place, rule.fix if rule else "")


def _reduced(text: str, root: str) -> tuple[str, str, str]:
    """Follow a chain of messages to its end; return the cause, the directory of its kustomization, and the file it is about."""
    folder, named = root, ""
    while True:
        before = text
        if quoted := _QUOTED.search(text):
            text = _unquoted(quoted[1])
        if inner := _INNER.match(text):
            folder, text = "" if inner["folder"] == "." else inner["folder"], text[inner.end() :]
        for prefix in ("accumulating resources: ", "accumulating components: "):
            text = text.removeprefix(prefix)
        if cycle := _CYCLE.match(text):
            text = text[cycle.end() :]
        if file := _NO_DIRECTORY.fullmatch(text):
            text = file["why"]
        if source := _BASE.match(text) or _FROM.match(text):
            named, text = source["named"], text[source.end() :]
        if text == before:
            return text, folder, named


def _unquoted(text: str) -> str:
    """Read what Go has quoted; what isn't JSON's is left as it is."""
    try:
        return str(json.loads(text))
    except ValueError:
        return text[1:-1]


def _identities(text: str) -> str:
    """Write kustomize's names of objects as ours."""
    return _IDENTITY.sub(lambda found: "/".join((found[1], *([] if found[3] == "[noNs]" else [found[3]]), found[2])), text)


def _words(text: str) -> list[str]:
    """Return what of a message may be an entry's text: paths, and the chart of a template."""
    return [*re.findall(r"[\w./-]+\.[\w-]+", text), *re.findall(r"([\w.-]+)/templates/", text)]


def _place(marks: Marks, folder: str, fields: Sequence[str], texts: Sequence[str]) -> str:
    """Return the line of the entry that a message is about: one with its text, else one of its field, else the kustomization's first."""
    path = next((path for path in marks if posixpath.dirname(path) == folder), None)
    if path is None:
        return folder
    found = [line for text in texts for _, each, line in marks[path] if each and posixpath.normpath(each) == posixpath.normpath(text)]
    found += [line for field in fields for each, _, line in marks[path] if each.casefold() == field.casefold()]
    return f"{path}:{found[0] if found else 1}"
