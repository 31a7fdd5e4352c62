"""The target's Rollout with the real child: where it may lie, what is noted of it, how objects are called."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from handler.model.errors import AuthorError, ManifestInvalid, SourceRefused
from handler.model.render import Files, Rendered, RenderRequest
from handler.render import RENDERERS, Sandbox, SandboxLimits
from handler.render.document import MAX_ROLLOUT_BYTES
from tests.fakes.source_tree import FakeTree

ROLLOUT = """# how it goes
apiVersion: workflow.kubernetes.io/v1alpha1
kind: Rollout
metadata: {name: shop}
spec: {groups: [{steps: [{object: a.yaml, action: CreateOrUpdate}]}]}
"""
ROLLOUT_JSON = """{"spec": {},
"apiVersion": "workflow.kubernetes.io/v1alpha1",
"kind": "Rollout"}"""


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    with Sandbox() as sandbox:
        yield sandbox


def _config(name: str) -> str:
    return f"apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}}}\n"


def _config_json(name: str) -> str:
    return f'{{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {{"name": "{name}"}}}}'


def _render(sandbox: Sandbox, tree: FakeTree, rollout: str = "deploy/rollout.yaml", known: Files | None = None) -> Rendered:
    return RENDERERS["file"].render(tree, RenderRequest("deploy", rollout=rollout, known=known or {}), sandbox)


def _refused(sandbox: Sandbox, files: dict[str, str | bytes], rollout: str = "deploy/rollout.yaml") -> list[str]:
    with pytest.raises(AuthorError) as refused:
        _render(sandbox, FakeTree({"deploy/a.yaml": _config("a"), **files}), rollout)
    return str(refused.value).splitlines()


@pytest.mark.parametrize("path", ["deploy/rollout.yaml", "rollouts/shop.yaml", "./rollouts//shop.yaml"])
def test_a_rollout_may_lie_anywhere_and_is_no_object(sandbox: Sandbox, path: str) -> None:
    place = path.removeprefix("./").replace("//", "/")
    tree = FakeTree({"deploy/a.yaml": _config("a"), place: ROLLOUT})
    rendered = _render(sandbox, tree, path)
    assert [str(found.identity) for found in rendered.manifests] == ["ConfigMap/a"]
    assert rendered.rollout is not None
    assert (rendered.rollout.place, rendered.rollout.identity.name) == (f"{place}:2", "shop")
    assert place in dict(rendered.reads.paths)
    changed = FakeTree({"deploy/a.yaml": _config("a"), place: ROLLOUT + "\n"})
    assert rendered.reads.on(changed) != rendered.reads
    assert rendered.reads.on(FakeTree({"deploy/a.yaml": _config("a")})) != rendered.reads


def test_only_the_rollout_is_read_again_where_only_it_changed(sandbox: Sandbox) -> None:
    files = {"deploy/a.yaml": _config("a"), "deploy/rollout.yaml": ROLLOUT}
    first = _render(sandbox, FakeTree(files))
    again = _render(sandbox, FakeTree({**files, "deploy/rollout.yaml": ROLLOUT.replace("shop", "other")}), known=first.files)
    assert again.manifests[0] is first.manifests[0]
    assert again.rollout is not None
    assert again.rollout.identity.name == "other"


def test_without_one_there_is_none(sandbox: Sandbox) -> None:
    rendered = _render(sandbox, FakeTree({"deploy/a.yaml": _config("a")}), "")
    assert rendered.rollout is None
    assert list(rendered.keys) == ["a.yaml"]


def test_symlinks_to_a_rollout_are_followed_and_are_part_of_the_read_set(sandbox: Sandbox) -> None:
    files = {"deploy/a.yaml": _config("a"), "shared/v1.yaml": ROLLOUT, "shared/v2.yaml": ROLLOUT.replace("shop", "second")}
    tree = FakeTree(files, links={"deploy/rollout.yaml": "../shared/v1.yaml"})
    rendered = _render(sandbox, tree)
    assert [str(found.identity) for found in rendered.manifests] == ["ConfigMap/a"]
    assert rendered.rollout is not None
    assert rendered.rollout.place == "shared/v1.yaml:2"
    assert rendered.reads.on(FakeTree(files, links={"deploy/rollout.yaml": "../shared/v2.yaml"})) != rendered.reads
    with pytest.raises(SourceRefused, match="leads out of the repository"):
        _render(sandbox, FakeTree(files, links={"deploy/rollout.yaml": "../../elsewhere.yaml"}))


def test_objects_are_called_by_the_path_where_their_file_is_seen(sandbox: Sandbox) -> None:
    listed = '{"apiVersion": "v1", "kind": "List", "items": [%s]}'
    items = ", ".join(f'{{"apiVersion": "v1", "kind": "Secret", "metadata": {{"name": "{name}"}}}}' for name in "xy")
    files = {
        "deploy/a.yaml": f"{_config('a')}---\n---\n{_config('b')}---\n{_config('c')}",
        "deploy/sub/list.json": (listed % items) + _config_json("z"),
        "base/d.yaml": _config("d"),
        "deploy/empty.yaml": "",
    }
    rendered = _render(sandbox, FakeTree(files, links={"deploy/base": "../base"}), "")
    assert {key: " ".join(map(str, identities)) for key, identities in rendered.keys.items()} == {
        "a.yaml": "ConfigMap/a",
        "a.yaml!1": "ConfigMap/b",
        "a.yaml!2": "ConfigMap/c",
        "base/d.yaml": "ConfigMap/d",
        "sub/list.json": "Secret/x Secret/y",
        "sub/list.json!1": "ConfigMap/z",
    }


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("", "deploy/rollout.yaml: Rollout: holds no document; a Rollout stands alone in its file"),
        ("# nothing\n", "holds no document"),
        (f"{ROLLOUT}---\n{ROLLOUT}", "deploy/rollout.yaml:8: Rollout: holds 2 documents; a Rollout stands alone"),
        ("[]", "deploy/rollout.yaml:1: document: is no Rollout but a list or a plain value"),
        (_config("a"), "deploy/rollout.yaml:2: kind: is ConfigMap, not Rollout; write one document of kind: Rollout"),
        ("spec: {}", "kind: is missing, not Rollout"),
        ("kind: [Rollout]", "kind: is missing, not Rollout"),
        ("kind: Rollout", "apiVersion: is missing"),
        ("kind: Rollout\napiVersion: v1\nmetadata: [x]", "deploy/rollout.yaml:3: metadata: isn't a mapping"),
        ("kind: Rollout\nkind: Rollout", "deploy/rollout.yaml:2: key kind: written twice"),
        ("a: [", "deploy/rollout.yaml:2: YAML: "),
        (b"\xff\xfe", "deploy/rollout.yaml:1: file: isn't UTF-8"),
        ("x: " + "y" * MAX_ROLLOUT_BYTES, "deploy/rollout.yaml: has more than 1,000,000 bytes"),
        ("version https://git-lfs.github.com/spec/v1\n", "is a Git LFS pointer"),
    ],
)
def test_a_file_that_is_no_rollout_is_refused(sandbox: Sandbox, content: str | bytes, said: str) -> None:
    [line] = _refused(sandbox, {"deploy/rollout.yaml": content})
    assert said in line


def test_mistakes_of_objects_and_of_the_rollout_come_together(sandbox: Sandbox) -> None:
    found = _refused(sandbox, {"deploy/b.yaml": "kind: x", "deploy/rollout.yaml": "kind: x"})
    assert any(line.startswith("deploy/b.yaml:1") for line in found)
    assert any(line.startswith("deploy/rollout.yaml:1") for line in found)


def test_a_rollout_that_is_not_there_says_what_names_it(sandbox: Sandbox) -> None:
    [line] = _refused(sandbox, {}, "deploy/rolout.yaml")
    assert line.startswith("deploy/rolout.yaml: isn't in commit ")
    assert line.endswith("correct `rollout` of the target, or add the file")
    assert _refused(sandbox, {"x/y.yaml": ""}, "x") == ["x: is a directory; `rollout` of a target names a file"]


def test_a_commit_from_before_the_rollout_goes_without_and_says_where_it_was_looked_for(sandbox: Sandbox) -> None:
    tree = FakeTree({"deploy/a.yaml": _config("a"), "elsewhere/b.yaml": ""})
    request = RenderRequest("deploy", rollout="elsewhere/rollout.yaml", older=True)
    rendered = RENDERERS["file"].render(tree, request, sandbox)
    assert ([found.identity.name for found in rendered.manifests], rendered.rollout) == (["a"], None)
    later = FakeTree({"deploy/a.yaml": _config("a"), "elsewhere/rollout.yaml": ROLLOUT})
    assert rendered.reads.on(later) != rendered.reads


def test_a_rollout_among_the_objects_is_rendered_as_one(sandbox: Sandbox) -> None:
    """Whether it may be there is asked where the target is known (`handler.engine.planner.desired`)."""
    rendered = _render(sandbox, FakeTree({"deploy/a.yaml": ROLLOUT}), "")
    assert [found.identity.kind for found in rendered.manifests] == ["Rollout"]
    with pytest.raises(ManifestInvalid):
        _render(sandbox, FakeTree({"deploy/a.yaml": ROLLOUT.replace("metadata: {name: shop}", "metadata: {}")}), "")


def test_a_child_tells_where_the_fields_of_a_rollout_stand(sandbox: Sandbox) -> None:
    files = {"deploy/a.yaml": _config("a"), "deploy/rollout.yaml": ROLLOUT, "shared/r.json": ROLLOUT_JSON}
    assert _render(sandbox, FakeTree(files)).where(["metadata.name", "spec.groups[0].steps[3]", "status"]) == [4, 5, 0]
    assert _render(sandbox, FakeTree(files), "shared/r.json").where(["spec", "kind", "status"]) == [1, 3, 0]
    assert list(_render(sandbox, FakeTree(files), "").where(["spec"])) == [0]


def test_without_a_render_child_mistakes_of_a_rollout_have_no_lines() -> None:
    with Sandbox() as sandbox:
        rendered = _render(sandbox, FakeTree({"deploy/a.yaml": _config("a"), "deploy/rollout.yaml": ROLLOUT}))
        sandbox.limits = SandboxLimits(output=3)
        assert rendered.where(["spec", "kind"]) == [0, 0]
