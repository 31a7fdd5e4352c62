"""How live objects do, as kstatus judges them: its kinds in every state that their numbers and conditions make, and any other kind."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from typing import Any

import yaml

from handler.health.kstatus import judge
from handler.model.manifest import at
from tests.nightly.differential import Answer, Covers, Question, compare, seeded, words

OBJECTS = 20_000
NOW = 1_700_000_000.0
CREATED = "2020-01-01T00:00:00Z"
CHANGED = "2021-01-01T00:00:00Z"
SAID = {"current": "Current", "in progress": "InProgress", "failed": "Failed", "terminating": "Terminating"}
Fields = dict[str, Any]


def some(chance: Random, fields: Fields, keep: float = 0.85) -> Fields:
    """Leave some fields out."""
    return {key: value for key, value in fields.items() if chance.random() < keep}


def counted(chance: Random, names: str) -> Fields:
    """Return fields of small numbers, mostly one and the same."""
    usual = chance.randint(0, 3)
    return some(chance, {name: usual if chance.random() < 0.8 else chance.randint(0, 3) for name in words(names)})


def conditions(chance: Random, types: str, reasons: str) -> list[Fields]:
    """Return some conditions, each once."""
    found = []
    for each in words(types):
        if chance.random() < 0.6:
            status = chance.choice(("True", "True", "False", "Unknown"))
            since = chance.choice(("2020-06-01T00:00:00Z", "2022-01-01T00:00:00Z"))
            said = some(chance, {"reason": chance.choice(words(reasons)), "message": "text", "lastTransitionTime": since}, 0.9)
            found.append({"type": each, "status": status, **said})
    chance.shuffle(found)
    return found


def deployment(chance: Random) -> tuple[Fields, Fields]:
    spec = some(chance, {"replicas": chance.randint(0, 3), "progressDeadlineSeconds": chance.choice((600, 600, 2**31 - 1))})
    spec |= {"paused": True} if chance.random() < 0.1 else {}
    status = counted(chance, "replicas updatedReplicas readyReplicas availableReplicas")
    reasons = "NewReplicaSetAvailable NewReplicaSetAvailable ProgressDeadlineExceeded ReplicaSetUpdated"
    return spec, {**status, "conditions": conditions(chance, "Progressing Available ReplicaFailure", reasons)}


def replica_set(chance: Random) -> tuple[Fields, Fields]:
    status = counted(chance, "replicas fullyLabeledReplicas readyReplicas availableReplicas")
    return some(chance, {"replicas": chance.randint(0, 3)}), {**status, "conditions": conditions(chance, "ReplicaFailure", "FailedCreate")}


def stateful_set(chance: Random) -> tuple[Fields, Fields]:
    strategy: Fields = {"type": chance.choice(("RollingUpdate", "RollingUpdate", "OnDelete"))}
    if strategy["type"] != "OnDelete" and chance.random() < 0.4:
        strategy["rollingUpdate"] = {"partition": chance.randint(0, 3)}
    spec = some(chance, {"replicas": chance.randint(0, 3), "updateStrategy": strategy})
    status = counted(chance, "replicas readyReplicas currentReplicas updatedReplicas")
    return spec, {**status, **some(chance, {"currentRevision": chance.choice("ab"), "updateRevision": chance.choice("ab")}, 0.95)}


def daemon_set(chance: Random) -> tuple[Fields, Fields]:
    spec = {"updateStrategy": {"type": chance.choice(("RollingUpdate", "RollingUpdate", "OnDelete"))}}
    return spec, counted(
        chance, "desiredNumberScheduled currentNumberScheduled updatedNumberScheduled numberAvailable numberReady numberMisscheduled"
    )


def job(chance: Random) -> tuple[Fields, Fields]:
    spec = some(chance, {"completions": chance.randint(1, 3), "suspend": chance.random() < 0.2}, 0.5)
    status = counted(chance, "active succeeded failed") | some(chance, {"startTime": CREATED}, 0.7)
    return spec, {**status, "conditions": conditions(chance, f"{chance.choice(('Complete', 'Failed'))} FailureTarget Suspended", "Done")}


def pod(chance: Random) -> tuple[Fields, Fields]:
    phase = chance.choice(words("Pending Running Running Succeeded Failed"))
    waiting = {
        "waiting": {"reason": chance.choice(words("CrashLoopBackOff ContainerCreating ImagePullBackOff ErrImagePull PodInitializing"))}
    }
    container = {"name": "app", "ready": False, "state": chance.choice((waiting, {"running": {}}, {"terminated": {"exitCode": 1}}))}
    status = some(chance, {"phase": phase, "containerStatuses": [container]}, 0.9)
    return {}, {**status, "conditions": conditions(chance, "Ready PodScheduled", "Unschedulable ContainersNotReady SchedulingGated")}


def claim(chance: Random) -> tuple[Fields, Fields]:
    return {}, some(chance, {"phase": chance.choice(words("Bound Pending Lost"))}, 0.9)


def service(chance: Random) -> tuple[Fields, Fields]:
    kinds = words("ClusterIP NodePort LoadBalancer LoadBalancer ExternalName")
    spec = some(chance, {"type": chance.choice(kinds), "clusterIP": chance.choice(("10.0.0.1", "None", ""))})
    return spec, {"loadBalancer": chance.choice(({}, {"ingress": [{"ip": "1.2.3.4"}]}))}


def definition(chance: Random) -> tuple[Fields, Fields]:
    found = conditions(chance, "NamesAccepted Established Terminating", "Installing InitialNamesAccepted NotAccepted")
    return {}, {"conditions": sorted(found, key=lambda each: each["type"] != "NamesAccepted")}


def plain(_chance: Random) -> tuple[Fields, Fields]:
    return {}, {}


def other(chance: Random) -> tuple[Fields, Fields]:
    status = some(chance, {"phase": "Ready"}, 0.5)
    return {}, {**status, "conditions": conditions(chance, "Ready Synced Available", "Done Failed Progressing")}


KINDS: Sequence[tuple[str, str, Callable[[Random], tuple[Fields, Fields]]]] = (
    ("apps/v1", "Deployment", deployment),
    ("apps/v1", "ReplicaSet", replica_set),
    ("apps/v1", "StatefulSet", stateful_set),
    ("apps/v1", "DaemonSet", daemon_set),
    ("batch/v1", "Job", job),
    ("v1", "Pod", pod),
    ("v1", "PersistentVolumeClaim", claim),
    ("v1", "Service", service),
    ("policy/v1", "PodDisruptionBudget", plain),
    ("apiextensions.k8s.io/v1", "CustomResourceDefinition", definition),
    ("v1", "ConfigMap", plain),
    ("batch/v1", "CronJob", plain),
    ("example.com/v1", "Offer", other),
)


STORED = ("ConfigMap", "CronJob")  # what has no status that says anything


def question(chance: Random) -> Question:
    version, kind, fields = chance.choice(KINDS)
    spec, status = fields(chance)
    metadata: Fields = {"name": "a", "namespace": "b", "creationTimestamp": CREATED}
    if chance.random() < 0.04:
        metadata["deletionTimestamp"] = CHANGED
    if kind in STORED:
        return {"value": {"apiVersion": version, "kind": kind, "metadata": metadata}}
    metadata["generation"] = chance.choice((1, 2, 3))
    if chance.random() < 0.9:
        status["observedGeneration"] = metadata["generation"] if chance.random() < 0.9 else chance.randint(1, metadata["generation"])
    if chance.random() < 0.1:
        status["conditions"] = [*status.get("conditions", ()), *conditions(chance, chance.choice(("Reconciling", "Stalled")), "Some")]
    return {"value": {"apiVersion": version, "kind": kind, "metadata": metadata, "spec": spec, "status": status}}


def ours(asks: Question) -> Answer:
    found = judge(asks["value"], 0, NOW)
    return Answer(Answer.of(SAID[str(found.status)]).value, found.message)


def of(kind: str, text: str = "") -> Covers:
    """Whether it is an object of a kind, and our verdict says a text."""
    return lambda asks, mine, _theirs: at(asks["value"], "kind") == kind and text in mine.said


def unseen(_asks: Question, mine: Answer, _theirs: Answer) -> bool:
    return mine.said == "its controller hasn't looked at it yet"


def crossplane(asks: Question, _mine: Answer, _theirs: Answer) -> bool:
    return {"Synced", "Ready"} <= {each["type"] for each in asks["value"]["status"].get("conditions", ())}


def on_delete(asks: Question, _mine: Answer, _theirs: Answer) -> bool:
    return bool(at(asks["value"], "spec", "updateStrategy", "type") == "OnDelete")


KNOWN: dict[str, Covers] = {
    "A workload whose controller has said nothing": unseen,
    "A Job that runs": lambda asks, mine, _theirs: asks["value"]["kind"] == "Job" and mine.value == '"InProgress"',
    "A suspended Job": of("Job", "is suspended"),
    "A Pod that failed": lambda asks, _mine, _theirs: at(asks["value"], "status", "phase") == "Failed",
    "A Pod whose container waits in vain": of("Pod", "waits: "),
    "A Pod that no Node takes, in any phase": of("Pod", "Unschedulable"),
    "A paused Deployment": of("Deployment", "is paused"),
    "Pods that are updated when they are deleted": on_delete,
    "A StatefulSet whose revisions differ still": of("StatefulSet", "updated"),
    "A claim that waits for its first pod": of("PersistentVolumeClaim", "is Pending"),
    "A claim that lost its volume": of("PersistentVolumeClaim", "has lost its volume"),
    "A resource of Crossplane": crossplane,
}


def example(text: str) -> Question:
    """Read a row's example: an object without what all of them have."""
    body = yaml.safe_load(text)
    version = next(version for version, kind, _ in KINDS if kind == body["kind"])
    metadata = {"name": "a", "creationTimestamp": CREATED, "generation": 1}
    return {"value": {"apiVersion": version, "metadata": metadata, **body}}


def test_objects() -> None:
    chance = seeded()
    compare("kstatus", [question(chance) for _ in range(OBJECTS)], ours, KNOWN, example)
