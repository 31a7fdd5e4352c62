"""Interfaces of the rows in the tables of actions and checks: between a Rollout's spec, its steps and their runners.

Law: one file, one row in a literal table, one sample, one test; an outside package adds its own the same way. A reader of options names
every mistake at once and returns JSON values. Of `success` every check must pass; of `failure` the first check that passes ends the step as
failed, and one that fails isn't looked at again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Protocol

from handler.model.errors import PlanRefused
from handler.model.health import Health
from handler.model.names import Identity
from handler.model.rollout import Mode, Moments, Step
from handler.rollout.jsonpath import Effort

Object = dict[str, Any]  # a live object
Options = Mapping[str, Any]  # what a step or check says, as its row has read it


@dataclass(frozen=True, slots=True)
class Mistake:
    """One mistake in a Rollout. `field`: its path (`spec.groups[0].steps[1].action`); `fix`: the way out."""

    field: str
    message: str
    fix: str = ""


class SpecError(Exception):
    """What a row's reader refuses, all of it. Never leaves the reading of the spec, which adds the file and raises ManifestInvalid."""

    def __init__(self, *mistakes: Mistake) -> None:
        """Keep the mistakes in the order they were found."""
        super().__init__(*mistakes)
        self.mistakes = mistakes

    @classmethod
    def of(cls, field: str, message: str, fix: str = "") -> SpecError:
        """Make the error of a single mistake."""
        return cls(Mistake(field, message, fix))


class Verdict(StrEnum):
    """What a check says of what it sees."""

    PASSED = "passed"
    PENDING = "pending"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Judged:
    """One look of a check. `message`: what was seen, for people. `fix`: of what has failed, the way out.

    `progress`: what was compared; another text than before is progress, an empty one measures none. `again`: seconds until the next
    look though nothing changed; 0: none. `known`: False: nothing could be seen; no step succeeds while one of its failure checks says so.
    """

    verdict: Verdict
    message: str = ""
    progress: str = ""
    again: float = 0.0
    known: bool = True
    fix: str = ""


class Query(Protocol):
    """How a check asks for metrics."""

    def __call__(self, url: str, query: str, seconds: float = 0.0, step: float = 0.0) -> Moments | None:
        """Return the values of a PromQL expression now, and every `step` seconds of the last `seconds`. Never waits for long.

        `url`: empty: the first one that the configuration lists. None: not answered yet; the same query, repeated soon, has it.
        Raises AuthorError: the query can't be evaluated, or the URL isn't allowed; AnnealError: it is retried.
        """


def no_metrics(url: str, query: str, seconds: float = 0.0, step: float = 0.0) -> Moments | None:
    """Return no answer: no Prometheus is configured."""
    raise PlanRefused.of("prometheus", f"this process may not ask {url or 'any'} for {query} (of {seconds:g} s, each {step:g} s)")


def unexpressed(_live: Object, _generation: int) -> Health | None:
    """Know no expressions."""
    return None


@dataclass(frozen=True, slots=True)
class Scene:
    """What a check may know beside its object.

    `since`: when the step began, seconds since the epoch, over restarts. `generation`: of the object as our write returned it, 0: unknown.
    `declared`: the object's manifest, if it was certainly created. `failing`: the check stands under `failure`. `query`: asks for metrics.
    `pods`: asks for the pods of the object's selector. `closed`: nothing that the cluster says of the object,
    and none of its values, is repeated (`handler.plan.closed`). `effort`: what all checks of the step may look
    at in this look. `expressed`: how an object of at least this generation does by the operator's expressions; None: there are none.
    """

    identity: Identity
    since: float
    generation: int = 0
    declared: Options | None = None
    failing: bool = False
    query: Query = no_metrics
    pods: Callable[[], Sequence[Object]] = field(default=list)
    closed: bool = False
    effort: Callable[[], Effort] = Effort
    expressed: Callable[[Object, int], Health | None] = unexpressed


class Probe(Protocol):
    """One check of one step under way; it may remember what it saw."""

    def look(self, live: Object | None, now: float) -> Judged:
        """Judge the object as it is now; None: it isn't there. `now`: seconds since the epoch. Raises Spent: see `Scene.effort`."""


class CheckType(Protocol):
    """A row of the table of checks: the key of an entry of `success` or `failure` -> how it is read and judged.

    It may have `without_object = True`: its object may be deleted; and `of_success`: its keys refused under `failure`.
    """

    def read(self, raw: Any, field: str) -> Options:
        """Return the options, with defaults; raise SpecError of every mistake. `raw`: any value; `{}`: only named; `field`: its path."""

    def begin(self, options: Options, scene: Scene) -> Probe:
        """Return the check as it is begun for one step."""


class ActionReader(Protocol):
    """What the reading of a Rollout needs of a row of the table of actions. `mode`: of the object of such a step.

    `keys`: of a step, this action's own (Canary: `steps`). It may have `judged_by(success)`: those checks with this action's defaults.
    """

    mode: Mode
    keys: Sequence[str]

    def read(self, raw: Mapping[str, Any], field: str) -> Options:
        """Return the action's options, defaults filled in, from those of `keys` that the step has. Raises SpecError of every mistake."""


class ActionRow(ActionReader, Protocol):
    """A whole row, as it is handed through to the step that names it: the engine's `ActionType`."""

    def act(self, stage: Any, step: Step) -> str | None:
        """Carry out the action; see `ActionType`."""
