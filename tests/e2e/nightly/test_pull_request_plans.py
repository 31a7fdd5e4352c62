"""A real Gitea's pull requests get the plan of their merge as one comment: also diverged, in conflict, asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from infra.giteahost import GiteaHost
from tests.e2e.documents import Document, config_map, deployment
from tests.e2e.gitea_shop import GiteaShop
from tests.kubectl import Kubectl
from tests.patience import until

Open = Callable[..., GiteaShop]
CONTEXT = "anneal/default/pull-request/plan"


@pytest.fixture
def open_gitea_shop(gitea: GiteaHost, kubectl: Kubectl, tmp_path: Path) -> Iterator[Open]:
    made: list[GiteaShop] = []

    def opened(**parts: Any) -> GiteaShop:
        shop = GiteaShop(gitea, kubectl, tmp_path, feedback={"pullRequests": True} | parts.pop("feedback", {}), **parts)
        made.append(shop)
        return shop

    yield opened
    for shop in made:
        shop.close()


def served(open_gitea_shop: Open, **target: Any) -> GiteaShop:
    """A shop whose main is deployed: two ConfigMaps."""
    shop = open_gitea_shop()
    shop.target(**target)
    shop.serve()
    shop.ends(shop.push(config_map(shop.name, "a"), config_map(shop.name, "b")), "success")
    return shop


def live(shop: GiteaShop) -> dict[str, str]:
    found = shop.kubectl("get", "configmaps", "-n", shop.name)["items"]
    return {each["metadata"]["name"]: each["metadata"]["resourceVersion"] for each in found}


def test_a_pull_request_shows_the_plan_of_its_merge_and_what_it_says_is_what_happens(open_gitea_shop: Open) -> None:
    shop = served(open_gitea_shop)
    before = live(shop)
    head = shop.branch("change", config_map(shop.name, "a", {"key": "2"}), config_map(shop.name, "c"))
    number = shop.gitea.open_pull_request(shop.repository, shop.ada, "change")
    said = shop.planned(number, "- delete ConfigMap", "~ change ConfigMap", "+ create ConfigMap")
    assert f"- delete ConfigMap/{shop.name}/b" in said
    assert "data.key: 1 → 2" in said
    assert said.index("- delete") < said.index("~ change") < said.index("+ create")
    assert shop.ends(head, "success", CONTEXT) == "1 to delete, 1 to change, 1 to create"
    assert live(shop) == before
    merged = shop.gitea.merge_pull_request(shop.repository, number, shop.ada)
    assert shop.ends(merged, "success").startswith("1 created, 1 configured, 1 pruned in ")
    assert {*live(shop)} - {"kube-root-ca.crt"} == {"a", "c"}


def as_people_write_it(shop: GiteaShop, image: str = "shop:1") -> Document:
    """A Deployment with values that the API server writes otherwise, or leaves out."""
    made = deployment(shop.name, "web", image)
    made["spec"]["template"]["spec"] |= {"hostNetwork": False, "nodeSelector": {}}
    made["spec"]["template"]["spec"]["containers"][0]["resources"] = {
        "requests": {"cpu": 0.5},
        "limits": {"cpu": "2000m", "memory": "1024Mi"},
    }
    return made


def test_what_the_server_writes_otherwise_is_no_change_and_what_a_person_wrote_is(open_gitea_shop: Open) -> None:
    shop = open_gitea_shop()
    shop.target()
    shop.serve()
    shop.ends(shop.push(as_people_write_it(shop), config_map(shop.name, "a")), "success")
    touch = ["annotate", "deployment", "web", "-n", shop.name, "seen=by-a-controller", "--field-manager=a-controller"]
    shop.kubectl.run(*touch)  # so that it isn't the one that the server has judged last
    head = shop.branch("change", as_people_write_it(shop), config_map(shop.name, "a", {"key": "2"}))
    number = shop.gitea.open_pull_request(shop.repository, shop.ada, "change")
    assert "Deployment" not in shop.planned(number, "data.key: 1 → 2", head[:12])
    assert shop.ends(head, "success", CONTEXT) == "1 to change"
    head = shop.branch("change", as_people_write_it(shop, "shop:2"), config_map(shop.name, "a"))
    said = shop.planned(number, "image: shop:1 → shop:2", head[:12])
    assert "resources" not in said
    assert "hostNetwork" not in said
    patch = '[{"op": "replace", "path": "/spec/template/spec/containers/0/resources/limits/memory", "value": "2Gi"}]'
    shop.kubectl.run("patch", "deployment", "web", "-n", shop.name, "--type=json", "-p", patch)
    head = shop.branch("change", as_people_write_it(shop, "shop:3"), config_map(shop.name, "a"))
    said = shop.planned(number, "image: shop:1 → shop:3", head[:12])
    assert "resources.limits.memory: (not shown) → 1024Mi" in said
    assert "cpu" not in said


def test_a_diverged_branch_is_planned_as_it_would_be_merged_and_a_conflict_is_said(open_gitea_shop: Open) -> None:
    shop = served(open_gitea_shop)
    shop.branch("change", config_map(shop.name, "a"), config_map(shop.name, "b"), config_map(shop.name, "new"))
    shop.ends(shop.push(config_map(shop.name, "a", {"key": "on main"}), config_map(shop.name, "b")), "success")
    number = shop.gitea.open_pull_request(shop.repository, shop.ada, "change")
    said = shop.planned(number, "`main` has moved on", "+ create ConfigMap")
    assert "on main" not in said
    assert "~ change" not in said
    head = shop.branch("change", config_map(shop.name, "a", {"key": "here"}), config_map(shop.name, "b"))
    shop.work.git("checkout", "-q", "main")
    shop.ends(shop.push(config_map(shop.name, "a", {"key": "there"}), config_map(shop.name, "b")), "success")
    shop.gitea.comment(shop.repository, number, "/anneal plan", shop.ada)
    said = shop.planned(number, "both main and this branch have changed")
    assert f"ConfigMap-{shop.name}-a.yaml" in said
    shop.ends(head, "failure", CONTEXT)


def test_anneal_plan_repeats_it_for_those_who_may_push_and_for_no_one_else(open_gitea_shop: Open) -> None:
    shop = served(open_gitea_shop)
    shop.branch("change", config_map(shop.name, "a"), config_map(shop.name, "b"), config_map(shop.name, "new"))
    number = shop.gitea.open_pull_request(shop.repository, shop.ada, "change")
    shop.planned(number, "+ create")
    shop.kubectl.run("patch", "configmap", "a", "-n", shop.name, "--type=merge", "-p", '{"data": {"key": "by hand"}}')
    stranger = shop.gitea.user(f"{shop.name}-eve")
    for account, text in ((stranger, "/anneal plan"), (shop.ada, "please run /anneal plan")):
        shop.gitea.comment(shop.repository, number, text, account)
    until(lambda: any("whose author may push" in line["seen"] for line in shop.serving.lines("pull request")), lambda: shop.told(number))
    assert "by hand" not in shop.comments(number)[-1]
    shop.gitea.comment(shop.repository, number, "/anneal plan", shop.ada)
    said = shop.planned(number, "data.key: (not shown) → 1")
    assert "by hand" not in said
    assert "# not by this pull request" in said
    assert len(shop.comments(number)) == 1
