"""Variables that live in the cluster: read with the target's rights, seen when they change, and shown nowhere, however short they are."""

from __future__ import annotations

import base64
import json

import pytest

from handler.config.post_build import PostBuild, SubstituteFrom
from handler.config.settings import Impersonate
from handler.config.settings_shape import Json
from handler.model.errors import AccessDenied
from handler.model.result import Outcome
from tests.e2e.conftest import Open
from tests.e2e.documents import config_map
from tests.e2e.one_target import Shop, told
from tests.e2e.planted_secrets import CANARY
from tests.e2e.rbac_rights import ALL, DEPLOYER, allow
from tests.e2e.rendered_trees import push_files, text_of, workload

SETTINGS = PostBuild(
    Json('{"quote": "\\"", "region": "eu-1"}'),
    (SubstituteFrom("ConfigMap", "settings"), SubstituteFrom("Secret", "login"), SubstituteFrom("Secret", "none", True)),
)
MAP = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: out}\ndata: {colour: '${colour}', region: '${region}', url: 'db=${password};'}\n"
LOGIN = "apiVersion: v1\nkind: Secret\nmetadata: {name: out}\nstringData: {password: '${quote}${password}${quote}', count: 'n${count}'}\n"


@pytest.fixture
def shop(open_shop: Open) -> Shop:
    opened = open_shop()
    opened.create_namespace()
    opened.configure(namespace=opened.name, namespaces=(opened.name,), post_build=SETTINGS)
    settle(opened)
    push_files(opened, {"deploy/map.yaml": MAP, "deploy/login.yaml": LOGIN, "deploy/web.yaml": text_of(workload(replicas="${count}"))})
    return opened


def settle(shop: Shop, colour: str = "green", password: str = CANARY, count: str = "3") -> None:
    """Write the variables by hand."""
    shop.kubectl.apply(config_map(shop.name, "settings", {"colour": colour, "region": "none"}))
    encoded = {name: base64.b64encode(text.encode()).decode() for name, text in {"password": password, "count": count}.items()}
    body = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "login", "namespace": shop.name}, "data": encoded}
    shop.kubectl.run("apply", "--server-side", "-f", "-", given=json.dumps(body))


def test_variables_are_read_with_the_targets_rights(shop: Shop) -> None:
    shop.configure(impersonate=Impersonate(f"{shop.name}/{DEPLOYER}"))
    allow(shop, (ALL, "", "configmaps"), (ALL, "apps", "deployments"))
    settle(shop, "blue")
    refused = shop.run("drift")
    assert (refused.outcome, refused.code) == (Outcome.FAILED, AccessDenied.code), told(refused)
    assert refused.problems[0].subject == f"Secret/{shop.name}/login"
