"""State <-> ConfigMap, which is also the parent of the target's ApplySet (KEP-3659). What is read is untrusted.

`commit`, `repository` and `path` are plain text; each other part of the record is one JSON key, over 4 KB gzipped into binaryData.
Law: an older version may run beside this one. `target.json` keeps the fields that a reader of any format asks for, so that it gets as far
as `format`, and says that a newer version wrote the record instead of advising to delete it.
"""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Iterator
from dataclasses import fields, replace
from functools import partial
from typing import Any

from handler.model.advice import advice
from handler.model.errors import Problem, StateInvalid
from handler.model.names import MANAGED_BY, GroupKind, Identity, applyset_id, kubectl, state_name
from handler.model.to_json import camel
from handler.state import gzip_chunks
from handler.state.cluster_port import Body
from handler.state.decode_cache import DecodeCache, Text
from handler.state.record import FORMAT, Progress, Ran, RecordedInstance, State, bounded
from handler.state.record_format import (
    GZIP_ABOVE,
    INFLATED,
    field_rule,
    gzipped_text,
    inflated,
    length_of,
    read_fields,
    read_record,
    read_value,
    write_record,
)
from handler.state.summary import LONGEST, Summary

ID = "applyset.kubernetes.io/id"
TOOLING = "applyset.kubernetes.io/tooling"
KINDS = "applyset.kubernetes.io/contains-group-kinds"
NAMESPACES = "applyset.kubernetes.io/additional-namespaces"
SUMMARY = "anneal.dev/summary"
TARGET = "anneal.dev/target"
INSTALLATION = "anneal.dev/installation"
RENAMED_FROM = "anneal.dev/renamed-from"
INSTANCE = "anneal.dev/instance"
"""On the record of an instance, an annotation: `<uid>/<group>/<Kind>:<namespace>/<name>` of its object."""

_PLAIN = ("commit", "repository", "path")
_GROUPED = {
    "target": ("target", "installation", "cluster_uid", "format", "renamed_from"),
    "applied": ("reads", "settings", "digest", "drift_due", "renderer", "installed"),
}
_FORMAT_1 = {"target": ("repository",), "applied": ("commit",)}
"""What stood in those groups before it became a plain key. A repository is still written there, empty: readers of format 1 ask for one."""
_JOB = GroupKind("batch", "Job")
_IN_ANNOTATIONS = ("kinds", "namespaces")
_ELSEWHERE = (*_PLAIN, *_GROUPED["target"], *_GROUPED["applied"], *_IN_ANNOTATIONS)
_SINGLE = tuple(item.name for item in fields(State) if item.name not in _ELSEWHERE)
_KEYS = (*_GROUPED, *(camel(name) for name in _SINGLE))
_REMEMBERED = DecodeCache()


def encode(state: State, namespace: str, tooling: str) -> Body:
    """Write a state as its ConfigMap, without uid and resourceVersion. `tooling`: `anneal/v<semver>`."""
    state, name = bounded(state), state_name(state.target)
    data, binary = _encode_data(state)
    metadata = {
        "name": name,
        "namespace": namespace,
        "labels": {
            ID: applyset_id(name, namespace),
            TARGET: state.target,
            INSTALLATION: state.installation,
            **MANAGED_BY,
            **({RENAMED_FROM: state.renamed_from} if state.renamed_from else {}),
        },
        "annotations": {
            TOOLING: tooling,
            KINDS: ",".join(sorted(str(kind) for kind in state.kinds)),
            NAMESPACES: ",".join(sorted(state.namespaces - {namespace})),
            SUMMARY: summary_of(state),
            **({INSTANCE: f"{state.instance.uid}/{state.instance.identity.mark('')[1:]}"} if state.instance else {}),
        },
    }
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data, "binaryData": binary}


def read_instance(annotation: str) -> RecordedInstance | None:
    """Return the object that a record's annotation names; None: it names none."""
    uid, _, named = annotation.partition("/")
    try:
        return read_record(RecordedInstance, {"identity": named, "uid": uid}) if uid else None
    except ValueError:
        return None


