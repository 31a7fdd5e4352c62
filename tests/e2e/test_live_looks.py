"""The inventory of a target, its events and its logs, read from a real cluster with the target's identity; kubectl is the judge."""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest

from handler.app.target_status import TargetStatusReader
from handler.cluster.api import Api
from handler.config.git_settings import Repository
from handler.config.settings import Impersonate, Target
from handler.inspect.inspector import Inspector
from handler.inspect.inventory_tree import UNTOLD
from handler.model.names import IDENTITY, PART_OF, Identity
from handler.queues.run_index import RunIndex
from handler.render.sandbox import Sandbox
from handler.worker.worker_api import WorkerApi
from infra.controlplane.pod_failures import FATE, LOG
from infra.githost import Host, Work
from tests.e2e.documents import Document, config_map, deployment, job, pods, secret, service
from tests.e2e.one_target import PATH, STATES, Shop
from tests.e2e.rbac_rights import ALL, DEPLOYER, allow
from tests.e2e.workload_status import fated
from tests.kubectl import Kubectl
from tests.patience import PATIENCE, until

PLANTED = ("swordfish-4711", "mackerel-0815", "eyJhbGciOiJSUzI1NiJ9")
"""What the pods have logged, and what Secrets and variables hold."""
WRITES = ((ALL, "", "configmaps,secrets,services"), (ALL, "apps", "deployments"), (ALL, "batch", "cronjobs,jobs"))
READS = (
    ("list", "apps", "replicasets"),
    ("list", "discovery.k8s.io", "endpointslices"),
    ("get,list", "", "pods"),
    ("get", "", "pods/log"),
    ("list", "", "events"),
)


def granted(shop: Shop, *rules: tuple[str, str, str]) -> None:
    """Give the target's account these rights, and no other."""
    allow(shop, *((verbs, group, each) for verbs, group, resources in rules for each in resources.split(",")))


def cron_job(namespace: str, name: str) -> Document:
    made = job(namespace, name)
    spec = {"schedule": "0 0 1 1 *", "suspend": True, "jobTemplate": {"spec": made["spec"]}}
    return {"apiVersion": "batch/v1", "kind": "CronJob", "metadata": made["metadata"], "spec": spec}


def broken(namespace: str) -> Document:
    """A Deployment whose pod restarts for ever, and can read a Secret and a password."""
    made = fated(deployment(namespace, "broken", replicas=1), "crash-loop")
    (container,) = made["spec"]["template"]["spec"]["containers"]
    container["envFrom"] = [{"secretRef": {"name": "door"}}]
    container["env"] = [{"name": "DB_PASSWORD", "value": PLANTED[1]}]
    return made


@dataclass
class Scene:
    """A target that runs, with what went wrong since, and a stranger beside it."""

    shop: Shop
    api: WorkerApi = field(init=False)

    def __post_init__(self) -> None:
        self.fresh()

    def fresh(self) -> None:
        """Forget what was looked at."""
        handler = self.shop.handler
        reader = TargetStatusReader(self.shop.settings, handler.records, PATIENCE)
        inspector = Inspector(handler)
        self.api = WorkerApi(RunIndex(), reader, lambda _: {}, str, lambda: inspector)

    def ask(self, question: str, **about: str) -> Any:
        """Put a question as the web process does; what a person could read is looked through."""
        answer = self.api.answer({"ask": question, "name": self.shop.name, **about})
        text = json.dumps(answer)
        assert [value for value in PLANTED if value in text] == []
        assert len(text) < 4 << 20
        return answer.get(question, answer)

    def nodes(self) -> dict[str, Any]:
        """Return the nodes of the tree by their objects, each with the object that it is below."""
        found: dict[str, Any] = {}

        def walk(node: Any, above: str) -> None:
            found[node["object"]] = node | {"above": above}
            for child in node["children"]:
                walk(child, node["object"])

        for root in self.ask("tree")["roots"]:
            walk(root, "")
        return found

    def live(self, kind: str) -> dict[str, Any]:
        """Return what kubectl sees in the namespace, by name."""
        return {each["metadata"]["name"]: each for each in self.shop.kubectl("get", kind, "-n", self.shop.name)["items"]}


@pytest.fixture(scope="module")
def scene(host: Host, sandbox: Sandbox, kubectl: Kubectl) -> Iterator[Scene]:
    name = f"s-{secrets.token_hex(4)}"
    target = Target(name, Repository(url=host.url_of(name)), (name,), path=PATH, impersonate=Impersonate(f"{name}/{DEPLOYER}"))
    shop = Shop(name, Work.of(host, name), kubectl, sandbox, target)
    shop.create_namespace()
    kubectl.run("wait", "serviceaccount", "default", "-n", name, "--for=create")
    granted(shop, *WRITES, *READS)
    web = deployment(name, "web", replicas=2)
    documents = (web, broken(name), cron_job(name, "nightly"), service(name, "web"), secret(name, "door", PLANTED[0]))
    shop.push(*documents, config_map(name, "lost"), config_map(name, "apart"))
    shop.applied()
    web["spec"]["template"]["metadata"]["annotations"] = {"example.com/round": "2"}  # another ReplicaSet
    shop.push(*documents, config_map(name, "lost"), config_map(name, "apart"))
    until(lambda: kubectl("get", "deployment", "web", "-n", name)["status"].get("readyReplicas") == 2)
    shop.applied()
    _since(shop)
    yield Scene(shop)
    shop.close()


