"""What the worker answers to the page's questions; what it couldn't find out is an error with a status that a browser understands."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from handler.model.errors import BadPayload, SenderError, ShownOtherwise
from handler.web.status_api import MOST_INSTANCES, AskWorker

Json = Mapping[str, Any]


class NotAnswered(SenderError, code="not-answered", status=502):
    """A question that has no answer: a cluster or a git host doesn't give one."""


class NotTheTargets(SenderError, code="not-the-targets", status=404):
    """An object or a commit that isn't the target's."""


_KINDS: Mapping[str, type[SenderError]] = {"request-refused": NotTheTargets, "no-instance": NotTheTargets}
_ACTS: Mapping[str, type[SenderError]] = {"request-refused": BadPayload, "shown-otherwise": ShownOtherwise}


@dataclass(frozen=True, slots=True)
class Answers:
    """Asks the worker. Each method raises WorkerUnavailable; NotAnswered, NotTheTargets, BadPayload, ShownOtherwise: with the reason."""

    worker: AskWorker

    def ask(self, question: str, **about: Any) -> Json:
        """Return the answer to one question."""
        answer = self.worker(question, **about)
        if trouble := answer.get("trouble"):
            kinds = _ACTS if question in ("suspend", "resume") else _KINDS
            raise kinds.get(trouble["code"], NotAnswered).of(f"target {about.get('name', '')}".strip(), str(trouble["message"]))
        return answer

    def overview(self, names: Sequence[str]) -> tuple[list[Json], list[Json]]:
        """Return a row for each of these targets, and those of retired ones."""
        found = self.ask("targets", names=list(names), retired=True) if names else {"targets": [], "retired": []}
        return list(found["targets"]), list(found["retired"])

    def target(self, name: str) -> Json:
        """Return all that is recorded of a target."""
        found: Json = self.ask("target", name=name)["target"]
        return found

    def instances(self, name: str) -> Json:
        """Return how many instances a template has, and rows of those that need a person most."""
        return self.ask("instances", name=name, globs=["*"], after="", limit=MOST_INSTANCES, worst=True)

    def live(self, name: str) -> Json | None:
        """Return the picture of a target's run under way, where the worker beside knows of one."""
        found: Json | None = self.ask("picture", name=name)["picture"]
        return found
