"""The file renderer with its real child: manifests of a commit -> objects, reads, and one error for all mistakes."""

from __future__ import annotations

import base64
import contextlib
import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from handler.model.errors import ManifestInvalid, SourceRefused
from handler.model.manifest import canonical
from handler.model.render import Rendered, RenderRequest
from handler.model.tree import ReadSet
from handler.render import RENDERERS, Sandbox, file_renderer
from handler.render.globs import ignore_rules, ignored
from handler.source.local_tree import open_local
from infra.controlplane import controlplane
from infra.githost import Work
from tests.fakes.source_tree import FakeTree


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    with Sandbox() as sandbox:
        yield sandbox


def _render(sandbox: Sandbox, tree: FakeTree, path: str = "deploy") -> Rendered:
    return RENDERERS["file"].render(tree, RenderRequest(path), sandbox)


def _config(name: str) -> str:
    return f"apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}}}\n"


def test_a_directory_becomes_objects_in_path_order_from_one_fetch(sandbox: Sandbox) -> None:
    tree = FakeTree(
        {
            "deploy/b.yaml": f"{_config('b')}---\n{_config('c')}",
            "deploy/a/z.json": '{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "z"}, "data": {"k": "\\u00e9"}}',
            "deploy/notes.txt": "not read",
            "other/x.yaml": _config("x"),
        }
    )
    rendered = _render(sandbox, tree)
    assert [(str(found.identity), found.place) for found in rendered.manifests] == [
        ("ConfigMap/z", "deploy/a/z.json:1"),
        ("ConfigMap/b", "deploy/b.yaml:1"),
        ("ConfigMap/c", "deploy/b.yaml:5"),
    ]
    assert rendered.manifests[0].raw == canonical({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "z"}, "data": {"k": "é"}})
    assert tree.fetched == 1
    assert [path for path, _ in rendered.reads.paths] == ["deploy"]


def test_a_file_that_has_not_changed_is_neither_fetched_nor_read_again(sandbox: Sandbox) -> None:
    old = {"deploy/a.yaml": _config("a"), "deploy/b.yaml": _config("b"), "deploy/empty.yaml": ""}
    first = _render(sandbox, FakeTree(old))
    changed = FakeTree({**old, "deploy/b.yaml": _config("c")})
    request = RenderRequest("deploy", known=first.files)
    again = RENDERERS["file"].render(changed, request, sandbox)
    assert again == _render(sandbox, changed)
    assert again.manifests[0] is first.manifests[0]
    with pytest.raises(ManifestInvalid, match=r"^deploy/b\.yaml:1: ConfigMap/a: declared twice, first at deploy/a\.yaml:1$"):
        RENDERERS["file"].render(FakeTree({**old, "deploy/b.yaml": _config("a")}), request, sandbox)


def test_the_root_of_the_repository_and_untidy_spellings_are_paths_too(sandbox: Sandbox) -> None:
    tree = FakeTree({"deploy/prod/a.yaml": _config("a")})
    assert _render(sandbox, tree, "").reads.paths[0][0] == ""
    assert _render(sandbox, tree, "./deploy//prod/") == _render(sandbox, tree, "deploy/prod")


def test_the_reads_tell_whether_another_commit_renders_the_same(sandbox: Sandbox) -> None:
    plain = {"deploy/a.yaml": _config("a"), "base/b.yaml": _config("b"), "README": "1"}
    links = {"deploy/b.yaml": "../base/b.yaml", "deploy/later": "../later"}
    rendered = _render(sandbox, FakeTree(plain, links))
    for change, same in (
        ({"README": "2"}, True),
        ({"base/b.yaml": _config("n")}, False),
        ({"deploy/new": ""}, False),
        ({"later": ""}, False),
    ):
        assert (rendered.reads.on(FakeTree({**plain, **change}, links)) == rendered.reads) is same, change
    assert isinstance(rendered.reads, ReadSet)


def test_a_linked_path_is_followed_and_noted(sandbox: Sandbox) -> None:
    rendered = _render(sandbox, FakeTree({"v2/a.yaml": _config("a")}, {"deploy": "v2"}))
    assert [found.place for found in rendered.manifests] == ["v2/a.yaml:1"]
    assert [path for path, _ in rendered.reads.paths] == ["deploy", "v2"]


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("gone", "gone: isn't in commit c0ffeec0ffee"),
        ("deploy/a.yaml", "deploy/a.yaml: is a file; `path` of a target names a directory"),
        ("../etc", "leads out of the repository"),
        ("module", "module: this is a submodule"),
    ],
)
def test_a_path_that_is_no_directory_is_refused_never_rendered_empty(sandbox: Sandbox, path: str, message: str) -> None:
    with pytest.raises(SourceRefused, match=message):
        _render(sandbox, FakeTree({"deploy/a.yaml": _config("a")}, submodules=["module"]), path)


