"""What a person may not decide about a target whose record another one has taken over."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner

from handler.app.connections import Connections
from handler.cli import trust
from handler.cli.group import anneal
from handler.config.load import load
from tests.fakes.apiserver import FakeConnection
from tests.fakes.apiserver.connection import straight
from tests.unit.engine.renamed_targets import PROTECTED, Renamed, mapped

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("command", [["retarget", "shop", "-y"], ["suspend", "shop"], ["resume", "shop"]], ids=lambda each: each[0])
def test_a_record_that_was_taken_over_is_not_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: list[str]) -> None:
    made = Renamed()
    made.planted(mapped("one"), mapped("kept", annotations=PROTECTED))
    made.push(mapped("one"))
    made.dies_once(lambda: "shop" not in made.open_records())
    connection = FakeConnection(made.server, straight)
    monkeypatch.setattr(Connections, "_connection", lambda _self, _target: connection)
    monkeypatch.delenv("ANNEAL_CONFIG", raising=False)
    monkeypatch.chdir(tmp_path)
    target = {"name": "shop", "repository": {"url": "https://git.example.com/acme/other.git"}, "namespaces": ["shop"]}
    body = {"apiVersion": "anneal.dev/v1alpha1", "kind": "Config", "targets": [target]}
    Path("anneal.yaml").write_text(yaml.safe_dump(body), encoding="utf-8")
    assert trust.remember(Path("anneal.yaml"), load, os.environ)
    since = len(made.server.store.log)
    done = CliRunner().invoke(anneal, command)
    assert done.exit_code == 1, done.output
    assert "call it store, for this configuration is an older one" in " ".join(done.output.split())
    assert len(made.server.store.log) == since
