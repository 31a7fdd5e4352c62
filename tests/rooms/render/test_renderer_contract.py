"""What every renderer owes: the same objects of the same tree, honest reads, mistakes with file:line, nothing left behind."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from handler.model.errors import AnnealError, PathMissing, SourceRefused
from handler.model.manifest import digest_of
from handler.model.render import Rendered, RenderRequest
from handler.render import RENDERERS, Sandbox
from handler.render.programs.private_directories import PREFIX
from handler.render.render_tools import DIRECTORY
from infra.renderers import nix
from infra.renderers.build import binaries
from tests.fakes.source_tree import FakeTree
from tests.rooms.render.renderer_contract import CONFIG, SAMPLES, Files, RendererSample

every = pytest.mark.parametrize("sample", SAMPLES, ids=lambda sample: sample.renderer)


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    with pytest.MonkeyPatch.context() as patch:
        place = tempfile.mkdtemp()
        Path(place).chmod(0o711)
        patch.setattr(tempfile, "tempdir", place)
        patch.setenv("TMPDIR", place)
        patch.setenv(DIRECTORY, f"{binaries()}:{nix.binaries()}")
        with Sandbox() as sandbox:
            yield sandbox
        Path(place).rmdir()


def render(
    sandbox: Sandbox, sample: RendererSample, files: Files, links: Files | None = None, path: str = "deploy", rollout: str = ""
) -> Rendered:
    return RENDERERS[sample.renderer].render(FakeTree(files, links), RenderRequest(path, rollout=rollout), sandbox)


def elsewhere(found: Rendered, name: str) -> str:
    """Say that what isn't git is what it was."""
    return dict(found.reads.paths)[name]


@every
def test_the_same_tree_makes_the_same_objects_from_the_same_reads(sample: RendererSample, sandbox: Sandbox) -> None:
    one, other = (render(sandbox, sample, sample.files) for _ in range(2))
    assert [str(each.identity) for each in one.manifests] == ["ConfigMap/a", "ConfigMap/b"]
    assert (one.manifests, one.reads, one.notes, one.unstable) == (other.manifests, other.reads, other.notes, other.unstable)
    assert digest_of(one.manifests) == digest_of(other.manifests)


@every
def test_reads_hold_in_the_same_tree_and_where_only_others_files_changed(sample: RendererSample, sandbox: Sandbox) -> None:
    found = render(sandbox, sample, sample.files)
    for more in ({}, {"elsewhere/x": "a"}):
        assert found.reads.on(FakeTree({**sample.files, **more}), lambda name: elsewhere(found, name)) == found.reads
    for path in sample.files:
        changed = FakeTree({**sample.files, path: f"{sample.files[path]}# changed\n"})
        assert found.reads.on(changed, lambda name: elsewhere(found, name)) != found.reads


@every
def test_what_isnt_git_is_named_apart(sample: RendererSample, sandbox: Sandbox) -> None:
    found = render(sandbox, sample, sample.files)
    elsewhere = {path for path, _ in found.reads.paths if path.startswith("//")}
    assert elsewhere == (set() if sample.renderer == "file" else {f"//tool/{sample.tool or sample.renderer}"})
    assert found.reads.holds(lambda _: "another") == (sample.renderer == "file")
    assert found.renderer == sample.renderer


@every
def test_auto_takes_it_by_its_mark(sample: RendererSample, sandbox: Sandbox) -> None:
    found = RENDERERS["auto"].render(FakeTree(sample.files), RenderRequest("deploy"), sandbox)
    assert found.renderer == sample.renderer
    if sample.mark:
        assert dict(found.reads.paths)[f"deploy/{sample.mark}"]


@every
def test_a_mistake_has_file_and_line_and_the_tools_words(sample: RendererSample, sandbox: Sandbox) -> None:
    with pytest.raises(AnnealError) as caught:
        render(sandbox, sample, sample.broken)
    assert [each.place for each in caught.value.problems] == [sample.place]
    assert sample.said in str(caught.value)
    assert caught.value.who == "author"
    assert tempfile.gettempdir() not in str(caught.value)
    reads = dict(caught.value.basis.reads)
    assert reads["deploy"]


@every
def test_a_path_that_isnt_there_is_missing(sample: RendererSample, sandbox: Sandbox) -> None:
    with pytest.raises(PathMissing):
        render(sandbox, sample, sample.files, path="nowhere")


@every
@pytest.mark.parametrize("text", ["/etc/passwd", "../../../../etc/passwd"])
def test_a_link_out_of_the_repository_is_refused(text: str, sample: RendererSample, sandbox: Sandbox) -> None:
    with pytest.raises(SourceRefused, match=r"deploy/link\.yaml"):
        render(sandbox, sample, sample.files, {"deploy/link.yaml": text})


@every
def test_nothing_is_left(sample: RendererSample, sandbox: Sandbox) -> None:
    render(sandbox, sample, sample.files)
    assert not list(Path(tempfile.gettempdir()).glob(f"{PREFIX}*/*"))


@every
def test_a_rollout_is_read_from_its_own_file(sample: RendererSample, sandbox: Sandbox) -> None:
    rollout = "apiVersion: workflow.kubernetes.io/v1alpha1\nkind: Rollout\nmetadata: {name: r}\nspec:\n  groups: []\n"
    found = render(sandbox, sample, {**sample.files, "rollouts/r.yaml": rollout}, rollout="rollouts/r.yaml")
    assert found.rollout is not None
    assert (found.rollout.place, list(found.where(["spec.groups"]))) == ("rollouts/r.yaml:1", [5])
    assert {identity for key in found.keys.values() for identity in key} == {each.identity for each in found.manifests}
    assert dict(found.reads.paths)["rollouts/r.yaml"]
    with pytest.raises(SourceRefused, match=r"rollouts/r\.yaml"):
        render(sandbox, sample, sample.files, rollout="rollouts/r.yaml")
    assert render(sandbox, sample, {**sample.files, "x": CONFIG}).rollout is None
