"""What sops printed: the plain file, and which texts of it were encrypted; or why it refused. In the render child, after the program."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from handler.model.errors import Problem
from handler.render.document import MAX_DEPTH, Document
from handler.render.documents import documents
from handler.render.frames import HiddenText, encode

ENCRYPTED = re.compile(r"ENC\[AES256_GCM,data:[^,\]]*,iv:[^,\]]*,tag:[^,\]]*,type:(\w+)\]")
_LINE = re.compile(r"^([^=\n]*)=([^\n]*)", re.MULTILINE)
_COMMENT = re.compile(r"(?:^|[ \t])[#;]([^\n]*)", re.MULTILINE)
_AROUND = " \t\r"
_SHORTEST_NUMBER = 6
"""Characters: masking shorter numbers would make texts unreadable, and says nothing."""
_STRUCTURE = {("apiVersion",), ("kind",), ("metadata", "name"), ("metadata", "namespace")}
"""What of an object every text names."""


def plain(options: Mapping[str, Any], parts: Sequence[bytes]) -> Iterator[bytes]:
    """Read what `sops decrypt` said. Options: `exit_code`; `place`, `form`, `encrypted`: of the file, as it was in git."""
    output, errors = parts
    if options["exit_code"]:
        yield encode(_explained(errors.decode(errors="replace"), options["place"]))
        return
    yield b"F" + output
    for text in dict.fromkeys(_hidden(options["encrypted"], output, options["form"])):
        yield HiddenText(text).encode()


def decode_plain(frame: bytes) -> tuple[bytes, bytes]:
    """Read a frame's kind, `F` of the file or `S` of a text, and what it holds. Raises ValueError."""
    if frame[:1] in (b"F", b"S"):
        return frame[:1], frame[1:]
    raise ValueError("neither a file nor a text of it")


def _explained(said: str, place: str) -> Problem:
    """Name what sops refused; its own text isn't quoted, for it may hold values."""
    if "MAC mismatch" in said or "Failed to verify data integrity" in said:
        fix = f"encrypt it anew: sops rotate -i {place}; or let such files pass for this target: decryption: {{mac: ignore}}"
        return Problem(place, "isn't what its author encrypted: its MAC is another (mac: verify)", fix=fix)
    if "Could not decrypt with AES_GCM" in said or "does not match sops' data format" in said or "Error walking tree" in said:
        return Problem(
            place, "holds a value that its data key doesn't open: it was moved or edited by hand", fix=f"encrypt it anew: {place}"
        )
    return Problem(place, "can't be decrypted: sops refuses its form", fix=f"see what sops says of it: sops decrypt {place}")


def _hidden(encrypted: str, output: bytes, form: str) -> Iterator[str]:
    try:
        text = output.decode()
    except UnicodeDecodeError:
        yield base64.b64encode(output).decode()
        return
    if form == "binary":
        yield text
    elif form in ("dotenv", "ini"):
        names = {name.strip(_AROUND) for name, value in _LINE.findall(encrypted) if ENCRYPTED.search(value)}
        values = (value.strip(_AROUND) for name, value in _LINE.findall(text) if name.strip(_AROUND) in names)
        yield from filter(None, values)
    else:
        yield from _of_documents(encrypted, output, "file.json" if form == "json" else "file.yaml")
    if ",type:comment]" in encrypted:
        yield from filter(None, (each.strip(_AROUND) for each in _COMMENT.findall(text)))


def _of_documents(encrypted: str, output: bytes, name: str) -> Iterator[str]:
    """Yield what stands where something was encrypted; where documents can't be laid side by side, all of them hold."""
    before, after = (list(documents(data, name)) for data in (encrypted.encode(), output))
    pairs = list(zip(before, after, strict=False))
    if len(before) != len(after) or not all(isinstance(each, Document) for pair in pairs for each in pair):
        pairs = [(Document(name, 1, None), each) for each in after if isinstance(each, Document)]
        if not pairs:
            yield from map(str.strip, output.decode().splitlines())
    for one, other in pairs:
        old, new = (each.value if isinstance(each, Document) else None for each in (one, other))
        is_object = isinstance(new, dict) and isinstance(new.get("apiVersion"), str) and isinstance(new.get("kind"), str)
        yield from _leaves(old, new, (), _STRUCTURE if is_object else set(), all_of_it=old is None)


def _leaves(old: Any, new: Any, path: tuple[str, ...], spared: set[tuple[str, ...]], *, all_of_it: bool) -> Iterator[str]:
    if len(path) > MAX_DEPTH or path in spared:
        return
    if isinstance(new, dict):
        for key, value in new.items():
            yield from _leaves(old.get(key) if isinstance(old, dict) else None, value, (*path, str(key)), spared, all_of_it=all_of_it)
    elif isinstance(new, list):
        others = old if isinstance(old, list) and len(old) == len(new) else [None] * len(new)
        for number, (before, value) in enumerate(zip(others, new, strict=True)):
            yield from _leaves(before, value, (*path, str(number)), spared, all_of_it=all_of_it)
    elif all_of_it or (isinstance(old, str) and ENCRYPTED.fullmatch(old)):
        text = new if isinstance(new, str) else "" if isinstance(new, bool) or new is None else str(new)
        if text and (isinstance(new, str) or len(text) >= _SHORTEST_NUMBER):
            yield text
