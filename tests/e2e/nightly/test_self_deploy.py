"""Anneal deploys Anneal: every form of its manifests, by itself, with the least rights, where only restricted pods may run."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from handler.cluster.connect import connect
from handler.config.settings import Cluster
from infra.githost import Work
from tests.e2e.api_proxy import Wired, is_write
from tests.e2e.self_deploy import SELF, Bed, application, image_of, live
from tests.e2e.serve_process import Serving
from tests.e2e.test_self_deploy import bed, workload  # noqa: F401 - fixtures, too
from tests.kubectl import IN_TIME
from tests.manifests import CHART, NAMES, NAMESPACE, OVERLAYS, Forms, documents, run
from tests.patience import until
from tests.rooms.cluster.faulty_proxy import Handler

pytestmark = pytest.mark.usefixtures("renderers")
SHAPES = {"single-namespace": (1, 0), "cluster-wide": (2, 0), "sqs-workers": (2, 2)}
"""How many pods take webhooks, and how many only run targets."""


@pytest.fixture(scope="module")
def itself(bed: Bed) -> Work:
    """The repository from which Anneal deploys itself."""
    return bed.work("anneal")


def pushed(bed: Bed, work: Work, server: Serving, text: str) -> str:
    """Push, and deliver the signed webhook; return the commit."""
    sha = bed.push(work, text)
    assert server.push(bed.host.url_of(work.directory.name), "refs/heads/main", sha) == 202
    return sha


def test_what_was_installed_by_hand_is_taken_over_and_its_pods_stay(bed: Bed, itself: Work) -> None:
    overlay = OVERLAYS / "single-namespace"
    bed.kubectl.run("apply", "-k", str(overlay))
    bed.running("door", 1)
    before = [pod["metadata"]["uid"] for pod in bed.pods("door")]
    config = bed.own(itself)
    bed.push(itself, run("kustomize", "build", str(overlay)))
    bed.authorize(config)
    bed.cli(config, "apply")
    assert len(bed.kubectl("get", "replicasets", "-n", NAMESPACE)["items"]) == 1, "no rollout was begun"
    assert [pod["metadata"]["uid"] for pod in bed.pods("door")] == before


def test_chart_and_overlay_deploy_themselves_and_moving_to_the_other_changes_nothing(bed: Bed, itself: Work, tmp_path: Path) -> None:
    config = bed.own(itself)
    server = bed.serve(config)
    for overlay in NAMES:
        forms = Forms(overlay, tmp_path / overlay)
        text = forms.kustomize()
        bed.push(itself, text)
        bed.authorize(config)
        sha = pushed(bed, itself, server.ready(), text)
        bed.recorded(config, sha, server)
        live(bed, text)
        for component, count in zip(("door", "worker"), SHAPES[overlay], strict=True):
            bed.running(component, count)

        sha = pushed(bed, itself, server, forms.helm())
        entry = bed.recorded(config, sha, server).history[0]
        assert entry.counts == {"unchanged": len(documents(text))}, overlay
    server.stop()


def test_a_new_version_is_finished_by_the_successor_of_the_handler_that_ends_in_its_own_rollout(
    bed: Bed, itself: Work, tmp_path: Path
) -> None:
    """The handler dies as soon as its own Deployment is written: nothing but the deletion and the record are left by then."""
    forms = Forms("single-namespace", tmp_path / "k")
    config = bed.own(itself)
    bed.push(itself, forms.kustomize())
    bed.authorize(config)
    bed.cli(config, "apply")
    before = {each for each in bed.kubectl.run("get", "configmaps", "-n", NAMESPACE, "-o", "name").split() if "config-anneal" in each}

    wired = Wired.over(connect(Cluster(), kubeconfig=str(bed.account), environ={}), tmp_path / "wired")
    first = bed.serve(_through(config, bed, wired, tmp_path))
    first.ready()

    def kill(handler: Handler) -> bool:
        handler.forward(deaf=True)
        first.kill("supervisor", "worker", "web")
        handler.reset()
        return False

    def own(method: str, path: str) -> bool:
        return is_write(method, path) and f"/namespaces/{NAMESPACE}/deployments/anneal?" in path

    wired.meet(1, kill, own)
    changed = tmp_path / "anneal.yaml"
    changed.write_text((forms.files / "anneal.yaml").read_text() + "interval: 1m\n")
    options = "--set=image.tag=0.2.0", "--set=replicas=2", f"--set-file=config={changed}", "--set=workers.enabled=true"
    sha = pushed(bed, itself, first, forms.helm(*options))
    until(lambda: first.process and first.process.poll() is not None)
    written = [path.partition("?")[0].partition(f"/namespaces/{NAMESPACE}/")[2] for method, path in wired.writes if method == "PATCH"]
    assert written[-1] == "deployments/anneal", "its own workload goes last"
    assert {"deployments/anneal-worker", "poddisruptionbudgets/anneal-worker"} < set(written[:-1])
    left = bed.state(config)
    assert left is not None
    assert left.attempt is not None
    assert left.attempt.commit == sha != left.commit

    second = bed.serve(config).ready()
    bed.recorded(config, sha, second)
    bed.running("door", 2, lambda pod: image_of(pod) == "anneal:0.2.0")
    bed.running("worker", 2, lambda pod: image_of(pod) == "anneal:0.2.0")
    after = {each for each in bed.kubectl.run("get", "configmaps", "-n", NAMESPACE, "-o", "name").split() if "config-anneal" in each}
    assert len(after) == len(before) == 1
    assert after != before, "the old configuration is pruned"
    second.stop()
    wired.close()


def _through(config: Path, bed: Bed, wired: Wired, place: Path) -> Path:
    """Copy a configuration for a handler whose way to the API server is watched."""
    path = place / "wired.yaml"
    path.write_text(config.read_text().replace(str(bed.account), str(wired.kubeconfig)))
    return path


def test_helm_installs_upgrades_and_removes_the_chart(bed: Bed, tmp_path: Path) -> None:
    where = f"--kubeconfig={bed.kubectl.kubeconfig}", "--namespace=helm"
    release = "gitops", str(CHART), f"--values={OVERLAYS / 'sqs-workers' / 'values.yaml'}"
    config = f"--set-file=config={OVERLAYS / 'sqs-workers' / 'anneal.yaml'}"
    bed.kubectl.create_namespace("helm")
    bed.kubectl.run("label", "namespace", "helm", "pod-security.kubernetes.io/enforce=restricted")
    run("helm", "install", *release, config, *where, "--wait", IN_TIME)
    told = run("helm", "upgrade", *release, config, *where, "--set=replicas=3", "--wait", IN_TIME)
    assert "anneal status" in told
    found = bed.kubectl("get", "deployments", "-n", "helm")["items"]
    assert {each["metadata"]["name"]: each["status"]["readyReplicas"] for each in found} == {"gitops-anneal": 3, "gitops-anneal-worker": 2}
    run("helm", "uninstall", "gitops", *where)


def test_the_account_of_an_overlay_can_run_its_target_and_nothing_else(bed: Bed) -> None:
    bed.unauthorize()
    bed.kubectl.run("apply", "--server-side", "--force-conflicts", "-k", str(OVERLAYS / "single-namespace"))
    work = bed.work("shop")
    bed.push(work, yaml.safe_dump_all(application("shop")))
    config = bed.of_overlay("single-namespace", work)
    server = bed.serve(config).ready()
    sha = pushed(bed, work, server, yaml.safe_dump_all(application("shop")))
    bed.recorded(config, sha, server)
    sha = pushed(bed, work, server, yaml.safe_dump_all(application("shop")[:-2]))
    assert bed.recorded(config, sha, server).history[0].counts["pruned"] == 2

    limits = {"apiVersion": "v1", "kind": "LimitRange", "metadata": {"name": "web", "namespace": "shop"}, "spec": {"limits": []}}
    pushed(bed, work, server, yaml.safe_dump_all([*application("shop")[:-2], limits]))
    until(lambda: server.runs(outcome="failed", code="access-denied"), server.log.read_text)
    assert not bed.kubectl("get", "limitranges", "-n", "shop")["items"]
    server.stop()
    for verb, what, *where in DENIED:
        assert not bed.may(verb, what, *where), (verb, what, where)


DENIED = (
    ("list", "secrets", "-n", NAMESPACE),
    ("get", "secrets/anneal-secrets", "-n", NAMESPACE),
    ("update", f"configmaps/anneal-{SELF}", "-n", NAMESPACE),
    ("patch", "deployments.apps/anneal", "-n", NAMESPACE),
    ("list", "configmaps", "-n", "default"),
    ("create", "pods/exec", "-n", "shop"),
    ("create", "rolebindings.rbac.authorization.k8s.io", "-n", "shop"),
    ("escalate", "roles.rbac.authorization.k8s.io", "-n", "shop"),
    ("impersonate", "serviceaccounts", "-n", "shop"),
    ("create", "serviceaccounts/token", "-n", NAMESPACE),
    ("list", "nodes"),
    ("delete", "namespaces/shop"),
)


def test_a_service_monitor_is_part_of_both_forms(bed: Bed, itself: Work, tmp_path: Path, shared_data: Path) -> None:
    crd = shared_data / "kube-prometheus" / "manifests" / "setup" / "0servicemonitorCustomResourceDefinition.yaml"
    bed.kubectl.run("apply", "--server-side", "-f", str(crd))
    bed.kubectl.run("wait", "--for=condition=Established", "-f", str(crd))
    forms = Forms("single-namespace", tmp_path / "k")
    config = bed.own(itself)
    bed.push(itself, forms.kustomize("service-monitor"))
    bed.authorize(config)
    bed.cli(config, "apply")
    assert bed.kubectl("get", "servicemonitors", "anneal", "-n", NAMESPACE)["spec"]["endpoints"] == [{"port": "metrics", "interval": "30s"}]
    bed.push(itself, forms.helm("--set=serviceMonitor.enabled=true"))
    assert "created" not in bed.cli(config, "plan")