def test_lfs_pointers_are_refused_by_name_all_of_them(sandbox: Sandbox) -> None:
    pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:1\nsize 1\n"
    with pytest.raises(SourceRefused) as caught:
        _render(sandbox, FakeTree({"deploy/a.yaml": pointer, "deploy/b.yaml": pointer, "deploy/c.bin": pointer}))
    assert [problem.subject for problem in caught.value.problems] == ["deploy/a.yaml", "deploy/b.yaml"]


def test_all_mistakes_of_all_files_are_one_error(sandbox: Sandbox) -> None:
    tree = FakeTree(
        {
            "deploy/a.yaml": "a: [\n---\n" + _config("same"),
            "deploy/b.yaml": _config("same") + "data: {k: v, k: w}\n",
            "deploy/c.yaml": _config("same"),
            "deploy/d.json": '{"kind": "Pod"',
            "deploy/\x1b[31m.yaml": "x",
        }
    )
    with pytest.raises(ManifestInvalid) as caught:
        _render(sandbox, tree)
    assert str(caught.value).splitlines() == [
        "deploy/\\x1b[31m.yaml:1: document: is text, not a Kubernetes object; add the file to .annealignore if it isn't for the cluster",
        "deploy/a.yaml:2: YAML: did not find expected node content",
        "deploy/b.yaml:4: key k: written twice, first in line 4",
        "deploy/c.yaml:1: ConfigMap/same: declared twice, first at deploy/a.yaml:3",
        "deploy/d.json:1: JSON: Expecting ',' delimiter",
    ]


def test_a_thousand_mistakes_are_cut_short(sandbox: Sandbox) -> None:
    with pytest.raises(ManifestInvalid) as caught:
        _render(sandbox, FakeTree({"deploy/a.yaml": "---\nx\n" * 1_000}))
    assert len(caught.value.problems) == 101
    assert str(caught.value.problems[-1]) == "render: 900 more mistakes are not shown"


def test_too_much_is_refused_before_it_is_read(sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    tree = FakeTree({"deploy/a.yaml": _config("a"), "deploy/b.yaml": _config("b")})
    monkeypatch.setattr(file_renderer, "MAX_TOTAL", 60)
    with pytest.raises(SourceRefused, match="have 102 bytes together; at most 60 are read"):
        _render(sandbox, tree)
    monkeypatch.setattr(file_renderer, "MAX_FILES", 1)
    with pytest.raises(SourceRefused, match="deploy: has 2 files to render; at most 1 are read"):
        _render(sandbox, tree)


def test_a_directory_without_manifests_renders_nothing_and_says_what_it_read(sandbox: Sandbox) -> None:
    rendered = _render(sandbox, FakeTree({"deploy/README.md": ""}))
    assert (rendered.manifests, len(rendered.reads.paths)) == ((), 1)


def test_no_secret_value_is_in_any_error(sandbox: Sandbox) -> None:
    secret = "apiVersion: v1\nkind: Secret\nmetadata: {name: s}\nstringData:\n  a: c4n4ry\n"
    for broken in (
        "  b: 7c4n4ry: x\n",
        "  b: 'c4n4ry\n",
        "  a: c4n4ry\n",
        "  b: !c c4n4ry\n",
        "  b: [c4n4ry]\n",
        "  b: !!int c4n4ry\n",
        " c4n4ry\n",
    ):
        with pytest.raises(ManifestInvalid) as caught:
            _render(sandbox, FakeTree({"deploy/s.yaml": secret + broken}))
        assert "c4n4ry" not in str(caught.value)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.binary(max_size=120), min_size=1, max_size=4), st.sampled_from(["yaml", "json"]))
def test_whatever_lies_in_the_files_the_child_lives_and_explains(sandbox: Sandbox, blobs: list[bytes], suffix: str) -> None:
    tree = FakeTree({f"deploy/{number}.{suffix}": blob for number, blob in enumerate(blobs)})
    with contextlib.suppress(ManifestInvalid, SourceRefused):  # an LFS pointer may be among them
        assert not _render(sandbox, tree).manifests


def test_kube_prometheus_is_read_whole(sandbox: Sandbox, shared_data: Path) -> None:
    assert len({found.identity for found in _kube_prometheus(sandbox, shared_data).manifests}) == 131


@pytest.mark.cluster
def test_kube_prometheus_is_read_as_kubectl_reads_it(sandbox: Sandbox, shared_data: Path) -> None:
    ours = {str(found.identity): found.body() for found in _kube_prometheus(sandbox, shared_data).manifests}
    for body in ours.values():
        body["metadata"].setdefault("labels", {})["read-by"] = "kubectl"
    theirs = {_name(body): _applied(body) for body in _read_by_kubectl(shared_data / "kube-prometheus" / "manifests")}
    assert ours == theirs


