"""Who sees and does what, by the operator's table of roles. Pure: a name and its groups become grants; who is in no row has none."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import Literal

from handler.config.page_settings import Role, RoleBinding
from handler.model.instance import is_covered

Way = Literal["proxy", "oidc", "token"]


@dataclass(frozen=True, slots=True)
class RoleGrant:
    """One row of the table that counts for a visitor."""

    role: Role
    targets: tuple[str, ...]
    logs: tuple[str, ...] = ()

    def touches(self, target: str) -> bool:
        """Whether a target lies within the row's globs."""
        return is_covered(target, self.targets)


@dataclass(frozen=True, slots=True)
class PageSession:
    """A person's stay: who, since when (`issued`, seconds since the epoch), signed in by which way.

    `id`: forms are bound to it; `binding`: a digest of the token that was presented; `fresh`: the browser has no cookie of it yet.
    """

    name: str
    groups: tuple[str, ...]
    way: Way
    id: str
    issued: float
    binding: str = ""
    fresh: bool = field(default=False, compare=False)


@dataclass(frozen=True, slots=True)
class Visitor:
    """Who is asking, and what he may do. `until`: when his stay ends, seconds since the epoch."""

    stay: PageSession = field(repr=False)
    grants: tuple[RoleGrant, ...]
    until: float

    @property
    def name(self) -> str:
        """Who he is."""
        return self.stay.name

    @property
    def way(self) -> Way:
        """By what he has signed in."""
        return self.stay.way

    def sees(self, target: str) -> bool:
        """Whether he may see a target."""
        return any(grant.touches(target) for grant in self.grants)

    @property
    def sees_everything(self) -> bool:
        """Whether he may see each target there is, and so what concerns none."""
        return any("*" in grant.targets for grant in self.grants)

    def operates(self, target: str) -> bool:
        """Whether he may act on a target."""
        return any(grant.role == "operator" and grant.touches(target) for grant in self.grants)

    def reads_logs(self, target: str) -> bool:
        """Whether he may read the logs of a target's containers."""
        return any(grant.touches(target) and is_covered(target, grant.logs) for grant in self.grants)


def grants(table: Sequence[RoleBinding], name: str, groups: Collection[str]) -> tuple[RoleGrant, ...]:
    """Return the rows that count for a person; names are compared as they are written."""
    rows = (row for row in table if name in row.users or not set(groups).isdisjoint(row.groups))
    return tuple(RoleGrant(row.role, row.targets, row.logs) for row in rows)


def known_groups(table: Sequence[RoleBinding], groups: Collection[str]) -> tuple[str, ...]:
    """Return those groups that the table names: a cookie has no room for hundreds that mean nothing here."""
    return tuple(sorted(set(groups) & {group for row in table for group in row.groups}))
