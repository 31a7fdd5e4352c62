"""What parts of records were read from which texts: the journal of a long rollout writes a record whose other parts stay as they were.

Law: a value that was read from a text is written as that text, and the text is read as that value. Both are found by what they are, not by
where they came from, so nothing of it can be stale; only memory is bounded.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

MOST = 8_000_000  # bytes in memory of all that is kept, values and texts: a few large records
LEAST = 16_000
"""Characters of JSON below which a part isn't kept: it is read anew in a millisecond or two, and each run writes another one."""
COST = 4  # bytes in memory that a value takes for a character of its JSON; measured with a target's history: 2.8
Text = tuple[str, Any, Any]  # a part's key, its text in `data` and in `binaryData`; one of them is None


@dataclass(slots=True)
class DecodeCache:
    """Values by their texts, the least recently used forgotten first. Safe to share between threads."""

    most: int = MOST
    least: int = LEAST
    _values: OrderedDict[Text, tuple[Any, int]] = field(default_factory=OrderedDict)
    _texts: dict[int, tuple[Any, Text]] = field(default_factory=dict)
    _size: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def read(self, text: Text, load: Callable[[], tuple[Any, int]], *, keep: bool = False) -> Any:
        """Return the value of a text. `load`: makes it, and says how many characters of JSON it is of; what it raises is raised.

        `keep`: keep a short one, too: a rollout whose next text is made of its chunks, which are found by the value's own items.
        """
        with self._lock:
            if text in self._values:
                self._values.move_to_end(text)
                return self._values[text][0]
        value, length = load()
        size = COST * length + sum(len(part) for part in text[1:] if part)
        with self._lock:
            if text not in self._values and (keep or length >= self.least) and size <= self.most:
                self._values[text] = value, size
                self._texts[id(value)] = value, text  # the value is kept, so nothing else has its id
                self._size += size
            while self._size > self.most:
                _, (old, gone) = self._values.popitem(last=False)
                self._texts.pop(id(old), None)
                self._size -= gone
        return value

    def text(self, key: str, value: Any) -> Text | None:
        """Return the text that this very value was read from; None: it isn't known."""
        with self._lock:
            found = self._texts.get(id(value))
        return found[1] if value and found and found[0] is value and found[1][0] == key else None
