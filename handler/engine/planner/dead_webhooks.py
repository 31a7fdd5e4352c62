"""Admission webhooks that don't answer and that the commit drops: their configuration goes before all else, what they guard is judged then.

Law: git has the configuration deleted anyway; what is found here decides when, and never lets anything else go. A member goes first that
prune deletes by this plan, that fails closed, and that has the webhook whose call the API server says has failed. None goes where a
configuration that stays has a webhook of that name, too: the name can't tell whose it is.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from handler.cluster.api import Api
from handler.cluster.parallel import together
from handler.cluster.webhooks import webhooks
from handler.engine.planner.join_errors import raise_together
from handler.model.advice import advice
from handler.model.errors import AccessDenied, ClusterUnavailable, PlanRefused, Problem
from handler.model.manifest import at
from handler.model.names import Identity, kubectl
from handler.model.plan import Change
from handler.plan.admission import Desired
from handler.plan.compare import Comparison
from handler.plan.order import ADMISSION

BROUGHT_BACK = "anneal.dev/brought-back"  # annotation on a configuration that went first in vain: the commit, for which it stays
_POLICIES = ("ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding")
_POLICY = re.compile(r"ValidatingAdmissionPolicy '([^']+)' with binding '([^']+)' denied request")
_WEBHOOK = re.compile(r'admission webhook "([^"]+)" denied the request')
_ANEW = "would have to be deleted and made anew, which the plan didn't show"
Judged = Callable[[], Sequence[Change | Problem | AccessDenied]]


@dataclass(slots=True)
class DeadWebhooks:
    """Those of one plan. `guarded`: what waits for each configuration. Once it is judged again, nothing waits any more."""

    api: Api
    comparison: Comparison
    guarded: dict[Identity, list[Identity]] = field(default_factory=dict)
    _again: list[Judged] = field(default_factory=list)
    _over: bool = False
    _met: dict[Identity, ClusterUnavailable] = field(default_factory=dict)
    _all: list[tuple[Identity, int, dict[str, Any]]] | None = None

    def unjudged(self, item: Desired, error: ClusterUnavailable, again: Judged) -> str:
        """Say for which configuration a refused object waits. `again` judges it once that is gone. Raises the error: it waits for none."""
        found = [] if self._over else self.dropped(error.webhook)
        if not found:
            raise error
        self._again.append(again)
        for one in found:
            self.guarded.setdefault(one, []).append(item.identity)
            self._met[one] = error
        return f"not judged yet: {found[0]} goes first, whose webhook {error.webhook} doesn't answer"

    def judge(self) -> None:
        """Judge all that waits. Raises what `raise_together` does, PlanRefused also for what would have to be made anew."""
        self._over = True
        found = [each for answer in together(self._again) for each in answer]
        anew = [Problem(str(each.identity), _ANEW) for each in found if isinstance(each, Change) and each.removes]
        wrong = [PlanRefused(each) for each in (*found, *anew) if isinstance(each, Problem)]
        raise_together([*wrong, *(each for each in found if isinstance(each, AccessDenied))], ())

    def dropped(self, webhook: str) -> list[Identity]:
        """Return the configurations whose webhook it is and that fail closed; none where the commit leaves one of them."""
        found = sorted(one for one, policy in self._named(webhook).items() if policy == "Fail") if webhook else []
        return found if self.comparison.candidates.keys() >= {*found} else []

    def _named(self, webhook: str) -> dict[Identity, Any]:
        """Return the live configurations that have a webhook, and what its failure does; none where they may not be listed."""
        if self._all is None:
            try:
                self._all = webhooks(self.api)
            except AccessDenied:
                self._all = []
        return {one: hook.get("failurePolicy") for one, _, hook in self._all if hook.get("name") == webhook}

    def put_first(self, prunes: Iterable[Change], commit: str) -> tuple[Change, ...]:
        """Return a plan's deletions, those that go first with why.

        Raises the server's error: one that must isn't among them; PlanRefused: one went for this commit already, in vain.
        """
        for one in self._met:
            if at(self.comparison.candidates[one], "metadata", "annotations", BROUGHT_BACK) == commit:
                fix = advice("correct what was refused; or try this commit again: {text} {}-", kubectl("annotate", one), BROUGHT_BACK)
                seen = "went first for this commit already, and was applied again, for what it guards was refused"
                raise PlanRefused.of(str(one), seen, fix=fix)
        found = {change.identity: change for change in prunes}
        for one, error in self._met.items():
            change = found.get(one)
            if change is None or not change.writes:
                fix = f"{one} would go first, which git declares no longer, but: {change.reason if change else 'it is left'}"
                raise ClusterUnavailable(*(replace(each, fix=fix) for each in error.problems))
            found[one] = replace(change, reason=f"{change.reason}; goes first: its webhook {error.webhook} doesn't answer")
        return tuple(found.values())

    def by_two_commits(self, problem: Problem) -> Problem:
        """Return a refusal with the way out, where what refuses works and the same commit drops it: it goes last."""
        policy, webhook = _POLICY.search(problem.message), _WEBHOOK.search(problem.message)
        named = {*zip(_POLICIES, policy.groups(), strict=True)} if policy else set()
        dropped = [one for one in sorted(self.comparison.candidates) if one.group == ADMISSION and (one.kind, one.name) in named]
        dropped += sorted(self.comparison.candidates.keys() & self._named(webhook[1]).keys()) if webhook else []
        if not dropped:
            return problem
        what = " and ".join(map(str, dropped))
        fix = f"{what} would go after it is written: commit first the removal of {what} alone, and then the change of {problem.subject}"
        return replace(problem, fix=fix)

    @property
    def notes(self) -> list[str]:
        """What the plan says of it."""
        return [
            f"{one} goes first; not judged before it is gone: {', '.join(map(str, sorted(each)))}" for one, each in self.guarded.items()
        ]
