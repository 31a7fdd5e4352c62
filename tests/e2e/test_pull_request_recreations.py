"""What a merge makes anew is said as such, before all that is changed, and is what the run then does; by git alone and by the server."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from handler.config.settings import RecreateSettings
from handler.model.result import Outcome
from tests.e2e.conftest import Open
from tests.e2e.documents import Document, config_map, definition, deployment, job, offer, secret
from tests.e2e.judged_pull_requests import open_guessed_or_judged
from tests.e2e.one_target import PATH
from tests.e2e.pull_request_host import PullRequests
from tests.e2e.rendered_trees import push_files
from tests.patience import until

ALLOWED = {"annotations": {"anneal.dev/recreate": "allow"}}


@pytest.fixture(params=[False, True], ids=["by git", "by the server"])
def pulls(request: pytest.FixtureRequest, open_shop: Open, tmp_path: Path) -> PullRequests:
    return open_guessed_or_judged(open_shop, tmp_path, judged=request.param)


def pushed(pulls: PullRequests, documents: dict[str, Document]) -> None:
    push_files(pulls.shop, {f"{PATH}/{name}.yaml": json.dumps(document) for name, document in documents.items()})


def selecting(name: str, app: str, **metadata: Any) -> Document:
    return deployment(name, "web", **metadata) | {"spec": deployment(name, app)["spec"]}


def test_what_is_made_anew_is_said_first_and_is_what_the_run_does(pulls: PullRequests) -> None:
    shop = pulls.shop
    frozen = {"data": {"key": "1"}, "immutable": True}
    before = {
        "a": config_map(shop.name, "a"),
        "job": job(shop.name, "migrate"),
        "frozen": config_map(shop.name, "frozen", **ALLOWED) | frozen,
        "web": selecting(shop.name, "web", **ALLOWED),
    }
    pushed(pulls, before)
    shop.applied()
    until(lambda: "Complete" in shop.kubectl.run("get", "job", "migrate", "-n", shop.name, "-o", "jsonpath={.status.conditions[*].type}"))
    pulls.reconnect()
    after = {
        "a": config_map(shop.name, "a", {"key": "2"}),
        "job": job(shop.name, "migrate", "migrate:2"),
        "frozen": config_map(shop.name, "frozen", **ALLOWED) | frozen | {"data": {"key": "1", "new": "2"}},
        "web": selecting(shop.name, "other", **ALLOWED),
    }
    pulls.plan(pulls.branch({f"{name}.yaml": json.dumps(document) for name, document in after.items()}))
    said = pulls.host.text
    assert "**3 to recreate, 1 to change**" in said
    assert pulls.host.statuses[-1].text == "3 to recreate, 1 to change"
    for name in (f"ConfigMap/{shop.name}/frozen", f"Deployment/{shop.name}/web", f"Job/{shop.name}/migrate"):
        assert 0 < said.index(f"- recreate {name}  (an immutable field changed)") < said.index("~ change")
    pushed(pulls, after)
    assert shop.applied().counts == {"recreated": 3, "configured": 1}


def test_what_may_not_be_made_anew_is_refused_with_the_way_out(pulls: PullRequests) -> None:
    shop = pulls.shop
    pushed(pulls, {"web": selecting(shop.name, "web"), "s": secret(shop.name, "s", "1") | {"immutable": True}})
    shop.applied()
    pulls.reconnect()
    after = {"web": selecting(shop.name, "other"), "s": secret(shop.name, "s", "2") | {"immutable": True}}
    head = pulls.branch({f"{name}.yaml": json.dumps(document) for name, document in after.items()})
    pulls.plan(head)
    said = pulls.host.text
    for place, kind in (("web", "Deployment"), ("s", "Secret")):
        line = next(line for line in said.splitlines() if line.startswith(f"{PATH}/{place}.yaml:1: {kind}/{shop.name}/{place}: "))
        assert "field is immutable" in line
        assert 'annotate it anneal.dev/recreate: "allow", or add to target' in line
    assert str(pulls.host.statuses[-1].state) == "failure"
    shop.configure(recreate=RecreateSettings(("Deployment.apps", "Secret")))
    assert shop.run().outcome is Outcome.UNCHANGED
    pulls.reconnect()
    pulls.plan(head)
    assert "**2 to recreate**" in pulls.host.text
    assert "field is immutable" not in pulls.host.text


def test_a_definition_whose_schema_lacks_fields_is_said_to_wait(open_shop: Open) -> None:
    shop = open_shop()
    shop.create_namespace()
    pulls = PullRequests.of(shop, namespace=shop.name, namespaces=(shop.name,), cluster_scoped=("CustomResourceDefinition",))
    crd = definition(shop.group)
    pushed(pulls, {"crd": crd, "spring": offer(shop.group, shop.name, "spring")})
    shop.applied()
    pulls.reconnect()
    narrower = json.loads(json.dumps(crd).replace('"price"', '"cost"'))
    pulls.plan(pulls.branch({"crd.yaml": json.dumps(narrower), "spring.yaml": None}))
    assert f"! CustomResourceDefinition/offers.{shop.group}: its new schema lacks fields" in pulls.host.text
    assert pulls.host.statuses[-1].text.endswith(f"{shop.target.name} would wait for approval")
    pushed(pulls, {"crd": narrower})
    held = shop.run()
    assert held.outcome is Outcome.HELD
    assert "1 instance would lose what its new schema lacks: spec.price" in held.message
