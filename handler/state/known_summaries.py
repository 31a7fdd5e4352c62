"""The summaries that records carry, read: each look at many records finds most of them as they were at the last one.

Law: one a record is kept, its newest; of a record that is gone none.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any

from handler.model.names import state_name
from handler.state.configmap import SUMMARY, read_summary
from handler.state.summary import LONGEST, Summary

MOST = 4096
"""Records of which it is kept; of more, the one that was read first goes."""
_Place = tuple[str, str]
_known: dict[_Place, tuple[str, Summary | None]] = {}
_lock = threading.Lock()


def summary_in(metadata: Mapping[str, Any]) -> Summary | None:
    """Return the summary in a record's metadata; None when it is missing, malformed or too long: see `read_summary`."""
    text = str((metadata.get("annotations") or {}).get(SUMMARY) or "")
    place = str(metadata.get("namespace") or ""), str(metadata.get("name") or "")
    known = _known.get(place)
    if known is not None and known[0] == text:
        return known[1]
    found = read_summary(text)
    if len(text) > LONGEST:  # not kept: it would be as large as its writer likes
        return found
    with _lock:
        if place not in _known and len(_known) >= MOST:
            del _known[next(iter(_known))]
        _known[place] = text, found
    return found


def forget_summary(namespace: str, target: str) -> None:
    """Let go of the summary of a record that is gone."""
    with _lock:
        _known.pop((namespace, state_name(target)), None)
