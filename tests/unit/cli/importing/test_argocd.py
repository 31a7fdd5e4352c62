"""An Argo CD Application as a configuration reads what is printed for it."""

from __future__ import annotations

import json
from typing import Any

from handler.cli.importing.argocd_parameters import pointer_of
from handler.config.git_settings import Repository, RepositoryAuth, Revision, SecretRef, SshAuth
from handler.config.renderer_settings import Chart, ChartSource, RendererSettings
from handler.config.settings import Cluster, HoldAbove, IgnoreRule, IgnoreSelect, Prune, Target
from handler.config.settings_shape import Json
from tests.unit.cli.importing.custom_resources import ARGOCD, GIT_URL, app, converted, lost, made, notes, read, target, unsaid
from tests.unit.rows import each_row

AUTOMATED = {"automated": {"prune": True, "selfHeal": True}}
ALL = ("**/*.yaml", "**/*.yml", "**/*.json")


def test_a_whole_one_is_the_target_that_does_the_same() -> None:
    differs = [{"group": "apps", "kind": "Deployment", "name": "web", "jsonPointers": ["/spec/replicas"]}]
    found = target(app({"directory": {"recurse": True, "exclude": "{test.yaml,docs/*}"}}, ignoreDifferences=differs))
    assert found == Target(
        name="web",
        repository=Repository(url=GIT_URL),
        revision=Revision(branch="main"),
        path="deploy",
        renderer=RendererSettings(type="file", exclude=("**/test.yaml", "docs/**/*.yaml", "docs/**/*.yml", "docs/**/*.json")),
        namespaces=("web",),
        namespace="web",
        cluster_scoped=("Namespace",),
        adopt=("argocd",),
        ignore=(IgnoreRule(IgnoreSelect("apps", "Deployment", "web"), ("/spec/replicas",)),),
        prune=Prune(enabled=True),
        drift="correct",
    )


@each_row(
    ("spec", "changed"),
    [
        ({"syncPolicy": None}, {"suspend": True, "prune": Prune(enabled=False), "drift": "report"}),
        ({"syncPolicy": {"automated": {"enabled": False, "prune": True}}}, {"suspend": True}),
        ({"syncPolicy": {"automated": {}}}, {"suspend": False, "prune": Prune(enabled=False), "drift": "report"}),
        ({"syncPolicy": {"automated": {"prune": True, "allowEmpty": True}}}, {"prune": Prune(allow_empty=True)}),
        ({"syncPolicy": AUTOMATED | {"syncOptions": ["Prune=false"]}}, {"prune": Prune(enabled=False)}),
        ({"syncPolicy": AUTOMATED | {"syncOptions": ["Prune=confirm"]}}, {"prune": Prune(hold_above=HoldAbove(0, 0.0))}),
        ({"destination": {"name": "prod", "namespace": "web"}}, {"cluster": Cluster(context="prod")}),
        (
            {"destination": {"server": "https://prod.example.com:6443"}},
            {"cluster": Cluster(server="https://prod.example.com:6443"), "namespaces": ("*",)},
        ),
    ],
)
def test_each_field_is_its_setting(spec: dict[str, Any], changed: dict[str, Any]) -> None:
    found = converted(app(**spec))
    assert {name: getattr(read(found).targets[0], name) for name in changed} == changed
    assert unsaid(found) == []


@each_row(
    ("revision", "read_as"),
    [
        ("HEAD", Revision(branch="main")),
        ("", Revision(branch="main")),
        ("release-1", Revision(branch="release-1")),
        ("refs/heads/dev", Revision(branch="dev")),
        ("v1.2.3", Revision(tag="v1.2.3")),
        ("refs/tags/one", Revision(tag="one")),
        ("1.*", Revision(semver="1.*")),
        (">=1.2.0 <2.0.0", Revision(semver=">=1.2.0 <2.0.0")),
        ("a" * 40, Revision(commit="a" * 40)),
    ],
)
def test_a_revision_is_read_as_what_it_looks_like(revision: str, read_as: Revision) -> None:
    assert target(app({"targetRevision": revision})).revision == read_as


