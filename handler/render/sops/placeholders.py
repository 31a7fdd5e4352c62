"""Encrypted files as they look without any key: each value is a placeholder of its type. Runs in the render child.

A text's placeholder is valid base64, for the data of a Secret; it holds a digest of what is encrypted, so that a changed value is seen.
There are two sets: what differs between renders with either depends on what is encrypted. They share no letter or digit where their types
let them, so that a template which looks at a character can't make the same of both.
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
_OTHER_TEXT, _OTHER_DIGITS = "quizmusk", "gijkmqsuvwxz"  # without the letters of TEXT, and without hexadecimal digits
_OF_TYPE: tuple[dict[str, str], ...] = ({}, {"int": "0", "float": "0.5", "bool": "false"}, {"int": "17", "float": "1.72", "bool": "true"})
_KEY = re.compile(r"(?:^|,\s*)(?:sops|'sops'|\"sops\")[ \t]*:\s*\Z", re.MULTILINE)
_DOCUMENT = re.compile(r"^(?=---(?:[ \t\r\n]|\Z))", re.MULTILINE)
_NAMELESS = re.compile(rf"^(?:kind|metadata)[ \t]*:[ \t]*\"{TEXT}", re.MULTILINE)
"""Of a document whose very kind is encrypted: nothing can stand in for it."""


def stand_in(options: Mapping[str, Any], _: Sequence[bytes]) -> Iterator[bytes]:
    """Write units with placeholders. Options: `units`: [form, pieces] of each, `set`. Yields how many objects each lacks, and its text."""
    for form, pieces in options["units"]:
        text = placeholders(form, pieces, options["set"])
        documents = _DOCUMENT.split(text) if form == "yaml" else [text]
        kept = [each for each in documents if not _NAMELESS.search(each)]
        yield b"%d\n%s" % (len(documents) - len(kept), "".join(kept).encode())


def decode_placeholders(frame: bytes) -> tuple[int, bytes]:
    """Read one of its frames. Raises ValueError."""
    count, _, text = frame.partition(b"\n")
    return int(count), text


def placeholders(form: str, pieces: Sequence[str], number: int = 1) -> str:
    """Return the text of a unit, without its metadata, with placeholders of the first or the second set."""
    if form in ("binary", "json"):
        whole = json.loads("null".join(pieces))
        del whole["sops"]
        return _text(whole.get("data"), number) if form == "binary" else _substituted(json.dumps(whole, indent=2), form, number)
    kept = [*(_KEY.sub("", piece) if form == "yaml" else piece for piece in pieces[:-1]), pieces[-1]]
    return _substituted("".join(kept), form, number)


def _substituted(text: str, form: str, number: int) -> str:
    return _QUOTED.sub(lambda found: _placeholder(found, form, number), text)


def _placeholder(found: re.Match[str], form: str, number: int) -> str:
    kind, of_type = found[2], _OF_TYPE[number]
    if kind == "comment":
        return " encrypted"
    text = of_type.get(kind) or _text(found[0].strip("\"'"), number)
    return text if form in ("dotenv", "ini") or kind in of_type else f'"{text}"'


def _text(encrypted: object, number: int) -> str:
    digest = hashlib.sha256(str(encrypted).encode(errors="surrogatepass"))
    if number == 1:
        return TEXT + digest.hexdigest()[:8]
    return _OTHER_TEXT + "".join(_OTHER_DIGITS[byte % len(_OTHER_DIGITS)] for byte in digest.digest()[:8])
