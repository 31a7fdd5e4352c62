"""What others wrote and git doesn't declare: what goes is in the plan, what stays is named; kubectl judges before and after."""

from __future__ import annotations

import base64
import json

import pytest

from handler.config.settings import IgnoreRule, IgnoreSelect
from handler.model.result import Outcome
from tests.e2e.documents import Document, claim, config_map, deployment, secret, service
from tests.e2e.one_target import Shop, told
from tests.e2e.takeover import LAST_APPLIED, carried_out, gone, planned

RESTARTED = "kubectl.kubernetes.io/restartedAt"


def network_policy(namespace: str, **spec: object) -> Document:
    spec = {"podSelector": {}, "policyTypes": ["Ingress", "Egress"], **spec}
    metadata = {"name": "web", "namespace": namespace}
    return {"apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy", "metadata": metadata, "spec": spec}


def whole(shop: Shop) -> list[Document]:
    web = deployment(shop.name, "web", annotations={"team": "shop"})
    (container,) = web["spec"]["template"]["spec"]["containers"]
    container |= {"env": [{"name": "MODE", "value": "new"}, {"name": "DEBUG", "value": "1"}], "ports": [{"containerPort": 80}]}
    both = service(shop.name, "web")
    both["spec"]["ports"] = [{"name": "http", "port": 80}, {"name": "debug", "port": 81}]
    keys = secret(shop.name, "key", "one")
    keys["data"]["old"] = base64.b64encode(b"two").decode()
    data = config_map(shop.name, "a", {"key": "1", "dropped": "1", "empty": ""}, labels={"old": "label"})
    return [web, both, keys, data, network_policy(shop.name, egress=[{}])]


def less(shop: Shop) -> list[Document]:
    """The same objects as git declares them: without a variable, ports, keys, the allowed egress, a label and an annotation."""
    web = deployment(shop.name, "web")
    web["spec"]["template"]["spec"]["containers"][0]["env"] = [{"name": "MODE", "value": "new"}]
    one = service(shop.name, "web")
    one["spec"]["ports"] = [{"name": "http", "port": 80}]
    return [web, one, secret(shop.name, "key", "one"), config_map(shop.name, "a", {"key": "1"}), network_policy(shop.name)]


APPLIERS = (["apply"], ["apply", "--server-side"], ["create"], ["create", "--save-config"], ["apply"])
"""The commands by which people have made what is `whole`, one each."""


def test_adoption_tells_each_field_that_goes(shop: Shop) -> None:
    for command, document in zip(APPLIERS, whole(shop), strict=True):
        shop.kubectl.run(*command, "-f", "-", given=json.dumps(document))
    shop.push(*less(shop))
    changes, _ = carried_out(shop, whole(shop))
    container = "spec.template.spec.containers[name=main]"
    assert {kind: gone(change) - {LAST_APPLIED} for kind, change in changes.items()} == {
        "Deployment": {"metadata.annotations.team", f"{container}.env[name=DEBUG]", f"{container}.ports"},
        "Service": {"spec.ports[name=debug]"},
        "Secret": {"data.old"},
        "ConfigMap": {"data.dropped", "data.empty", "metadata.labels.old"},
        "NetworkPolicy": {"spec.egress"},
    }


COMMANDS = [
    (["label", "deployment/web", "by=hand"], {"metadata.labels.by"}),
    (["annotate", "deployment/web", "by=hand"], {"metadata.annotations.by"}),
    (["set", "env", "deployment/web", "BY=hand"], {"spec.template.spec.containers[name=main].env[name=BY]"}),
    (["set", "resources", "deployment/web", "--limits=cpu=1"], {"spec.template.spec.containers[name=main].resources.limits"}),
    (["patch", "deployment/web", "-p", '{"spec":{"minReadySeconds":3}}'], {"spec.minReadySeconds"}),
    (["scale", "deployment/web", "--replicas=3"], set()),
    (["rollout", "restart", "deployment/web"], set()),
    (["rollout", "pause", "deployment/web"], {"spec.paused"}),
]


