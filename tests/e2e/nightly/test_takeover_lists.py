"""Lists merged by keys that git leaves to their defaults, as sets, and elements of which another manager has a part."""

from __future__ import annotations

import json

import pytest

from tests.e2e.documents import Document, definition, deployment, offer, service
from tests.e2e.one_target import Shop
from tests.e2e.takeover import LAST_APPLIED, carried_out, gone, refusal, written


def listing(shop: Shop, *listeners: Document, **spec: object) -> Document:
    """An Offer whose listeners are merged by name and zone, which is `a` where it isn't said."""
    return {**offer(shop.group, shop.name, "tea"), "spec": {"listeners": list(listeners), **spec}}


def served(shop: Shop) -> Document:
    """Have the kind of `listing` served; return its definition."""
    crd = definition(shop.group)
    texts = {"name": {"type": "string"}, "zone": {"type": "string", "default": "a"}, "n": {"type": "integer"}, "m": {"type": "integer"}}
    listeners = {
        "type": "array",
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["name", "zone"],
        "items": {"type": "object", "required": ["name"], "properties": texts},
    }
    members = {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}}
    spec = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]
    spec["properties"] = {"listeners": listeners, "members": members}
    shop.kubectl.apply(crd)
    shop.kubectl.run("wait", "--for=condition=Established", f"crd/offers.{shop.group}")
    return crd


@pytest.mark.parametrize("command", [["apply"], ["apply", "--server-side"]], ids=["apply", "server-side"])
def test_lists_with_a_defaulted_merge_key_are_adopted_at_once(shop: Shop, command: list[str]) -> None:
    served(shop)
    x, other, y = {"name": "x", "n": 1}, {"name": "x", "zone": "b", "n": 1}, {"name": "y", "n": 2}
    tea, both, web = listing(shop, {**x, "m": 1}, other, y), service(shop.name, "web"), deployment(shop.name, "web")
    both["spec"]["ports"] = [{"name": "dns", "port": 53, "protocol": "UDP"}, {"name": "dns-tcp", "port": 53}, {"name": "x", "port": 80}]
    (container,) = web["spec"]["template"]["spec"]["containers"]
    container["ports"] = [{"containerPort": 53, "protocol": "UDP"}, {"containerPort": 53}, {"containerPort": 80, "name": "http"}]
    shop.kubectl.run(*command, "-f", "-", given=json.dumps({"apiVersion": "v1", "kind": "List", "items": [tea, both, web]}))
    both["spec"]["ports"] = [{"name": "dns-tcp", "port": 53}]
    container["ports"] = [{"containerPort": 53}]
    shop.push(listing(shop, x), both, web)
    changes, _ = carried_out(shop, [tea, both, web])
    assert gone(changes["Service"]) - {LAST_APPLIED} == {"spec.ports[name=dns]", "spec.ports[name=x]"}
    listeners, ports, opened = ((shop.live(each) or {})["spec"] for each in (tea, both, web))
    assert listeners["listeners"] == [{**x, "zone": "a"}]
    assert ports["ports"] == [{"name": "dns-tcp", "port": 53, "protocol": "TCP", "targetPort": 53}]
    assert opened["template"]["spec"]["containers"][0]["ports"] == [{"containerPort": 53, "protocol": "TCP"}]
    patch = [{"op": "add", "path": "/spec/listeners/0/m", "value": 3}, {"op": "add", "path": "/spec/listeners/-", "value": y}]
    shop.kubectl.run("patch", f"offers.{shop.group}", "tea", "-n", shop.name, "--type=json", "-p", json.dumps(patch))
    carried_out(shop, [tea], "drift")


def test_an_element_of_which_a_controller_has_a_part_is_declared_as_the_refusal_says(shop: Shop) -> None:
    both = service(shop.name, "web")
    both["spec"]["ports"] = [{"name": "http", "port": 80}, {"name": "debug", "port": 81}]
    shop.kubectl.apply(both)
    patch = json.dumps([{"op": "replace", "path": "/spec/ports/1/targetPort", "value": 8081}])
    shop.kubectl.run("patch", "service", "web", "-n", shop.name, "--type=json", "--field-manager=my-controller", "-p", patch)
    before = shop.versions([both])
    one = service(shop.name, "web")
    one["spec"]["ports"] = both["spec"]["ports"][:1]
    shop.push(one)
    problem = refusal(shop)
    assert shop.versions([both]) == before
    one["spec"]["ports"] += written(problem)["spec"]["ports"]
    shop.push(one)
    carried_out(shop, [one])
