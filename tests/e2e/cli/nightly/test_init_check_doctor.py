"""The first ten minutes: init, the very commands that it prints, check at 80 columns, folders of others. Real git host and cluster."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.e2e.cli.conftest import Shop, document
from tests.kubectl import Kubectl
from tests.patience import PATIENCE, until
from tests.terminal import too_wide, typed

ROOT = Path(__file__).resolve().parents[4]


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A directory to begin in, with an `anneal` that is this one."""
    (tmp_path / "bin").mkdir()
    program = tmp_path / "bin" / "anneal"
    program.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m handler "$@"\n')
    program.chmod(0o755)
    (tmp_path / "begin").mkdir()
    return tmp_path / "begin"


def environ(shop: Shop, place: Path) -> dict[str, str | None]:
    path = f"{place.parent / 'bin'}:{os.environ['PATH']}"
    return {
        "PATH": path,
        "PYTHONPATH": str(ROOT),
        "KUBECONFIG": str(shop.cli.kubeconfig),
        "ANNEAL_CONFIG": None,
        "ANNEAL_BIND": "127.0.0.1:0",
    }


def begun(shop: Shop, place: Path, provider: str) -> list[str]:
    """Answer init's questions; return the commands that come next."""
    url = shop.host.url_of(shop.work.directory.name)
    dialogue = [("Repository", url), ("Variable", ""), ("Branch", ""), ("Directory", ""), ("Name of the target", "first")]
    dialogue += [("Namespaces", shop.namespace), ("Webhooks come from", provider)]
    code, shown = typed(["anneal", "init"], dialogue, environ=environ(shop, place), cwd=place)
    assert (code, too_wide(shown)) == (0, []), shown
    file = place / "anneal.yaml"
    file.write_text(file.read_text().replace("stateNamespace: anneal-system", f"stateNamespace: {shop.namespace}"))
    return [line.strip() for line in shown.partition("\nNext:\n")[2].partition("\n\n")[0].splitlines()]


def shell(shop: Shop, place: Path, *lines: str) -> subprocess.CompletedProcess[str]:
    env = {name: value for name, value in {**os.environ, **environ(shop, place)}.items() if value is not None}
    return subprocess.run(["sh", "-ec", "\n".join(lines)], cwd=place, env=env, capture_output=True, text=True, check=False)


def test_the_commands_that_init_prints_lead_to_a_serving_server(shop: Shop, place: Path, kubectl: Kubectl) -> None:
    export, check, serve = begun(shop, place, "github")
    assert (check, serve) == ("anneal check", "anneal serve")
    unset = shell(shop, place, check)
    assert (unset.returncode, "webhooks       failed   " in unset.stdout) == (1, True), "it says what serve would"
    refused = shell(shop, place, serve)
    assert (refused.returncode, "GITHUB_WEBHOOK_SECRET is not set" in refused.stderr) == (1, True)
    checked = shell(shop, place, export, check)
    assert checked.returncode == 0, checked.stdout
    assert "plan           ok       4 to create" in checked.stdout
    env = {name: value for name, value in {**os.environ, **environ(shop, place)}.items() if value is not None}
    with (place / "log").open("wb") as log:
        served = subprocess.Popen(["sh", "-ec", f"{export}\nexec {serve}"], cwd=place, env=env, stderr=log)
        try:
            until(lambda: kubectl.has("cm", "three", shop.namespace), (place / "log").read_text)
        finally:
            served.send_signal(signal.SIGTERM)
            assert served.wait(PATIENCE) == 0


def test_check_fits_a_terminal_of_80_columns(shop: Shop, place: Path) -> None:
    begun(shop, place, "github")
    code, shown = typed(["anneal", "check"], environ=environ(shop, place), cwd=place)
    rows = shown.splitlines()
    assert (code, rows[0].split()) == (1, ["SUBJECT", "VERDICT", "SEEN"])
    assert too_wide("\n".join(row for row in rows if not row.lstrip().startswith("→"))) == [], "what is to be copied is never broken"
    subjects = [row[:15].strip() for row in rows if row[:1].isalpha()]
    assert subjects == ["SUBJECT", "configuration", "webhooks", "credentials", "queue", "git", "cluster", "render", "rights", "plan"]
    assert '    → export GITHUB_WEBHOOK_SECRET="$(openssl rand -hex 32)"' in rows


def test_a_chart_beside_manifests_is_named_with_the_command_that_applies_it_and_the_one_that_leaves_it_out(
    shop: Shop, tmp_path: Path, place: Path, kubectl: Kubectl, renderers: Path
) -> None:
    chart = tmp_path / "beside" / "my chart"
    (chart / "templates").mkdir(parents=True)
    (chart / "Chart.yaml").write_text("apiVersion: v2\nname: web\nversion: 0.1.0\n")
    (chart / "templates" / "web.yaml").write_text(document("ConfigMap", "{{ .Release.Name }}"))
    (chart.parent / "one.yaml").write_text(document("ConfigMap", "beside"))
    flags = ("--name", "shop", "-n", shop.namespace, "--state-namespace", shop.namespace)
    refused = shop.cli("apply", "-f", str(chart.parent), *flags, code=1).stderr
    assert refused.startswith(f"{chart}/: a Helm chart (Chart.yaml): Helm makes its objects, and this renderer reads plain manifests\n")
    shown, _, rest = refused.splitlines()[1].strip().partition("; or ")
    leaves_out = rest.partition("or leave it out: ")[2]
    done = shell(shop, place, f"{shown} --state-namespace {shop.namespace}", leaves_out)
    assert done.returncode == 0, done.stderr
    assert "beside created" in shop.cli("apply", "-f", str(chart.parent), *flags).stdout
    assert {name for name in ("beside", "shop-my-chart") if kubectl.has("configmap", name, shop.namespace)} == {"beside", "shop-my-chart"}
