"""What `status` says while a run goes on in another process: where a rollout stands, what a deletion waits for; also when it is killed."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from handler.model.names import state_name
from handler.state.configmap import SUMMARY
from tests.e2e.cli.conftest import Shop, document
from tests.kubectl import Kubectl
from tests.patience import until

SEEN = {"fieldComparisons": {"expectedValues": [{"path": "{.metadata.labels.seen}", "value": {"static": "yes"}}]}}
"""Met when the test says so."""
KEPT = "shop.example.com/backup"
WAITS = rf"is not gone yet; finalizers: {KEPT} \(the controller of shop\.example\.com\)"


@contextmanager
def applying(shop: Shop) -> Iterator[subprocess.Popen[bytes]]:
    """Run `anneal apply` in a process of its own; whatever is left of it is killed."""
    environ = {**os.environ, "ANNEAL_CONFIG": str(shop.cli.config), "KUBECONFIG": str(shop.cli.kubeconfig)}
    with subprocess.Popen([sys.executable, "-m", "handler", "apply"], env=environ, stdout=subprocess.DEVNULL) as run:
        try:
            yield run
        finally:
            run.kill()


def kill(shop: Shop, kubectl: Kubectl, run: subprocess.Popen[bytes]) -> None:
    """Kill a run, and let its Lease look as it does a long time after."""
    assert run.poll() is None, "it has ended by itself"
    run.send_signal(signal.SIGKILL)
    run.wait()
    old = json.dumps({"spec": {"renewTime": "2020-01-01T00:00:00.000000Z"}})
    kubectl.run("patch", "lease", state_name("shop"), "-n", shop.namespace, "--type=merge", "-p", old)


def state(shop: Shop) -> dict[str, Any]:
    found: dict[str, Any] = shop.cli.json("status", "shop")["state"]
    return found


def text(shop: Shop) -> str:
    return shop.cli("status", "shop").stdout


def summed_phase(shop: Shop, kubectl: Kubectl) -> str:
    """Return the phase that overviews and ticks read."""
    found = kubectl("get", "configmap", state_name("shop"), "-n", shop.namespace)
    return str(json.loads(found["metadata"]["annotations"][SUMMARY])["phase"])


def release(shop: Shop, version: str, **step: Any) -> None:
    """Push a Deployment of this version, and a Rollout whose step does this with it."""
    template = {"metadata": {"labels": {"app": "api"}}, "spec": {"containers": [{"name": "api", "image": f"shop:{version}"}]}}
    spec = {"replicas": 4, "selector": {"matchLabels": {"app": "api"}}, "template": template}
    shop.work.write("deploy/api.yaml", document("Deployment", "api", "apps/v1", spec=spec))
    body = {"apiVersion": "workflow.kubernetes.io/v1alpha1", "kind": "Rollout", "metadata": {"name": "r"}}
    steps = [{"name": "api", "object": "api.yaml", **step}]
    shop.work.write("rollout.yaml", json.dumps({**body, "spec": {"groups": [{"name": "main", "steps": steps}]}}))
    shop.push(f"Release {version}")


def shares(shop: Shop) -> list[int]:
    return [step.get("share", 0) for step in (state(shop)["rollout"] or {"steps": []})["steps"]]


def test_a_rollout_says_its_step_and_its_share_until_it_has_ended(shop: Shop, kubectl: Kubectl) -> None:
    """Also of a run that was killed, for the next one goes on there."""
    shop.configure("rollout: rollout.yaml")
    release(shop, "1", action="CreateOrUpdate", success=[{"healthy": {}}])
    shop.cli("apply")
    release(shop, "2", action="Canary", steps=[{"weight": 25, "for": "0s"}, {"weight": 50, "for": "0s"}], success=[SEEN])
    where = rf"shop: rolling out for \d+ \w+: main, api: Canary Deployment/{shop.namespace}/api at 25 %\n"
    with applying(shop) as run:
        until(lambda: shares(shop) == [25], lambda: text(shop))
        assert re.match(where, text(shop)), text(shop)
        assert (state(shop)["status"]["phase"], summed_phase(shop, kubectl)) == ("rolling-out", "rolling-out")
        assert f"> api  Canary Deployment/{shop.namespace}/api: under way at 25 % for" in shop.cli("rollout").stdout
        kill(shop, kubectl, run)
    assert re.match(where, text(shop)), text(shop)
    assert "hasn't renewed" in text(shop)
    assert state(shop)["status"]["phase"] == "rolling-out"
    with applying(shop) as run:
        until(lambda: kubectl.tried("label", "deployment", "api-canary", "-n", shop.namespace, "--overwrite", "seen=yes").returncode == 0)
        assert run.wait() == 0
    assert text(shop).startswith("shop: applied"), text(shop)
    assert (state(shop)["status"]["phase"], summed_phase(shop, kubectl), shares(shop)) == ("applied", "applied", [100])


def prunes_slowly(shop: Shop) -> None:
    """Apply a ConfigMap that a finalizer keeps, then push without it."""
    metadata = {"name": "slow", "finalizers": [KEPT]}
    shop.work.write("deploy/slow.yaml", json.dumps({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}))
    shop.push("With slow")
    shop.cli("apply")
    shop.declare("one", "two", "three")
    shop.push("Without slow")


def let_go(shop: Shop, kubectl: Kubectl) -> None:
    kubectl.run("patch", "configmap", "slow", "-n", shop.namespace, "--type=merge", "-p", '{"metadata":{"finalizers":null}}')


def test_a_prune_that_waits_names_the_object_and_its_finalizers_meanwhile(shop: Shop, kubectl: Kubectl) -> None:
    prunes_slowly(shop)
    with applying(shop) as run:
        until(lambda: state(shop)["status"]["phase"] == "pruning", lambda: text(shop))
        said = rf"pruning:   \| ConfigMap/{shop.namespace}/slow: {WAITS}; kubectl get ConfigMap/slow"
        assert re.search(said, text(shop)), text(shop)
        assert re.search(WAITS, state(shop)["status"]["message"])
        assert "pruning" not in [entry["outcome"] for entry in state(shop)["history"]], "the run hasn't ended"
        assert summed_phase(shop, kubectl) == "pruning"
        kill(shop, kubectl, run)
    assert re.search(said, text(shop)), text(shop)
    with applying(shop) as run:
        let_go(shop, kubectl)
        assert run.wait() == 0
    assert text(shop).startswith("shop: applied"), text(shop)
    assert "finalizers" not in state(shop)["status"].get("message", "")
    assert (state(shop)["status"]["phase"], summed_phase(shop, kubectl)) == ("applied", "applied")


def test_a_step_that_waits_for_a_deletion_says_what_holds_it(shop: Shop, kubectl: Kubectl) -> None:
    metadata = {"name": "slow", "finalizers": [KEPT]}
    shop.work.write("deploy/slow.yaml", json.dumps({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}))
    shop.push("With slow")
    shop.cli("apply")
    body = {"apiVersion": "workflow.kubernetes.io/v1alpha1", "kind": "Rollout", "metadata": {"name": "r"}}
    steps = [{"name": "slow", "object": "slow.yaml", "action": "DeleteIfExist"}]
    shop.work.write("rollout.yaml", json.dumps({**body, "spec": {"groups": [{"name": "main", "steps": steps}]}}))
    shop.configure("rollout: rollout.yaml")
    shop.push("A rollout")
    with applying(shop) as run:
        until(lambda: "finalizers" in text(shop), lambda: text(shop))
        assert re.match(rf"shop: rolling out for \d+ \w+: main, slow: DeleteIfExist ConfigMap/{shop.namespace}/slow\n", text(shop))
        assert re.search(rf"DeleteIfExist ConfigMap/{shop.namespace}/slow under way: “ConfigMap/{shop.namespace}/slow {WAITS}", text(shop))
        let_go(shop, kubectl)
        assert run.wait() == 0
    assert text(shop).startswith("shop: applied"), text(shop)
