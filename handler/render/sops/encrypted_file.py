"""Which files are encrypted, and what of them the metadata is: a file is cut where sops' own part stands. Runs in the render child.

A file of several YAML documents is one to sops where all of them carry the same metadata; where each was encrypted by itself, or some
not at all, each encrypted document is one, as Flux decrypts them.
"""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from json.decoder import scanstring  # type: ignore[attr-defined]  # the standard library's own scanner, which typeshed doesn't name
from typing import Any, Self

import yaml
from yaml._yaml import CParser

from handler.model.errors import Problem
from handler.render.document import MAX_BYTES, Document
from handler.render.documents import documents
from handler.render.frames import decode_problem, encode
from handler.render.sops.sops_metadata import OPERATORS, MetadataRefused, SopsMetadata, refusal, unflattened

MARK = b"ENC[AES256_GCM,"
"""What no encrypted file lacks: its MAC is encrypted like its values."""
_MAX_UNITS = 500
_DOCUMENT = re.compile(r"^---(?=[ \t\r\n]|\Z)", re.MULTILINE)
_BLANK = re.compile(r"[ \t\r\n]*")
_DOTENV = re.compile(r"^sops_([^=\n]*)=([^\n]*)\n?", re.MULTILINE)
_INI = re.compile(r"^\[sops\][ \t]*\r?\n((?:(?!\[)[^\n]*\n?)*)", re.MULTILINE)
_INI_LINE = re.compile(r"^([^=\n#;]+)=([^\n]*)", re.MULTILINE)
_INI_QUOTED = re.compile(r"\A(\"\"\"|[`\"'])(.*)\1\Z")
_JSON_VALUE = re.compile(r":\s*\"ENC\[AES256_GCM,data:")
_LINE_VALUE = re.compile(r"^[^#;\n=]+=[ \t]*ENC\[AES256_GCM,data:", re.MULTILINE)
_YAML = re.compile(r"^(?:sops|'sops'|\"sops\")[ \t]*:", re.MULTILINE)


def may_be_encrypted(blob: bytes) -> bool:
    """Whether it is worth a closer look."""
    return MARK in blob


@dataclass(frozen=True, slots=True)
class Unit:
    """What sops decrypts at once. `pieces`: its text, cut where the metadata stands."""

    pieces: tuple[str, ...]
    metadata: SopsMetadata


@dataclass(frozen=True, slots=True)
class EncryptedFile:
    """`form`: as sops calls it (yaml, json, dotenv, ini, binary); `texts`: what stands before, between and behind its units."""

    form: str
    texts: tuple[str, ...]
    units: tuple[Unit, ...]

    def encode(self, number: int) -> bytes:
        """Write it as a frame. `number`: of the part that it was."""
        units = [[unit.pieces, unit.metadata.encode()] for unit in self.units]
        return b"E" + json.dumps([number, self.form, self.texts, units]).encode()

    @classmethod
    def decode(cls, frame: bytes) -> tuple[int, Self] | Problem:
        """Read a file's number and what it is, or a mistake. Raises ValueError."""
        if frame[:1] != b"E":
            return decode_problem(frame)
        try:
            number, form, texts, found = json.loads(frame[1:])
            units = tuple(Unit(tuple(map(str, pieces)), SopsMetadata.decode(facts)) for pieces, facts in found)
        except TypeError:
            raise ValueError("no encrypted file") from None
        whole = isinstance(texts, list) and len(texts) == len(units) + 1 and all(unit.pieces for unit in units)
        if type(number) is not int or form not in ("yaml", "json", "dotenv", "ini", "binary") or not whole:
            raise ValueError("no encrypted file")
        return number, cls(form, tuple(map(str, texts)), units)


def see(options: Mapping[str, Any], parts: Sequence[bytes]) -> Iterator[bytes]:
    """Say what candidates are. Options: `places`: the path of each part. Yields nothing for one that isn't encrypted."""
    for number, (path, data) in enumerate(zip(options["places"], parts, strict=True)):
        try:
            found = _seen(data, path)
        except MetadataRefused as refused:
            yield encode(refusal(path, refused))
        else:
            if found:
                yield found.encode(number)


