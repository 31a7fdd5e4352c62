"""The commands that deploy and decide: what people type, what they read, what a script gets."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.fakes.apiserver import Call
from tests.fakes.apiserver.connection import Reply
from tests.fakes.apiserver.server import Asked
from tests.fakes.git_host import GitHost
from tests.unit.cli.in_memory_cli import URL, CliShop, config_map, document
from tests.unit.engine.in_memory_shop import MERGE, Body

pytestmark = pytest.mark.slow

LEASES = "/apis/coordination.k8s.io/v1/namespaces/shop/leases"
MOVED = "https://git.example.com/acme/moved.git"


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> CliShop:
    return CliShop.of(tmp_path, monkeypatch)


def allowing(text: str) -> str:
    """Return the command that a held run prints."""
    (command,) = (line.partition(": ")[2] for line in text.splitlines() if line.startswith("allow exactly that: "))
    return command


def test_a_plan_shows_each_field_live_and_declared_and_who_owns_it(shop: CliShop) -> None:
    shop.cli("apply")
    shop.hands.patch(config_map("one"), {"data": {"value": "2"}}, "kubectl-patch")
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "login", "namespace": "shop"}}
    shop.hands.patch(secret, {"data": {"password": "b3RoZXI="}, "stringData": None}, "kubectl-patch")
    text = shop.cli("plan").stdout
    assert "    data.value: 2 → 1  (live by kubectl-patch)" in text
    assert "    data.password: *** → ***  (live by kubectl-patch)" in text
    found = shop.json("plan")
    assert len(found["digest"]) == 64
    changed = {change["object"]: change for stage in found["stages"] for change in stage if change["action"] == "update"}
    field = {"path": "data.value", "declared": "1", "live": "2", "manager": "kubectl-patch"}
    assert changed["ConfigMap/shop/one"]["fields"] == [field]
    assert shop.json("apply")["counts"] == {"configured": 2, "unchanged": 2}


def test_a_held_run_names_the_approve_command(shop: CliShop) -> None:
    shop.configure("prune: {holdAbove: {count: 1, fraction: 0.1}}")
    shop.cli("apply")
    shop.declare("one")
    shop.push()
    held = shop.cli("apply", code=3).stdout
    approve = allowing(held).removeprefix("anneal ").split()
    assert "prune    ConfigMap/shop/two" in held
    assert shop.cli("status", "shop").stdout.splitlines()[2].strip() == f"anneal {' '.join(approve)}"
    assert "can't approve 0123" in shop.cli("approve", "shop", "0123", code=1).stderr
    assert "name what is approved" in shop.cli("approve", code=64).stderr
    found = shop.json("status", "shop")
    assert (found["next"]["command"], found["state"]["held"]["id"]) == (f"anneal {' '.join(approve)}", approve[-1])
    assert "ConfigMap/shop/two pruned" in shop.cli("approve", "-y").stdout
    assert "  ConfigMap/shop/two prune" in shop.cli("history", "-v").stdout.splitlines()
    assert "nothing is held" in shop.cli(*approve, code=1).stderr
    assert not shop.has("two")
    assert [run["outcome"] for run in shop.json("history")["runs"]] == ["applied", "held", "applied"]


def test_a_suspended_target_waits_until_it_is_resumed(shop: CliShop) -> None:
    shop.cli("suspend", "--reason", "release freeze", "--until", "2h")
    status = shop.cli("status", "shop").stdout
    assert "anneal resume shop" in status
    assert "release freeze" in status
    assert "release freeze" in shop.cli("apply", code=4).stderr
    assert "4 to create" in shop.cli("plan").stdout, "a plan writes nothing, so it may be looked at"
    shop.cli("resume", "--all")
    assert shop.json("apply")["outcome"] == "applied"
    assert "was not suspended" in shop.cli("resume").stdout


def test_a_changed_repository_url_is_refused_until_retarget(shop: CliShop) -> None:
    shop.cli("apply")
    shop.hosts[MOVED] = shop.host
    shop.configure(repository=MOVED)
    assert "anneal retarget shop" in shop.cli("apply", code=1).stderr
    assert shop.cli("status", "shop").stdout.splitlines()[2].strip() == "anneal retarget shop"
    assert MOVED in shop.cli("retarget", code=1).stdout, "nobody can be asked here"
    refused = shop.cli("retarget", "-y", "--repository", MOVED, code=1)
    assert "the record may be another configuration's" in refused.stderr
    assert f"repository: {URL} → {MOVED}" in refused.stdout
    shop.cli("retarget", "-y", "--repository", URL)
    assert shop.json("apply")["outcome"] == "unchanged"
    assert "nothing differs" in shop.cli("retarget").stdout


def test_a_typo_in_the_url_of_a_first_run_is_corrected_in_the_configuration_alone(shop: CliShop) -> None:
    shop.hosts[MOVED] = GitHost(down=True)
    shop.configure(repository=MOVED)
    assert shop.json("apply", code=1)["outcome"] == "failed"
    assert shop.json("history")["runs"][0]["outcome"] == "failed"
    shop.configure()
    assert "nothing differs" in shop.cli("retarget").stdout
    assert shop.json("apply")["counts"] == {"created": 4}
    shop.configure(repository=MOVED)
    assert "retarget shop" in shop.cli("apply", code=1).stderr, "now something is applied"


def test_the_prune_command_deletes_what_a_target_without_prune_has_left(shop: CliShop) -> None:
    shop.configure("prune: {enabled: false}")
    shop.cli("apply")
    shop.declare("one", "two")
    shop.push()
    assert shop.json("apply")["counts"] == {"unchanged": 3, "skipped": 1}
    assert "anneal prune shop --dry-run" in shop.cli("status", "shop").stdout
    assert "- prune ConfigMap/shop/three" in shop.cli("prune", "--dry-run").stdout
    assert "ConfigMap/shop/three pruned" in shop.cli("prune").stdout
    assert not shop.has("three")
    assert shop.json("apply")["counts"] == {"unchanged": 3}


def test_a_prune_that_is_held_is_allowed_by_the_command_that_status_names_too(shop: CliShop) -> None:
    """Where the settings prune nothing, no other run would delete what `anneal approve` allows."""
    shop.configure("prune: {enabled: false, holdAbove: {count: 0, fraction: 0}}")
    shop.cli("apply", "shop")
    shop.declare("one", "two")
    shop.push()
    planned = shop.cli("prune", "shop", "--dry-run").stdout
    command = allowing(shop.cli("prune", "shop", "-y", code=3).stdout)
    assert command.startswith("anneal prune shop --approve ")
    assert f"allow exactly that: anneal prune shop, then {command}" in planned, "a dry run holds nothing"
    assert command in shop.cli("status", "shop").stdout
    assert command in shop.cli("approve", "shop", "-y", code=1).stderr
    assert shop.has("three")
    shop.cli(*command.split()[1:])
    assert not shop.has("three")


def test_applying_an_older_commit_pins_until_unpin(shop: CliShop) -> None:
    first = shop.host.head
    shop.cli("apply")
    shop.declare("one", "two", "three", value="2")
    second = shop.push()
    shop.cli("apply")
    assert shop.json("apply", "--commit", first)["counts"] == {"configured": 3, "unchanged": 1}
    assert "anneal unpin shop" in shop.cli("status", "shop").stdout
    assert shop.json("unpin")["commit"] == second
    rows = shop.cli("history").stdout.splitlines()
    assert rows[0].split() == ["WHEN", "OUTCOME", "COMMIT", "SUBJECT", "BY", "CHANGES", "SECONDS"]
    assert [line.split()[4] for line in rows[1:]] == [second[:12], first[:12], second[:12], first[:12]]
    assert len(shop.cli("history", "-n", "2").stdout.splitlines()) == 3


def test_rollback_shows_its_plan_and_restores_the_deployment_before(shop: CliShop) -> None:
    first = shop.host.head
    shop.cli("apply")
    shop.declare("one", "two", "three", "four")
    second = shop.push()
    shop.cli("apply")
    assert "- prune ConfigMap/shop/four" in shop.cli("rollback", "--dry-run").stdout
    assert shop.has("four")
    done = shop.json("rollback")
    assert (done["commit"], done["counts"]["pruned"]) == (first, 1)
    assert not shop.has("four")
    assert "anneal unpin shop" in shop.cli("status", "shop").stdout
    assert shop.json("rollback", "--to", second[:12])["commit"] == second
    refused = shop.cli("rollback", "--to", "abc123abc123", code=64)
    assert "none of its history begins so" in refused.output


def leased(shop: CliShop, holder: str, renewed: str) -> Body:
    spec = {"holderIdentity": holder, "leaseDurationSeconds": 1, "renewTime": renewed, "leaseTransitions": 1}
    metadata = {"name": "anneal-shop", "namespace": "shop"}
    body = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": metadata, "spec": spec}
    return shop.hands.server.must(Asked("POST", f"{LEASES}", {}, body, "", ""))


def test_unlock_frees_the_lease_of_a_dead_worker(shop: CliShop) -> None:
    assert "it was free" in shop.cli("unlock").stdout
    leased(shop, "dead_1", "2020-01-01T00:00:00.000000Z")
    assert shop.json("unlock")["freed"] == "dead_1"


def test_unlock_refuses_the_lease_of_a_living_worker(shop: CliShop) -> None:
    leased(shop, "alive_1", "2026-01-01T00:00:00.000000Z")

    def renews(call: Call, do: Callable[[], Reply]) -> Reply:
        reply = do()
        if call.asked.path == f"{LEASES}/anneal-shop" and call.asked.method == "GET":
            later = {"spec": {"renewTime": f"2026-01-01T00:00:{len(shop.asked):02}.000000Z"}}
            shop.hands.server.must(Asked("PATCH", f"{LEASES}/anneal-shop", {"fieldManager": "anneal"}, later, MERGE, ""))
        return reply

    shop.hands.meet = renews
    assert "renews it" in shop.cli("unlock", code=4).stderr
    assert "alive_1" in shop.cli("status", "shop").stdout


def test_a_failing_commit_is_reported_as_its_authors(shop: CliShop) -> None:
    shop.declare("one", bad=document("ConfigMap", "Not A Name"))
    shop.push()
    assert "deploy/bad.yaml:1: " in shop.cli("apply", code=1).stderr
    status = shop.cli("status", "shop").stdout
    assert "fix the commit as said below, and push" in status
    assert "deploy/bad.yaml:1" in status


def test_render_masks_secrets_unless_told(shop: CliShop) -> None:
    text = shop.cli("render").stdout
    assert 'password: "***"' in text
    assert text.count("---\n# deploy/") == 4
    items = shop.json("render")["items"]
    assert [item["object"]["metadata"]["name"] for item in items] == ["one", "login", "three", "two"]
    assert "Y2FuYXJ5LTViMWU2Yy1wYXNzd29yZA==" in shop.cli("render", "--show-secrets").stdout
    assert not shop.asked, "no cluster is"


def test_render_calls_each_object_as_a_rollout_may(shop: CliShop) -> None:
    found = shop.json("render", "--rollout")
    names = {key: body["metadata"]["name"] for key, body in found["objects"].items()}
    assert names == {"one.yaml": "one", "secret.yaml": "login", "three.yaml": "three", "two.yaml": "two"}
    assert (found["rollout"], found["objects"]["secret.yaml"]["data"]) == (None, {"password": "***"})
