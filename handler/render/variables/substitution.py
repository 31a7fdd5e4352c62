"""Objects -> the same with their variables written out, field by field, and every mistake. The child's half; pure.

Law: the value of a variable stays within its field: fields are substituted, not text. What comes from the cluster can't say what an object
is or whose rights it has. What is made is judged as if git had declared it. Nothing here says what a variable holds.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from handler.model.advice import advice
from handler.model.errors import Problem
from handler.model.manifest import Manifest, at
from handler.model.names import GroupKind
from handler.model.tree import printable
from handler.render import scalars
from handler.render.document import Document
from handler.render.frames import decode, encode
from handler.render.objects import objects
from handler.render.variables.expression import MARK, Expanded, Variables, expanded
from handler.render.variables.expression_budget import ExpressionBudget, ExpressionRefused
from handler.render.variables.flux_scalars import read

SWITCHES = ("kustomize.toolkit.fluxcd.io/substitute", "anneal.dev/substitute")
"""`disabled`, as an annotation, Flux' also as a label: nothing of the object is substituted."""
CLUSTER = "the cluster"
_SECRET = GroupKind("", "Secret")
_NAMING = frozenset(
    {
        ("apiVersion",),
        ("kind",),
        ("metadata", "name"),
        ("metadata", "namespace"),
        ("metadata", "generateName"),
        ("metadata", "annotations", "kubernetes.io/service-account.name"),
    }
)
_RIGHTS = frozenset({"roleRef", "subjects", "serviceAccountName", "serviceAccount", "ownerReferences"})
"""Fields that say whose rights something has, wherever they stand, with all that is in them."""
_QUOTE = "a text is written ${quote}…${quote}, with postBuild: {substitute: {quote: '\"'}}"
Path = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class Substituted:
    """One object, whose hidden fields are those that hold what a Secret says. `number`: which one of the call."""

    number: int
    manifest: Manifest

    def encode(self) -> bytes:
        """Write it as a frame."""
        return b"V" + json.dumps([self.number, self.manifest.hidden]).encode() + b"\n" + encode(self.manifest)


Row = Substituted | Problem


def decode_row(frame: bytes) -> Row:
    """Read one object or mistake. Raises ValueError: the frame is neither."""
    head, _, rest = frame[1:].partition(b"\n") if frame[:1] == b"V" else (b"", b"", frame)
    row = decode(rest)
    if not head or isinstance(row, Problem):
        if isinstance(row, Problem) and not head:
            return row
        raise ValueError("neither an object nor a mistake")
    number, hidden = json.loads(head)
    if type(number) is not int or not isinstance(hidden, list) or not all(isinstance(each, str) for each in hidden):
        raise ValueError("no object")
    return Substituted(number, replace(row, hidden=tuple(hidden)))


def substitute(options: Mapping[str, Any], parts: Sequence[bytes]) -> Iterator[bytes]:
    """Substitute in objects.

    Parts: the variables as JSON, then each object. Options: `places`, `items`: of each object; `origins`: variable -> the object of the
    cluster that holds it; `unknown`: see `Variables`; `asked`: None, or what stands for all that the cluster wasn't asked for.
    """
    values = json.loads(parts[0])
    asked = options["asked"]
    variables = Variables(values, options["unknown"] if asked is None else asked)
    call = _Call(variables, options["origins"], asked is not None)
    for number, (raw, place, item) in enumerate(zip(parts[1:], options["places"], options["items"], strict=True)):
        found = _Object(call, place)
        body = json.loads(raw)
        made = body if is_off(body) else found.walk(body, ())
        rows = found.problems or finished(made, place, item)
        for row in rows:
            if isinstance(row, Problem):
                yield encode(_advised(row))
            else:
                yield Substituted(number, replace(row, hidden=found.pointers(row))).encode()


def is_off(body: Mapping[str, Any]) -> bool:
    """Whether an object says that nothing of it is substituted."""
    marks = [at(body, "metadata", part) for part in ("annotations", "labels")]
    said = [at(marks[0], key) for key in SWITCHES] + [at(marks[1], SWITCHES[0])]
    return any(isinstance(each, str) and each.strip().lower() == "disabled" for each in said)


def finished(body: dict[str, Any], place: str, item: int) -> list[Manifest | Problem]:
    """Return an object into which nothing is substituted any more, or its mistakes."""
    path, _, line = place.rpartition(":")
    rows = list(objects([Document(path, int(line), body) if line.isdecimal() else Document(place, 1, body)], final=True))
    if len(rows) != 1 and not any(isinstance(row, Problem) for row in rows):
        return [Problem("document", "is no single object once its variables are written out", place)]
    return [row if isinstance(row, Problem) else replace(row, place=place, item=item) for row in rows]


def _advised(row: Problem) -> Problem:
    """Return a mistake of an object as it is made: the quotes that git has are no longer there."""
    return replace(row, fix=_QUOTE) if row.fix.startswith(("quote it", "a variable holds one text")) else row


