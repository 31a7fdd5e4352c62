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
from tests.e2e.cli.conftest import Shop, document
from tests.e2e.serve_process import PATIENCE, ROOT, until
from tests.kubectl import Kubectl
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


def plain(shop: Shop, kubectl: Kubectl, key: str) -> str:
    """Read a key of the record as people do."""
    return kubectl.run("get", "configmap", RECORD, "-n", shop.namespace, "-o", f"jsonpath={{.data.{key}}}")


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


def room(shop: Shop, kubectl: Kubectl) -> int:
    """Return for how many more ConfigMaps the quota has room, as its controller counts."""
    status = kubectl("get", "resourcequota", "tight", "-n", shop.namespace)["status"]
    return int(status["hard"]["configmaps"]) - int(status["used"]["configmaps"])


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


def test_a_quota_used_up_in_the_middle_runs_sync_fail_hooks_and_rolls_back(shop: Shop, kubectl: Kubectl) -> None:
    shop.configure("wait: {timeout: 2m}")
    old = shop.work.head()
    shop.cli("apply")
    shop.declare("one", "two", "three", *NAMES)
    tell = {"name": "tell", "annotations": {"argocd.argoproj.io/hook": "SyncFail"}}
    shop.work.write("deploy/tell.yaml", json.dumps(json.loads(document("Secret", "tell")) | {"metadata": tell}))
    new = shop.push("Five more")
    full(shop, kubectl, 1)
    ended = shop.cli.json("apply", code=1)
    assert (ended["outcome"], ended["code"], ended["who"]) == ("failed", "quota-exceeded", "operator")
    assert kubectl.has("secret", "tell", shop.namespace)
    assert len(there(shop, kubectl)) == 1

    shop.configure("wait: {timeout: 2m}\nrollback: {onFailure: true}")
    until(lambda: room(shop, kubectl) == 0)
    full(shop, kubectl, 1)
    ended = shop.cli.json("apply", code=1)
    assert (ended["outcome"], ended["commit"], ended["code"], ended["who"]) == ("rolled-back", old, "quota-exceeded", "operator")
    assert there(shop, kubectl) == set()
    assert [(run["outcome"], run["commit"]) for run in shop.cli.json("history")["runs"][:2]] == [("rolled-back", old), ("failed", new)]


def test_a_full_quota_is_the_operators_before_the_first_write(shop: Shop, kubectl: Kubectl) -> None:
    full(shop, kubectl, 0)
    ended = shop.cli.json("apply", code=1)
    assert (ended["code"], ended["who"], ended["counts"], ended["changes"]) == ("quota-exceeded", "operator", {}, [])
    assert len(ended["problems"]) == 3
    assert not kubectl.has("secret", "login", shop.namespace)


def test_an_object_deleted_for_a_recreate_that_exceeds_the_quota_is_reported(
    shop: Shop, kubectl: Kubectl, wired: Callable[[], Wired]
) -> None:
    def declare(value: str) -> None:
        body = {"kind": "ConfigMap", "apiVersion": "v1", "immutable": True, "data": {"value": value}}
        body["metadata"] = {"name": "c0", "annotations": {"anneal.dev/recreate": "allow"}}
        shop.work.write("deploy/c0.yaml", json.dumps(body))
        shop.push(f"Of value {value}")

    def fill(_: Handler) -> bool:
        """Take the room of what was deleted, once it is counted."""
        until(lambda: kubectl.tried("create", "configmap", "filler", "-n", shop.namespace).returncode == 0)
        return True

    declare("1")
    shop.cli("apply")
    full(shop, kubectl, 0)
    declare("2")
    wire = wired()
    wire.meet(1, fill, lambda method, path: method == "PATCH" and is_object_write(method, path) and "/c0" in path)
    ended = shop.cli.json("apply", "-y", code=1, kubeconfig=wire.kubeconfig)
    assert there(shop, kubectl) == set()
    assert (ended["code"], ended["counts"], actions(ended)) == ("quota-exceeded", {"pruned": 1}, {"prune": ["c0"]})
    assert ended["changes"][0]["reason"] == "was deleted to be made anew, and isn't yet"
    kubectl.run("delete", "configmap", "filler", "-n", shop.namespace)
    until(lambda: room(shop, kubectl) == 1)
    assert shop.cli.json("apply")["counts"]["created"] == 1
    assert there(shop, kubectl) == {"c0"}


