"""What annotations, ours and those of other tools (`annotations.TABLE`), ask for one object, in git and live. Pure.

Law: git's word is read at admission, where all mistakes are refused together; live's where an object is compared. What only our own
applies wrote live is git's earlier word: where git has dropped it since, it no longer counts.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from handler.model.errors import Problem
from handler.model.manifest import Manifest
from handler.model.names import ACTS, IDENTITY, LASTING, GroupKind
from handler.model.rollout import Mode
from handler.model.tree import printable
from handler.plan.annotations import ACT, ANEW, ANY, DELETING, DROP, TABLE, AnnotationRow, Effect, Side
from handler.plan.managed_fields import is_ours_alone
from handler.plan.system_objects import ROOT_CA
from handler.rollout.canary import LABEL
from handler.rollout.hook_annotations import ROLLOUT

Rows = tuple[AnnotationRow, ...]
_OURS = "anneal.dev/"
_MADE = "which marks what a rollout has made, and lets it delete that"
_SHOWN = 80  # characters of a value that are shown
_MODES = {Effect.LEAVE: Mode.LEAVE, Effect.KEEP: Mode.KEEP}
"""The effects that decide how the plan treats an object, the strongest first."""


def _by_key(side: Side, *effects: Effect) -> dict[str, Rows]:
    wanted = {row.key for row in TABLE if row.side & side and (not effects or row.effect in effects)}
    return {key: tuple(row for row in TABLE if row.key == key) for key in wanted}


_KEYS = _by_key(Side.BOTH)
_EXACT = {key: rows for key, rows in _KEYS.items() if not key.endswith(ANY)}
_BEGINNINGS = {key.removesuffix(ANY): rows for key, rows in _KEYS.items() if key.endswith(ANY)}
_STARTS = (*_BEGINNINGS, _OURS)
_LIVE = _by_key(Side.LIVE)
_LEFT_LIVE = _by_key(Side.LIVE, Effect.LEAVE)


@dataclass(frozen=True, slots=True)
class Steering:
    """What git asks for one object. `mode`: how the plan treats it, None: like any other; `reason`: by which annotation."""

    mode: Mode | None = None
    reason: str = ""
    problems: tuple[Problem, ...] = ()


_NOTHING = Steering()


@dataclass(frozen=True, slots=True)
class _Mark:
    part: str
    key: str
    text: str
    known: Rows
    rows: Rows

    @property
    def odd(self) -> tuple[str, ...]:
        tool = self.known[0].tool
        named = frozenset().union(*(_named(row) for row in self.known))
        begins = tuple(each.removesuffix(ANY) for each in named if each.endswith(ANY))
        return tuple(part for value, part in tool.values(self.text).items() if value not in named and not value.startswith(begins))

    def __str__(self) -> str:
        return f"{self.key}: {printable(self.text, _SHOWN)}"


def asked(manifest: Manifest, body: Mapping[str, Any]) -> Steering:
    """Return what git asks for an object, with every annotation that can't be followed as a problem. `body`: the manifest's."""
    if (manifest.identity.group, manifest.identity.kind, manifest.identity.name) == ROOT_CA:
        return Steering(Mode.LEAVE, "the cluster writes it into every namespace")
    metadata = body.get("metadata") or {}
    annotations, labels = metadata.get("annotations") or {}, metadata.get("labels") or {}
    if not (_is_marked(annotations) or _is_marked(labels)):
        return _NOTHING
    marks, misspelt = [mark for mark in _marks(body) if mark.rows or mark.odd], _misspelt(annotations)
    subject, place, kind = str(manifest.identity), manifest.place, manifest.identity.group_kind
    problems = [Problem(subject, f"{key} means nothing to Anneal", place, f"did you mean {near}?") for key, near in misspelt]
    problems += [_unknown(mark, value, subject, place) for mark in marks for value in mark.odd]
    problems += [Problem(subject, f"metadata.{part} holds {key}, {_MADE}", place, "remove it from git") for part, key in _made(metadata)]
    found = [(row, mark) for mark in marks for row in mark.rows if row.side & Side.GIT]
    problems += [_refusal(row, subject, place, kind) for row, _ in found if row.effect is Effect.REFUSE]
    for effect, mode in _MODES.items():
        mark = next((mark for row, mark in found if row.effect is effect), None)
        if mark:
            return Steering(mode, f"{mark}, set in git", tuple(problems))
    return Steering(problems=tuple(problems))


def is_steered(live: Mapping[str, Any]) -> bool:
    """Whether a live object has any annotation or label that is read there: only then `left_alone` and `note` say something."""
    return _has(live.get("metadata") or {}, _LIVE)


def left_alone(live: Mapping[str, Any]) -> str:
    """Return the annotation by which a live object is left alone; empty: none."""
    metadata = live.get("metadata") or {}
    if not _has(metadata, _LEFT_LIVE):
        return ""
    mark = next((mark for mark, _ in _said_live(live, Effect.LEAVE)), None)
    return f"{mark}, set live" if mark else ""


def merges_others(live: Mapping[str, Any], desired: Mapping[str, Any]) -> bool:
    """Whether entries of other field managers may be merged into ours; not where git or live says to leave what others wrote."""
    return not _says(live, desired, Effect.MERGE)


def may_recreate(live: Mapping[str, Any], manifest: Manifest) -> bool:
    """Whether an annotation, in git or live, lets an object be made anew where an immutable field changes."""
    return _says(live, manifest.body(), Effect.RECREATE)


def note(live: Mapping[str, Any]) -> str:
    """Say which live values their tools don't know, for what lives can't be refused; empty: all are known."""
    if not is_steered(live):
        return ""
    odd = [f"{mark.key}: {printable(value, _SHOWN)}" for mark in _marks(live) if mark.key in _LIVE for value in mark.odd]
    return f"{', '.join(odd)}, set live, means nothing to its tool" if odd else ""


def skips_dry_run(body: Mapping[str, Any]) -> bool:
    """Whether an object asks to be applied although its kind isn't served yet."""
    return any("SkipDryRunOnMissingResource=true" in mark.known[0].tool.read(mark.text) for mark in _marks(body))


