"""At a terminal: questions before deletions, tables, colour."""

from __future__ import annotations

import re

from tests.e2e.cli.conftest import Shop
from tests.e2e.cli.prompts import typed
from tests.kubectl import Kubectl


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