def _since(shop: Shop) -> None:
    """Let that happen which no run did."""
    kubectl, name = shop.kubectl, shop.name
    kubectl.tried("create", "job", "by-hand", "--from=cronjob/nightly", "-n", name)
    kubectl.run("delete", "configmap", "lost", "-n", name)
    marks = {"labels": {PART_OF: shop.applyset}, "annotations": {IDENTITY: Identity("", "ConfigMap", name, "orphan").mark(name)}}
    kubectl.apply(config_map(name, "orphan", None, **marks))
    copied = marks | {"annotations": {IDENTITY: "another"}}
    stranger = pods({}, "stranger:1") | {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "stranger", "namespace": name, **copied}}
    stranger["metadata"]["annotations"][FATE] = "crash-loop"
    kubectl.apply(stranger)
    kubectl.run("label", "configmap", "apart", "-n", name, f"{PART_OF}-")
    about = {"apiVersion": "apps/v1", "kind": "Deployment", "namespace": name, "name": "broken", "uid": "of an earlier one"}
    event: Document = {"type": "Normal", "reason": "Canary", "message": f"{PLANTED[0]} {PLANTED[1]} {PLANTED[2]}.eyJzdWIiOiJzaG9wIn0.c2ln"}
    event |= {"involvedObject": about, "metadata": {"name": "canary", "namespace": name}, "lastTimestamp": "2026-01-01T00:00:00Z"}
    kubectl.apply({"apiVersion": "v1", "kind": "Event", **event})
    until(lambda: [each["status"].get("readyReplicas", 0) for each in _sets(shop, "web")].count(0) == 1)
    until(lambda: "CrashLoopBackOff" in json.dumps(kubectl("get", "pods", "-n", name, "-l", "app=broken")))
    until(lambda: kubectl("get", "pods", "-n", name, "-l", "job-name=by-hand")["items"])
    until(lambda: "BackOff" in json.dumps(kubectl("get", "events", "-n", name)))
    (bad,) = kubectl("get", "pods", "-n", name, "-l", "app=broken")["items"]
    (status,) = bad["status"]["containerStatuses"]
    status["state"]["waiting"]["message"] = f"can't sign in with {PLANTED[1]}"
    patch = {"status": {"containerStatuses": [status]}}
    kubectl.run("patch", "pod", bad["metadata"]["name"], "-n", name, "--subresource=status", "-p", json.dumps(patch))


def _sets(shop: Shop, app: str) -> list[Any]:
    found: list[Any] = shop.kubectl("get", "replicasets", "-n", shop.name, "-l", f"app={app}")["items"]
    return [each for each in found if each["status"].get("observedGeneration")]


def test_the_tree_shows_what_lives_below_what_and_how_it_does(scene: Scene) -> None:
    space, nodes = scene.shop.name, scene.nodes()
    live = scene.live("pods")
    owners = {name: each["metadata"].get("ownerReferences", [{}])[0] for name, each in live.items()}
    wanted = {f"Pod/{space}/{name}": f"{owner['kind']}/{space}/{owner['name']}" for name, owner in owners.items() if owner}
    assert {name: node["above"] for name, node in nodes.items() if node["kind"] == "Pod"} == wanted
    assert all(node["uid"] == live[node["name"]]["metadata"]["uid"] for node in nodes.values() if node["kind"] == "Pod")
    assert {nodes[above]["above"] for above in set(wanted.values())} == {
        f"Deployment/{space}/web",
        f"Deployment/{space}/broken",
        f"CronJob/{space}/nightly",
    }
    web, slices = nodes[f"Deployment/{space}/web"], [node for node in nodes.values() if node["kind"] == "EndpointSlice"]
    assert (web["state"], web["role"], web["retired"], len(web["children"])) == ("current", "declared", 1, 1)
    assert {node["above"] for node in slices} == {f"Service/{space}/web"}
    assert {node["name"] for node in slices} == set(scene.live("endpointslices"))
    assert (nodes[f"ConfigMap/{space}/lost"]["state"], nodes[f"ConfigMap/{space}/lost"]["uid"]) == ("missing", "")
    assert nodes[f"ConfigMap/{space}/orphan"]["role"] == "orphan"
    apart = nodes[f"ConfigMap/{space}/apart"]
    assert (apart["role"], apart["state"], apart["message"]) == ("apart", "current", "is live, but isn't marked as this target's")
    assert f"Pod/{space}/stranger" not in nodes


