"""What a takeover writes of members that nothing else of the plan writes: their marks, and nothing else. Pure.

Law: a member that stays, whatever keeps it, ends with our present marks. What is deleted, or applied, needs no write of its own.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from handler.model.errors import Problem
from handler.model.manifest import Manifest
from handler.model.names import IDENTITY, PART_OF, Identity, uid_and_version
from handler.model.plan import Action, Change, FieldChange
from handler.plan.compare import Comparison
from handler.plan.handover import relabelled
from handler.plan.inventory import Membership, as_ours, marks_of


def kept(ours: Membership, staying: Iterable[Identity], comparison: Comparison) -> tuple[Change, ...]:
    """Return the changes of candidates that stay, and of hooks, which carry former marks."""
    if ours.former is None:
        return ()
    found = {identity: comparison.candidates[identity] for identity in staying} | comparison.hooks
    return tuple(relabelling(ours, identity, live) for identity, live in sorted(found.items()) if ours.is_former(live, identity))


def outside(identity: Identity) -> Problem:
    """Return why a member gets no new marks that lives outside of what the target may write."""
    setting = f"namespace {identity.namespace} in `namespaces`" if identity.namespace else f"{identity.group_kind} in `clusterScoped`"
    return Problem(str(identity), "it is outside of what this target may write", fix=f"until the takeover has ended, list {setting}")


def relabelling(ours: Membership, identity: Identity, live: dict[str, Any]) -> Change:
    """Return the change of one member's marks."""
    old = ours.former or ours.marks
    pairs = ((_LABEL, ours.marks.applyset, old.applyset), (_ANNOTATION, identity.mark(ours.marks.target), identity.mark(old.target)))
    fields = tuple(FieldChange(path, becomes, was) for path, becomes, was in pairs if becomes != was)
    change = Change(Action.UPDATE, identity, *uid_and_version(live), "", fields)
    return relabelled(ours, change, marks_of(Manifest.of(as_ours(live, identity, ours.marks))))


_LABEL, _ANNOTATION = f"metadata.labels.{PART_OF}", f"metadata.annotations.{IDENTITY}"
