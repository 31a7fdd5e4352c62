"""What `anneal rbac` prints is enough for every kind of run, and for nothing more."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
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
from tests.e2e.cli.conftest import Shop, crash_looping, document
from tests.e2e.serve_process import until
from tests.kubectl import Kubectl


@pytest.fixture
def crd(shop: Shop, kubectl: Kubectl) -> Iterator[str]:
    """The plural of a kind of the test's own, with its manifest in git."""
    group = f"{shop.namespace}.example.com"
    names = {"plural": "cups", "singular": "cup", "kind": "Cup"}
    schema = {
        "openAPIV3Schema": {"type": "object", "properties": {"spec": {"type": "object", "properties": {"size": {"type": "integer"}}}}}
    }
    versions = [{"name": "v1", "served": True, "storage": True, "schema": schema}]
    spec = {"group": group, "names": names, "scope": "Namespaced", "versions": versions}
    shop.work.write("deploy/crd.yaml", document("CustomResourceDefinition", f"cups.{group}", "apiextensions.k8s.io/v1", spec=spec))
    yield f"cups.{group}"
    kubectl.run("delete", "crd", f"cups.{group}", "--ignore-not-found", "--wait=false")


@pytest.fixture
def account(shop: Shop, kubectl: Kubectl, tmp_path: Path) -> Path:
    """The kubeconfig of a ServiceAccount without any right."""
    return kubectl.account(f"{shop.namespace}/anneal", tmp_path)


@pytest.fixture
def granted(shop: Shop, kubectl: Kubectl, account: Path, crd: str) -> Iterator[Path]:
    """That kubeconfig, once it has exactly what is printed."""
    group = crd.partition(".")[2]
    rules = [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]
    shop.work.write("deploy/cup.yaml", document("Cup", "blue", f"{group}/v1", spec={"size": 2}))
    shop.work.write("deploy/role.yaml", document("Role", "reader", "rbac.authorization.k8s.io/v1", rules=rules))
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "reader"}
    subjects = [{"kind": "ServiceAccount", "name": "default", "namespace": shop.namespace}]
    binding = document("RoleBinding", "reader", "rbac.authorization.k8s.io/v1", roleRef=reference, subjects=subjects)
    shop.work.write("deploy/binding.yaml", binding)
    shop.push("A kind, a role, a binding")
    shop.configure("clusterScoped: [CustomResourceDefinition]")
    printed = shop.cli("rbac", "--service-account", f"{shop.namespace}/anneal").stdout
    kubectl.grant(_renamed(printed, shop.namespace))
    yield account
    kubectl.run("delete", "clusterrole,clusterrolebinding", f"anneal-{shop.namespace}")


def _renamed(printed: str, name: str) -> str:
    """Give the cluster-wide ones a name of the test's own."""
    found = [one for one in yaml.safe_load_all(printed) if one]
    for each in found:
        if each["kind"].startswith("Cluster"):
            each["metadata"]["name"] = f"anneal-{name}"
        if each["kind"] == "ClusterRoleBinding":
            each["roleRef"]["name"] = f"anneal-{name}"
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": found})


def test_check_names_each_missing_right(shop: Shop, account: Path) -> None:
    (row,) = [row for row in shop.cli.json("check", code=1, kubeconfig=account)["checks"] if row["subject"] == "rights"]
    missing = [problem["message"] for problem in row["problems"]]
    assert any("create" in message and "configmaps" in message for message in missing)
    assert row["problems"][-1]["fix"].endswith(f"--service-account {shop.namespace}/anneal | kubectl --kubeconfig ADMIN apply -f -")
    assert "rights         failed   may not" in shop.cli("doctor", code=1, kubeconfig=account).stdout


def test_a_target_that_may_use_every_namespace_can_be_granted_those_it_uses(shop: Shop) -> None:
    config = shop.cli.config
    config.write_text(config.read_text().replace(f"[{shop.namespace}]", '"*"'))

    def scopes(*flags: str) -> set[str]:
        found = shop.cli.json("rbac", *flags)["items"]
        rules = [(one["metadata"].get("namespace", "*"), rule) for one in found for rule in one.get("rules", ())]
        return {scope for scope, rule in rules if "secrets" in rule["resources"]}

    assert scopes() == {"*"}
    assert scopes("--namespaced") == {shop.namespace}


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


def test_an_impersonated_target_has_its_own_rights_and_the_handler_none_of_them(shop: Shop, kubectl: Kubectl, account: Path) -> None:
    kubectl.run("create", "serviceaccount", "deployer", "-n", shop.namespace)
    shop.configure(f"impersonate: {{serviceAccount: {shop.namespace}/deployer}}")
    printed = shop.cli("rbac", "--service-account", f"{shop.namespace}/anneal").stdout
    kubectl.grant(_renamed(printed, shop.namespace))
    try:
        shop.cli("check", kubeconfig=account)
        assert shop.cli.json("apply", kubeconfig=account)["counts"] == {"created": 4}
        asked = ("auth", "can-i", "list", "secrets", "-n", shop.namespace)
        can = [
            kubectl.tried(*asked, f"--as=system:serviceaccount:{shop.namespace}:{name}").stdout.strip() for name in ("anneal", "deployer")
        ]
        assert can == ["no", "yes"]
    finally:
        kubectl.run("delete", "clusterrole,clusterrolebinding", f"anneal-{shop.namespace}")


DENIED = (
    ("list", "secrets", "-A"),
    ("get", "deployments.apps"),
    ("delete", "namespaces"),
    ("update", "configmaps/other"),
    ("get", "namespaces/default"),
    ("escalate", "roles.rbac.authorization.k8s.io/other"),
    ("bind", "clusterroles.rbac.authorization.k8s.io/cluster-admin"),
    ("create", "configmaps", "-n", "default"),
    ("impersonate", "serviceaccounts"),
)


def test_the_printed_rights_are_for_nothing_more(shop: Shop, kubectl: Kubectl, granted: Path) -> None:
    user = f"--as=system:serviceaccount:{shop.namespace}:anneal"
    scoped = (asked if asked[2:] else (*asked, "-n", shop.namespace) for asked in DENIED)
    answers = {" ".join(asked): kubectl.tried("auth", "can-i", *asked, user).stdout.strip() for asked in scoped}
    assert set(answers.values()) == {"no"}, answers


def test_rbac_of_a_checkout_prints_the_same_without_git_secrets(shop: Shop) -> None:
    printed = shop.cli("rbac").stdout
    missing = "repository: {auth: {basic: {username: a, password: {env: NOT_ON_THIS_MACHINE}}}}"
    config = yaml.safe_load(shop.cli.config.read_text())
    config["targets"][0]["repository"].update(yaml.safe_load(missing)["repository"])
    shop.cli.config.write_text(yaml.safe_dump(config))
    assert "NOT_ON_THIS_MACHINE" in shop.cli("rbac", code=1).stderr
    assert shop.cli("rbac", "-f", str(shop.work.directory)).stdout == printed


@pytest.mark.parametrize("kind", ["Group", "User"])
def test_rbac_binds_a_group_or_a_user_where_the_handler_is_no_service_account(shop: Shop, kubectl: Kubectl, kind: str) -> None:
    bindings = [each for each in shop.cli.json("rbac", f"--{kind.lower()}", "system:worker")["items"] if "subjects" in each]
    group = {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": "system:worker"}
    assert {each["kind"] for each in bindings} == {"RoleBinding", "ClusterRoleBinding"}
    assert all(each["subjects"] == [group] for each in bindings)
    for each in bindings:
        kubectl.run("apply", "--dry-run=server", "-f", "-", given=json.dumps(each))


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
