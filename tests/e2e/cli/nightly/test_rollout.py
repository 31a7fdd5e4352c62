"""`anneal rollout` against a real cluster: the tree as text and JSON, followed to its end, beside `anneal status`."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

from tests.e2e.cli.conftest import Shop
from tests.kubectl import Kubectl
from tests.patience import PATIENCE, until

NEVER = {"path": "{.data.value}", "name": "changed", "value": {"static": "another"}}
SEEN = {"path": "{.metadata.labels.seen}", "name": "seen", "value": {"static": "yes"}}
"""Met when the test says so."""


def rolled(shop: Shop, *, fails: bool = False, timeout: int = 2, met: dict[str, Any] = NEVER) -> str:
    """Push a Rollout over the shop's ConfigMaps, the first of them with a check; it is never met if it `fails`, or may."""
    expected = {"fieldComparisons": {"expectedValues": [met], "timeout": f"{timeout}s", "pollInterval": "1s"}}
    slow = {"name": "one", "object": "one.yaml", "action": "CreateOrUpdate", "success": [expected], "continueOnError": not fails}
    steps: list[dict[str, Any]] = [slow, {"name": "two", "object": "two.yaml", "action": "CreateOrUpdate"}]
    spec = {"groups": [{"name": "all", "steps": steps}]}
    body = {"apiVersion": "workflow.kubernetes.io/v1alpha1", "kind": "Rollout", "metadata": {"name": "r"}, "spec": spec}
    shop.work.write("rollout.yaml", json.dumps(body))
    shop.configure("rollout: rollout.yaml")
    return shop.push("A rollout")


def test_a_target_without_a_rollout_says_so(shop: Shop) -> None:
    shop.cli("apply")
    for shown in (shop.cli("rollout").stdout, shop.cli("rollout", "--watch").stdout):
        assert shown.startswith("shop has no rollout on record; how it stands:\nshop: applied\n")
    found = shop.cli.json("rollout")
    assert (found["rollout"], found["waiting"], found["health"]["state"]) == (None, None, "healthy")


def test_a_rollout_is_shown_as_a_tree_and_in_status(shop: Shop) -> None:
    sha = rolled(shop)
    shop.cli("apply")
    lines = shop.cli("rollout", "shop").stdout.splitlines()
    assert lines[0].startswith(f"rollout of {sha[:12]}: done in ")
    assert lines[1] == "  all"
    assert lines[2].startswith(f"    ! one  CreateOrUpdate ConfigMap/{shop.namespace}/one: failed in ")
    assert '{.data.value} is "1", expected "another"' in lines[3]
    assert lines[4].startswith(f"    + two  CreateOrUpdate ConfigMap/{shop.namespace}/two: done in ")
    assert "1 of them failed and passed over" in shop.cli("status", "shop").stdout
    found = shop.cli.json("rollout")["rollout"]
    assert [(step["step"], step["outcome"]) for step in found["steps"]] == [("one", "failed"), ("two", "done")]
    assert "\x1b" not in "\n".join(lines)


def test_a_failed_rollout_is_a_failure(shop: Shop) -> None:
    rolled(shop, fails=True)
    shop.cli("apply", code=1)
    assert "failed at all, one" in shop.cli("status", "shop").stdout
    assert shop.cli("rollout", code=1).stdout.splitlines()[-1].strip() == f". two  CreateOrUpdate ConfigMap/{shop.namespace}/two: pending"


def test_a_rolled_back_rollout_is_a_failure_with_its_cause(shop: Shop) -> None:
    rolled(shop, timeout=1)
    shop.cli("apply")
    good = shop.cli.json("status")["targets"][0]["commit"]
    bad = rolled(shop, fails=True, timeout=1)
    shop.configure("rollout: rollout.yaml\nrollback: {onFailure: true}")
    shop.cli("apply", code=1)
    lines = shop.cli("rollout", "--watch", code=1).stdout.splitlines()
    assert lines[-2].startswith(f"rollout of {good[:12]}: done in ")
    assert lines[-1].startswith(f"rollback: {bad[:12]} failed: ")


def test_a_rollout_that_goes_on_is_followed_to_its_end(shop: Shop, kubectl: Kubectl) -> None:
    """The run is another process's, as it always is where a person watches."""
    rolled(shop, timeout=600, met=SEEN)
    environ = {**os.environ, "ANNEAL_CONFIG": str(shop.cli.config), "KUBECONFIG": str(shop.cli.kubeconfig)}
    with subprocess.Popen([sys.executable, "-m", "handler", "apply"], env=environ, stdout=subprocess.DEVNULL) as run:
        until(lambda: "under way" in shop.cli("rollout").stdout)
        watch = [sys.executable, "-u", "-m", "handler", "rollout", "--watch"]
        with subprocess.Popen(watch, env=environ, stdout=subprocess.PIPE, text=True) as watching:
            assert watching.stdout
            told = [watching.stdout.readline()]
            kubectl.run("label", "configmap", "one", "-n", shop.namespace, "seen=yes")
            told += watching.stdout.read().splitlines()
            assert watching.wait(PATIENCE) == 0
        assert run.wait(PATIENCE) == 0
    assert told[0].startswith(f"all, one: CreateOrUpdate ConfigMap/{shop.namespace}/one under way")
    assert any(line.startswith(f"all, two: CreateOrUpdate ConfigMap/{shop.namespace}/two done") for line in told)
    assert ": done in " in told[-1]
