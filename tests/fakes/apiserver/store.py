"""What lives, one version a write. Every write is one row of the log: a test reads there who did what, and when."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from handler.model.names import Identity
from tests.fakes.apiserver import managed_fields
from tests.fakes.apiserver.bodies import copied
from tests.fakes.apiserver.kinds import Served, normal

Body = dict[str, Any]


class Refusal(Exception):
    """A Status instead of an answer."""

    def __init__(self, status: int, reason: str, message: str, cause: str = "") -> None:
        super().__init__(message)
        self.status = status
        self.body: Body = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "message": message, "code": status}
        if reason:
            self.body["reason"] = reason
        if cause:
            self.body["details"] = {"causes": [{"reason": "FieldValueInvalid", "message": message, "field": cause}]}


@dataclass(frozen=True)
class Stored:
    """One object in one version."""

    row: Served
    body: Body
    owners: managed_fields.Owners = field(default_factory=dict)

    @property
    def uid(self) -> str:
        return str(self.body["metadata"]["uid"])

    @property
    def version(self) -> str:
        return str(self.body["metadata"]["resourceVersion"])


@dataclass(frozen=True)
class Write:
    """One row of the log: what an object became (None: it went), in which revision."""

    revision: int
    identity: Identity
    before: Body | None
    after: Body | None


class Store:
    """Objects by identity. `now`: the time as RFC 3339; `wrote`: called with each write before it is visible."""

    def __init__(self, now: Callable[[], str]) -> None:
        self.revision = 1
        self.log: list[Write] = []
        self.wrote: Callable[[Write], None] = lambda write: None
        self._now = now
        self._made = 0
        self._live: dict[Identity, Stored] = {}

    def get(self, identity: Identity) -> Stored | None:
        return self._live.get(identity)

    def all(self) -> Iterator[tuple[Identity, Stored]]:
        """Yield what lives, in order."""
        yield from list(self._live.items())

    def put(self, identity: Identity, row: Served, body: Body, owners: managed_fields.Owners, *, dry: bool = False) -> Body:
        """Store an object, new or changed; what is equal isn't written. Return it as stored."""
        live = self._live.get(identity)
        made = normal(copied(body), row)
        metadata = {key: value for key, value in made["metadata"].items() if key not in ("resourceVersion", "managedFields")}
        metadata |= {"uid": live.uid, "creationTimestamp": live.body["metadata"]["creationTimestamp"]} if live else self._born()
        made["metadata"] = metadata
        if live and owners == live.owners and _plain(made) == _plain(live.body):
            return copied(live.body)
        revision = self.revision + (not dry)
        metadata["managedFields"] = managed_fields.spelled(owners, row.resource.api_version, self._now())
        if not dry or live:
            metadata["resourceVersion"] = live.version if dry and live else str(revision)
        if not dry:
            self._commit(identity, Stored(row, made, dict(owners)), revision)
        return copied(made)

    def remove(self, identity: Identity) -> None:
        """Delete: at once without finalizers, and with a Namespace all that is in it."""
        live = self._live[identity]
        if live.body["metadata"].get("finalizers"):
            going = copied(live.body)
            going["metadata"].setdefault("deletionTimestamp", self._now())
            going["metadata"]["resourceVersion"] = str(self.revision + 1)
            self._commit(identity, replace(live, body=going), self.revision + 1)
            return
        if identity.kind == "Namespace":
            for inside in [found for found in self._live if found.namespace == identity.name]:
                self._commit(inside, None, self.revision + 1)
        self._commit(identity, None, self.revision + 1)

    def _born(self) -> Body:
        self._made += 1
        return {"uid": f"00000000-0000-4000-8000-{self._made:012d}", "creationTimestamp": self._now()}

    def _commit(self, identity: Identity, stored: Stored | None, revision: int) -> None:
        before = self._live.get(identity)
        finished = stored and stored.body["metadata"].get("deletionTimestamp") and not stored.body["metadata"].get("finalizers")
        after = None if finished else stored
        write = Write(revision, identity, before.body if before else None, after.body if after else None)
        self.wrote(write)
        self.revision = revision
        self.log.append(write)
        if after and before:
            self._live[identity] = after
        elif after:
            self._live = dict(sorted([*self._live.items(), (identity, after)]))
        else:
            self._live.pop(identity, None)


def _plain(body: Body) -> Body:
    """Return what a write may change of an object."""
    metadata = {key: value for key, value in body["metadata"].items() if key not in ("resourceVersion", "managedFields")}
    return {**body, "metadata": metadata}
