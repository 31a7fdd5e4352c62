"""Admission webhooks that don't answer and that the commit drops: their configuration goes before all else, what they guard is judged then.

Law: git has the configuration deleted anyway; what is found here decides when, and never lets anything else go. It must be a member that
prune deletes by this plan, fail closed, and match the refused object by rules and selectors; the API server's Status must be the
InternalError of a webhook's call. The name in its words only narrows that, to it and to what calls the same Service.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any

from handler.cluster.api import Api
from handler.cluster.live import probe
from handler.cluster.webhooks import CONFIGURATIONS
from handler.model.errors import AccessDenied, ClusterUnavailable, Problem
from handler.model.manifest import at, items_at
from handler.model.names import Identity, Resource
from handler.model.plan import Change
from handler.plan.admission import NAMESPACE, Desired
from handler.plan.compare import Comparison
from handler.plan.order import ADMISSION

_POLICIES = ("ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding")
_POLICY = re.compile(r"ValidatingAdmissionPolicy '([^']+)' with binding '([^']+)' denied request")
_WEBHOOK = re.compile(r'admission webhook "([^"]+)" denied the request')
_NAMESPACES = Resource(NAMESPACE.group, "v1", NAMESPACE.kind, "namespaces", namespaced=False)


@dataclass(slots=True)
class DeadWebhooks:
    """Those of one plan. `guarded`: what waits for each configuration; `cleared`: they are deleted, and excuse nothing any more."""

    api: Api
    comparison: Comparison
    guarded: dict[Identity, list[Identity]] = field(default_factory=dict)
    cleared: bool = False
    _met: dict[Identity, ClusterUnavailable] = field(default_factory=dict)
    _seen: dict[tuple[Resource, str], Any] = field(default_factory=dict)

    def unjudged(self, item: Desired, error: ClusterUnavailable, *, is_new: bool) -> str:
        """Say for which configuration a refused object waits. Raises the error: it waits for none."""
        found: list[Identity] = []
        if error.webhook and not self.cleared:
            with contextlib.suppress(AccessDenied):
                found = self._guarding(item, error.webhook, "CREATE" if is_new else "UPDATE")
        if not found:
            raise error
        for one in found:
            self.guarded.setdefault(one, []).append(item.identity)
            self._met[one] = error
        return f"not judged yet: {found[0]} goes first, whose webhook {error.webhook} doesn't answer"

    def _guarding(self, item: Desired, webhook: str, operation: str) -> list[Identity]:
        """Return the configurations that hold an object up: with the webhook, then with others that call the same Service."""
        hooks = [(one, each) for one in self._dropped() for each in self._hooks(one) if self._guards(each, item, operation)]
        named = [(one, each) for one, each in hooks if at(each, "name") == webhook]
        called = [service for _, each in named if (service := at(each, "clientConfig", "service"))]
        others = [(one, each) for one, each in hooks if any(_is_same(at(each, "clientConfig", "service"), service) for service in called)]
        return [*dict.fromkeys(one for one, _ in (*named, *others))]

    def put_first(self, prunes: Iterable[Change]) -> tuple[Change, ...]:
        """Return a plan's deletions, those that go first with why. Raises the server's error: one that must isn't among them."""
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
        dropped += [one for one in self._dropped() if webhook and any(at(each, "name") == webhook[1] for each in self._hooks(one))]
        if not dropped:
            return problem
        what = " and ".join(map(str, dropped))
        fix = f"{what} would go after it is written: commit first the removal of {what} alone, and then the change of {problem.subject}"
        return replace(problem, fix=fix)

    def _dropped(self) -> list[Identity]:
        return sorted(one for one in self.comparison.candidates if one.group == ADMISSION and one.kind in CONFIGURATIONS)

    def _hooks(self, one: Identity) -> list[Any]:
        return items_at(self._live(CONFIGURATIONS[one.kind], one.name), "webhooks")

    def _live(self, resource: Resource, name: str) -> Any:
        if (resource, name) not in self._seen:
            self._seen[resource, name] = next(iter(probe(self.api, [(resource, "", name)]).values()), None)
        return self._seen[resource, name]

    @property
    def notes(self) -> list[str]:
        """What the plan says of it."""
        return [
            f"{one} goes first; not judged before it is gone: {', '.join(map(str, sorted(each)))}" for one, each in self.guarded.items()
        ]

    def _guards(self, hook: Any, item: Desired, operation: str) -> bool:
        wanted = {"apiGroups": item.resource.group, "resources": item.resource.plural, "operations": operation}
        rules = [
            all({value, "*", "*/*"}.intersection(items_at(rule, key)) for key, value in wanted.items()) for rule in items_at(hook, "rules")
        ]
        if at(hook, "failurePolicy") != "Fail" or not any(rules) or not _selects(at(hook, "objectSelector"), item.manifest.body()):
            return False
        place = self._live(_NAMESPACES, item.identity.namespace) if item.identity.namespace else item.manifest.body()
        placed = item.identity.namespace or item.identity.group_kind == NAMESPACE
        return not placed or _selects(at(hook, "namespaceSelector"), place)


def _is_same(service: Any, other: Any) -> bool:
    return [at(service, key) for key in ("namespace", "name")] == [at(other, key) for key in ("namespace", "name")]


def _selects(selector: Any, body: Any) -> bool:
    labels = at(body, "metadata", "labels") or {}
    wanted = at(selector, "matchLabels") or {}
    return wanted.items() <= labels.items() and all(_meets(each, labels) for each in items_at(selector, "matchExpressions"))


def _meets(expression: Any, labels: dict[str, str]) -> bool:
    key, operator = at(expression, "key"), at(expression, "operator")
    among = labels.get(key) in items_at(expression, "values") if operator in ("In", "NotIn") else key in labels
    return among is (operator in ("In", "Exists"))
