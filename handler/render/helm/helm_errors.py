"""What helm says when it fails -> problems with file:line of the source. Pure, in the child that ran it.

    template: / execution error / parse error    the innermost template that git has, and which one calls it
    YAML parse error                             the template; the line is that of what it renders
    values don't meet the schema                 one problem for each value
    Chart.yaml, charts/, values, `set`           the file that must change

Law: helm's own words stay, without its private paths and hints on its flags; a caller that gave it what isn't in git shows
them as far as placeholders give them, too. Regular expressions, for helm says nothing in another form.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from handler.model.advice import advice
from handler.model.errors import Problem
from handler.model.quotation import quoted
from handler.model.rollout import key_in_path
from handler.model.tree import MAX_PATH, printable

SCHEMA = "values.schema.json"
MAX_SHOWN = 1_000
_FRAME = re.compile(r'template: ([^\s:]+):(\d+)(?::\d+)?: (?:executing "[^"]*" )?')
_OF_TPL = re.compile(r'template: gotpl:[\d:]+ (?:executing "gotpl" )?')
_TPL = re.compile(r'(?:error during tpl function execution for|cannot parse template) "(?:[^"\\]|\\.)*+": ')
_PARSE = re.compile(r"parse error at \(([^\s:]+):(\d+)\): (.*)", re.DOTALL)
_EXECUTION = re.compile(r"execution error at \(([^\s:]+):(\d+)(?::\d+)?\): (.*)", re.DOTALL)
_YAML = re.compile(r"YAML parse error on ([^\s:]+): (.*)", re.DOTALL)
_LINE = re.compile(r"(?:error converting YAML to JSON: )?yaml: (?:line (\d+): )?(.*)", re.DOTALL)
_SHAPE = re.compile(
    r"error unmarshaling JSON: .*?json: cannot unmarshal (\w+) into Go (?:struct field \S*?\.?(metadata\S*|kind|apiVersion|\w+)|value)"
)
_TYPES = {"object": "a mapping", "array": "a list", "string": "text", "number": "a number", "bool": "true or false"}
_METASCHEMA = re.compile(r"\S+ (is not valid against metaschema).*", re.DOTALL)
_LOADING = re.compile(r'failing loading "([^"]*)"')
_SOURCE_AT = re.compile(r"at ([^\s:]+/[^\s:]+):(\d+)")
_LEAF = re.compile(r"^\s*- (?:at '([^']*)': |([^:\s]+): )(.*)$")
_PARENT = re.compile(r"validation failed$|'(?:allOf|anyOf|oneOf|not)' failed")
_EXTRA = re.compile(r"additional properties '([^']+)'")
_QUOTED = (
    (re.compile(r"^'.*' (does not match pattern .*)$", re.DOTALL), r"\1"),
    (re.compile(r"^.* (is not valid [\w-]+).*$", re.DOTALL), r"\1"),
    (re.compile(r"^(multipleOf|minimum|maximum|exclusiveMinimum|exclusiveMaximum): got \S+, want (.*)$"), r"\1: want \2"),
)
_CHART_FILE = re.compile(r"cannot load ([\w.]+): (.*)", re.DOTALL)
_VALUES_FILE = re.compile(r"failed to parse (\S+): (.*)", re.DOTALL)
_UNPACK = re.compile(r"error (?:unpacking (?:subchart )?|reading )(\S+) in \S+: (.*)", re.DOTALL)
_SET = re.compile(r"failed parsing --set\S* data:?\s*(.*)", re.DOTALL)
_WARNING = re.compile(r"\bwarning: ([^(\n]+)")


@dataclass(frozen=True, slots=True)
class TemplateSources:
    """What helm's names stand for. `roots`: its path of a chart -> that in git; `values`: path of a file of values -> what people call it.

    `chart`: the chart's path in git; `home`: helm's directory.
    """

    chart: str = ""
    roots: Mapping[str, str] = field(default_factory=dict)
    values: Mapping[str, str] = field(default_factory=dict)
    home: str = ""

    def place(self, path: str, line: str | int = 0) -> str:
        """Return file:line in git of a path as helm writes it; the chart's own where it is no file of a known chart."""
        parts = path.split("/")
        for count in range(len(parts), 0, -1):
            root = self.roots.get("/".join(parts[:count]))
            if root is not None:
                return "/".join((*filter(None, [root]), *parts[count:])) + (f":{line}" if line else "")
        return f"{path}:{line}" if line else path

    def in_chart(self, path: str, line: str | int = 0) -> str:
        """Return the place of a file of the chart itself."""
        return "/".join(filter(None, [self.chart, path])) + (f":{line}" if line else "")

    def clean(self, text: str) -> str:
        """Return words of helm's fit for a person: on one line, its directory out of them."""
        text = text.replace(f"{self.home}/", "") if self.home else text
        return printable(" ".join(text.split()), MAX_SHOWN)


