"""One text with its variables written out, as Flux' envsubst does (github.com/fluxcd/pkg/envsubst). Pure; in the child.

    ${name}  ${#name}  ${name:-default}  ${name:=default}  ${name=default}  ${name:offset}  ${name:offset:length}  ${name^}  ${name^^}
    ${name,}  ${name,,}  ${name/old/new}  ${name//old/new}  ${name/#old/new}  ${name/%old/new}  ${name#pattern}  ##  %  %%
    $${…}  stays ${…}, for `$$` is `$` everywhere

Law: read from left to right, once: what a variable holds is never read again, so that nothing expands without end. Results are Flux'
own, checked against it by the golden table in `tests/unit/render/variables`; where Flux crashes, or cuts a character in two, it is refused.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from handler.model.advice import advice
from handler.render.variables.expression_budget import ExpressionBudget, ExpressionRefused
from handler.render.variables.trimming import trimmed

MARK = re.compile(r"\$[${]")
"""What makes a text one with variables; without it nothing is done."""
MAX_NESTED = 20
_SHOWN = 80
_AT_ONCE = 64  # characters of a value that are looked at in one step
_NAME = re.compile(r"\w+")
_DEFAULT = re.compile(r":[-=?+]|=")
_CASING = re.compile(r"[,^]{1,2}")
_REMOVAL = re.compile(r"##?|%%?")
_REPLACEMENT = re.compile(r"/[/#%]?")
_WORD = re.compile(r"(?:(?!\$\{)[^}])+")
_OFFSET = re.compile(r"(?=[\x00-\x7f])(?:(?!\$\{)[^:}])+")  # Flux steps back too far before other characters, and refuses them
_OLD = re.compile(r"(?:\$\$|\\[/\\]|(?!\$\{)[^/])+")
_NEW = re.compile(r"(?:\$\$|\\[/\\]|(?!\$\{)[^}])+")
_ESCAPED_PAIR = re.compile(r"\$\$|\\[/\\]")
_INTEGER = re.compile(r"[+-]?[0-9]{1,18}")
ESCAPE = "write $${…} for a text that stays as it is, or annotate the object kustomize.toolkit.fluxcd.io/substitute: disabled"


@dataclass(frozen=True, slots=True)
class Value:
    """A text and the names of the variables whose values are in it."""

    text: str
    names: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Expanded:
    """A whole text. `values`: what each expression came to, in order."""

    text: str
    values: tuple[Value, ...]

    @property
    def names(self) -> frozenset[str]:
        """The variables whose values are in it."""
        return frozenset().union(*(each.names for each in self.values))


@dataclass(frozen=True, slots=True)
class Variables:
    """What names stand for. `unknown`: what a name stands for that has no value and no default; None: it is refused."""

    values: Mapping[str, str]
    unknown: str | None = None


def expanded(text: str, variables: Variables, budget: ExpressionBudget) -> Expanded:
    """Return a text with its variables written out. Raises ExpressionRefused: an expression can't be read, a name is unknown, a limit."""
    parts: list[str] = []
    values: list[Value] = []
    reader, at = _Reader(text, variables, budget), 0
    while found := MARK.search(text, at):
        parts.append(text[at : found.start()])
        if found[0] == "$$":
            parts.append("$")
            at = found.end()
        else:
            value, at = reader.function(found.end(), 0)
            values.append(value)
            parts.append(value.text)
    parts.append(text[at:])
    budget.make(sum(map(len, parts)))
    return Expanded("".join(parts), tuple(values))


