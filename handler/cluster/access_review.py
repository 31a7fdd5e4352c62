"""What the API identity may do, and who it is: SelfSubjectAccessReview and SelfSubjectReview."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from handler.cluster.api import Api
from handler.cluster.errors import rule_text
from handler.cluster.parallel import together

_WHO = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
_PATH = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"


@dataclass(frozen=True, slots=True)
class AccessRule:
    """One right. `resource`: the plural (`*`: all, `pods/log`: a part); empty namespace: all of them, or cluster scope."""

    verb: str
    group: str
    resource: str
    namespace: str = ""
    name: str = ""

    def __str__(self) -> str:
        """The line that grants it."""
        return rule_text(self.verb, self.group, self.resource, self.namespace)


def whoami(api: Api) -> tuple[str, frozenset[str]]:
    """Return user name and groups of the API's identity (the impersonated one, if any). Raises AnnealError; before 1.28 ApiRefused, 404."""
    answer = api.post(_WHO, {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}, repeatable=True)
    found = (answer.get("status") or {}).get("userInfo") or {}
    return str(found.get("username") or ""), frozenset(map(str, found.get("groups") or ()))


def allowed(api: Api, rules: Sequence[AccessRule]) -> list[bool]:
    """Return for each rule whether the API's identity (the impersonated one, if any) has it."""
    return together([partial(_allowed, api, rule) for rule in rules])


def _allowed(api: Api, rule: AccessRule) -> bool:
    resource, _, part = rule.resource.partition("/")
    wanted = {
        "verb": rule.verb,
        "group": rule.group,
        "resource": resource,
        "subresource": part,
        "namespace": rule.namespace,
        "name": rule.name,
    }
    review: dict[str, Any] = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectAccessReview",
        "spec": {"resourceAttributes": {key: value for key, value in wanted.items() if value}},
    }
    answer = api.post(_PATH, review, repeatable=True)
    return bool((answer.get("status") or {}).get("allowed"))