@dataclass(slots=True)
class _Call:
    """What all objects of a call share. `unasked`: names without a value may be the cluster's."""

    variables: Variables
    origins: Mapping[str, str]
    unasked: bool
    budget: ExpressionBudget = field(default_factory=ExpressionBudget)

    def origin(self, name: str) -> str:
        """Return the object of the cluster that a variable comes from; empty: it is the configuration's."""
        return self.origins.get(name, CLUSTER if self.unasked and name not in self.variables.values else "")

    def is_secret(self, name: str) -> bool:
        origin = self.origin(name)
        return origin == CLUSTER or origin.startswith("Secret ")


@dataclass(slots=True)
class _Object:
    """One object on its way."""

    call: _Call
    place: str
    subject: str = ""
    problems: list[Problem] = field(default_factory=list)
    hidden: list[str] = field(default_factory=list)

    def walk(self, node: Any, path: Path) -> Any:
        """Return a value with its variables written out. Mistakes are noted, and the value stays as it was."""
        if isinstance(node, dict):
            self.subject = self.subject or _named(node)
            return self._mapping(node, path)
        if isinstance(node, list):
            return [self.walk(each, (*path, number)) for number, each in enumerate(node)]
        return self._value(node, path) if isinstance(node, str) and MARK.search(node) else node

    def pointers(self, made: Manifest) -> tuple[str, ...]:
        """Return where the hidden fields are in the object as it is applied: texts of a Secret have become its data."""
        if made.identity.group_kind != _SECRET:
            return tuple(self.hidden)
        return tuple(re.sub(r"\A/stringData/", "/data/", each) for each in self.hidden)

    def _mapping(self, node: dict[str, Any], path: Path) -> dict[str, Any]:
        made: dict[str, Any] = {}
        written: dict[str, str] = {}
        for key, value in node.items():
            name = self._key(key, path, value) if MARK.search(key) else key
            earlier = written.setdefault(name, key)
            if earlier is not key:
                self._problem((*path, earlier), f"and {printable(key, 80)} are the same key once their variables are written out")
            made[name] = self.walk(value, (*path, name))
        return made

    def _key(self, key: str, path: Path, value: Any) -> str:
        found = self._expanded(key, (*path, key))
        if found is None:
            return key
        secret = next(filter(self.call.is_secret, found.names), None)
        if secret:
            seen = f"is a key with the variable {secret} of {self.call.origin(secret)}, and keys are shown"
            self._problem((*path, key), seen, "write the key into git")
            return key
        try:
            name = scalars.key(read(key, found.text))
        except (ExpressionRefused, ValueError) as refused:
            self._problem((*path, key), f"can't be a key once its variables are written out: {refused}")
            return key
        self._refuse_cluster(found, (*path, name), decides=not path or _says_rights(value))
        return name

    def _value(self, text: str, path: Path) -> Any:
        found = self._expanded(text, path)
        if found is None:
            return text
        self._refuse_cluster(found, path)
        if any(map(self.call.is_secret, found.names)):
            self.hidden.append(_pointer(path))
        try:
            return read(text, found.text)
        except ExpressionRefused as refused:
            self._problem(path, refused.message, refused.fix)
        except ValueError as refused:
            self._problem(path, f"can't be read once its variables are written out: {refused}", _QUOTE)
        return text

    def _expanded(self, text: str, path: Path) -> Expanded | None:
        try:
            return expanded(text, self.call.variables, self.call.budget)
        except ExpressionRefused as refused:
            self._problem(path, refused.message, refused.fix)
            return None

    def _refuse_cluster(self, found: Expanded, path: Path, *, decides: bool = False) -> None:
        """Refuse what the cluster says where it would say what an object is, or whose rights it has; a key may decide it, too."""
        if not decides and path not in _NAMING and not _RIGHTS.intersection(map(str, path)):
            return
        for name in sorted(found.names):
            origin = self.call.origin(name)
            if origin:
                fix = advice("write the value into git, or into the target: postBuild: {substitute: {{yaml}: …}}", name)
                self._problem(path, f"would be what {origin} says in the variable {name}: the cluster can't decide that", fix)

    def _problem(self, path: Path, message: str, fix: str = "") -> None:
        self.problems.append(Problem(self.subject, f"{_shown(path)}: {message}", self.place, fix))


def _says_rights(value: Any) -> bool:
    if isinstance(value, list):
        return any(map(_says_rights, value))
    return isinstance(value, dict) and (not _RIGHTS.isdisjoint(value) or any(map(_says_rights, value.values())))


def _named(body: dict[str, Any]) -> str:
    parts = (body.get("kind"), at(body, "metadata", "namespace"), at(body, "metadata", "name"))
    return printable("/".join(part for part in parts if isinstance(part, str) and part), 200)


def _pointer(path: Path) -> str:
    return "".join(f"/{str(step).replace('~', '~0').replace('/', '~1')}" for step in path)


def _shown(path: Path) -> str:
    """Write a path: `spec.containers[0].image`."""
    text = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path)
    return printable(text.removeprefix("."), 300)
