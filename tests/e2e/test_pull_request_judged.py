"""Plans on pull requests that the API server judges, by an account whose real writes a policy refuses; and what stays unjudged."""

from __future__ import annotations

import json
import re
import secrets
from pathlib import Path
from typing import Any

import pytest
import yaml

from handler.cli.needed_rights import WRITES, Grant
from handler.cli.planner_rights import planner_documents
from handler.config.pull_request_settings import PullRequestSettings
from tests.e2e.conftest import Open
from tests.e2e.documents import config_map, deployment
from tests.e2e.one_target import PATH, Shop
from tests.e2e.pull_request_host import PullRequests
from tests.e2e.rendered_trees import push_files
from tests.e2e.serve_process import until

PLANNER = "planner"
KINDS = (("", "configmaps"), ("apps", "deployments"), ("", "services"))


def made(document: dict[str, Any]) -> str:
    return json.dumps(document)


@pytest.fixture
def judged(open_shop: Open, tmp_path: Path) -> tuple[PullRequests, Path]:
    """A shop whose plans are judged by an account, and the kubeconfig of that account."""
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


def written(shop: Shop, kubeconfig: Path, name: str, *flags: str) -> str:
    """Let the account create a ConfigMap; return what is said."""
    document = made(config_map(shop.name, name))
    kubectl = type(shop.kubectl)(shop.kubectl.program, kubeconfig)
    return kubectl.tried("create", "-f", "-", *flags, given=document).stderr


def test_the_account_dry_runs_and_may_not_write(judged: tuple[PullRequests, Path]) -> None:
    pulls, kubeconfig = judged
    shop = pulls.shop
    assert "only plans: dryRun=All" in written(shop, kubeconfig, "by-the-planner")
    assert written(shop, kubeconfig, "by-the-planner", "--dry-run=server") == ""
    assert not shop.kubectl.has("configmap", "by-the-planner", shop.name)


def test_the_servers_refusal_stands_in_the_plan_with_its_place(judged: tuple[PullRequests, Path]) -> None:
    pulls, _ = judged
    shop = pulls.shop
    web = deployment(shop.name, "web")
    web["spec"]["replicas"] = -1
    new = deployment(shop.name, "new")
    new["spec"]["template"]["spec"]["containers"][0]["image"] = ""
    before = shop.versions()
    pulls.plan(pulls.branch({"web.yaml": made(web), "new.yaml": made(new), "a.yaml": made(config_map(shop.name, "a", {"key": "2"}))}))
    said = pulls.host.text
    assert "**the API server refuses 2 objects**" in said
    assert f"{PATH}/web.yaml:1: Deployment/{shop.name}/web: " in said
    assert "spec.replicas" in said
    assert f"{PATH}/new.yaml:1: Deployment/{shop.name}/new: " in said
    assert "data.key: 1 → 2" in said
    assert "not judged by the server" not in said
    assert str(pulls.host.statuses[-1].state) == "failure"
    assert shop.versions() == before


def test_what_the_server_writes_otherwise_is_no_change(judged: tuple[PullRequests, Path]) -> None:
    pulls, _ = judged
    shop = pulls.shop
    web = deployment(shop.name, "web")
    web["spec"]["template"]["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "1000m"}}
    pulls.plan(pulls.branch({"web.yaml": made(web)}))
    assert "requests" in pulls.host.text
    push_files(shop, {f"{PATH}/web.yaml": made(web), f"{PATH}/a.yaml": made(config_map(shop.name, "a"))})
    shop.applied()
    pulls.reconnect()
    web["spec"]["template"]["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "1"}}
    pulls.plan(pulls.branch({"web.yaml": made(web)}), 13)
    assert "Nothing to change." in pulls.host.text
    assert "judged by the server" in pulls.host.text


def test_what_lives_under_a_new_name_is_neither_merged_nor_quoted(judged: tuple[PullRequests, Path]) -> None:
    pulls, _ = judged
    shop = pulls.shop
    canary = "canary-of-a-stranger"
    shop.kubectl.apply({**config_map(shop.name, "theirs", {"key": canary}), "immutable": True})
    pulls.plan(pulls.branch({"theirs.yaml": made(config_map(shop.name, "theirs", {"key": "2"}))}))
    assert f"+ create ConfigMap/{shop.name}/theirs" in pulls.host.text
    assert canary not in pulls.host.text
    assert "immutable" not in pulls.host.text
    there = pulls.host.text.replace("theirs", "x")
    pulls.plan(pulls.branch({"absent.yaml": made(config_map(shop.name, "absent", {"key": "2"}))}))
    assert _without_ids(pulls.host.text.replace("absent", "x")) == _without_ids(there), "whether it lives isn't said"


def _without_ids(text: str) -> str:
    return re.sub(r"\b[0-9a-f]{12}\b", "…", text)


def test_kinds_without_rights_are_counted_as_unjudged_and_are_no_mistake(judged: tuple[PullRequests, Path]) -> None:
    pulls, _ = judged
    shop = pulls.shop
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "new", "namespace": shop.name}}
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "new", "namespace": shop.name}, "stringData": {"key": "x"}}
    pulls.plan(pulls.branch({"account.yaml": made(account), "secret.yaml": made(secret)}))
    assert "judged by the server, but for 2 objects that it wasn't asked about" in pulls.host.text
    assert str(pulls.host.statuses[-1].state) == "success"
