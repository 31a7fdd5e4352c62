"""What ends a wait before its time, and what a wait that goes on costs."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field, replace
from types import SimpleNamespace

import pytest

from handler.config.git_settings import Repository
from handler.config.settings import Settings
from handler.engine import outcomes
from handler.engine.requests import ask
from handler.engine.run.context import ChosenRevision, Round, RunContext
from handler.engine.run.dependencies import AwaitedTarget
from handler.engine.run.other_records import OtherRecord
from handler.engine.waits import interrupts
from handler.engine.waits.interrupts import Interrupts
from handler.model.errors import AnnealError, ChartUnavailable, NewerHead, Stopping, Suspended
from handler.model.event import Job
from handler.state.record import RunStatus, State, Suspend, TargetHealth, WaitingFor
from tests.fakes.engine import ONE, cluster, engine, pushed
from tests.fakes.git_host import GitHost, HostSource
from tests.unit.engine.rendering import CHART, Elsewhere, FromElsewhere, rendering
from tests.unit.engine.waiting_run import HEAD, NOON, Scene

pytestmark = pytest.mark.slow

OTHER = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: other, namespace: other}\n"


INFRA = replace(ONE.targets[0], name="infra", repository=Repository("https://git.example.com/acme/infra.git"))


@dataclass
class OthersRecord:
    """The record of a target that another one depends on, which isn't healthy yet."""

    commit: str = "e" * 40
    state: State = field(init=False)

    def __post_init__(self) -> None:
        health = TargetHealth("progressing", NOON, NOON)
        self.state = State("infra", "", "", commit=self.commit, settings="c" * 64, status=RunStatus("applied"), health=health)

    def read(self, target: str) -> OtherRecord:
        return OtherRecord(target, self.state, self.state.health)


@pytest.fixture
def scene(monkeypatch: pytest.MonkeyPatch) -> Scene:
    monkeypatch.setattr(interrupts, "HEAD_EVERY", 1e9)  # nothing here is seen by the clock's pace alone
    server, host = cluster(), GitHost()
    first = pushed(host)
    handler = engine(server, host)
    handler.run(Job("shop", "tick"))
    return Scene(server, host, handler, commit=first)


def test_requests_for_the_same_head_cost_one_look_each_and_end_no_wait(scene: Scene) -> None:
    run = scene.wait()
    lookout = Interrupts(run)
    for _ in range(3):
        lookout.look()
    assert scene.asked == []
    for job in (Job("shop", "tick"), Job("shop", "push", hint=scene.commit), Job("shop", "drift")):
        scene.around.jobs += (job,)
        for _ in range(3):
            lookout.look()
    assert scene.asked == [HEAD] * 3


def test_a_push_that_changes_what_the_run_was_made_from_ends_it(scene: Scene) -> None:
    run = scene.wait()
    lookout = Interrupts(run)
    newer = pushed(scene.host, "2")
    scene.around.jobs = (Job("shop", "push", hint=newer),)
    with pytest.raises(NewerHead, match=newer[:12]):
        lookout.look()
    assert run.revision.head == newer
    with pytest.raises(NewerHead):
        lookout.look()  # of another thread


def test_a_push_that_waits_itself_for_another_target_ends_no_wait_before_that_is_ready(scene: Scene) -> None:
    run = scene.wait()
    others = OthersRecord()
    awaited = AwaitedTarget(INFRA, "c" * 64, lambda _known, _since: others.commit, lambda _pin, _head: False)
    run.deps = replace(run.deps, awaited=(awaited,), others=others)
    lookout = Interrupts(run)
    newer = pushed(scene.host, "2")
    for number in range(2):
        scene.around.jobs += (Job("shop", "push", hint=newer, moment=float(number)),)
        lookout.look()
    assert run.revision.head == scene.commit
    others.state = replace(others.state, health=TargetHealth("healthy", NOON, NOON))
    scene.around.jobs += (Job("shop", "tick"),)
    with pytest.raises(NewerHead, match=newer[:12]):
        lookout.look()


