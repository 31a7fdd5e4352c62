"""The Python of docs/operators-python.md, block after block, against a real control plane."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from handler.library import Reconciled
from tests.kubectl import Kubectl

PAGE = Path(__file__).parents[3] / "docs" / "operators-python.md"
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
PLACE = re.compile(r'("namespace": |namespace=|\], )"shop"')
"""Where the page names its namespace."""


def test_the_pages_program_does_what_the_page_says(
    control_plane: Path, kubectl: Kubectl, namespace: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("KUBECONFIG", str(control_plane))
    known: dict[str, Any] = {}
    blocks = BLOCK.findall(PAGE.read_text())
    assert len(blocks) == 4
    for block in blocks:
        exec(PLACE.sub(f'\\1"{namespace}"', block), known)
    said = capsys.readouterr().out
    assert said.startswith(f"['ConfigMap/{namespace}/page', 'ServiceAccount/{namespace}/shop']\n")
    assert "Unknown/x: example.com/v1 Unknown isn't served" in said
    done = known["done"]
    assert isinstance(done, Reconciled)
    assert len(done.unchanged) == 2
    assert kubectl.has("serviceaccount", "shop", namespace)
