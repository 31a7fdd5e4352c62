"""What nix says of an evaluation that failed -> one problem: its message, with the line of the repository that it is about. Pure.

    error: undefined variable 'lib'
           at /…/tree/deploy/web.nix:3:5:
    → deploy/web.nix:3: nix: undefined variable 'lib'

Law: nothing of this machine's paths is left; values of definitions aren't shown, for they may be a secret's.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from handler.model.errors import Problem
from handler.model.quotation import quoted
from handler.model.tree import printable
from handler.render.folders import inside

TREE, OWN = "tree", "anneal"
"""The directories below the private one: the commit's files, and eval.nix with its module."""
MOST, MOST_TRACE, MOST_NOTES = 600, 2_000, 10
PACKAGES_FROM = 1_000
"""The line from which an expression is the settings' `packages`, and not their `modules`, which begin at line 2."""
_MODULES, _PACKAGES = "renderer.modules", "renderer.packages"
SETTINGS = frozenset({_MODULES, _PACKAGES})
"""The operator's expressions, as places have them."""

_ERROR = re.compile(r"^[ \t]*error: +(?=\S)", re.MULTILINE)
_AT = re.compile(r"^[ \t]+at (?P<file>\S.*?):(?P<line>\d+):\d+:?$", re.MULTILINE)
_END = re.compile(r"^[ \t]+(?:at \S.*:\d+:\d+:?|… .*|\d+\|.*|\(stack trace truncated.*)$|^\(use '--show-trace'.*$", re.MULTILINE)
_FRAME = re.compile(r"^[ \t]+… (?P<what>.*)$(?:\s+at (?P<file>\S.*?):(?P<line>\d+):\d+:?$)?", re.MULTILINE)
_MANIFEST = re.compile(r"^[ \t]+… anneal: (?P<file>/.*):(?P<line>\d+)$", re.MULTILINE)
_EXPRESSIONS = ("«string»", "(string)")
_IN_FILE = re.compile(r"(?:In|in|declared in|by) [`'](?P<file>/[^'`]*)'")
_VALUES = re.compile(r"(?:TypeError: )?Definition values:.*?(?=Did you mean|It seems as if|\Z)", re.DOTALL)
_NOTE = re.compile(r"^(?:trace: (?:(?:evaluation )?warning: )?|(?:evaluation )?warning: )(?P<text>.*)$", re.MULTILINE)
_SILENT = "unable to load nss_dns backend"  # it would look up names, and has no network
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")

_LITERAL = "name it by a path literal (./common.nix), or list it: renderer: {type: nix, sources: [../common]}"
_ADD = "add it, or correct its path; what Git LFS holds isn't fetched"
_OUTSIDE = "keep it in the repository, or name its directory: renderer: {type: nix, nixPath: {…: /…}}"


@dataclass(frozen=True, slots=True)
class _Rule:
    """A message that is known. `said`: what it becomes, with its groups; `fix`: the way out."""

    pattern: re.Pattern[str]
    said: str
    fix: str = ""


def _rule(pattern: str, said: str, fix: str = "") -> _Rule:
    return _Rule(re.compile(pattern, re.DOTALL), said, fix)


_BUILD = "commit what it makes, or make it without a build (builtins.toJSON, lib.generators)"
_MISSING = (
    r"(?:access to (?:absolute |canonical )?path|getting status of|opening file|opening directory|reading directory|path) '(?P<subject>{})'"
    r"(?: is forbidden.*|: No such file or directory| does not exist.*)"
)
_RULES = (
    _rule(_MISSING.format("…[^']*"), "leads out of the repository", _OUTSIDE),
    _rule(_MISSING.format("<[^']*"), "isn't in that directory of nixPath", "write packages: for what the directory holds"),
    _rule(r"anneal: (?P<subject>currentTime) (?P<why>.*)", "{why}", "write the time as text, or leave it out"),
    _rule(r"anneal: (?P<subject>\w+) (?P<why>.*)", "{why}", "commit what it fetches, or name its directory under nixPath"),
    _rule(
        r"access to (?:absolute |canonical )?path '(?P<subject>/[^']*)' is forbidden.*",
        "isn't of the repository, nor of a directory of nixPath",
        _OUTSIDE,
    ),
    _rule(_MISSING.format("[^/'][^']*"), "isn't there, or isn't among the files that were handed over", _LITERAL),
    _rule(
        r"(?:opening|reading) \w+ ['\"]?(?P<subject>/[^'\"]*?)['\"]?: Permission denied",
        "isn't of the repository, nor of a directory of nixPath",
        _OUTSIDE,
    ),
    _rule(
        r"(?:path '/nix/store/\w+-(?P<subject>[^']*)\.drv' is not valid"
        r"|cannot build '/nix/store/\w+-(?P<built>[^']*?)(?:\.drv)?'.*)",
        "would be built to be read here (import from derivation), and nothing is built",
        _BUILD,
    ),
    _rule(r"(?:access to|fetching) .*(?:URI|URL) '(?P<subject>[^']*)'.*", "would be fetched, and a render has no network", "commit it"),
    _rule(
        r"(?:cannot find )?file '(?P<subject>[^']*)' (?:was not found )?in the Nix search path.*",
        "no directory of this name is known",
        "renderer: {type: nix, nixPath: {nixpkgs: /opt/nixpkgs}}, or commit it and write packages: import ../nixpkgs {}",
    ),
    _rule(r"stack overflow.*", "recurses without end (stack overflow)"),
    _rule(r"out of memory.*|std::bad_alloc", "needs more memory than it may have"),
    _rule(
        r"The option `(?P<subject>[^']*)' (?P<why>(?:does not exist|is used but not defined|has conflicting definition values).*)", "{why}"
    ),
    _rule(r"A definition for option `(?P<subject>[^']*)' (?P<why>is not of type.*)", "{why}"),
)


