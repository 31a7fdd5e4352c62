"""Incidents: something real breaks, `anneal status` names it with a command, and that, typed as it was shown, cures it or shows the cause.

Where what is advised may be another one, it is met with a server that looks after the target and without one.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from infra.githost import Host, Work
from tests.e2e.cli.conftest import Shop, crash_looping, document
from tests.e2e.cli.incident_shell import BUSY, TROUBLE, UNKNOWN, WELL, Night
from tests.e2e.cli.status_server import configure
from tests.e2e.tcp_gate import Gate, kubeconfig_through
from tests.kubectl import Kubectl
from tests.patience import PATIENCE, until

AGAIN = "anneal apply shop"
YES = [("[y/N]", "y")]


@pytest.fixture(params=[False, True], ids=["alone", "served"])
def night(request: pytest.FixtureRequest, shop: Shop, kubectl: Kubectl, tmp_path: Path) -> Night:
    """The same with and without a server."""
    return Night(shop, kubectl, tmp_path, served=request.param)


@pytest.fixture
def alone(shop: Shop, kubectl: Kubectl, tmp_path: Path) -> Night:
    """Without a server."""
    return Night(shop, kubectl, tmp_path)


@pytest.fixture
def served(shop: Shop, kubectl: Kubectl, tmp_path: Path) -> Night:
    """With a server."""
    return Night(shop, kubectl, tmp_path, served=True)


def crash(shop: Shop) -> None:
    """Push a workload whose containers crash."""
    shop.work.write("deploy/api.yaml", crash_looping(progressDeadlineSeconds=1))
    shop.push("The new api")


def mend(shop: Shop) -> None:
    """Push a commit without it."""
    shop.work.remove("deploy/api.yaml")
    shop.push("No api before its table is there")


def patched(night: Night, kind: str, name: str, **body: object) -> None:
    night.kubectl.run("patch", kind, name, "-n", night.shop.namespace, "--type=merge", "-p", json.dumps(body))


def test_crash_looping_containers(night: Night) -> None:
    shop = night.shop
    shop.configure("wait: {timeout: 60s}")
    shop.cli("apply")
    with night.watched():
        crash(shop)
        night.brought(code=1)
        told = night.says(f"Deployment/{shop.namespace}/api", "ProgressDeadlineExceeded", "fix the commit, and push")
        until(lambda: "CrashLoopBackOff" in json.dumps(night.kubectl("get", "pods", "-n", shop.namespace)))
        assert "| no table `orders`" in night.types(told.command)
        mend(shop)
        for command in told.then:
            night.types(command, dialogue=YES)
            night.looks_again()
        assert told.then == ([] if night.served else [AGAIN])
        night.is_well()


def test_a_missing_namespace(alone: Night) -> None:
    gone = f"{alone.shop.namespace}-gone"
    configure(alone.shop, {"name": "shop", "namespaces": [gone], "namespace": gone})
    alone.brought(code=1)
    told = alone.says(f'namespaces "{gone}" not found')
    alone.types(told.command)
    alone.is_well()
    alone.kubectl.run("delete", "namespace", gone, "--wait=false")


def test_advised_commands_reach_the_same_cluster_and_configuration(alone: Night) -> None:
    """The shell knows neither: status was given a configuration, which names the cluster's kubeconfig."""
    gone, shop = f"{alone.shop.namespace}-gone", alone.shop
    configure(
        shop, {"name": "shop", "namespaces": [gone], "namespace": gone, "cluster": {"kubeconfig": {"file": str(shop.cli.kubeconfig)}}}
    )
    shop.cli("apply", code=1)
    named = replace(alone, flags=("-c", str(shop.cli.config)), blank=True)
    told = named.says(f'namespaces "{gone}" not found', f"create it: kubectl create namespace {gone};")
    assert told.command.startswith(f"kubectl --kubeconfig {shop.cli.kubeconfig} create namespace {gone}")
    named.types(told.command)
    named.is_well()
    alone.kubectl.run("delete", "namespace", gone, "--wait=false")


