"""What a summary proves: that a tick would read the state, look at the head, and find nothing to do (`shortcuts.unchanged`). Pure.

Law: a summary that lacks a fact, or that isn't certainly ours, proves nothing. A test makes up states and compares the two.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from handler.model.names import FIELD_MANAGER
from handler.state.configmap import TARGET, foreign
from handler.state.known_summaries import summary_in
from handler.state.record_format import seconds_of
from handler.state.run_history import ROLLING
from handler.state.summary import Summary

_WAITING = "waiting"
UNSETTLED = frozenset({"failed", "held", "pruning", _WAITING, ROLLING})
"""Phases that a run which finds the head applied must look into, and end."""
_CONTENT = ("f:data", "f:binaryData")


def own_summary(metadata: dict[str, Any], namespace: str, target: str, tooling: str) -> Summary | None:
    """Return the summary of a target's state from its metadata; None: it isn't ours alone, or can't be read, and the state must be read."""
    labels = metadata.get("labels") or {}
    if foreign(metadata, namespace, target, tooling) or labels.get(TARGET) != target or _is_edited(metadata):
        return None
    return summary_in(metadata)


def _is_edited(metadata: dict[str, Any]) -> bool:
    entries = metadata.get("managedFields") or []
    strangers = [entry.get("fieldsV1") or {} for entry in entries if entry.get("manager") != FIELD_MANAGER]
    return any(part in fields for fields in strangers for part in _CONTENT)


def is_settled(summary: Summary, settings: str, home: str, now: float) -> bool:
    """Whether only another head could give a tick something to do, at `now` (seconds since the epoch).

    `settings`: the digest of the target's settings; `home`: where its record belongs (`home_of`).
    """
    is_ours = (summary.settings, summary.home) == (settings, home)
    return is_ours and summary.phase not in UNSETTLED and not _has_open_ends(summary, now)


def _has_open_ends(summary: Summary, now: float) -> bool:
    due = bool(summary.drift_due) and seconds_of(summary.drift_due) <= now
    moves = summary.former or summary.renamed_to
    return bool(moves or summary.attempt or summary.pin or summary.asked or summary.held or summary.suspension(now) or due)


def is_waiting(summary: Summary, settings: str, homes: Collection[str], now: float) -> bool:
    """Whether only another head, or a target that it depends on, could give a tick something to do; the rest as for `is_settled`.

    `homes`: where its record may belong: one of a target that has applied nothing is of no repository.
    """
    is_ours = summary.home in homes and summary.settings == (settings if summary.commit else "")
    waits = summary.phase == _WAITING and summary.awaits not in ("", summary.commit)
    return is_ours and waits and not _has_open_ends(summary, now)


def is_quiet(summary: Summary, head: str) -> bool:
    """Whether a settled target's tick has nothing to do: the head is applied."""
    return bool(head) and summary.commit == head
