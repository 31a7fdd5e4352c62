"""One mapping of a Rollout, read key by key: what has the wrong shape is noted with its path, and reading goes on.

Law: whatever stands in git is read without another exception than SpecError; a value that was refused reads as its default.
"""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from typing import Any

from handler.config.value_formats import duration, seconds
from handler.model.rollout import key_in_path
from handler.model.tree import printable
from handler.rollout.interfaces import Mistake, SpecError

YEAR = 31_536_000.0
_SHOWN = 1e18  # numbers from here on aren't shown
_MAX_STRANGE = 5  # unknown keys of one mapping that are named
_TYPES = {dict: "a mapping", list: "a list", bool: "true or false", int: "a number", float: "a number", str: "text", type(None): "null"}


def type_of(value: Any) -> str:
    """Name the type of a value; never the value, which may be a secret."""
    return _TYPES.get(type(value), "something else")


def path(field: str, name: str) -> str:
    """Return the path of a key of a mapping; a key that isn't ours may be anything."""
    return f"{field}.{key_in_path(name)}" if field else key_in_path(name)


def unknown(kind: str, name: str, known: Sequence[str]) -> tuple[str, str]:
    """Return the message about an unknown name, and the way out: the nearest known one, else all of them."""
    near = difflib.get_close_matches(name, known, n=1)
    listed = ", ".join(known)
    return f"unknown {kind} {printable(name, 120)!r}", f"did you mean {near[0]}? known are: {listed}" if near else f"known are: {listed}"


class Fields:
    """A mapping under reading. `done` raises what was noted."""

    def __init__(self, raw: Any, field: str, known: Sequence[str], *, kind: str = "key") -> None:
        """Take a value that should be a mapping with these keys; others are mistakes."""
        self.field = field
        self.mistakes: list[Mistake] = []
        self.raw: dict[str, Any] = raw if isinstance(raw, dict) else {}
        if not isinstance(raw, dict):
            self.mistakes.append(Mistake(field, f"is {type_of(raw)}, not a mapping"))
        strange = [name for name in self.raw if name not in known]
        for name in strange[:_MAX_STRANGE]:
            self.note(name, *unknown(kind, str(name), known))
        if len(strange) > _MAX_STRANGE:
            self.mistakes.append(Mistake(field, f"has {len(strange) - _MAX_STRANGE:,} more keys that are not known"))

    def note(self, name: str, message: str, fix: str = "") -> None:
        """Note a mistake of one key."""
        self.mistakes.append(Mistake(path(self.field, str(name)), message, fix))

    def add(self, error: SpecError) -> None:
        """Note the mistakes of what was read by another."""
        self.mistakes += error.mistakes

    def has(self, name: str) -> bool:
        """Whether a key is there and not null."""
        return self.raw.get(name) is not None

    def text(self, name: str, default: str = "", *, required: bool = False, most: int = 253) -> str:
        """Read a text of at most so many characters."""
        value = self.raw.get(name)
        if value is None or value == "":
            if required:
                self.note(name, "is missing")
            return default
        if not isinstance(value, str):
            self.note(name, f"is {type_of(value)}, not text", "quote it")
        elif len(value) > most:
            self.note(name, f"has {len(value):,} characters; at most {most:,} are read")
        elif any(not char.isprintable() for char in value):
            self.note(name, "holds characters that can't be shown")
        else:
            return value
        return default

    def flag(self, name: str, *, default: bool) -> bool:
        """Read true or false."""
        value = self.raw.get(name)
        if value is None or isinstance(value, bool):
            return default if value is None else value
        self.note(name, f"is {type_of(value)}, not true or false")
        return default

    def whole(self, name: str, default: int, least: int = 0, most: int = 1_000_000_000) -> int:
        """Read a whole number within bounds, both included."""
        value = self.raw.get(name)
        if value is None:
            return default
        if isinstance(value, bool) or not isinstance(value, int):
            self.note(name, f"is {type_of(value)}, not a whole number")
        elif not least <= value <= most:
            beyond = "too large" if value > 0 else "too small"  # the digits of some take long, and Python refuses them
            self.note(name, f"is {value if abs(value) < _SHOWN else beyond}; expected {least} to {most}")
        else:
            return value
        return default

    def seconds(self, name: str, default: float, *, least: float = 0.0) -> float:
        """Read a duration as Go and we write it (`1h30m`, `5m`, `0.5s`), or a number of seconds."""
        value = self.raw.get(name)
        if value is None:
            return default
        found: float | None = None
        if isinstance(value, str):
            found = seconds(value)
        elif isinstance(value, int | float) and not isinstance(value, bool) and -_SHOWN < value < _SHOWN:
            found = float(value)
        if found is None:
            self.note(name, "expected a duration such as 30s, 5m or 1h30m")
        elif not least <= found <= YEAR:
            self.note(name, f"expected a duration of {duration(least)} to {duration(YEAR)}")
        else:
            return found
        return default

    def items(self, name: str, *, most: int = 1_000) -> list[tuple[Any, str]]:
        """Read a list: its items, each with its path."""
        value = self.raw.get(name)
        if value is None:
            return []
        if not isinstance(value, list):
            self.note(name, f"is {type_of(value)}, not a list")
            return []
        if len(value) > most:
            self.note(name, f"has {len(value):,} items; at most {most:,} are read")
            return []
        return [(item, f"{path(self.field, name)}[{index}]") for index, item in enumerate(value)]

    def done(self) -> None:
        """Raise SpecError if anything was noted."""
        if self.mistakes:
            raise SpecError(*self.mistakes)


KEYS = ("timeout", "progressTimeout", "pollInterval")
TIMEOUT, PROGRESS, POLL = 3600.0, 300.0, 5.0


def limits(fields: Fields) -> dict[str, Any]:
    """Read the time limits of a check; `pollInterval` is upstream's, and unused: the object is watched."""
    return {
        "timeout": fields.seconds("timeout", TIMEOUT, least=1.0),
        "progressTimeout": fields.seconds("progressTimeout", PROGRESS, least=1.0),
        "pollInterval": fields.seconds("pollInterval", POLL, least=0.1),
    }
