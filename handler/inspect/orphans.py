"""What the next run deletes of a target, and what it keeps although git doesn't declare it; each with the reason, and whether it is held.

    deleted    git no longer declares it           recreated   it is deleted and made anew
    kept       its reason says what keeps it       left        a sibling target declares it
    expires    undeclared in an exclusive namespace: a drift run deletes it once its grace is over
    undeclared it lives in another namespace of the target, without its marks: shown, never touched

Law: what is made anew is a deletion, too. A deletion that a guard holds comes only once a person has approved it.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace

from handler.inspect.look import Look, Seen
from handler.inspect.signs import Fate
from handler.model.advice import advice
from handler.model.names import kubectl
from handler.model.plan import Action, Change
from handler.plan.exclusive import KEEP


@dataclass(frozen=True, slots=True)
class LiveOrphan:
    """One live object. `held`: it goes only once that is approved; `since`: when a run first kept it, empty: none did.

    `until`: after when a drift run deletes it, empty: that isn't known; `stays`: how a person keeps it, of what expires.
    """

    object: str
    group: str
    uid: str
    place: str
    fate: Fate
    held: bool
    reason: str
    since: str
    sibling: str
    terminating: str
    finalizers: tuple[str, ...]
    until: str = ""
    stays: str = ""


@dataclass(frozen=True, slots=True)
class Orphans:
    """The orphans of a target. `counts`: by fate, and how many are held; `omitted`: how many the list leaves out."""

    seen: Seen
    counts: dict[str, int]
    orphans: tuple[LiveOrphan, ...]
    omitted: int = 0


_EVERYWHERE = 'namespaces of the target is "*": undeclared objects are looked for in exclusive namespaces alone'


def orphans_of(look: Look) -> Orphans:
    """Return what a look found."""
    since = {orphan.uid: orphan.since for orphan in look.state.orphans} if look.state else {}
    changes = [change for change in look.changes if change.removes or (change.action is Action.SKIP and change.manifest is None)]
    found = [_orphan(look, change, since.get(change.uid, "")) for change in changes]
    found += [replace(_orphan(look, change, ""), fate=Fate.UNDECLARED, stays="") for change in look.gaps.beside or ()]
    found.sort(key=_order)
    fates = Counter(each.fate for each in found)
    counts = {str(fate): fates[fate] for fate in Fate} | {"held": sum(each.held for each in found)}
    seen = Seen.of(look)
    return Orphans(replace(seen, notes=(*seen.notes, *([_EVERYWHERE] if look.everywhere else []))), counts, tuple(found))


def _order(each: LiveOrphan) -> tuple[int, str, str]:
    return list(Fate).index(each.fate), each.object, each.group


def _orphan(look: Look, change: Change, since: str) -> LiveOrphan:
    fates = {Action.PRUNE: Fate.DELETED, Action.RECREATE: Fate.RECREATED}
    kept = Fate.LEFT if change.sibling else Fate.EXPIRES if change.expires else Fate.KEPT
    fate = fates.get(change.action, kept)
    return LiveOrphan(
        object=str(change.identity),
        group=change.identity.group,
        uid=change.uid,
        place=change.manifest.place if change.manifest else "",
        fate=fate,
        held=look.holds(change),
        reason=change.reason,
        since=since,
        sibling=change.sibling,
        terminating=change.terminating,
        finalizers=change.finalizers,
        until=change.until,
        stays=_stays(change) if change.unmarked and fate in (Fate.EXPIRES, Fate.DELETED) else "",
    )


def _stays(change: Change) -> str:
    return advice("declare it in git, or {text}", kubectl("annotate", change.identity, KEEP))
