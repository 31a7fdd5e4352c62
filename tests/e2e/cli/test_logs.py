"""Logs of containers: read live with the rights of who asks, masked or withheld, printed and never kept."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from infra.controlplane.pod_failures import LOG
from tests.e2e.cli.conftest import Shop, crash_looping
from tests.e2e.cli.prompts import typed
from tests.kubectl import Kubectl
from tests.patience import until

PRINTED = ("swordfish-4711", "mackerel-0815", "eyJ")
SHOWN = [
    "starting",
    "GET /ready 503",
    "signed in with ***",
    "postgres: no pg_hba entry for shop with ***",
    "no table `orders`; password was ***",
]


@pytest.fixture
def crashing(shop: Shop, kubectl: Kubectl) -> Shop:
    """A shop whose rollout has failed: its container prints what Secrets that aren't in git hold."""
    for name, value in (("file", "swordfish-4711"), ("url", "mackerel-0815")):
        kubectl.run("create", "secret", "generic", name, "-n", shop.namespace, f"--from-literal=value={value}")
    environment = [{"name": "DB", "valueFrom": {"secretKeyRef": {"name": "url", "key": "value"}}}]
    container = {"env": environment, "volumeMounts": [{"name": "v", "mountPath": "/v"}]}
    volumes = [{"name": "v", "projected": {"sources": [{"secret": {"name": "file"}}]}}]
    shop.work.write("deploy/api.yaml", crash_looping(container, {"volumes": volumes}, progressDeadlineSeconds=1))
    shop.push("A workload that fails")
    shop.configure("wait: {timeout: 2s}")
    shop.cli("apply", code=1)
    until(lambda: "CrashLoopBackOff" in json.dumps(kubectl("get", "pods", "-n", shop.namespace)["items"]))
    return shop


def test_status_with_logs_reads_the_logs_live(crashing: Shop, kubectl: Kubectl) -> None:
    api = f"Deployment/{crashing.namespace}/api"
    lines = [line.strip() for line in crashing.cli("status", "shop", "--logs").stdout.splitlines()]
    (begin,) = [number for number, line in enumerate(lines) if line.startswith(f"logs:      {api}, pod api-")]
    assert lines[begin].endswith(", container main, before its last restart:")
    assert [line.removeprefix("| ") for line in lines[begin + 1 :]] == SHOWN
    (found,) = crashing.cli.json("status", "shop", "--logs")["logs"]
    assert (found["object"], found["container"], found["previous"], found["lines"]) == (api, "main", True, SHOWN)
    (found,) = crashing.cli.json("status", "shop", "--logs")["logs"]
    assert found["object"] == api
    for quiet in (crashing.cli("status", "shop").stdout, crashing.cli("status", "shop", "-o", "json").stdout, record(crashing, kubectl)):
        assert not any(line in quiet for line in LOG[1:])
        assert '"logs"' not in quiet


def record(shop: Shop, kubectl: Kubectl) -> str:
    return kubectl.run("get", "cm", "anneal-shop", "-n", shop.namespace, "-o", "yaml") + shop.cli("history", "-o", "json").stdout


def test_rollout_with_logs_shows_the_log_of_a_failed_step(crashing: Shop) -> None:
    steps = [{"name": "api", "object": "api.yaml", "action": "CreateOrUpdate", "success": [{"healthy": {"timeout": "2s"}}]}]
    spec = {"groups": [{"name": "all", "steps": steps}]}
    body = {"apiVersion": "workflow.kubernetes.io/v1alpha1", "kind": "Rollout", "metadata": {"name": "r"}, "spec": spec}
    crashing.work.write("rollout.yaml", json.dumps(body))
    crashing.configure("rollout: rollout.yaml")
    crashing.push("A rollout")
    crashing.cli("apply", code=1)
    shown = crashing.cli("rollout", "--logs", code=1).stdout
    assert "| no table `orders`; password was ***" in shown
    assert not any(value in shown for value in PRINTED)
    assert [found["lines"] for found in crashing.cli.json("rollout", "--logs", code=1)["logs"]] == [SHOWN]
    assert "logs" not in crashing.cli.json("rollout", code=1)


