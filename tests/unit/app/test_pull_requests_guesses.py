"""A pull request that guesses what lives, and git leaves to others or doesn't declare, gets one answer whether it is right or wrong.

Values that the API server gives, and plans that it judges: `tests/e2e/nightly/test_pull_request_guesses.py`.
"""

from __future__ import annotations

import base64
import copy
import json
import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from handler.config.settings import Settings
from handler.model.names import identity_of
from handler.model.result import Outcome
from tests.fakes.apiserver.server import Asked
from tests.fakes.engine import cluster
from tests.unit.app.pull_requests_in_memory import DRIFT, Pulls, assert_nothing_shown, target
from tests.unit.engine.in_memory_shop import KINDS, MERGE, Body, body, config_map, path_of

pytestmark = pytest.mark.slow

RIGHT, WRONG = "guessed-canary-1a", "guessed-canary-2b"
LIVE = "live-canary7f3a9ce1"  # fit to name a container


@dataclass(frozen=True)
class Case:
    """`git`: what main declares; `patch`: what another writes live; `change`: what the pull request makes of `git`, with a guess."""

    git: Body
    change: Callable[[Body, str], object]
    patch: Body


def workload(**container: Any) -> Body:
    containers = [{"name": "main", "image": "shop:1", **container}]
    pods = {"metadata": {"labels": {"app": "x"}}, "spec": {"containers": containers}}
    return body("x", "Deployment", "apps/v1", spec={"selector": {"matchLabels": {"app": "x"}}, "template": pods})


def encoded(value: str) -> str:
    return base64.b64encode(value.encode()).decode()


CASES = {
    "the name of a key": Case(
        config_map("x"), lambda it, guess: it["metadata"].update(labels={guess: "x"}), {"metadata": {"labels": {RIGHT: "x"}}}
    ),
    "a variable": Case(
        workload(),
        lambda it, guess: it["spec"]["template"]["spec"]["containers"][0].update(env=[{"name": "A", "value": guess}]),
        {"spec": workload(env=[{"name": "A", "value": RIGHT}])["spec"]},
    ),
    "a secret": Case(
        body("x", "Secret", data={"value": encoded("1")}),
        lambda it, guess: it["data"].update(value=encoded(guess)),
        {"data": {"value": encoded(RIGHT)}},
    ),
    "an object": Case(
        config_map("gone", annotations={"anneal.dev/prune": "disabled"}),
        lambda it, guess: it["data"].update(key=guess),
        {"data": {"key": RIGHT}},
    ),
}


def main_has(pulls: Pulls, *documents: Body) -> None:
    pulls.git.push(pulls.git.commit({f"shop/{each['kind']}.yaml": json.dumps(each) for each in documents}))


def patch(pulls: Pulls, document: Body, changes: Body) -> None:
    pulls.server.must(Asked("PATCH", path_of(identity_of(document)), {"fieldManager": "other"}, changes, MERGE, ""))


@pytest.fixture
def pulls() -> Pulls:
    return Pulls(cluster("shop", served=KINDS), Settings(targets=(target(namespace="shop"),)))


@pytest.mark.parametrize("name", CASES)
def test_a_right_guess_and_a_wrong_one_get_the_same_answer(pulls: Pulls, name: str) -> None:
    case, beside = CASES[name], body("account", "ServiceAccount")
    main_has(pulls, case.git, beside)
    pulls.deploy()
    patch(pulls, case.git, case.patch)
    if name == "an object":  # main drops it; it stays
        main_has(pulls, beside)
        assert pulls.run(target="shop", trigger="tick").outcome is Outcome.UNCHANGED
    pulls.handler = pulls.made()
    said = []
    for guess in (RIGHT, WRONG):
        changed = copy.deepcopy(case.git)
        case.change(changed, guess)
        head = pulls.proposes({f"shop/{case.git['kind']}.yaml": json.dumps(changed)})
        assert pulls.run().outcome is Outcome.PLANNED
        said.append((pulls.api.text.replace(guess, "GUESS").replace(head[:12], "HEAD"), pulls.shown[-1]))
    assert said[0] == said[1]
    assert f"{case.git['kind']}/shop/{case.git['metadata']['name']}" in said[0][0], "it is in the plan"
    assert RIGHT not in said[0][0]


# --- what others have put into an object
@pytest.fixture
def injected(pulls: Pulls) -> Pulls:
    """A shop with a Deployment into which others have put a container, a variable, a label and an annotation."""
    main_has(pulls, workload())
    pulls.deploy()
    pulls.handler = pulls.made()
    pods = workload(env=[{"name": LIVE.upper().replace("-", "_"), "value": DRIFT}])["spec"]["template"]
    pods["metadata"]["annotations"] = {LIVE: DRIFT}
    pods["spec"] = {"containers": [*pods["spec"]["containers"], {"name": LIVE, "image": DRIFT}], "hostname": LIVE}
    patch(pulls, workload(), {"metadata": {"annotations": {LIVE: DRIFT}}, "spec": {"template": pods}})
    return pulls


def shown(pulls: Pulls) -> str:
    return "".join(line for line in pulls.api.text.splitlines() if line.startswith(("~", "+", "-", "    ", "shop/")))


@pytest.mark.parametrize(
    "change",
    [
        {"template": {"spec": {"containers": "x"}}},
        {"template": {"spec": ["x"]}},
        {"template": None},
        {"template": {"metadata": {"annotations": ["x"]}}},
    ],
    ids=str,
)
def test_a_field_that_gets_another_type_shows_nothing_of_what_lives_there(
    injected: Pulls, change: Body, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    document = workload()
    document["spec"].update(change)
    injected.proposes({"shop/Deployment.yaml": json.dumps(document)})
    injected.run()
    assert_nothing_shown(injected, caplog, DRIFT, LIVE)
    assert "Deployment/shop/x" in shown(injected)


@pytest.mark.parametrize("merged", [False, True])
def test_elements_and_keys_that_only_live_are_not_named(injected: Pulls, caplog: pytest.LogCaptureFixture, *, merged: bool) -> None:
    caplog.set_level(logging.DEBUG)
    if merged:  # what git has dropped since the last run
        whole = workload()
        whole["spec"]["template"]["spec"]["containers"].append({"name": f"{LIVE}-own", "image": DRIFT})
        whole["spec"]["template"]["metadata"]["annotations"] = {f"{LIVE}-own": DRIFT}
        main_has(injected, whole)
        injected.deploy()
        main_has(injected, workload())
        injected.handler = injected.made()
    document = workload(env=[{"name": "A", "value": "b"}])
    document["spec"]["template"]["spec"]["containers"].insert(0, {"name": "first", "image": "shop:1"})
    injected.proposes({"shop/Deployment.yaml": json.dumps(document)})
    injected.run()
    assert_nothing_shown(injected, caplog, DRIFT, LIVE)
    assert "~ change Deployment/shop/x" in shown(injected)
    assert ("containers[(not shown)]" if merged else "containers[name=first]") in shown(injected)
