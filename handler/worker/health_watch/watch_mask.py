"""What is said of a watched target, without what its objects hold as secret; read by the target's own rights, once something is said.

Law: conditions and events may repeat any value that was declared. Where the objects can't be read, only the subject of a text is shown.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from handler.config.secret_mask import Mask
from handler.engine.planner.members import Members
from handler.engine.run.commit_mask import CommitMask, living
from handler.model.errors import AnnealError
from handler.model.names import Identity

LEFT_OUT = "(left out: what it may not show can't be read)"


@dataclass(slots=True)
class WatchMask:
    """A mask for one target. `mask`: hides the operator's secrets; `members`: how its objects are read, raises AnnealError."""

    mask: Callable[[str], str]
    members: Callable[[], Members]
    _read: tuple[str, frozenset[Identity]] | None = None
    _hiding: Callable[[str], str] = field(default=str, repr=False)
    _due: float = 0.0

    def of(self, commit: str, declared: frozenset[Identity], now: float, pause: float) -> Callable[[str], str]:
        """Return the mask for what a commit has declared; what can't be read `now` (monotonic) is tried again after `pause` seconds."""

        def hide(text: str) -> str:
            if self._read != (commit, declared) and now >= self._due:
                self._hiding = self._made(declared)
                if self._hiding is _subject:
                    self._read, self._due = None, now + pause
                else:
                    self._read = commit, declared
            return self._hiding(text) if self._read == (commit, declared) else _subject(text)

        return hide

    def _made(self, declared: frozenset[Identity]) -> Callable[[str], str]:
        try:
            live = self.members().listed({each.group_kind for each in declared})
        except AnnealError:
            return _subject
        return CommitMask(self.mask, (), Mask.of(living(live)))


def _subject(text: str) -> str:
    return f"{text.partition(': ')[0]}: {LEFT_OUT}" if ": " in text else LEFT_OUT
