"""A report says what happened: what commands tell of runs, beside what kubectl then finds in the cluster."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from handler.model.names import state_name
from handler.state.lease_record import REQUESTED
from tests.e2e.api_proxy import Wired, is_object_write
from tests.e2e.cli.conftest import Shop
from tests.e2e.serve_process import ROOT
from tests.kubectl import Kubectl
from tests.patience import PATIENCE, until
from tests.rooms.cluster.faulty_proxy import Handler

NAMES = [f"c{number}" for number in range(5)]
RECORD = state_name("shop")


def apply(shop: Shop, kubeconfig: Path) -> subprocess.Popen[str]:
    """Start `anneal apply` in a process of its own."""
    command = [sys.executable, "-m", "handler", "-c", str(shop.cli.config), "apply", "shop", "-o", "json"]
    environ = {**os.environ, "KUBECONFIG": str(kubeconfig)}
    return subprocess.Popen(command, cwd=ROOT, env=environ, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def told(process: subprocess.Popen[str]) -> dict[str, Any]:
    """Return what it printed at its end."""
    out, err = process.communicate(timeout=PATIENCE)
    assert out, err
    found: dict[str, Any] = json.loads(out)
    return found


def there(shop: Shop, kubectl: Kubectl) -> set[str]:
    """Return the ConfigMaps of the test that live."""
    found = kubectl("get", "configmaps", "-n", shop.namespace)["items"]
    return {item["metadata"]["name"] for item in found} & {*NAMES}


def actions(ended: dict[str, Any]) -> dict[str, list[str]]:
    """Return the names of what was done, by action."""
    found: dict[str, list[str]] = {}
    for change in ended["changes"]:
        assert change["done"]
        found.setdefault(change["action"], []).append(change["object"].rpartition("/")[2])
    return {action: sorted(names) for action, names in found.items()}


def test_of_two_applies_at_once_the_lease_holder_reports_what_it_created(shop: Shop, kubectl: Kubectl, wired: Callable[[], Wired]) -> None:
    """The second asks while the first writes, so that the first looks once more, and finds nothing to do then."""
    wire, others = wired(), list[subprocess.Popen[str]]()

    def is_asked() -> bool:
        lease = kubectl("get", "lease", RECORD, "-n", shop.namespace)
        return REQUESTED in (lease["metadata"].get("annotations") or {})

    def ask(_: Handler) -> bool:
        others.append(apply(shop, shop.cli.kubeconfig))
        until(is_asked)
        return True

    wire.meet(1, ask, is_object_write)
    first = told(apply(shop, wire.kubeconfig))
    second = told(others[0])
    made = ["login", "one", "three", "two"]
    assert (first["outcome"], first["counts"], actions(first)) == ("applied", {"created": 4}, {"create": made})
    assert first["message"] == "4 objects written"
    assert (second["outcome"], second["counts"].get("created")) in {("unchanged", None), ("applied", None), ("busy", None)}
    runs = shop.cli.json("history")["runs"]
    assert sum(run["counts"].get("created", 0) for run in runs) == 4
    assert next(run["id"] for run in runs if run["counts"].get("created")) == first["run"]


def full(shop: Shop, kubectl: Kubectl, more: int) -> None:
    """Give the namespace a quota with room for so many ConfigMaps more than are there, and wait until it is counted."""
    there = len(kubectl("get", "configmaps", "-n", shop.namespace)["items"])
    hard = {"spec": {"hard": {"configmaps": str(there + more)}}}
    if kubectl.tried("get", "resourcequota", "tight", "-n", shop.namespace).returncode:
        kubectl.run("create", "quota", "tight", "-n", shop.namespace, f"--hard=configmaps={there + more}")
    else:
        kubectl.run("patch", "resourcequota", "tight", "-n", shop.namespace, "--type=merge", "-p", json.dumps(hard))
    until(lambda: kubectl("get", "resourcequota", "tight", "-n", shop.namespace)["status"].get("hard") == hard["spec"]["hard"])


def test_a_quota_with_room_for_one_of_five_fails_in_the_middle_and_what_was_written_is_told(shop: Shop, kubectl: Kubectl) -> None:
    shop.cli("apply")
    shop.declare("one", "two", "three", *NAMES)
    shop.push("Five more")
    full(shop, kubectl, 1)
    ended = shop.cli.json("apply", code=1)
    written = there(shop, kubectl)
    assert len(written) == 1, "each dry-run had room"
    assert (ended["outcome"], ended["code"], ended["who"]) == ("failed", "quota-exceeded", "operator")
    assert (ended["counts"], actions(ended)) == ({"created": 1}, {"create": sorted(written)})
    assert len(ended["problems"]) == 4
    for problem in ended["problems"]:
        assert problem["place"].startswith("deploy/c")
        assert f"ResourceQuota/{shop.namespace}/tight has no room: “exceeded quota: tight, requested: configmaps=1" in problem["message"]
        assert f"kubectl edit ResourceQuota/tight -n {shop.namespace}" in problem["fix"]
    (run, *_) = shop.cli.json("history")["runs"]
    assert (run["outcome"], run["counts"], run["id"], run["code"]) == ("failed", {"created": 1}, ended["run"], "quota-exceeded")
    assert run["changed"] == [f"ConfigMap/{shop.namespace}/{name} create" for name in written]
    state = shop.cli.json("status", "shop")["state"]
    assert (state["status"]["who"], state["status"]["counts"]) == ("operator", {"created": 1})

    again = shop.cli("apply", code=1)
    assert "no room" in again.stderr, "refused by its dry-run now"
    assert "created" not in again.stdout
    full(shop, kubectl, 4)
    assert shop.cli.json("apply")["counts"]["created"] == 4
    assert there(shop, kubectl) == {*NAMES}
