"""What comes with a Namespace, and is no reason to keep it."""

from __future__ import annotations

import pytest

from handler.model.names import Identity
from handler.plan.system_objects import comes_with_namespace

RBAC = "rbac.authorization.k8s.io"


@pytest.mark.parametrize(
    ("group", "kind", "name", "account", "comes"),
    [
        ("", "ConfigMap", "istio-ca-root-cert", "", True),
        ("", "ServiceAccount", "builder", "", True),
        ("", "ServiceAccount", "robot", "", False),
        (RBAC, "RoleBinding", "system:image-builders", "", True),
        (RBAC, "RoleBinding", "system:openshift:scc:anyuid", "", False),
        (RBAC, "RoleBinding", "admin", "", False),
        ("", "Secret", "builder-dockercfg-x7k2p", "builder", True),
        ("", "Secret", "default-token-x7k2p", "default", True),
        ("", "Secret", "robot-token-x7k2p", "robot", False),
        ("", "Secret", "database", "default", False),
        ("", "Secret", "builder-token-x7k2p", "", False),
    ],
)
def test_what_comes_with_a_namespace_is_no_content(group: str, kind: str, name: str, account: str, comes: bool) -> None:
    annotations = {"kubernetes.io/service-account.name": account} if account else None
    live = {"metadata": {"name": name, "annotations": annotations}}
    assert comes_with_namespace(live, Identity(group, kind, "shop", name)) is comes
