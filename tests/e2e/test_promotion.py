"""A target that follows what others have proven: on the real cluster, by a real git host."""

from __future__ import annotations

import os
import re
import secrets
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
import yaml

from handler.app.build import Handler, Options
from handler.app.overview import Overview
from handler.config.git_settings import Promoted, Revision, SecretRef, Verify
from handler.config.secrets import RUNS, resolve_all
from handler.config.settings import Cluster, Settings
from handler.model.event import Job
from handler.model.result import Outcome
from handler.render.sandbox import Sandbox
from handler.state.record import State
from handler.state.soak import Soak
from infra.githost import Host, Work
from tests.e2e.documents import deployment
from tests.e2e.killed_runs import Wire, is_recorded, kill_after
from tests.e2e.one_target import DONE, Shop, told
from tests.e2e.promotion_line import MINUTE, SOAK, PromotionLine
from tests.e2e.serve_process import until
from tests.kubectl import Kubectl
from tests.signing import public, signed_by_ssh, ssh_key

Open = Callable[..., PromotionLine]
TWO: dict[str, tuple[str, ...]] = {"staging": (), "prod": ("staging",)}


@pytest.fixture
def opened(host: Host, sandbox: Sandbox, kubectl: Kubectl) -> Iterator[Open]:
    made: list[PromotionLine] = []

    def line(sources: dict[str, tuple[str, ...]] = TWO, soak: float = SOAK) -> PromotionLine:
        made.append(PromotionLine(f"s-{secrets.token_hex(4)}", host, sandbox, kubectl, sources, soak))
        return made[-1]

    yield line
    for each in made:
        each.close()


@pytest.fixture
def line(opened: Open) -> PromotionLine:
    """Production is on the first commit, which staging has proven."""
    made = opened()
    made.push("1", deployment(made.space, "web"))
    made.well("staging")
    made.later(SOAK)
    made.done("prod")
    return made


def test_a_commit_soaks_is_replaced_breaks_and_is_rolled_back_from(line: PromotionLine) -> None:
    web = deployment(line.space, "web")
    second = line.push("2", web)
    line.well("staging")
    waits = line.done("prod")
    assert (bool(re.search(rf"{second[:12]} healthy for \d+s of 30m", waits.message)), line.value("prod")) == (True, "1"), told(waits)
    assert waits.next_try > time.time() + line.ahead
    # broken for a while: its clock starts again
    line.kubectl.run("delete", "deployment", "web-staging", "-n", line.space, "--wait=true")
    line.run("staging")  # a tick looks
    assert line.shops["staging"].state().health.state == "degraded"
    line.later(SOAK)
    assert "degraded since" in line.done("prod").message
    line.well("staging", "drift")
    assert line.shops["staging"].state().health.state == "healthy"
    line.later(SOAK - MINUTE)
    assert line.on("prod") != second
    line.later(MINUTE)
    assert (line.on("prod"), line.value("prod")) == (second, "2")
    # replaced before it had soaked, and after
    third = line.push("3", web)
    line.well("staging")
    line.later(SOAK - MINUTE)
    fourth = line.push("4", web)
    line.well("staging")
    line.later(SOAK)
    fifth = line.push("5", web)
    line.well("staging")
    assert line.on("prod") == fourth
    # rolled back from, although it had soaked
    line.later(SOAK + MINUTE)
    line.well("staging", "oneoff", rollback=True, actor="ada")
    assert line.shops["staging"].state().commit == fourth
    line.later(SOAK)
    assert line.on("prod") == fourth
    assert line.value("prod") == "4"
    assert len({third, fifth}) == 2
    row = Overview(line.settings, line.shops["prod"].handler).look([line.shops["prod"].target])[0]
    assert row.newest
    assert (row.newest.commit, row.is_behind, row.newest.awaited) == (fourth, False, ())
    refused = line.run("prod", "oneoff", promote=True, commit=fifth)
    assert (refused.outcome, "was rolled back from" in refused.message) == (Outcome.REFUSED, True), told(refused)


