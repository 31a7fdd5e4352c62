"""What the control plane itself does to a run: admission policies, a Namespace on its way out, tokens that expire, kinds that vanish."""

from __future__ import annotations

import yaml

from handler.model.result import Outcome
from tests.e2e.documents import Document, config_map
from tests.e2e.one_target import SCOPED, Shop, told
from tests.patience import until

# --- admission
FORBIDDEN = "the shop's policy forbids it"


def policy(shop: Shop, expression: str) -> list[Document]:
    """A ValidatingAdmissionPolicy over the shop's ConfigMaps, and its binding."""
    api, kind = "admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicy"
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE", "UPDATE"], "resources": ["configmaps"]}
    space = {"matchLabels": {"kubernetes.io/metadata.name": shop.name}}
    spec = {
        "failurePolicy": "Fail",
        "matchConstraints": {"namespaceSelector": space, "resourceRules": [rule]},
        "validations": [{"expression": expression, "message": FORBIDDEN}],
    }
    binding = {"policyName": shop.name, "validationActions": ["Deny"]}
    metadata = {"name": shop.name}
    return [
        {"apiVersion": api, "kind": kind, "metadata": metadata, "spec": spec},
        {"apiVersion": api, "kind": f"{kind}Binding", "metadata": metadata, "spec": binding},
    ]


ALLOWED = "object.data['key'] != 'forbidden'"


def test_a_policy_that_git_drops_with_what_it_refuses_is_named_with_the_two_commits_that_work(shop: Shop) -> None:
    rules, allowed, wanted = policy(shop, ALLOWED), config_map(shop.name, "a"), config_map(shop.name, "a", {"key": "forbidden"})
    kinds = (f"{document['kind']}.admissionregistration.k8s.io" for document in rules)
    shop.configure(cluster_scoped=(*SCOPED, *kinds))

    def is_refused() -> bool:
        probe = yaml.safe_dump(config_map(shop.name, "probe", {"key": "forbidden"}))
        return FORBIDDEN in shop.kubectl.tried("create", "--dry-run=server", "-f", "-", given=probe).stderr

    shop.push(*rules, allowed)
    shop.applied()
    until(is_refused)
    before = shop.versions()
    shop.push(wanted)
    result = shop.run()
    assert (result.outcome, result.who) == (Outcome.FAILED, "author"), told(result)
    both = " and ".join(f"{document['kind']}/{shop.name}" for document in rules)
    first = f"commit first the removal of {both} alone, and then the change of ConfigMap/{shop.name}/a"
    assert [problem.fix for problem in result.problems] == [f"{both} would go after it is written: {first}"]
    assert shop.versions() == before
    shop.push(allowed)
    shop.applied()
    until(lambda: not is_refused())
    shop.push(wanted)
    shop.applied()
    shop.assert_converged()
