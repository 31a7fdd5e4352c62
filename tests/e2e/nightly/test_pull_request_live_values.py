"""What lives in a target's own objects shows in no plan of a pull request, whatever type a field gets, nor by the name of an element."""

from __future__ import annotations

import copy
import io
import json
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.conftest import Open
from tests.e2e.documents import config_map, deployment
from tests.e2e.judged_pull_requests import open_judged
from tests.e2e.one_target import PATH
from tests.e2e.pull_request_canaries import DRIFT, assert_nothing_shown
from tests.e2e.pull_request_host import PullRequests
from tests.e2e.rendered_trees import push_files

LIVE = "live-canary7f3a9ce1"  # fit to name a container


@pytest.fixture
def pulls(open_shop: Open, tmp_path: Path) -> PullRequests:
    """A shop whose plans the server judges, with a Deployment into which others have put containers, variables and marks."""
    made, _ = open_judged(open_shop, tmp_path)
    shop, name = made.shop, web(made)["spec"]["template"]["spec"]["containers"][0]["name"]
    env = [{"name": LIVE.upper().replace("-", "_"), "value": DRIFT}]
    containers = [{"name": name, "env": env}, {"name": LIVE, "image": DRIFT}]
    patch = {
        "metadata": {"annotations": {LIVE: DRIFT}},
        "spec": {"template": {"metadata": {"annotations": {LIVE: DRIFT}}, "spec": {"containers": containers, "hostname": LIVE}}},
    }
    shop.kubectl.run(
        *("patch", "deployment", "web", "-n", shop.name, "--type=strategic", "--field-manager=injector", "-p", json.dumps(patch))
    )
    return made


def web(pulls: PullRequests) -> dict[str, Any]:
    return deployment(pulls.shop.name, "web")


def shown(pulls: PullRequests) -> list[str]:
    return [line for line in pulls.host.text.splitlines() if line.startswith(("~", "+", "-", "    ", "deploy/"))]


CHANGES: dict[str, Any] = {
    "the containers a text": {"template": {"spec": {"containers": "x"}}},
    "the containers a map": {"template": {"spec": {"containers": {"a": "b"}}}},
    "the pod's spec a text": {"template": {"spec": "x"}},
    "the pod's spec a list": {"template": {"spec": ["x"]}},
    "the template a number": {"template": 5},
    "the template nothing": {"template": None},
    "annotations a list": {"template": {"metadata": {"annotations": ["x"]}}},
}


def test_a_field_that_gets_another_type_shows_nothing_of_what_lives_there(pulls: PullRequests, logged: io.StringIO) -> None:
    for number, (change, spec) in enumerate(CHANGES.items(), 1):
        body = copy.deepcopy(web(pulls))
        body["spec"].update(spec)
        pulls.plan(pulls.branch({"web.yaml": json.dumps(body)}), number)
        assert_nothing_shown(pulls, logged, DRIFT, LIVE)
        assert f"Deployment/{pulls.shop.name}/web" in "".join(shown(pulls)), change


@pytest.mark.parametrize("merged", [False, True])
def test_elements_and_keys_that_only_live_are_not_named(pulls: PullRequests, merged: bool, logged: io.StringIO) -> None:
    shop, body = pulls.shop, web(pulls)
    template = body["spec"]["template"]
    template["spec"]["containers"][0]["env"] = [{"name": "A", "value": "b"}]
    template["spec"]["containers"].insert(0, {"name": "first", "image": "shop:1"})
    if merged:  # what git has dropped since the last run
        whole = copy.deepcopy(body)
        whole["spec"]["template"]["spec"]["containers"].append({"name": f"{LIVE}-own", "image": DRIFT})
        whole["spec"]["template"]["metadata"]["annotations"] = {f"{LIVE}-own": DRIFT}
        push_files(shop, {f"{PATH}/web.yaml": json.dumps(whole), f"{PATH}/a.yaml": json.dumps(config_map(shop.name, "a"))})
        shop.applied()
        push_files(shop, {f"{PATH}/web.yaml": json.dumps(web(pulls)), f"{PATH}/a.yaml": json.dumps(config_map(shop.name, "a"))})
        pulls.reconnect()
    pulls.plan(pulls.branch({"web.yaml": json.dumps(body)}))
    assert_nothing_shown(pulls, logged, DRIFT, LIVE)
    said = "".join(shown(pulls))
    assert f"~ change Deployment/{shop.name}/web" in said
    assert "containers[(not shown)]" in said if merged else "containers[name=first]" in said