def test_a_full_quota(alone: Night) -> None:
    shop, kubectl = alone.shop, alone.kubectl

    def hard() -> str:
        found = kubectl("get", "quota", "full", "-n", shop.namespace)
        return str(((found.get("status") or {}).get("hard") or {}).get("count/services"))

    kubectl.run("create", "quota", "full", "-n", shop.namespace, "--hard=count/services=0")
    until(lambda: hard() == "0")
    shop.work.write("deploy/web.yaml", document("Service", "web", spec={"ports": [{"port": 80}]}))
    shop.push("A service")
    alone.brought(code=1)
    told = alone.says(f"Service/{shop.namespace}/web", f"ResourceQuota/{shop.namespace}/full", "a quota is full: its owner makes room")
    patched(alone, "quota", "full", spec={"hard": {"count/services": "1"}})
    until(lambda: hard() == "1")
    alone.again(told.command)
    alone.is_well()


def test_held_deletions_above_hold_above(alone: Night) -> None:
    shop = alone.shop
    shop.declare(*(f"part-{number}" for number in range(12)))
    shop.push("Twelve")
    shop.cli("apply")
    shop.declare("part-1")
    shop.push("One")
    alone.brought(code=3)
    told = alone.says("11 of 13 live objects would be deleted", "11 deletions wait for approval")
    assert told.command.startswith("anneal approve shop ")
    alone.types(told.command)
    alone.is_well()
    assert not alone.kubectl.tried("get", "cm", "part-2", "-n", shop.namespace).stdout


@contextmanager
def applying(night: Night) -> Iterator[subprocess.Popen[bytes]]:
    """Run `anneal apply` beside the test; it is killed at the end, if it hasn't ended."""
    with subprocess.Popen([sys.executable, "-m", "handler", "apply", "-y"], env=night.environ(), stderr=subprocess.DEVNULL) as running:
        try:
            yield running
        finally:
            running.kill()


def held_by_a_finalizer(night: Night) -> None:
    """Let git declare no more what a controller holds that isn't there."""
    night.shop.cli("apply")
    patched(night, "cm", "three", metadata={"finalizers": ["example.com/holds"]})
    night.shop.declare("one", "two")
    night.shop.push("Three goes")


def let_go(night: Night) -> None:
    patched(night, "cm", "three", metadata={"finalizers": None})


def test_a_finalizer_that_holds_what_is_pruned(night: Night) -> None:
    held_by_a_finalizer(night)
    with night.watched() if night.served else applying(night) as running:
        told = night.says(f"ConfigMap/{night.shop.namespace}/three", "finalizers: example.com/holds (the controller of example.com)")
        assert "- example.com/holds" in night.types(told.command)
        let_go(night)
        assert not isinstance(running, subprocess.Popen) or running.wait(PATIENCE) == 0
        night.is_well()


def test_a_killed_worker_that_still_holds_the_lease(alone: Night) -> None:
    held_by_a_finalizer(alone)
    alone.shop.configure(top="leaseDuration: 6s")
    with applying(alone) as running:
        until(lambda: "works on it now" in alone.page(), alone.page)
        until(lambda: "pruning" in alone.page().splitlines()[0], alone.page)
        os.kill(running.pid, signal.SIGKILL)
    told = alone.says("holds it and hasn't renewed for")
    assert told.command == "anneal unlock shop"
    alone.types(told.command)
    let_go(alone)
    alone.types(alone.says("a run didn't finish").command)
    alone.looks_again()
    alone.is_well()


@pytest.mark.parametrize("ends", [signal.SIGTERM, signal.SIGKILL])
def test_a_server_that_has_ended(served: Night, ends: signal.Signals) -> None:
    shop, kubectl = served.shop, served.kubectl
    command = [sys.executable, "-m", "handler", "run", "--trigger", "interval", "--interval", "2s"]
    with subprocess.Popen(command, env=served.environ(), stderr=subprocess.DEVNULL) as running:
        until(lambda: "works" not in served.page() and shop.cli.json("status", "shop")["server"]["runs"], served.page)
        served.is_well()
        running.send_signal(ends)
        running.wait(PATIENCE)
    if ends == signal.SIGKILL:  # no process says that it has ended, and its last heartbeat holds for three minutes
        lease = ("lease", "anneal-heartbeat.default")
        servers = json.loads(kubectl("get", *lease, "-n", shop.namespace)["metadata"]["annotations"]["anneal.dev/servers"])
        old = json.dumps({name: {**each, "renewed": "2026-01-01T00:00:00.000000Z"} for name, each in servers.items()})
        patched(served, *lease, metadata={"annotations": {"anneal.dev/servers": old}})
    told = served.says("no server has looked after it for")
    assert told.command == AGAIN
    served.types(told.command)
    assert served.says("no server has looked after it for"), "that was one run"
    (start,) = [each for each in told.then if "interval" in each]
    with subprocess.Popen(["bash", "-c", f"exec {start}"], env=served.environ(), stderr=subprocess.DEVNULL) as running:
        served.is_well()
        running.terminate()