@dataclass(frozen=True, slots=True)
class NixPlaces:
    """What paths of messages are. `home`: the private directory; `directory`: the target's path; `roots`: name -> directory of nixPath.

    `absent`: what path literals lead to and the commit doesn't hold.
    """

    home: str
    directory: str
    roots: Mapping[str, str] = field(default_factory=dict)
    absent: Sequence[str] = ()

    def in_tree(self, path: str) -> str:
        """Return a file's path in the repository; empty: it isn't one."""
        own = f"{self.home}/{TREE}/"
        return path.removeprefix(own) if path.startswith(own) else ""

    def missing(self, path: str) -> str:
        """Return the path that the commit lacks: below the target's all is handed over; else what a literal names, perhaps in `path`.

        Empty: the commit may hold it.
        """
        if inside(path, self.directory):
            return path
        found = [each for each in self.absent if each == path or each.startswith(f"{path}/")]
        return found[0] if len(found) == 1 else ""

    def place(self, file: str, line: str) -> str:
        """Return file:line of a position, one of the operator's expressions as its setting; empty: it isn't the author's."""
        if file in _EXPRESSIONS:
            number = int(line)
            return f"{_PACKAGES}:{number - PACKAGES_FROM}" if number > PACKAGES_FROM else f"{_MODULES}:{max(number - 1, 1)}"
        path = self.in_tree(file)
        return f"{printable(path)}:{line}" if path else ""

    def shown(self, text: str) -> str:
        """Return text without paths of this machine."""
        for path, said in ((f"{self.home}/{TREE}/", ""), (f"{self.home}/{TREE}", "."), (f"{self.home}/{OWN}/", "anneal's ")):
            text = text.replace(path, said)
        for name, path in self.roots.items():
            text = text.replace(path, f"<{name}>")
        return text.replace(self.home, "…").replace(posixpath.dirname(self.home), "…")


def explain(errors: str, places: NixPlaces, *, trace: bool) -> Problem:
    """Return the problem that nix' standard error names. `trace`: with how it came there."""
    text = _COLOUR.sub("", errors)
    starts = [*_ERROR.finditer(text)]
    if not starts:
        return Problem("nix", quoted(places.shown(" ".join(text.split())), MOST) or "failed and said nothing")
    before, rest = text[: starts[-1].start()], text[starts[-1].end() :]
    end = _END.search(rest)
    whole = rest[: end.start()] if end else rest
    said = places.shown(" ".join(_VALUES.sub("", whole).split()))
    place = _file(whole, places) or _place(before, rest, places)
    subject, message, fix = "nix", quoted(said, MOST), ""
    for rule in _RULES:
        if match := rule.pattern.fullmatch(said):
            groups = {name: quoted(value, MOST) if name == "why" else value for name, value in match.groupdict().items() if value}
            subject = groups.get("subject") or groups.get("built") or "nix"
            message, fix = rule.said.format(**groups), rule.fix
            if rule.fix == _LITERAL and (absent := places.missing(subject)):
                subject, message, fix = absent, "isn't in this commit", _ADD
            break
    shown = printable(message, MOST + 2) + (_trace(text, places) if trace else "")
    return Problem(printable(subject), shown, place, fix)


def _place(before: str, rest: str, places: NixPlaces) -> str:
    """Return the position nearest to a message: nix writes its own first, then traces outwards, or before it traces inwards."""
    after = (places.place(each["file"], each["line"]) for each in _AT.finditer(rest))
    earlier = (places.place(each["file"], each["line"]) for each in reversed([*_AT.finditer(before)]))
    written = (places.place(each["file"], each["line"]) for each in _MANIFEST.finditer(before + rest))
    return next(filter(None, (*after, *earlier, *written)), "")


def _file(whole: str, places: NixPlaces) -> str:
    """Return the file of the repository that a message of the module system names."""
    return next((path for each in _IN_FILE.finditer(whole) if (path := printable(places.in_tree(each["file"])))), "")


def _trace(text: str, places: NixPlaces) -> str:
    shown = (each for each in _FRAME.finditer(text) if not each["what"].startswith("anneal"))
    frames = [(each["what"], places.place(each["file"] or "", each["line"] or "0")) for each in shown]
    lines = [f"{places.shown(what)}{f' ({place})' if place else ''}" for what, place in frames]
    return f" [trace: {quoted('; '.join(lines), MOST_TRACE)}]" if lines else ""


def notes(errors: str, places: NixPlaces) -> Iterator[str]:
    """Yield what an evaluation that succeeded warns of and traces, each once."""
    found = dict.fromkeys(each["text"] for each in _NOTE.finditer(_COLOUR.sub("", errors)) if each["text"] != _SILENT)
    for text in [*found][:MOST_NOTES]:
        yield f"nix: {quoted(places.shown(text), 300)}"
