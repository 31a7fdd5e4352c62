"""What `anneal rbac` prints is enough for every kind of run, and for nothing more."""

from __future__ import annotations

import json
from pathlib import Path

import yaml

from handler.app.build import Handler, Options
from handler.cluster.api import Api
from handler.cluster.connect import connect
from handler.cluster.own_objects import OwnObjects
from handler.config.load import load
from handler.config.secrets import RUNS, resolve_all
from handler.config.settings import Cluster
from handler.inspect.inspector import Inspector
from handler.render.sandbox import Sandbox
from handler.state.configmap import INSTALLATION
from tests.e2e.cli.conftest import Shop, crash_looping
from tests.e2e.cli.test_rbac import _renamed, account, crd, granted  # noqa: F401 - fixtures, too
from tests.kubectl import Kubectl
from tests.patience import until


def test_check_names_each_missing_right(shop: Shop, account: Path) -> None:
    (row,) = [row for row in shop.cli.json("check", code=1, kubeconfig=account)["checks"] if row["subject"] == "rights"]
    missing = [problem["message"] for problem in row["problems"]]
    assert any("create" in message and "configmaps" in message for message in missing)
    assert row["problems"][-1]["fix"].endswith(f"--service-account {shop.namespace}/anneal | kubectl --kubeconfig ADMIN apply -f -")
    assert "rights         failed   may not" in shop.cli("doctor", code=1, kubeconfig=account).stdout


def test_the_printed_rights_are_enough_for_every_run(shop: Shop, kubectl: Kubectl, granted: Path) -> None:
    shop.cli("check", kubeconfig=granted)
    assert shop.cli.json("apply", kubeconfig=granted)["counts"] == {"created": 8}
    assert shop.cli.json("apply", kubeconfig=granted)["outcome"] == "unchanged"
    kubectl.run("delete", "cm", "one", "-n", shop.namespace)
    kubectl.run("patch", "cup", "blue", "-n", shop.namespace, "--type=merge", "-p", '{"spec":{"size":9}}')
    assert shop.cli.json("apply", kubeconfig=granted)["counts"] == {"created": 1, "configured": 1, "unchanged": 6}
    for gone in ("two", "role", "binding", "cup"):
        shop.work.remove(f"deploy/{gone}.yaml")
    shop.push("Some go")
    assert shop.cli.json("apply", kubeconfig=granted)["counts"] == {"unchanged": 4, "pruned": 4}
    kubectl.run("delete", "cm", "anneal-shop", "-n", shop.namespace)
    recovered = shop.cli.json("apply", kubeconfig=granted)
    assert (recovered["outcome"], recovered["counts"]) == ("applied", {"unchanged": 4})
    shop.cli("suspend", kubeconfig=granted)
    assert _summaries(shop.namespace, granted) == {"anneal-shop"}
    shop.cli("resume", kubeconfig=granted)
    shop.cli("unlock", kubeconfig=granted)


def test_the_printed_rights_are_enough_for_a_takeover(shop: Shop, kubectl: Kubectl, account: Path) -> None:
    shop.cli("apply")
    config, space = shop.cli.config, shop.namespace
    config.write_text(config.read_text().replace("- name: shop", "- name: store\n    renamedFrom: shop", 1))
    kubectl.grant(_renamed(shop.cli("rbac", "store", "--service-account", f"{space}/anneal").stdout, space))
    taken = shop.cli.json("apply", "store", kubeconfig=account)
    assert (taken["outcome"], set(taken["counts"])) == ("applied", {"configured"})
    assert _summaries(space, account) == {"anneal-store"}
    left = kubectl("get", "configmaps,leases.coordination.k8s.io", "-n", space)["items"]
    assert "anneal-shop" not in {each["metadata"]["name"] for each in left}
    assert shop.cli.json("apply", "store", kubeconfig=account)["outcome"] == "unchanged"


def _summaries(namespace: str, kubeconfig: Path) -> set[str]:
    """Return the names of the states that a survey sees."""
    objects = OwnObjects(Api(connect(Cluster(), kubeconfig=str(kubeconfig), environ={})))
    return {body["metadata"]["name"] for body in objects.overview("ConfigMap", namespace, f"{INSTALLATION}=default")}


