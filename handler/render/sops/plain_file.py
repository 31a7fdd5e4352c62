"""What sops printed: the plain file, or why it refused. In the render child, after the program."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from handler.model.advice import advice
from handler.model.errors import Problem
from handler.model.tree import MAX_PATH, printable
from handler.render.frames import encode

ENCRYPTED = re.compile(r"ENC\[AES256_GCM,data:[^,\]]*,iv:[^,\]]*,tag:[^,\]]*,type:(\w+)\]")

_SIGN = (
    "see whether it holds what you mean, for who edited it isn't known: sops decrypt --ignore-mac {path}; then encrypt it anew:"
    " sops --rotate --ignore-mac -i {path}; or let such files pass for this target: decryption: {mac: ignore}"
)
_GO_BACK = "take it back from a commit before, which this lists: git log --oneline -- {path}; then change it by: sops edit {path}"


def plain(options: Mapping[str, Any], parts: Sequence[bytes]) -> Iterator[bytes]:
    """Read what `sops decrypt` said. Options: `exit_code`; `place`: of the file."""
    output, errors = parts
    if options["exit_code"]:
        yield encode(_explained(errors.decode(errors="replace"), options["place"]))
        return
    yield b"F" + output


def decode_plain(frame: bytes) -> bytes:
    """Read the file. Raises ValueError: the frame holds none."""
    if frame[:1] == b"F":
        return frame[1:]
    raise ValueError("no file")


def _explained(said: str, place: str) -> Problem:
    """Name what sops refused; its own text isn't quoted, for it may hold values."""
    shown = printable(place, MAX_PATH)
    if "MAC mismatch" in said or "Failed to verify data integrity" in said:
        fix = advice(_SIGN, place, place)
        return Problem(shown, "isn't what its author encrypted: its MAC is another (mac: verify)", fix=fix)
    if "Could not decrypt with AES_GCM" in said or "does not match sops' data format" in said or "Error walking tree" in said:
        seen = "holds a value that its data key doesn't open: it was moved or edited by hand"
        return Problem(shown, seen, fix=advice(_GO_BACK, place, place))
    return Problem(shown, "can't be decrypted: sops refuses its form", fix=advice("see what sops says of it: sops decrypt {path}", place))
