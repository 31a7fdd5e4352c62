"""A map that several managers share: what an apply would make null of is refused in the plan, with the lines that keep it."""

from __future__ import annotations

import json
from typing import Any

from tests.e2e.documents import Document, config_map, definition, offer
from tests.e2e.one_target import Shop
from tests.e2e.takeover import carried_out, refusal, written


def nesting(shop: Shop, **spec: Any) -> Document:
    return {**offer(shop.group, shop.name, "tea"), "spec": spec}


def served(shop: Shop) -> None:
    """Have the kind of `nesting` served."""
    crd, text = definition(shop.group), {"type": "string"}
    spec = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]
    spec["properties"] |= {"nested": {"type": "object", "properties": {"a": text, "b": text}}}
    shop.kubectl.apply(crd)
    shop.kubectl.run("wait", "--for=condition=Established", f"crd/offers.{shop.group}")


def applied_by(shop: Shop, manager: str, **spec: Any) -> None:
    given = json.dumps(nesting(shop, **spec))
    shop.kubectl.run("apply", "--server-side", "--force-conflicts", f"--field-manager={manager}", "-f", "-", given=given)


def test_the_last_field_of_a_map_that_another_keeps_is_refused_with_the_line_for_git(shop: Shop) -> None:
    served(shop)
    applied_by(shop, "kubectl", price=1, nested={"a": "1"})
    applied_by(shop, "my-operator", nested={})
    before = shop.versions([nesting(shop)])
    shop.push(nesting(shop, price=1), config_map(shop.name, "new"))
    problem = refusal(shop)
    assert "live alone has spec.nested.a: 1 (by " in problem.message
    assert "it is the last of spec.nested, which another manager or git keeps" in problem.message
    assert shop.versions([nesting(shop)]) == before
    assert shop.live(config_map(shop.name, "new")) is None
    shop.push(nesting(shop, price=1, **written(problem)["spec"]), config_map(shop.name, "new"))
    carried_out(shop, [nesting(shop)])
