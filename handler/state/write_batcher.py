"""Changes of one record by several threads: those that come while one is being written go together in the next write.

Law: `put` returns when its change is written, not before; changes are made in their order; a failed write fails for all that share it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import reduce
from typing import Generic, TypeVar

R = TypeVar("R")


@dataclass(slots=True)
class _Batch(Generic[R]):
    changes: list[Callable[[R], R]] = field(default_factory=list)
    over: bool = False
    error: BaseException | None = None

    def change(self, record: R) -> R:
        """Make every change, one on the other; it may be asked again, for a newer record."""
        return reduce(lambda made, change: change(made), self.changes, record)


@dataclass(slots=True)
class WriteBatcher(Generic[R]):
    """The writes of one record. `write`: writes what it makes of the record as it is; it is called by one thread at a time."""

    write: Callable[[Callable[[R], R]], None]
    _busy: bool = False
    _coming: _Batch[R] = field(default_factory=_Batch)
    _turn: threading.Condition = field(default_factory=threading.Condition)

    def put(self, change: Callable[[R], R]) -> None:
        """Write a change, maybe together with others'. Raises what the write raised."""
        with self._turn:
            mine = self._coming
            mine.changes.append(change)
            self._turn.wait_for(lambda: mine.over or not self._busy)
            if not mine.over:
                self._busy, self._coming = True, _Batch()
        if not mine.over:
            self._write(mine)
        if mine.error is not None:
            raise mine.error

    def _write(self, batch: _Batch[R]) -> None:
        try:
            self.write(batch.change)
        except BaseException as error:  # noqa: BLE001 - each `put` that shares it raises it
            batch.error = error
        with self._turn:
            batch.over, self._busy = True, False
            self._turn.notify_all()
