"""`anneal locutus --renderer=jsonnet`: the documented command lines run as written over small programs of the same form."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from handler.cli.group import USAGE, anneal
from tests.locutus import PROGRAMS

pytestmark = pytest.mark.slow

OBJECT = "{ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: %s } }"
ROLLOUT = {
    "apiVersion": "workflow.kubernetes.io/v1alpha1",
    "kind": "Rollout",
    "metadata": {"name": "made"},
    "spec": {"groups": [{"name": "all", "steps": [{"name": "one", "object": "one", "action": "CreateOrUpdate"}]}]},
}


def made(name: str) -> str:
    return f"{{ objects: {{ one: {OBJECT % name} }}, rollout: import 'rollout.json' }}"


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory with the programs that the document names, without a git repository around it."""
    files = {
        "jsonnet/main.jsonnet": made("'plain'"),
        "jsonnet-with-config/main.jsonnet": f"local c = import 'generic-operator/config'; {made('c.name')}",
        "jsonnet-with-config/config.json": '{"name": "configured"}',
        "jsonnet/rollout.json": json.dumps(ROLLOUT),
        "jsonnet-with-config/rollout.json": json.dumps(ROLLOUT),
    }
    for path, text in files.items():
        (tmp_path / "example" / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "example" / path).write_text(text)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def ran(*words: str, code: int = 0) -> str:
    found = CliRunner(env={"KUBECONFIG": "/nonexistent", "HOME": "/nonexistent"}).invoke(anneal, ["locutus", *words])
    assert found.exit_code == code, found.output
    return found.output if code else found.stdout


def printed(*words: str) -> Any:
    return json.loads(ran(*words, "--render-only"))


@pytest.mark.parametrize(("line", "name"), list(zip(PROGRAMS, ("plain", "configured"), strict=True)))
def test_documented_command_lines_run_as_written(place: Path, line: str, name: str) -> None:
    found = json.loads(ran(*shlex.split(line.replace("$KUBECONFIG", "/nonexistent"))[1:]))
    assert found["rollout"] == ROLLOUT
    assert {key: body["metadata"]["name"] for key, body in found["objects"].items()} == {"one": name}


def test_imports_of_the_checkout_around_the_program(place: Path) -> None:
    (place / "libs" / "a").mkdir(parents=True)
    (place / "libs" / "a" / "web.libsonnet").write_text("{ name: std.extVar('name') + (import '../b.libsonnet') }")
    (place / "libs" / "b.libsonnet").write_text("'-b'")
    (place / "vendor").mkdir()
    (place / "vendor" / "v.libsonnet").write_text("'-v'")
    program = place / "example" / "jsonnet" / "main.jsonnet"
    program.write_text(made("(import 'web.libsonnet').name + import 'v.libsonnet'"))
    words = ["-renderer", "jsonnet", "-renderer.jsonnet.entrypoint", str(program), "-renderer.jsonnet.ext-str=name=w"]
    for paths in (
        ["--renderer.jsonnet.jpaths=vendor,libs/a"],
        ["-renderer.jsonnet.jpaths", "vendor", "-renderer.jsonnet.jpaths", "libs/a"],
    ):
        assert printed(*words, *paths)["objects"]["one"]["metadata"]["name"] == "w-b-v"
    assert "web.libsonnet" in ran(*words, "--render-only", code=1)


@pytest.mark.parametrize(
    ("words", "seen"),
    [
        (("--renderer.jsonnet.ext-str=name",), "--renderer.jsonnet.ext-str: expected name=value, found 'name'"),
        (("--renderer.jsonnet.jpaths=/",), "--renderer.jsonnet.jpaths: / lies outside of"),
        (("--config-file=/etc/hostname",), "--config-file: /etc/hostname lies outside of"),
    ],
)
def test_what_cant_be_taken_is_named(place: Path, words: tuple[str, ...], seen: str) -> None:
    (place / ".git").mkdir()
    said = ran("--renderer=jsonnet", "--renderer.jsonnet.entrypoint=example/jsonnet/main.jsonnet", "--render-only", *words, code=USAGE)
    assert seen in " ".join(said.split())
