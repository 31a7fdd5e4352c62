"""Objects whose Namespace is only being created are judged in another one, in which namesakes of theirs may live."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from handler.model.result import Outcome
from tests.e2e.documents import Document, config_map, deployment, job, namespace
from tests.e2e.one_target import Shop, told


@pytest.fixture(params=["listed", "any"])
def shop(shop: Shop, request: pytest.FixtureRequest) -> Iterator[Shop]:
    """A shop with objects of the tests' names in the namespace that stands in: its own, or `default`."""
    space = shop.name
    if request.param == "any":
        shop.configure(namespaces=("*",))
        space = "default"
    namesakes = [
        deployment(space, shop.name),
        job(space, shop.name),
        config_map(space, shop.name, {"other": "1"}) | {"immutable": True},
    ]
    for each in namesakes:
        shop.kubectl.run("create", "-f", "-", given=json.dumps(each))
    yield shop
    shop.kubectl.run("delete", "deployment,job,configmap", shop.name, "-n", space, "--wait=false")


def fresh(shop: Shop) -> str:
    """Return the namespace that git declares."""
    return f"{shop.name}-jobs"


def labelled(shop: Shop, **container: Any) -> Document:
    """A Deployment whose selector isn't its namesake's."""
    found = deployment(fresh(shop), shop.name)
    found["spec"]["selector"]["matchLabels"] = found["spec"]["template"]["metadata"]["labels"] = {"tier": "front"}
    found["spec"]["template"]["spec"]["containers"][0] |= container
    return found


def test_what_differs_from_a_namesake_elsewhere_is_applied(shop: Shop) -> None:
    fixed = config_map(fresh(shop), shop.name) | {"immutable": True}
    shop.push(namespace(fresh(shop)), labelled(shop), job(fresh(shop), shop.name, "other:1"), fixed)
    shop.applied()
    shop.assert_converged()


TWICE = [{"name": "A", "value": "1"}, {"name": "A", "value": "2"}]


def test_what_only_a_namesake_elsewhere_would_make_whole_is_refused_with_nothing_written(shop: Shop) -> None:
    wrong = (
        (labelled(shop) | {"spec": {"replicas": 2}}, "spec.selector: Required value"),
        (labelled(shop, env=TWICE), "duplicate entries for key"),
        (labelled(shop, ports=[{"containerPort": 80}, {"containerPort": 80, "name": "b"}]), "duplicate entries for key"),
        (labelled(shop, imgae="shop:1"), "field not declared in schema"),
    )
    for document, said in wrong:
        shop.push(namespace(fresh(shop)), document, config_map(shop.name, "beside"))
        result = shop.run()
        assert (result.outcome, result.code) == (Outcome.FAILED, "plan-refused"), told(result)
        (problem,) = result.problems
        assert said in problem.message
        assert problem.subject == f"Deployment/{fresh(shop)}/{shop.name}"
        assert shop.live(namespace(fresh(shop))) is None
        assert shop.live(config_map(shop.name, "beside")) is None
