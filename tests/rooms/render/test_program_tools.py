"""Real kustomize and helm behind the walls: they say what they say without them, at once, after one another, and beside one another."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from handler.model.errors import RendererUnavailable
from handler.render import Program, ProgramLimits, Sandbox
from infra.renderers.build import binaries
from tests.rooms.render.sandbox_privileges import GROUNDS

pytestmark = pytest.mark.skipif(bool(GROUNDS[0].missing()), reason=GROUNDS[0].missing() or "it can be tried")

CHART = {
    "Chart.yaml": "apiVersion: v2\nname: shop\nversion: 1.0.0\n",
    "values.yaml": "word: chart\n",
    "templates/map.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: '{{ .Release.Name }}'}\ndata: {word: '{{ .Values.word }}'}\n",
    "crds/crd.yaml": "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: a.b}\n",
}
CHARTS = {
    "kustomization.yaml": "helmGlobals: {chartHome: charts}\nhelmCharts:\n- {name: shop, releaseName: one, valuesInline: {word: inline}}\n",
    **{f"charts/shop/{path}": text for path, text in CHART.items()},
}


@pytest.fixture(scope="module")
def tools() -> Iterator[Path]:
    """The programs where every user may run them."""
    with tempfile.TemporaryDirectory() as directory:
        Path(directory).chmod(0o755)
        for name in ("kustomize", "helm"):
            shutil.copy(binaries() / name, directory)
        yield Path(directory)


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    with Sandbox("tests.rooms.render.hostile_child:FUNCTIONS") as shared:
        yield shared


def _run(sandbox: Sandbox, path: Path, *arguments: str, files: Mapping[str, str] | None = None, **about: Any) -> list[str]:
    """Return exit code, output and errors."""
    given = files or {}
    program = Program(str(path), arguments, {name: at for at, name in enumerate(given)}, **about)
    code, _, *said = sandbox.run("said", {}, [text.encode() for text in given.values()], bytes, "deploy", program)
    return [each.decode() for each in (code, *said)]


def _bare(place: Path, files: Mapping[str, str], *command: str, below: str = "") -> str:
    for name, text in files.items():
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        (place / name).write_text(text)
    environment = {"HOME": str(place), "PATH": os.path.dirname(command[0])}  # noqa: PTH120 - a string
    return subprocess.run(command, cwd=place / below, env=environment, capture_output=True, text=True, check=True).stdout


def test_kustomize_may_start_helm_where_it_is_named(sandbox: Sandbox, tools: Path, tmp_path: Path) -> None:
    arguments = ("build", "--enable-helm", "--helm-command", str(tools / "helm"))
    about = {"beside": (str(tools / "helm"),), "limits": ProgramLimits(processes=2)}
    code, output, errors = _run(sandbox, tools / "kustomize", *arguments, files=CHARTS, **about)
    assert (code, errors) == ("0", "")
    assert output == _bare(tmp_path, CHARTS, str(tools / "kustomize"), *arguments)
    assert "word: inline" in output
    code, _, errors = _run(sandbox, tools / "kustomize", *arguments, files=CHARTS)
    assert code == "1"
    assert "operation not permitted" in errors or "permission denied" in errors
    code, _, errors = _run(sandbox, tools / "kustomize", *arguments[:3], "/bin/cat", files=CHARTS, **about)
    assert (code, "permission denied" in errors) == ("1", True)


def test_what_a_kustomization_takes_from_elsewhere_is_refused_by_the_walls(sandbox: Sandbox, tools: Path) -> None:
    for resource in ("https://127.0.0.1:9/x.yaml", "/etc/hostname", "../../../etc/hostname", "git::https://127.0.0.1:9/a/b"):
        code, output, errors = _run(sandbox, tools / "kustomize", "build", files={"kustomization.yaml": f"resources: ['{resource}']\n"})
        assert (code, output) == ("1", ""), errors


def test_two_programs_at_once_have_directories_of_their_own(sandbox: Sandbox, tools: Path) -> None:
    answers: dict[int, list[str]] = {}

    def one(number: int) -> None:
        files = {**CHART, "values.yaml": f"word: value-{number}\n"}
        answers[number] = _run(sandbox, tools / "helm", "template", f"release-{number}", ".", files=files)

    threads = [threading.Thread(target=one, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [number for number in range(4) if f"word: 'value-{number}'" not in answers[number][1]] == []


def test_a_tool_that_the_renders_user_cannot_reach_is_the_operators(sandbox: Sandbox, tools: Path, tmp_path: Path) -> None:
    shutil.copy(tools / "kustomize", tmp_path / "helm")
    tmp_path.chmod(0o700)
    with pytest.raises(
        RendererUnavailable, match=rf"kustomize can't be started: user \d+ may not run {tmp_path}/helm; install it where every"
    ):
        _run(sandbox, tools / "kustomize", "version", beside=(str(tmp_path / "helm"),))
    assert _run(sandbox, tmp_path / "helm", "version")[0] == "0", "what is run first is opened before"


def test_a_path_that_leads_elsewhere_is_no_path_of_a_program(sandbox: Sandbox, tools: Path) -> None:
    for path in ("../x", "/x", "a/../x", "a//b", "./a", "", "a/."):
        with pytest.raises(ValueError, match="no path for a program"):
            _run(sandbox, tools / "kustomize", "version", files={path: ""})
    with pytest.raises(ValueError, match="no path for a program"):
        _run(sandbox, Path("kustomize"), "version")
