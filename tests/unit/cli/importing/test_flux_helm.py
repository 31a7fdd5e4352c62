"""A Flux HelmRelease, its chart's source and its git repository as a configuration reads what is printed for them."""

from __future__ import annotations

import json
from typing import Any

from handler.config.git_settings import BasicAuth, Repository, Revision, SecretRef
from handler.config.renderer_settings import Chart, ChartSource, RendererSettings, ValuesFrom
from handler.config.settings import IgnoreRule, IgnoreSelect, Rollback, Target, Wait
from tests.unit.cli.importing.custom_resources import (
    GIT_URL,
    SOURCE,
    chart,
    converted,
    git,
    ks,
    lost,
    made,
    notes,
    read,
    release,
    repo,
    target,
)
from tests.unit.rows import each_row

CRDS = "CustomResourceDefinition.apiextensions.k8s.io"
STABLE = "https://charts.example.com/stable"


def test_a_whole_one_is_the_target_that_does_the_same() -> None:
    found = target(
        git(),
        repo(),
        release(
            releaseName="shop",
            targetNamespace="flux-system",
            timeout="2m",
            values={"replicas": 2, "image": {"tag": "1.10"}, "on": "on", "gone": None},
            valuesFrom=[{"kind": "ConfigMap", "name": "web"}, {"kind": "Secret", "name": "pw", "valuesKey": "p", "targetPath": "a.b"}],
            driftDetection={"mode": "enabled", "ignore": [{"paths": ["/spec/replicas"], "target": {"kind": "Deployment"}}]},
            upgrade={"remediation": {"retries": 3}},
        ),
    )
    renderer = RendererSettings(
        type="helm",
        release_name="shop",
        values_from=(ValuesFrom("ConfigMap", "web"), ValuesFrom("Secret", "pw", "p", "a.b")),
        values=found.renderer.values,
        chart=Chart("1.x", repository=STABLE, name="web"),
    )
    assert json.loads(found.renderer.values) == {"replicas": 2, "image": {"tag": "1.10"}, "on": "on", "gone": None}
    assert found == Target(
        name="web",
        repository=Repository(url=GIT_URL),
        revision=Revision(branch="main"),
        renderer=renderer,
        charts=(ChartSource(STABLE),),
        namespaces=("flux-system",),
        namespace="flux-system",
        cluster_scoped=("Namespace", CRDS),
        adopt=("flux", "helm"),
        ignore=(IgnoreRule(IgnoreSelect(kind="Deployment"), ("/spec/replicas",)),),
        drift="correct",
        wait=Wait(timeout=120.0),
        rollback=Rollback(on_failure=True),
    )


@each_row(
    ("spec", "name"),
    [
        ({}, "web"),
        ({"targetNamespace": "shop"}, "shop-web"),
        ({"releaseName": "x", "targetNamespace": "shop"}, "x"),
        ({"targetNamespace": "n" * 63}, f"{'n' * 40}-2755f4aa73b5"),
    ],
)
def test_a_release_is_called_as_helm_controller_calls_it(spec: dict[str, Any], name: str) -> None:
    assert target(git(), repo(), release(**spec)).renderer.release_name == name


def test_a_release_without_a_namespace_is_suspended_since_a_kustomization_may_give_it_one() -> None:
    one, source = release(chart=chart(sourceRef={"kind": "HelmRepository", "name": "charts", "namespace": "flux-system"})), repo()
    del one["metadata"]["namespace"]
    found = target(git(), source, one)
    assert (found.namespace, found.suspend) == ("default", True)
    assert "kustomize build DIR | anneal import -f -" in lost(git(), source, one)["metadata.namespace"]
    one["spec"]["targetNamespace"] = "web"
    assert (target(git(), source, one).namespace, target(git(), source, one).suspend) == ("web", False)


@each_row(
    ("spec", "changed"),
    [
        ({}, {"drift": "ignore", "wait": Wait(300.0), "rollback": Rollback()}),
        ({"driftDetection": {"mode": "warn"}}, {"drift": "report"}),
        ({"install": {"disableWait": True}, "upgrade": {"disableWait": True, "remediation": {"retries": 1}}}, {"wait": None}),
        ({"install": {"disableWait": True}}, {"wait": Wait(300.0)}),
        ({"install": {"crds": "Skip"}}, {"cluster_scoped": ("Namespace",)}),
        ({"suspend": True}, {"suspend": True}),
        ({"upgrade": {"remediation": {"retries": 3, "strategy": "uninstall"}}}, {"rollback": Rollback()}),
        ({"upgrade": {"remediation": {"retries": 3, "remediateLastFailure": False}}}, {"rollback": Rollback()}),
    ],
)
def test_each_field_is_its_setting(spec: dict[str, Any], changed: dict[str, Any]) -> None:
    found = target(git(), repo(), release(**spec))
    assert {name: getattr(found, name) for name in changed} == changed
    assert found.renderer.skip_crds is ("Skip" in str(spec))


