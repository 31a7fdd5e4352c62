"""A choice that git makes otherwise: what the server, or git before, chose with it goes, in place, by a plain push. Judged by kubectl."""

from __future__ import annotations

from typing import Any

from handler.model.result import Outcome
from tests.e2e.documents import Document, daemon_set, deployment, service, stateful_set
from tests.e2e.one_target import Shop, told

NONE: Document = {}
PORT = [{"port": 80}]
RECREATE = {"strategy": {"type": "Recreate"}}
ROLLING = {"strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": "25%", "maxUnavailable": "25%"}}}
NULL = {"strategy": {"type": "Recreate", "rollingUpdate": None}}
ON_DELETE = {"updateStrategy": {"type": "OnDelete"}}
MEMORY = {"name": "memory", "target": {"type": "AverageValue", "averageValue": "1Gi"}}
HALF = {"name": "memory", "target": {"type": "Utilization", "averageUtilization": 50}}
SOURCE = {"secretKeyRef": {"name": "s", "key": "k"}}
JOB: Document = {"template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "main", "image": "a:1"}]}}}
JOB_SOURCE = {"template": {"spec": {**JOB["template"]["spec"], "volumes": [{"name": "v"}]}}}
JOB_SECRET = {"template": {"spec": {**JOB["template"]["spec"], "volumes": [{"name": "v", "secret": {"secretName": "a"}}]}}}

SPECS: dict[str, tuple[Document, ...]] = {
    "deployment-recreate": (NONE, RECREATE),
    "deployment-three-steps": (NONE, ROLLING, RECREATE),
    "deployment-null": (NONE, NULL),
    "deployment-null-later": (ROLLING, NULL),
    "deployment-back": (NONE, RECREATE, NONE),
    "deployment-empty": ({"strategy": {}}, RECREATE),
    "deployment-surge": ({"strategy": {"rollingUpdate": {"maxSurge": 1}}}, RECREATE),
    "statefulset-ondelete": (NONE, ON_DELETE),
    "statefulset-partition": ({"updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": 2}}}, ON_DELETE),
    "daemonset-ondelete": (NONE, ON_DELETE),
    "service-clusterip": ({"type": "LoadBalancer"}, {"type": "ClusterIP"}),
    "service-plain": ({"type": "LoadBalancer"}, NONE),
    "service-local": ({"type": "LoadBalancer", "externalTrafficPolicy": "Local"}, {"type": "ClusterIP"}),
    "service-local-nodeport": ({"type": "LoadBalancer", "externalTrafficPolicy": "Local"}, {"type": "NodePort"}),
    "service-nodeport": ({"type": "NodePort"}, NONE),
    "service-class": ({"type": "LoadBalancer", "loadBalancerClass": "example.com/a"}, NONE),
    "service-affinity": ({"sessionAffinity": "ClientIP"}, {"sessionAffinity": "None"}),
    "hpa-metric": (NONE, {"metrics": [{"type": "Resource", "resource": MEMORY}]}),
    "hpa-target": ({"metrics": [{"type": "Resource", "resource": HALF}]}, {"metrics": [{"type": "Resource", "resource": MEMORY}]}),
    "hpa-behavior": (
        {"behavior": {"scaleDown": {"stabilizationWindowSeconds": 9}}},
        {"behavior": {"scaleUp": {"selectPolicy": "Disabled"}}},
    ),
    "pdb-other": ({"minAvailable": 1}, {"maxUnavailable": 1}),
    "cronjob-indexed": ({**JOB, "completionMode": "Indexed", "completions": 2}, JOB),
    "cronjob-volume": (JOB_SOURCE, JOB_SECRET),
}
CONTAINERS: dict[str, tuple[Document, ...]] = {
    "deployment-probe": ({"livenessProbe": {"httpGet": {"port": 80}}}, {"livenessProbe": {"exec": {"command": ["a"]}}}),
    "deployment-hook": ({"lifecycle": {"preStop": {"httpGet": {"port": 80}}}}, {"lifecycle": {"preStop": {"exec": {"command": ["a"]}}}}),
    "deployment-env": ({"env": [{"name": "A", "value": "b"}]}, {"env": [{"name": "A", "valueFrom": SOURCE}]}),
    "deployment-env-back": ({"env": [{"name": "A", "valueFrom": SOURCE}]}, {"env": [{"name": "A", "value": "b"}]}),
    "deployment-limits": ({"resources": {"limits": {"memory": "1Gi"}}}, {"resources": {"limits": {"memory": "512Mi"}}}),
}
VOLUMES: dict[str, tuple[Document, ...]] = {
    "deployment-no-source": (NONE, {"configMap": {"name": "a"}}),
    "statefulset-no-source": (NONE, {"secret": {"secretName": "a"}}),
    "deployment-emptydir": ({"emptyDir": NONE}, {"configMap": {"name": "a"}}),
    "deployment-secret": ({"secret": {"secretName": "a"}}, {"projected": {"sources": [{"secret": {"name": "a"}}]}}),
}
STEPS = 3


