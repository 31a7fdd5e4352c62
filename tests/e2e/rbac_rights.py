"""Rights of a service account: roles and bindings for one target."""

from __future__ import annotations

import yaml

from tests.e2e.one_target import Shop

DEPLOYER = "deployer"


def allow(shop: Shop, *rules: tuple[str, str, str]) -> None:
    """Give the target's account these rights in its namespace: (verbs, group, resource)."""
    roles = (
        {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "Role",
            "metadata": {"name": DEPLOYER, "namespace": shop.name},
            "rules": [{"verbs": verbs.split(","), "apiGroups": [group], "resources": [resource]} for verbs, group, resource in rules],
        },
        {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "RoleBinding",
            "metadata": {"name": DEPLOYER, "namespace": shop.name},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": DEPLOYER},
            "subjects": [{"kind": "ServiceAccount", "name": DEPLOYER, "namespace": shop.name}],
        },
    )
    shop.kubectl.apply({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": DEPLOYER, "namespace": shop.name}})
    shop.kubectl.grant(yaml.safe_dump_all(roles))


ALL = "get,list,watch,create,patch,delete"