def _encode_data(state: State) -> tuple[dict[str, str], dict[str, str]]:
    parts: dict[str, Any] = {key: write_record(state, names) for key, names in _GROUPED.items()}
    parts["target"] |= {"format": FORMAT, "repository": ""}
    known = {name: _known(camel(name), getattr(state, name)) for name in _SINGLE}
    parts |= write_record(state, ("", *(name for name in _SINGLE if not known[name])))
    data = write_record(state, ("", *(name for name in _PLAIN if getattr(state, name))))
    data |= {f"{key}.json": plain for key, plain, _ in filter(None, known.values()) if plain is not None}
    binary = {f"{key}.json.gz": zipped for key, _, zipped in filter(None, known.values()) if zipped is not None}
    for key, part in parts.items():
        compact = json.dumps(part, ensure_ascii=False, separators=(",", ":")).encode()
        if len(compact) > GZIP_ABOVE:
            binary[f"{key}.json.gz"] = gzipped_text(compact)
        elif part:
            data[f"{key}.json"] = json.dumps(part, ensure_ascii=False, indent=2)
    return data, binary


def _known(key: str, value: Any) -> Text | None:
    """Return the text of a part that was read from it, or of a long rollout, made of chunks; None: it must be written anew."""
    known = _REMEMBERED.text(key, value)
    if known or not isinstance(value, Progress) or len(value.steps) <= gzip_chunks.SIZE:
        return known
    with contextlib.suppress(ValueError):
        zipped, read, length = gzip_chunks.gzipped(value, "steps")
        if GZIP_ABOVE < length <= INFLATED:
            _REMEMBERED.read((key, None, zipped), lambda: (read, length), keep=True)
            return key, None, zipped
    return None


def decode(body: Body, namespace: str, target: str, tooling: str) -> State:
    """Read a state. Raises StateInvalid with every mistake: another tool's, malformed, too large or from a newer version."""
    parent = Identity("", "ConfigMap", namespace, state_name(target))
    subject = str(parent)
    if strange := foreign(body["metadata"], namespace, target, tooling):
        look = advice("look at it: {text}; if it isn't needed, delete it", kubectl("get", parent, "-o", "yaml"))
        raise StateInvalid.of(subject, strange, fix=look)
    found, mistakes = _decode_parts(body)
    recorded, written = found.get("target"), found.pop("format", FORMAT)
    if written > FORMAT:
        raise StateInvalid.of(subject, f"written by a newer Anneal (format {written}, this one reads {FORMAT})", fix="upgrade Anneal")
    if not mistakes and recorded != target:
        mistakes.append(f"data key `target.json`: the record is of target {recorded!r}")
    if not mistakes and not found.get("repository") and not State(**found).fresh:
        mistakes.append("data key `repository`: is missing, and something is applied")
    if mistakes:
        fix = advice("{text}; the next run finds its objects by their label and prunes nothing", kubectl("delete", parent))
        raise StateInvalid(*(Problem(subject, mistake, fix=fix) for mistake in mistakes))
    state = bounded(State(**found))
    return replace(state, ran=_ran_by(state)) if written == 1 else state


def _ran_by(state: State) -> tuple[Ran, ...]:
    """Return the Jobs that a record of format 1, which notes none, declares; not those that a step didn't come to."""
    steps = state.rollout.steps if state.rollout else ()
    undone = {step.object for step in steps if step.outcome != "done"}
    return tuple(Ran(each) for each in state.declared if each.group_kind == _JOB and str(each) not in undone) if state.commit else ()


def foreign(metadata: dict[str, Any], namespace: str, target: str, tooling: str) -> str:
    """Say why a target's ConfigMap isn't our ApplySet's parent (KEP-3659: verify on every operation), or nothing."""
    expected = applyset_id(state_name(target), namespace)
    found = (metadata.get("labels") or {}).get(ID)
    if found is None:
        return f"isn't Anneal's: the label {ID} is missing"
    if found != expected:
        return f"the label {ID} is {str(found)[:80]!r}, but this name and namespace make {expected!r}"
    tool = str((metadata.get("annotations") or {}).get(TOOLING) or "")
    if tool.rpartition("/")[0] != tooling.rpartition("/")[0]:
        return f"the annotation {TOOLING} is {tool[:80]!r}: another tool's ApplySet"
    return ""


def _decode_parts(body: Body) -> tuple[dict[str, Any], list[str]]:
    found: dict[str, Any] = {}
    mistakes: list[str] = []
    for where, read in (("annotation", _annotated_fields), ("data", _data_fields)):
        for key, load in read(body):
            try:
                part = load()
                if twice := sorted(found.keys() & part.keys()):
                    raise ValueError(f"{twice[0]} stands in another key, too")
                found.update(part)
            except (ValueError, RecursionError) as wrong:
                mistakes.append(f"{where} key `{key}`: {wrong}")
    return found, mistakes


