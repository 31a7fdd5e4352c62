"""Encrypted files as they look without any key: each value is a placeholder of its type. Runs in the render child.

A text's placeholder is valid base64, for the data of a Secret; it holds a digest of what is encrypted, so that a changed value is seen.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from handler.render.sops.plain_file import ENCRYPTED

TEXT = "encryptedplaceholder"
_QUOTED = re.compile(rf"([\"']?){ENCRYPTED.pattern}\1")
_OF_TYPE = {"int": "0", "float": "0.5", "bool": "false"}
_KEY = re.compile(r"(?:^|,\s*)(?:sops|'sops'|\"sops\")[ \t]*:\s*\Z", re.MULTILINE)
_DOCUMENT = re.compile(r"^(?=---(?:[ \t\r\n]|\Z))", re.MULTILINE)
_NAMELESS = re.compile(rf"^(?:kind|metadata)[ \t]*:[ \t]*\"{TEXT}", re.MULTILINE)
"""Of a document whose very kind is encrypted: nothing can stand in for it."""


def stand_in(options: Mapping[str, Any], _: Sequence[bytes]) -> Iterator[bytes]:
    """Write units with placeholders. Options: `units`: [form, pieces] of each. Yields how many objects each lacks, and its text."""
    for form, pieces in options["units"]:
        text = placeholders(form, pieces)
        documents = _DOCUMENT.split(text) if form == "yaml" else [text]
        kept = [each for each in documents if not _NAMELESS.search(each)]
        yield b"%d\n%s" % (len(documents) - len(kept), "".join(kept).encode())


def decode_placeholders(frame: bytes) -> tuple[int, bytes]:
    """Read one of its frames. Raises ValueError."""
    count, _, text = frame.partition(b"\n")
    return int(count), text


def placeholders(form: str, pieces: Sequence[str]) -> str:
    """Return the text of a unit, without its metadata."""
    if form in ("binary", "json"):
        whole = json.loads("null".join(pieces))
        del whole["sops"]
        return _text(whole.get("data")) if form == "binary" else _substituted(json.dumps(whole, indent=2), form)
    return _substituted("".join([*(_KEY.sub("", piece) if form == "yaml" else piece for piece in pieces[:-1]), pieces[-1]]), form)


def _substituted(text: str, form: str) -> str:
    return _QUOTED.sub(lambda found: _placeholder(found, form), text)


def _placeholder(found: re.Match[str], form: str) -> str:
    kind = found[2]
    if kind == "comment":
        return " encrypted"
    text = _OF_TYPE.get(kind) or _text(found[0].strip("\"'"))
    return text if form in ("dotenv", "ini") or kind in _OF_TYPE else f'"{text}"'


def _text(encrypted: object) -> str:
    return TEXT + hashlib.sha256(str(encrypted).encode(errors="surrogatepass")).hexdigest()[:8]