def test_a_pod_that_fares_badly_says_why(scene: Scene) -> None:
    (bad,) = [node for node in scene.nodes().values() if node["kind"] == "Pod" and "-broken-" in f"-{node['name']}"]
    live = scene.live("pods")[bad["name"]]
    assert bad["state"] == "failed"
    assert bad["message"] == UNTOLD, "its Deployment holds a password"
    status = live["status"]["containerStatuses"][0]
    assert bad["pod"] == {
        "phase": live["status"]["phase"],
        "reason": "CrashLoopBackOff",
        "ready": 0,
        "containers": 1,
        "restarts": status["restartCount"],
        "node": live["spec"]["nodeName"],
    }


def test_events_are_of_the_targets_objects_alone(scene: Scene) -> None:
    space = scene.shop.name
    events = scene.ask("events")["events"]
    assert {each["type"] for each in events} == {"Normal", "Warning"}
    assert [each["last"] for each in events] == sorted((each["last"] for each in events), reverse=True)
    assert not any(each["object"] == f"Pod/{space}/stranger" for each in events)
    told = {(each["involvedObject"]["uid"], each["reason"]) for each in scene.live("events").values()}
    assert {(each["uid"], each["reason"]) for each in events} <= told
    assert [each["message"] for each in events if each["reason"] == "Canary"] == [UNTOLD]
    assert any(each["message"] not in ("", UNTOLD) for each in events), "of others all is told"
    assert any(each["reason"] == "BackOff" and each["object"].startswith(f"Pod/{space}/broken-") for each in events)


def test_logs_are_masked_and_of_the_targets_pods_alone(scene: Scene) -> None:
    space = scene.shop.name
    found = scene.ask("logs", object=f"Deployment/{space}/broken")
    assert (found["container"], found["previous"], len(found["lines"])) == ("main", True, len(LOG))
    assert found["lines"][-1] == "no table `orders`; password was ***"
    ask = {"ask": "logs", "name": scene.shop.name}  # past `Scene.ask`: its container was given no Secret, so that its words are its own
    healthy: Any = scene.api.answer({**ask, "object": f"Deployment/{space}/web"})["logs"]
    assert healthy["pod"].startswith("web-")
    assert healthy["lines"][0] == "starting"
    (pod,) = [node["object"] for node in scene.nodes().values() if node["name"] == healthy["pod"]]
    assert scene.api.answer({**ask, "object": pod})["logs"]["lines"] == healthy["lines"]
    for other in (f"Pod/{space}/stranger", "Pod/kube-system/any", f"Deployment/{space}/none", f"ConfigMap/{space}/orphan", "", "../.."):
        assert scene.ask("logs", object=other)["trouble"]["code"] == "request-refused"


def test_logs_are_of_no_place_but_the_answer(scene: Scene, kubectl: Kubectl) -> None:
    scene.ask("logs", object=f"Deployment/{scene.shop.name}/broken")
    kept = kubectl.run("get", "cm", f"anneal-{scene.shop.name}", "-n", STATES, "-o", "yaml")
    assert not any(line in kept + repr(scene.api) for line in LOG[1:])


def test_what_the_targets_identity_may_not_read_is_a_note(scene: Scene) -> None:
    space = scene.shop.name
    granted(scene.shop, *WRITES, READS[0], READS[1])
    try:
        until(lambda: not _may_list_pods(scene))
        scene.fresh()
        nodes, tree = scene.nodes(), scene.ask("tree")
        assert {node["kind"] for node in nodes.values()} >= {"Deployment", "ReplicaSet", "Job"}
        assert not any(node["kind"] == "Pod" for node in nodes.values())
        (note,) = [note for note in tree["notes"] if note.startswith(f"Pod of {space}")]
        assert f"anneal rbac {space} --page" in note
        assert any(note.startswith(f"events of {space}") for note in scene.ask("events")["notes"])
        assert scene.ask("logs", object=f"Deployment/{space}/broken")["notes"] == ["it has no pods, or they can't be listed"]
    finally:
        granted(scene.shop, *WRITES, *READS)
        until(lambda: _may_list_pods(scene))
        scene.fresh()


def _may_list_pods(scene: Scene) -> bool:
    account = f"system:serviceaccount:{scene.shop.name}:{DEPLOYER}"
    return scene.shop.kubectl.tried("auth", "can-i", "list", "pods", "-n", scene.shop.name, "--as", account).returncode == 0


def test_every_request_about_objects_is_the_targets_identity(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[tuple[str, str]] = []
    attempt = Api._attempt

    def noted(self: Api, request: Any, **more: Any) -> Any:
        seen.append((self.impersonate, request.path))
        return attempt(self, request, **more)

    monkeypatch.setattr(Api, "_attempt", noted)
    scene.fresh()
    for question in ("tree", "events"):
        scene.ask(question)
    scene.ask("logs", object=f"Deployment/{scene.shop.name}/broken")
    inside = {who for who, path in seen if f"/namespaces/{scene.shop.name}/" in path}
    assert inside == {f"{scene.shop.name}/{DEPLOYER}"}
    assert any(path.endswith("/log") for _, path in seen)
