"""Plans on pull requests that the API server judges, by an account whose real writes a policy refuses; and what stays unjudged."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.conftest import Open
from tests.e2e.documents import config_map, deployment
from tests.e2e.judged_pull_requests import made, open_judged, written
from tests.e2e.one_target import PATH
from tests.e2e.pull_request_host import PullRequests
from tests.e2e.rendered_trees import push_files
from tests.patience import until

CANARY = "canary0b552d1ec9a3f7"


@pytest.fixture
def judged(open_shop: Open, tmp_path: Path) -> tuple[PullRequests, Path]:
    """A shop whose plans are judged by an account, and the kubeconfig of that account."""
    return open_judged(open_shop, tmp_path)


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
    assert "**a run would refuse 2 objects**" in said
    assert f"{PATH}/web.yaml:1: Deployment/{shop.name}/web: " in said
    assert "spec.replicas" in said
    assert f"{PATH}/new.yaml:1: Deployment/{shop.name}/new: " in said
    assert "data.key: 1 → 2" in said
    assert "not judged by the server" not in said
    assert str(pulls.host.statuses[-1].state) == "failure"
    assert shop.versions() == before


def test_a_refusal_says_nothing_of_what_lives_or_of_other_objects(judged: tuple[PullRequests, Path]) -> None:
    pulls, _ = judged
    shop = pulls.shop
    main = {"name": "main", "image": "shop:1", "env": [{"name": "A", "value": "a"}]}
    push_files(shop, {f"{PATH}/web.yaml": made(deployment(shop.name, "web")), f"{PATH}/p.yaml": made(pod("p", main))})
    shop.applied()
    pulls.reconnect()
    ephemeral = {"spec": {"ephemeralContainers": [{"name": "debug", "image": CANARY, "env": [{"name": "X", "value": CANARY}]}]}}
    shop.kubectl.run(
        *("patch", "pod", "p", "-n", shop.name, "--subresource=ephemeralcontainers", "--type=strategic", "-p", json.dumps(ephemeral))
    )
    ports = {"type": "NodePort", "ports": [{"port": 80, "nodePort": 31234}]}
    shop.kubectl.apply({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "theirs", "namespace": shop.name}, "spec": ports})
    limits = {"limits": [{"type": "Container", "max": {"cpu": "1234m"}}]}
    shop.kubectl.apply({"apiVersion": "v1", "kind": "LimitRange", "metadata": {"name": "theirs", "namespace": shop.name}, "spec": limits})
    quota = {"hard": {"configmaps": "1"}}  # there is one in each namespace
    shop.kubectl.apply({"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "tight", "namespace": shop.name}, "spec": quota})
    until(lambda: shop.kubectl.run("get", "resourcequota", "tight", "-n", shop.name, "-o", "jsonpath={.status.used}"))
    changed = {
        "p.yaml": pod("p", {**main, "env": [{"name": "A", "value": "b"}]}),
        "o.yaml": pod("o", main, serviceAccountName="not-there"),
        "l.yaml": pod("l", {**main, "resources": {"limits": {"cpu": "9"}}}),
        "s.yaml": {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "mine"}, "spec": ports},
        "web.yaml": deployment(shop.name, "web") | {"spec": deployment(shop.name, "x")["spec"]},
        "more.yaml": config_map(shop.name, "more"),
        "typo.yaml": {**config_map(shop.name, "typo"), "dota": {}},
    }
    head = pulls.branch({name: made(document) for name, document in changed.items()})
    pulls.plan(head)
    lines = {line.split(": ")[0].removeprefix(f"{PATH}/"): line.partition(": ")[2] for line in pulls.host.text.splitlines()}
    why = f"the server refuses it; anneal plan {shop.target.name} --commit {head}"
    for name, kind in (("o", "Pod"), ("l", "Pod"), ("more", "ConfigMap")):
        assert lines[f"{name}.yaml:1"] == f"{kind}/{shop.name}/{name}: {why}"
    assert "s.yaml:1" not in lines, "that a port is taken would say what another has"
    assert lines["p.yaml:1"].startswith(
        f"Pod/{shop.name}/p: “spec: Forbidden: pod updates may not change fields other than `spec.containers[*].image`"
    )
    assert "spec.selector: Invalid value: field is immutable" in lines["web.yaml:1"]
    assert lines["typo.yaml:1"] == f'ConfigMap/{shop.name}/typo: “strict decoding error: unknown field "dota"”'
    said = pulls.host.text + pulls.host.statuses[-1].text
    assert not [each for each in (CANARY, "allocated", "1234m", "not-there", "@@", "maximum", "tight") if each in said]


def pod(name: str, container: dict[str, Any], **spec: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": {"containers": [container], **spec}}


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