def problems(errors: str, sources: TemplateSources, exit_code: int) -> list[Problem]:
    """Return what made helm fail; at least one problem."""
    begun = errors.partition("Error: ")[2] or "".join(errors.partition("template: ")[1:])  # the end of a long one has lost its beginning
    said = begun.partition("\n\nUse --debug flag")[0].strip()
    if not said:
        return [
            Problem("helm", f"ended with exit code {exit_code}: {quoted(sources.clean(errors[-300:])) or 'it said nothing'}", sources.chart)
        ]
    found = next(filter(None, (list(read(said, sources)) for read in _READERS)), None)
    found = found or [_problem("helm", said, sources.chart)]
    return [replace(each, message=quoted(sources.clean(each.message)), place=printable(each.place, MAX_PATH)) for each in found]


def warnings(errors: str, sources: TemplateSources) -> Iterable[str]:
    """Return what helm warned of, each once, without the values in it."""
    return dict.fromkeys(quoted(sources.clean(found[1].strip())) for found in _WARNING.finditer(errors))


def _problem(subject: str, words: str, place: str, fix: str = "") -> Problem:
    return Problem(subject, " ".join(words.split()), place, fix)


def _execution(said: str, sources: TemplateSources) -> Iterator[Problem]:
    """`required` and `fail`: the author's own words."""
    found = _EXECUTION.match(said)
    if found:
        yield _problem("template", found[3], sources.place(found[1], found[2]))


def _parse(said: str, sources: TemplateSources) -> Iterator[Problem]:
    found = _PARSE.match(said)
    if found:
        words = _SOURCE_AT.sub(lambda each: f"at {sources.place(each[1], each[2])}", found[3])
        yield _problem("template", words, sources.place(found[1], found[2]))


def _template(said: str, sources: TemplateSources) -> Iterator[Problem]:
    """A chain of templates that call each other: named are the innermost that is a file, and the outermost."""
    frames = [each for each in _FRAME.finditer(said) if "/" in each[1]]
    if said.startswith("template: ") and frames:
        first, last = frames[0], frames[-1]
        rest = _TPL.sub("", said[last.end() :])
        words = _OF_TPL.sub("", rest)
        outer, inner = (sources.place(each[1], each[2]) for each in (first, last))
        called = f" (called at {outer})" if outer != inner else ""
        yield _problem("template", f"{_without_template(words)[: MAX_SHOWN - 200]}{called}", inner)


def _without_template(words: str) -> str:
    return words.replace('associated with template "gotpl"', "in the chart")


def _rendered(said: str, sources: TemplateSources) -> Iterator[Problem]:
    found = _YAML.match(said)
    if not found:
        return
    line, shape = _LINE.match(found[2]), _SHAPE.match(found[2])
    words = found[2]
    if line:
        words = f"line {line[1]} of a document that it renders: {line[2]}" if line[1] else line[2]
    elif shape:
        words = f"a document that it renders {'' if shape[2] else 'is '}" + (
            f"has {_TYPES.get(shape[1], shape[1])} in {shape[2]}" if shape[2] else _TYPES.get(shape[1], shape[1])
        )
    fix = advice("see what it renders: helm template {path} --debug", sources.chart or ".")
    yield _problem("rendered YAML", words, sources.place(found[1]), fix)


def _schema(said: str, sources: TemplateSources) -> Iterator[Problem]:
    """Values that a chart's schema refuses; the schema's own mistakes are in it too."""
    head, _, body = said.partition("following chart(s):\n")
    if not head.startswith("values don't meet the specifications"):
        return
    lines = body.splitlines()
    broken = _METASCHEMA.search(body)
    if broken:
        lines = [*body[: broken.start()].splitlines(), " ".join(broken[0].partition(" ")[2].split())]
    tops = {each.removesuffix(":") for each in lines if each.endswith(":") and not each.startswith((" ", "-"))}
    chart = ""
    for line in lines:
        leaf = _LEAF.match(line)
        if line.removesuffix(":") in tops and line.endswith(":"):
            chart = line.removesuffix(":")
        elif leaf and not _PARENT.search(leaf[3]):
            yield _refused_value(chart, leaf, sources)
        elif line.strip() and not leaf:
            yield _refused_schema(chart, line, sources)