def test_a_run_that_is_refused_in_the_middle_has_a_code_of_its_own(shop: Shop, kubectl: Kubectl) -> None:
    """Nothing is validated here: the ConfigMap of a later wave is refused when the others are there."""
    shop.configure("validate: none")
    shop.cli("apply")
    shop.declare("one", "two", "three", *NAMES)
    wave = {"annotations": {"argocd.argoproj.io/sync-wave": "5"}}
    body = json.loads(document("ConfigMap", "bad", data={"NO KEY/": "x"}))
    shop.work.write("deploy/bad.yaml", json.dumps(body | {"metadata": {"name": "bad", **wave}}))
    shop.push("One of them is bad")
    ended = shop.cli.json("apply", code=1)
    assert there(shop, kubectl) == {*NAMES}
    assert (ended["code"], ended["who"], ended["counts"]) == ("apply-failed", "author", {"created": 5})
    assert actions(ended) == {"create": NAMES}
    assert [problem["place"] for problem in ended["problems"]] == ["deploy/bad.yaml:1"]
    human = shop.cli("history", "-v").stdout
    assert f"ConfigMap/{shop.namespace}/c0 create" in human


def test_the_first_write_that_is_refused_is_no_apply_that_failed_in_the_middle(shop: Shop) -> None:
    shop.configure("validate: none")
    shop.work.remove("deploy")
    shop.work.write("deploy/bad.yaml", document("ConfigMap", "bad", data={"NO KEY/": "x"}))
    shop.push("Only a bad one")
    ended = shop.cli.json("apply", code=1)
    assert (ended["code"], ended["counts"], ended["changes"]) == ("plan-refused", {}, [])


def test_prunes_are_not_objects_written(shop: Shop, kubectl: Kubectl) -> None:
    shop.cli("apply")
    shop.declare("one", value="2")
    shop.push("Two of them go")
    ended = shop.cli.json("apply")
    assert (ended["message"], ended["counts"]) == ("1 object written, 2 pruned", {"configured": 1, "unchanged": 1, "pruned": 2})
    shop.declare(value="2")
    shop.push("The last goes, too")
    assert shop.cli.json("apply", "-y")["message"] == "1 object pruned"
    assert not kubectl.has("configmap", "one", shop.namespace)


def test_an_approval_and_a_rollback_are_called_so(shop: Shop, kubectl: Kubectl) -> None:
    shop.declare("one", *(f"n{number}" for number in range(13)))
    shop.push("Many")
    shop.cli("apply")
    shop.declare("one")
    shop.push("All but one go")
    held = shop.cli.json("apply", code=3)
    assert [change["done"] for change in held["changes"]] == [False] * 13
    approved = shop.cli.json("approve", "shop", held["held"]["id"])
    assert (approved["trigger"], approved["counts"]["pruned"]) == ("approval", 13)
    assert len(kubectl("get", "configmaps", "-n", shop.namespace, "-l", "applyset.kubernetes.io/part-of")["items"]) == 1
    assert shop.cli.json("rollback", "-y")["trigger"] == "rollback"
    assert shop.cli.json("unpin", code=3)["outcome"] == "held"
    back, approval, *_ = [run for run in shop.cli.json("history")["runs"] if run["outcome"] == "applied"]
    assert [run["trigger"] for run in (back, approval)] == ["rollback", "approval"]
    text = shop.cli("history").stdout
    assert f"rollback by {back['actor']}" in text
    assert f"approval by {approval['actor']}" in text
    assert "replay" not in text


# --- the record
def test_the_applied_commit_stands_in_the_record_as_plain_text(shop: Shop, kubectl: Kubectl) -> None:
    shop.cli("apply")
    url = shop.host.url_of(shop.work.directory.name)
    assert [plain(shop, kubectl, key) for key in ("commit", "repository", "path")] == [shop.work.head(), url, "deploy"]
    shop.declare("one", "two", "three", value="2")
    head = shop.push("Second")
    shop.cli("apply")
    assert plain(shop, kubectl, "commit") == head


def test_a_commit_that_somebody_wrote_into_the_record_is_not_believed(shop: Shop, kubectl: Kubectl) -> None:
    shop.cli("apply")

    def write(commit: str) -> None:
        change = json.dumps({"data": {"commit": commit}})
        kubectl.run("patch", "configmap", RECORD, "-n", shop.namespace, "--type=merge", "-p", change)

    write("main")
    refused = shop.cli("apply", code=1).stderr
    assert "data key `commit`: commit: expected 40 to 64 hex digits" in refused
    write("f" * 40)
    ended = shop.cli.json("apply")
    assert (ended["outcome"], ended["counts"]) == ("unchanged", {"unchanged": 4})
    assert plain(shop, kubectl, "commit") == shop.work.head()