def _seen(data: bytes, path: str) -> EncryptedFile | None:
    """Tell what a file is by its own form; only what JSON holds depends on its name, as for sops."""
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return None
    if len(data) > MAX_BYTES:
        raise MetadataRefused(f"has {len(data):,} bytes; at most {MAX_BYTES:,} are decrypted")
    if text.lstrip().startswith("{") and not path.endswith((".yaml", ".yml")):
        return _json(text, path)
    flat = dict(_DOTENV.findall(text))
    if "mac" in flat:
        return _dotenv(text, flat)
    found = _INI.search(text)
    if found and MARK.decode() in found[1]:
        return _ini(text, found)
    if path.endswith((".env", ".ini")) and _LINE_VALUE.search(text):
        raise MetadataRefused("it has no metadata: it is cut off, or was edited by hand")
    return _yaml(text.removeprefix("\ufeff"), path)


def _one(form: str, pieces: Sequence[str], metadata: SopsMetadata) -> EncryptedFile:
    return EncryptedFile(form, ("", ""), (Unit(tuple(pieces), metadata),))


def _json(text: str, path: str) -> EncryptedFile | None:
    """Cut a JSON object at the value of its `sops`; nothing else of its text changes."""
    spans: list[tuple[int, int]] = []
    keys: list[str] = []
    decoder = json.JSONDecoder(object_pairs_hook=_once)
    found: Any = None
    try:
        at = _blank(text, _blank(text, 0) + 1)
        while text[at] == '"':
            key, at = scanstring(text, at + 1, True)
            start = _blank(text, _blank(text, at) + 1)
            value, end = decoder.raw_decode(text, start)
            keys.append(key)
            if key == "sops":
                spans.append((start, end))
                found = value
            at = _blank(text, end)
            at = _blank(text, at + 1) if text[at] == "," else _end(text, at)
    except (ValueError, IndexError, RecursionError):
        if _JSON_VALUE.search(text):
            raise MetadataRefused("can't be read as JSON: it is cut off, or was edited by hand") from None
        return None
    if not spans or not isinstance(found, dict) or "mac" not in found:
        return None
    if len(spans) > 1:
        raise MetadataRefused("it has more than one `sops`")
    start, end = spans[0]
    form = "json" if path.endswith(".json") or set(keys) != {"data", "sops"} else "binary"
    return _one(form, (text[:start], text[end:]), SopsMetadata.read(found))


def _end(text: str, at: int) -> int:
    """Return where an object ends that nothing follows. Raises ValueError: something does."""
    if text[at] != "}" or _blank(text, at + 1) < len(text):
        raise ValueError("no end of the only object")
    return at


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise MetadataRefused("it has a key twice in one object")
    return found


def _blank(text: str, at: int) -> int:
    found = _BLANK.match(text, at)
    return found.end() if found else at


def _dotenv(text: str, flat: Mapping[str, str]) -> EncryptedFile:
    if len(_DOTENV.findall(text)) > len(flat):
        raise MetadataRefused("it has a key of its metadata twice")
    rest = _DOTENV.sub("", text)
    whole = {name: value.removesuffix("\r").replace("\\n", "\n") for name, value in flat.items()}
    return _one("dotenv", (rest if not rest or rest.endswith("\n") else f"{rest}\n", ""), SopsMetadata.read(unflattened(whole)))


def _ini(text: str, found: re.Match[str]) -> EncryptedFile:
    if len(_INI.findall(text)) > 1:
        raise MetadataRefused("it has more than one section `sops`")
    rows = _INI_LINE.findall(found[1])
    flat = {name.strip(" \t"): _INI_QUOTED.sub(r"\2", value.strip(" \t\r")).replace("\\n", "\n") for name, value in rows}
    if len(flat) < len(rows):
        raise MetadataRefused("it has a key of its metadata twice")
    return _one("ini", (text[: found.start()], text[found.end() :]), SopsMetadata.read(unflattened(flat)))


# --- YAML
@dataclass(frozen=True, slots=True)
class _Chunk:
    """One document of a file. `value`: None where it holds nothing; `sops`: its metadata as read; `span`: where they stand in `text`."""

    text: str
    value: Any
    sops: Any = None
    span: tuple[int, int] = (0, 0)

    @property
    def pieces(self) -> tuple[str, str]:
        return self.text[: self.span[0]], self.text[self.span[1] :]

    @property
    def empty(self) -> bool:
        """Whether it holds nothing, as it is written or as sops writes that. sops prints `{}` of it, which is no object."""
        nothing = self.text.startswith("---") if self.value is None else self.sops is not None and len(self.value) == 1
        return nothing and MARK.decode() not in "".join(self.pieces)