@each_row(
    ("source", "renderer"),
    [
        ({}, RendererSettings()),
        ({"directory": {"recurse": True}}, RendererSettings(type="file", include=ALL)),
        ({"directory": {"include": "*.yaml"}}, RendererSettings(type="file", include=("*.yaml",))),
        ({"directory": {"jsonnet": {}, "recurse": False}}, RendererSettings(type="file", include=("*.yaml", "*.yml", "*.json"))),
        (
            {
                "directory": {
                    "include": "prod.jsonnet",
                    "jsonnet": {
                        "extVars": [{"name": "a", "value": "1"}, {"name": "b", "value": "[1]", "code": True}],
                        "tlas": [{"name": "c", "value": "x"}],
                        "libs": ["vendor", "/lib"],
                    },
                }
            },
            RendererSettings(
                "jsonnet",
                entrypoint="prod.jsonnet",
                jpath=("vendor", "lib"),
                ext_vars=Json('{"a":"1","b":[1]}'),
                top_level_arguments=Json('{"c":"x"}'),
            ),
        ),
        ({"kustomize": {"version": "v5.4.1"}}, RendererSettings(type="kustomize")),
        (
            {"helm": {"releaseName": "x", "skipCrds": True, "valueFiles": ["a.yaml", "../b.yaml", "/env/c.yaml"]}},
            RendererSettings(type="helm", release_name="x", skip_crds=True, values_files=("a.yaml", "../b.yaml", "../env/c.yaml")),
        ),
    ],
)
def test_a_source_is_rendered_as_argocd_does(source: dict[str, Any], renderer: RendererSettings) -> None:
    found = converted(app(source))
    assert read(found).targets[0].renderer == renderer
    assert unsaid(found) == []


def test_parameters_are_typed_as_helm_types_them() -> None:
    given = {"a": "true", "b.c": "1.10", "d": "007", "e": "{x,2}", "f": "12", "g": "a,b"}
    parameters = [{"name": name, "value": value} for name, value in given.items()]
    found = target(app({"helm": {"parameters": [*parameters, {"name": "h", "value": "1", "forceString": True}]}}))
    assert json.loads(found.renderer.set) == {"a": True, "b.c": "1.10", "d": "007", "e": ["x", 2], "f": 12, "g": "a,b", "h": "1"}


def test_values_as_text_are_those_that_were_read_with_the_input() -> None:
    given = app({"helm": {"values": "a: 1"}})
    assert json.loads(target(given, texts={"spec.source.helm.values": {"a": 1}}).renderer.values) == {"a": 1}
    assert "isn't YAML of a mapping" in lost(given)["spec.source.helm.values"]
    both = app({"helm": {"values": "a: 1", "valuesObject": {"a": 2}}})
    assert json.loads(target(both, texts={"spec.source.helm.values": {"a": 1}}).renderer.values) == {"a": 2}


CHART = {"repoURL": "https://charts.example.com/stable", "chart": "web", "targetRevision": "1.x"}


def test_a_chart_takes_its_values_from_the_source_that_it_names() -> None:
    helm = {"valueFiles": ["$vals/env/prod.yaml"]}
    sources = [CHART | {"helm": helm}, {"repoURL": GIT_URL, "targetRevision": "main", "ref": "vals"}]
    found = converted(app(sources=sources, source=None))
    (made_of,) = read(found).targets
    assert (made_of.repository.url, made_of.revision, made_of.path) == (GIT_URL, Revision(branch="main"), "")
    assert made_of.renderer.values_files == ("env/prod.yaml",)
    assert made_of.renderer.chart == Chart("1.x", repository=CHART["repoURL"], name="web")
    assert made_of.charts == (ChartSource(CHART["repoURL"]),)
    assert unsaid(found) == []


def test_a_chart_of_a_registry_without_a_scheme() -> None:
    found = target({**app(), "spec": app()["spec"] | {"source": CHART | {"repoURL": "ghcr.io/acme/charts"}}}, repository=GIT_URL)
    assert found.renderer.chart == Chart("1.x", oci="oci://ghcr.io/acme/charts/web")


def test_several_sources_of_manifests_are_several_targets() -> None:
    sources = [{"repoURL": GIT_URL, "path": "a"}, {"repoURL": "git@git.example.com:acme/other.git", "path": "b"}]
    one, two = read(converted(app(sources=sources, source=None))).targets
    assert (one.name, one.path, two.name, two.path) == ("web-1", "a", "web-2", "b")
    key = SshAuth(SecretRef(env="GIT_SSH_KEY"), "/etc/anneal/known_hosts")
    assert two.repository == Repository(url="ssh://git@git.example.com/acme/other.git", auth=RepositoryAuth(ssh=key))


