"""What lets an account judge plans on pull requests: the rights of writes, and a policy that refuses every real one."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from handler.cli.needed_rights import RBAC, WRITES, Grant, NeededKinds, target_grants
from handler.cli.rbac import planner_documents
from handler.config.feedback_settings import PullRequestSettings
from handler.config.git_settings import Repository
from handler.config.settings import Target
from handler.model.names import Resource

PLAIN = Target("shop", Repository("https://git.example.com/acme/shop.git"), ("shop", "jobs"))
JUDGED = replace(PLAIN, pull_requests=PullRequestSettings("ci/planner"))
USER = "system:serviceaccount:ci:planner"
ADMISSION = "admissionregistration.k8s.io"


def by_kind(documents: list[dict[str, Any]], kind: str) -> list[dict[str, Any]]:
    return [each for each in documents if each["kind"] == kind]


def rules(documents: list[dict[str, Any]]) -> list[tuple[str, dict[str, Any]]]:
    """Return each rule with the namespace in which it holds."""
    roles = [*by_kind(documents, "Role"), *by_kind(documents, "ClusterRole")]
    return [(role["metadata"].get("namespace", ""), rule) for role in roles for rule in role["rules"]]


def test_a_target_whose_plans_no_server_judges_needs_nothing() -> None:
    assert planner_documents(PLAIN, [Grant("shop", "", "configmaps", WRITES)]) == []


def test_the_account_is_made_with_the_policy_that_holds_it() -> None:
    documents = planner_documents(JUDGED, ())
    assert [(each["kind"], each["metadata"]) for each in documents] == [
        ("ServiceAccount", {"name": "planner", "namespace": "ci"}),
        ("ValidatingAdmissionPolicy", {"name": "anneal-shop-planner"}),
        ("ValidatingAdmissionPolicyBinding", {"name": "anneal-shop-planner"}),
    ], "without any right: nothing is granted"


def test_the_policy_refuses_every_write_of_the_account_that_is_no_dry_run() -> None:
    documents = planner_documents(JUDGED, ())
    (policy,), (binding,) = by_kind(documents, "ValidatingAdmissionPolicy"), by_kind(documents, "ValidatingAdmissionPolicyBinding")
    spec = policy["spec"]
    every = {"apiGroups": ["*"], "apiVersions": ["*"], "operations": ["*"], "resources": ["*/*"]}
    assert (spec["failurePolicy"], spec["matchConstraints"]) == ("Fail", {"resourceRules": [every]})
    assert [each["expression"] for each in spec["matchConditions"]] == [f'request.userInfo.username == "{USER}"']
    assert [each["expression"] for each in spec["validations"]] == ["has(request.dryRun) && request.dryRun"]
    assert binding["spec"] == {"policyName": "anneal-shop-planner", "validationActions": ["Deny"]}


def test_it_may_create_and_patch_what_the_target_writes_and_nothing_more() -> None:
    granted = [
        Grant("shop", "", "configmaps", WRITES),
        Grant("jobs", "", "configmaps", WRITES),
        Grant("", "", "namespaces", WRITES),
        Grant("shop", "apps", "deployments", WRITES),
        Grant("shop", "apps", "deployments", WRITES),
        Grant("shop", "", "pods", ("get", "list")),
        Grant("shop", "", "secrets", ("get",), ("values",)),
        Grant("shop", "", "services", ("create",)),
        Grant("shop", "batch", "jobs", ("delete", "get", "list", "watch")),
    ]
    documents = planner_documents(JUDGED, granted)
    assert rules(documents) == [
        ("jobs", {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["create", "patch"]}),
        ("shop", {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["create", "patch"]}),
        ("shop", {"apiGroups": ["apps"], "resources": ["deployments"], "verbs": ["create", "patch"]}),
        ("", {"apiGroups": [""], "resources": ["namespaces"], "verbs": ["create", "patch"]}),
    ]
    bindings = [*by_kind(documents, "RoleBinding"), *by_kind(documents, "ClusterRoleBinding")]
    assert {str(each["subjects"]) for each in bindings} == {str([{"kind": "ServiceAccount", "name": "planner", "namespace": "ci"}])}
    assert {each["roleRef"]["name"] for each in bindings} == {"anneal-shop-planner"}


@pytest.mark.parametrize(
    "unseen",
    [
        Grant("", ADMISSION, "validatingwebhookconfigurations", WRITES),
        Grant("", ADMISSION, "validatingadmissionpolicies", WRITES),
        Grant("", RBAC, "clusterroles", WRITES),
        Grant("shop", RBAC, "rolebindings", WRITES),
        Grant("", RBAC, "clusterroles", ("escalate",), ("x",)),
    ],
    ids=str,
)
def test_what_no_policy_sees_or_lets_it_have_more_rights_is_never_granted(unseen: Grant) -> None:
    documents = planner_documents(JUDGED, [unseen, Grant("shop", "", "configmaps", WRITES)])
    assert [rule["resources"] for _, rule in rules(documents)] == [["configmaps"]]


def test_of_a_targets_own_rights_those_of_its_kinds_are_the_planners() -> None:
    kinds = (
        Resource("", "v1", "ConfigMap", "configmaps", namespaced=True),
        Resource(RBAC, "v1", "Role", "roles", namespaced=True),
        Resource(ADMISSION, "v1", "ValidatingAdmissionPolicy", "validatingadmissionpolicies", namespaced=False),
    )
    role = {"kind": "Role", "metadata": {"name": "reader", "namespace": "shop"}, "rules": []}
    granted = target_grants(JUDGED, NeededKinds(kinds, ("shop",), (role,)))
    assert any(set(each.verbs) & {"escalate"} for each in granted)
    assert rules(planner_documents(JUDGED, granted)) == [
        ("shop", {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["create", "patch"]})
    ]
