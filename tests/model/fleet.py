"""A fleet of targets whose configuration changes: what is configured, what git declares for it, and who else is in its namespaces.

A target has a path of the repository for life; its name, its whitelist and the namespace of its record may change. Git declares a thing at
most once: it moves from path to path, and what leaves git for good never comes back. So what a thing must come to is known at any time.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from handler.config.git_settings import Promoted, Repository, Revision
from handler.config.settings import Prune, Settings, Target
from handler.model.names import Identity, identity_of

Body = dict[str, Any]
REPOSITORY = Repository("https://git.example.com/acme/fleet.git")
SPACES = ("one", "two")
"""Where things live, and strangers."""
OUTSIDE = SPACES[1]
"""May leave a whitelist; in the other one is what a target declares always."""
HOMES = ("anneal-system", "anneal-moved")
"""Where records may live."""
PATHS = ("alpha", "beta", "gamma")
FOLLOWER = "gamma"
"""Follows what `alpha` has proven; what it declares never moves, for it is no sibling of the others."""
MOVERS = PATHS[:2]
"""Between these things move."""
SOAK = 60.0


@dataclass(frozen=True, order=True)
class Thing:
    """One object that git declares for one path at a time."""

    kind: str
    namespace: str
    name: str

    @property
    def identity(self) -> Identity:
        return identity_of(self.body(1))

    def body(self, variant: int) -> Body:
        metadata = {"name": self.name, "namespace": self.namespace}
        if self.kind == "Role":
            rules = [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list", "watch"][:variant]}]
            return {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": metadata, "rules": rules}
        return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"key": str(variant)}}


MOVING = tuple(
    Thing(kind, space, f"{kind.lower()}-{number}")
    for kind, space, number in (
        ("ConfigMap", "one", 1),
        ("ConfigMap", "one", 2),
        ("ConfigMap", "two", 3),
        ("Role", "one", 4),
        ("Role", "two", 5),
    )
)
FOLLOWING = (Thing("ConfigMap", "one", "follows"), Thing("Role", "two", "follows"))
THINGS = (*MOVING, *FOLLOWING)
STRANGERS = (Thing("ConfigMap", "one", "stranger"), Thing("Role", "two", "stranger"))
"""No target declares them; one looks like what a person makes, one like what an operator copies."""


def anchor(path: str) -> Thing:
    """Return what a path declares always: a target without any object is refused."""
    return Thing("ConfigMap", "one", f"{path}-anchor")


@dataclass
class Fleet:
    """`names`: of the targets, by path; `former`: their `renamedFrom`, while the line stands. `home`: of records; `homes`: where they were.

    `spaces`: the whitelists, by path. `places`: which path declares a thing, in which variant. `gone`: what left git for good;
    `freed`: what a person may have let go of. `letting`: retired names whose objects go (True) or are let go. `last`: what each target
    was called before.
    """

    names: dict[str, str] = field(default_factory=lambda: {path: path for path in PATHS})
    former: dict[str, str] = field(default_factory=dict)
    home: str = HOMES[0]
    homes: str = ""
    spaces: dict[str, tuple[str, ...]] = field(default_factory=lambda: dict.fromkeys(PATHS, SPACES))
    places: dict[Thing, tuple[str, int]] = field(default_factory=dict)
    gone: set[Thing] = field(default_factory=set)
    freed: set[Thing] = field(default_factory=set)
    letting: dict[str, bool] = field(default_factory=dict)
    last: dict[str, str] = field(default_factory=dict)
    made: int = 0

    # --- the author
    def put(self, thing: Thing, path: str, variant: int) -> None:
        """Declare a thing, where that may be; one that left git stays out of it."""
        may = path in self.names and thing.namespace in self.spaces[path]
        if may and thing not in self.gone and (thing in FOLLOWING) == (path == FOLLOWER):
            self.places[thing] = path, variant

    def drop(self, thing: Thing) -> None:
        """Take a thing out of git for good."""
        self.places.pop(thing, None)
        self.gone.add(thing)

    def files(self) -> dict[str, str]:
        """Return the files of a commit."""
        found = {path: {anchor(path): 1} for path in self.names}
        for thing, (path, variant) in self.places.items():
            found[path][thing] = variant
        return {
            f"{path}/{each.kind}-{each.name}.json": json.dumps(each.body(variant))
            for path, mine in found.items()
            for each, variant in mine.items()
        }

    def declared(self) -> Iterator[tuple[Thing, str, int]]:
        """Yield each declared thing, its path and its variant."""
        yield from ((anchor(path), path, 1) for path in self.names)
        yield from ((thing, path, variant) for thing, (path, variant) in self.places.items())

    def give(self, things: list[Thing], heir: str) -> None:
        """Let another path declare things, where it may; what has no heir leaves git."""
        for thing in things:
            if heir and thing.namespace in self.spaces[heir]:
                self.places[thing] = heir, self.places[thing][1]
            else:
                self.drop(thing)

    def declared_by(self, path: str) -> list[Thing]:
        """Return what a path declares beside its anchor."""
        return [thing for thing, (place, _) in self.places.items() if place == path]

    # --- the operator
    def move(self) -> None:
        """Let records live in the other namespace."""
        self.homes, self.home = self.home, next(each for each in HOMES if each != self.home)

    def rename(self, path: str) -> None:
        """Give a target another name."""
        self.made += 1
        self.last[path] = self.former[path] = self.names[path]
        self.names[path] = f"{path}-{self.made}"

    def retire(self, path: str, heir: str) -> None:
        """Take a target out of the configuration; what it declares goes to an heir, or out of git."""
        self.give(self.declared_by(path), heir)
        self.gone.add(anchor(path))
        self.letting[self.names.pop(path)] = not heir
        self.former.pop(path, None)

    def narrow(self, path: str, heir: str) -> None:
        """Take the second namespace out of a target's whitelist; what it declares there goes to an heir, or out of git."""
        self.give([thing for thing in self.declared_by(path) if thing.namespace == OUTSIDE], heir)
        self.spaces[path] = tuple(space for space in SPACES if space != OUTSIDE)

    def shares(self, path: str) -> bool:
        """Whether another target may use the second namespace."""
        return any(OUTSIDE in self.spaces[other] for other in self.names if other != path)

    def settings(self) -> Settings:
        """Return the configuration of this moment."""
        return Settings(
            targets=tuple(self._target(path) for path in self.names),
            state_namespace=self.home,
            state_namespace_from=self.homes,
            lease_duration=15.0,
        )

    def _revision(self, path: str) -> Revision:
        """Return what a target follows: the follower what the first one has proven, as long as there is that."""
        first = self.names.get(PATHS[0]) if path == FOLLOWER else None
        return Revision(branch="main", promoted=Promoted((first,), SOAK) if first else None)

    def _target(self, path: str) -> Target:
        return Target(
            self.names[path],
            REPOSITORY,
            self.spaces[path],
            revision=self._revision(path),
            path=path,
            renamed_from=self.former.get(path, ""),
            prune=Prune(),
        )