def forged(line: PromotionLine, *commits: str) -> None:
    """Write into staging's record that these were healthy for years, the newest first."""
    shop = line.shops["staging"]

    def claim(state: State) -> State:
        soaks = [Soak((each,), f"{place:064x}", state.settings, "2020-01-01T00:00:00Z") for place, each in enumerate(commits)]
        soaks = [replace(each, healthy_since="2020-01-01T00:00:00Z") for each in soaks]
        rest = [replace(each, until="2022-01-01T00:00:00Z", ended="replaced") for each in soaks[1:]]
        return replace(state, soaks=(soaks[0], *rest), commit=commits[0])

    store = shop.handler.store(shop.target)
    store._keep = lambda _, state: state
    store.update(claim)


def test_a_forged_record_deploys_nothing_that_is_not_on_the_branch_or_older_or_not_there(line: PromotionLine) -> None:
    first, second = line.shops["prod"].state().commit, line.push("2")
    line.done("staging")
    line.later(SOAK)
    assert line.on("prod") == second
    line.work.git("checkout", "-q", "-b", "side")
    line.work.write("prod/evil.yaml", "{}")
    side = line.work.commit("Never merged")
    line.work.push(ref="side:refs/heads/side")
    for claimed, said in ((side, "is not on the branch"), ("9" * 40, "can't be deployed"), (first, "")):
        forged(line, claimed)
        result = line.done("prod", "drift")
        assert line.shops["prod"].state().commit == second
        told_so = f"{result.message} {result.plan.notes if result.plan else ''}"
        assert said in told_so, told_so
    refused = line.run("prod", "oneoff", promote=True, commit=side, force=True)
    assert (refused.outcome, "is not on the branch" in refused.message) == (Outcome.REFUSED, True), told(refused)
    forged(line, side, second)  # what is on the branch still counts
    assert line.on("prod") == second


def _signed(key: Path, work: Work, subject: str) -> str:
    return signed_by_ssh(work, key, subject)


def test_a_proven_commit_without_the_signature_that_the_follower_requires_is_refused(opened: Open, tmp_path: Path) -> None:
    key, line = ssh_key(tmp_path, "release"), opened()
    line.configure(prod={"verify": Verify(ssh=(public(key),))})
    sign = partial(_signed, key)
    signed = line.push("1", sign=sign)
    line.done("staging")
    line.later(SOAK)
    assert line.on("prod") == signed
    line.push("2")
    line.done("staging")
    line.later(SOAK)
    result = line.run("prod")
    assert (result.outcome, result.code) == (Outcome.FAILED, "commit-unverified"), told(result)
    assert (line.shops["prod"].state().commit, line.value("prod")) == (signed, "1")
    third = line.push("3", sign=sign)
    line.done("staging")
    line.later(SOAK)
    assert line.on("prod") == third


def test_a_wave_of_three_waits_for_the_one_that_is_ill(opened: Open) -> None:
    line = opened({"staging": (), "eu": ("staging",), "us": ("staging",), "ap": ("staging",), "late": ("eu", "us", "ap")})
    line.push("1", deployment(line.space, "web"))
    line.well("staging")
    line.later(SOAK)
    for name in ("eu", "us", "ap"):
        line.well(name)
    line.later(SOAK)
    first = line.on("late")
    second = line.push("2", deployment(line.space, "web"))
    line.well("staging")
    line.later(SOAK)
    for name in ("eu", "us", "ap"):
        line.well(name)
        assert line.shops[name].state().commit == second
    line.kubectl.run("delete", "deployment", "web-us", "-n", line.space, "--wait=true")
    line.run("us")
    line.later(SOAK)
    halted = line.done("late")
    assert line.shops["late"].state().commit == first
    assert f"{line.name('us')}: degraded since" in halted.message, told(halted)
    assert (f"{line.name('eu')}:" in halted.message, halted.next_try) == (False, 0.0)
    line.well("us", "drift")
    line.later(SOAK)
    for name in ("eu", "ap"):
        line.done(name, "drift")
    assert line.on("late") == second


def test_promoted_by_hand_it_says_so_and_follows_again(line: PromotionLine) -> None:
    second = line.push("2")
    line.done("staging")
    result = line.done("prod", "oneoff", promote=True, actor="ada")
    state = line.shops["prod"].state()
    assert (result.outcome, state.commit, state.pin, state.history[0].trigger) == (Outcome.APPLIED, second, None, "promotion")
    assert line.on("prod") == second
    third = line.push("3")
    line.done("staging")
    line.later(SOAK)
    assert line.on("prod") == third


