"""How long a target has kept healthy what it recorded: the proof by which other targets follow it. Values.

Law: a record keeps times, never a verdict: the target that follows decides how long is long enough.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from handler.state.record_format import Sha, Time, Word, seconds_of, stamp

MOST = 10  # soaks of a record
GLIMPSED = 3  # soaks of a summary
COMMITS = 5  # commits of a soak
REPLACED, ROLLED_BACK = "replaced", "rolled-back"
_COMMIT = re.compile("[0-9a-f]{40,64}")


@dataclass(frozen=True, slots=True)
class Soak:
    """One stretch in which a target had the same reads and settings. `commits`: the last that were recorded with them, the newest first.

    `healthy_since`: since when it is, or was at its end, healthy without a break; empty: it isn't. `until`: its end, and `ended` says how;
    both empty: it goes on.
    """

    commits: tuple[Sha, ...]
    reads: Sha
    settings: Sha
    since: Time
    until: Time = ""
    healthy_since: Time = ""
    ended: Word = ""


def glimpse(soak: Soak) -> str:
    """Return what a summary shows of a soak, in one short text."""
    moments = (f"{seconds_of(moment):.0f}" if moment else "-" for moment in (soak.since, soak.until, soak.healthy_since))
    return " ".join((soak.commits[0], *moments, soak.ended or "-"))


def glimpsed(text: str) -> Soak:
    """Return the soak that `glimpse` shows, with its newest commit alone and without its reads. Raises ValueError: it is none."""
    commit, *moments, ended = text.split(" ")
    if not _COMMIT.fullmatch(commit) or ended not in ("-", REPLACED, ROLLED_BACK) or len(moments) != 3:
        raise ValueError("expected a soak")
    since, until, healthy_since = ("" if moment == "-" else stamp(int(moment)) for moment in moments)
    return Soak((commit,), "", "", since, until, healthy_since, "" if ended == "-" else ended)
