"""Helm charts and kustomize folders among a commit's plain manifests: one line each, with what renders them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from handler.model.errors import ManifestInvalid, Problem
from handler.model.render import Called, Rendered, RenderRequest
from handler.render import RENDERERS, Sandbox
from tests.fakes.source_tree import FakeTree

CALLED = Called("shop", ("shop", "jobs"))
TO = "--name shop -n shop -n jobs -y"
HELM = "a Helm chart (Chart.yaml): Helm makes its objects, and this renderer reads plain manifests"
MADE = "kustomize makes the objects, and this renderer reads plain manifests"
CHART = {
    "Chart.yaml": "apiVersion: v2\nname: web\nversion: 0.1.0\n",
    "values.yaml": "replicas: 1\n",
    "templates/web.yaml": "{{- if .Values.on }}\nkind: {{ .Values.kind }}\n{{- end }}\n",
    "charts/db/Chart.yaml": "apiVersion: v2\nname: db\nversion: 0.1.0\n",
    "charts/db/values.yaml": "on: true\n",
}


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    with Sandbox() as sandbox:
        yield sandbox


def config(name: str) -> str:
    return f"apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}}}\n"


def under(folder: str, files: dict[str, str]) -> dict[str, str]:
    return {f"{folder}/{path}": text for path, text in files.items()}


def render(sandbox: Sandbox, files: dict[str, str], request: RenderRequest = RenderRequest("deploy")) -> Rendered:  # noqa: B008 - frozen
    return RENDERERS["file"].render(FakeTree(files), request, sandbox)


def refused(sandbox: Sandbox, files: dict[str, str], path: str = "deploy", called: Called = CALLED) -> tuple[Problem, ...]:
    with pytest.raises(ManifestInvalid) as caught:
        render(sandbox, files, RenderRequest(path, called=called))
    return caught.value.problems


# --- Helm
def test_a_helm_chart_is_refused_in_one_line_with_helm_template(sandbox: Sandbox) -> None:
    made = f"anneal apply -f deploy {TO}; or commit what `helm template shop deploy --include-crds --namespace shop` prints, instead"
    assert refused(sandbox, under("deploy", CHART)) == (Problem("deploy/", HELM, fix=made),)


def test_manifests_beside_a_helm_chart_are_applied_with_the_chart_in_annealignore(sandbox: Sandbox) -> None:
    files = {**under("deploy/web", CHART), "deploy/a.yaml": config("a"), "deploy/broken.yaml": "kind: [\n"}
    chart, broken = refused(sandbox, files)
    assert (chart.subject, broken.place) == ("deploy/web/", "deploy/broken.yaml:2")
    command = chart.fix.rpartition("; or leave it out: ")[2]
    assert command == "printf '%s\\n' /web/ >> deploy/.annealignore"
    del files["deploy/broken.yaml"]
    assert [str(found.identity) for found in render(sandbox, {**files, "deploy/.annealignore": "/web/\n"}).manifests] == ["ConfigMap/a"]


@pytest.mark.parametrize("path", ["deploy/web/templates", "deploy/web/charts/db"])
def test_a_part_of_a_helm_chart_is_refused_as_its_chart(sandbox: Sandbox, path: str) -> None:
    (found,) = refused(sandbox, under("deploy/web", CHART), path)
    assert (found.subject, found.message) == ("deploy/web/", HELM)


def test_a_kubernetes_object_in_a_file_called_chart_yaml_is_applied(sandbox: Sandbox) -> None:
    assert len(render(sandbox, {"deploy/Chart.yaml": config("chart"), "deploy/kustomization.yaml": config("b")}).manifests) == 2
    flux = "apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata: {name: apps, namespace: flux-system}\n"
    assert len(render(sandbox, {"deploy/kustomization.yaml": flux}).manifests) == 1


# --- kustomize
@pytest.mark.parametrize("name", ["kustomization.yaml", "kustomization.yml", "Kustomization"])
@pytest.mark.parametrize(
    "text",
    [
        "resources: [web.yaml]\nnamePrefix: a-\n",
        "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nmetadata: {name: x}\nresources: [web.yaml]\nnamePrefix: a-\n",
        "",
        "resources: [\n",
        "- a\n",
    ],
)
def test_a_kustomization_is_known_by_its_name(sandbox: Sandbox, name: str, text: str) -> None:
    (found,) = refused(sandbox, {f"deploy/{name}": text, "deploy/web.yaml": config("web"), "deploy/patch.yaml": "- op: remove\n"})
    made = f"anneal apply -f deploy {TO}; or commit what `kustomize build deploy` prints, instead"
    assert found == Problem("deploy/", f"a kustomize folder ({name}): {MADE}", fix=made)


def test_kustomize_bases_and_overlays_are_refused_in_one_line_naming_the_buildable(sandbox: Sandbox) -> None:
    files = {
        "deploy/app.yaml": config("app"),
        "deploy/k/base/kustomization.yaml": "resources: [web.yaml, ../shared/x.yaml]\n",
        "deploy/k/base/web.yaml": config("web"),
        "deploy/k/shared/x.yaml": "just: a patch\n",
        "deploy/k/parts/tls/kustomization.yaml": "kind: Component\napiVersion: kustomize.config.k8s.io/v1alpha1\n",
        "deploy/k/over/prod/kustomization.yaml": "resources: [../../base]\ncomponents: [../../parts/tls]\n",
        "deploy/k/over/prod/web.yaml": config("web"),
        "deploy/k/over/dev/kustomization.yaml": "resources: [../../base, 'https://git.example.com/acme/shop.git']\n",
    }
    (found,) = refused(sandbox, files)
    assert (found.subject, found.message) == ("deploy/k/", f"4 kustomize folders that belong together: {MADE}")
    assert found.fix == (
        f"anneal apply -f deploy/k/over/dev {TO.replace('--name shop', '--name shop-dev')}, or another of them: over/prod;"
        " or commit what `kustomize build deploy/k/over/dev` prints, instead; or leave it out: printf '%s\\n' /k/ >> deploy/.annealignore"
    )
    assert [each.subject for each in refused(sandbox, files, "deploy/k/over")] == ["deploy/k/over/"]


def test_unrelated_charts_and_kustomizations_are_refused_in_a_line_each(sandbox: Sandbox) -> None:
    found = refused(sandbox, {"a/kustomization.yaml": "namePrefix: a-\n", "b/kustomization.yaml": "namePrefix: b-\n"}, "")
    assert [each.subject for each in found] == ["a/", "b/"]


def test_a_kustomization_that_only_lists_manifests_may_be_ignored_by_annealignore(sandbox: Sandbox) -> None:
    files = {"deploy/kustomization.yaml": "resources: [web.yaml]\n", "deploy/web.yaml": config("web")}
    (found,) = refused(sandbox, files)
    first = found.fix.partition("; or ")[0]
    assert first == ("it only lists plain manifests; to apply them as they are: printf '%s\\n' kustomization.yaml >> deploy/.annealignore")
    assert len(render(sandbox, {**files, "deploy/.annealignore": "kustomization.yaml\n"}).manifests) == 1
    (found,) = refused(sandbox, {**files, "deploy/other.yaml": config("other")})
    assert "only lists" not in found.fix, "the other one isn't among them"


def test_a_kustomization_that_isnt_selected_says_nothing(sandbox: Sandbox) -> None:
    files = {"deploy/Kustomization": "namePrefix: a-\n", "deploy/web.yaml": config("web")}
    assert len(render(sandbox, files, RenderRequest("deploy", include=("web.yaml",))).manifests) == 1
    assert len(render(sandbox, files, RenderRequest("deploy", exclude=("Kustomization",))).manifests) == 1
    assert len(render(sandbox, {**files, "deploy/.annealignore": "Kustomization\n"}).manifests) == 1


def test_a_new_kustomization_is_seen_although_the_other_files_are_known(sandbox: Sandbox) -> None:
    files = {"deploy/web.yaml": config("web")}
    known = render(sandbox, files).files
    request = RenderRequest("deploy", known=known, called=CALLED)
    with pytest.raises(ManifestInvalid, match="kustomize build deploy"):
        render(sandbox, {**files, "deploy/Kustomization": "resources: [web.yaml]\n"}, request)


def test_commands_name_the_directory_as_the_user_did(sandbox: Sandbox) -> None:
    (found,) = refused(sandbox, {"kustomization.yaml": "namePrefix: a-\n"}, "", Called("shop", ("shop",), "my deploy"))
    assert found.fix.startswith("anneal apply -f 'my deploy' --name shop -n shop -y")


def test_a_yaml_file_without_a_kubernetes_object_is_refused_in_one_line(sandbox: Sandbox) -> None:
    (found,) = refused(sandbox, {"deploy/compose.yaml": "services: {web: {image: nginx}}\n"})
    assert str(found).startswith("deploy/compose.yaml:1: document: isn't a Kubernetes object")


def test_of_a_configured_target_the_way_out_is_its_renderer_and_one_of_another_target_below(sandbox: Sandbox) -> None:
    in_git = replace(CALLED, in_git=True)
    (found,) = refused(sandbox, {"deploy/kustomization.yaml": "namePrefix: a-\n"}, "deploy", in_git)
    made = "mkdir deploy-built && kustomize build deploy > deploy-built/shop-deploy.yaml"
    assert found.fix == f"write renderer: {{type: kustomize}}; or write path: deploy-built, and commit what this prints: {made}"
    (found,) = refused(sandbox, {"deploy/kustomization.yaml": "namePrefix: a-\n"}, "", in_git)
    assert found.fix.startswith("write path: deploy; or write path: deploy-built, and commit what this prints: mkdir deploy-built && ")
    (found,) = refused(sandbox, under("deploy/web", CHART), "deploy/web/templates", in_git)
    assert found.fix.startswith("write path: deploy/web; or write path: deploy/web-built, and")
    (found,) = refused(sandbox, {"kustomization.yaml": "namePrefix: a-\n"}, "", in_git)
    assert found.fix == "write renderer: {type: kustomize}"