def made(space: str, name: str, spec: Document) -> Document:
    kind = name.partition("-")[0]
    if kind == "deployment":
        body = deployment(space, name)
    elif kind == "statefulset":
        body = stateful_set(space, name)
    elif kind == "daemonset":
        body = daemon_set(space, name, {"nowhere": "true"})
    elif kind == "service":
        return {**service(space, name), "spec": {"ports": PORT, "selector": {"app": "a"}, **spec}}
    else:
        return other(kind, space, name, spec)
    return {**body, "spec": {**body["spec"], **spec}}


def other(kind: str, space: str, name: str, spec: Document) -> Document:
    scaled = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "nothing"}
    kinds: dict[str, tuple[str, str, Document]] = {
        "hpa": ("autoscaling/v2", "HorizontalPodAutoscaler", {"maxReplicas": 3, "scaleTargetRef": scaled}),
        "pdb": ("policy/v1", "PodDisruptionBudget", {"selector": {"matchLabels": {"app": "none"}}}),
        "cronjob": ("batch/v1", "CronJob", {"schedule": "0 0 1 1 *", "suspend": True}),
    }
    version, full, more = kinds[kind]
    spec = {"jobTemplate": {"spec": spec}} if kind == "cronjob" else spec
    return {"apiVersion": version, "kind": full, "metadata": {"name": name, "namespace": space}, "spec": {**more, **spec}}


def in_pod(body: Document, *, container: Document = NONE, volumes: Any = ()) -> Document:
    spec = body["spec"]["template"]["spec"]
    pod = {**spec, "containers": [{**spec["containers"][0], **container}], **({"volumes": volumes} if volumes else {})}
    return {**body, "spec": {**body["spec"], "template": {**body["spec"]["template"], "spec": pod}}}


def declared(space: str, step: int) -> list[Document]:
    """Return every row's object at a step; a row that has no more of them stays as it is."""
    at = [(name, rows[min(step, len(rows) - 1)]) for name, rows in SPECS.items()]
    inner = [(name, rows[min(step, len(rows) - 1)]) for name, rows in CONTAINERS.items()]
    volumes = [(name, rows[min(step, len(rows) - 1)]) for name, rows in VOLUMES.items()]
    return [
        *(made(space, name, spec) for name, spec in at),
        *(in_pod(made(space, name, NONE), container=spec) for name, spec in inner),
        *(in_pod(made(space, f"{name}-volume", NONE), volumes=[{"name": "v", **spec}]) for name, spec in volumes),
    ]


def test_a_choice_is_made_otherwise_by_a_plain_push(shop: Shop) -> None:
    uids: dict[str, str] = {}
    for step in range(STEPS):
        documents = declared(shop.name, step)
        shop.push(*documents)
        result = shop.run()
        assert result.outcome is Outcome.APPLIED, told(result)
        live = {name: uid for name, (uid, _) in shop.versions(documents).items()}
        assert live.keys() & uids.keys() == uids.keys()
        assert {name: live[name] for name in uids} == uids, "nothing is made anew"
        uids = live
    assert shop.run("drift").outcome is Outcome.UNCHANGED
    found = shop.kubectl("get", "deploy,sts,cronjob", "-n", shop.name)["items"]
    specs = {each["metadata"]["name"]: each["spec"] for each in found}
    for name in (f"deployment-{each}" for each in ("recreate", "three-steps", "null", "null-later", "empty", "surge")):
        assert specs[name]["strategy"] == {"type": "Recreate"}, name
    assert specs["deployment-back"]["strategy"]["rollingUpdate"] == {"maxSurge": "25%", "maxUnavailable": "25%"}
    assert specs["statefulset-ondelete"]["updateStrategy"] == {"type": "OnDelete"}
    assert [*specs["deployment-no-source-volume"]["template"]["spec"]["volumes"][0]] == ["configMap", "name"]
    assert "emptyDir" not in specs["cronjob-volume"]["jobTemplate"]["spec"]["template"]["spec"]["volumes"][0]