def test_a_chart_in_git_is_a_path_and_its_values_files_are_relative_to_it() -> None:
    spec = chart(
        chart="./charts/web", sourceRef={"kind": "GitRepository", "name": "shop"}, valuesFiles=["charts/web/values.yaml", "env/prod.yaml"]
    )
    found = target(git(), release(chart=spec))
    assert (found.path, found.renderer.values_files, found.renderer.chart) == ("charts/web", ("values.yaml", "../../env/prod.yaml"), None)
    assert (
        "each commit counts"
        in lost(git(), release(chart=chart(**spec["spec"], reconcileStrategy="ChartVersion")))["spec.chart.spec.reconcileStrategy"]
    )


OCI = made(SOURCE, "OCIRepository", "web", {"url": "oci://ghcr.io/acme/charts/web", "ref": {"tag": "1.2.3"}, "secretRef": {"name": "reg"}})


def test_a_chart_of_a_registry_by_reference() -> None:
    given = release(chart=None, chartRef={"kind": "OCIRepository", "name": "web"})
    found = target(git(), OCI, given)
    assert found.renderer.chart == Chart("1.2.3", oci="oci://ghcr.io/acme/charts/web")
    password = SecretRef(kubernetes_secret="flux-system/reg/password")
    assert found.charts == (ChartSource("oci://ghcr.io/acme/charts", BasicAuth("USERNAME", password)),)
    assert "kubectl get secret/reg -n flux-system" in notes(converted(git(), OCI, given))["spec.secretRef.name"].text


def test_a_chart_of_a_repository_that_is_a_registry() -> None:
    found = target(git(), repo(type="oci", url="oci://ghcr.io/acme/charts"), release())
    assert found.renderer.chart == Chart("1.x", oci="oci://ghcr.io/acme/charts/web")


def test_a_chart_by_a_helm_chart() -> None:
    by_chart = made(SOURCE, "HelmChart", "web", {"interval": "5m", **chart()["spec"]})
    found = target(git(), repo(), by_chart, release(chart=None, chartRef={"kind": "HelmChart", "name": "web"}))
    assert found.renderer.chart == Chart("1.x", repository=STABLE, name="web")


def test_a_chart_from_elsewhere_takes_the_repository_of_the_kustomization_that_applied_it() -> None:
    other = git("other", url="https://git.example.com/acme/other")
    owner = {"kustomize.toolkit.fluxcd.io/name": "apps", "kustomize.toolkit.fluxcd.io/namespace": "flux-system"}
    labelled = release()
    labelled["metadata"]["labels"] = owner
    found = read(converted(git(), other, ks(sourceRef={"kind": "GitRepository", "name": "other"}), repo(), labelled))
    assert found.targets[1].repository.url == "https://git.example.com/acme/other"
    (problem,) = converted(git(), other, repo(), release()).problems
    assert "--repository https://" in problem.fix
    assert target(repo(), release(), repository="https://git.example.com/x/y").repository.url == "https://git.example.com/x/y"


@each_row(
    "spec",
    [
        {"postRenderers": [{"kustomize": {}}]},
        {"commonMetadata": {"labels": {"a": "b"}}},
        {"install": {"disableHooks": True}},
        {"upgrade": {"preserveValues": True}},
        {"chart": chart(valuesFiles=["values-prod.yaml"])},
        {"chart": chart(verify={"provider": "cosign"})},
        {"chart": chart(chart="web", sourceRef={"kind": "GitRepository", "name": "shop"}, valuesFiles=["web/values-prod.yaml"])},
        {"valuesFrom": [{"kind": "Pod", "name": "x"}]},
        {"valuesFrom": [{"kind": "Secret", "name": "x"}], "targetNamespace": "other"},
    ],
)
def test_what_would_be_done_otherwise_is_named_and_suspends(spec: dict[str, Any]) -> None:
    found = converted(git(), repo(), release(**spec))
    assert read(found).targets[0].suspend
    assert any(note.halts for note in found.resources[2].notes)


@each_row(
    ("spec", "field", "says"),
    [
        ({"install": {"createNamespace": True}}, "spec.install.createNamespace", "declare the Namespace in git"),
        ({"test": {"enable": True}}, "spec.test", "helm tests aren't run"),
        ({"upgrade": {"force": True}}, "spec.upgrade.force", "recreate: {kinds"),
        ({"upgrade": {"crds": "Skip"}}, "spec.upgrade.crds", "renderer.skipCrds"),
        ({"dependsOn": [{"name": "x"}]}, "spec.dependsOn[0]", "isn't in the input"),
    ],
)
def test_what_has_no_counterpart_is_named_with_what_to_do_instead(spec: dict[str, Any], field: str, says: str) -> None:
    assert says in lost(git(), repo(), release(**spec))[field]
    assert not target(git(), repo(), release(**spec)).suspend
