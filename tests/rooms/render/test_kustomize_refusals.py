"""What a kustomization may not name: each entry with its line, all at once, before anything is built."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from handler.config.renderer_settings import RendererSettings
from handler.model.errors import ManifestInvalid, SourceRefused
from handler.model.render import Called, RenderRequest
from handler.render import Sandbox
from tests.rooms.render.kustomize_trees import CHART, asked, charted, config, public_tools, refused

FETCHED = "isn't in git; kustomize would fetch it, and nothing is fetched here"
DOWNLOAD = "download it beside this file, commit it, and name that"


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    with public_tools(), Sandbox() as sandbox:
        yield sandbox


@pytest.mark.parametrize(
    "url",
    [
        "https://example.com/a.yaml",
        "http://example.com/a.yaml",
        "HTTPS://example.com/a.yaml",
        "https:example.com/a",
        "git@github.com:acme/shop",
        "ssh://git@example.com/acme/shop.git",
        "github.com/acme/shop?ref=v1",
        "GitHub.com/acme/shop",
        "git::https://example.com/acme/shop",
        "https://example.com/acme/shop//deploy?ref=main",
        "file:///srv/shop.git//base",
        "user@host.xz:acme/shop.git/base",
        "oci://example.com/acme/shop",
        "s3://bucket/shop",
    ],
)
def test_what_kustomize_would_fetch_is_refused_with_the_command_that_vendors_it(sandbox: Sandbox, url: str) -> None:
    (found,) = refused(sandbox, {"deploy/kustomization.yaml": f"# first\nresources:\n  - '{url}'\n"})
    assert (found.place, found.message) == ("deploy/kustomization.yaml:3", FETCHED)
    assert found.fix == "in a checkout, commit what this writes: anneal vendor deploy"


def test_a_remote_form_is_refused_although_the_tree_has_a_directory_of_that_name(sandbox: Sandbox) -> None:
    files = {
        "deploy/kustomization.yaml": "resources: [github.com/acme/shop]\n",
        "deploy/github.com/acme/shop/kustomization.yaml": "resources: [a.yaml]\n",
    }
    (found,) = refused(sandbox, files)
    assert found.message == FETCHED


def test_a_password_in_a_url_is_never_shown(sandbox: Sandbox) -> None:
    (found,) = refused(sandbox, {"deploy/kustomization.yaml": "resources: ['https://me:hunter2@example.com/a/b']\n"})
    assert found.subject == "https://example.com/a/b"
    assert "hunter2" not in str(found)


FIELDS = """resources: ['https://e/r']
bases: ['https://e/b/b']
components: ['https://e/c/c']
crds: ['https://e/crds']
configurations: ['https://e/conf']
openapi: {path: 'https://e/o'}
patches: [{path: 'https://e/p'}]
patchesStrategicMerge: ['https://e/ps']
patchesJson6902: [{path: 'https://e/pj', target: {kind: A}}]
replacements: [{path: 'https://e/re'}]
generators: ['https://e/g']
transformers: ['https://e/t']
validators: ['https://e/v']
configMapGenerator: [{name: a, files: ['k=https://e/f1', 'https://e/f2'], envs: ['https://e/e1'], env: 'https://e/e2'}]
secretGenerator: [{name: a, files: ['https://e/s1'], envs: ['https://e/s2']}]
Generators: ['{apiVersion: builtin, kind: PatchTransformer, path: "https://e/inline"}']
"""


def test_a_url_is_refused_in_every_field_that_can_hold_one(sandbox: Sandbox) -> None:
    found = refused(sandbox, {"deploy/kustomization.yaml": FIELDS})
    lines = {number for number, _ in enumerate(FIELDS.splitlines(), 1)}
    assert {each.place for each in found} == {f"deploy/kustomization.yaml:{line}" for line in lines}
    assert len(found) == 20
    assert {each.message for each in found} == {FETCHED}
    vendored = [each.subject for each in found if each.fix != DOWNLOAD]
    assert vendored == ["https://e/r", "https://e/b/b", "https://e/c/c"]


def test_urls_of_plugins_files_are_refused_where_they_stand(sandbox: Sandbox) -> None:
    files = {
        "deploy/kustomization.yaml": "transformers: [p.yaml, ../t]\n",
        "deploy/p.yaml": "apiVersion: builtin\nkind: PatchTransformer\nmetadata: {name: a}\npath: https://e/1\n",
        "t/kustomization.yaml": "resources: [q.yaml]\n",
        "t/q.yaml": "kind: ReplacementTransformer\napiVersion: builtin\nmetadata: {name: a}\nreplacements:\n- path: http://e/2\n",
    }
    assert [(each.subject, each.place) for each in refused(sandbox, files)] == [
        ("https://e/1", "deploy/p.yaml:4"),
        ("http://e/2", "t/q.yaml:5"),
    ]


@pytest.mark.parametrize(
    ("entry", "seen"),
    [
        ("/etc/passwd", "is a path of a machine"),
        ("../../outside", "leads out of the repository"),
        ("../other/x.yaml", "lies outside of this directory"),
        ("gone.yaml", "isn't in commit c0ffeec0ffee"),
        ("../empty", "holds no kustomization.yaml"),
        ("../two", "holds kustomization.yaml and Kustomization"),
        ("", "has an entry that is empty"),
        ("foo://bar", FETCHED),
    ],
)
def test_what_is_no_part_of_the_tree_is_refused_with_its_line(sandbox: Sandbox, entry: str, seen: str) -> None:
    files = {
        "deploy/over/kustomization.yaml": f"resources:\n- a.yaml\n- '{entry.replace('../', '../../') if 'out' in entry else entry}'\n",
        "deploy/over/a.yaml": config("a"),
        "deploy/other/x.yaml": config("x"),
        "deploy/empty/x.yaml": config("x"),
        "deploy/two/kustomization.yaml": "namePrefix: a-\n",
        "deploy/two/Kustomization": "namePrefix: a-\n",
    }
    (found,) = refused(sandbox, files, "deploy/over")
    assert found.place == "deploy/over/kustomization.yaml:3"
    assert found.message.startswith(seen)


def test_all_mistakes_of_all_kustomizations_are_told_at_once(sandbox: Sandbox) -> None:
    files = {
        "over/kustomization.yaml": "resources: [../base, https://a/b/c, gone.yaml]\ncomponents: [file.yaml]\npatches: [{path: dir}]\n",
        "over/file.yaml": config("f"),
        "over/dir/x": "",
        "base/kustomization.yaml": "resources:\n- https://d/e/f\nhelmCharts:\n- {name: x}\n",
    }
    assert [(each.subject, each.place) for each in refused(sandbox, files, "over")] == [
        ("gone.yaml", "over/kustomization.yaml:1"),
        ("file.yaml", "over/kustomization.yaml:2"),
        ("dir", "over/kustomization.yaml:3"),
        ("chart x", "base/kustomization.yaml:4"),
        ("https://a/b/c", "over/kustomization.yaml:1"),
        ("https://d/e/f", "base/kustomization.yaml:2"),
    ]


def test_one_command_vendors_all_as_the_user_names_the_directory(sandbox: Sandbox) -> None:
    files = {
        "k/over/kustomization.yaml": "resources: [../base, https://a/b/c]\n",
        "k/base/kustomization.yaml": "resources: [https://d/e/f]\n",
    }
    with pytest.raises(ManifestInvalid) as caught:
        asked(sandbox, files, RenderRequest("k/over", called=Called("shop", directory="my work")))
    assert {each.fix for each in caught.value.problems} == {"in a checkout, commit what this writes: anneal vendor 'my work/k'"}


# --- plugins
FUNCTION = """apiVersion: example.com/v1
kind: Maker
metadata:
  name: m
  annotations:
    {key}: |
      {how}