def test_a_git_host_that_wants_credentials(alone: Night) -> None:
    shop = alone.shop
    shop.cli("apply")
    with Host() as own:
        work = Work.of(own, shop.namespace)
        work.write("deploy/one.yaml", document("ConfigMap", "one", data={"value": "1"}))
        work.commit("First")
        work.push()
        shop.configure(repository=own.url_of(shop.namespace))
        shop.cli("retarget", "shop", "-y", "--repository", shop.host.url_of(shop.work.directory.name))
        shop.cli("apply", "shop", "-y")
        own.accounts = {"x-access-token": "a token"}
        shop.cli("apply", "shop", code=1)
        told = alone.says("401; credentials: none are configured")
        assert "could not read Username" in alone.types(told.command, codes=(128,))
        block = yaml.safe_load(told.text.partition("write in the target: ")[2])
        configure(shop, {"name": "shop", **block})
        able = replace(alone, shop=replace(shop, cli=replace(shop.cli, environ={"GIT_TOKEN": "a token"})))
        able.types(able.says("401").command)
        able.is_well()


def test_a_git_host_that_is_gone(served: Night) -> None:
    shop = served.shop
    shop.cli("apply")
    gate = Gate(shop.host.url)
    shop.configure(repository=f"{gate.url}/{shop.work.directory.name}.git")
    shop.cli("retarget", "shop", "-y", "--repository", shop.host.url_of(shop.work.directory.name))
    shop.cli("apply", "shop")
    try:
        with served.watched():
            gate.turn("shut")
            told = served.says("refuses connections", codes=(UNKNOWN, TROUBLE))
            assert told.command.startswith(f"git ls-remote {gate.url}/")
            assert "Failed to connect" in served.types(told.command, codes=(128,))
            gate.turn("open")
            assert shop.work.head() in served.types(told.command)
            served.is_well()
    finally:
        gate.close()


def test_an_api_server_that_hangs(alone: Night, monkeypatch: pytest.MonkeyPatch) -> None:
    alone.shop.cli("apply")
    gate, kubeconfig = kubeconfig_through(alone.shop.cli.kubeconfig, alone.place / "through")
    far = replace(alone, shop=replace(alone.shop, cli=replace(alone.shop.cli, kubeconfig=kubeconfig)))
    try:
        gate.turn("silent")
        monkeypatch.setenv("ANNEAL_STATUS_TIMEOUT", "2")
        told = far.says("hasn't answered within 2 s", "(1 target: shop)", codes=(UNKNOWN,))
        monkeypatch.setenv("ANNEAL_STATUS_TIMEOUT", "60")
        assert "Unable to connect to the server" in far.types(told.command, codes=(1,))
        gate.turn("open")
        assert far.types(told.command).strip() == "ok"
        far.is_well()
    finally:
        gate.close()


@pytest.mark.parametrize("way", ["edited", "deleted"])
def test_drift_by_hand_that_is_only_reported(served: Night, way: str) -> None:
    shop, kubectl = served.shop, served.kubectl
    shop.configure("drift: report")
    shop.cli("apply")
    with served.watched():
        if way == "edited":
            patched(served, "cm", "one", data={"value": "9"})
        else:
            kubectl.run("delete", "cm", "one", "-n", shop.namespace)
        told = served.says(f"ConfigMap/{shop.namespace}/one", {"edited": "data.value: 9 → 1", "deleted": "one: is gone"}[way])
        assert told.command == AGAIN
        served.again(told.command)
        served.is_well()
    assert kubectl("get", "cm", "one", "-n", shop.namespace)["data"] == {"value": "1"}


