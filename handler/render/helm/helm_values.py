"""The values of a release, in the order in which later ones stand above earlier ones: helm's own, so that helm merges them.

    the chart's values.yaml    helm reads it
    valuesFiles                files of the commit
    valuesFrom                 keys of ConfigMaps and Secrets; with targetPath the key is one value
    values                     written by the operator
    set                        single values, last

Law: what may be secret is a file in the private directory, never an argument: other processes may read those. Nothing here reads YAML.
"""

from __future__ import annotations

import json
import posixpath
import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from handler.config.renderer_settings import RendererSettings, ValuesFrom
from handler.model.advice import advice
from handler.model.errors import Problem, SourceRefused, ValuesInvalid
from handler.model.outside_inputs import VALUES, OutsideInputs
from handler.model.tree import printable
from handler.render.tree_files import TreeFiles

_STEP = re.compile(r"((?:[^.\\\[\]]|\\.)+)(?:\.(?=.)|\Z)", re.DOTALL)  # of a path, up to a point that isn't escaped; no item of a list
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)
_BARE = re.compile(r"(\\.)|([,={])", re.DOTALL)  # what would end a path in helm's --set, unless it is escaped
_SPECIAL = re.compile(r"([\\,{}\[\]=])")
_WHOLE = re.compile(r"-?[1-9][0-9]{0,17}|0")
_WORDS = {"true": True, "false": False, "null": None}


@dataclass(slots=True)
class Values:
    """What helm is given. `layers`: what people call a file of values, and its bytes; `arguments`: those of `set`.

    `reads`: what was looked at.
    """

    layers: list[tuple[str, bytes]] = field(default_factory=list)
    arguments: list[str] = field(default_factory=list)
    reads: dict[str, str] = field(default_factory=dict)


def value_files(settings: RendererSettings, path: str) -> list[str]:
    """Return the paths of `valuesFiles` in the repository. Raises SourceRefused: one leads out of it."""
    found = [posixpath.normpath(posixpath.join(path, each)) for each in settings.values_files]
    refused = [each for each, led in zip(settings.values_files, found, strict=True) if led.startswith(("../", "/")) or led == ".."]
    if refused:
        fix = "valuesFiles are paths from `path` of the target to files of the same repository"
        raise SourceRefused(*(Problem(printable(each), "leads out of the repository", fix=fix) for each in refused))
    return found


def take_files(files: TreeFiles, paths: list[str]) -> None:
    """Take the files of values from the tree. Raises SourceRefused, with every one that isn't there."""
    missing = [path for path in paths if not files.add_file(path)]
    if missing:
        seen, fix = f"isn't a file of commit {files.tree.commit.sha[:12]}", "correct renderer.valuesFiles of the target, or add the file"
        raise SourceRefused(*(Problem(printable(path), seen, fix=fix) for path in missing))


def layered(
    settings: RendererSettings, files: list[tuple[str, bytes]], outside: OutsideInputs, namespace: str, reads: dict[str, str]
) -> Values:
    """Return all values of a release.

    `files`: those of `valuesFiles`, in order; `namespace`: where those of the cluster are; `reads`: they join it.

    Raises AnnealError: values of the cluster are missing.
    """
    values = Values([*files], reads=reads)
    for each in settings.values_from:
        _from_cluster(each, outside, namespace, values)
    if settings.values:
        values.layers.append(("renderer.values", settings.values.encode()))
    for path, value in json.loads(settings.set or "{}").items():
        values.arguments += _argument(path, value)
    return values


def read_name(kind: str, name: str) -> str:
    """Return the name, in a read set, of an object that holds values."""
    return f"{VALUES}{kind}/{name}"


def _from_cluster(source: ValuesFrom, outside: OutsideInputs, namespace: str, values: Values) -> None:
    name = read_name(source.kind, source.name)
    if name not in values.reads:
        values.reads[name] = outside.ask(name)
    data = outside.values(source.kind, source.name)
    shown = f"{source.kind} {source.name}"
    if data is None or source.key not in data:
        if source.optional:
            return
        raise _missing(source, shown, namespace, is_there=data is not None)
    text = _text(data[source.key], f"{shown}, key {source.key}")
    layer = json.dumps(_nested(source, text, shown)) if source.target_path else text
    values.layers.append((f"{shown} (key {source.key})", layer.encode()))


def _missing(source: ValuesFrom, shown: str, namespace: str, *, is_there: bool) -> ValuesInvalid:
    seen = f"has no key {source.key}" if is_there else f"isn't there, in namespace {namespace}"
    kind = "secret generic" if source.kind == "Secret" else "configmap"
    create = advice("kubectl create {text} {} -n {} --from-file={}", kind, source.name, namespace, f"{source.key}=values.yaml")
    way = "write `key:` of renderer.valuesFrom as it has it" if is_there else advice("create it: {text}", create)
    return ValuesInvalid.of(
        shown, f"{seen}; renderer.valuesFrom takes values from it", fix=advice("{text}; or write `optional: true` there", way)
    )


def _text(data: bytes, shown: str) -> str:
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise ValuesInvalid.of(shown, "isn't UTF-8; renderer.valuesFrom takes values from it") from None


def _nested(source: ValuesFrom, text: str, shown: str) -> object:
    """Return one value as values that hold just it: Flux' targetPath. Items of lists can't be set so: helm replaces a list as a whole."""
    path = source.target_path
    steps = [*_STEP.finditer(path)]
    if not steps or "".join(step[0] for step in steps) != path:
        fix = "let a key hold the whole list as YAML, and take it without targetPath"
        raise ValuesInvalid.of(shown, f"targetPath {printable(path, 200)!r} is no path of mappings", fix=fix)
    value = _typed(text)
    for step in reversed(steps):
        value = {_ESCAPED.sub(r"\1", step[1]): value}
    return value


def _typed(text: str) -> object:
    """Return a text as helm's --set reads it: a whole number, true, false, null, or a text, which quotes around it keep one."""
    if len(text) > 1 and text[0] == text[-1] and text[0] in "'\"":
        return text[1:-1]
    return int(text) if _WHOLE.fullmatch(text) else _WORDS.get(text, text)


def _argument(path: str, value: object) -> Iterator[str]:
    """Yield the arguments that set one value: a whole number by --set, for JSON would make it a float; a text as such, all else as JSON."""
    escaped = _BARE.sub(lambda found: found[1] or f"\\{found[2]}", path)
    if isinstance(value, str):
        text = _SPECIAL.sub(r"\\\1", value)
        yield from ("--set-string", f"{escaped}={text}")
    elif value is None or isinstance(value, bool) or (isinstance(value, int) and _WHOLE.fullmatch(str(value))):
        yield from ("--set", f"{escaped}={json.dumps(value)}")
    else:
        text = json.dumps(value).replace("{home}", r"\u007bhome}")  # which stands for a directory in a program's arguments
        yield from ("--set-json", f"{escaped}={text}")
