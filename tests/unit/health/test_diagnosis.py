"""What explains that an object isn't healthy: which pod and which Warnings count, and in which words they are reported."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from handler.health.diagnosis import STOOD, Finding, Live, NamespaceSight, Subject, Warned, diagnose, names, without_output
from handler.health.kinds.pods import trouble
from handler.health.kinds.reading import moment
from handler.model.names import Identity

SAMPLES = Path(__file__).parent / "samples"
NOON = moment("2026-01-01T12:00:00Z") or 0.0
API = Subject(Identity("apps", "Deployment", "shop", "api"), Live("u-api"), "0 of 1 replica available", selector="app=api")
STILL = Subject(API.identity, API.live, API.said, still=True, selector="app=api")
WAITS = {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off 10s restarting failed container"}}
ENDED = {"terminated": {"exitCode": 1, "reason": "Error"}}


def at(seconds: float) -> str:
    return f"2026-01-01T{12 + int(seconds // 3600):02}:{int(seconds % 3600 // 60):02}:{int(seconds % 60):02}Z"


def pod(name: str, *, owner: str = "ReplicaSet/api-5f9", made: float = 0.0, revision: str = "5f9", **status: Any) -> dict[str, Any]:
    kind, _, owned = owner.partition("/")
    metadata = {
        "name": name,
        "uid": f"u-{name}",
        "creationTimestamp": at(made),
        "labels": {"pod-template-hash": revision},
        "ownerReferences": [{"kind": kind, "name": owned, "controller": True}],
    }
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "status": {"phase": "Pending", **status}}


def container(*, state: dict[str, Any], last: dict[str, Any] | None = None, ready: bool = False) -> list[dict[str, Any]]:
    return [{"name": "main", "ready": ready, "restartCount": 3, "state": state, "lastState": last or {}}]


def crashing(name: str = "api-5f9-a", **more: Any) -> dict[str, Any]:
    return pod(name, containerStatuses=container(state=WAITS, last=ENDED), **more)


def ready(name: str, **more: Any) -> dict[str, Any]:
    return pod(name, phase="Running", conditions=[{"type": "Ready", "status": "True"}], **more)


def warned(about: str, reason: str, message: str, when: float = 5.0, times: int = 1, uid: str = "") -> Warned:
    kind, _, name = about.partition("/")
    event = {"involvedObject": {"kind": kind, "name": name, "uid": uid or f"u-{name}"}, "reason": reason, "message": message}
    return Warned.of({**event, "count": times}, at(when))


def found(subject: Subject, *seen: dict[str, Any] | Warned, now: float = 20.0) -> Finding:
    pods = [each for each in seen if isinstance(each, dict)]
    return diagnose(subject, NamespaceSight.of(pods, [each for each in seen if isinstance(each, Warned)], NOON, NOON + now))


# --- at once
def test_a_container_between_restarts_says_the_same_cause_as_one_that_waits() -> None:
    waiting = found(API, crashing())
    assert waiting.causes == ("CrashLoopBackOff",)
    assert waiting.text == (
        "pod api-5f9-a: container main waits: CrashLoopBackOff: “back-off 10s restarting failed container”; "
        "container main ended with exit code 1; restarted 3 times"
    )
    running = found(API, pod("api-5f9-a", containerStatuses=container(state={"running": {"startedAt": at(1)}}, last=ENDED)))
    assert running == Finding(("exit code 1",), "pod api-5f9-a: container main ended with exit code 1; restarted 3 times")
    assert names(waiting.text, *running.causes), "so it isn't news"


def test_a_pod_without_a_node_and_one_that_was_evicted_are_told_at_once() -> None:
    unplaced = [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/3 nodes are available"}]
    told = found(API, pod("a", conditions=unplaced), warned("Pod/a", "FailedScheduling", "0/3 nodes are available"))
    assert told == Finding(("Unschedulable",), "pod a: Unschedulable: “0/3 nodes are available”"), "one text, once"
    assert found(API, pod("a", phase="Failed", reason="Evicted")).causes == ("Evicted",)


def test_a_failed_probe_is_told_by_its_event_and_a_starting_pod_has_no_cause() -> None:
    starting = pod("a", containerStatuses=container(state={"waiting": {"reason": "ContainerCreating"}}))
    assert found(API, starting) == Finding()
    probed = found(API, starting, warned("Pod/a", "Unhealthy", "Readiness probe failed: HTTP probe failed with statuscode: 503"))
    assert probed == Finding(("Unhealthy",), "pod a: Warning Unhealthy: “Readiness probe failed: HTTP probe failed with statuscode: 503”")


def test_refused_pods_are_told_by_the_failed_create_event_of_the_replica_set() -> None:
    refused = warned("ReplicaSet/api-5f9", "FailedCreate", 'pods "api-5f9-x" is forbidden: exceeded quota')
    assert found(API, refused) == Finding(("FailedCreate",), 'Warning FailedCreate: “pods "api-5f9-x" is forbidden: exceeded quota”')
    said = Subject(API.identity, API.live, 'FailedCreate: pods "api-5f9-y" is forbidden: exceeded quota', selector="app=api")
    assert found(said, refused) == Finding(("FailedCreate",), ""), "its own condition has said so"
    db = Subject(Identity("apps", "StatefulSet", "shop", "db"), Live("u-db"), "0 of 1 replica ready", selector="app=db")
    assert found(db, warned("StatefulSet/db", "FailedCreate", "no room")).causes == ("FailedCreate",)
    other = warned("ReplicaSet/api-web-5f9", "FailedCreate", "another Deployment's")
    assert found(API, other) == Finding()


def test_of_a_kubelets_warnings_the_one_is_told_that_says_more() -> None:
    image = pod(
        "a", containerStatuses=container(state={"waiting": {"reason": "ImagePullBackOff", "message": 'Back-off pulling image "a:2"'}})
    )
    events = [
        warned("Pod/a", "Failed", "Failed to pull image: not found", 3),
        warned("Pod/a", "BackOff", 'Back-off pulling image "a:2"', 4),
        warned("Pod/a", "Failed", "Error: ImagePullBackOff", 5),
    ]
    told = found(API, image, *events)
    assert told.causes == ("ImagePullBackOff", "BackOff", "Failed")
    assert told.text.endswith(
        'waits: ImagePullBackOff: “Back-off pulling image "a:2"”; restarted 3 times; Warning Failed: “Failed to pull image: not found”'
    )


# --- what counts
def test_an_old_warning_event_isnt_a_cause_unless_it_repeats() -> None:
    db = Subject(Identity("apps", "StatefulSet", "shop", "db"), Live("u-db"), "0 of 1 replica ready", selector="app=db")
    old = NamespaceSight.of([], [warned("StatefulSet/db", "FailedCreate", "no room")], NOON + 2000, NOON + 2010)
    assert diagnose(db, old) == Finding()
    again = NamespaceSight.of([], [warned("StatefulSet/db", "FailedCreate", "no room", 1800, times=7)], NOON + 2000, NOON + 2010)
    assert diagnose(db, again).causes == ("FailedCreate",)
    assert found(db, warned("StatefulSet/db", "FailedCreate", "another's, of the same name", uid="u-before")) == Finding()


def test_a_refusal_is_over_once_a_pod_was_made() -> None:
    refused = warned("ReplicaSet/api-5f9", "FailedCreate", "no room", 5)
    assert found(API, refused, pod("a", made=6)) == Finding()
    assert found(API, refused, pod("a", made=5)).causes == ("FailedCreate",)


def test_a_warning_is_over_once_its_controller_has_changed_a_condition() -> None:
    failed = warned("HorizontalPodAutoscaler/web", "FailedGetScale", "not found", 5, times=9)
    identity = Identity("autoscaling", "HorizontalPodAutoscaler", "shop", "web")
    conditions = [{"type": "AbleToScale", "lastTransitionTime": at(6)}, {"type": "ScalingActive", "lastTransitionTime": at(2)}]
    told = Live.of({"metadata": {"uid": "u-web"}, "status": {"conditions": conditions}})
    assert found(Subject(identity, told, "FailedGetMetric"), failed).causes == ("FailedGetScale",), "with the condition of the same look"
    cured = Live(told.uid, told.changed + 14)
    assert found(Subject(identity, cured, "FailedGetMetric"), failed) == Finding()


def test_warnings_from_before_the_containers_started_arent_causes() -> None:
    began = container(state={"running": {"startedAt": at(60)}})
    mounted = pod("a", phase="Running", containerStatuses=began, conditions=[{"type": "PodScheduled", "status": "True"}])
    past = [warned("Pod/a", "FailedMount", "timed out", 10), warned("Pod/a", "FailedScheduling", "no node", 58)]
    assert found(API, mounted, *past, now=70.0) == Finding()
    assert found(API, mounted, *past, warned("Pod/a", "Unhealthy", "503", 65), now=70.0).causes == ("Unhealthy",)


def test_the_newest_revision_is_blamed_while_it_moves_and_an_old_pod_only_when_all_stands() -> None:
    old, new = crashing("old", made=0, revision="1"), pod("new", made=9, revision="2")
    assert found(API, old, new) == Finding(), "a ReplicaSet of before is no reason for the new one"
    assert found(STILL, old, new).causes == ("CrashLoopBackOff",)
    assert found(API, crashing("new", made=9, revision="2"), old, ready("well", made=9, revision="2")).text.startswith("pod new: ")
    gone = crashing("gone", made=10)
    gone["metadata"]["deletionTimestamp"] = at(11)
    assert found(API, gone, new) == Finding()


def test_pods_of_others_and_a_custom_kind_of_the_same_name_are_left_alone() -> None:
    assert found(API, crashing(owner="ReplicaSet/api-web-5f9"), crashing(owner="StatefulSet/api")) == Finding()
    custom = Subject(Identity("example.com", "Deployment", "shop", "api"), Live("u-other"), "isn't ready", selector="app=api")
    assert found(custom, crashing()) == Finding()
    assert found(Subject(API.identity, API.live, API.said), crashing()) == Finding(), "it is asked about without its pods"


# --- inferred
def test_a_stalled_rollout_is_told_by_what_its_pod_lacks() -> None:
    creating = pod("a", containerStatuses=container(state={"waiting": {"reason": "ContainerCreating"}}))
    assert found(STILL, creating) == Finding((STOOD,), f"pod a: container main waits: ContainerCreating; {STOOD}")
    assert found(STILL).text == f"it has no pods; {STOOD}"
    offer = Subject(Identity("example.com", "Offer", "shop", "tea"), Live("u-tea"), "isn't ready", still=True)
    assert found(offer) == Finding((STOOD,), STOOD)
    assert found(STILL, crashing()).causes == ("CrashLoopBackOff",), "what is known isn't inferred"


def test_an_event_of_the_newer_api_is_read_as_well() -> None:
    event = {"regarding": {"kind": "Pod", "name": "a", "uid": "u-a"}, "reason": "Unhealthy", "note": "503", "series": {"count": 4}}
    assert (Warned.of(event, at(5)).text, Warned.of(event, at(5)).times) == ("Warning Unhealthy: 503", 4)


@pytest.mark.parametrize(
    ("text", "cause", "is_named"), [("exit code 137", "exit code 1", False), ("exit code 1 (Error)", "exit code 1", True)]
)
def test_a_cause_is_named_by_whole_words(text: str, cause: str, *, is_named: bool) -> None:
    assert names(f"137; {text}", cause) is is_named


# --- whatever the cluster holds
@pytest.mark.parametrize("path", sorted(SAMPLES.glob("pod.*.yaml")), ids=lambda path: path.stem)
def test_each_cause_of_a_pods_trouble_stands_in_its_text(path: Path) -> None:
    live = yaml.safe_load(path.read_text())
    for cause, text in trouble(live).items():
        assert cause
        assert names(text, cause)
    assert bool(trouble(live)) == (path.stem.split(".")[1] == "failed" or path.stem.endswith("unschedulable-yet"))


@pytest.mark.parametrize("odd", ["text", 7, None, [], ["text"], {"a": "b"}, [{"name": ["x"]}], {"phase": [], "containerStatuses": "x"}])
def test_any_pod_and_any_event_are_read(odd: Any) -> None:
    pods = [{"metadata": odd, "status": odd}, {"metadata": {"ownerReferences": odd, "labels": odd, "name": odd}}]
    pods += [pod("a", containerStatuses=odd, conditions=odd), pod("a", phase="Failed", reason=odd, message=odd)]
    events = [Warned.of({"involvedObject": odd, "reason": odd, "message": odd, "count": odd, "series": odd}, str(odd)), Warned.of({}, "")]
    for subject in (API, STILL):
        diagnose(subject, NamespaceSight.of([*pods, *(pod("b", containerStatuses=[odd], conditions=[odd]),)], events, NOON, NOON))


_HOOK = 'Exec lifecycle hook ([sh -c x]) for Container "main" in Pod "api" failed'


@pytest.mark.parametrize(
    ("message", "told"),
    [
        ("Readiness probe failed: HTTP probe failed with statuscode: 503", None),
        ("Liveness probe failed: dial tcp 10.0.0.7:8080: connect: connection refused", None),
        (
            'Startup probe failed: Get "http://10.0.0.7:8080/?token=s3cr3t": context deadline exceeded',
            "Startup probe failed: context deadline exceeded",
        ),
        (
            'Liveness probe failed: Get "http://10.0.0.7:8080/": dial tcp 10.0.0.7:8080: connect: connection refused',
            "Liveness probe failed: dial tcp 10.0.0.7:8080: connect: connection refused",
        ),
        ('Liveness probe failed: Get "http://shop/?token=s3cr3t": s3cr3t is wrong', "Liveness probe failed"),
        ("Readiness probe failed: dial tcp s3cr3t-of-shop", "Readiness probe failed"),
        ("Readiness probe failed: psql: password s3cr3t-of-shop is wrong", "Readiness probe failed"),
        ("Liveness probe errored: two lines\nof s3cr3t-of-shop", "Liveness probe errored"),
        (
            f"{_HOOK} - error: command 'sh' exited with 1: , message: 's3cr3t-of-shop'",
            _HOOK,
        ),
        ("Back-off restarting failed container main", None),
    ],
)
def test_output_of_a_program_in_an_event_isnt_shown(message: str, told: str | None) -> None:
    assert without_output(message) == (message if told is None else told)


def test_of_an_object_that_holds_a_secret_the_reasons_alone_are_told() -> None:
    closed = replace(STILL, said="in progress", closed=True)
    events = [
        warned("Deployment/api", "Refused", "refused swordfish", uid="u-api"),
        warned("Deployment/api", "odd swordfish", "x", uid="u-api"),
    ]
    told = found(closed, crashing(), *events)
    assert "swordfish" not in told.text + told.at_last(20.0)
    assert told.text == "pod api-5f9-a: CrashLoopBackOff; restarted 3 times; Warning Refused; Warning"
    assert "swordfish" in found(STILL, crashing(), *events).text
    waiting = found(closed, pod("api-5f9-b", containerStatuses=container(state={"waiting": {"reason": "odd swordfish"}})))
    assert "swordfish" not in waiting.text + waiting.at_last(20.0)