def _kube_prometheus(sandbox: Sandbox, shared_data: Path) -> Rendered:
    folder = shared_data / "kube-prometheus"
    return _render(sandbox, FakeTree({str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*.yaml")}), "manifests")


def _read_by_kubectl(folder: Path) -> Iterator[dict[str, Any]]:
    """What kubectl makes of a directory without asking a server, on the way to adding a label."""
    kubectl = str(controlplane.binaries() / "kubectl")
    command = [kubectl, "label", "--local", "--overwrite", "-R", "-f", str(folder), "-o", "json", "read-by=kubectl"]
    text = subprocess.run(command, capture_output=True, check=True).stdout.decode().strip()
    at, decoder = 0, json.JSONDecoder()
    while at < len(text):
        body, at = decoder.raw_decode(text, at)
        at += text[at : at + 1] == "\n"
        yield from body.get("items", [body])


def _name(body: dict[str, Any]) -> str:
    return "/".join(part for part in (body["kind"], body["metadata"].get("namespace"), body["metadata"]["name"]) if part)


def _applied(body: dict[str, Any]) -> dict[str, Any]:
    """What a render changes on purpose."""
    body.pop("status", None)
    if plain := body.pop("stringData", None):
        body["data"] = {name: base64.b64encode(text.encode()).decode() for name, text in plain.items()}
    return body


_ODD = re.compile(r"[^/!]\*\*+/|\*\*\\/")
"""`a**/b` means `ab`, too, to git, for it takes `a` off both first; and `**\\/` must stand for something."""
_NAMES = st.sampled_from(["a", "b", "ab", "a.yaml", "x y", "c!", "#a", "a*", "d-1", "A", "!b"])
_LINES = (
    st.lists(
        st.sampled_from(
            ["a", "b", "*", "/", "?", "**/", "/**", "[a-b]", "[!a]", "[^b]", "[[:alpha:]]", "[]a]", "\\", "!", "#", ".yaml", " ", "d-1"]
        ),
        max_size=5,
    )
    .map("".join)
    .filter(lambda line: not _ODD.search(line))
)


@settings(max_examples=60, deadline=None)
@example({"a/b", "a/b/c", "ab"}, {"": ["a\\/**", "\\/ab"]})
@given(
    st.sets(st.lists(_NAMES, min_size=1, max_size=4).map("/".join), min_size=1),
    st.dictionaries(st.sampled_from(["", "a", "b"]), st.lists(_LINES)),
)
def test_ignore_files_mean_what_they_mean_to_git(
    tmp_path_factory: pytest.TempPathFactory, paths: set[str], texts: dict[str, list[str]]
) -> None:
    root = tmp_path_factory.mktemp("repository")
    subprocess.run(["git", "init", "-q", str(root)], check=True)
    for where, lines in texts.items():
        (root / where).mkdir(exist_ok=True)
        (root / where / ".gitignore").write_text("\n".join(lines))
    files = {path for path in paths if not any(other.startswith(f"{path}/") for other in {*paths, *(f"{where}/" for where in texts)})}
    for path in files:
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).touch()
    asked = "\0".join(sorted(files)).encode()
    git = subprocess.run(
        ["git", "-C", str(root), "check-ignore", "--no-index", "-z", "--stdin"], input=asked, capture_output=True, check=False
    )
    rules = {where: ignore_rules("\n".join(lines)) for where, lines in texts.items()}
    ours = {path for path in files if _ignored(path.split("/"), rules)}
    assert ours == {name.decode() for name in git.stdout.split(b"\0") if name}
    shutil.rmtree(root)


def _ignored(parts: list[str], rules: dict[str, Any]) -> bool:
    return any(ignored("/".join(parts[:count]), rules, directory=count < len(parts)) for count in range(1, len(parts) + 1))


def test_a_fetched_commit_renders_as_the_fake_one_does(sandbox: Sandbox, tmp_path: Path) -> None:
    work = Work(tmp_path / "shop", "nowhere").init()
    contents = {"deploy/a.yaml": _config("a"), "deploy/old/x.yaml": "", "deploy/.annealignore": "old/\n", "base/b.yaml": _config("b")}
    for path, text in contents.items():
        work.write(path, text)
    work.link("deploy/base", "../base").commit("A shop")
    tree, _ = open_local(work.directory)
    fake = FakeTree(contents, {"deploy/base": "../base"})
    for path in ("deploy", ""):
        real, faked = (RENDERERS["file"].render(each, RenderRequest(path), sandbox) for each in (tree, fake))
        assert real.manifests == faked.manifests
        assert [name for name, _ in real.reads.paths] == [name for name, _ in faked.reads.paths]
        assert real.reads.on(tree) == real.reads
