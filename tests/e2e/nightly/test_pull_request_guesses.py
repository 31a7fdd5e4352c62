"""A pull request that guesses what lives, and git leaves to others or doesn't declare, gets one answer whether it is right or wrong."""

from __future__ import annotations

import copy
import ipaddress
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from handler.model.result import Outcome
from tests.e2e.conftest import Open
from tests.e2e.documents import Document, config_map, deployment, secret, service, stateful_set
from tests.e2e.judged_pull_requests import open_guessed_or_judged
from tests.e2e.one_target import PATH, Shop
from tests.e2e.rendered_trees import push_files

RIGHT, WRONG = "guessed-canary-1a", "guessed-canary-2b"
IGNORED, KEPT = {"anneal.dev/ignore": "/data/key"}, {"kustomize.toolkit.fluxcd.io/ssa": "IfNotPresent"}
Change = Callable[[Document, str], None]


def _at(document: Any, value: Any, *path: Any) -> None:
    *before, last = path
    for step in before:
        document = document[step] if isinstance(step, int) else document.setdefault(step, {})
    document[last] = value


@dataclass(frozen=True)
class Case:
    """`git`: what main declares; `patch`: what another writes live; `change`: what the pull request makes of `git`, with a guess.

    `right`, `wrong`: read from what lives; else RIGHT, which `patch` writes, and WRONG.
    """

    git: Callable[[str], Document]
    change: Change
    patch: Document = field(default_factory=dict)
    right: Callable[[Document], str] = lambda _: RIGHT
    wrong: Callable[[Document], str] = lambda _: WRONG
    before: Document = field(default_factory=dict)
    """What lives before main declares the object."""


def _dropping(document: Document, guess: str) -> None:
    del document["metadata"]["annotations"]
    document["data"]["key"] = guess


def _named_by(document: Document, guess: str) -> None:
    document["metadata"]["labels"] = {guess: "x"}


def _env(document: Document, guess: str) -> None:
    document["spec"]["template"]["spec"]["containers"][0]["env"] = [{"name": "A", "value": guess}]


def _other_address(live: Document) -> str:
    return str(ipaddress.ip_address(live["spec"]["clusterIP"]) + 1)


def _node_port(live: Document) -> str:
    return str(live["spec"]["ports"][0]["nodePort"])


ENV = {"spec": {"template": {"spec": {"containers": [{"name": "main", "env": [{"name": "A", "value": RIGHT}]}]}}}}
NODE_PORT = {"type": "NodePort", "selector": {"app": "x"}, "ports": [{"port": 80}]}
CASES = {
    "a key": Case(lambda name: config_map(name, "x"), lambda it, guess: _at(it, guess, "data", "new"), {"data": {"new": RIGHT}}),
    "the name of a key": Case(lambda name: config_map(name, "x"), _named_by, {"metadata": {"labels": {RIGHT: "x"}}}),
    "drift": Case(lambda name: config_map(name, "x"), lambda it, guess: _at(it, guess, "data", "key"), {"data": {"key": RIGHT}}),
    "ignored": Case(lambda name: config_map(name, "x", annotations=IGNORED), _dropping, {"data": {"key": RIGHT}}),
    "kept": Case(lambda name: config_map(name, "x", annotations=KEPT), _dropping, {"data": {"key": RIGHT}}),
    "a variable": Case(lambda name: deployment(name, "x"), _env, ENV),
    "a secret": Case(
        lambda name: secret(name, "x", "1"),
        lambda it, guess: _at(it, secret("", "", guess)["data"]["value"], "data", "value"),
        {"data": secret("", "", RIGHT)["data"]},
    ),
    "an address": Case(
        lambda name: service(name, "x"),
        lambda it, guess: _at(it, guess, "spec", "clusterIP"),
        right=lambda live: str(live["spec"]["clusterIP"]),
        wrong=_other_address,
    ),
    "a node port": Case(
        lambda name: service(name, "x") | {"spec": copy.deepcopy(NODE_PORT)},
        lambda it, guess: _at(it, int(guess), "spec", "ports", 0, "nodePort"),
        right=_node_port,
        wrong=lambda live: str(30000 + (int(_node_port(live)) - 29999) % 2768),
    ),
    "a default": Case(
        lambda name: stateful_set(name, "x"),
        lambda it, guess: _at(it, guess, "spec", "podManagementPolicy"),
        right=lambda _: "OrderedReady",
        wrong=lambda _: "Parallel",
    ),
    "immutable data": Case(
        lambda name: config_map(name, "x") | {"immutable": True},
        lambda it, guess: _at(it, guess, "data", "new"),
        before={"data": {"key": "1", "new": RIGHT}, "immutable": True},
    ),
    "an object": Case(
        lambda name: config_map(name, "gone", annotations={"anneal.dev/prune": "disabled"}),
        lambda it, guess: _at(it, guess, "data", "key"),
        {"data": {"key": RIGHT}},
    ),
}
GIVEN = ("an address", "a node port", "a default")


def _lives(shop: Shop, case: Case, git: Document) -> Document:
    """Let the object live as it was deployed, and as another has changed it since; return it."""
    if case.before:
        shop.kubectl.run("create", "--field-manager=other", "-f", "-", given=json.dumps({**git, **case.before}))
    push_files(shop, {f"{PATH}/x.yaml": json.dumps(git), f"{PATH}/a.yaml": json.dumps(config_map(shop.name, "a"))})
    shop.applied()
    name = git["metadata"]["name"]
    if case.patch:
        written = ("--type=strategic", "--field-manager=other", "-p", json.dumps(case.patch))
        shop.kubectl.run("patch", git["kind"], name, "-n", shop.name, *written)
    if name == "gone":  # main drops it; it stays
        push_files(shop, {f"{PATH}/a.yaml": json.dumps(config_map(shop.name, "a"))})
        assert shop.run().outcome is Outcome.UNCHANGED
    found: Document = shop.kubectl("get", git["kind"], name, "-n", shop.name)
    return found


@pytest.mark.parametrize(("name", "judged"), [*((name, False) for name in GIVEN), *((name, True) for name in CASES)])
def test_a_right_guess_and_a_wrong_one_get_the_same_answer(open_shop: Open, tmp_path: Path, name: str, *, judged: bool) -> None:
    """Judged by the server; what it gives an object, by git alone, too."""
    pulls = open_guessed_or_judged(open_shop, tmp_path, judged=judged)
    shop, case = pulls.shop, CASES[name]
    git = case.git(shop.name)
    live = _lives(shop, case, git)
    pulls.reconnect()
    said = []
    for number, guess in enumerate((case.right(live), case.wrong(live)), 1):
        changed = copy.deepcopy(git)
        case.change(changed, guess)
        head = pulls.branch({"x.yaml": json.dumps(changed)})
        pulls.plan(head, number)
        text = pulls.host.text.replace(guess, "GUESS").replace(head[:12], "HEAD")
        said.append((text, pulls.host.statuses[-1].state, pulls.host.statuses[-1].text))
    assert said[0] == said[1]
    assert f"{git['kind']}/{shop.name}/{git['metadata']['name']}" in said[0][0], "it is in the plan"
    assert RIGHT not in said[0][0]
