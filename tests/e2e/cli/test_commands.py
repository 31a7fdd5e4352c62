"""The command line against a real cluster and a real git host: what people type, what they read, what a script gets."""

from __future__ import annotations

import json
import shlex
from base64 import b64encode
from dataclasses import replace
from pathlib import Path

from handler.cluster.api import Api
from handler.cluster.connect import connect
from handler.cluster.own_objects import OwnObjects
from handler.config.settings import Cluster
from handler.state.lease import LeaseLock
from tests.e2e.cli.conftest import SECRET, Shop, document
from tests.kubectl import Kubectl


def test_a_target_is_checked_planned_applied_and_found_unchanged(shop: Shop, kubectl: Kubectl) -> None:
    checked = shop.cli("check").stdout.splitlines()
    subjects = ("configuration", "webhooks", "credentials", "queue", "git", "cluster", "render", "rights", "plan")
    assert [line.split()[:2] for line in checked[1:]] == [[subject, "ok"] for subject in subjects]
    assert "4 to create" in checked[-1]
    assert "anneal apply shop" in shop.cli("status", "shop").stdout
    assert shop.cli("plan", "--exit-code", code=2).stdout.splitlines()[-1].endswith("4 to create")
    assert kubectl("get", "cm,secret", "-n", shop.namespace, "-l", "applyset.kubernetes.io/part-of")["items"] == [], "nothing was written"
    applied = shop.cli("apply").stdout.splitlines()
    assert f"ConfigMap/{shop.namespace}/one created" in applied
    assert ": applied " in applied[-1]
    assert "unchanged" in shop.cli("apply").stdout
    assert shop.cli("plan", "--exit-code").stdout.splitlines() == [f"shop at {shop.work.head()[:12]}: 4 unchanged"]


def test_a_plan_shows_each_field_live_and_declared_and_who_owns_it(shop: Shop, kubectl: Kubectl) -> None:
    shop.cli("apply")
    kubectl.run("patch", "cm", "one", "-n", shop.namespace, "--type=merge", "-p", '{"data":{"value":"2"}}')
    kubectl.run("patch", "secret", "login", "-n", shop.namespace, "--type=merge", "-p", '{"stringData":{"password":"other"}}')
    text = shop.cli("plan").stdout
    assert "    data.value: 2 → 1  (live by kubectl-patch)" in text
    assert "    data.password: *** → ***  (live by kubectl-patch)" in text
    found = shop.cli.json("plan")
    assert len(found["digest"]) == 64
    changed = {change["object"]: change for stage in found["stages"] for change in stage if change["action"] == "update"}
    field = {"path": "data.value", "declared": "1", "live": "2", "manager": "kubectl-patch"}
    assert changed[f"ConfigMap/{shop.namespace}/one"]["fields"] == [field]
    assert shop.cli.json("apply")["counts"] == {"configured": 2, "unchanged": 2}


def test_a_held_run_names_the_approve_command(shop: Shop, kubectl: Kubectl) -> None:
    shop.configure("prune: {holdAbove: {count: 1, fraction: 0.1}}")
    shop.cli("apply")
    shop.declare("one")
    shop.push("Two and three go")
    held = shop.cli("apply", code=3).stdout
    (command,) = [line for line in held.splitlines() if line.startswith("allow exactly that: ")]
    approve = command.removeprefix("allow exactly that: anneal ").split()
    assert f"prune    ConfigMap/{shop.namespace}/two" in held
    assert shop.cli("status", "shop").stdout.splitlines()[2].strip() == f"anneal {' '.join(approve)}"
    assert "can't approve 0123" in shop.cli("approve", "shop", "0123", code=1).stderr
    assert "name what is approved" in shop.cli("approve", code=64).stderr
    found = shop.cli.json("status", "shop")
    assert (found["next"]["command"], found["state"]["held"]["id"]) == (f"anneal {' '.join(approve)}", approve[-1])
    assert f"ConfigMap/{shop.namespace}/two pruned" in shop.cli("approve", "-y").stdout
    assert f"  ConfigMap/{shop.namespace}/two prune" in shop.cli("history", "-v").stdout.splitlines()
    assert "nothing is held" in shop.cli(*approve, code=1).stderr
    assert not kubectl.has("cm", "two", shop.namespace)
    assert [run["outcome"] for run in shop.cli.json("history")["runs"]] == ["applied", "held", "applied"]