def read_only(line: PromotionLine, namespace: str, place: Path) -> Path:
    """Return the kubeconfig of an account that may read the records and the heartbeat in a namespace, and nothing else."""
    kubectl, rules = line.kubectl, [("", "configmaps"), ("coordination.k8s.io", "leases")]
    kubectl.apply({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "reader", "namespace": namespace}})
    head = {"apiVersion": "rbac.authorization.k8s.io/v1", "metadata": {"name": "reader", "namespace": namespace}}
    role = {**head, "kind": "Role", "rules": [{"apiGroups": [group], "resources": [kind], "verbs": ["get"]} for group, kind in rules]}
    binding = {
        **head,
        "kind": "RoleBinding",
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "reader"},
        "subjects": [{"kind": "ServiceAccount", "name": "reader", "namespace": namespace}],
    }
    kubectl.grant(yaml.safe_dump_all([role, binding]))
    token = kubectl.run("create", "token", "reader", "-n", namespace).strip()
    config = yaml.safe_load(kubectl.kubeconfig.read_text())
    config["users"] = [{"name": "reader", "user": {"token": token}}]
    for each in config["contexts"]:
        each["context"]["user"] = "reader"
    place.write_text(yaml.safe_dump(config))
    return place


def test_records_of_another_installation_on_another_cluster_are_read_with_the_least_rights(
    opened: Open, tmp_path: Path, sandbox: Sandbox
) -> None:
    line = opened()
    staging, prod = line.shops["staging"], line.shops["prod"]
    elsewhere = f"{line.space}-states"
    line.kubectl.create_namespace(elsewhere)
    there = Settings(targets=(staging.target,), state_namespace=elsewhere, installation="staging")
    options = Options(kubeconfig=str(line.kubectl.kubeconfig), clock=lambda: time.time() + line.ahead)
    other = Handler(there, resolve_all(there, os.environ, needs=RUNS), sandbox, os.environ, options)
    cluster = Cluster(kubeconfig=SecretRef(file=str(read_only(line, elsewhere, tmp_path / "reader.yaml"))))
    follows = Promoted((staging.name,), SOAK, cluster, elsewhere, "staging")
    line.configure(prod={"revision": Revision(promoted=follows)})
    first = line.push("1")
    assert line.run("prod").outcome is Outcome.WAITING
    assert other.run(Job(staging.name, "tick")).outcome is Outcome.APPLIED
    line.later(SOAK - MINUTE)
    assert line.run("prod").outcome is Outcome.WAITING
    line.later(MINUTE)
    assert line.on("prod") == first
    row = Overview(line.settings, prod.handler).look([prod.target])[0]
    assert row.newest
    assert (row.newest.commit, row.newest.trouble) == (first, None)
    line.configure(prod={"revision": Revision(promoted=replace(follows, installation="another"))})
    line.push("2")
    other.run(Job(staging.name, "tick"))
    line.later(SOAK)
    held = line.done("prod")
    assert "its record is of the installation staging, not another" in held.message, told(held)
    line.kubectl.leave_namespaces(elsewhere)


@pytest.mark.parametrize("by_hand", [False, True])
def test_killed_at_each_write_a_promotion_is_finished_by_the_next_run(opened: Open, wired: Wire, by_hand: bool) -> None:
    line = opened(soak=1.0)
    prod = line.shops["prod"]
    line.push("0")
    line.done("staging")
    until(lambda: line.run("prod").outcome in DONE)
    number, killed = 0, True
    while killed:
        number += 1
        pushed = line.push(str(number))
        line.done("staging")
        if not by_hand:
            until(partial(_is_proven, prod, pushed))
        killed = kill_after(prod, wired, number, is_recorded, prod.job("oneoff", promote=True) if by_hand else prod.job("tick"))
        until(partial(_is_on, line, pushed))
        assert (line.value("prod"), prod.state().attempt) == (str(number), None)
    assert number > 3


def _is_proven(prod: Shop, commit: str) -> bool:
    promoters = prod.handler.dependencies(prod.name).promoters
    return promoters.choose(prod.state(), time.time()).commit == commit


def _is_on(line: PromotionLine, commit: str) -> bool:
    return line.on("prod") == commit