def _yaml(text: str, path: str) -> EncryptedFile | None:
    if not _YAML.search(text) and not text.lstrip().startswith("{"):
        return None
    starts = [0, *(found.start() for found in _DOCUMENT.finditer(text) if found.start()), len(text)]
    chunks = [_chunk(text[start:end], path) for start, end in itertools.pairwise(starts)]
    chunks = [chunk for chunk in chunks if not chunk.empty] or chunks
    encrypted = [chunk for chunk in chunks if chunk.sops is not None]
    if not encrypted:
        return None
    if len(encrypted) > _MAX_UNITS:
        raise MetadataRefused(f"it has more than {_MAX_UNITS} encrypted documents")
    if all(chunk.value is None or chunk.sops == encrypted[0].sops for chunk in chunks):
        texts = [chunk.pieces if chunk.sops is not None else (chunk.text,) for chunk in chunks]
        return _one("yaml", _joined(texts), SopsMetadata.read(encrypted[0].sops))
    return _separately(chunks)


def _joined(texts: Sequence[tuple[str, ...]]) -> list[str]:
    """Put chunks behind each other: a chunk's last piece goes on with the next one's first."""
    pieces = [""]
    for first, *rest in texts:
        pieces[-1] += first
        pieces += rest
    return pieces


def _separately(chunks: Sequence[_Chunk]) -> EncryptedFile:
    texts, units = [""], []
    for chunk in chunks:
        if chunk.sops is None:
            texts[-1] += chunk.text
            continue
        texts[-1] += "---\n" if chunk.text.startswith("---") else ""
        units.append(Unit(chunk.pieces, SopsMetadata.read(chunk.sops)))
        texts.append("")
    return EncryptedFile("yaml", tuple(texts), tuple(units))


def _chunk(text: str, path: str) -> _Chunk:
    """Read one document. Raises MetadataRefused: it says that it is encrypted, and can't be read."""
    named = f"{path}.yaml"
    found = list(documents(text.encode(), named)) if text.removeprefix("---").strip() else []
    claims = _YAML.search(text) and MARK.decode() in text
    problems = [each for each in found if isinstance(each, Problem)]
    values = [each.value for each in found if isinstance(each, Document) and each.value is not None]
    if problems or len(values) > 1:
        if claims:
            raise MetadataRefused(f"can't be read: {problems[0].message if problems else 'several documents without --- between them'}")
        return _Chunk(text, text)
    value = values[0] if values else None
    sops = value.get("sops") if isinstance(value, dict) and value.get("kind") != OPERATORS else None
    if not isinstance(sops, dict) or "mac" not in sops:
        return _Chunk(text, value)
    return _Chunk(text, value, sops, _span(text))


def _span(text: str) -> tuple[int, int]:
    """Return where the value of the top-level key `sops` stands: from its first token to the end of its last one."""
    parser = CParser(text)
    while type(parser.get_event()) is not yaml.MappingStartEvent:
        pass
    while type(key := parser.get_event()) is yaml.ScalarEvent:
        span = _node(parser, text, metadata=key.value == "sops")
        if key.value == "sops":
            return span
    raise MetadataRefused("its metadata stands where sops finds none: write it without anchors and aliases")


def _node(parser: CParser, text: str, *, metadata: bool) -> tuple[int, int]:
    """Pass one node; return where it stands."""
    start, end, depth = -1, 0, 0
    while True:
        event: Any = parser.get_event()
        kind = type(event)
        if metadata and (kind is yaml.AliasEvent or getattr(event, "anchor", None) or getattr(event, "tag", None)):
            raise MetadataRefused("its metadata holds an anchor, an alias or a tag")
        start = event.start_mark.index if start < 0 else start
        depth += {yaml.MappingStartEvent: 1, yaml.SequenceStartEvent: 1, yaml.MappingEndEvent: -1, yaml.SequenceEndEvent: -1}.get(kind, 0)
        ends_a_block = kind in (yaml.MappingEndEvent, yaml.SequenceEndEvent) and text[event.start_mark.index : event.end_mark.index] == ""
        end = end if ends_a_block else max(end, event.end_mark.index)
        if depth == 0:
            return start, end
