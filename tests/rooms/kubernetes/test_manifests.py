"""Both forms of Anneal's own manifests say the same, and what every one of them must say."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from handler.app.build import WORKLOAD
from handler.cli.group import anneal
from handler.config.load import load
from handler.config.secrets import ALL, references
from handler.worker.supervisor import STOP_SECONDS
from tests.manifests import CHART, KUBERNETES, NAMES, NAMESPACE, OVERLAYS, Forms, Manifest, by_name, documents, one, template, tried

pytestmark = pytest.mark.usefixtures("renderers")

DOCKERFILE = KUBERNETES.parent / "container" / "Dockerfile"
CONFIG = f"--set-file=config={OVERLAYS / 'single-namespace' / 'anneal.yaml'}"


@pytest.fixture(params=NAMES)
def forms(request: pytest.FixtureRequest, tmp_path: Path) -> Forms:
    return Forms(request.param, tmp_path / "k")


def canonical(text: str) -> dict[str, str]:
    return {str(key): json.dumps(each, sort_keys=True, indent=1) for key, each in by_name(documents(text)).items()}


def pods(found: list[Manifest]) -> list[dict[str, Any]]:
    return [each["spec"]["template"]["spec"] for each in found if each["kind"] == "Deployment"]


def test_the_chart_and_the_overlay_are_the_same_objects(forms: Forms) -> None:
    assert canonical(forms.helm()) == canonical(forms.kustomize())


def test_chart_and_overlay_with_all_options_are_the_same_objects(forms: Forms) -> None:
    options = "--set=serviceMonitor.enabled=true", "--set=namespace.create=true", "--set=replicas=3", "--set=image.tag=9.9.9"
    change = "images:\n- {name: anneal, newTag: 9.9.9}\nreplicas:\n- {name: anneal, count: 3}\n"
    built = forms.kustomize("service-monitor", "namespace", change=change)
    workers = "--set=workers.replicas=2"
    assert canonical(forms.helm(*options, workers)) == canonical(built)
    assert {"ServiceMonitor", "Namespace"} < {each["kind"] for each in documents(built)}
    assert one(documents(built), "Deployment")["spec"]["replicas"] == 3


def test_the_page_has_its_paths_in_both_forms_where_it_is_asked_for(forms: Forms) -> None:
    built = forms.kustomize("page")
    assert canonical(forms.helm("--set=ingress.page=true")) == canonical(built)

    def paths(text: str) -> list[tuple[str, str]]:
        (rule,) = one(documents(text), "Ingress")["spec"]["rules"]
        assert len({json.dumps(each["backend"]) for each in rule["http"]["paths"]}) == 1
        return [(each["path"], each["pathType"]) for each in rule["http"]["paths"]]

    webhooks = [("/webhooks", "Prefix")]
    assert paths(built) == [*webhooks, ("/", "Exact"), ("/ui", "Prefix")]
    assert paths(forms.kustomize()) == webhooks


def test_a_changed_configuration_changes_the_pods_alike(forms: Forms, tmp_path: Path) -> None:
    changed = tmp_path / "anneal.yaml"
    changed.write_text((forms.files / "anneal.yaml").read_text() + 'installation: "1 < 2 & é" # the hash is of JSON\n')
    (tmp_path / "k").mkdir()
    (tmp_path / "k" / "anneal.yaml").write_bytes(changed.read_bytes())
    merge = f"configMapGenerator:\n- name: config-anneal\n  namespace: {NAMESPACE}\n  behavior: merge\n  files: [anneal.yaml]\n"
    built = forms.kustomize(change=merge)
    assert canonical(forms.helm(f"--set-file=config={changed}")) == canonical(built)
    before = one(documents(forms.kustomize()), "Deployment")["spec"]["template"]
    assert one(documents(built), "Deployment")["spec"]["template"] != before


def test_the_configuration_loads_and_its_files_are_mounted(forms: Forms) -> None:
    found = documents(forms.kustomize())
    settings = load(forms.files / "anneal.yaml")
    assert settings.state_namespace == NAMESPACE
    for pod in pods(found):
        mounts = {mount["mountPath"]: mount["name"] for mount in pod["containers"][0]["volumeMounts"]}
        assert set(mounts) == {"/etc/anneal", "/etc/anneal-secrets", "/tmp"}
        environment = {each["name"]: each.get("value") for each in pod["containers"][0]["env"]}
        assert environment["ANNEAL_CONFIG"] == "/etc/anneal/anneal.yaml"
    read = list(references(settings, ALL))
    assert read
    assert all(Path(reference.file).parent == Path("/etc/anneal-secrets") for reference in read)


def test_each_pod_knows_its_workload_and_outlives_its_processes(forms: Forms) -> None:
    found = documents(forms.kustomize())
    for each in (each for each in found if each["kind"] == "Deployment"):
        pod = each["spec"]["template"]["spec"]
        container = pod["containers"][0]
        environment = {entry["name"]: entry.get("value") for entry in container["env"]}
        assert environment[WORKLOAD] == f"$(POD_NAMESPACE)/{each['metadata']['name']}"
        pause = container.get("lifecycle", {}).get("preStop", {}).get("sleep", {}).get("seconds", 0)
        assert pod["terminationGracePeriodSeconds"] > STOP_SECONDS + pause


def test_the_commands_are_the_command_lines_own(forms: Forms) -> None:
    for pod in pods(documents(forms.kustomize())):
        parsed = CliRunner().invoke(anneal, [*pod["containers"][0]["args"], "--help"])  # what it doesn't know it refuses before it helps
        assert parsed.exit_code == 0, parsed.output


def test_the_manifests_fit_the_images_user_and_entrypoint(forms: Forms) -> None:
    lines = DOCKERFILE.read_text().splitlines()
    assert 'ENTRYPOINT ["anneal"]' in lines
    for pod in pods(documents(forms.kustomize())):
        security = pod["securityContext"]
        assert f"USER {security['runAsUser']}:{security['runAsGroup']}" in lines
        assert "command" not in pod["containers"][0]


def test_no_secret_is_in_the_manifests_or_their_environment(forms: Forms) -> None:
    found = documents(forms.kustomize())
    assert "Secret" not in {each["kind"] for each in found}
    sources = [entry.get("valueFrom", {}) for pod in pods(found) for entry in pod["containers"][0]["env"]]
    assert not any("secretKeyRef" in source for source in sources)
    assert not any("envFrom" in pod["containers"][0] for pod in pods(found))


def test_selectors_find_the_pods_and_named_ports_are_there(forms: Forms) -> None:
    found = documents(forms.kustomize())
    labels = [each["spec"]["template"]["metadata"]["labels"] for each in found if each["kind"] == "Deployment"]
    selectors = [each["spec"]["selector"]["matchLabels"] for each in found if each["kind"] in ("Deployment", "PodDisruptionBudget")]
    selectors += [each["spec"]["selector"] for each in found if each["kind"] == "Service"]
    for selector in selectors:
        assert sum(selector.items() <= each.items() for each in labels) == 1
    door = one(found, "Deployment")["spec"]["template"]["spec"]["containers"][0]
    ports = {port["name"]: port["containerPort"] for port in door["ports"]}
    asked = [port["targetPort"] for port in one(found, "Service")["spec"]["ports"]]
    asked += [port["port"] for rule in one(found, "NetworkPolicy")["spec"]["ingress"] for port in rule["ports"]]
    asked += [door[probe]["httpGet"]["port"] for probe in ("startupProbe", "readinessProbe", "livenessProbe")]
    assert set(asked) == set(ports)
    assert door["args"][-1] == f"0.0.0.0:{ports['http']}"
    assert load(forms.files / "anneal.yaml").metrics.bind == f"0.0.0.0:{ports['metrics']}"


def test_liveness_of_the_web_process_ignores_a_restarting_worker(forms: Forms) -> None:
    door = one(documents(forms.kustomize()), "Deployment")["spec"]["template"]["spec"]["containers"][0]
    asked = [door[probe]["httpGet"]["path"] for probe in ("startupProbe", "readinessProbe", "livenessProbe")]
    assert asked == ["/readyz", "/healthz", "/healthz"]


def test_a_worker_that_ends_soon_replaces_nobody_and_is_asked_where_its_metrics_are(tmp_path: Path) -> None:
    found = documents(Forms("sqs-workers", tmp_path / "k").kustomize("service-monitor"))
    worker = one(found, "Deployment", "anneal-worker")["spec"]
    container = worker["template"]["spec"]["containers"][0]
    assert worker["minReadySeconds"] == 15
    assert container["ports"] == one(found, "Deployment")["spec"]["template"]["spec"]["containers"][0]["ports"][1:]
    asked = [container[probe]["httpGet"] for probe in ("readinessProbe", "livenessProbe")]
    assert asked == [{"path": "/metrics", "port": container["ports"][0]["name"]}] * 2
    monitor = one(found, "ServiceMonitor")["spec"]
    services = [
        each
        for each in found
        if each["kind"] == "Service" and monitor["selector"]["matchLabels"].items() <= each["metadata"]["labels"].items()
    ]
    assert {each["metadata"]["name"] for each in services} == {"anneal", "anneal-worker"}
    assert all(monitor["endpoints"][0]["port"] in {port["name"] for port in each["spec"]["ports"]} for each in services)


# --- the chart's values
def test_every_value_is_in_the_schema_and_no_other() -> None:
    values = yaml.safe_load((CHART / "values.yaml").read_text())
    schema = json.loads((CHART / "values.schema.json").read_text())

    def check(values: dict[str, Any], schema: dict[str, Any], path: str) -> None:
        assert set(schema["properties"]) == set(values), path
        assert schema["additionalProperties"] is False, path
        for key, value in values.items():
            if "properties" in schema["properties"][key]:
                check(value, schema["properties"][key], f"{path}.{key}")

    check(values, {**schema, "properties": {key: each for key, each in schema["properties"].items() if key != "global"}}, "values")


@pytest.mark.parametrize(
    ("option", "said"),
    [
        ("--set=replica=2", "replica"),
        ("--set=replicas=0", "replicas"),
        ("--set=image.digest=latest", "digest"),
        ("--set=terminationGracePeriodSeconds=10", "terminationGracePeriodSeconds"),
        ("--set-string=fullnameOverride=1e5", "fullnameOverride"),
        ("--set-string=priorityClassName=a\nhostNetwork: true", "priorityClassName"),
        ("--set-string=image.repository=a\n    hostPID: true", "repository"),
        ("--set-string=image.tag=a b", "tag"),
        ("--set=image=null", "image"),
        ("--set=image.repository=null", "repository"),
        ("--set-string=tmpSize=64Mi\n      x: y", "tmpSize"),
        ('--set-string=ingress.host=a" b: {', "host"),
        ("--set-string=ingress.host=a.*.example.com", "host"),
        ("--set-string=ingress.tlsSecret=a\nb: c", "tlsSecret"),
        ("--set-string=ingress.paths[0]=/# x", "paths"),
        ("--set-string=serviceAccount.name=a\nb: c", "serviceAccount"),
        ("--set-string=env[0].name=ANNEAL_CONFIG,env[0].value=x", "env"),
    ],
)
def test_a_wrong_value_is_refused_by_name(option: str, said: str) -> None:
    done = tried("helm", "template", "anneal", str(CHART), CONFIG, option)
    assert done.returncode
    assert said in done.stderr


def test_helm_lint_passes() -> None:
    done = tried("helm", "lint", "--strict", str(CHART), CONFIG)
    assert done.returncode == 0, done.stdout


def test_the_chart_without_a_configuration_says_how_to_pass_one() -> None:
    assert "--set-file config=anneal.yaml" in tried("helm", "template", "anneal", str(CHART)).stderr


def test_workers_without_a_metrics_bind_for_their_probes_are_refused(tmp_path: Path) -> None:
    config = tmp_path / "anneal.yaml"
    config.write_text((OVERLAYS / "sqs-workers" / "anneal.yaml").read_text().replace(":9090", ":9464"))
    done = tried("helm", "template", "anneal", str(CHART), f"--set-file=config={config}", "--set=workers.enabled=true")
    assert done.returncode
    assert "metrics: {bind:" in done.stderr


def test_every_value_reaches_an_object() -> None:
    given = {
        "fullnameOverride": "gitops",
        "image": {"repository": "registry.example.com/anneal", "digest": f"sha256:{'0' * 64}", "pullSecrets": ["pull"]},
        "serviceAccount": {"name": "deployer"},
        "secret": "",
        "env": [{"name": "AWS_REGION", "value": "eu-central-1"}],
        "priorityClassName": "important",
        "nodeSelector": {"kubernetes.io/os": "linux"},
        "tolerations": [{"key": "dedicated", "operator": "Exists"}],
        "networkPolicy": {"egressPorts": [8443]},
        "ingress": {"enabled": True, "className": "nginx", "annotations": {"a": "b"}, "paths": ["/api"], "page": True, "tlsSecret": ""},
    }
    found = documents(template(CONFIG, *(f"--set-json={key}={json.dumps(value)}" for key, value in given.items())))
    pod = one(found, "Deployment", "gitops")["spec"]["template"]["spec"]
    container = pod["containers"][0]
    assert container["image"] == f"registry.example.com/anneal@sha256:{'0' * 64}"
    assert (pod["imagePullSecrets"], pod["serviceAccountName"]) == ([{"name": "pull"}], "deployer")
    assert (pod["priorityClassName"], pod["nodeSelector"]) == (given["priorityClassName"], given["nodeSelector"])
    assert pod["tolerations"] == given["tolerations"]
    assert container["env"][-1] == {"name": "AWS_REGION", "value": "eu-central-1"}
    assert {mount["name"] for mount in container["volumeMounts"]} == {volume["name"] for volume in pod["volumes"]} == {"config", "tmp"}
    ingress = one(found, "Ingress", "gitops")
    assert (ingress["spec"]["ingressClassName"], ingress["metadata"]["annotations"]) == ("nginx", {"a": "b"})
    assert [each["path"] for each in ingress["spec"]["rules"][0]["http"]["paths"]] == ["/api", "/", "/ui"]
    assert "tls" not in ingress["spec"]
    assert one(found, "NetworkPolicy", "gitops")["spec"]["egress"][1]["ports"] == [{"protocol": "TCP", "port": 8443}]
    assert one(found, "ServiceAccount", "deployer")
    assert "NetworkPolicy" not in {each["kind"] for each in documents(template(CONFIG, "--set=networkPolicy.enabled=false"))}


def test_yaml_strings_that_look_like_other_types_stay_strings() -> None:
    given = {
        "priorityClassName": "123",
        "secret": "007",
        "image.repository": "1",
        "image.tag": "1.0",
        "serviceAccount.name": "no",
        "ingress.host": "*.example.com",
        "ingress.className": "1e3",
        "ingress.tlsSecret": "0x1f",
        "networkPolicy.ingressNamespace": "1",
        "fullnameOverride": "true",
    }
    options = [f"--set-string={key}={value}" for key, value in given.items()]
    found = documents(template(CONFIG, "--set=ingress.enabled=true", *options, "--set=workers.enabled=true"))
    for each in (each for each in found if each["kind"] == "Deployment"):
        pod = each["spec"]["template"]["spec"]
        assert (pod["priorityClassName"], pod["serviceAccountName"], pod["containers"][0]["image"]) == ("123", "no", "1:1.0")
        assert "007" in [volume.get("secret", {}).get("secretName") for volume in pod["volumes"]]
    ingress = one(found, "Ingress", "true")["spec"]
    assert (ingress["ingressClassName"], ingress["rules"][0]["host"]) == ("1e3", "*.example.com")
    assert ingress["tls"] == [{"hosts": ["*.example.com"], "secretName": "0x1f"}]
    labels = one(found, "NetworkPolicy", "true")["spec"]["ingress"][0]["from"][0]["namespaceSelector"]["matchLabels"]
    assert labels == {"kubernetes.io/metadata.name": "1"}


LONG = "a" * 53


@pytest.mark.parametrize(
    "release", ["anneal.v1", "1anneal", "1", "no", "123.456", LONG, f"1{LONG[1:]}", f"anneal{'a' * 41}---x", f"{'a' * 40}----x"]
)
def test_any_release_has_names_that_a_service_may_have(release: str) -> None:
    done = tried("helm", "template", release, str(CHART), CONFIG, "--set=workers.enabled=true")
    assert done.returncode == 0, done.stderr
    for each in documents(done.stdout):
        assert re.fullmatch(r"[a-z]([-a-z0-9]*[a-z0-9])?", each["metadata"]["name"]), each["metadata"]["name"]
        assert len(each["metadata"]["name"]) <= (253 if each["kind"] == "ConfigMap" else 63)
        assert each["metadata"]["labels"]["app.kubernetes.io/instance"] == release


def test_another_release_beside_it_shares_no_name() -> None:
    def names(*options: str) -> set[tuple[str, str, str]]:
        return set(by_name(documents(template(CONFIG, "--set=ingress.enabled=true", *options))))

    assert not names() & names("--set=fullnameOverride=second")
