"""Pull requests whose plans the API server judges, by an account whose real writes a policy refuses."""

from __future__ import annotations

import json
import secrets
from pathlib import Path
from typing import Any

import yaml

from handler.cli.needed_rights import WRITES, Grant
from handler.cli.rbac import planner_documents
from handler.config.feedback_settings import PullRequestSettings
from tests.e2e.conftest import Open
from tests.e2e.documents import config_map, deployment
from tests.e2e.one_target import PATH, Shop
from tests.e2e.pull_request_host import PullRequests
from tests.e2e.rendered_trees import push_files
from tests.patience import until

PLANNER = "planner"
KINDS = (("", "configmaps"), ("apps", "deployments"), ("apps", "statefulsets"), ("batch", "jobs"), ("", "services"), ("", "pods"))


def made(document: dict[str, Any]) -> str:
    return json.dumps(document)


def open_judged(open_shop: Open, tmp_path: Path) -> tuple[PullRequests, Path]:
    """Open a shop whose plans are judged by an account, with a Deployment and a ConfigMap; return the kubeconfig of that account, too."""
    shop = open_shop()
    shop.create_namespace()
    kubeconfig = shop.kubectl.account(f"{shop.name}/{PLANNER}", tmp_path)
    settings = PullRequestSettings(f"{shop.name}/{PLANNER}")
    pulls = PullRequests.of(shop, namespace=shop.name, namespaces=(shop.name,), pull_requests=settings)
    documents = planner_documents(shop.target, [Grant(shop.name, group, resource, WRITES) for group, resource in KINDS])
    shop.kubectl.grant(yaml.safe_dump_all(documents))
    push_files(shop, {f"{PATH}/web.yaml": made(deployment(shop.name, "web")), f"{PATH}/a.yaml": made(config_map(shop.name, "a"))})
    shop.applied()
    pulls.reconnect()
    until(lambda: "only plans" in written(shop, kubeconfig, secrets.token_hex(4)))  # the server hears of a policy a moment later
    return pulls, kubeconfig


def open_guessed_or_judged(open_shop: Open, tmp_path: Path, *, judged: bool) -> PullRequests:
    """Open a shop whose pull requests are compared with git alone, or `judged` by the server, too."""
    if judged:
        return open_judged(open_shop, tmp_path)[0]
    shop = open_shop()
    shop.create_namespace()
    return PullRequests.of(shop, namespace=shop.name, namespaces=(shop.name,))


def written(shop: Shop, kubeconfig: Path, name: str, *flags: str) -> str:
    """Let the account create a ConfigMap; return what is said."""
    document = made(config_map(shop.name, name))
    kubectl = type(shop.kubectl)(shop.kubectl.program, kubeconfig)
    return kubectl.tried("create", "-f", "-", *flags, given=document).stderr
