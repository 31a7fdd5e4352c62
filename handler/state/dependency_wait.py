"""What of a record says that a new commit, or new settings, wait for other targets (`dependsOn`), and what one of those lacks."""

from __future__ import annotations

from dataclasses import dataclass

from handler.model.advice import advice
from handler.model.instance import is_target_name
from handler.model.quotation import quoted
from handler.state.record_format import Line, Message, Sha, Time


@dataclass(frozen=True, slots=True)
class Obstacle:
    """One target that isn't ready for another. `why`: as it reads after its name; `fix`: a complete command, or what else helps."""

    target: Line
    why: Message
    fix: Line = ""

    def __str__(self) -> str:
        return f"{self.target}: {self.why}" if self.target else self.why

    @property
    def advised(self) -> str:
        """The same with what helps."""
        return advice("{text}; {text}", self, self.fix) if self.fix else str(self)

    @property
    def testimony(self) -> Obstacle:
        """The same as a record has it: quoted, and with no command of the record, but the one that looks."""
        looks = advice("anneal status {}", self.target) if is_target_name(self.target) else ""
        return Obstacle(quoted(self.target), quoted(self.why), looks)


@dataclass(frozen=True, slots=True)
class DependencyWait:
    """`commit`, to be made by `settings`, waits since `since` for the targets of `on`."""

    commit: Sha
    settings: Sha
    since: Time = ""
    on: tuple[Obstacle, ...] = ()

    def is_for(self, commit: str, settings: str) -> bool:
        """Whether it is these inputs that wait."""
        return (self.commit, self.settings) == (commit, settings)