@each_row(
    "source",
    [
        {"plugin": {"name": "x"}},
        {"directory": {"jsonnet": {"tlas": [{"name": "a", "value": "b"}]}}},
        {"directory": {"include": "*.jsonnet", "jsonnet": {"libs": ["vendor"]}}},
        {"directory": {"include": "a.jsonnet", "jsonnet": {"extVars": [{"name": "a", "value": "1 + 1", "code": True}]}}},
        {"directory": {"include": "a.jsonnet", "jsonnet": {"extVars": [{"name": "a", "value": "$ARGOCD_APP_NAME"}]}}},
        {"kustomize": {"images": ["a=b:1"]}},
        {"kustomize": {"namespace": "x"}},
        {"helm": {"fileParameters": [{"name": "a", "path": "b"}]}},
        {"helm": {"parameters": [{"name": "a", "value": "$ARGOCD_APP_REVISION"}]}},
        {"helm": {"valueFiles": ["https://example.com/values.yaml"]}},
        {"helm": {"valueFiles": ["$vals/x.yaml"]}},
        {"helm": {"valueFiles": ["env/*.yaml"]}},
        {"helm": {"valueFiles": ["${KUBE_API_VERSIONS}/x.yaml"]}},
    ],
)
def test_what_would_be_rendered_otherwise_is_named_and_suspends(source: dict[str, Any]) -> None:
    found = converted(app(source))
    assert any(note.halts for note in found.resources[0].notes)
    assert read(found).targets[0].suspend


@each_row(
    ("option", "says"),
    [
        ("CreateNamespace=true", "declare the Namespace in git"),
        ("Replace=true", "recreate: {kinds"),
        ("Odd=true", "Odd=true: import does not know this option"),
    ],
)
def test_an_option_without_a_counterpart_is_named(option: str, says: str) -> None:
    assert says in lost(app(syncPolicy=AUTOMATED | {"syncOptions": [option]}))["spec.syncPolicy.syncOptions[0]"]


@each_row(
    ("expression", "pointer"),
    [
        (".spec.replicas", "/spec/replicas"),
        (".spec.template.spec.containers[].image", "/spec/template/spec/containers/*/image"),
        ('.metadata.annotations["a.b/c"]', "/metadata/annotations/a.b~1c"),
        ('.metadata."a-b"[0]', "/metadata/a-b/0"),
        ('.spec.containers[] | select(.name == "x")', ""),
        (".a.", ""),
        ("a", ""),
        ("..", ""),
        ("", ""),
    ],
)
def test_a_path_of_jq_is_a_pointer(expression: str, pointer: str) -> None:
    assert pointer_of(expression) == pointer


def test_an_empty_group_is_the_core_group() -> None:
    rules = [{"kind": "Service", "jsonPointers": ["/spec/clusterIP"]}, {"group": "*", "kind": "*", "jsonPointers": ["/a"]}]
    found = target(app(ignoreDifferences=rules)).ignore
    assert found == (IgnoreRule(IgnoreSelect("core", "Service"), ("/spec/clusterIP",)), IgnoreRule(IgnoreSelect(), ("/a",)))


def test_who_writes_a_field_names_no_field() -> None:
    given = app(ignoreDifferences=[{"kind": "Service", "managedFieldsManagers": ["x"]}])
    assert "fields are named" in lost(given)["spec.ignoreDifferences[0].managedFieldsManagers"]
    assert target(given).suspend


def test_a_set_of_applications_is_named_with_its_generators() -> None:
    many = made(ARGOCD, "ApplicationSet", "web", {"generators": [{"git": {}}, {"list": {}}], "template": {}}, "argocd")
    project = made(ARGOCD, "AppProject", "web", {"destinations": []}, "argocd")
    found = converted(many, project, app(project="web"))
    assert [each["name"] for each, _ in found.targets] == ["web"]
    said = {each.kind: each.notes[0].text for each in found.resources}
    assert "isn't converted yet" in said["ApplicationSet"]
    assert said["ApplicationSet"].endswith("(its generators: git, list)")
    assert "namespaces, clusterScoped, impersonate" in said["AppProject"]
    assert "namespaces, clusterScoped, impersonate" in notes(found)["spec.project"].text


def test_what_annotations_ask_for_is_named() -> None:
    given = app()
    given["metadata"]["annotations"] = {"notifications.argoproj.io/subscribe.on-sync.slack": "x", "argocd.argoproj.io/refresh": "hard"}
    given["metadata"]["finalizers"] = ["resources-finalizer.argocd.argoproj.io"]
    found = notes(converted(given))
    assert "alert on the metrics" in found["metadata.annotations.notifications.argoproj.io/subscribe.on-sync.slack"].text
    assert found["metadata.annotations.argocd.argoproj.io/refresh"].verdict == "by itself"
    assert "docs/migrate.md" in found["metadata.finalizers"].text