@dataclass(slots=True)
class _Reader:
    """Reads the expressions of one text. Each method takes where it begins and returns what it came to and where it ends."""

    text: str
    variables: Variables
    budget: ExpressionBudget
    start: int = 0

    def function(self, at: int, depth: int) -> tuple[Value, int]:
        if depth == 0:
            self.start = at
        if depth > MAX_NESTED:
            raise ExpressionRefused(f"{self._shown} has more than {MAX_NESTED} expressions in each other")
        if self._at(at) == "#":
            name, at = self._token(_NAME, at + 1)
            return self._made(str(len(self._value(name).encode())), {name}), self._closed(at)
        name, at = self._token(_NAME, at)
        for pattern, rest in _KINDS:
            if found := pattern.match(self.text, at):
                return rest(self, name, found[0], found.end(), depth)
        if self._at(at) == ":":
            return self._part(name, at + 1, depth)
        return Value(self._value(name), frozenset({name})), self._closed(at)

    def default(self, name: str, _operator: str, at: int, depth: int) -> tuple[Value, int]:
        own = self.variables.values.get(name)
        words: list[Value] = []
        while self._at(at) != "}":
            word, at = self._word(_WORD, at, depth)
            words.append(word)
        if own:
            return Value(own, frozenset({name})), at + 1
        names = frozenset({name} if own is not None else ()).union(*(each.names for each in words))
        return self._made("".join(each.text for each in words), names), at + 1

    def _part(self, name: str, at: int, depth: int) -> tuple[Value, int]:
        offset, at = self._word(_OFFSET, at, depth)
        names, length = {name} | offset.names, None
        if self._at(at) == ":":
            while self._at(at) == ":":
                at += 1
            word, at = self._word(_WORD, at, depth)
            names, length = names | word.names, word.text
        return self._made(self._slice(self._value(name), offset.text, length), names), self._closed(at)

    def _slice(self, text: str, offset: str, length: str | None) -> str:
        """Cut bytes, as Flux does; a number that is none cuts nothing."""
        whole = text.encode()
        if not _INTEGER.fullmatch(offset) or (length is not None and not _INTEGER.fullmatch(length)):
            return text
        first = int(offset)
        first = max(len(whole) + first, 0) if first < 0 else first
        taken = len(whole) if length is None else int(length)
        last = first + taken if taken >= 0 else max(len(whole) + taken, 0)  # one below zero counts from the end, as in bash
        try:
            return whole[first:last].decode()
        except UnicodeDecodeError:
            seen = f"{self._shown} cuts a character in two: offset and length count bytes, as Flux' do"
            raise ExpressionRefused(seen, "write another offset or length") from None

    def cased(self, name: str, operator: str, at: int, _depth: int) -> tuple[Value, int]:
        text = self._value(name)
        self.budget.work(0 if text.isascii() else len(text))
        change = {",": _lower, "^": _upper}[operator[0]]
        if len(operator) == 1:
            text = change(text[:1]) + text[1:]
        elif operator[0] == operator[1]:
            text = change(text)
        return self._made(text, {name}), self._closed(at)

    def trimmed(self, name: str, operator: str, at: int, depth: int) -> tuple[Value, int]:
        pattern, at = self._word(_WORD, at, depth)
        text = self._value(name)
        return self._made(trimmed(operator, text, pattern.text, self.budget), {name} | pattern.names), self._closed(at)

    def replaced(self, name: str, operator: str, at: int, depth: int) -> tuple[Value, int]:
        old, at = self._word(_OLD, at, depth)
        if self._at(at) != "/":
            raise self._refused("has no second /")
        while self._at(at) == "/":
            at += 1
        new = None
        if self._at(at) != "}":
            new, at = self._word(_NEW, at, depth)
        names = old.names | {name} | (new.names if new else frozenset())
        return self._made(self._replacement(self._value(name), operator, old.text, new.text if new else None), names), self._closed(at)

    def _replacement(self, text: str, operator: str, old: str, new: str | None) -> str:
        if operator == "/%":
            return text.removesuffix(old) + new if new is not None and text.endswith(old) else text
        if operator == "/#" and (new is None or not text.startswith(old)):
            return text
        times = text.count(old) if operator == "//" else 1
        self.budget.make(len(text) + times * len(new or ""))
        return text.replace(old, new or "", times)

    # --- pieces
    def _word(self, pattern: re.Pattern[str], at: int, depth: int) -> tuple[Value, int]:
        """Read one argument: another expression, or a text."""
        if self.text.startswith("${", at):
            return self.function(at + 2, depth + 1)
        text, at = self._token(pattern, at)
        return Value(_ESCAPED_PAIR.sub(lambda pair: pair[0][1], text) if pattern in (_OLD, _NEW) else text), at

    def _token(self, pattern: re.Pattern[str], at: int) -> tuple[str, int]:
        found = pattern.match(self.text, at)
        if not found:
            raise self._refused("isn't closed" if at >= len(self.text) else "can't be read")
        return found[0], found.end()

    def _closed(self, at: int) -> int:
        if self._at(at) != "}":
            raise self._refused("isn't closed" if at >= len(self.text) else "can't be read")
        return at + 1

    def _at(self, at: int) -> str:
        return self.text[at : at + 1]

    def _value(self, name: str) -> str:
        found = self.variables.values.get(name, self.variables.unknown)
        if found is None:
            way = "add postBuild: {substitute: {{yaml}: …}} to the target; or write ${{text}:-…}, a default, or $${{text}}"
            fix = advice(way, name, name, name)
            raise ExpressionRefused(f"{self._shown} names the variable {name}, which isn't known", fix)
        self.budget.work(len(found) // _AT_ONCE)
        return found

    def _made(self, text: str, names: set[str] | frozenset[str]) -> Value:
        self.budget.make(len(text))
        return Value(text, frozenset(names))

    def _refused(self, seen: str) -> ExpressionRefused:
        return ExpressionRefused(f"{self._shown} {seen}", ESCAPE)

    @property
    def _shown(self) -> str:
        """The expression as git has it, from its beginning."""
        end = self.text.find("}", self.start)
        shown = self.text[self.start : end if end >= 0 else len(self.text)]
        closed = "}" if end >= 0 and len(shown) <= _SHOWN else "…"
        return "${" + "".join(char if char.isprintable() else "…" for char in shown[:_SHOWN]) + closed


_KINDS: tuple[tuple[re.Pattern[str], Callable[[_Reader, str, str, int, int], tuple[Value, int]]], ...] = (
    (_DEFAULT, _Reader.default),
    (_CASING, _Reader.cased),
    (_REPLACEMENT, _Reader.replaced),
    (_REMOVAL, _Reader.trimmed),
)


def _lower(text: str) -> str:
    """Go's ToLower: one character for each, where Python's may make two."""
    return text.lower() if text.isascii() else "".join(char.lower()[0] for char in text)


def _upper(text: str) -> str:
    return text.upper() if text.isascii() else "".join(other if len(other := char.upper()) == 1 else char for char in text)