def _crashes(kubectl: Kubectl, namespace: str) -> bool:
    """Whether a pod crashes again and again, and its event is written."""
    pods = json.dumps(kubectl("get", "pods", "-n", namespace)["items"])
    return "CrashLoopBackOff" in pods and bool(kubectl("get", "events", "-n", namespace, "--field-selector=reason=BackOff")["items"])


def test_with_the_printed_rights_a_failed_rollout_says_why_and_with_less_it_still_fails(
    shop: Shop, kubectl: Kubectl, account: Path
) -> None:
    kubectl.run("apply", "-n", shop.namespace, "-f", "-", given=crash_looping())
    until(lambda: _crashes(kubectl, shop.namespace))  # when the wait's time is over, there is something to tell
    shop.work.write("deploy/api.yaml", crash_looping())
    shop.push("A workload that fails")
    shop.configure("wait: {timeout: 2s}")
    assert "pods/log" not in shop.cli("rbac").stdout
    shop.configure("wait: {timeout: 2s}\nevidence: {logs: record}")
    printed = list(filter(None, yaml.safe_load_all(shop.cli("rbac", "--service-account", f"{shop.namespace}/anneal").stdout)))
    kubectl.grant(_renamed(yaml.safe_dump_all(printed), shop.namespace))
    assert "says less" not in shop.cli("check", kubeconfig=account).stdout
    told = shop.cli("apply", code=1, kubeconfig=account).output
    for said in ("CrashLoopBackOff", "restarted", "its log ends"):
        assert said in told, told
    reads = {"pods", "pods/log", "events"}
    for each in [one for one in printed if "rules" in one]:
        each["rules"] = [rule for rule in each["rules"] if not reads & set(rule["resources"])]
    kubectl.grant(_renamed(yaml.safe_dump_all(printed), shop.namespace))
    kubectl.judges(f"{shop.namespace}/anneal", verb="list", resource="events", namespace=shop.namespace, allows=False)
    assert "says less of why without" in shop.cli("check", kubeconfig=account).stdout
    said = shop.cli("apply", code=1, kubeconfig=account).output
    assert "isn't healthy after 2s: 0 of 1 replica available" in said
    assert "CrashLoopBackOff" not in said
    kubectl.run("delete", "clusterrole,clusterrolebinding", f"anneal-{shop.namespace}")


def test_the_page_has_all_that_it_reads_by_the_rights_that_are_printed_for_it(shop: Shop, kubectl: Kubectl, account: Path) -> None:
    kubectl.run("create", "serviceaccount", "deployer", "-n", shop.namespace)
    kubectl.run("create", "secret", "generic", "url", "-n", shop.namespace, "--from-literal=value=mackerel-0815")
    environment = [{"name": "DB", "valueFrom": {"secretKeyRef": {"name": "url", "key": "value"}}}]
    shop.work.write("deploy/api.yaml", crash_looping({"env": environment}))
    shop.push("A workload")
    shop.configure(f"impersonate: {{serviceAccount: {shop.namespace}/deployer}}")
    assert "pods/log" not in shop.cli("rbac").stdout
    try:
        kubectl.grant(_renamed(shop.cli("rbac", "--page", "--service-account", f"{shop.namespace}/anneal").stdout, shop.namespace))
        shop.cli("apply", kubeconfig=account)
        until(lambda: _crashes(kubectl, shop.namespace))
        settings = load(shop.cli.config)
        handler = Handler(settings, resolve_all(settings, {}, needs=RUNS), Sandbox(), {}, Options(kubeconfig=str(account)))
        inspector = Inspector(handler)
        tree, events = inspector.tree("shop"), inspector.events("shop")
        log = inspector.logs("shop", f"Deployment/{shop.namespace}/api")
    finally:
        kubectl.run("delete", "clusterrole,clusterrolebinding", f"anneal-{shop.namespace}")
    assert (tree.notes, events.notes, log.notes, log.withheld) == ((), (), (), "")
    (api,) = [node for node in tree.roots if node.kind == "Deployment"]
    assert api.children[0].children[0].state == "failed"
    assert any(event.reason == "BackOff" for event in events.events)
    assert log.lines[-2:] == ("postgres: no pg_hba entry for shop with ***", "no table `orders`; password was swordfish-4711")
