"""Total control over a namespace: what git doesn't declare there is shown with its time, and deleted after that, never before."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from handler.cli.group import anneal
from handler.config.settings import HoldAbove, Impersonate, Prune
from handler.engine.apply import wait_deleted
from handler.model.event import Job
from handler.model.names import PART_OF
from handler.model.plan import Action
from handler.model.result import Outcome
from handler.state.record_format import seconds_of
from tests.e2e.conftest import Open
from tests.e2e.documents import config_map, deployment, owner, secret, service
from tests.e2e.exclusive_shop import BOLD, GRACE, ExclusiveShop, planned, server_time
from tests.e2e.killed_runs import Wire, is_recorded, kill_after
from tests.e2e.one_target import DONE, STATES, Shop, told
from tests.e2e.rbac_rights import ALL, allow
from tests.e2e.serve_process import until
from tests.e2e.two_targets import Pair
from tests.kubectl import Kubectl


@pytest.fixture
def made(shop: Shop) -> ExclusiveShop:
    return ExclusiveShop(shop)


def test_undeclared_objects_are_shown_then_deleted_exactly_after_the_time_shown(made: ExclusiveShop) -> None:
    name = made.shop.name
    made.plant(config_map(name, "stray"), secret(name, "key", "x"), service(name, "old"))
    assert planned(made.shop.run(dry_run=True)) == dict.fromkeys(("stray", "key", "old"), (Action.SKIP, ""))
    assert made.pruned() == set()
    known = made.orphans()
    assert known.keys() == {"stray", "key", "old"}
    assert {seconds_of(each.until) - seconds_of(each.since) for each in known.values()} == {GRACE}
    until_last = max(known.values(), key=lambda each: each.until)
    made.wait_for(min(known.values(), key=lambda each: each.until))
    made.ahead -= 60
    assert made.pruned() == set()
    assert made.orphans() == known, "neither the time that was shown nor anything else has changed"
    made.wait_for(until_last)
    due = planned(made.shop.run(dry_run=True))
    assert {action for action, _ in due.values()} == {Action.PRUNE}
    assert made.pruned() == {"stray", "key", "old"}
    assert (made.orphans(), made.shop.state().drift_due) == ({}, "")
    assert made.shop.live(made.web)
    assert made.run().outcome is Outcome.UNCHANGED


def test_a_worker_whose_clock_is_fast_deletes_nothing_early_and_looks_again_when_it_may(made: ExclusiveShop) -> None:
    made.plant(config_map(made.shop.name, "stray"))
    made.run()
    (known,) = made.orphans().values()
    made.fast = 2 * GRACE
    assert made.pruned() == set()
    assert made.orphans() == {"stray": known}
    assert seconds_of(made.shop.state().drift_due) > server_time(made.shop) + 2 * GRACE, "not again and again until then"
    made.wait_for(known)
    assert made.pruned() == {"stray"}


def test_pushes_and_ticks_neither_look_nor_forget_until_the_time_has_come(made: ExclusiveShop) -> None:
    name = made.shop.name
    made.plant(config_map(name, "stray"))
    made.run()
    (known,) = made.orphans().values()
    assert made.shop.state().drift_due == known.until
    made.plant(config_map(name, "later"))
    made.shop.push(made.web, config_map(name, "more"))
    assert made.pruned("push") == set()
    assert made.pruned("tick") == set()
    assert made.orphans() == {"stray": known}
    made.wait_for(known)
    assert made.pruned("tick") == {"stray"}, "its drift run is due then, and a tick is that"
    assert made.orphans().keys() == {"later"}


def test_an_object_that_git_declares_within_its_grace_is_adopted_and_lives_on(made: ExclusiveShop) -> None:
    stray = config_map(made.shop.name, "stray")
    (live,) = made.plant(stray)
    made.run()
    (known,) = made.orphans().values()
    made.shop.push(made.web, stray)
    made.shop.applied()
    assert made.orphans() == {}
    made.wait_for(known)
    assert made.pruned() == set()
    adopted = made.shop.live(stray)
    assert adopted
    assert (adopted["metadata"]["uid"], PART_OF in adopted["metadata"]["labels"]) == (live["metadata"]["uid"], True)


def test_a_new_object_of_the_same_name_is_not_deleted_by_the_old_ones_grace(made: ExclusiveShop) -> None:
    stray = config_map(made.shop.name, "stray")
    made.plant(stray)
    made.run()
    (known,) = made.orphans().values()
    made.shop.kubectl.run("delete", "configmap", "stray", "-n", made.shop.name)
    (second,) = made.plant(stray)
    made.wait_for(known)
    assert made.pruned() == set()
    (again,) = made.orphans().values()
    assert (again.uid, again.until > known.until) == (second["metadata"]["uid"], True)


def test_nothing_is_deleted_by_the_first_run_that_knows_the_setting_nor_once_it_is_gone(shop: Shop) -> None:
    stray = config_map(shop.name, "stray")
    shop.create_namespace(f"{shop.name}-jobs")
    shop.push(config_map(shop.name, "web"))
    shop.applied()
    shop.kubectl.apply(stray)
    made = ExclusiveShop(shop)
    made.ahead = 10 * GRACE
    assert made.pruned() == set()
    (known,) = made.orphans().values()
    made.configure(exclusive=())
    made.run("push")
    assert made.orphans() == {}
    made.wait_for(known)
    assert made.pruned() == set()
    assert shop.live(stray)


def test_where_deletion_is_off_or_drift_only_reported_orphans_are_shown_and_stay(made: ExclusiveShop) -> None:
    stray = config_map(made.shop.name, "stray")
    made.plant(stray)
    for settings in ({"prune": Prune(enabled=False)}, {"prune": BOLD, "drift": "report"}):
        made.configure(**settings)
        made.run("push")
        for _ in range(2):
            made.run()
            made.ahead += 2 * GRACE
        (known,) = made.orphans().values()
        assert (known.until, made.shop.state().drift_due) == ("", "")
    assert made.shop.live(stray)


def test_many_deletions_are_held_and_the_approval_deletes_exactly_them(made: ExclusiveShop) -> None:
    made.configure(prune=Prune(hold_above=HoldAbove(2, 0.5)))
    strays = [config_map(made.shop.name, f"stray-{number}") for number in range(4)]
    made.plant(*strays)
    made.run()
    made.wait_for(max(made.orphans().values(), key=lambda each: each.until))
    held = made.shop.run("drift")
    assert (held.outcome, held.plan and held.plan.hold is not None) == (Outcome.HELD, True), told(held)
    assert "4 objects that git doesn't declare would be deleted in exclusive namespace" in held.message
    assert made.shop.run("tick").outcome is Outcome.HELD, "a tick doesn't forget what waits"
    late = config_map(made.shop.name, "late")
    made.plant(late)
    waiting = made.shop.state().held
    assert waiting
    done = made.shop.run("replay", approve=waiting.id, actor="ann")
    assert done.outcome is Outcome.APPLIED, told(done)
    assert [made.shop.live(each) for each in strays] == [None] * 4
    assert made.shop.live(late)
    assert made.orphans().keys() == {"late"}


def test_a_protected_object_stays_and_is_named_with_what_keeps_it(made: ExclusiveShop) -> None:
    stray = config_map(made.shop.name, "stray", annotations={"anneal.dev/prune": "disabled"})
    made.plant(stray)
    for _ in range(2):
        assert made.pruned() == set()
        made.ahead += 2 * GRACE
    plan = made.shop.run(dry_run=True).plan
    assert plan
    assert [change.reason.partition("; ")[2] for change in plan.prunes] == ["kept: protected by anneal.dev/prune: disabled"]
    made.shop.kubectl.run("annotate", "configmap", "stray", "-n", made.shop.name, "anneal.dev/prune-")
    assert made.pruned() == set(), "its grace begins when that is lifted"
    made.wait_for(made.orphans()["stray"])
    assert made.pruned() == {"stray"}


def test_what_an_undeclared_workload_owns_goes_with_it(made: ExclusiveShop) -> None:
    web = deployment(made.shop.name, "by-hand", replicas=1)
    made.plant(web)
    pods = ("get", "pods", "-n", made.shop.name)
    until(lambda: len(made.shop.kubectl(*pods)["items"]) == 1)
    (live,) = made.plant(config_map(made.shop.name, "below", ownerReferences=[owner(made.shop.live(web))]))
    made.run()
    assert made.orphans().keys() == {"by-hand"}, "neither its ReplicaSet nor its pod is an orphan"
    made.wait_for(made.orphans()["by-hand"])
    plan = made.shop.run(trigger="drift", dry_run=True).plan
    assert plan
    assert {(gone.identity.kind, gone.counted) for gone in plan.gone} == {
        *(("Deployment", True), ("ConfigMap", True), ("ReplicaSet", False), ("Pod", False))
    }
    assert made.pruned() == {"by-hand"}
    until(lambda: made.shop.kubectl(*pods)["items"] == [] and made.shop.live(live) is None)


def is_over(shop: Shop, end: str) -> bool:
    return seconds_of(end) + 2 < server_time(shop)


def test_a_run_that_is_killed_at_any_write_leaves_the_grace_known_and_the_next_ones_finish(open_shop: Open, wired: Wire) -> None:
    shop = open_shop()
    shop.create_namespace()
    shop.configure(exclusive=(shop.name,), orphan_grace=1.0, namespaces=(shop.name,), prune=BOLD)
    web = config_map(shop.name, "web")
    shop.push(web)
    shop.applied()
    killed, number = True, 0
    while killed:
        number += 1
        strays = [config_map(shop.name, f"stray-{number}-{each}") for each in range(2)]
        shop.kubectl.apply(*strays)
        assert shop.run("drift").outcome in DONE
        known = {each.identity.name: each for each in shop.state().orphans}
        assert known.keys() == {each["metadata"]["name"] for each in strays}
        until(partial(is_over, shop, max(each.until for each in known.values())))
        killed = kill_after(shop, wired, number, is_recorded, shop.job("drift"))
        left = [shop.live(each) for each in strays]
        assert killed or left == [None, None]
        for trigger in ("tick", "drift"):
            result = shop.run(trigger)
            assert result.outcome in DONE, told(result)
        assert [shop.live(each) for each in strays] == [None, None]
        assert (shop.state().attempt, shop.state().orphans) == (None, ())
        assert shop.live(web)
    assert number > 2


def test_what_a_sibling_declares_and_has_not_applied_yet_is_left_to_it(pair: Pair) -> None:
    pair.configure(a={"exclusive": (pair.space,), "orphan_grace": 1.0, "prune": BOLD})
    stray = config_map(pair.space, "stray")
    pair.push()
    pair.applied(pair.a, pair.b)
    pair.a.kubectl.apply(stray)
    assert pair.a.run("drift").outcome in DONE
    (known,) = pair.a.state().orphans
    until(partial(is_over, pair.a, known.until))
    pair.push(b=(stray,))
    result = pair.a.run("drift")
    assert result.plan, told(result)
    assert [change.reason for change in result.plan.prunes] == [f"hand over to {pair.b.name}"]
    before = pair.uids(stray)
    pair.applied(pair.b)
    assert pair.a.run("drift").outcome in DONE
    assert (pair.uids(stray), pair.owners(stray), pair.a.state().orphans) == (before, {pair.b.name}, ())


def test_a_kind_that_its_account_may_not_list_is_named_and_loses_nothing(made: ExclusiveShop) -> None:
    name = made.shop.name
    stray, key = config_map(name, "stray"), secret(name, "key", "x")
    allow(made.shop, (ALL, "", "configmaps"), *(("list", "", kind) for kind in ("pods", "serviceaccounts")))
    made.plant(stray, key)
    made.configure(impersonate=Impersonate(f"{name}/deployer"), cluster_scoped=())
    made.run("push")
    result = made.run()
    assert made.orphans().keys() == {"stray"}
    assert result.plan
    (note,) = [each for each in result.plan.notes if "can't be listed" in each]
    assert "Secret" in note
    assert "ConfigMap," not in note
    (reason,) = [change.reason for change in result.plan.prunes]
    assert reason.endswith("can't be listed, so whether one names it isn't known")
    made.ahead += 2 * GRACE
    assert made.pruned() == set()
    assert all(map(made.shop.live, (stray, key)))


@pytest.fixture
def configured(made: ExclusiveShop, tmp_path: Path) -> Path:
    """The shop's configuration as a file."""
    return written(made.shop, tmp_path)


