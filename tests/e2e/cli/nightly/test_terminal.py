"""At a terminal: questions before deletions, tables, colour; and `anneal serve` from the command line to the applied commit."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from pathlib import Path

from tests.e2e.cli.conftest import Shop
from tests.e2e.cli.prompts import typed
from tests.kubectl import Kubectl
from tests.patience import PATIENCE, until


def test_apply_on_a_terminal_asks_before_a_prune(shop: Shop, kubectl: Kubectl) -> None:
    shop.cli("apply")
    shop.declare("one", "two")
    shop.push("Three goes")
    code, shown = typed(shop, "n", "apply")
    assert code == 1
    assert f"- prune ConfigMap/{shop.namespace}/three  (no longer declared)" in shown
    assert "1 object of shop would be deleted. Go on? [y/N]:" in shown
    assert "nothing was changed" in shown
    assert kubectl("get", "cm", "three", "-n", shop.namespace)
    code, shown = typed(shop, "y", "apply")
    assert code == 0, shown
    assert f"ConfigMap/{shop.namespace}/three pruned" in shown
    assert not kubectl.has("cm", "three", shop.namespace)


def test_colour_and_tables_are_for_terminals_and_no_color_is_obeyed(shop: Shop) -> None:
    _, shown = typed(shop, "", "apply", "-y")
    assert "\x1b[32m" in shown
    _, shown = typed(shop, "", "history")
    assert "───" in shown
    code, shown = typed(shop, "", "apply", environ={"NO_COLOR": "1"})
    assert code == 0
    assert not re.search(r"\x1b\[3\dm", shown)


def test_serve_runs_its_targets_until_sigterm(shop: Shop, kubectl: Kubectl, tmp_path: Path) -> None:
    options = ["-c", str(shop.cli.config), "--bind", "127.0.0.1:0", "--kubeconfig", str(shop.cli.kubeconfig)]
    log = tmp_path / "log"
    with log.open("wb") as said, subprocess.Popen([sys.executable, "-m", "handler", "serve", *options], stderr=said) as served:
        try:
            until(lambda: "applied" in shop.cli("status", "shop").stdout.splitlines()[0], log.read_text)
        finally:
            served.send_signal(signal.SIGTERM)
        assert served.wait(PATIENCE) == 0, log.read_text()
    assert kubectl("get", "cm", "three", "-n", shop.namespace)
    assert "applied" in shop.cli("status", "shop").stdout.splitlines()[0]
