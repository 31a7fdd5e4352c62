"""What every renderer keeps: one row a renderer, one test set for all of them."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import pytest

from handler.model.errors import AuthorError, PathMissing
from handler.model.manifest import digest_of
from handler.model.render import Rendered, RenderRequest
from handler.render import RENDERERS, Sandbox
from tests.fakes.source_tree import FakeTree
from tests.rooms.render.kustomize_trees import config, public_tools


@dataclass(frozen=True)
class Row:
    """A renderer's sample: a tree below `deploy` that declares the ConfigMaps a and b.

    `read`, `unread`: paths whose change changes the render, or nothing; `broken`: files that are refused, and where that stands.
    """

    files: Mapping[str, str]
    read: tuple[str, ...]
    broken: Mapping[str, str]
    place: str
    unread: tuple[str, ...] = ("readme.md", "other/deploy.yaml", "deploy.yaml")
    options: object = None
    tools: tuple[str, ...] = field(default=())


ROWS = {
    "file": Row(
        {"deploy/a.yaml": config("a"), "deploy/sub/b.yaml": config("b")},
        ("deploy/a.yaml", "deploy/sub/b.yaml", "deploy/new.yaml"),
        {"deploy/a.yaml": "kind: [\n"},
        "deploy/a.yaml:2",
    ),
    "kustomize": Row(
        {
            "deploy/kustomization.yaml": "resources: [a.yaml, ../base]\n",
            "deploy/a.yaml": config("a"),
            "base/kustomization.yaml": "resources:\n- b.yaml\n",
            "base/b.yaml": config("b"),
        },
        ("deploy/a.yaml", "base/b.yaml", "base/kustomization.yaml", "deploy/new.yaml"),
        {"base/b.yaml": "kind: [\n"},
        "base/kustomization.yaml:2",
        tools=("kustomize",),
    ),
}
every = pytest.mark.parametrize("name", ROWS)


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    with public_tools(), Sandbox() as sandbox:
        yield sandbox


def render(sandbox: Sandbox, name: str, files: Mapping[str, str], path: str = "deploy") -> Rendered:
    return RENDERERS[name].render(FakeTree(files), RenderRequest(path, options=ROWS[name].options, weak=True), sandbox)


@every
def test_a_sample_is_rendered_the_same_each_time_in_any_child(sandbox: Sandbox, name: str) -> None:
    made = render(sandbox, name, ROWS[name].files)
    with Sandbox() as other:
        again = render(other, name, ROWS[name].files)
    assert sorted(str(each.identity) for each in made.manifests) == ["ConfigMap/a", "ConfigMap/b"]
    assert (again, digest_of(again.manifests)) == (made, digest_of(made.manifests))
    assert made.renderer == name
    assert RENDERERS["auto"].render(FakeTree(ROWS[name].files), RenderRequest("deploy", weak=True), sandbox).manifests == made.manifests


@every
def test_each_object_has_the_file_and_line_of_its_source(sandbox: Sandbox, name: str) -> None:
    for each in render(sandbox, name, ROWS[name].files).manifests:
        path, _, line = each.place.rpartition(":")
        assert f"name: {each.identity.name}" in "\n".join(ROWS[name].files[path].splitlines()[int(line) - 1 :])


@every
def test_a_mistake_has_the_file_and_line_of_its_source(sandbox: Sandbox, name: str) -> None:
    with pytest.raises(AuthorError) as caught:
        render(sandbox, name, {**ROWS[name].files, **ROWS[name].broken})
    assert [each.place for each in caught.value.problems] == [ROWS[name].place]
    assert caught.value.basis.reads


@every
def test_what_was_read_decides_and_nothing_else_does(sandbox: Sandbox, name: str) -> None:
    row = ROWS[name]
    reads = render(sandbox, name, row.files).reads
    assert {path for path, _ in reads.paths if path.startswith("//")} == {f"//tool/{tool}" for tool in row.tools}

    def changed(path: str) -> bool:
        tree = FakeTree({**row.files, path: row.files.get(path, "") + "\n# changed\n"})
        return reads.on(tree, dict(reads.paths).__getitem__) != reads

    assert [path for path in row.read if not changed(path)] == []
    assert [path for path in row.unread if changed(path)] == []


@every
def test_a_path_that_git_doesnt_have_is_missing_and_an_empty_one_renders_nothing_or_is_refused(sandbox: Sandbox, name: str) -> None:
    with pytest.raises(PathMissing):
        render(sandbox, name, ROWS[name].files, "gone")
    with pytest.raises(AuthorError):
        render(sandbox, name, ROWS[name].files, next(iter(ROWS[name].files)))


@every
def test_nothing_is_left_of_a_render(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with public_tools() as directory:
        own = directory / "tmp"
        own.mkdir(mode=0o755)
        monkeypatch.setattr(tempfile, "tempdir", str(own))
        with Sandbox() as sandbox:
            render(sandbox, name, ROWS[name].files)
            assert [found for base in own.iterdir() for found in base.iterdir()] == []
        assert list(own.iterdir()) == []
