"""`anneal run`: targets without any webhook, once and at an interval, against a real cluster and a real git host."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from handler.model.errors import Stopping
from handler.model.names import state_name
from tests.e2e.cli.conftest import Shop
from tests.e2e.heartbeats import looked_after
from tests.e2e.serve_process import ROOT
from tests.kubectl import Kubectl
from tests.patience import PATIENCE, until

BROKEN = """\
  - name: broken
    repository: {{url: {url}}}
    path: nowhere
    namespaces: [{namespace}]
"""


def with_a_broken_one(shop: Shop) -> None:
    """Configure a second target, whose path isn't in its repository."""
    url = shop.host.url_of(shop.work.directory.name)
    shop.configure()
    with shop.cli.config.open("a") as file:
        file.write(BROKEN.format(url=url, namespace=shop.namespace))


@contextmanager
def staying(shop: Shop, log: Path, *arguments: str) -> Iterator[None]:
    """Run at an interval until the end of the block; it must end well."""
    command = [sys.executable, "-m", "handler", "-c", str(shop.cli.config), "run", *arguments, "--trigger=interval", "--interval=1s"]
    environ = {**os.environ, "KUBECONFIG": str(shop.cli.kubeconfig)}
    with log.open("wb") as said, subprocess.Popen(command, cwd=ROOT, env=environ, stderr=said) as process:
        try:
            yield
        finally:
            process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE) == 0, log.read_text()


def runs(log: Path) -> list[dict[str, Any]]:
    """Return the lines that tell of runs that came to their end; the last line may be half of one that is being written."""
    lines = [json.loads(line) for line in log.read_text().splitlines(keepends=True) if line.endswith("\n")]
    return [line for line in lines if line["message"] == "run" and line.get("code") != Stopping.code]


def test_each_target_runs_once_and_the_worst_end_is_the_exit_code(shop: Shop) -> None:
    with_a_broken_one(shop)
    ran = shop.cli("run", code=1)
    assert "shop: applied" in ran.stdout
    assert "broken: failed" in ran.stdout
    assert "nowhere" in ran.stderr
    assert "shop: unchanged" in shop.cli("run", "shop", "shop", "--trigger", "oneoff").stdout
    assert "did you mean shop" in shop.cli("run", "shpo", code=64).stderr
    assert "--interval" in shop.cli("run", "--interval", "soon", code=64).stderr


def test_run_at_an_interval_corrects_drift_and_no_failure_ends_it(shop: Shop, kubectl: Kubectl, tmp_path: Path) -> None:
    with_a_broken_one(shop)
    log = tmp_path / "log"

    def one() -> str:
        found = kubectl.tried("get", "cm", "one", "-n", shop.namespace, "-o", "jsonpath={.data.value}")
        return found.stdout if found.returncode == 0 else ""

    with staying(shop, log):
        until(lambda: one() == "1", log.read_text)
        kubectl.run("delete", "cm", "one", "-n", shop.namespace)
        until(lambda: one() == "1", log.read_text)
        shop.declare("one", "two", "three", value="2")
        shop.push("Second")
        until(lambda: one() == "2", log.read_text)
        head = shop.work.head()
        until(lambda: [line for line in runs(log) if line["outcome"] == "applied" and line["commit"] == head], log.read_text)
        until(lambda: any(line["target"] == "broken" for line in runs(log)), log.read_text)
        until(lambda: looked_after(kubectl, shop.namespace) == {"shop", "broken"}, log.read_text)
    ends = runs(log)
    assert {line["outcome"] for line in ends if line["target"] == "broken"} == {"failed"}
    assert [line["commit"] for line in ends if line["outcome"] == "applied"][-1] == shop.work.head()
    assert {line["trigger"] for line in ends} == {"drift"}
    rows = shop.cli("history", "shop").stdout.splitlines()[1:]
    assert rows
    assert all("  clock  " in row for row in rows)
    lease = kubectl("get", "lease", state_name("shop"), "-n", shop.namespace)
    assert not lease["spec"].get("holderIdentity"), "given back"


def test_locutus_follows_the_repository_of_a_configuration(shop: Shop) -> None:
    config = f"--config-file={shop.cli.config}"
    printed = json.loads(shop.cli("locutus", config, "--render-only").stdout)
    assert list(printed["objects"]) == ["one.yaml", "secret.yaml", "three.yaml", "two.yaml"]
    assert "shop: applied" in shop.cli("locutus", config, "--trigger=oneoff").stdout
    shop.declare("one")
    shop.push("Two go")
    assert "2 pruned" in shop.cli("locutus", config, "--one-off").stdout, "as the configuration says"
    assert "--renderer.file.dir" in shop.cli("locutus", config, "--one-off", "--renderer.file.rollout=x", code=64).stderr


def test_run_at_an_interval_runs_only_the_named_targets(shop: Shop, tmp_path: Path) -> None:
    with_a_broken_one(shop)
    log = tmp_path / "log"
    with staying(shop, log, "shop"):
        until(lambda: len(runs(log)) >= 2, log.read_text)
    assert {line["target"] for line in runs(log)} == {"shop"}