def written(shop: Shop, tmp_path: Path) -> Path:
    """Write the shop's configuration; return the file."""
    target: dict[str, Any] = {"name": shop.name, "path": "deploy", "namespaces": [shop.name], "exclusive": [shop.name], "orphanGrace": "1h"}
    target["repository"] = {"url": shop.target.repository.url}
    whole = {"apiVersion": "anneal.dev/v1alpha1", "kind": "Config", "stateNamespace": STATES, "targets": [target]}
    path = tmp_path / "anneal.yaml"
    path.write_text(yaml.safe_dump(whole))
    return path


def test_status_plan_and_orphans_tell_when_it_goes_and_how_it_stays(made: ExclusiveShop, configured: Path) -> None:
    name = made.shop.name
    made.plant(config_map(name, "stray"))
    made.run()
    (known,) = made.orphans().values()

    def asked(*words: str) -> str:
        flags = ["--config", str(configured), "--kubeconfig", str(made.shop.kubectl.kubeconfig)]
        result = CliRunner().invoke(anneal, [*words, *flags], catch_exceptions=False)
        assert result.exit_code == 0, result.output
        return " ".join(result.output.split())

    assert f"ConfigMap/{name}/stray, seen first" in (status := asked("status", name))
    assert f"deleted after {known.until}" in status
    assert f"orphans {name}" in status
    told_so = f"ConfigMap/{name}/stray (isn't declared in exclusive namespace {name}; deleted after {known.until}"
    assert f". kept {told_so}" in asked("plan", name)
    orphans = asked("orphans", name)
    assert f"expires {told_so}" in orphans
    assert f"kubectl annotate ConfigMap/stray -n {name} anneal.dev/prune=disabled" in orphans
    (listed,) = json.loads(asked("orphans", name, "-o", "json"))["orphans"]
    assert (listed["fate"], listed["until"], listed["since"]) == ("expires", known.until, known.since)
    found = json.loads(asked("status", name, "-o", "json"))
    assert known.until in json.dumps(found)
    roles = [each for each in json.loads(asked("rbac", name, "-o", "json"))["items"] if each["kind"] == "Role"]
    (role,) = [each for each in roles if each["metadata"]["namespace"] == name]
    rules = [rule for rule in role["rules"] if {"list", "delete"} <= set(rule["verbs"])]
    granted = {(group, plural) for rule in rules for group in rule["apiGroups"] for plural in rule["resources"]}
    assert {("batch", "jobs"), ("", "pods")} <= granted
    assert not {("coordination.k8s.io", "leases"), ("", "events")} & granted