def test_a_failed_apply_prints_logs_on_a_terminal_alone(crashing: Shop, kubectl: Kubectl) -> None:
    code, shown = typed(crashing, "", "apply", "-y")
    assert code == 1
    assert "| no table `orders`; password was ***" in shown
    assert not any(value in shown for value in PRINTED)
    piped = crashing.cli("apply", code=1).output
    assert "CrashLoopBackOff" in piped
    assert not any(line in piped + record(crashing, kubectl) for line in SHOWN[1:])


READS = [
    {"apiGroups": [""], "resources": ["configmaps", "namespaces", "pods"], "verbs": ["get", "list"]},
    {"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": ["get"]},
    {"apiGroups": ["apps"], "resources": ["deployments"], "verbs": ["get"]},
    {"apiGroups": [""], "resources": ["pods/log"], "verbs": ["get"]},
]
SECRETS = {"apiGroups": [""], "resources": ["secrets"], "resourceNames": ["url"], "verbs": ["get"]}


def granted(shop: Shop, kubectl: Kubectl, *rules: dict[str, Any]) -> None:
    """Let the account do that in the shop's namespace, and tell clusters apart."""
    rbac, place = {"apiVersion": "rbac.authorization.k8s.io/v1"}, {"name": "reader", "namespace": shop.namespace}
    subjects = [{"kind": "ServiceAccount", **place}]
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "reader"}
    role = {**rbac, "kind": "Role", "metadata": place, "rules": rules}
    kubectl.grant(
        yaml.safe_dump_all([role, {**rbac, "kind": "RoleBinding", "metadata": place, "roleRef": reference, "subjects": subjects}])
    )


def test_a_log_that_cant_be_masked_is_withheld_and_the_right_is_named(crashing: Shop, kubectl: Kubectl, tmp_path: Path) -> None:
    reader = kubectl.account(f"{crashing.namespace}/reader", tmp_path)
    granted(crashing, kubectl, *READS)
    shown = crashing.cli("status", "shop", "--logs", code=0, kubeconfig=reader).stdout
    assert f"withheld: the pod may print Secret/{crashing.namespace}/file, which can't be read to mask it: 403" in shown
    rule = '{apiGroups: [""], resources: [secrets], resourceNames: [file], verbs: [get]}'
    assert f"add to a Role in {crashing.namespace}: {rule}; kubectl auth can-i get secret/file -n {crashing.namespace}" in shown
    assert not any(line in shown for line in (*LOG[1:], *SHOWN[1:]))
    granted(crashing, kubectl, *READS, {**SECRETS, "resourceNames": ["file"]})
    shown = crashing.cli("status", "shop", "--logs", kubeconfig=reader).stdout
    assert f"withheld: the pod may print Secret/{crashing.namespace}/url" in shown, "each of them counts"
    granted(crashing, kubectl, *READS, {**SECRETS, "resourceNames": ["file", "url"]})
    assert "| no table `orders`; password was ***" in crashing.cli("status", "shop", "--logs", kubeconfig=reader).stdout
    granted(crashing, kubectl, *READS[:-1], {**SECRETS, "resourceNames": ["file", "url"]})
    asked = {"verb": "get", "resource": "pods", "subresource": "log", "namespace": crashing.namespace}
    kubectl.judges(f"{crashing.namespace}/reader", allows=False, **asked)
    shown = crashing.cli("status", "shop", "--logs", kubeconfig=reader).stdout
    assert f"| nothing; or it can't be read: kubectl auth can-i get pods --subresource=log -n {crashing.namespace}" in shown


def test_a_healthy_target_has_no_logs(shop: Shop) -> None:
    shop.cli("apply")
    assert "logs:" not in shop.cli("status", "shop", "--logs").stdout
    assert shop.cli.json("status", "shop", "--logs")["logs"] == []