def test_a_typo_in_the_url_of_a_first_run_is_corrected_in_the_configuration_alone(shop: Shop, kubectl: Kubectl) -> None:
    right = shop.host.url_of(shop.work.directory.name)
    shop.configure(repository=right.replace(".git", "-x.git"))
    assert shop.cli.json("apply", code=1)["outcome"] == "failed"
    assert (plain(shop, kubectl, "repository"), plain(shop, kubectl, "commit")) == ("", "")
    assert shop.cli.json("history")["runs"][0]["outcome"] == "failed"
    shop.configure(repository=right)
    assert "nothing differs" in shop.cli("retarget").stdout
    assert shop.cli.json("apply")["counts"] == {"created": 4}
    assert plain(shop, kubectl, "repository") == right
    shop.configure(repository=right.replace(".git", "-x.git"))
    assert "retarget shop" in shop.cli("apply", code=1).stderr, "now something is applied"


def test_a_first_run_that_begun_to_apply_has_a_repository(shop: Shop, kubectl: Kubectl) -> None:
    shop.configure("validate: none")
    shop.work.write("deploy/zz.yaml", document("ConfigMap", "bad", data={"NO KEY/": "x"}))
    shop.push("One is bad")
    shop.cli("apply", code=1)
    url = shop.host.url_of(shop.work.directory.name)
    assert (plain(shop, kubectl, "repository"), plain(shop, kubectl, "commit")) == (url, "")


def test_the_plan_of_a_run_whose_record_was_lost_is_all_that_it_does(shop: Shop, kubectl: Kubectl) -> None:
    """A recovery only finds what git doesn't declare and says so; the next plan shows that it goes, and the next run prunes it."""
    shop.cli("apply")
    kubectl.run("delete", "configmap", RECORD, "-n", shop.namespace)
    kubectl.run("delete", "configmap", "two", "-n", shop.namespace)
    shop.declare("one", "two", *NAMES)
    shop.push("Three goes, five come")
    kept = "1 object that git doesn't declare is kept, for the state was missing"
    kept += ": anneal plan shop shows after this run what the next one prunes"
    assert f"note: {kept}" in shop.cli("plan", "--exit-code", code=2).stdout
    ended = shop.cli.json("apply")
    assert ended["counts"] == {"created": 6, "unchanged": 2, "skipped": 1}
    assert actions(ended) == {"create": [*NAMES, "two"]}
    assert (ended["outcome"], ended["message"]) == ("applied", f"6 objects written; {kept}")
    assert kubectl.run("get", "configmap", "three", "-n", shop.namespace, "-o", "name")
    assert f"- prune ConfigMap/{shop.namespace}/three" in shop.cli("plan", "--exit-code", code=2).stdout
    ended = shop.cli.json("apply")
    assert (ended["counts"], ended["message"]) == ({"unchanged": 8, "pruned": 1}, "1 object pruned")
    assert not kubectl.run("get", "configmap", "three", "-n", shop.namespace, "-o", "name", "--ignore-not-found")


def test_the_end_of_a_recovery_reports_what_it_has_kept(shop: Shop, kubectl: Kubectl) -> None:
    shop.cli("apply")
    kubectl.run("delete", "configmap", RECORD, "-n", shop.namespace)
    shop.declare("one")
    shop.push("Two and three go")
    assert "2 kept" in shop.cli("plan", "--exit-code").stdout
    ended = shop.cli("apply", "-y").stdout.splitlines()[-1]
    assert "2 skipped; 2 objects that git doesn't declare are kept, for the state was missing: anneal plan shop" in ended


def test_a_recovery_that_leaves_nothing_to_do_is_no_unchanged_run(shop: Shop, kubectl: Kubectl) -> None:
    shop.cli("apply")
    kubectl.run("delete", "configmap", RECORD, "one", "two", "-n", shop.namespace)
    ended = shop.cli("apply").stdout.splitlines()
    assert f"ConfigMap/{shop.namespace}/one created" in ended
    assert ": 2 created, 2 unchanged" in ended[-1]