def test_the_rights_that_rbac_prints_suffice(own_cluster: Kubectl, open_shop: Open, tmp_path: Path) -> None:
    shop = open_shop(own_cluster)  # elsewhere other tests may define kinds that weren't served when rights were printed
    shop.create_namespace()
    made = ExclusiveShop(shop)
    name, kubectl = shop.name, shop.kubectl
    configured = written(shop, tmp_path)
    account = f"{name}/limited"
    flags = ["--config", str(configured), "--kubeconfig", str(kubectl.kubeconfig), "--service-account", account]
    printed = CliRunner().invoke(anneal, ["rbac", name, *flags], catch_exceptions=False).output
    kubeconfig = kubectl.account(account, tmp_path)
    kubectl.grant(printed)
    made.configure(cluster_scoped=())
    made.use(made.shop.handler_at(kubeconfig))
    strays = [config_map(name, "stray"), secret(name, "key", "x"), service(name, "old"), deployment(name, "old")]
    made.plant(*strays)
    until(lambda: ((made.shop.live(strays[-1]) or {}).get("status") or {}).get("observedGeneration"))
    result = made.run()
    assert result.plan
    assert not any("can't be listed" in note for note in result.plan.notes), result.plan.notes
    made.ahead += 2 * GRACE
    assert made.pruned() == {"stray", "key", "old"}, "neither its account nor its rights"
    assert [made.shop.live(each) for each in strays] == [None] * 4