def test_a_suspended_target_waits_until_it_is_resumed(shop: Shop) -> None:
    shop.cli("suspend", "--reason", "release freeze", "--until", "2h")
    status = shop.cli("status", "shop").stdout
    assert "anneal resume shop" in status
    assert "release freeze" in status
    assert "release freeze" in shop.cli("apply", code=4).stderr
    assert "4 to create" in shop.cli("plan").stdout, "a plan writes nothing, so it may be looked at"
    shop.cli("resume", "--all")
    assert shop.cli.json("apply")["outcome"] == "applied"
    assert "was not suspended" in shop.cli("resume").stdout


def test_a_changed_repository_url_is_refused_until_retarget(shop: Shop) -> None:
    shop.cli("apply")
    before = shop.host.url_of(shop.work.directory.name)
    moved = before.replace("127.0.0.1", "localhost")
    shop.configure(repository=moved)
    assert "anneal retarget shop" in shop.cli("apply", code=1).stderr
    assert shop.cli("status", "shop").stdout.splitlines()[2].strip() == "anneal retarget shop"
    assert moved in shop.cli("retarget", code=1).stdout, "nobody can be asked here"
    refused = shop.cli("retarget", "-y", "--repository", moved, code=1)
    assert "the record may be another configuration's" in refused.stderr
    assert f"repository: {before} → {moved}" in refused.stdout
    shop.cli("retarget", "-y", "--repository", before)
    assert shop.cli.json("apply")["outcome"] == "unchanged"
    assert "nothing differs" in shop.cli("retarget").stdout


def test_the_prune_command_deletes_what_a_target_without_prune_has_left(shop: Shop, kubectl: Kubectl) -> None:
    shop.configure("prune: {enabled: false}")
    shop.cli("apply")
    shop.declare("one", "two")
    shop.push("Three goes")
    assert shop.cli.json("apply")["counts"] == {"unchanged": 3, "skipped": 1}
    assert "anneal prune shop --dry-run" in shop.cli("status", "shop").stdout
    assert f"- prune ConfigMap/{shop.namespace}/three" in shop.cli("prune", "--dry-run").stdout
    assert f"ConfigMap/{shop.namespace}/three pruned" in shop.cli("prune").stdout
    assert not kubectl.has("cm", "three", shop.namespace)
    assert shop.cli.json("apply")["counts"] == {"unchanged": 3}


def test_applying_an_older_commit_pins_until_unpin(shop: Shop) -> None:
    first = shop.work.head()
    shop.cli("apply")
    shop.declare("one", "two", "three", value="2")
    shop.push("Second")
    shop.cli("apply")
    assert shop.cli.json("apply", "--commit", first)["counts"] == {"configured": 3, "unchanged": 1}
    assert "anneal unpin shop" in shop.cli("status", "shop").stdout
    assert shop.cli.json("unpin")["commit"] == shop.work.head()
    rows = shop.cli("history").stdout.splitlines()
    assert rows[0].split() == ["WHEN", "OUTCOME", "COMMIT", "SUBJECT", "BY", "CHANGES", "SECONDS"]
    assert [line.split()[4] for line in rows[1:]] == [shop.work.head()[:12], first[:12], shop.work.head()[:12], first[:12]]
    assert len(shop.cli("history", "-n", "2").stdout.splitlines()) == 3


def test_rollback_shows_its_plan_and_restores_the_deployment_before(shop: Shop, kubectl: Kubectl) -> None:
    first = shop.work.head()
    shop.cli("apply")
    shop.declare("one", "two", "three", "four")
    shop.push("Four comes")
    shop.cli("apply")
    assert f"- prune ConfigMap/{shop.namespace}/four" in shop.cli("rollback", "--dry-run").stdout
    assert kubectl.has("cm", "four", shop.namespace)
    done = shop.cli.json("rollback")
    assert (done["commit"], done["counts"]["pruned"]) == (first, 1)
    assert not kubectl.has("cm", "four", shop.namespace)
    assert "anneal unpin shop" in shop.cli("status", "shop").stdout
    assert shop.cli.json("rollback", "--to", shop.work.head()[:12])["commit"] == shop.work.head()
    refused = shop.cli("rollback", "--to", "abc123abc123", code=64)
    assert "none of its history begins so" in refused.output


