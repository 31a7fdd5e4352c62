"""What two records say of each other while a target takes over what it had under another name, or in another state namespace.

The new record says `former` until no member carries the old marks; the old one says `renamed_to` from the moment on in which the new one
may write: no run of the old name writes an object after that. Once that is deleted, `renamed_from` of the new one says the same.
"""

from __future__ import annotations

from dataclasses import dataclass

from handler.state.record_format import Line, Segment, Time


@dataclass(frozen=True, slots=True)
class RecordName:
    """Where another record of the same target is, and since when this one says so."""

    name: Line
    namespace: Segment
    at: Time = ""

    def is_same(self, name: str, namespace: str) -> bool:
        """Whether it is this target's record in this namespace."""
        return (self.name, self.namespace) == (name, namespace)

    def __str__(self) -> str:
        return f"ConfigMap/{self.namespace}/anneal-{self.name}"