def test_a_person_who_prunes_deletes_what_is_due_and_nothing_before(made: ExclusiveShop) -> None:
    made.plant(config_map(made.shop.name, "stray"))
    for trigger in ("drift", "oneoff"):
        result = made.run(trigger, force=trigger == "oneoff")
        assert not result.written
    made.wait_for(made.orphans()["stray"])
    result = made.run("oneoff", force=True)
    assert [change.identity.name for change in result.written] == ["stray"]


def test_an_orphan_that_does_not_go_is_reported_and_holds_no_later_run_up(made: ExclusiveShop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wait_deleted, "TIMEOUT", 1.0)
    stuck = config_map(made.shop.name, "stuck", finalizers=["acme.io/hold"])
    made.plant(stuck)
    made.run()
    made.wait_for(made.orphans()["stuck"])
    waits = made.shop.run("drift")
    assert waits.outcome is Outcome.PRUNING, told(waits)
    assert "acme.io/hold" in waits.message
    made.shop.push(made.web, config_map(made.shop.name, "more"))
    made.run("push")
    assert made.shop.state().attempt is None
    made.ahead += GRACE
    made.run()
    (known,) = made.orphans().values()
    assert (known.until, made.shop.state().drift_due) == ("", ""), "nothing is left to do but to wait"
    made.shop.kubectl.run("patch", "configmap", "stuck", "-n", made.shop.name, "--type=merge", "-p", '{"metadata":{"finalizers":null}}')
    until(lambda: made.shop.live(stuck) is None)
    made.run()
    assert made.orphans() == {}


def test_a_lost_record_begins_every_grace_anew(made: ExclusiveShop) -> None:
    stray = config_map(made.shop.name, "stray")
    made.plant(stray)
    made.run()
    made.wait_for(made.orphans()["stray"])
    made.shop.kubectl.run("delete", "configmap", f"anneal-{made.shop.name}", "-n", STATES)
    made.configure()
    for trigger in ("tick", "drift"):
        assert made.pruned(trigger) == set()
    assert seconds_of(made.orphans()["stray"].until) > made.now()


def test_a_job_keeps_its_word(made: ExclusiveShop) -> None:
    """A run that may not delete doesn't, whatever is due, and begins no grace again."""
    made.plant(config_map(made.shop.name, "stray"))
    made.run()
    known = made.orphans()
    made.wait_for(known["stray"])
    result = made.shop.handler.run(replace(Job(made.shop.name, "drift"), prune=False))
    assert result.outcome in DONE, told(result)
    assert made.orphans() == known
    assert made.pruned() == {"stray"}
