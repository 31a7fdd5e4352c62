"""Which files a generated kustomization lists, and in which order, as Flux' own generator does."""

from __future__ import annotations

import json

import pytest

from handler.model.errors import SourceRefused
from handler.render.kustomize.generated_kustomization import MAX_IGNORE_BYTES, generated
from tests.fakes.source_tree import FakeTree


def listed(files: dict[str, str], path: str = "", links: dict[str, str] | None = None, rollout: str = "") -> list[str]:
    made, _ = generated(FakeTree(files, links), path, rollout)
    (data,) = made.values()
    found: list[str] = json.loads(data)["resources"]
    return found


def test_files_are_listed_in_the_order_of_a_walk() -> None:
    files = {"a.yaml": "", "a/x.yaml": "", "a/b/y.yml": "", "z.yaml": "", "a-b/c.yaml": ""}
    assert listed(files) == ["./a/b/y.yml", "./a/x.yaml", "./a-b/c.yaml", "./a.yaml", "./z.yaml"]


def test_a_directory_with_a_kustomization_is_listed_and_not_entered() -> None:
    files = {"k/Kustomization": "", "k/a.yaml": "", "k/deep/kustomization.yaml": "", "b/k/kustomization.yml": "", "b/c.yaml": ""}
    assert listed(files) == ["./b/c.yaml", "./b/k", "./k"]


def test_only_yaml_of_regular_files_is_listed() -> None:
    files = {"a.yaml": "", "b.json": "", "c.txt": "", "d.YAML": "", "e.yaml.bak": ""}
    assert listed(files, links={"l.yaml": "a.yaml", "dir": "sub"}) == ["./a.yaml"]


def test_fluxs_ignore_rules_and_defaults_hold() -> None:
    files = {
        ".sourceignore": "*.skip.yaml\n!ci/keep.skip.yaml\n",
        "app/.sourceignore": "/local/\n# a comment\n",
        "app/a.yaml": "",
        "app/b.skip.yaml": "",
        "app/local/c.yaml": "",
        "app/.github/x.yaml": "",
        "app/.sops.yaml": "",
        "app/appveyor.yml": "",
        "app/sub/local/d.yaml": "",
    }
    assert listed(files, "app") == ["./a.yaml", "./sub/local/d.yaml"]
    assert listed({**files, "ci/keep.skip.yaml": ""}, "ci") == ["./keep.skip.yaml"]
    _, looked = generated(FakeTree(files), "app")
    assert set(looked) == {".sourceignore"}


def test_a_rollout_is_no_resource() -> None:
    assert listed({"d/a.yaml": "", "d/r.yaml": ""}, "d", rollout="d/r.yaml") == ["./a.yaml"]


def test_nothing_is_generated_beside_a_kustomization_and_an_empty_one_is_said_as_flux_says_it() -> None:
    assert generated(FakeTree({"d/kustomization.yml": "", "d/a.yaml": ""}), "d") == ({}, {})
    made, _ = generated(FakeTree({"d/x.txt": ""}), "d")
    assert json.loads(made["d/kustomization.yaml"])["namespace"] == "_placeholder"


def test_an_ignore_file_has_its_limit() -> None:
    with pytest.raises(SourceRefused, match="more than"):
        generated(FakeTree({"d/.sourceignore": "a\n" * MAX_IGNORE_BYTES, "d/a.yaml": ""}), "d")