def test_unlock_frees_the_lease_of_a_dead_worker(shop: Shop, kubectl: Kubectl) -> None:
    assert "it was free" in shop.cli("unlock").stdout
    spec = {"holderIdentity": "dead_1", "leaseDurationSeconds": 1, "renewTime": "2020-01-01T00:00:00.000000Z", "leaseTransitions": 1}
    metadata = {"name": "anneal-shop", "namespace": shop.namespace}
    kubectl.apply({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": metadata, "spec": spec})
    assert shop.cli.json("unlock")["freed"] == "dead_1"


def test_unlock_refuses_the_lease_of_a_living_worker(shop: Shop) -> None:
    shop.configure(top="leaseDuration: 9s")
    objects = OwnObjects(Api(connect(Cluster(), kubeconfig=str(shop.cli.kubeconfig), environ={})))
    with LeaseLock(objects, shop.namespace, "anneal-shop", "alive", 9.0).acquire():
        assert "renews it" in shop.cli("unlock", code=4).stderr
        status = shop.cli("status", "shop").stdout
    assert "alive_" in status


def test_a_failing_commit_is_reported_as_its_authors(shop: Shop) -> None:
    shop.work.write("deploy/bad.yaml", document("ConfigMap", "Not A Name"))
    shop.push("Broken")
    failed = shop.cli("apply", code=1).stderr
    assert "deploy/bad.yaml:1: " in failed
    status = shop.cli("status", "shop").stdout
    assert "fix the commit as said below, and push" in status
    assert "deploy/bad.yaml:1" in status
    assert "render         failed   deploy/bad.yaml:1: " in shop.cli("check", code=1).stdout


def test_check_goes_on_after_a_failed_check(shop: Shop) -> None:
    shop.configure(repository=shop.host.url_of("missing"))
    found = {row["subject"]: row["verdict"] for row in shop.cli.json("check", code=1)["checks"] if row["target"]}
    assert found == {"git": "failed", "cluster": "ok", "rights": "ok", "plan": "skipped"}


def test_a_directory_is_applied_without_a_configuration(shop: Shop, kubectl: Kubectl) -> None:
    directory = shop.work.directory / "deploy"
    flags = ("apply", "-f", str(directory), "--name", "local", "-n", shop.namespace, "--state-namespace", shop.namespace)
    shop.cli.config.unlink()
    first = shop.cli.json(*flags)
    assert (first["commit"], first["counts"]) == (shop.work.head(), {"created": 4})
    shop.work.remove("deploy/three.yaml")
    changed = shop.cli(*flags)
    assert "differs from commit" in changed.stderr
    assert kubectl("get", "cm", "three", "-n", shop.namespace), "nothing is deleted without --prune"
    assert shop.cli.json(*flags, "--prune")["counts"] == {"unchanged": 3, "pruned": 1}
    assert shop.cli.json(*flags, "--prune")["counts"] == {"unchanged": 3}


def test_deletions_of_a_directory_are_held_and_approved_like_any_other(shop: Shop) -> None:
    directory = shop.work.directory / "deploy"
    flags = ("apply", "-f", str(directory), "--name", "local", "-n", shop.namespace, "--state-namespace", shop.namespace, "--prune")
    shop.declare("one", *(f"more-{number}" for number in range(11)))
    shop.push("Eleven more")
    shop.cli(*flags)
    shop.declare("one")
    held = shop.cli(*flags, code=3).stdout.splitlines()[-2].removeprefix("allow exactly that: anneal ")
    assert held.startswith(f"apply -f {directory} --name local ")
    assert "2 unchanged, 11 pruned" in shop.cli(*shlex.split(held)).stdout


def test_a_directory_without_any_repository_has_a_name_too(shop: Shop, tmp_path: Path) -> None:
    (tmp_path / "plain").mkdir()
    (tmp_path / "plain" / "cm.yaml").write_text(document("ConfigMap", "plain"))
    flags = ("apply", "-f", str(tmp_path / "plain"), "--name", "plain", "-n", shop.namespace, "--state-namespace", shop.namespace)
    first, second = shop.cli.json(*flags), shop.cli.json(*flags)
    assert first["commit"] == second["commit"]
    assert second["outcome"] == "unchanged"


def test_a_directory_is_validated_first_unless_that_is_left_out(shop: Shop, tmp_path: Path, kubectl: Kubectl) -> None:
    (tmp_path / "plain").mkdir()
    (tmp_path / "plain" / "good.yaml").write_text(document("ConfigMap", "plain-good"))
    (tmp_path / "plain" / "bad.yaml").write_text(document("Service", "plain-bad", spec={"ports": [{"port": 99_999}]}))
    flags = ("apply", "-f", str(tmp_path / "plain"), "--name", "plain", "-n", shop.namespace, "--state-namespace", shop.namespace)

    def written() -> bool:
        return "plain-good" in [item["metadata"]["name"] for item in kubectl("get", "cm", "-n", shop.namespace)["items"]]

    for validate in ((), ("--validate", "server")):
        assert "99999" in shop.cli(*flags, *validate, code=1).stderr
        assert not written()
    assert "99999" in shop.cli(*flags, "--validate", "none", code=1).stderr
    assert written()
    assert "--validate goes with -f" in shop.cli("apply", "--validate", "none", code=64).stderr


def test_render_masks_secrets_unless_told(shop: Shop) -> None:
    text = shop.cli("render", kubeconfig=Path("/nonexistent")).stdout  # no cluster is asked
    assert 'password: "***"' in text
    assert text.count("---\n# deploy/") == 4
    items = shop.cli.json("render")["items"]
    assert [item["object"]["metadata"]["name"] for item in items] == ["one", "login", "three", "two"]
    assert b64encode(SECRET.encode()).decode() in shop.cli("render", "--show-secrets").stdout


def test_render_calls_each_object_as_a_rollout_may(shop: Shop) -> None:
    text = shop.cli("render", "--rollout").stdout
    assert text.count("\n") == 1
    found = json.loads(text)
    names = {key: body["metadata"]["name"] for key, body in found["objects"].items()}
    assert names == {"one.yaml": "one", "secret.yaml": "login", "three.yaml": "three", "two.yaml": "two"}
    assert (found["rollout"], found["objects"]["secret.yaml"]["data"]) == (None, {"password": "***"})


def test_doctor_finds_this_machine_well(shop: Shop) -> None:
    found = {row["subject"]: row["verdict"] for row in shop.cli.json("doctor")["checks"]}
    assert found.keys() >= {"python", "packages", "sandbox", "walls", "configuration", "webhooks", "git", "clock", "rights", "plan"}
    elsewhere = ("server", "nix")  # which are not of every machine
    assert {verdict for subject, verdict in found.items() if subject not in elsewhere} == {"ok"}


def test_doctor_needs_no_configuration_but_names_what_is_wrong_in_one(shop: Shop) -> None:
    shop.configure(top="webhooks: {github: {secrets: [{env: WEAK}]}}")
    weak = replace(shop.cli, environ={"WEAK": "short"})
    found = {row["subject"]: row for row in weak.json("doctor", code=1)["checks"]}
    assert "is shorter than 16 characters" in found["webhooks"]["problems"][0]["message"]
    shop.cli.config.unlink()
    bare = replace(shop.cli, environ={"ANNEAL_CONFIG": ""})
    text = bare("doctor").stdout
    assert "configuration  warning  found neither" in text
    assert "clock          ok       agrees" in text
    assert "cluster        warning  " in bare("doctor", kubeconfig=Path("/nonexistent")).stdout


def test_a_prune_that_is_held_is_allowed_by_the_command_that_status_names_too(shop: Shop, kubectl: Kubectl) -> None:
    """Where the settings prune nothing, no other run would delete what `anneal approve` allows."""
    shop.configure("prune: {enabled: false, holdAbove: {count: 0, fraction: 0}}")
    shop.cli("apply", "shop")
    shop.declare("one", "two")
    shop.push("Without three")
    planned = shop.cli("prune", "shop", "--dry-run").stdout
    held = shop.cli("prune", "shop", "-y", code=3).stdout
    (command,) = (line.partition(": ")[2] for line in held.splitlines() if line.startswith("allow exactly that: "))
    assert command.startswith("anneal prune shop --approve ")
    assert f"allow exactly that: anneal prune shop, then {command}" in planned, "a dry run holds nothing"
    assert command in shop.cli("status", "shop").stdout
    assert command in shop.cli("approve", "shop", "-y", code=1).stderr
    assert kubectl.has("configmap", "three", shop.namespace)
    shop.cli(*command.split()[1:])
    assert not kubectl.has("configmap", "three", shop.namespace)