"""


@pytest.mark.parametrize("key", ["config.kubernetes.io/function", "config.k8s.io/function"])
@pytest.mark.parametrize("how", ["exec: {path: ./make.sh}", "container: {image: example/make}", "starlark: {path: a.star}"])
@pytest.mark.parametrize("field", ["generators", "transformers", "validators"])
def test_a_function_is_refused_with_its_line(sandbox: Sandbox, field: str, how: str, key: str) -> None:
    text = FUNCTION.format(key=key, how=how)
    (found,) = refused(sandbox, {"deploy/kustomization.yaml": f"{field}: [m.yaml]\n", "deploy/m.yaml": f"# a plugin\n{text}"})
    assert (found.subject, found.place) == ("Maker", "deploy/m.yaml:2")
    assert found.message == "is a function: a program or container that isn't run here"
    indented = text.replace("\n", "\n  ")
    (found,) = refused(sandbox, {"deploy/kustomization.yaml": f"namePrefix: a-\n{field}:\n- |-\n  {indented}\n"})
    assert found.place == "deploy/kustomization.yaml:3"


def test_a_plugin_outside_of_kustomize_is_refused_with_its_line(sandbox: Sandbox) -> None:
    files = {
        "deploy/kustomization.yaml": "generators: [m.yaml]\n",
        "deploy/m.yaml": "apiVersion: someteam.example.com/v1\nkind: Maker\nmetadata: {name: m}\n",
    }
    (found,) = refused(sandbox, files)
    assert (found.place, found.message) == ("deploy/m.yaml:1", "is a plugin outside of kustomize, which isn't run here")


# --- Git LFS
POINTER = "version https://git-lfs.github.com/spec/v1\noid sha256:1\nsize 1\n"


def test_a_pointer_of_git_lfs_that_is_named_is_refused_and_one_that_isnt_is_not(sandbox: Sandbox) -> None:
    files = {"deploy/kustomization.yaml": "resources: [a.yaml]\n", "deploy/a.yaml": POINTER, "deploy/logo.png": POINTER}
    (found,) = refused(sandbox, files)
    assert (found.subject, found.place) == ("deploy/a.yaml", "deploy/kustomization.yaml:1")
    assert "pointer of Git LFS" in found.message
    (found,) = refused(sandbox, {"deploy/kustomization.yaml": POINTER})
    assert found.subject == "deploy/kustomization.yaml"


# --- charts
def test_charts_are_inflated_only_where_the_target_allows_it(sandbox: Sandbox) -> None:
    files = {**charted("deploy/charts/cache"), "deploy/kustomization.yaml": "helmCharts:\n- {name: cache, releaseName: r}\n"}
    (found,) = refused(sandbox, files)
    assert (found.subject, found.place) == ("chart cache", "deploy/kustomization.yaml:2")
    assert found.fix == "allow it for this target: renderer: {type: kustomize, helmCharts: true}"
    assert len(asked(sandbox, files, RenderRequest("deploy", options=RendererSettings(helm_charts=True))).manifests) == 1


@pytest.mark.parametrize(
    ("chart", "seen"),
    [
        ("{name: other}", "isn't in deploy/charts/"),
        ("{name: ../../../x}", "leads out of the repository"),
        ("{version: 1.0.0}", "has no name"),
        ("{name: other, repo: https://charts.example.com}", "has no version"),
        ("{name: other, repo: https://charts.example.com, version: 1.0.0}", "nothing is fetched here"),
        ("{name: cache, valuesFile: 'https://e/v'}", FETCHED),
        ("{name: cache, additionalValuesFiles: ['https://e/v']}", FETCHED),
        ("{name: cache, additionalValuesFiles: ['../v.yaml']}", "isn't in commit"),
    ],
)
def test_a_chart_that_cant_be_had_is_refused_with_its_line(sandbox: Sandbox, chart: str, seen: str) -> None:
    files = {**charted("deploy/charts/cache", CHART), "deploy/kustomization.yaml": f"namespace: shop\nhelmCharts:\n- {chart}\n"}
    with pytest.raises(Exception, match=seen.replace("(", r"\(")) as caught:
        asked(sandbox, files, RenderRequest("deploy", options=RendererSettings(helm_charts=True)))
    assert str(caught.value).startswith("deploy/kustomization.yaml:3: ")


def test_a_configuration_of_helm_is_refused(sandbox: Sandbox) -> None:
    files = {
        **charted("deploy/charts/cache"),
        "deploy/kustomization.yaml": "helmGlobals:\n  configHome: .helm\nhelmCharts: [{name: cache}]\n",
    }
    (found,) = refused(sandbox, files, helm_charts=True)
    assert (found.subject, found.place) == ("helmGlobals.configHome", "deploy/kustomization.yaml:2")


# --- the kustomization itself
@pytest.mark.parametrize(
    ("text", "line", "seen"),
    [
        ("resources:\n- a\nresources:\n- b\n", 3, "written twice"),
        ("resources: [\n", 2, "did not find"),
        ("- a\n", 1, "isn't a mapping"),
        ("# nothing\n", 1, "is empty"),
        ("{}\n", 1, "is empty"),
        ("resources: [a.yaml]\nfoo: 1\n", 2, "kustomize knows no such field"),
        ("resources: a.yaml\n", 1, "can't be of type string"),
        ("namePrefix: p-\nimages: [{name: a, newTag: 1}]\n", 2, "images.newTag can't be of type number"),
        ("kind: Deployment\nresources: [a.yaml]\n", 1, "kind should be Kustomization or Component"),
    ],
)
def test_a_broken_kustomization_is_told_with_its_line(sandbox: Sandbox, text: str, line: int, seen: str) -> None:
    found = refused(sandbox, {"deploy/kustomization.yaml": text, "deploy/a.yaml": config("a")})
    assert found[0].place == f"deploy/kustomization.yaml:{line}"
    assert seen in found[0].message


def test_more_entries_than_are_looked_up_are_refused(sandbox: Sandbox) -> None:
    with pytest.raises(SourceRefused, match="one of more than 50,000 entries"):
        asked(sandbox, {"deploy/kustomization.yaml": f"resources: [{'a,' * 50_001}]\n"}, RenderRequest("deploy"))
