"""`anneal gap` and `anneal orphans` against a real cluster: kubectl makes the differences, and judges what an apply has made of them."""

from __future__ import annotations

import json
from base64 import b64encode
from typing import Any

from tests.e2e.cli.conftest import SECRET, Shop, document
from tests.kubectl import Kubectl

CANARY = "canary-91d0af-live"
LABELS = {"app": "web"}
WEB = {
    "replicas": 2,
    "selector": {"matchLabels": LABELS},
    "template": {
        "metadata": {"labels": LABELS},
        "spec": {
            "containers": [{"name": "web", "image": "web:1", "ports": [{"containerPort": 80}], "resources": {"limits": {"cpu": "1000m"}}}]
        },
    },
}
SCALED = "ignore: [{select: {kind: Deployment}, paths: [/spec/replicas]}]"


def by_object(found: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {each["object"].replace(each["object"].split("/")[1] + "/", "", 1): each for each in found["objects"]}


def field(each: dict[str, Any], path: str) -> dict[str, Any]:
    return next(row for row in each["fields"] if row["path"] == path)


def changed(shop: Shop, kubectl: Kubectl) -> None:
    """Deploy all, then have kubectl, a controller and an autoscaler change what lives."""
    shop.work.write("deploy/web.yaml", document("Deployment", "web", "apps/v1", spec=WEB))
    shop.work.write("deploy/old.yaml", document("ConfigMap", "old", data={"value": "1"}))
    shop.push("A Deployment, and what goes")
    shop.configure(SCALED)
    shop.cli("apply")
    place = ("-n", shop.namespace)
    kubectl.run(
        "patch", "cm", "one", *place, "--field-manager=kubectl-edit", "--type=merge", "-p", '{"data":{"value":"9","extra":"by hand"}}'
    )
    kubectl.run("patch", "cm", "two", *place, "--field-manager=acme-operator", "--type=merge", "-p", '{"data":{"theirs":"x"}}')
    kubectl.run("scale", "deployment", "web", *place, "--replicas=5")
    kubectl.run("delete", "cm", "three", *place)
    held = {"stringData": {"password": CANARY, "token": CANARY}, "metadata": {"annotations": {"acme.io/copy": CANARY}}}
    kubectl.run("patch", "secret", "login", *place, "--field-manager=kubectl-edit", "--type=merge", "-p", json.dumps(held))
    shop.work.remove("deploy/old.yaml")
    shop.push("One goes")


def test_the_gap_tells_all_that_differs_shows_no_secret_and_an_apply_changes_exactly_that(shop: Shop, kubectl: Kubectl) -> None:
    changed(shop, kubectl)
    objects = each_state_and_who_made_it(shop, kubectl)
    a_line_an_object_and_a_row_a_field(shop)
    said = {name for name, each in objects.items() if each["action"] != "unchanged"}
    goes = {name for name, each in objects.items() if each["deletes"]}

    def lives() -> dict[str, tuple[str, Any]]:
        found = kubectl("get", "cm,secret,deployment", "-n", shop.namespace, "-l", "applyset.kubernetes.io/part-of")["items"]
        return {
            f"{each['kind']}/{each['metadata']['name']}": (each["metadata"]["uid"], each.get("data") or each.get("spec")) for each in found
        }

    before = lives()
    applied = no_secret_nor_that_a_value_equals(shop, kubectl)
    assert not any(canary in applied for canary in (CANARY, SECRET))
    after = lives()
    assert {name for name in before.keys() | after.keys() if before.get(name) != after.get(name)} == said
    assert before.keys() - after.keys() == goes == {"ConfigMap/old"}
    assert after["ConfigMap/one"][1] == {"value": "1"}
    assert after["ConfigMap/two"][1] == {"value": "1", "theirs": "x"}
    assert after["Deployment/web"][1]["replicas"] == 5
    again = shop.cli.json("gap", "shop", "-v")
    assert again["counts"] == {"differs": 0, "missing": 0, "undeclared": 0, "itself": 0, "equal": 5}
    login = by_object(again)["Secret/login"]
    assert not [row for row in login["fields"] if row["path"].startswith(("data", "stringData")) and row["state"] == "equal"]
    shop.cli("gap", "shop", "--exit-code")


def each_state_and_who_made_it(shop: Shop, kubectl: Kubectl) -> dict[str, dict[str, Any]]:
    """Look at the gap as a program does; return its objects."""
    versions = {
        each["metadata"]["name"]: each["metadata"]["resourceVersion"] for each in kubectl("get", "cm,secret", "-n", shop.namespace)["items"]
    }
    found = shop.cli.json("gap", "shop")
    objects = by_object(found)
    assert {name: (each["state"], each["action"]) for name, each in objects.items()} == {
        "ConfigMap/one": ("differs", "update"),
        "Secret/login": ("differs", "update"),
        "ConfigMap/three": ("missing", "create"),
        "ConfigMap/old": ("undeclared", "prune"),
        "ConfigMap/two": ("equal", "unchanged"),
        "Deployment/web": ("equal", "unchanged"),
    }
    assert (found["commit"], found["counts"]) == (shop.work.head(), {"differs": 2, "missing": 1, "undeclared": 1, "itself": 0, "equal": 2})
    assert objects["ConfigMap/one"]["place"] == "deploy/one.yaml:1"
    assert field(objects["ConfigMap/one"], "data.value") == {
        "path": "data.value",
        "state": "differs",
        "declared": "1",
        "live": "9",
        "manager": "kubectl-edit",
        "why": "",
    }
    assert field(objects["ConfigMap/one"], "data.extra")["why"] == "the next run that compares live removes it"
    theirs = field(objects["ConfigMap/two"], "data.theirs")
    assert (theirs["state"], theirs["live"], theirs["manager"], theirs["why"]) == ("undeclared", "x", "acme-operator", "it stays")
    web = objects["Deployment/web"]
    scaled = field(web, "spec.replicas")
    assert (scaled["state"], scaled["declared"], scaled["live"], scaled["why"]) == ("itself", "2", "5", "ignored by a rule of the target")
    assert field(web, "spec.revisionHistoryLimit")["why"] == "has no manager, as the API server's defaults"
    revision = field(web, "metadata.annotations.deployment.kubernetes.io/revision")
    assert (revision["state"], revision["why"]) == ("itself", "written through status")
    cpu = field(web, "spec.template.spec.containers[name=web].resources.limits.cpu")
    assert (cpu["state"], cpu["declared"], cpu["live"]) == ("equal", "1000m", "1")
    port = field(web, "spec.template.spec.containers[name=web].ports[containerPort=80,protocol=TCP].containerPort")
    assert port["state"] == "equal"
    assert web["counts"]["undeclared"] == web["counts"]["differs"] == 0
    after = {
        each["metadata"]["name"]: each["metadata"]["resourceVersion"] for each in kubectl("get", "cm,secret", "-n", shop.namespace)["items"]
    }
    assert {name: each for name, each in after.items() if not name.startswith("anneal-")} == {
        name: each for name, each in versions.items() if not name.startswith("anneal-")
    }
    return objects


def a_line_an_object_and_a_row_a_field(shop: Shop) -> None:
    """Look at it as people do."""
    lines = shop.cli("gap", "shop", "--exit-code", code=2).stdout.splitlines()
    assert lines[0].split() == ["STATE", "FIELD", "DECLARED", "LIVE", "MANAGER"]
    one = next(index for index, line in enumerate(lines) if line.startswith(f"≠ differs    ConfigMap/{shop.namespace}/one"))
    assert "to update" in lines[one]
    assert lines[one].endswith("deploy/one.yaml:1")
    assert lines[one + 1].split() == ["differs", "data.value", "1", "9", "kubectl-edit"]
    assert lines[one + 2].split()[:5] == ["undeclared", "data.extra", "(none)", "by", "hand"]
    assert any(line.startswith(f"+ missing    ConfigMap/{shop.namespace}/three  (to create)") for line in lines)
    assert f"\N{MINUS SIGN} undeclared ConfigMap/{shop.namespace}/old  (to prune; no longer declared)" in lines
    assert not any("Deployment" in line for line in lines)
    assert lines[-2].startswith(f"shop at {shop.work.head()[:12]}: 2 differs, 1 missing, 1 undeclared, 2 equal; fields: ")
    assert lines[-1] == "next: anneal apply shop"
    every = shop.cli("gap", "shop", "-v").stdout
    assert f"= equal      Deployment/{shop.namespace}/web" in every
    assert "has no manager, as the API server's defaults" in every
    assert [each["target"] for each in shop.cli.json("gap")["targets"]] == ["shop"]


def no_secret_nor_that_a_value_equals(shop: Shop, kubectl: Kubectl) -> str:
    """Ask for every view of what differs, and apply; return what the apply printed."""
    kubectl.run(
        "annotate", "cm", "two", "-n", shop.namespace, f"kubectl.kubernetes.io/last-applied-configuration={CANARY}", "--field-manager=acme"
    )
    asked = (
        ("gap", "-v"),
        ("gap", "-o", "json", "-v"),
        ("orphans", "-v"),
        ("orphans", "-o", "json"),
        ("plan", "shop", "-v"),
        ("plan", "-o", "json"),
    )
    printed = [shop.cli(*words).output for words in asked]
    for canary in (CANARY, b64encode(CANARY.encode()).decode(), SECRET, b64encode(SECRET.encode()).decode()):
        assert not any(canary in text for text in printed)
    login = by_object(json.loads(printed[1])["targets"][0])["Secret/login"]
    rows = {row["path"]: (row["state"], row["declared"], row["live"]) for row in login["fields"]}
    assert rows["data.password"] == ("differs", "***", "***")
    assert rows["data.token"] == ("undeclared", "", "***")
    return shop.cli("apply", "-y").output


def test_ports_and_labels_are_those_of_the_api_server(shop: Shop, kubectl: Kubectl) -> None:
    """Git leaves protocols out, and a key with dots stands beside the one that it begins with."""

    def declare(port: int, version: str) -> None:
        shop.work.write("deploy/service.yaml", document("Service", "web", spec={"selector": {"app": "web"}, "ports": [{"port": port}]}))
        policy = {"podSelector": {}, "ingress": [{"ports": [{"port": 80}]}]}
        shop.work.write("deploy/policy.yaml", document("NetworkPolicy", "web", "networking.k8s.io/v1", spec=policy))
        one = {"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": "one", "labels": {"app.kubernetes.io/version": version}}}
        shop.work.write("deploy/one.yaml", json.dumps(one))
        shop.push(f"Port {port}")

    declare(80, "1")
    shop.cli("apply", "-y")
    kubectl.run("label", "cm", "one", "-n", shop.namespace, "app=shop", "app.kubernetes.io/name=shop")
    declare(81, "2")
    objects = by_object(shop.cli.json("gap", "shop", "-v"))
    stand = {name: {row["path"]: row["state"] for row in each["fields"]} for name, each in objects.items()}
    service = {path: state for path, state in stand["Service/web"].items() if path.startswith("spec.ports")}
    assert service == {"spec.ports[port=80,protocol=TCP]": "undeclared", "spec.ports[port=81,protocol=TCP]": "differs"}
    policy = {path: state for path, state in stand["NetworkPolicy/web"].items() if "ports" in path}
    assert policy == {
        "spec.ingress[0].ports[port=80,protocol=TCP].port": "equal",
        "spec.ingress[0].ports[port=80,protocol=TCP].protocol": "itself",
    }
    labels = {path: state for path, state in stand["ConfigMap/one"].items() if ".labels." in path and "applyset" not in path}
    assert labels == {
        "metadata.labels.app": "undeclared",
        "metadata.labels.app.kubernetes.io/name": "undeclared",
        "metadata.labels.app.kubernetes.io/version": "differs",
    }
    shop.cli("apply", "-y")
    assert [each["port"] for each in kubectl("get", "service", "web", "-n", shop.namespace)["spec"]["ports"]] == [81]
    after = by_object(shop.cli.json("gap", "shop", "-v"))
    assert {row["state"] for row in after["Service/web"]["fields"] if row["path"].startswith("spec.ports")} == {"equal", "itself"}