def test_a_push_that_changes_nothing_read_ends_no_wait_and_is_fetched_once(scene: Scene) -> None:
    run = scene.wait()
    lookout = Interrupts(run)
    files = dict(scene.host.commits[scene.commit])
    scene.host.push(newer := scene.host.commit({**files, "other/one.yaml": OTHER}))
    for number in range(3):
        scene.around.jobs += (Job("shop", "tick", moment=float(number)),)
        lookout.look()
    assert [each for each in scene.asked if each.startswith("fetch")] == [f"fetch {newer}"]
    assert run.revision.head == scene.commit


@dataclass(frozen=True)
class Indexed(Elsewhere):
    """What isn't git, each answer by an index; `held`: what was asked since those were let go of; `fails`: nothing can be asked now."""

    held: list[str] = field(default_factory=list)
    fails: list[AnnealError] = field(default_factory=list)

    def ask(self, name: str) -> str:
        self.held.append(name)
        if self.fails:
            raise self.fails[0]
        return super().ask(name)

    def forget_indexes(self) -> None:
        self.held.clear()


def test_a_run_that_waits_holds_no_index_and_nothing_of_a_head_that_is_no_news(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(interrupts, "HEAD_EVERY", 1e9)
    server, host, elsewhere = cluster(), GitHost(), Indexed()
    files = {"shop/Chart.yaml": "name: web\n"}
    host.push(first := host.commit(files))
    handler = rendering(server, host, FromElsewhere("helm"), elsewhere)
    handler.run(Job("shop", "tick"))
    scene = Scene(server, host, handler, commit=first)
    run = scene.wait()
    assert (elsewhere.held, set(run.elsewhere)) == ([], {first})
    assert CHART in elsewhere.asked
    lookout = Interrupts(run)
    for number, fails in enumerate([[], [ChartUnavailable.of("chart web", "no answer")]]):
        elsewhere.fails[:] = fails
        host.push(host.commit({**files, "other/one.yaml": OTHER * (number + 1)}))
        scene.around.jobs += (Job("shop", "tick", moment=float(number)),)
        lookout.look()
        assert elsewhere.held == [CHART]
        elsewhere.held.clear()
        assert set(run.elsewhere) == {first}
    elsewhere.fails.clear()
    host.push(newer := host.commit({"shop/Chart.yaml": "name: other\n"}))
    scene.around.jobs += (Job("shop", "tick", moment=9.0),)
    with pytest.raises(NewerHead):
        lookout.look()
    assert set(run.elsewhere) == {first, newer}, "the next round goes on with it"


def test_a_push_that_the_host_does_not_show_yet_is_looked_for_soon(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(interrupts, "WAITS", (0.0, 0.0))
    lookout = Interrupts(scene.wait())
    scene.host.lags = True
    newer = pushed(scene.host, "2")
    scene.around.jobs = (Job("shop", "push", hint=newer),)
    lookout.look()
    scene.host.show()
    with pytest.raises(NewerHead, match=newer[:12]):
        lookout.look()


@pytest.mark.parametrize("act", [{"rollback": True}, {"unpin": True}, {"commit": "a" * 40}], ids=str)
def test_a_request_by_hand_interrupts_the_wait_without_a_look_at_the_host(scene: Scene, act: dict[str, bool]) -> None:
    lookout = Interrupts(scene.wait())
    scene.around.jobs = (Job("shop", "replay", dry_run=True, **act),)  # type: ignore[arg-type]  # its keywords
    lookout.look()
    scene.asked.clear()
    scene.around.jobs = (Job("shop", "replay", **act),)  # type: ignore[arg-type]  # its keywords
    with pytest.raises(NewerHead, match="something else was asked for"):
        lookout.look()
    assert scene.asked == []


@pytest.mark.parametrize("newer", [False, True])
def test_a_wait_that_a_pin_has_ended_keeps_its_beginning(scene: Scene, *, newer: bool) -> None:
    run = scene.wait()
    waits = WaitingFor(run.revision.commit, "everything", NOON)
    run.record(lambda state: replace(state, waiting=waits))
    if newer:
        run.revision = replace(run.revision, head=pushed(scene.host, "2"))
    outcomes.superseded(run, NewerHead.of("target shop", "it was pinned to what is waited for"))
    assert run.state.waiting == (None if newer else waits)


def test_a_wait_for_a_pinned_commit_that_a_request_has_ended_keeps_its_beginning_too(scene: Scene) -> None:
    """The head is another one all along; only one that moves makes a wait of no use."""
    pushed(scene.host, "2")
    scene.handler.run(Job("shop", "tick"))
    run = scene.wait(Job("shop", "replay", commit=scene.commit, actor="ann"))
    waits = WaitingFor(run.revision.commit, "everything", NOON)
    run.record(lambda state: replace(state, waiting=waits))
    lookout = Interrupts(run)
    scene.around.jobs = (Job("shop", "replay", commit="a" * 40, rollback=True),)
    with pytest.raises(NewerHead) as ended:
        lookout.look()
    result = outcomes.waiting(run, ended.value)
    assert (run.state.waiting, result.again) == (waits, None)
    scene.around.jobs = ()
    lookout = Interrupts(run)
    mended = pushed(scene.host, "3")
    scene.around.jobs = (Job("shop", "push", hint=mended),)
    with pytest.raises(NewerHead) as ended:
        lookout.look()
    outcomes.superseded(run, ended.value)
    assert run.state.waiting is None


def test_a_request_on_the_lease_is_seen_at_its_renewal(scene: Scene) -> None:
    newer = pushed(scene.host, "2")
    run = scene.wait()
    lookout = Interrupts(run)
    other = RunContext(
        scene.handler.dependencies("shop"),
        Job("shop", "replay", commit=scene.commit, actor="ann"),
        threading.Event(),
        "shop.other",
        Round(0.0),
    )
    other.read()
    ask(other)
    other.deps.lock.request()
    lookout.look()
    assert run.lease
    run.lease.renew()
    with pytest.raises(NewerHead, match=f"pinned to {scene.commit[:12]} by ann"):
        lookout.look()
    assert run.revision.commit == newer


def test_a_request_without_any_change_looks_and_goes_on(scene: Scene) -> None:
    run = scene.wait()
    lookout = Interrupts(run)
    run.deps.lock.request()
    assert run.lease
    run.lease.renew()
    for _ in range(3):
        lookout.look()
    assert scene.asked == [HEAD]


def test_suspend_and_stop_interrupt_the_wait(scene: Scene) -> None:
    run = scene.wait()
    lookout = Interrupts(run)
    run.deps.store.update(lambda state: replace(state, suspend=Suspend("ann")))
    run.deps.lock.request()
    assert run.lease
    run.lease.renew()
    with pytest.raises(Suspended, match="ann"):
        lookout.look()
    scene.stop.set()
    with pytest.raises(Stopping):
        Interrupts(run).look()


def test_a_wait_for_a_pinned_commit_is_interrupted_by_what_ends_the_pin(scene: Scene) -> None:
    pushed(scene.host, "2")
    scene.handler.run(Job("shop", "tick"))
    lookout = Interrupts(scene.wait(Job("shop", "replay", commit=scene.commit, actor="ann")))
    files = dict(scene.host.commits[scene.host.head])
    scene.host.push(scene.host.commit({**files, "other/one.yaml": OTHER}))
    scene.around.jobs = (Job("shop", "tick"),)
    lookout.look()
    mended = pushed(scene.host, "3")
    scene.around.jobs = (Job("shop", "push", hint=mended),)
    with pytest.raises(NewerHead, match=mended[:12]):
        lookout.look()


def test_waits_for_one_repository_share_the_clocks_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [5.0]
    monkeypatch.setattr(interrupts, "time", SimpleNamespace(monotonic=lambda: now[0]))
    server, host, asked = cluster(), GitHost(), list[str]()
    pushed(host)
    targets = (*ONE.targets, replace(ONE.targets[0], name="twin"))
    handler = engine(server, host, Settings(targets=targets))
    source = HostSource(host, asked.append, lambda: now[0])
    outlooks = []
    for target in targets:
        deps = handler.dependencies(target.name)
        deps.preparer.source = source
        run = RunContext(deps, Job(target.name, "push"), threading.Event(), f"{target.name}.waits", Round(0.0))
        run.stored = deps.store.create(deps.store.blank("uid"))
        run.revision = ChosenRevision(host.head, host.head)
        outlooks.append(Interrupts(run))
    seen = []
    for now[0] in (9.0, 9.9, 10.1, 12.0, 19.0, 20.0, 29.0, 31.0):
        for each in outlooks:
            each.look()
        seen.append(len(asked))
    assert seen == [0, 0, 1, 1, 1, 2, 2, 3]
