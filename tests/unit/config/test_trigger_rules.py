"""Triggers: each mistake has its line and its way out, all at once."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from handler.config.load import parse
from handler.config.trigger_settings import KeyTransformation, LabelSelector, ResourceTrigger, SelectorRequirement, WatchedResource
from handler.model.errors import ConfigInvalid
from tests.unit.rows import each_row

MAIN: dict[str, Any] = {"name": "grafana", "apiVersion": "monitoring.coreos.com/v1", "kind": "Grafana"}


def target(name: str = "grafana", **more: Any) -> dict[str, Any]:
    return {
        "name": name,
        "repository": {"url": "https://git.example.com/a/b.git"},
        "namespaces": ["shop"],
        "renderer": {"type": "jsonnet"},
        **more,
    }


def triggered(*resources: dict[str, Any], main: str = "grafana", **more: Any) -> dict[str, Any]:
    return target(trigger={"resource": {"mainResource": main, "resources": list(resources)}}, **more)


def read(*targets: dict[str, Any]) -> Any:
    return parse(yaml.safe_dump({"apiVersion": "anneal.dev/v1alpha1", "kind": "Config", "targets": list(targets)}))


def mistakes(*targets: dict[str, Any]) -> list[str]:
    with pytest.raises(ConfigInvalid) as caught:
        read(*targets)
    return [f"{each.subject}: {each.message}; {each.fix}" for each in caught.value.problems]


def test_a_trigger_is_written_as_locutus_writes_it() -> None:
    selector = {"matchLabels": {"app": "x", "tier": "web"}, "matchExpressions": [{"key": "a", "operator": "NotIn", "values": ["b", "c"]}]}
    keys = [{"regex": "(.*)/x-(.*)", "replacement": "$1/$2"}, {"action": "drop", "regex": "kube-.*"}]
    listed = {"name": "pods", "apiVersion": "v1", "kind": "Pod", "namespace": "shop", "labelSelector": selector, "keyTransformations": keys}
    trigger = read(triggered(MAIN, listed)).targets[0].trigger.resource
    assert (trigger.main.kind, [each.name for each in trigger.listed]) == ("Grafana", ["pods"])
    assert trigger.listed[0].label_selector.query == "app=x,tier=web,a notin (b,c)"
    assert trigger.listed[0].key_transformations == (
        KeyTransformation("replace", "(.*)/x-(.*)", "$1/$2"),
        KeyTransformation("drop", "kube-.*", "$1"),
    )
    assert (trigger.write_status, trigger.service_account, trigger.across_namespaces) == (True, "", False)


@each_row(
    ("requirement", "query"),
    [
        (SelectorRequirement("a", "Exists"), "a"),
        (SelectorRequirement("a", "DoesNotExist"), "!a"),
        (SelectorRequirement("a", "In", ("b",)), "a in (b)"),
    ],
)
def test_a_condition_on_a_label_is_the_api_servers(requirement: SelectorRequirement, query: str) -> None:
    assert LabelSelector(match_expressions=(requirement,)).query == query


def labelled(**selector: Any) -> dict[str, Any]:
    return triggered(MAIN | {"labelSelector": selector})


def condition(**more: Any) -> dict[str, Any]:
    return labelled(matchExpressions=[{"key": "a", "operator": "In", **more}])


TRIGGER = "targets[grafana].trigger.resource"
OF_MAIN = f"{TRIGGER}.resources[grafana]"
VALUES = f"{OF_MAIN}.labelSelector.matchExpressions[0].values"
LABELS = f"{OF_MAIN}.labelSelector.matchLabels"
FOLLOWING = {"promoted": {"from": "grafana"}}


@each_row(
    ("given", "place", "seen"),
    [
        (
            [triggered(MAIN, main="other")],
            "targets[grafana].trigger.resource.mainResource",
            "names none of the resources, which are grafana",
        ),
        (
            [triggered(MAIN | {"apiVersion": "v1", "kind": "Secret"})],
            "targets[grafana].trigger.resource.mainResource",
            '"grafana" lists Secrets: what is in one would be shown by plans, and its digest recorded; name a custom resource',
        ),
        (
            [triggered(MAIN | {"keyTransformations": [{"regex": "(?=a)"}]})],
            f"{OF_MAIN}.keyTransformations[0].regex",
            "can't be read: invalid perl operator: (?=",
        ),
        ([labelled(matchLabels={"app": 1})], LABELS, 'app: expected the value of a label, found "1"; quote it if it is a number'),
        ([labelled(matchLabels={"a b": "c"})], LABELS, 'expected the name of a label, found "a b"'),
        ([condition()], VALUES, "is missing, and In compares with it; add `values: [...]`"),
        ([condition(operator="Exists", values=["b"])], VALUES, "goes with In and NotIn, and this is Exists; remove the line"),
        ([condition(values=["-"])], VALUES, 'holds "-", which no label can have'),
        ([triggered(MAIN, renamedFrom="older")], "targets[grafana].renamedFrom", "is of a single target, and this one has instances"),
        ([triggered(MAIN, revision=FOLLOWING)], "targets[grafana].revision", "follows other targets, and this one has instances"),
        ([triggered(MAIN), target("shop", dependsOn=["grafana"])], "targets[shop].dependsOn", "grafana is a template of instances"),
        (
            [triggered(MAIN), target("shop", revision=FOLLOWING)],
            "targets[shop].revision.promoted.from",
            "grafana is a template of instances",
        ),
        ([triggered(MAIN, renderer={"type": "kustomize"})], "targets[grafana].renderer", "is kustomize, which takes no configuration"),
        ([{**triggered(MAIN), "name": 41 * "a"}], f"targets[{41 * 'a'}].name", "has 41 characters, and begins the names of instances"),
        ([{**triggered(MAIN), "name": "heartbeat"}], "targets[heartbeat].name", "would name an instance's Lease as that of the servers"),
    ],
)
def test_what_a_template_may_not_say(given: list[dict[str, Any]], place: str, seen: str) -> None:
    assert [each for each in mistakes(*given) if each.startswith(f"{place}: {seen}")]


def test_secrets_may_be_listed_and_a_custom_kind_may_be_called_secret() -> None:
    listed = {"name": "secrets", "apiVersion": "v1", "kind": "Secret"}
    of_others = MAIN | {"apiVersion": "vault.example.com/v1", "kind": "Secret"}
    assert [len(read(triggered(main, listed)).targets) for main in (MAIN, of_others)] == [1, 1]


def test_each_resource_has_a_name_of_its_own() -> None:
    assert any("grafana" in each and "resources" in each for each in mistakes(triggered(MAIN, {**MAIN, "kind": "Other"})))


def test_the_main_resource_is_found_by_its_name() -> None:
    trigger = ResourceTrigger("b", (WatchedResource("a", "v1", "Pod"), WatchedResource("b", "v1", "Node")))
    assert (trigger.main.kind, [each.kind for each in trigger.listed]) == ("Node", ["Pod"])


def test_two_templates_write_no_status_of_the_same_objects() -> None:
    again = {**triggered(MAIN), "name": "again"}
    (seen,) = mistakes(triggered(MAIN), again)
    assert "targets[again].trigger.resource.mainResource: grafana writes the status of the same objects, too" in seen
    again["trigger"]["resource"]["writeStatus"] = False
    narrowed = ({"kind": "Other"}, {"namespace": "shop"})
    others = [{**triggered(MAIN | more), "name": f"other-{number}"} for number, more in enumerate(narrowed)]
    assert len(read(triggered(MAIN), again, *others).targets) == 4
    own = {"name": "grafana", "apiVersion": "v1", "kind": "Namespace"}
    assert len(read(triggered(own), {**triggered(own), "name": "again"}).targets) == 2