def test_a_deleted_workload_with_drift_ignored(served: Night) -> None:
    """Only who watches health sees it: drift is ignored."""
    shop, kubectl = served.shop, served.kubectl
    pods = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "main", "image": "web:1"}]}}
    spec = {"replicas": 0, "selector": {"matchLabels": {"app": "web"}}, "template": pods}
    shop.work.write("deploy/web.yaml", document("Deployment", "web", "apps/v1", spec=spec))
    shop.push("A workload")
    shop.configure("drift: ignore", top="healthInterval: 2s")
    shop.cli("apply")
    with served.watched():
        kubectl.run("delete", "deployment", "web", "-n", shop.namespace)
        told = served.says(f"Deployment/{shop.namespace}/web: is not there", "what git declares is gone from the cluster")
        served.again(told.command)
        served.is_well()
    kubectl.run("get", "deployment", "web", "-n", shop.namespace)


def test_a_forgotten_suspend(served: Night) -> None:
    shop = served.shop
    shop.cli("apply")
    shop.cli("suspend", "shop", "--reason", "release freeze")
    with served.watched():
        shop.declare("one", value="2")
        head = shop.push("After the freeze")
        until(lambda: f"git:       {head[:12]}" in served.page(), served.page)
        shown = served.page()
        assert "release freeze" in shown
        (command,) = [line.strip() for line in shown.splitlines() if line.startswith("    ")]
        assert command == "anneal resume shop"
        served.types(command)
        until(lambda: f"commit:    {head[:12]}" in served.page(), served.page)
        served.is_well()


def test_a_commit_that_was_rolled_back(served: Night) -> None:
    shop = served.shop
    shop.configure("wait: {timeout: 60s}\nrollback: {onFailure: true}")
    shop.cli("apply")
    with served.watched():
        crash(shop)
        told = served.says(f"Deployment/{shop.namespace}/api", "its newest commit failed and was rolled back: push what mends it")
        assert told.command == "anneal unpin shop"
        mend(shop)
        served.types(told.command, (WELL, BUSY))
        served.is_well()
    assert shop.work.head()[:12] in served.page()


def test_another_repository_needs_retarget(alone: Night) -> None:
    shop = alone.shop
    shop.cli("apply")
    name = f"{shop.namespace}-moved"
    work = Work.of(shop.host, name)
    work.write("deploy/one.yaml", document("ConfigMap", "one", data={"value": "1"}))
    work.write("deploy/two.yaml", document("ConfigMap", "two", data={"value": "1"}))
    work.commit("First")
    work.push()
    before, now = shop.host.url_of(shop.work.directory.name), shop.host.url_of(name)
    shop.configure(repository=now)
    told = alone.says(f"repository was {before}, is now {now}", codes=(UNKNOWN,))
    assert told.command == "anneal retarget shop"
    alone.types(told.command, dialogue=[("type the record's repository", before)])
    shop.cli("apply", "shop", "-y")
    alone.is_well()


def test_a_missing_rbac_right(alone: Night) -> None:
    """The account that runs the target may write all but Services."""
    shop, kubectl = alone.shop, alone.kubectl
    account = kubectl.account(f"{shop.namespace}/anneal", alone.place)
    kubectl.grant(shop.cli("rbac", "--service-account", f"{shop.namespace}/anneal").stdout)
    shop.work.write("deploy/web.yaml", document("Service", "web", spec={"ports": [{"port": 80}]}))
    shop.push("A service")
    shop.cli("apply", code=1, kubeconfig=account)
    told = alone.says(f"Service/{shop.namespace}", "403", "resources: [services]", "access is denied")
    assert "rbac shop --service-account" in alone.types(told.command, codes=(1,), kubeconfig=account)
    kubectl.grant(shop.cli("rbac", "--service-account", f"{shop.namespace}/anneal").stdout)
    alone.types(told.command, (WELL, BUSY), kubeconfig=account)
    alone.is_well()


def test_a_record_that_may_not_be_read(alone: Night) -> None:
    shop, kubectl = alone.shop, alone.kubectl
    account = kubectl.account(f"{shop.namespace}/anneal", alone.place)
    kubectl.judges(f"{shop.namespace}/anneal", allows=False, verb="get", resource="configmaps", namespace=shop.namespace)
    shop.cli("apply")
    theirs = replace(alone, shop=replace(shop, cli=replace(shop.cli, kubeconfig=account)))
    told = theirs.says(f"ConfigMap/{shop.namespace}/anneal-shop", "403", codes=(UNKNOWN,))
    assert "rights" in theirs.types(told.command, codes=(1,))
    kubectl.grant(shop.cli("rbac", "--service-account", f"{shop.namespace}/anneal").stdout)
    until(lambda: "applied" in theirs.page().splitlines()[0], theirs.page)
    theirs.is_well()
