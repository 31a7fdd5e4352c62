"""The kustomize renderer against the real kustomize: what it makes, from where, what it reads, and what it leaves."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from handler.config.renderer_settings import RendererSettings
from handler.model.errors import ManifestInvalid, PathMissing, RendererUnavailable, RenderFailed, SourceRefused
from handler.model.names import Identity
from handler.model.render import Called, RenderRequest
from handler.model.rollout import API_VERSION
from handler.render import RENDERERS, ProgramLimits, Sandbox, SandboxLimits
from handler.render.kustomize import kustomize_renderer
from handler.render.render_tools import DIRECTORY
from tests.fakes.source_tree import FakeTree
from tests.rooms.render.kustomize_trees import BASE, TREES, asked, bare, bodies, config, deployment, public_tools, refused, render


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    with public_tools(), Sandbox() as sandbox:
        yield sandbox


@pytest.mark.parametrize("name", TREES)
def test_what_kustomize_prints_is_what_is_declared(sandbox: Sandbox, name: str) -> None:
    files, path, flags = TREES[name]
    made = render(sandbox, files, path, helm_charts=True)
    printed = [{**body, "stringData": body["stringData"]} if "stringData" in body else body for body in bare(files, path, *flags)]
    ours = bodies(made.manifests)
    assert [each for each in ours if each["kind"] != "Secret"] == [each for each in printed if each["kind"] != "Secret"]
    assert [each["metadata"]["name"] for each in ours] == [each["metadata"]["name"] for each in printed]
    assert made.renderer == "kustomize"


def test_the_same_tree_is_rendered_the_same(sandbox: Sandbox) -> None:
    files, path, _ = TREES["overlay"]
    assert render(sandbox, files, path) == render(sandbox, files, path)


# --- places
def test_each_object_stands_where_its_source_does(sandbox: Sandbox) -> None:
    files, path, _ = TREES["overlay"]
    places = {str(each.identity): each.place for each in render(sandbox, files, path).manifests}
    assert places["Deployment/shop/prod-web-eu"] == "base/web.yaml:1"
    assert places["Service/shop/prod-web-eu"] == "base/service.yaml:2"
    (generated,) = [place for name, place in places.items() if name.startswith("ConfigMap/shop/prod-settings-eu-")]
    assert generated in ("base/kustomization.yaml:3", "over/prod/kustomization.yaml:11")


def test_a_mistake_in_an_object_is_told_with_the_line_of_its_source(sandbox: Sandbox) -> None:
    files = {
        "deploy/kustomization.yaml": "resources: [many.yaml]\n",
        "deploy/many.yaml": f"{config('a')}---\n# the second\n{config('b')}  c: 5\n".replace("data: {'a': 'b'}\n  c", "data:\n  c"),
    }
    (found,) = refused(sandbox, files)
    assert (found.subject, found.place) == ("ConfigMap/b", "deploy/many.yaml:7")
    assert "c is a number, not text" in found.message


# --- reads
def changed(files: dict[str, str], path: str) -> dict[str, str]:
    return {**files, path: files.get(path, "") + "# changed\n"}


def test_what_is_read_are_the_directories_that_it_is_built_of_and_the_tool(sandbox: Sandbox) -> None:
    files, path = {**TREES["components"][0], "readme.md": "x", "other/a.yaml": config("x")}, "over"
    reads = render(sandbox, files, path).reads
    assert [name for name, _ in reads.paths] == ["//tool/kustomize", "base", "over", "parts/tls"]
    tool = dict(reads.paths)["//tool/kustomize"]
    for unread in ("readme.md", "other/a.yaml", "parts/new.yaml"):
        assert reads.on(FakeTree(changed(files, unread)), lambda _: tool) == reads
    for read in ("base/motd.txt", "over/new.txt", "parts/tls/cert.yaml"):
        assert reads.on(FakeTree(changed(files, read)), lambda _: tool) != reads
    assert reads.on(FakeTree(files), lambda _: "another") != reads


def test_a_refusal_says_from_which_reads_it_follows(sandbox: Sandbox) -> None:
    with pytest.raises(ManifestInvalid) as caught:
        render(sandbox, {"deploy/kustomization.yaml": "resources: [../lib]\n", "lib/a.yaml": "", "other": ""})
    assert [name for name, _ in caught.value.basis.reads] == ["deploy", "lib"]


# --- links, large files
def test_a_link_of_the_tree_is_what_it_leads_to_and_its_end_is_read(sandbox: Sandbox) -> None:
    files = {"deploy/kustomization.yaml": "resources: [a.yaml, base, ../base]\nnamePrefix: x-\n", "lib/a.yaml": config("a")}
    files |= {"base/kustomization.yaml": "resources: [b.yaml]\n", "base/b.yaml": config("b")}
    with pytest.raises(ManifestInvalid, match="is declared twice"):
        render(sandbox, files, links={"deploy/a.yaml": "../lib/a.yaml", "deploy/base": "../base"})
    files["deploy/kustomization.yaml"] = "resources: [a.yaml, base]\n"
    made = render(sandbox, files, links={"deploy/a.yaml": "../lib/a.yaml", "deploy/base": "../base"})
    assert [str(each.identity) for each in made.manifests] == ["ConfigMap/a", "ConfigMap/b"]
    assert {"deploy", "base", "lib/a.yaml"} <= {name for name, _ in made.reads.paths}


@pytest.mark.parametrize("target", ["/etc/passwd", "../../outside", "nowhere"])
def test_a_link_that_leads_elsewhere_is_refused(sandbox: Sandbox, target: str) -> None:
    files = {"deploy/kustomization.yaml": "resources: [a.yaml]\n", "deploy/a.yaml": config("a")}
    with pytest.raises(SourceRefused, match=r"deploy/b\.yaml"):
        render(sandbox, files, links={"deploy/b.yaml": target})


def test_a_path_that_isnt_there_is_missing(sandbox: Sandbox) -> None:
    with pytest.raises(PathMissing):
        render(sandbox, {"other/a": ""})
    with pytest.raises(SourceRefused, match="is a file"):
        render(sandbox, {"deploy": ""})


# --- generate
FLUX = {
    "deploy/b.yaml": config("b"),
    "deploy/a/deep/x.yml": config("x"),
    "deploy/web/kustomization.yaml": "resources: [web.yaml]\nnamePrefix: k-\n",
    "deploy/web/web.yaml": config("web"),
    "deploy/web/below/ignored.yaml": "not: an object\n",
    "deploy/.github/ci.yaml": "on: push\n",
    "deploy/.sourceignore": "secret/\n",
    "deploy/secret/s.yaml": "never: read\n",
    ".sourceignore": "*.tmp.yaml\n",
    "deploy/x.tmp.yaml": "no: object\n",
    "deploy/notes.txt": "",
    "deploy/list.json": "[]",
}


def test_a_tree_without_a_kustomization_gets_the_one_that_flux_makes(sandbox: Sandbox) -> None:
    made = render(sandbox, FLUX, generate=True)
    found = {str(each.identity): each.place for each in made.manifests}
    assert found == {"ConfigMap/x": "deploy/a/deep/x.yml:1", "ConfigMap/b": "deploy/b.yaml:1", "ConfigMap/k-web": "deploy/web/web.yaml:1"}
    assert [name for name, _ in made.reads.paths] == [".sourceignore", "//tool/kustomize", "deploy"]
    (problem,) = refused(sandbox, FLUX)
    assert str(problem).startswith("deploy: holds no kustomization.yaml")


def test_a_kustomization_that_is_there_is_used_as_it_is(sandbox: Sandbox) -> None:
    files = {**FLUX, "deploy/kustomization.yaml": "resources: [b.yaml]\n"}
    assert [str(each.identity) for each in render(sandbox, files, generate=True).manifests] == ["ConfigMap/b"]


def test_an_empty_tree_is_generated_as_nothing(sandbox: Sandbox) -> None:
    assert render(sandbox, {"deploy/readme.md": ""}, generate=True).manifests == ()


# --- rolling names, Rollouts
def test_a_generated_name_rolls_with_its_content_and_the_rollout_calls_it_by_neither(sandbox: Sandbox) -> None:
    old = render(sandbox, BASE, "base")
    new = render(sandbox, {**BASE, "base/motd.txt": "good morning\n"}, "base")
    names = [next(each.identity.name for each in made.manifests if each.identity.kind == "ConfigMap") for made in (old, new)]
    assert names[0] != names[1]
    for made, name in ((old, names[0]), (new, names[1])):
        (deployed,) = [each.body() for each in made.manifests if each.identity.kind == "Deployment"]
        assert deployed["spec"]["template"]["spec"]["containers"][0]["envFrom"] == [{"configMapRef": {"name": name}}]
        here = (Identity("", "ConfigMap", "", name),)
        assert (made.keys["ConfigMap/settings"], made.keys[f"ConfigMap/{name}"]) == (here, here)
    assert set(old.keys) == {"ConfigMap/settings", f"ConfigMap/{names[0]}", "Deployment/web", "Service/web"}


def test_a_rollout_is_a_file_of_the_tree_beside_what_is_built(sandbox: Sandbox) -> None:
    files = {**BASE, "base/rollout.yaml": f"apiVersion: {API_VERSION}\nkind: Rollout\nspec: {{groups: []}}\n"}
    made = asked(sandbox, files, RenderRequest("base", rollout="base/rollout.yaml"))
    assert made.rollout is not None
    assert list(made.where(["spec.groups"])) == [3]
    listed = {"deploy/rollout.yaml": files["base/rollout.yaml"], "deploy/a.yaml": config("a")}
    request = RenderRequest("deploy", rollout="deploy/rollout.yaml", options=RendererSettings(generate=True))
    assert [str(each.identity) for each in asked(sandbox, listed, request).manifests] == ["ConfigMap/a"]


# --- auto
def test_a_path_with_a_kustomization_is_built_without_being_told(sandbox: Sandbox) -> None:
    files = {"deploy/kustomization.yaml": "resources: [a.yaml]\nnamePrefix: x-\n", "deploy/a.yaml": config("a")}
    made = RENDERERS["auto"].render(FakeTree(files), RenderRequest("deploy", weak=True, called=Called(in_git=True)), sandbox)
    assert (made.renderer, [str(each.identity) for each in made.manifests]) == ("kustomize", ["ConfigMap/x-a"])


# --- walls and limits
def test_nothing_of_the_handlers_environment_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CANARY", "canary-5f1c")
    files, path, _ = TREES["chart"]
    template = 'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: {{ .Release.Name }}}\ndata: {seen: "x"}\n'
    files = {
        **files,
        "deploy/charts/cache/templates/config.yaml": template,
        "deploy/kustomization.yaml": 'helmCharts:\n- name: cache\n  nameTemplate: \'a{{ env "CANARY" }}{{ env "PATH" }}\'\n',
        "deploy/env.txt": "CANARY\n",
    }
    files["deploy/kustomization.yaml"] += "configMapGenerator:\n- name: env\n  envs: [env.txt]\n"
    with public_tools(), Sandbox() as sandbox:
        made = render(sandbox, files, path, helm_charts=True)
    assert "canary-5f1c" not in "".join(str(body) for body in bodies(made.manifests))
    assert sorted(body["metadata"]["name"].partition("-")[0] for body in bodies(made.manifests)) == ["a", "env"]


def test_a_build_that_takes_too_much_ends(sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    files = {
        "deploy/kustomization.yaml": "resources: [a.yaml]\n",
        "deploy/a.yaml": "".join(f"{deployment(f'w{n}')}---\n" for n in range(50)),
    }
    for limits, reason in ((ProgramLimits(output=1000), "output"), (ProgramLimits(memory=1 << 20), "memory")):
        monkeypatch.setattr(kustomize_renderer, "LIMITS", limits)
        with pytest.raises(RenderFailed) as caught:
            render(sandbox, files)
        assert caught.value.reason == reason


def test_without_kustomize_the_operator_is_told(sandbox: Sandbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(DIRECTORY, str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(RendererUnavailable, match="kustomize: isn't installed here"):
        render(sandbox, BASE, "base")
    assert os.environ[DIRECTORY] == str(tmp_path)


def test_a_sandbox_with_little_output_says_so() -> None:
    with public_tools(), Sandbox(limits=SandboxLimits(output=200)) as narrow, pytest.raises(RenderFailed):
        render(narrow, BASE, "base")