def _refused_schema(chart: str, line: str, sources: TemplateSources) -> Problem:
    elsewhere = _LOADING.search(line)
    place = _schema_place(chart, sources)
    if elsewhere:
        return Problem(SCHEMA, f"refers to {elsewhere[1]}, which isn't read here", place, "write it into the schema itself, below $defs")
    return Problem(SCHEMA, line, place)


def _refused_value(chart: str, leaf: re.Match[str], sources: TemplateSources) -> Problem:
    pointer, dotted, words = leaf.groups()
    for pattern, shown in _QUOTED:
        words = pattern.sub(shown, words)
    path = dotted.replace("(root)", "") if dotted else _path(pointer or "")
    extra = _EXTRA.match(words)
    path = ".".join(filter(None, [path, extra[1] if extra else ""]))
    owner = chart if chart and chart not in sources.roots else ""
    return Problem(f"values {'.'.join(filter(None, [owner, path]))}".strip(), words, _schema_place(chart, sources))


def _path(pointer: str) -> str:
    steps = [step.replace("~1", "/").replace("~0", "~") for step in pointer.split("/")[1:]]
    text = "".join(f"[{step}]" if step.isdecimal() else f".{key_in_path(step)}" for step in steps)
    return text.removeprefix(".")


def _schema_place(chart: str, sources: TemplateSources) -> str:
    named = [path for path in sources.roots if path.rpartition("/")[2] == chart]
    return sources.place(f"{named[0]}/{SCHEMA}") if named else sources.in_chart(SCHEMA)


def _chart_file(said: str, sources: TemplateSources) -> Iterator[Problem]:
    found = _CHART_FILE.match(said)
    line = _LINE.match(found[2]) if found else None
    if found:
        yield Problem(found[1], line[2] if line else found[2], sources.in_chart(found[1], line[1] or 0 if line else 0))


def _values_file(said: str, sources: TemplateSources) -> Iterator[Problem]:
    found = _VALUES_FILE.match(said)
    if not found:
        return
    line = _LINE.match(found[2])
    path = found[1].removeprefix(f"{sources.home}/")
    place = sources.values.get(path, path)
    shape = re.search(r"cannot unmarshal (\w+) into", found[2])
    words = line[2] if line else f"is {shape[1]}, not a mapping" if shape else found[2]
    yield Problem("values", words, f"{place}:{line[1]}" if line and line[1] else place)


def _about_chart(said: str, sources: TemplateSources) -> Iterator[Problem]:
    place = sources.in_chart("Chart.yaml")
    for begins, subject, fix in _ABOUT:
        if said.startswith(begins):
            yield Problem(subject, said.removeprefix("validation: "), place, fix)
            return


_ABOUT = (
    ("chart requires kubeVersion", "kubeVersion", "take a version of the chart that is made for this cluster"),
    ("library charts are not installable", "chart", "make it a dependency of a chart of `type: application`, and render that"),
    ("Chart.yaml file is missing", "chart", "correct `path` of the target, or add the file"),
    ("validation: ", "Chart.yaml", ""),
    ("An error occurred while checking for chart dependencies", "dependencies", "run `helm dependency build`, and pack the chart anew"),
)


def _unpacked(said: str, sources: TemplateSources) -> Iterator[Problem]:
    found = _UNPACK.match(said)
    if found:
        yield Problem("chart archive", f"can't be unpacked: {found[2]}", sources.in_chart(f"charts/{found[1].rpartition('/')[2]}"))


def _set(said: str, _: TemplateSources) -> Iterator[Problem]:
    found = _SET.match(said)
    if found:
        yield Problem(
            "renderer.set", f"can't be read: {found[1]}", fix="write a path as helm's --set takes it, e.g. image.tag or hosts[0].name"
        )


_Reader = Callable[[str, TemplateSources], Iterable[Problem]]
_READERS: tuple[_Reader, ...] = (
    _execution,
    _parse,
    _template,
    _rendered,
    _schema,
    _chart_file,
    _values_file,
    _about_chart,
    _unpacked,
    _set,
)
