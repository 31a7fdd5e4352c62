"""What changed between two commits of a target's record, rendered from a real git host."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from handler.engine.run.errors import RequestRefused
from handler.inspect.inspector import Inspector
from handler.model.to_json import plain
from tests.e2e.conftest import Open
from tests.e2e.documents import config_map, deployment, secret
from tests.e2e.one_target import Shop
from tests.e2e.planted_secrets import CANARY, OTHER, spellings


@pytest.fixture
def commits(open_shop: Open) -> tuple[Shop, str, str]:
    """A shop that has deployed two commits."""
    shop = open_shop()
    shop.configure(namespace=shop.name)
    shop.create_namespace()
    web = deployment("", "web", "web:1", replicas=1)
    (container,) = web["spec"]["template"]["spec"]["containers"]
    container["env"] = [{"name": "MODE", "value": "blue"}, {"name": "DB_PASSWORD", "value": CANARY}]
    first = shop.push(web, config_map(shop.name, "gone"), config_map(shop.name, "same"), secret(shop.name, "door", CANARY))
    shop.applied()
    container["image"] = "web:2"
    container["env"][0]["value"], container["env"][1]["value"] = f"green {OTHER}", OTHER
    second = shop.push(web, config_map(shop.name, "new"), config_map(shop.name, "same"), secret(shop.name, "door", OTHER))
    shop.applied()
    return shop, first, second


def test_objects_are_compared_field_by_field_and_masked(commits: tuple[Shop, str, str]) -> None:
    shop, first, second = commits
    found = Inspector(shop.handler).diff(shop.name, first, second)
    assert (found.problems, found.count) == ((), 4)
    assert found.counts == {"deleted": 1, "changed": 2, "created": 1, "unchanged": 1}
    objects = {each.object: each for each in found.objects}
    assert [(each.object, each.change) for each in found.objects] == [
        (f"ConfigMap/{shop.name}/gone", "deleted"),
        (f"Deployment/{shop.name}/web", "changed"),
        (f"Secret/{shop.name}/door", "changed"),
        (f"ConfigMap/{shop.name}/new", "created"),
    ]
    assert objects[f"ConfigMap/{shop.name}/new"].place == f"deploy/ConfigMap-{shop.name}-new.yaml:1"
    web = {each.path: (each.before, each.after) for each in objects[f"Deployment/{shop.name}/web"].fields}
    assert web["spec.template.spec.containers[name=main].image"] == ("web:1", "web:2")
    assert web["spec.template.spec.containers[name=main].env[name=MODE].value"] == ("blue", f"green {OTHER}"), "as its author wrote it"
    assert web["spec.template.spec.containers[name=main].env[name=DB_PASSWORD].value"] == ("***", "***")
    assert [(each.path, each.before, each.after) for each in objects[f"Secret/{shop.name}/door"].fields] == [("data.value", "***", "***")]
    text = json.dumps(plain(found))
    assert [each for each in spellings(CANARY) if each in text] == []
    back = Inspector(shop.handler).diff(shop.name, second, first)
    assert back.counts == found.counts
    whole = Inspector(shop.handler).diff(shop.name, "", second)
    assert whole.counts == {"deleted": 0, "changed": 0, "created": 4, "unchanged": 0}


def test_only_commits_of_the_record_are_fetched(commits: tuple[Shop, str, str], renders: list[str]) -> None:
    shop, first, second = commits
    elsewhere = shop.push(config_map(shop.name, "same"))
    for before, after in ((first, elsewhere), (elsewhere, second), (first, "main"), (first, ""), (first, second[:12])):
        with pytest.raises(RequestRefused, match="isn't in the record"):
            Inspector(shop.handler).diff(shop.name, before, after)
    assert renders == []


def test_a_commit_that_cant_be_rendered_is_a_problem_with_its_place(commits: tuple[Shop, str, str]) -> None:
    shop, _, second = commits
    shop.declare(config_map(shop.name, "same"))
    shop.work.write("deploy/broken.yaml", f"apiVersion: v1\nkind: Secret\nmetadata: {{name: a}}\nstringData: {{a: '{CANARY}\n")
    broken = shop.work.commit("Broken")
    shop.work.push()
    assert shop.run().code == "manifest-invalid"
    found = Inspector(shop.handler).diff(shop.name, second, broken)
    assert found.objects == ()
    assert [each.place for each in found.problems if each.place] == ["deploy/broken.yaml:5"]
    assert CANARY not in json.dumps(plain(found))


def test_two_commits_are_rendered_once_for_many_viewers(commits: tuple[Shop, str, str], renders: list[str]) -> None:
    shop, first, second = commits
    inspector = Inspector(shop.handler)
    for _ in range(3):
        inspector.diff(shop.name, first, second)
    assert renders == [first, second]


def test_a_host_that_no_longer_has_a_commit_is_a_problem_and_asked_again(commits: tuple[Shop, str, str]) -> None:
    shop, first, second = commits
    shop.configure()
    inspector = Inspector(shop.handler)
    place = Path(shop.work.remote)
    shutil.move(place, place.with_suffix(".away"))
    found = inspector.diff(shop.name, first, second)
    assert found.objects == ()
    assert (found.problems[0].subject, found.problems[0].message) == (f"commit {first[:12]}", "can't be shown")
    shutil.move(place.with_suffix(".away"), place)
    assert inspector.diff(shop.name, first, second).problems == ()
