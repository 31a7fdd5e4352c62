"""Lists merged by keys that git leaves to their defaults, as sets, and elements of which another manager has a part."""

from __future__ import annotations

import json

import pytest

from tests.e2e.documents import Document, definition, deployment, offer, service
from tests.e2e.shop import Shop
from tests.e2e.test_takeover import LAST_APPLIED, carried_out, gone


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


APPLIERS = [pytest.param(["apply"], id="apply"), pytest.param(["apply", "--server-side"], id="server-side")]


@pytest.mark.parametrize("command", APPLIERS)
def test_a_custom_list_whose_key_git_leaves_to_its_default_is_adopted_at_once(shop: Shop, command: list[str]) -> None:
    served(shop)
    x, other, y = {"name": "x", "n": 1}, {"name": "x", "zone": "b", "n": 1}, {"name": "y", "n": 2}
    whole = listing(shop, {**x, "m": 1}, other, y)
    shop.kubectl.run(*command, "-f", "-", given=json.dumps(whole))
    shop.push(listing(shop, x))
    carried_out(shop, [whole])
    live = shop.live(whole)
    assert live
    assert live["spec"]["listeners"] == [{**x, "zone": "a"}]
    patch = [{"op": "add", "path": "/spec/listeners/0/m", "value": 3}, {"op": "add", "path": "/spec/listeners/-", "value": y}]
    shop.kubectl.run("patch", f"offers.{shop.group}", "tea", "-n", shop.name, "--type=json", "-p", json.dumps(patch))
    carried_out(shop, [whole], "drift")


@pytest.mark.parametrize("command", APPLIERS)
def test_core_lists_whose_protocol_git_leaves_to_its_default_are_adopted_at_once(shop: Shop, command: list[str]) -> None:
    both, web = service(shop.name, "web"), deployment(shop.name, "web")
    both["spec"]["ports"] = [{"name": "dns", "port": 53, "protocol": "UDP"}, {"name": "dns-tcp", "port": 53}, {"name": "x", "port": 80}]
    (container,) = web["spec"]["template"]["spec"]["containers"]
    container["ports"] = [{"containerPort": 53, "protocol": "UDP"}, {"containerPort": 53}, {"containerPort": 80, "name": "http"}]
    shop.kubectl.run(*command, "-f", "-", given=json.dumps({"apiVersion": "v1", "kind": "List", "items": [both, web]}))
    both["spec"]["ports"] = [{"name": "dns-tcp", "port": 53}]
    container["ports"] = [{"containerPort": 53}]
    shop.push(both, web)
    changes, _ = carried_out(shop, [both, web])
    assert gone(changes["Service"]) - {LAST_APPLIED} == {"spec.ports[name=dns]", "spec.ports[name=x]"}
    lives = [shop.live(both), shop.live(web)]
    assert lives[0]
    assert lives[1]
    assert lives[0]["spec"]["ports"] == [{"name": "dns-tcp", "port": 53, "protocol": "TCP", "targetPort": 53}]
    assert lives[1]["spec"]["template"]["spec"]["containers"][0]["ports"] == [{"containerPort": 53, "protocol": "TCP"}]
