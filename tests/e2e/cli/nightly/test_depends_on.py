"""`dependsOn` on the command line: what check, plan, apply, status and run say and do about the order of two targets."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from infra.githost import Work
from tests.e2e.cli.conftest import Shop, document
from tests.e2e.serve_process import ROOT
from tests.patience import PATIENCE, until

INFRA = """\
  - name: infra
    repository: {{url: {url}{auth}}}
    path: deploy
    namespaces: [{namespace}]
    namespace: {namespace}
"""


@dataclass(frozen=True)
class Two:
    """The target `shop`, which depends on `infra` of a repository of its own."""

    shop: Shop
    infra: Work

    def configure(self, auth: str = "") -> None:
        self.shop.configure("dependsOn: [infra]")
        url = self.shop.host.url_of(self.infra.directory.name)
        with self.shop.cli.config.open("a") as file:
            file.write(INFRA.format(url=url, auth=auth, namespace=self.shop.namespace))

    def push(self, value: str, namespace: str = "") -> str:
        metadata = {"name": "base", "namespace": namespace or self.shop.namespace}
        self.infra.write("deploy/base.yaml", document("ConfigMap", "base", metadata=metadata, data={"value": value}))
        sha = self.infra.commit(f"Version {value}")
        self.infra.push()
        return sha


@pytest.fixture
def two(shop: Shop) -> Two:
    made = Two(shop, Work.of(shop.host, f"{shop.namespace}-infra"))
    made.configure()
    made.push("1")
    return made


def test_check_and_plan_say_what_comes_first_and_what_a_run_would_wait_for(two: Two) -> None:
    cli = two.shop.cli
    checks = {row["subject"]: row for row in cli.json("check", "shop")["checks"]}
    assert (checks["order"]["verdict"], checks["order"]["seen"]) == ("ok", "after infra, for which a run would wait: it never ran")
    assert "a run would wait for infra: it never ran; anneal apply infra" in cli("plan", "shop").stdout
    cli("apply", "infra", "--yes")
    (seen,) = [row["seen"] for row in cli.json("check", "shop")["checks"] if row["subject"] == "order"]
    assert seen == "after infra, which is ready"
    assert "wait for" not in cli("plan", "shop").stdout
    assert not [row for row in cli.json("check", "infra")["checks"] if row["subject"] == "order"]


def test_apply_waits_with_the_command_that_helps_and_status_leads_with_it(two: Two) -> None:
    cli = two.shop.cli
    head = two.shop.work.head()
    ran = cli("apply", "shop", "--yes", code=4)
    assert "shop: waiting" in ran.stdout
    assert "waiting for infra: it never ran" in ran.stderr
    assert "    anneal apply infra" in ran.stderr.splitlines()
    status = cli("status", "shop").stdout
    assert f"next: {head[:12]} waits for infra: “it never ran”; once that is ready, `anneal apply shop` goes on" in " ".join(status.split())
    assert "anneal apply infra" in status
    assert f"anneal apply shop --commit {head}" in " ".join(status.split())
    assert "waiting for infra" in cli.json("status", "shop")["state"]["status"]["message"]
    assert cli.json("status")["targets"][0]["phase"] == "waiting"
    assert "shop: applied" in cli("apply", "shop", "--yes", "--commit", head).stdout


def test_run_goes_in_order(two: Two) -> None:
    ran = two.shop.cli("run")
    ends = [line.partition(" in ")[0] for line in ran.stdout.splitlines() if ": applied" in line]
    assert [each.split()[0] for each in ends] == ["infra:", "shop:"]


def test_a_run_whose_first_fails_leaves_the_other_waiting_and_says_so(two: Two) -> None:
    two.push("2", namespace="elsewhere")
    ran = two.shop.cli("run", code=1)
    assert "infra: failed" in ran.stdout
    assert "shop: waiting" in ran.stdout
    assert "waiting for infra: it fails: " in ran.stderr
    assert "    anneal status infra" in ran.stderr.splitlines()
    assert "shop: waiting" in two.shop.cli("run", "shop", code=4).stdout


def test_a_credential_of_the_dependency_that_is_missing_holds_up_and_is_named(two: Two) -> None:
    cli = two.shop.cli
    cli("run")
    two.shop.declare("one", value="2")
    two.shop.push("Second")
    two.configure(", auth: {basic: {username: ada, password: {env: ANNEAL_TEST_NOT_SET}}}")
    ran = cli("apply", "shop", "--yes", code=4)
    assert "whether it is ready can't be seen: " in ran.stderr


def test_a_target_that_runs_at_an_interval_waits_for_one_that_does_not(two: Two, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "handler", "-c", str(two.shop.cli.config), "run", "shop", "--trigger=interval", "--interval=1s"]
    log = tmp_path / "run.log"
    environ = {**os.environ, "KUBECONFIG": str(two.shop.cli.kubeconfig)}
    with log.open("wb") as said, subprocess.Popen(command, cwd=ROOT, env=environ, stderr=said) as process:
        try:
            until(lambda: state(two).get("phase") == "waiting", log.read_text)
            two.shop.cli("apply", "infra", "--yes")
            until(lambda: state(two).get("phase") == "applied", log.read_text)
        finally:
            process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE) == 0, log.read_text()


def state(two: Two) -> dict[str, Any]:
    """Return the status of the record of shop, empty before there is one."""
    found = two.shop.cli.json("status", "shop")["state"]
    return dict(found["status"]) if found else {}
