"""Only the target's path itself says which renderer it is meant for."""

from __future__ import annotations

import pytest

from handler.model.render import RenderRequest
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


@pytest.mark.parametrize(
    ("files", "notes"),
    [
        ({"deploy/web.jsonnet": "", "deploy/lib/a.jsonnet": "", "deploy/b.libsonnet": ""}, ["web.jsonnet"]),
        ({"deploy/web.jsonnet": "", "deploy/a.jsonnet": ""}, ["a.jsonnet, web.jsonnet"]),
        ({"deploy/lib/a.jsonnet": ""}, []),
    ],
)
def test_programs_of_jsonnet_without_a_manifest_are_named(files: dict[str, str], notes: list[str]) -> None:
    made = AutoRenderer({"file": FileRenderer()}).render(FakeTree(files), RenderRequest("deploy"), Sandbox())
    first = (names.split(",")[0] for names in notes)
    wanted = [(f"{each} is run by", f"entrypoint: {name}}}") for each, name in zip(notes, first, strict=True)]
    assert all(said in note and option in note for note, (said, option) in zip(made.notes, wanted, strict=True))