def protections() -> tuple[tuple[str, frozenset[str]], ...]:
    """Return (key, values) of what keeps a live object from being deleted; values in lower case, for what keeps is read generously."""
    keeping = [row for row in TABLE if row.side & Side.LIVE and row.effect in (Effect.PROTECT, Effect.LEAVE)]
    keys = dict.fromkeys(row.key for row in keeping)
    return tuple((key, frozenset(value.lower() for row in keeping if row.key == key for value in row.values)) for key in keys)


def _says(live: Mapping[str, Any], desired: Mapping[str, Any], effect: Effect) -> bool:
    in_git = any(row.effect is effect and row.side & Side.GIT for mark in _marks(desired) for row in mark.rows)
    return in_git or any(True for _ in _said_live(live, effect))


def _said_live(live: Mapping[str, Any], effect: Effect) -> Iterator[tuple[_Mark, AnnotationRow]]:
    for mark in _marks(live):
        for row in mark.rows:
            if row.effect is effect and row.side & Side.LIVE and not is_ours_alone(live, ("metadata", mark.part, mark.key)):
                yield mark, row


def _marks(body: Mapping[str, Any]) -> Iterator[_Mark]:
    metadata = body.get("metadata") or {}
    for part in ("annotations", "labels"):
        found = metadata.get(part) or {}
        for key, text in found.items() if _is_marked(found) else ():
            known = _rows(key)
            if known and (part == "annotations" or known[0].tool.labels):
                yield _Mark(part, key, text or "", known, _matching(known, text or ""))


def _is_marked(part: Mapping[str, Any]) -> bool:
    return bool(part) and (not _EXACT.keys().isdisjoint(part) or any(key.startswith(_STARTS) for key in part))


def _rows(key: str) -> Rows:
    return _EXACT.get(key) or next((rows for start, rows in _BEGINNINGS.items() if key.startswith(start)), ())


def _matching(rows: Rows, text: str) -> Rows:
    tool = rows[0].tool
    values = tool.read(text)
    exact = tuple(row for row in rows if any(tool.read(value) <= values for value in row.values if value != ANY))
    asks = bool(values) or not text.strip()
    return exact or (tuple(row for row in rows if ANY in row.values) if asks else ())


def _named(row: AnnotationRow) -> frozenset[str]:
    return frozenset().union(*(row.tool.read(value) for value in row.values))


def _has(metadata: Mapping[str, Any], keys: Mapping[str, Rows]) -> bool:
    return any(not keys.keys().isdisjoint(metadata.get(name) or ()) for name in ("annotations", "labels"))


def _misspelt(annotations: Mapping[str, Any]) -> list[tuple[str, str]]:
    written = annotations.keys() - _EXACT.keys() - {IDENTITY, ROLLOUT}
    ours = [key.removeprefix(_OURS) for key in _EXACT if key.startswith(_OURS)]
    found = ((key, _near(key.removeprefix(_OURS), ours)) for key in sorted(written) if key.startswith(_OURS))
    return [(key, f"{_OURS}{near}") for key, near in found if near]


def _made(metadata: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    return ((part, key) for part, key in (("annotations", ROLLOUT), ("labels", LABEL)) if key in (metadata.get(part) or ()))


def _refusal(row: AnnotationRow, subject: str, place: str, kind: GroupKind) -> Problem:
    """Refuse an annotation; where its object holds data, no way out deletes it."""
    value = "" if ANY in row.values else f": {row.values[0]}"
    fix = f"{ACT}; or {row.fix}" if row.fix == ANEW and kind in ACTS else row.fix
    fix = DROP if kind in LASTING and row.fix in DELETING else fix
    return Problem(subject, f"asks by {row.key}{value} for what isn't done: {row.does}", place, fix)


def _unknown(mark: _Mark, value: str, subject: str, place: str) -> Problem:
    tool, known = mark.known[0].tool, {each: row for row in mark.known for each in row.values}
    near = _near(value, list(known))
    seen = f"{mark.key}: {printable(value, _SHOWN)} means nothing to {tool.name}"
    shown = (f"{each.removesuffix(ANY)}… ({row.does})" if each.endswith(ANY) else each for each, row in known.items())
    return Problem(subject, seen, place, f"did you mean {near}?" if near else f"write one of {', '.join(shown)}, or remove it")


def _near(value: str, known: Sequence[str]) -> str:
    folded = {each.lower(): each for each in known}
    found = difflib.get_close_matches(value.lower(), folded, n=1, cutoff=0.75)
    return folded[found[0]] if found else ""
