"""When a wait looks for evidence, what it then reports, and where: without a cluster, but for what one would answer."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest

from handler.engine.run.context import ChosenRevision
from handler.engine.waits import evidence as looks
from handler.engine.waits.evidence import FIRST, EvidenceLooks, Pace
from handler.health.diagnosis import STOOD, Live, Subject
from handler.model.errors import AccessDenied, ClusterUnavailable
from handler.model.names import Identity
from handler.state.record_format import seconds_of
from tests.patience import PATIENCE
from tests.unit.state.samples import NOON, blank, sha

START = seconds_of(NOON)


def web(name: str = "web", said: str = "0 of 1 replica available", namespace: str = "shop", *, still: bool = False) -> Subject:
    identity = Identity("apps", "Deployment", namespace, name)
    return Subject(identity, Live(f"u-{name}"), said, still, selector=f"app={name}")


def pod(reason: str, message: str = "", name: str = "web", **state: Any) -> dict[str, Any]:
    owner = {"kind": "ReplicaSet", "name": f"{name}-5f9", "controller": True}
    metadata = {"name": f"{name}-5f9-a", "uid": "u-pod", "ownerReferences": [owner]}
    container = {"name": "main", "ready": False, "state": {"waiting": {"reason": reason, "message": message}}, **state}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "status": {"phase": "Pending", "containerStatuses": [container]}}


ENDED: dict[str, Any] = {"lastState": {"terminated": {"exitCode": 1, "reason": "Error"}}}


@dataclass
class Cluster:
    """What the API server answers, and a run that asks it; time passes as the test says."""

    pods: list[dict[str, Any]] = field(default_factory=list)
    events: list[dict[str, Any]] = field(default_factory=list)
    fails: Exception | None = None
    asked: list[str] = field(default_factory=list)
    passed: float = 0.0
    hangs: threading.Event | None = None
    state: Any = field(default_factory=blank)

    def get(self, path: str, query: Any = None, **_: Any) -> dict[str, Any]:
        self.asked.append(f"{path}?{query.get('labelSelector', '')}")
        if self.hangs:
            assert self.hangs.wait(PATIENCE)
        if self.fails:
            raise self.fails
        items, kind = (self.pods, "Pod") if path.endswith("/pods") else (self.events, "Event")
        return {"apiVersion": "v1", "kind": f"{kind}List", "metadata": {}, "items": items}

    @property
    def run(self) -> Any:
        api = SimpleNamespace(get=self.get, server_time=lambda: START)
        deps = SimpleNamespace(planner=SimpleNamespace(api=api))
        job = SimpleNamespace(target="shop")
        return SimpleNamespace(deps=deps, state=self.state, clock=lambda: START, job=job, revision=ChosenRevision(sha()), run="shop-1")

    def wait(self, **known: str) -> EvidenceLooks:
        return EvidenceLooks(self.run, Pace(), "everything", START, known)


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Cluster:
    made = Cluster()
    monkeypatch.setattr(looks, "time", SimpleNamespace(monotonic=lambda: 1000.0 + made.passed))
    return made


@pytest.fixture
def lines(caplog: pytest.LogCaptureFixture) -> Callable[[], list[str]]:
    caplog.set_level(logging.INFO, "anneal.run")

    def found() -> list[str]:
        told = [record.__dict__["fields"]["evidence"] for record in caplog.records if record.getMessage() == "waits"]
        caplog.clear()
        return told

    return found


def seen(wait: EvidenceLooks, *subjects: Subject) -> bool:
    """Let the wait look once it is due, and take in what it found."""
    wait.look(lambda: subjects)
    look = wait._look
    assert look
    assert look.thread
    look.thread.join(PATIENCE)
    return wait.look(lambda: subjects)


CRASHES = "pod web-5f9-a: container main waits: CrashLoopBackOff: “back-off 10s”; container main ended with exit code 1"


def test_a_wait_that_ends_soon_asks_for_nothing(cluster: Cluster) -> None:
    wait = cluster.wait()
    cluster.passed = FIRST - 0.1
    assert not wait.look(lambda: [web()])
    assert (wait._look, cluster.asked) == (None, [])


def test_a_cause_is_logged_once_however_often_its_pod_restarts(cluster: Cluster, lines: Callable[[], list[str]]) -> None:
    wait, cluster.pods = cluster.wait(), [pod("CrashLoopBackOff", "back-off 10s", **ENDED)]
    cluster.passed = FIRST
    assert seen(wait, web())
    assert lines() == [f"0 of 1 replica available; {CRASHES}"]
    for state in (pod("CrashLoopBackOff", "back-off 20s", restartCount=9, **ENDED), pod("", state={"running": {}}, **ENDED)):
        cluster.pods, cluster.passed = [state], cluster.passed + 5
        assert not seen(wait, web(said="0 of 2 replicas available"))
        assert (wait.texts, lines()) == ({web().identity: CRASHES}, [])
    cluster.pods, cluster.passed = [pod("ImagePullBackOff", "no http://ann:swordfish@db")], cluster.passed + 5
    assert seen(wait, web())
    assert lines() == ["0 of 1 replica available; pod web-5f9-a: container main waits: ImagePullBackOff: “no http://ann:***@db”"]
    cluster.pods, cluster.passed = [], cluster.passed + 5
    assert seen(wait, web())
    assert (wait.texts, lines()) == ({}, []), "it is over"


def test_the_next_run_of_a_wait_says_the_same_in_the_same_words(cluster: Cluster, lines: Callable[[], list[str]]) -> None:
    before, cluster.pods = f"0 of 1 replica available; {CRASHES}", [pod("CrashLoopBackOff", "back-off 5m0s", **ENDED)]
    wait = cluster.wait(**{str(web().identity): before})
    wait.once([web()])
    assert (wait.texts, lines()) == ({web().identity: CRASHES}, [])
    cluster.pods = [pod("ErrImagePull")]
    wait = cluster.wait(**{str(web().identity): before})
    wait.once([web()])
    assert len(lines()) == 1


def test_a_stalled_object_is_reported_as_stalled(cluster: Cluster, lines: Callable[[], list[str]]) -> None:
    wait = cluster.wait()
    wait.once([web(), web("still", still=True)])
    assert wait.texts == {web("still").identity: f"it has no pods; {STOOD}"}
    assert lines() == [f"0 of 1 replica available; it has no pods; {STOOD}"]


def test_unreadable_evidence_leaves_the_known_evidence(cluster: Cluster) -> None:
    wait, cluster.pods = cluster.wait(), [pod("CrashLoopBackOff", "back-off 10s", **ENDED)]
    wait.once([web()])
    cluster.fails = ClusterUnavailable.of("list pods", "no answer")
    wait.once([web()])
    assert wait.texts == {web().identity: CRASHES}
    wait.once([])
    assert wait.texts == {}, "it is healthy"


def test_evidence_that_may_not_be_read_is_asked_for_seldom(cluster: Cluster) -> None:
    wait, cluster.fails = cluster.wait(), AccessDenied.of("list pods", "forbidden")
    cluster.passed = FIRST
    seen(wait, web())
    asked, cluster.passed = len(cluster.asked), cluster.passed + 30
    wait.look(lambda: [web()])
    assert len(cluster.asked) == asked
    cluster.passed += 31
    seen(wait, web())
    assert len(cluster.asked) == 2 * asked


def test_a_server_that_hangs_holds_up_no_wait(cluster: Cluster) -> None:
    wait, cluster.hangs, cluster.passed = cluster.wait(), threading.Event(), FIRST
    for _ in range(3):
        assert not wait.look(lambda: [web()])
    look = wait._look
    assert look
    assert look.thread
    cluster.hangs.set()
    look.thread.join(PATIENCE)


def test_a_look_is_few_requests_and_each_namespace_has_its_turn(cluster: Cluster) -> None:
    wait = cluster.wait()
    wait.once([web(f"w{number}") for number in range(3)])
    assert sorted(cluster.asked) == ["/api/v1/namespaces/shop/events?"] + [f"/api/v1/namespaces/shop/pods?app=w{n}" for n in range(3)]
    cluster.asked.clear()
    wait.once([web(f"w{number}") for number in range(200)])
    assert sorted(cluster.asked) == ["/api/v1/namespaces/shop/events?", "/api/v1/namespaces/shop/pods?"]
    cluster.asked.clear()
    for _ in range(3):
        cluster.passed += 5
        wait.once([web(namespace=f"n{number}") for number in range(10)])
    assert {path.split("/")[4] for path in cluster.asked} == {f"n{number}" for number in range(10)}
    assert len(cluster.asked) == 3 * 4 * 2


def test_however_many_steps_wait_a_run_looks_so_often(cluster: Cluster) -> None:
    pace = Pace()
    assert sum(pace.may() for _ in range(1000)) == 20
    cluster.passed = 10.0
    assert sum(pace.may() for _ in range(1000)) == 20
    cluster.passed = 11.0
    assert sum(pace.may() for _ in range(1000)) == 2


def test_evidence_is_bounded_in_objects_and_characters(cluster: Cluster) -> None:
    wait, cluster.pods = cluster.wait(), [pod("ErrImagePull", "x" * 10_000, name=f"w{number:03}") for number in range(200)]
    wait.once([web(f"w{number:03}") for number in range(200)])
    assert len(wait.texts) == 20
    assert {len(text) for text in wait.texts.values()} == {500}
