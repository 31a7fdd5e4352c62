"""How the kinds' functions read live objects. A status may have any shape, and none is an error."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from handler.model.health import Health, Status
from handler.model.manifest import at, items_at
from handler.model.names import FIELD_MANAGER
from handler.model.quotation import printable, quoted

Object = dict[str, Any]
HEALTHY = Health(Status.CURRENT)
_ESCAPED = 10  # characters that one becomes, at most, where it isn't shown as it is


def stands(note: str = "") -> Health:
    """It does what is asked of it; `note`: what a person should know all the same."""
    return Health(Status.CURRENT, note)


def waits(missing: str, again: float = 0.0) -> Health:
    """It is on its way; `missing`: what it lacks. `again`: see `Health`."""
    return Health(Status.IN_PROGRESS, missing, again)


def fails(why: str) -> Health:
    """It won't get there by itself."""
    return Health(Status.FAILED, why)


@dataclass(frozen=True, slots=True)
class Condition:
    """One condition of a status; `status` empty: there is none. `observed`: the generation it is of, None where it doesn't say."""

    type: str
    status: str = ""
    reason: str = ""
    message: str = ""
    since: float | None = None
    observed: int | None = None

    @property
    def true(self) -> bool:
        """Whether it holds."""
        return self.status == "True"

    @property
    def false(self) -> bool:
        """Whether it is said not to hold."""
        return self.status == "False"

    @property
    def said(self) -> str:
        """What it says, for a person; empty where it only has a type."""
        return ": ".join(part for part in (as_said(self.reason), as_said(self.message)) if part)


def condition(live: Object, kind: str) -> Condition:
    """Return the condition of this type."""
    for each in items_at(live, "status", "conditions"):
        if at(each, "type") == kind:
            status, reason, message = (str(at(each, key) or "") for key in ("status", "reason", "message"))
            return Condition(kind, status, reason, message, moment(at(each, "lastTransitionTime")), number(at(each, "observedGeneration")))
    return Condition(kind)


def said(text: Any) -> str:
    """Return a cluster's text fit to be compared, or shown by itself: one line, no control characters. The caller cuts it."""
    return printable(line := " ".join(text.split()), _ESCAPED * len(line)) if isinstance(text, str) else ""


def as_said(text: Any) -> str:
    """Return a cluster's text for a sentence, quoted and whole: who shows it masks it, and cuts it then."""
    return quoted(line := said(text), len(line) + 1)


def number(value: Any) -> int | None:
    """Return a whole number; None for anything else."""
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def count(live: Object, *path: str, missing: int = 0) -> int:
    """Return the number at a path of fields, or what stands for one that is left out."""
    found = number(at(live, *path))
    return missing if found is None else found


def moment(value: Any) -> float | None:
    """Read RFC 3339 as seconds since the epoch; None for anything else."""
    try:
        found = datetime.fromisoformat(value) if isinstance(value, str) else None
    except ValueError:
        return None
    return found.timestamp() if found is not None and found.tzinfo is not None else None


def written(live: Object) -> float | None:
    """Return when an object was last changed by us, or created; an apply that changes nothing doesn't count."""
    entries = items_at(live, "metadata", "managedFields")
    ours = [at(entry, "time") for entry in entries if at(entry, "manager") == FIELD_MANAGER and not at(entry, "subresource")]
    stamps = map(moment, [at(live, "metadata", "creationTimestamp"), *ours])
    return max((found for found in stamps if found is not None), default=None)
