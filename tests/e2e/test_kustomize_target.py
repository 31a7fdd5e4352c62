"""A kustomize target: names that follow from content meet prune and adoption; what is rendered is what lives."""

from __future__ import annotations

from pathlib import Path

import pytest

from handler.model.names import PART_OF
from tests.e2e.conftest import Open
from tests.e2e.one_target import Shop
from tests.e2e.rendered_trees import Files, get, names, push_files, text_of, unchanged, workload


@pytest.fixture
def shop(open_shop: Open, renderers: Path) -> Shop:
    """A shop whose overlay builds on a base outside its path."""
    opened = open_shop(path="deploy/overlays/prod")
    opened.create_namespace()
    return opened


def tree(shop: Shop, greeting: str, **more: str) -> Files:
    """An overlay on a base: a Deployment that reads a generated ConfigMap."""
    web = workload()
    web["spec"]["template"]["spec"]["containers"][0]["envFrom"] = [{"configMapRef": {"name": "settings"}}]
    overlay = f"namespace: {shop.name}\nresources: [../../base]\nconfigMapGenerator:\n- name: settings\n  behavior: merge\n"
    base = "resources: [web.yaml]\nconfigMapGenerator:\n- name: settings\n  literals: [colour=red]\n"
    return {
        "deploy/base/kustomization.yaml": base,
        "deploy/base/web.yaml": text_of(web),
        "deploy/overlays/prod/kustomization.yaml": f"{overlay}  literals: [greeting={greeting}]\n",
        **more,
    }


def generated(shop: Shop) -> set[str]:
    return {name for name in names(shop, "configmaps") if name.startswith("settings-")}


def read_by_pods(shop: Shop) -> str:
    return str(get(shop, "deployment", "web")["spec"]["template"]["spec"]["containers"][0]["envFrom"][0]["configMapRef"]["name"])


def test_a_changed_value_is_a_new_config_map_which_the_deployment_follows_and_the_old_one_is_pruned(shop: Shop) -> None:
    push_files(shop, tree(shop, "hello"))
    result = shop.applied()
    assert result.plan
    assert result.plan.renderer == "kustomize"
    (first,) = generated(shop)
    assert read_by_pods(shop) == first
    assert get(shop, "configmap", first)["data"] == {"colour": "red", "greeting": "hello"}
    kept = get(shop, "deployment", "web")["metadata"]["uid"]
    push_files(shop, tree(shop, "goodbye"))
    shop.applied()
    (second,) = generated(shop)
    assert second != first
    assert read_by_pods(shop) == second
    assert get(shop, "deployment", "web")["metadata"]["uid"] == kept
    shop.configure()
    unchanged(shop.run("drift"))
    assert shop.state().renderer == "kustomize"


def test_a_persons_config_map_under_the_old_name_stays(shop: Shop) -> None:
    push_files(shop, tree(shop, "hello"))
    shop.applied()
    (first,) = generated(shop)
    shop.kubectl.run("label", "configmap", first, "-n", shop.name, f"{PART_OF}-")  # a person takes it out of our hands
    push_files(shop, tree(shop, "goodbye"))
    shop.applied()
    assert len(generated(shop)) == 2, "what lacks our label isn't pruned"
    push_files(shop, tree(shop, "hello"))
    result = shop.applied()
    assert result.plan
    assert generated(shop) == {first}, "with its name it is declared again, adopted"
    assert get(shop, "configmap", first)["metadata"]["labels"][PART_OF]
