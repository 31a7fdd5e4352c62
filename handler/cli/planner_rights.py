"""What lets an account judge plans on pull requests: rights to write, and a policy that lets nothing but dry-runs of it pass. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from handler.cli import needed_rights
from handler.cli.needed_rights import Grant
from handler.config.settings import Target

WHY = """\
# pullRequests.identity judges plans by dry-runs, for which the API server wants the rights of the writes; the policy refuses those writes.
# Objects that no policy sees (admissionregistration.k8s.io), and roles, which no account may write that lacks their rights, aren't judged.
"""
_UNSEEN = frozenset({"admissionregistration.k8s.io", needed_rights.RBAC})
"""Groups without rights: the first is exempt from policies (kubernetes.io, "Validating Admission Policy"), the second escalates."""
_VERBS = ("create", "patch")
_GROUP = "admissionregistration.k8s.io/v1"


def planner_documents(target: Target, granted: Iterable[Grant]) -> list[dict[str, Any]]:
    """Return the objects that make an account a judge of plans. `granted`: what the target's own identity may; empty: there is no such."""
    if target.pull_requests is None:
        return []
    namespace, _, name = target.pull_requests.identity.partition("/")
    mine = sorted(
        {
            Grant(each.namespace, each.group, each.resource, _VERBS)
            for each in granted
            if set(_VERBS) <= set(each.verbs) and each.group not in _UNSEEN
        }
    )
    policy = f"anneal-{target.name}-planner"
    return [
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name, "namespace": namespace}},
        _policy(policy, f"system:serviceaccount:{namespace}:{name}"),
        {
            "apiVersion": _GROUP,
            "kind": "ValidatingAdmissionPolicyBinding",
            "metadata": {"name": policy},
            "spec": {"policyName": policy, "validationActions": ["Deny"]},
        },
        *needed_rights.documents(policy, mine, {"kind": "ServiceAccount", "name": name, "namespace": namespace}),
    ]


def _policy(name: str, user: str) -> dict[str, Any]:
    rule = {"apiGroups": ["*"], "apiVersions": ["*"], "operations": ["*"], "resources": ["*/*"]}
    return {
        "apiVersion": _GROUP,
        "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": name},
        "spec": {
            "failurePolicy": "Fail",
            "matchConstraints": {"resourceRules": [rule]},
            "matchConditions": [{"name": "planner", "expression": f'request.userInfo.username == "{user}"'}],
            "validations": [{"expression": "has(request.dryRun) && request.dryRun", "message": f"{user} only plans: dryRun=All"}],
        },
    }
