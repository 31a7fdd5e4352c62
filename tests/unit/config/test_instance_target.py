"""An instance is confined to the namespace of its object, with the rights of its account there, unless its template says otherwise."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from handler.config.git_settings import Repository
from handler.config.instance_target import instance_target
from handler.config.settings import Impersonate, Target
from handler.config.trigger_settings import ResourceTrigger, TriggerSettings, WatchedResource
from handler.model.instance import Instance
from handler.model.names import Identity
from tests.unit.rows import each_row

OWN = Impersonate("anneal/deployer")
TEMPLATE = Target("shop", Repository("https://git.example.com/shop.git"), ("*",), cluster_scoped=("Namespace",), impersonate=OWN)
INSTANCE = Instance(Identity("example.com", "Widget", "ns", "a"), "u", {})
CLUSTERWIDE = Instance(Identity("example.com", "Widget", "", "a"), "u", {})


def made(instance: Instance, template: Target = TEMPLATE, **trigger: Any) -> Target:
    resource = ResourceTrigger("widget", (WatchedResource("widget", "example.com/v1", "Widget"),), **trigger)
    return instance_target(replace(template, trigger=TriggerSettings(resource)), instance)


@each_row(
    ("target", "name", "namespaces", "namespace", "scoped", "account"),
    [
        (made(INSTANCE), "shop.ns.a", ("ns",), "ns", (), OWN),
        (made(INSTANCE, service_account="w"), "shop.ns.a", ("ns",), "ns", (), Impersonate("ns/w")),
        (made(INSTANCE, across_namespaces=True), "shop.ns.a", ("*",), "ns", ("Namespace",), OWN),
        (made(INSTANCE, replace(TEMPLATE, namespace="b"), across_namespaces=True), "shop.ns.a", ("*",), "b", ("Namespace",), OWN),
        (made(CLUSTERWIDE, service_account="w"), "shop.a", ("*",), "", ("Namespace",), OWN),
    ],
)
def test_what_an_instance_may(
    target: Target, name: str, namespaces: tuple[str, ...], namespace: str, scoped: tuple[str, ...], account: Impersonate
) -> None:
    found = (target.name, target.namespaces, target.namespace, target.cluster_scoped, target.impersonate)
    assert found == (name, namespaces, namespace, scoped, account)
    assert (target.is_template, TEMPLATE.is_template, TEMPLATE.instance) == (False, False, None)
    assert target.instance
