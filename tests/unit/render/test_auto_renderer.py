"""Only the target's path itself says which renderer it is meant for."""

from __future__ import annotations

import pytest

from handler.model.errors import RenderFailed
from handler.model.render import Called, RenderRequest
from handler.render import FileRenderer, Sandbox
from handler.render.auto_renderer import AutoRenderer, chosen
from tests.fakes.source_tree import FakeTree


@pytest.mark.parametrize(
    ("files", "name"),
    [
        ({"deploy/web.yaml": ""}, "file"),
        ({"deploy/Chart.yaml": ""}, "helm"),
        ({"deploy/kustomization.yaml": ""}, "kustomize"),
        ({"deploy/kustomization.yml": ""}, "kustomize"),
        ({"deploy/Kustomization": ""}, "kustomize"),
        ({"deploy/Chart.yaml": "", "deploy/kustomization.yaml": ""}, "helm"),
        ({"deploy/main.jsonnet": "", "deploy/web.yaml": ""}, "jsonnet"),
        ({"deploy/main.jsonnet": "", "deploy/kustomization.yaml": ""}, "kustomize"),
        ({"deploy/main.jsonnet": "", "deploy/Chart.yaml": ""}, "helm"),
        ({"deploy/other.jsonnet": "", "main.jsonnet": ""}, "file"),
        ({"deploy/base/kustomization.yaml": "", "deploy/web.yaml": ""}, "file"),
        ({"kustomization.yaml": "", "Chart.yaml": "", "deploy/web.yaml": ""}, "file"),
        ({"deploy/Chart.yaml/a.yaml": "", "deploy/Kustomization/b.yaml": ""}, "file"),
        ({"deploy/kubernixos.nix": "", "deploy/web.yaml": ""}, "nix"),
        ({"deploy/kustomization.yaml": "", "deploy/kubernixos.nix": ""}, "kustomize"),
        ({"deploy/kustomization.json": "", "deploy/chart.yaml": ""}, "file"),
    ],
)
def test_the_path_decides_and_nothing_above_or_below_it(files: dict[str, str], name: str) -> None:
    assert chosen(FakeTree(files), "./deploy/")[0] == name


def test_every_look_is_a_read_so_that_a_file_that_comes_renders_anew() -> None:
    _, looked = chosen(FakeTree({"deploy/web.yaml": ""}), "deploy")
    assert looked == dict.fromkeys(
        (
            f"deploy/{name}"
            for name in ("Chart.yaml", "kustomization.yaml", "kustomization.yml", "Kustomization", "main.jsonnet", "kubernixos.nix")
        ),
        "",
    )


IN_GIT = Called(in_git=True)


@pytest.mark.parametrize(
    ("files", "called", "fix"),
    [
        (("web.jsonnet", "lib/a.jsonnet", "b.libsonnet"), IN_GIT, "write renderer: {type: jsonnet, entrypoint: web.jsonnet}"),
        (("web.jsonnet", "a.jsonnet"), IN_GIT, "write renderer: {type: jsonnet, entrypoint: a.jsonnet}"),
        (("lib/a.jsonnet",), IN_GIT, "write renderer: {type: jsonnet, entrypoint: lib/a.jsonnet}"),
        (("environments/prod/main.jsonnet",), IN_GIT, "write path: deploy/environments/prod"),
        (("prod/kubernixos.nix",), IN_GIT, "write path: deploy/prod"),
        (("b.libsonnet",), IN_GIT, "write the path of the program that imports it"),
        (("web.jsonnet",), Called(), "let it make files that can be applied: jsonnet deploy/web.jsonnet > deploy/web.jsonnet.json"),
    ],
)
def test_a_directory_that_only_programs_would_render_is_refused_by_the_renderer(files: tuple[str, ...], called: Called, fix: str) -> None:
    tree = FakeTree({f"deploy/{name}": "" for name in files})
    with pytest.raises(RenderFailed, match="no manifest is here, and") as caught:
        AutoRenderer({"file": FileRenderer()}).render(tree, RenderRequest("deploy", called=called), Sandbox())
    assert caught.value.problems[0].fix == fix + ("; or, if nothing is to be declared: renderer: {type: file}" if called.in_git else "")


def test_a_directory_without_a_program_may_hold_nothing() -> None:
    assert (
        AutoRenderer({"file": FileRenderer()}).render(FakeTree({"deploy/README.md": ""}), RenderRequest("deploy"), Sandbox()).manifests
        == ()
    )
