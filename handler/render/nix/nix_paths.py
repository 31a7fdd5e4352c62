"""Path literals of Nix files: `./web.nix`, `../../common`, `hosts/prod.nix`. Pure; files of git are read in the child.

Law: more may be found than there is, for comments and texts are read as well. None that nix' own lexer takes for a path is missed, but
those without a dot in front that end otherwise than in .nix.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

_LITERAL = re.compile(r"(?<![\w.+~/$<-])(?:\.{1,2}(?:/[\w.+-]+)*/?|[\w+-][\w.+-]*(?:/[\w.+-]+)*/[\w.+-]+\.nix)(?![\w+-])", re.ASCII)
_LONGEST = 4_000  # bytes: Linux takes no longer path


def literals(text: str) -> list[str]:
    """Return the relative paths that an expression names, each once."""
    found = dict.fromkeys(each for each in _LITERAL.findall(text) if "/" in each and len(each) < _LONGEST)
    return [*found]


def read_paths(_: Mapping[str, Any], parts: Sequence[bytes]) -> Iterator[bytes]:
    """Find the literals of each part, in the child."""
    for part in parts:
        yield json.dumps(literals(part.decode("utf-8", "replace"))).encode()


def decode_literals(frame: bytes) -> list[str]:
    """Read those of one file, in the worker. Raises ValueError: they are none."""
    found = json.loads(frame)
    if isinstance(found, list) and all(isinstance(each, str) and "\0" not in each for each in found):
        return found
    raise ValueError("no paths")