def _annotated_fields(body: Body) -> Iterator[tuple[str, Any]]:
    annotations = body["metadata"].get("annotations") or {}
    yield KINDS, lambda: {"kinds": frozenset(GroupKind.parse(text) for text in _listed(annotations, KINDS, _KIND))}
    yield NAMESPACES, lambda: {"namespaces": frozenset(_listed(annotations, NAMESPACES, _NAMESPACE))}


_KIND = re.compile(r"[A-Za-z][A-Za-z0-9]{0,62}(\.[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?)?")
_NAMESPACE = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")


def _listed(annotations: dict[str, Any], key: str, pattern: re.Pattern[str]) -> list[str]:
    """Read a comma-separated annotation; absent is a mistake (KEP-3659: empty means the empty set, absent means unknown)."""
    text = annotations.get(key)
    if not isinstance(text, str):
        raise ValueError("is missing")  # noqa: TRY004 - one class of error for all untrusted input
    items = text.split(",") if text else []
    for item in items:
        if not pattern.fullmatch(item):
            raise ValueError(f"{item[:80]!r} isn't a name")
    return items


def _data_fields(body: Body) -> Iterator[tuple[str, Any]]:
    """Yield each known key with what reads it; unknown keys and keys in both places read as mistakes."""
    data, binary = body.get("data") or {}, body.get("binaryData") or {}
    for name in _PLAIN:
        if name in data:
            yield name, lambda name=name: {name: read_value(name, field_rule(State, name), data[name])}
    names, is_large = {camel(name): name for name in _SINGLE}, text_length(body) > INFLATED
    for key in _KEYS:
        plain, zipped = data.get(f"{key}.json"), binary.get(f"{key}.json.gz")
        if plain is None and zipped is None and key != "target":
            continue
        shown = f"{key}.json" if zipped is None else f"{key}.json.gz"
        load = partial(_part, key, names, plain, zipped)
        yield shown, _too_large if is_large and key != "target" else load
    for stranger in sorted({*data} - {*_PLAIN, *(f"{key}.json" for key in _KEYS)} | {*binary} - {f"{key}.json.gz" for key in _KEYS}):
        yield stranger[:80], _unknown


def text_length(body: Body) -> int:
    """Return how long the texts of all parts of a record are together, inflated."""
    return sum(len(str(text)) for text in (body.get("data") or {}).values()) + sum(map(length_of, (body.get("binaryData") or {}).values()))


def _too_large() -> dict[str, Any]:
    raise ValueError(f"is too large: all parts together may have {INFLATED} bytes")


def _unknown() -> dict[str, Any]:
    raise ValueError("is unknown here")


def _part(key: str, names: dict[str, str], plain: Any, zipped: Any) -> dict[str, Any]:
    if key in _GROUPED:
        found = read_fields(State, _json(plain, zipped)[0], (*_GROUPED[key], *_FORMAT_1[key]))
        return {name: value for name, value in found.items() if name != "repository" or value}

    def load() -> tuple[Any, int]:
        raw, size = _json(plain, zipped)
        return read_value(key, field_rule(State, names[key]), raw), size

    return {names[key]: _REMEMBERED.read((key, plain, zipped), load) if _is_text(plain, zipped) else load()[0]}


def _is_text(*parts: Any) -> bool:
    return all(part is None or isinstance(part, str) for part in parts)


def _json(plain: Any, zipped: Any) -> tuple[Any, int]:
    """Parse one part, gzipped or not; return it and its length."""
    if (plain is None) == (zipped is None):
        raise ValueError("is missing" if plain is None else "is there twice, plain and gzipped")
    text = plain if zipped is None else inflated(zipped)
    if not isinstance(text, (str, bytes)) or len(text) > INFLATED:
        raise ValueError("expected JSON text")
    return json.loads(text, parse_constant=_no_constant), len(text)


def _no_constant(word: str) -> Any:
    raise ValueError(f"{word} isn't JSON")


def summary_of(state: State) -> str:
    """Write a state's summary annotation; where it would be too long to be read, without what stands in the way, then without soaks."""
    summary = Summary.of(state)
    for cut in ({}, {"why": ""}, {"why": "", "soaks": ()}):
        text = _written(replace(summary, **cut))
        if len(text) <= LONGEST:
            break
    return text


def _written(summary: Summary) -> str:
    return json.dumps(write_record(summary), separators=(",", ":"))


def read_summary(text: str) -> Summary | None:
    """Read a summary annotation; None when it is missing, malformed or too long (the reader then looks at the state itself)."""
    if not text or len(text) > LONGEST:
        return None
    try:
        return read_record(Summary, json.loads(text))
    except (ValueError, RecursionError):
        return None
