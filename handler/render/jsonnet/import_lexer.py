"""Which files a jsonnet program imports: `import`, `importstr` and `importbin` take a literal only, so that a lexer finds them all.

    import 'k.libsonnet'   importstr "a/b.txt"   importbin @'c.bin'     as jsonnet writes strings
    # import 'x'   // …   /* … */   "import 'x'"   ||| … |||         name nothing

Law: pure, in the child; time is linear in the text, whatever it holds. What the lexer misses no evaluation gets.
Source: https://jsonnet.org/ref/spec.html#lexing
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from handler.model.errors import Problem
from handler.render.frames import decode_problem

CONFIGURATION = "generic-operator/config"
"""What a program imports to get its configuration, as Locutus calls it."""
LISTS = re.compile(r"locutus-runtime/([A-Za-z0-9_.-]{1,63})/list")
"""What a program imports to get the objects of a resource that its trigger watches."""
MAX_IMPORTS = 50_000
"""Of all files of a program."""
CODE, TEXT, BYTES = "import", "importstr", "importbin"

_COMMENT = r"(?:\#[^\n]*+|//[^\n]*+|/\*(?:[^*]++|\*(?!/))*+(?:\*/|\Z))"
_STRING = r"""(?:@"(?:[^"]++|"")*+(?:"|\Z)|@'(?:[^']++|'')*+(?:'|\Z)|"(?:[^"\\]++|\\.?)*+(?:"|\Z)|'(?:[^'\\]++|\\.?)*+(?:'|\Z))"""
_TOKEN = re.compile(
    rf"(?<!\w)(?P<kind>import(?:str|bin)?)(?!\w)(?:\s++|{_COMMENT})*+(?P<path>{_STRING})"
    rf"|(?P<block>\|\|\|-?[ \t\r]*+\n)|{_COMMENT}|{_STRING}",
    re.ASCII | re.DOTALL,
)
_LIKELY = re.compile(r"(?<!\w)import(?:str|bin)?\s*+[@'\"/#]", re.ASCII)
"""What every import begins with; most of a program comes after its last one, and needn't be lexed."""
_INDENT = re.compile(r"(?:[ \t\r]*\n)*([ \t]+)")
_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|(.))", re.DOTALL)
_LETTERS = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}


@dataclass(frozen=True, slots=True)
class Import:
    """One import. `kind`: CODE, TEXT or BYTES; `path`: as the program says it; `line`: where."""

    kind: str
    path: str
    line: int


def imports(text: str) -> Iterator[Import]:
    """Yield the imports of a program in their order. A program that isn't jsonnet yields whatever looks like one."""
    at, line, seen, last = 0, 1, 0, max((each.start() for each in _LIKELY.finditer(text)), default=-1)
    while at <= last and (found := _TOKEN.search(text, at)):
        at = found.end()
        if found["kind"]:
            line += text.count("\n", seen, found.start())
            seen = found.start()
            yield Import(found["kind"], literal(found["path"]), line)
        elif found["block"]:
            at = _end_of_block(text, at)


def literal(text: str) -> str:
    """Return what a string literal stands for; one that isn't closed, or half of a surrogate pair, stands for what is no path."""
    if text.startswith("@"):
        return text[2:-1].replace(text[1] * 2, text[1])
    return _ESCAPE.sub(_unescaped, text[1:-1]).encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _unescaped(found: re.Match[str]) -> str:
    return chr(int(found[1], 16)) if found[1] else _LETTERS.get(found[2], found[2])


def _end_of_block(text: str, start: int) -> int:
    """Return where a text block ends: at the first `|||` of a line that is less indented than its first one."""
    first = _INDENT.match(text, start)
    if first is None:
        return start
    inside = re.compile(rf"(?:(?:{re.escape(first[1])}[^\n]*+)?\r?(?:\n|\Z))*+[ \t]*+(?:\|\|\|)?")
    end = inside.match(text, start)
    return max(end.end(), start) if end else start


# --- on the pipe
def encode_imports(number: int, found: Sequence[Import]) -> bytes:
    """Write the imports of the program of this number."""
    return b"I" + json.dumps([number, [[each.kind, each.path, each.line] for each in found]], ensure_ascii=False).encode()


def decode_imports(frame: bytes) -> tuple[int, list[Import]] | Problem:
    """Read them strictly: the child isn't believed. Raises ValueError: it is something else."""
    if frame[:1] != b"I":
        return decode_problem(frame)
    facts = json.loads(frame[1:])
    if isinstance(facts, list) and len(facts) == 2 and type(facts[0]) is int and isinstance(facts[1], list):
        found = [Import(*each) for each in facts[1] if isinstance(each, list) and len(each) == 3]
        if len(found) == len(facts[1]) and all(map(_is_import, found)):
            return facts[0], found
    raise ValueError("no imports")


def _is_import(each: Import) -> bool:
    return each.kind in (CODE, TEXT, BYTES) and isinstance(each.path, str) and type(each.line) is int