@pytest.mark.parametrize("ours", [False, True], ids=["adopted", "drifted"])
def test_takeover_removes_and_reports_fields_written_by_kubectl_but_for_the_annotation_of_a_restart(shop: Shop, ours: bool) -> None:
    web = deployment(shop.name, "web", replicas=None)
    web["spec"]["template"]["spec"]["containers"][0]["env"] = [{"name": "MODE", "value": "new"}]
    shop.push(web)
    if ours:
        shop.applied()
    else:
        shop.kubectl.apply(web)
    for command, _ in COMMANDS:
        shop.kubectl.run(*command, "-n", shop.name)
    expected = {path for command, paths in COMMANDS for path in paths}
    changes, _ = carried_out(shop, [web], "drift")
    assert expected <= gone(changes["Deployment"]), changes["Deployment"].fields
    if not ours:  # the API server keeps no entry of a scale where replicas had no owner before (`skipnonapplied.go`)
        by_path = {field.path: field for field in changes["Deployment"].fields}
        assert (by_path["spec.replicas"].live, by_path["spec.replicas"].declared) == ("3", "1"), "what people scaled goes to the default"
    live = shop.live(web)
    assert live
    assert RESTARTED in live["spec"]["template"]["metadata"]["annotations"]


def test_takeover_leaves_ignored_fields_and_keeps_and_names_those_of_controllers_and_other_managers(shop: Shop) -> None:
    shop.configure(ignore=(IgnoreRule(IgnoreSelect(kind="Deployment"), ("/metadata/annotations/by",)),))
    web = deployment(shop.name, "web", replicas=None)
    shop.kubectl.apply(web)
    shop.kubectl.run("label", "deployment/web", "tier=front", "--field-manager=Terraform", "-n", shop.name)
    shop.kubectl.run("annotate", "deployment/web", "by=hand", "on=monday", "-n", shop.name)
    shop.kubectl.run("scale", "deployment/web", "--replicas=2", "-n", shop.name)
    scale = json.dumps({"spec": {"replicas": 4}})
    shop.kubectl.run("patch", "deployment/web", "--subresource=scale", "--type=merge", "-p", scale, "--field-manager=keda", "-n", shop.name)
    shop.push(web)
    changes, _ = carried_out(shop, [web])
    mine = "metadata.annotations.by"
    named = {(field.path, field.live, field.manager) for field in changes["Deployment"].undeclared if field.path != mine}
    assert named == {("metadata.labels.tier", "front", "Terraform"), ("spec.replicas", "4", "keda")}
    later = {(field.path, field.live, field.manager) for field in planned(shop)["Deployment"].undeclared if field.path != mine}
    assert later == named
    live = shop.live(web)
    assert live
    assert (live["metadata"]["labels"]["tier"], live["metadata"]["annotations"]["by"], live["spec"]["replicas"]) == ("front", "hand", 4)
    assert gone(changes["Deployment"]) == {"metadata.annotations.on", LAST_APPLIED}


def test_a_field_that_the_server_keeps_is_refused_before_the_first_write_with_the_line_for_git(shop: Shop) -> None:
    bound = claim(shop.name, "data")
    bound["spec"]["storageClassName"] = "fast"
    shop.kubectl.apply(bound)
    before = shop.versions([bound])
    shop.push(claim(shop.name, "data"), config_map(shop.name, "new"))
    result = shop.run()
    assert (result.outcome, result.code, len(result.problems)) == (Outcome.FAILED, "plan-refused", 1), told(result)
    (problem,) = result.problems
    assert "spec.storageClassName: fast (by kubectl-client-side-apply)" in problem.message
    assert "spec: {storageClassName: fast}" in problem.fix
    assert problem.place.endswith(":1")
    assert "delete it" not in str(problem)
    assert shop.versions([bound]) == before
    assert shop.live(config_map(shop.name, "new")) is None
    shop.push(bound, config_map(shop.name, "new"))
    carried_out(shop, [bound])


def test_takeover_of_kubectl_fields_resolves_an_otherwise_invalid_mix_with_git(shop: Shop) -> None:
    rolling = deployment(shop.name, "web")
    rolling["spec"]["strategy"] = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 2}}
    shop.kubectl.apply(rolling)
    recreated = deployment(shop.name, "web")
    recreated["spec"]["strategy"] = {"type": "Recreate"}
    shop.push(recreated)
    changes, _ = carried_out(shop, [rolling])
    assert "spec.strategy.rollingUpdate" in gone(changes["Deployment"])
