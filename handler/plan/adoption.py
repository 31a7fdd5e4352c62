"""Which declared objects live and aren't the target's, and whose they are: what `anneal adopt` lists. Pure.

    each such object that a plan judges  -->  its owner, and its change or what refuses it  -->  grouped by owner

Law: neither values of fields nor the server's words are kept, for no Secret's may be shown: both are read from the run's end, masked.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from handler.config.settings import Owner
from handler.model.errors import AnnealError, Problem
from handler.model.names import Identity
from handler.model.plan import Change
from handler.plan.admission import Desired
from handler.plan.inventory import Membership, is_member
from handler.plan.missing_settings import MissingSetting
from handler.plan.ownership import ForeignOwner, foreign_owner, in_order

_SEEN = "refused, as is said below"


@dataclass(frozen=True, slots=True)
class Adoptable:
    """One declared object that lives and isn't ours. `owner`: None: no tool's; `refusal`: why it can't be taken over; empty: it can."""

    identity: Identity
    owner: ForeignOwner | None
    refusal: str = ""


@dataclass(slots=True)
class Adoptions:
    """The candidates that the newest plan has judged; its threads share it."""

    found: dict[Identity, Adoptable] = field(default_factory=dict)

    def see(self, item: Desired, live: Mapping[str, Any], ours: Membership, outcome: Iterable[Change | Problem | AnnealError]) -> None:
        """Note what became of one live object; what a sibling hands over, or what is left as it lives, is no candidate."""
        outcome = list(outcome)
        changes = [each for each in outcome if isinstance(each, Change)]
        if is_member(live, item.identity, ours) or any(change.sibling or not change.writes for change in changes):
            return
        refusals = [each.message if isinstance(each, MissingSetting) else _SEEN for each in outcome if not isinstance(each, Change)]
        owner = foreign_owner(dict(live), item.identity, ours.own_label(live), own=ours.marks.target)
        self.found[item.identity] = Adoptable(item.identity, owner, "; ".join(refusals))

    def by_owner(self) -> dict[ForeignOwner | None, list[Adoptable]]:
        """Return the candidates in order, by their owners; those of no tool last."""
        groups: dict[ForeignOwner | None, list[Adoptable]] = {}
        for each in sorted(
            self.found.values(), key=lambda each: (each.owner is None, each.owner.name if each.owner else "", each.identity)
        ):
            groups.setdefault(each.owner, []).append(each)
        return groups

    def owners(self) -> tuple[Owner, ...]:
        """Return what `adopt` would name to have all that can be taken over."""
        return in_order(owner for each in self.found.values() if each.owner and not each.refusal for owner in each.owner.tools)
